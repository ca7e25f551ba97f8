"""A proposer for tests of what stands around it."""

from __future__ import annotations

from cectrain.corrector.correction import Proposer


class Silent(Proposer):
    """Reads all characters but these, and proposes nothing."""

    unreadable = ""

    def unread(self, text):
        return [character in self.unreadable for character in text]

    def propose(self, pieces):
        return [[] for _ in pieces]
