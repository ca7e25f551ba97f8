"""The pipeline of `cecdata build`: two passes from a corpus to shards."""
