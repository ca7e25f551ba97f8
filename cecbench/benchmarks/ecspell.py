"""ECSpell: law, medical treatment and official documents; training and test rows in one file."""

from __future__ import annotations

from cecbench.benchmarks import lemon
from cecbench.benchmarks.row import Benchmark, Copy, File

CITATION = (
    "Lv, Cao, Geng, Ai, Yan, Fu: General and Domain-adaptive Chinese Spelling Check with "
    "Error-consistent Pretraining. TALLIP 2023."
)

# domain → (title, rows, sha256 of LEMON's copy)
DOMAINS = {
    "law": ("law", 2460, "aeae1537127cb98d5edf04d78b5542190c97b4c172d2b6321f7baec500dabb03"),
    "med": (
        "medical treatment",
        3500,
        "a0c13f30a79812d46e4dcb5e9055988a26c142581bf3075050e705f143b2877e",
    ),
    "odw": (
        "official documents",
        2228,
        "fc11f1d019bd7d9b0a7d9f08a172a4f872d9f0d30da792ce6e60a5f302352848",
    ),
}


def entries() -> tuple[Benchmark, ...]:
    """Return an entry for each domain, read from the copy in LEMON's repository."""
    return tuple(
        Benchmark(
            name=f"ecspell/{domain}",
            title=f"ECSpell, {title}",
            rows=rows,
            licence=lemon.LICENCE,
            restricted=True,
            citation=CITATION,
            homepage="https://github.com/Aopolin-Lv/ECSpell",
            copies=(
                Copy(
                    (
                        File(
                            f"sighan_ecspell/ec_{domain}.txt",
                            f"{lemon.RAW}/sighan_ecspell/ec_{domain}.txt",
                            sha256,
                        ),
                    ),
                    "lemon",
                    "the copy of the LEMON repository",
                ),
            ),
            note="All rows of that file are scored; published scores often use the last 500 only.",
        )
        for domain, (title, rows, sha256) in DOMAINS.items()
    )
