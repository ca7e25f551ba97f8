"""Read shards, draw pairs and choose sources."""
