"""Models by name: loading, identity, device, batches and prompts, for all three packages."""
