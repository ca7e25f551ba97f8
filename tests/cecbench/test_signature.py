"""Signatures, which must be equal before scores are compared."""

from __future__ import annotations

import dataclasses

from cecbench.scorers import Options, score

ROWS = [("1", "他己经来", "他已经来", "他已经来了"), ("2", "今天好", "今天好", "今天好")]
OTHER = [("1", "他己经来", "他已经来", "他己经来"), ("2", "今天好", "今天好", "今天好")]


def test_two_systems_on_one_benchmark_share_their_signature() -> None:
    """The signature depends on the benchmark's sentences, but not on the predictions."""
    mine, theirs = score(ROWS, "cscd", "revert"), score(OTHER, "cscd", "revert")
    assert mine.signature == theirs.signature
    assert mine.signature.differences(theirs.signature) == ()
    moved = score([("1", "他己经来", "他已经走", "他已经走"), ROWS[1]], "cscd", "revert")
    assert [name for name, *_ in mine.signature.differences(moved.signature)] == ["benchmark"]


def test_whatever_moves_a_number_moves_the_signature() -> None:
    """Policy, projection and mode show in the signature's line."""
    made = [
        score(ROWS, "cscd", "revert"),
        score(ROWS, "cscd", "drop"),
        score(ROWS, "cllm", options=Options(projection="difflib")),
        score(ROWS, "cllm", options=Options(projection="cherrant")),
        score(ROWS, "cherrant"),
        score(ROWS, "cherrant", options=Options(mode="first")),
        score(ROWS, "cherrant", options=Options(mode="nosimp")),
    ]
    assert len({result.signature.short() for result in made}) == len(made)
    assert made[1].signature.rows == "1/2"
    assert made[4].signature.opencc != "none"
    assert made[6].signature.opencc == "none"


def test_differences_name_the_field_and_both_values() -> None:
    """Each field that differs is named with both values."""
    mine = score(ROWS, "cscd", "revert").signature
    theirs = dataclasses.replace(mine, beta=0.5, version="9")
    assert mine.differences(theirs) == (("beta", 1.0, 0.5), ("version", mine.version, "9"))
