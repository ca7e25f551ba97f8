"""The commands of `cecbench`: what is typed, turned into calls; nothing is decided here."""
