"""The published scorers' own numbers, digit by digit.

The golden values are in parity/golden of the folder CEC_SHARED. The published scripts printed them
at the commits that versions.json there names; this repository has none of them.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from scorer_oracles import m2_block

from cecbench.cherrant.costs import NO_DICTIONARIES, Dictionaries
from cecbench.metrics.base import flatten
from cecbench.metrics.cherrant import annotate_rows
from cecbench.metrics.rows import Row
from cecbench.scorers import Options, read_rows, score

SHARED = os.environ.get("CEC_SHARED")
PARITY = Path(SHARED or "/nonexistent") / "parity"
pytestmark = pytest.mark.skipif(
    not PARITY.is_dir(), reason="CEC_SHARED is not set to a folder with parity/"
)

PROJECTIONS = {
    "cherrant_char": "cherrant",
    "cherrant_char_if_len_differs": "cherrant_if_len_differs",
    "difflib": "difflib",
    "difflib_if_len_differs": "difflib_if_len_differs",
}
#: of 13,200 blocks, those that only Cilin decides, and the number of their (set, system) pairs
CILIN_BLOCKS = 7
CILIN_PAIRS = 4


def sets() -> list[str]:
    return sorted(path.name for path in (PARITY / "pred").glob("*"))


def systems(name: str) -> list[str]:
    return sorted(path.stem for path in (PARITY / "pred" / name).glob("*.tsv"))


def pairs() -> list[tuple[str, str]]:
    return [(name, system) for name in sets() for system in systems(name)]


@functools.cache
def golden(name: str) -> dict:
    return json.loads((PARITY / "golden" / f"{name}.json").read_text(encoding="utf-8"))


@functools.cache
def rows(name: str, system: str) -> tuple[Row, ...]:
    return tuple(read_rows(PARITY / "pred" / name / f"{system}.tsv"))


@functools.cache
def probes() -> dict[str, Row]:
    lines = (PARITY / "edge" / "edge.tsv").read_text(encoding="utf-8").split("\n")
    fields = [line.split("\t") for line in lines if line]
    return {number: Row(number, *texts) for number, _, *texts in fields}


def differing(expected: Mapping, values: Mapping) -> dict[str, tuple[object, object]]:
    """Return the golden values that ours lack or that differ in value or type, with ours."""
    wrong = {}
    for key, value in flatten(expected).items():
        ours = values.get(key, "missing")
        if ours != value or type(ours) is not type(value):
            wrong[key] = (value, ours)
    return wrong


def check(expected: Mapping, given: tuple[Row, ...], scorer: str, options: Options) -> None:
    values = score(given, scorer, options.policy, options=options).values
    if "error" in expected:
        # The published script prints nothing here; ours names the error and its cause, and goes on.
        assert values["error"] == expected["error"]
        assert values["error_because"]
        assert values["rows"] == expected.get("rows", 0)
        return
    assert differing(expected, values) == {}


@pytest.mark.parametrize("scorer", ["cscd", "lemon", "sighan", "pycorrector"])
@pytest.mark.parametrize("pair", pairs(), ids="-".join)
def test_numbers_of_a_policy(scorer: str, pair: tuple[str, str]) -> None:
    """Under each policy, every count and number equals that of the published script."""
    name, system = pair
    for policy, expected in golden(scorer)[name][system].items():
        if not policy.startswith("pipeline"):  # LEMON's tokeniser belongs to the systems
            check(expected, rows(name, system), scorer, Options(policy))


@pytest.mark.parametrize("scorer", ["cscd", "lemon", "sighan", "pycorrector"])
def test_probes(scorer: str) -> None:
    """Each probe of a single rule gives the published numbers."""
    for number, row in probes().items():
        expected = golden("edge")[number][scorer]
        if expected is None:
            continue
        by_policy = {"strict": expected} if scorer in {"cscd", "pycorrector"} else expected
        for policy, values in by_policy.items():
            if not policy.startswith("pipeline"):
                check(values, (row,), scorer, Options(policy))


@pytest.mark.parametrize("pair", pairs(), ids="-".join)
def test_difflib_projections(pair: tuple[str, str]) -> None:
    """C-LLM's numbers with difflib are the published ones."""
    name, system = pair
    expected = golden("cllm")[name][system]
    if "error" in expected:
        check(expected, rows(name, system), "cllm", Options("project", "difflib"))
    for key, projection in PROJECTIONS.items():
        if key in expected and projection.startswith("difflib"):
            check(expected[key], rows(name, system), "cllm", Options("project", projection))


def test_projected_probes() -> None:
    """Each probe's four projections give the published numbers."""
    for number, row in probes().items():
        expected = golden("edge")[number]["cllm"]
        for key, projection in PROJECTIONS.items():
            if expected is not None:
                check(expected[key], (row,), "cllm", Options("project", projection))


def test_cherrant_projections() -> None:
    """C-LLM's numbers with ChERRANT are the published ones unless Cilin decides a tie."""
    wrong = set()
    for name, system in pairs():
        for key, expected in golden("cllm")[name][system].items():
            if PROJECTIONS.get(key, "").startswith("cherrant"):
                options = Options("project", PROJECTIONS[key])
                values = score(rows(name, system), "cllm", "project", options=options).values
                if differing(expected, values):
                    wrong.add((name, system))
    assert len(wrong) <= CILIN_PAIRS


def test_cherrant_probes() -> None:
    """Each probe has the published edits and counts in every mode."""
    for number, row in probes().items():
        for mode, expected in golden("edge")[number]["cherrant"].items():
            ((_, reference, hypothesis),) = annotate_rows([row], mode, NO_DICTIONARIES)
            lines = [
                [line for line in m2_block("", side).split("\n") if line.startswith("A ")]
                for side in (reference, hypothesis)
            ]
            assert lines == [expected["ref_edits"], expected["hyp_edits"]], (number, mode)
            values = score([row], "cherrant", options=Options(mode=mode)).values
            assert values["tp_fp_fn"] == expected["tp_fp_fn"], (number, mode)


@pytest.mark.parametrize("mode", ["default", "first", "nosimp"])
def test_cherrant_counts(mode: str) -> None:
    """Counts and printed P, R, F at every level are ChERRANT's unless Cilin decides a tie."""
    wrong = set()
    for name, by_system in golden("cherrant")[mode].items():
        for system, expected in by_system.items():
            values = score(rows(name, system), "cherrant", options=Options(mode=mode)).values
            if differing(expected, values):
                wrong.add((name, system))
    assert len(wrong) <= CILIN_PAIRS


def blocks(name: str, system: str) -> Iterator[str]:
    with gzip.open(PARITY / "m2" / name / f"{system}.default.m2.gz", "rt", encoding="utf-8") as f:
        yield from f.read().removesuffix("\n\n").split("\n\n")


def differing_blocks(dictionaries: Dictionaries) -> tuple[int, int]:
    """Return the number of published blocks, and of those that differ from ours."""
    wrong = total = 0
    for name in sets():
        for system in ["ref", *systems(name)]:
            given = rows(name, "copy" if system == "ref" else system)
            made = annotate_rows(given, "default", dictionaries)
            for published, (source, reference, hypothesis) in zip(
                blocks(name, system), made, strict=True
            ):
                side = reference if system == "ref" else hypothesis
                total += 1
                wrong += m2_block(source, side) != published
    return total, wrong


def test_m2_blocks() -> None:
    """M2 files are ChERRANT's line by line, except blocks that only Cilin decides."""
    total, wrong = differing_blocks(NO_DICTIONARIES)
    assert total >= 13_200
    assert wrong <= CILIN_BLOCKS
