"""`python -m cecdata`: the command line."""

from cecdata.cli import main

if __name__ == "__main__":
    main()
