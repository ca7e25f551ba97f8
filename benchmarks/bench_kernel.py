"""Measure pairs per CPU-second of the kernel, of the same algorithm in C, and of the listing.

All run on one thread and take turns in every round of one process; the figures are medians. The
tables of the paper's listing are cut to 6,000 characters, and the kernel and C read the same cut
tables. The script first checks that C writes the same bytes. C has no operators that rewrite spans;
the paper's recipe has none either. Not counted: compiling the kernels and the tables.

    python benchmarks/bench_kernel.py [--pool clean.parquet] [--rounds 15]
"""

from __future__ import annotations

import ctypes
import statistics
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from common import SHORT, arguments, interleaved, judged, machine, ratio, recipe, sentences
from listing import Listing
from listing import Table as ListingTable
from listing import tables as listing_tables

from cecdata.common.kernels import view_string_buffers
from cecdata.config import Config
from cecdata.hanzi.characters import standard_characters
from cecdata.operators import OPERATORS, Operator
from cecdata.perturbation import kernel
from cecdata.perturbation.engine import Histogram, Perturber, make_scratch, view_sentences
from cecdata.perturbation.kernel.layout import Draws, Output, Scratch
from cecdata.perturbation.tables import Compiled, compile_recipe, compile_tables

SENTENCES = 65_536  # in a chunk
LISTED = 250  # sentences a round for the listing, which takes about a millisecond each
GOAL_LISTING, GOAL_C = 1_500, 0.7


def told(output: Output, edits: int) -> list[bytes]:
    """Return the bytes that were written to each array, without its unused scratch."""
    ends = (None, int(output.offsets[-1]), None, None, None, *(edits,) * 6)
    return [array[:end].tobytes() for array, end in zip(output, ends, strict=True)]


@dataclass(frozen=True, slots=True)
class Work:
    """The input of one call."""

    config: Config
    tables: Compiled
    batch: pa.RecordBatch
    draws: Draws
    scratch: Scratch
    output: Output

    @classmethod
    def of(cls, config: Config, batch: pa.RecordBatch, tables: Compiled | None = None) -> Work:
        tables = tables or compile_recipe(config)
        histogram = Histogram(config, tables)
        histogram.add(batch.column("text"))
        perturber = Perturber(config, histogram.rates(), tables)
        config = replace(config, protect_spans=False)
        output = perturber.make_output(view_sentences(batch, config))
        for array in output:
            array.fill(0)
        return cls(config, tables, batch, perturber.draws, make_scratch(config, tables), output)

    def numba(self) -> int:
        given = view_sentences(self.batch, self.config)
        return int(kernel.perturb(given, self.draws, self.tables.arrays, self.scratch, self.output))

    def c(self, library: ctypes.CDLL) -> int:
        data, offsets = view_string_buffers(self.batch.column("text"))
        c, arrays = self.config, self.tables.arrays
        slots, operators = len(arrays.eligible), len(arrays.inserts)
        read = (
            arrays.code_points, arrays.eligible, arrays.rows, arrays.candidates,
            arrays.inserts, arrays.cost, arrays.texts,
        )  # fmt: skip
        tables = (ctypes.c_uint64 * 9)(*(a.ctypes.data for a in read), slots, operators)
        output = (ctypes.c_uint64 * 11)(*(a.ctypes.data for a in self.output))
        ids, counts = np.asarray(self.batch.column("id")), self.draws.count_cdf
        integer, real = ctypes.c_int64, ctypes.c_double
        return int(library.perturb(
            _at(offsets), integer(len(offsets) - 1), _at(data), integer(len(data)), _at(ids),
            ctypes.c_uint64(c.seed), integer(c.copies), tables, _at(self.draws.priors),
            _at(counts), integer(counts.shape[1]), integer(counts.shape[2]),
            real(self.draws.mixed), real(self.draws.unchanged), integer(c.max_chars), output,
        ))  # fmt: skip


def _at(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def compile_c(folder: Path) -> ctypes.CDLL:
    """Compile kernel.c with the system's compiler and load it."""
    made = folder / "kernel.so"
    source = Path(__file__).with_name("kernel.c")
    subprocess.run(
        ["cc", "-O3", "-march=native", "-shared", "-fPIC", source, "-o", made], check=True
    )
    library = ctypes.CDLL(str(made))
    library.perturb.restype = ctypes.c_int64
    return library


def cut_tables(sets: dict[str, ListingTable]) -> Compiled:
    """Return the kernel's tables, cut to the characters of the listing's."""
    used = [name for name in OPERATORS if recipe().prior.get(name, 0.0) > 0]
    operators = [_cut(OPERATORS[name], sets.get(name)) for name in used]
    return compile_tables(operators, standard_characters())


def _cut(operator: Operator, table: ListingTable | None) -> Operator:
    if table is None:  # split and noise: the listing has no table for them
        return operator
    return replace(
        operator, confusions=lambda c: operator.confusions(c) if c in table else iter(())
    )


def check_equal(work: Work, library: ctypes.CDLL) -> None:
    """Assert that C and the kernel write the same bytes, mixed and unchanged pairs included."""
    for mixed, unchanged in ((0.0, 0.0), (0.5, 0.1)):
        one = replace(work, draws=work.draws._replace(mixed=mixed, unchanged=unchanged))
        wanted = told(one.output, one.numba())
        for array in one.output:
            array.fill(0)
        assert wanted == told(one.output, one.c(library)), "kernel.c wrote something else"


def compare(title: str, work: Work, listing: Listing, library: ctypes.CDLL, rounds: int) -> None:
    """Print one table: pairs per CPU-second, and the ratios with their goals."""
    texts = work.batch.column("text").to_pylist()
    copies, turn = work.config.copies, iter(range(rounds))

    def listed() -> None:
        start = next(turn) * LISTED
        for text in texts[start : start + LISTED]:
            listing.perturb(text, copies)

    check_equal(work, library)
    seconds = interleaved(
        {"kernel": work.numba, "C": lambda: work.c(library), "listing": listed}, rounds
    )
    pairs = {"kernel": len(texts), "C": len(texts), "listing": LISTED}
    by_pair = {n: [s / (pairs[n] * copies) for s in seconds[n]] for n in seconds}
    print(f"\n{title}: mean length {sum(map(len, texts)) / len(texts):.1f}; outputs equal")
    for name, values in by_pair.items():
        print(f"  {name:10}{1 / statistics.median(values):16,.0f} pairs per CPU-second")
    print(judged("  kernel / listing", ratio(by_pair["listing"], by_pair["kernel"]), GOAL_LISTING))
    print(judged("  kernel / C", ratio(by_pair["C"], by_pair["kernel"]), GOAL_C))


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    sets = listing_tables()
    cut, listing = cut_tables(sets), Listing(sets)
    print(f"{machine()}; one thread; medians of {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        library = compile_c(Path(folder))
        for title, mean in (("The pool", None), ("Its short sentences", SHORT)):
            batch = sentences(options.pool, SENTENCES, mean)
            compare(title, Work.of(recipe(), batch, cut), listing, library, options.rounds)
            whole = Work.of(recipe(), batch)
            check_equal(whole, library)
            seconds = interleaved({"kernel": whole.numba}, options.rounds)["kernel"]
            speed = len(batch) * whole.config.copies / statistics.median(seconds)
            print(f"  with uncut tables{speed:19,.0f} pairs per CPU-second, kernel")


if __name__ == "__main__":
    main()
