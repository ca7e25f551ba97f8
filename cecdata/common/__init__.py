"""Share errors, the command group, JSON, recipes and durable files among the three packages."""
