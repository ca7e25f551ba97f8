"""MCSCSet: medical questions whose errors were annotated by specialists."""

from __future__ import annotations

from cecbench.benchmarks.row import Benchmark, Copy, File

RAW = (
    "https://raw.githubusercontent.com/yzhihao/MCSCSet/"
    "4754ccf88ef03e33b2d65c75a23a70756f6d66f6/data/mcsc_benchmark_dataset"
)


def entries() -> tuple[Benchmark, ...]:
    """Return the test split."""
    return (
        Benchmark(
            name="mcsc",
            title="MCSCSet, test split",
            rows=19650,
            licence="CC BY-NC 2.0",
            restricted=True,
            citation=(
                "Jiang et al.: MCSCSet: A Specialist-annotated Dataset for Medical-domain Chinese "
                "Spelling Correction. CIKM 2022."
            ),
            homepage="https://github.com/yzhihao/MCSCSet",
            copies=(Copy((File("mcsc/test.txt", f"{RAW}/test.txt"),), "tsv"),),
        ),
    )
