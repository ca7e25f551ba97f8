"""Parts that the three packages share: errors, command lines, JSON, settings and durable files."""
