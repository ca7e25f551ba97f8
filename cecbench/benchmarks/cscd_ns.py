"""CSCD-NS: 40,000 microblog sentences with errors of native speakers' pinyin input."""

from __future__ import annotations

from cecbench.benchmarks.row import Benchmark, Copy, File

HOMEPAGE = "https://github.com/nghuyong/cscd-ns"
CITATION = (
    "Hu, Meng, Zhou: CSCD-NS: a Chinese Spelling Check Dataset for Native Speakers. ACL 2024."
)
C_LLM = "https://raw.githubusercontent.com/ktlKTL/C-LLM/7cd0d8c2207b78f2f0783ee865ea3310d0831a9f"

# split → (rows, path in the C-LLM repository, its sha256)
SPLITS = {
    "dev": (
        5000,
        "dataset/train_data/cscd_dev.json",
        "594b04a9d9259a3a10445c4f59ff4c4bc430d732664b105d2bc4b5c9aecbeb63",
    ),
    "test": (
        5000,
        "dataset/test_data/cscd.json",
        "65e82d60785a22864d82f1aa17133efa7a60356cb09474a86cf9b155bf12c314",
    ),
}


def entries() -> tuple[Benchmark, ...]:
    """Return the development and the test split.

    The official files are on a shared drive, from which a program cannot download.
    """
    return tuple(
        Benchmark(
            name=f"cscd-ns/{split}",
            title=f"CSCD-NS, {'development' if split == 'dev' else split} split",
            rows=rows,
            licence="MIT (its repository; the paper says CC-BY-NC)",
            restricted=False,
            citation=CITATION,
            homepage=HOMEPAGE,
            copies=(
                Copy((File(f"cscd-ns/{split}.tsv"),), "tsv", "official three columns"),
                Copy(
                    (File(f"cscd-ns/{split}.json", f"{C_LLM}/{path}", sha256),),
                    "json",
                    "the copy of the C-LLM repository",
                ),
            ),
            note="The official download is a shared drive, linked from the homepage.",
        )
        for split, (rows, path, sha256) in SPLITS.items()
    )
