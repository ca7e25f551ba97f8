"""The commands of `cecdata`: what is typed, turned into calls; nothing is decided here."""
