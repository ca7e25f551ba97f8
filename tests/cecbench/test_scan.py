"""The compiled scan of a file, compared with the parser and scoring of rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecbench import scorers
from cecbench.metrics import scan
from cecbench.metrics.base import apply_policy, count_behaviour, flags
from cecbench.metrics.rows import Row, count_positions
from cecbench.metrics.scan import behaviour_of, under_policy
from cecdata.common.errors import InputError

ALPHABET = "己已经，。aAé ߿ࠀ\u2028\u3000퟿﻿𠀀👨\U0010ffff"
texts = st.text(ALPHABET, max_size=7)
rows = st.lists(
    st.tuples(st.text("ab一𠮷", min_size=1, max_size=4), texts, texts, texts), min_size=1
)


def written(given_rows: list[tuple[str, str, str, str]]) -> bytes:
    # About half of the rows get equal strings, as most sentences have.
    return "".join(
        f"{name}\t{s or 'x'}\t{s or 'x' if len(t) > 3 else t}\t{t if len(p) > 4 else p}\n"
        for name, s, t, p in given_rows
    ).encode()


@given(rows)
def test_a_scan_counts_what_the_rows_give(given_rows: list[tuple[str, str, str, str]]) -> None:
    """Positions, whole strings and behaviour of a scanned block are those of its parsed rows."""
    raw = written(given_rows)
    scanned = scan.scan(raw)
    assert scanned is not None
    block = [Row(*line.split("\t")) for line in raw.decode().removesuffix("\n").split("\n")]
    assert len(scanned) == len(block)
    for policy in ("strict", "revert", "drop"):
        where, whole = under_policy(scanned, policy)
        kept = apply_policy(block, policy)
        slow = count_positions(kept)
        for name in ("gold", "changed", "detected", "corrected"):
            assert getattr(where, name).tolist() == getattr(slow, name).tolist(), (policy, name)
        for mine, theirs in zip(whole, flags(kept), strict=True):
            assert mine.tolist() == theirs.tolist()
    assert behaviour_of(scanned).tolist() == count_behaviour(block).tolist()
    assert len(set(scanned.ids.tolist())) == len({row.id for row in block})
    assert [Row(row.id, *scanned.texts(at)) for at, row in enumerate(block)] == block
    identity = "".join(f"{row.id}\t{row.source}\t{row.target}\n" for row in block)
    assert scanned.identity.tobytes() == identity.encode()


@given(st.binary(max_size=40), st.integers(0, 40))
def test_only_sound_blocks_are_scanned(noise: bytes, at: int) -> None:
    """A block is scanned if and only if Python can decode it and every line has four cells."""
    sound = "1\t己经\t已经\t𠀀\n".encode()
    raw = sound[:at] + noise + sound[at:]
    try:
        lines = raw.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError:
        lines = []
    cells = [line.split("\t") for line in lines]
    whole = bool(cells) and all(len(c) == 4 and c[0] and c[1] for c in cells)
    assert (scan.scan(raw) is not None) == (whole and b"\r" not in raw)


TAILS = (
    b"",
    b"\x80",
    b"\x8f\x80",
    b"\x90\x80",
    b"\x9f\xbf",
    b"\xa0\x80",
    b"\x80\x80\x80",
    b"\x8f\xbf\xbf",
    b"\x90\x80\x80",
)


def test_every_lead_byte_is_judged_as_python_does() -> None:
    """Overlong forms, surrogates and code points beyond the last plane are refused."""
    for raw in (
        b"1\tx\ty\t" + bytes([first]) + tail + b"\n"
        for first in (0x41, *range(0x80, 0x100))
        for tail in TAILS
    ):
        try:
            raw.decode("utf-8")
            sound = True
        except UnicodeDecodeError:
            sound = False
        assert (scan.scan(raw) is not None) == sound, raw


@pytest.mark.parametrize("scorer", ["cscd", "lemon"])
def test_a_scanned_file_scores_as_a_parsed_one(
    scorer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`score_file` returns the same for a scanned and a parsed file, including the interval."""
    draw = np.random.default_rng(3)
    alphabet = list("己已经以他她，。")
    path = tmp_path / "rows.tsv"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number in range(3000):
            target = draw.choice(alphabet, 9)
            source, said = target.copy(), target.copy()
            if number % 3:
                source[draw.integers(9)] = "门"
            if number % 5 == 0:
                said[draw.integers(9)] = "们"
            answer = "".join(said) + "了" * (number % 7 == 0)
            end = "\r\n" if number > 2500 else "\n"  # the last block is for the parser
            file.write(f"{number}\t{''.join(source)}\t{''.join(target)}\t{answer}{end}")
    for policy in ("strict", "revert", "drop"):
        values = []
        for pays in (True, False):
            monkeypatch.setattr(scorers, "_pays", lambda _, pays=pays: pays)
            values.append(scorers.score_file(path, scorer, policy, bootstrap=1000))
        assert values[0] == values[1]


def test_an_id_that_comes_twice_is_found_across_the_ways_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repeated id is reported also if one of its rows was scanned and the other parsed."""
    path = tmp_path / "rows.tsv"
    lines = [f"{n}\t己经{'。' * 60}\t已经\t已经\n" for n in range(3000)]
    path.write_text("".join(lines) + "7\ta\ta\ta\r\n", encoding="utf-8", newline="\n")
    monkeypatch.setattr(scorers, "_pays", lambda _: True)
    with pytest.raises(InputError, match="line 3001: id '7' already belongs to line 8"):
        scorers.score_file(path, "cscd")
