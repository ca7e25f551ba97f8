"""What is known about Chinese characters: sound, shape, parts, and where text may be edited."""
