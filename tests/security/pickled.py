"""What must never run: an object whose pickle does something."""

import os


class Bomb:
    """Unpickled, it leaves a folder behind."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return (os.mkdir, (self.mark,))
