"""From files to clean, distinct sentences."""
