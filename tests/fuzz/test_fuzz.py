"""Every reader under thousands of odd inputs, and under each that ever got past one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import fuzz_bench
import fuzz_corpus
import fuzz_models
import fuzz_state
import pytest
from fuzz_case import CORPUS, LeakError, check, keep, past
from fuzz_mutate import LONGEST

MODULES = (fuzz_corpus, fuzz_models, fuzz_state, fuzz_bench)
READERS = {reader.name: reader for module in MODULES for reader in module.readers()}
CASES = int(os.environ.get("CEC_FUZZ_CASES", "0"))
SEED = os.environ.get("CEC_FUZZ_SEED", "1")


@pytest.fixture
def room(monkeypatch):
    """A fresh folder for the file of a case, in memory where there is one: 100,000 are written."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    monkeypatch.setattr(tempfile, "tempdir", memory)  # also for what a reader keeps beside it
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", READERS)
def test_what_once_failed_does_not_again(name, room):
    """Each kept case ends in a result or in a declared error that names the file."""
    reader = READERS[name]
    for data in past(reader):
        check(reader, data, room / reader.file)


@pytest.mark.parametrize("part", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_no_bytes_get_past_a_reader(name, part, room):
    """Mutated seeds end in a result or in a declared error that names the file."""
    reader = READERS[name]
    outcomes = {
        check(reader, reader.mutator.case(f"{name}:suite", number), room / reader.file)
        for number in range(reader.suite // part)
    }
    assert len(outcomes) > 1 or not reader.names_file, "all cases ended alike: nothing is tested"


@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason="CEC_FUZZ_CASES is not set: it says how many cases are drawn")
@pytest.mark.parametrize("name", READERS)
def test_a_long_run(name, room):
    """So many cases of $CEC_FUZZ_SEED; what fails is kept, and the suite replays it.

    Where foreign code ends the process, the case is the file that is left in /dev/shm.
    """
    reader, told = READERS[name], []
    for number in range(CASES):
        data = reader.mutator.case(f"{name}:{SEED}", number)
        try:
            check(reader, data, room / reader.file)
        except LeakError as error:
            keep(reader, data)
            told.append(f"case {number}: {error}")
    assert told == []


@pytest.mark.parametrize("name", READERS)
def test_a_seed_is_read(name, room):
    """At least one seed of each reader is sound as it is: the cases start behind the front door."""
    reader = READERS[name]
    outcomes = [check(reader, seed, room / reader.file) for seed in reader.mutator.seeds]
    assert not all(outcome.endswith("Error") for outcome in outcomes)


def test_a_case_is_its_number(room):
    """The same reader, run and number give the same bytes; other numbers give others."""
    mutator = READERS["bench-m2"].mutator
    cases = [mutator.case("a:1", n) for n in range(200)]
    assert cases == [mutator.case("a:1", n) for n in range(200)]
    assert cases != [mutator.case("a:2", n) for n in range(200)]
    assert len(set(cases)) > 150
    assert max(map(len, cases)) <= LONGEST


def test_every_format_is_in_the_table():
    """A format that either package reads, and every reader with kept cases, is fuzzed."""
    from cecbench.benchmarks.readers import READERS as BENCH
    from cecdata.corpus.formats import FORMATS
    from cecdata.corpus.sources import COMPRESSIONS

    usual = [form.suffixes[0] for form in FORMATS.values() if form.suffixes]
    wanted = {f"corpus-{suffix[1:]}" for suffix in (*usual, *COMPRESSIONS)}
    wanted |= {f"bench-{name.removesuffix('_truth')}" for name in BENCH}
    assert wanted <= READERS.keys()
    assert {path.name for path in CORPUS.iterdir()} <= READERS.keys()
