"""Run the stages of `cectrain train`."""
