"""The program of each rank in test_distributed.py of which rank 1 ends in its third step."""

import os
import signal
import sys


def main():
    # Here, and not above: the search for doctests imports this file, too, whatever is installed.
    from cectrain.cli import main as command
    from cectrain.supervised.loop import Gradient

    whole = Gradient.set

    def ending(self, pairs, step, **named):
        if step == 2 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(self, pairs, step, **named)

    Gradient.set = ending
    sys.argv[0] = "cectrain"
    command()


if __name__ == "__main__":
    main()
