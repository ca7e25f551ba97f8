"""Long sources are asked in pieces, and nothing of them is lost."""

from hypothesis import given
from hypothesis import strategies as st

from cecbench.systems.answer import UNANSWERED, Answer
from cecbench.systems.pieces import InPieces

TEXTS = st.lists(st.text("他来了，。！” \n\u3000a", max_size=40), max_size=6)


class Echo:
    """Answers with what it was asked, by a rule that a test gives."""

    name, block, identity = "echo", 8, {"kind": "echo"}

    def __init__(self, answer=lambda text: Answer(text, text)):
        self.asked, self._answer = [], answer

    def correct(self, sources):
        self.asked += sources
        return (self._answer(source) for source in sources)


@given(TEXTS, st.integers(1, 12))
def test_a_system_that_changes_nothing_changes_nothing_in_pieces(sources, longest):
    """Whatever the white space and the signs; no more is asked at once than the limit says."""
    echo = Echo()
    answers = list(InPieces(echo, longest).correct(sources))
    assert [answer.text for answer in answers] == sources
    assert all(0 < len(text) <= longest for text in echo.asked)


@given(TEXTS, st.integers(1, 12))
def test_each_piece_is_corrected_once(sources, longest):
    """Corrections come back in their places, and costs are added."""
    echo = Echo(lambda text: Answer(text.replace("了", "啦"), text, "ok", len(text), 1, 0.5))
    answers = list(InPieces(echo, longest).correct(sources))
    assert sum(answer.tokens_in for answer in answers) == sum(map(len, echo.asked))
    assert sum(answer.seconds for answer in answers) == 0.5 * len(echo.asked)
    for source, answer in zip(sources, answers, strict=True):
        assert answer.text.replace("啦", "了") == source
        assert answer.status == "truncated" or "了" not in answer.text


def test_a_piece_without_a_correction_is_kept_and_told():
    """The other pieces are corrected; a source of one piece says what the system said."""

    def answer(text):
        status = "chatter" if "坏" in text else "cleaned" if "引" in text else "ok"
        return Answer(text.replace("己", "已"), text, status)

    sources = ["己经来。坏了。", "坏了。", "己引。好了。很好。"]
    told = list(InPieces(Echo(answer), 6).correct(sources))
    assert [one.text for one in told] == ["已经来。坏了。", "坏了。", "已引。好了。很好。"]
    assert [one.status for one in told] == ["truncated", "chatter", "cleaned"]
    assert told[1].status in UNANSWERED
    (long,) = InPieces(Echo(answer), 3).correct(["己经来到了。己。"])
    assert (long.text, long.status) == ("己经来到了。已。", "truncated")


def test_the_identity_tells_the_limit():
    """A journal of whole sources is not gone on with in pieces."""
    plain, made = Echo(), InPieces(Echo(), 64)
    assert made.identity["kind"] == "echo"
    assert made.identity != plain.identity
    assert (made.name, made.block) == ("echo", 8)
