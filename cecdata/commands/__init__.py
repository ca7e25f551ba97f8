"""The commands of `cecdata`: they parse options, call the packages and print the results."""
