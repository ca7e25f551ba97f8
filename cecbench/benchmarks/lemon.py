"""LEMON: natural errors of seven domains, for research only; this package contains none of it."""

from __future__ import annotations

from cecbench.benchmarks.row import Benchmark, Copy, File

COMMIT = "5279eb90322806ea821cf922ad96a74b1fe761cf"
RAW = f"https://raw.githubusercontent.com/gingasan/lemon/{COMMIT}"
HOMEPAGE = "https://github.com/gingasan/lemon"
LICENCE = "academic research only (README of the repository)"
CITATION = (
    "Wu, Zhang, Zhang, Zhao: Rethinking Masked Language Modeling for Chinese Spelling "
    "Correction. ACL 2023."
)

# domain → (title, rows, sha256 of the published file)
DOMAINS = {
    "car": (
        "cars",
        3410,
        "9b7066f968463a837ca09bf477b0d88c21fb4a1df6167a8fbbaf274f784b5934",
    ),
    "cot": (
        "contracts",
        1026,
        "a3532f4d805a382c02bfbed48cc64856d0eba74337faffd9a0606b13f5d02f39",
    ),
    "enc": (
        "encyclopedia",
        3434,
        "afec05da2d4fb30aaafcf6864a22fbcf156e2b29ddd13c8ce21ed44973b84e60",
    ),
    "gam": (
        "games",
        400,
        "7e902c67cb6f5a26862279a2ebc80824fed766432031126088ca9653530facb0",
    ),
    "mec": (
        "medical care",
        2090,
        "06e9b920ce117590ecf57735702eada2cc4cc55513ce053f2f22aa8dd137a5fa",
    ),
    "new": (
        "news",
        5892,
        "bdd4278180c33e5bc3c5f9f5a5feee34f5b49a4c325595dbb3400719760f6f8c",
    ),
    "nov": (
        "novels",
        6000,
        "26f5c0679893efd99b7ea4e6c9b0e591d4f01046138b558a28e8745c5b377bf3",
    ),
}


def entries() -> tuple[Benchmark, ...]:
    """Return an entry for each domain, in the paper's order."""
    return tuple(
        Benchmark(
            name=f"lemon/{domain}",
            title=f"LEMON, {title}",
            rows=rows,
            licence=LICENCE,
            restricted=True,
            citation=CITATION,
            homepage=HOMEPAGE,
            copies=(
                Copy(
                    (File(f"lemon_v2/{domain}.txt", f"{RAW}/lemon_v2/{domain}.txt", sha256),),
                    "lemon",
                    "version 2",
                ),
            ),
        )
        for domain, (title, rows, sha256) in DOMAINS.items()
    )
