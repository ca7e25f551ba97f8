"""`python -m cectrain`: what `accelerate launch -m cectrain` runs."""

from cectrain.cli import main

if __name__ == "__main__":
    main()
