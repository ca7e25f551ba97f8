"""The commands of `cecbench`: their arguments, options and printed output."""
