"""Facts about Chinese characters: sound, shape, parts, and the places where text may be edited."""
