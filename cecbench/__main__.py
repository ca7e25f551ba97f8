"""`python -m cecbench`: the command line."""

from cecbench.cli import main

if __name__ == "__main__":
    main()
