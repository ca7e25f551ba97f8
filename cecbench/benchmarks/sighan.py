"""SIGHAN 2013, 2014 and 2015: learners' essays, in simplified characters as papers use them."""

from __future__ import annotations

from cecbench.benchmarks import lemon
from cecbench.benchmarks.row import Benchmark, Copy, File

PAIRS = (
    "https://raw.githubusercontent.com/onebula/sighan_raw/"
    "08bfbf3c7288b54162cb7a584cfe570dfff4defd/pair_data/simplified"
)
LICENCE = "academic use only (the organisers' release form)"
CITATION = {
    "13": "Wu, Liu, Lee: Chinese Spelling Check Evaluation at SIGHAN Bake-off 2013. SIGHAN-7.",
    "14": "Yu, Lee, Tseng, Chen: Overview of SIGHAN 2014 Bake-off for CSC. CLP 2014.",
    "15": "Tseng, Lee, Chang, Chen: Introduction to SIGHAN 2015 Bake-off for CSC. SIGHAN-8.",
}
LEMON_15 = File(
    "sighan_ecspell/sig.txt",
    f"{lemon.RAW}/sighan_ecspell/sig.txt",
    "b0cc8682bcd4a24c9f4c23f84354fa8e0cae5704daf6f8e5443b335ce6710e5c",
)


def _pairs(year: str) -> Copy:
    names = (f"test{year}_error.txt", f"test{year}_correct.txt")
    return Copy(
        tuple(File(f"sighan/{name}", f"{PAIRS}/{name}") for name in names),
        "parallel",
        "converted to simplified characters, with annotation errors corrected by its publisher",
    )


def _release(year: str, stem: str) -> Copy:
    return Copy(
        (File(f"sighan/{stem}Input.txt"), File(f"sighan/{stem}Truth.txt")),
        "sighan_truth",
        f"the organisers' release of 20{year}, traditional characters",
    )


def entries() -> tuple[Benchmark, ...]:
    """Return an entry for each year; for 2015, LEMON's copy is first: its digest is known."""
    copies = {
        "13": (_pairs("13"),),
        "14": (_pairs("14"), _release("14", "CLP14_CSC_Test")),
        "15": (Copy((LEMON_15,), "lemon"), _pairs("15"), _release("15", "SIGHAN15_CSC_Test")),
    }
    return tuple(
        Benchmark(
            name=f"sighan{year}",
            title=f"SIGHAN 20{year} test set",
            rows={"13": None, "14": None, "15": 1100}[year],
            licence=LICENCE,
            restricted=True,
            citation=CITATION[year],
            homepage="http://nlp.ee.ncu.edu.tw/resource/csc.html",
            copies=copies[year],
            note="Copies in circulation differ; the digest in the signature tells them apart.",
        )
        for year in copies
    )
