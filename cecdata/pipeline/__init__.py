"""Run `cecdata build`: two passes from a corpus to shards."""
