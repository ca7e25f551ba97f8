"""Data frames in, pairs out: what `cecdata` and `cecdata.polars` offer to other programs."""
