"""A proposer for tests of what stands around it."""

from __future__ import annotations

from cectrain.corrector.correction import Edit, Proposer


class Silent(Proposer):
    """Reads all characters but these, and proposes nothing."""

    unreadable = ""

    def unread(self, text):
        return [character in self.unreadable for character in text]

    def propose(self, pieces):
        return [[] for _ in pieces]


class Corrects(Silent):
    """Corrects three errors wherever it sees them."""

    longest = most = None

    def propose(self, pieces):
        pairs = {"我门": "我们", "己经": "已经", "按装": "安装"}
        return [
            [
                Edit(
                    start=at,
                    end=at + 2,
                    source=piece[at : at + 2],
                    target=pairs[piece[at : at + 2]],
                    confidence=0.9,
                )
                for at in range(len(piece))
                if piece[at : at + 2] in pairs
            ]
            for piece in pieces
        ]
