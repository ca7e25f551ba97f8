"""Reports of several runs, and tables for papers."""
