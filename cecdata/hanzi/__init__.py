"""Facts about Chinese characters: sound, shape, parts, and where text may be edited."""
