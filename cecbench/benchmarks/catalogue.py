"""The published benchmarks: files, digests, licences, citations; this package contains none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cecdata.common.errors import UsageError, did_you_mean
from cecdata.common.redact import without_userinfo

#: suffix of a user's own file → name of its reader in `readers.READERS`
READER_OF_SUFFIX = {
    ".tsv": "table",
    ".csv": "table",
    ".txt": "table",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".m2": "m2",
}


@dataclass(frozen=True, slots=True)
class File:
    """A published file: its path below a data folder, its URL and its digest.

    sha256: None where none is published. The digest of the first download is then recorded in the
    cache, so that a later change is noticed.
    """

    path: str
    url: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A published form of a benchmark: its files, and the name of their reader in READERS."""

    files: tuple[File, ...]
    reader: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """An entry of the catalogue; of `releases` the first one whose files exist is read."""

    name: str
    title: str
    rows: int | None  # as published; None where that is not stated
    licence: str
    restricted: bool  # the licence must be accepted before a download
    citation: str
    homepage: str
    releases: tuple[Release, ...]
    note: str = ""


@cache
def benchmarks() -> dict[str, Benchmark]:
    """Return all benchmarks by name: those of the paper's table in its order, then the others."""
    families = (_lemon, _cscd_ns, _cs, _sighan, _ecspell, _mcsc)
    return {entry.name: entry for family in families for entry in family()}


def lookup(name: str) -> Benchmark:
    """Return the entry of a name; raise UsageError with the nearest name if there is none."""
    known = benchmarks()
    if name not in known:
        raise UsageError(
            f"no benchmark and no file is called {without_userinfo(name)!r}: "
            f"{did_you_mean(name, list(known))}; a file of your own may end in "
            f"{', '.join(READER_OF_SUFFIX)}"
        )
    return known[name]


_LEMON_COMMIT = "5279eb90322806ea821cf922ad96a74b1fe761cf"
_LEMON = f"https://raw.githubusercontent.com/gingasan/lemon/{_LEMON_COMMIT}"
_LEMON_HOMEPAGE = "https://github.com/gingasan/lemon"
_LEMON_LICENCE = "academic research only (README of the repository)"
_LEMON_CITATION = (
    "Wu, Zhang, Zhang, Zhao: Rethinking Masked Language Modeling for Chinese Spelling "
    "Correction. ACL 2023."
)

# domain → (title, rows, sha256 of the published file)
_LEMON_DOMAINS = {
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


def _lemon() -> tuple[Benchmark, ...]:
    """Return an entry for each domain, in the paper's order."""
    return tuple(
        Benchmark(
            name=f"lemon/{domain}",
            title=f"LEMON, {title}",
            rows=rows,
            licence=_LEMON_LICENCE,
            restricted=True,
            citation=_LEMON_CITATION,
            homepage=_LEMON_HOMEPAGE,
            releases=(
                Release(
                    (File(f"lemon_v2/{domain}.txt", f"{_LEMON}/lemon_v2/{domain}.txt", sha256),),
                    "lemon",
                    "version 2",
                ),
            ),
        )
        for domain, (title, rows, sha256) in _LEMON_DOMAINS.items()
    )


_CSCD_HOMEPAGE = "https://github.com/nghuyong/cscd-ns"
_CSCD_CITATION = (
    "Hu, Meng, Zhou: CSCD-NS: a Chinese Spelling Check Dataset for Native Speakers. ACL 2024."
)
_C_LLM = "https://raw.githubusercontent.com/ktlKTL/C-LLM/7cd0d8c2207b78f2f0783ee865ea3310d0831a9f"

# split → (rows, path in the C-LLM repository, its sha256)
_CSCD_SPLITS = {
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


def _cscd_ns() -> tuple[Benchmark, ...]:
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
            citation=_CSCD_CITATION,
            homepage=_CSCD_HOMEPAGE,
            releases=(
                Release((File(f"cscd-ns/{split}.tsv"),), "table", "official three columns"),
                Release(
                    (File(f"cscd-ns/{split}.json", f"{_C_LLM}/{path}", sha256),),
                    "json",
                    "the copy of the C-LLM repository",
                ),
            ),
            note="The official download is a shared drive, linked from the homepage.",
        )
        for split, (rows, path, sha256) in _CSCD_SPLITS.items()
    )


def _cs() -> tuple[Benchmark, ...]:
    """Return the one entry; docs/reference/cs-format.md describes the file and its card."""
    return (
        Benchmark(
            name="cs",
            title="customer service (your own set in the documented form)",
            rows=None,
            licence="proprietary (the paper's set is not published)",
            restricted=False,
            citation="CEC-Zero, arXiv 2512.23971, appendix: dataset card of the CS corpus.",
            homepage="docs/reference/cs-format.md",
            releases=(
                Release((File("cs/test.jsonl"),), "json"),
                Release((File("cs/test.tsv"),), "table"),
            ),
            note="The paper's set has 2,100 sentences; a file of your own is another set.",
        ),
    )


_SIGHAN_PAIRS = (
    "https://raw.githubusercontent.com/onebula/sighan_raw/"
    "08bfbf3c7288b54162cb7a584cfe570dfff4defd/pair_data/simplified"
)
_SIGHAN_LICENCE = "academic use only (the organisers' release form)"
_SIGHAN_CITATION = {
    "13": "Wu, Liu, Lee: Chinese Spelling Check Evaluation at SIGHAN Bake-off 2013. SIGHAN-7.",
    "14": "Yu, Lee, Tseng, Chen: Overview of SIGHAN 2014 Bake-off for CSC. CLP 2014.",
    "15": "Tseng, Lee, Chang, Chen: Introduction to SIGHAN 2015 Bake-off for CSC. SIGHAN-8.",
}
_LEMON_15 = File(
    "sighan_ecspell/sig.txt",
    f"{_LEMON}/sighan_ecspell/sig.txt",
    "b0cc8682bcd4a24c9f4c23f84354fa8e0cae5704daf6f8e5443b335ce6710e5c",
)


def _sighan_pairs(year: str) -> Release:
    names = (f"test{year}_error.txt", f"test{year}_correct.txt")
    return Release(
        tuple(File(f"sighan/{name}", f"{_SIGHAN_PAIRS}/{name}") for name in names),
        "parallel",
        "converted to simplified characters, with annotation errors corrected by its publisher",
    )


def _sighan_release(year: str, stem: str) -> Release:
    return Release(
        (File(f"sighan/{stem}Input.txt"), File(f"sighan/{stem}Truth.txt")),
        "sighan_truth",
        f"the organisers' release of 20{year}, traditional characters",
    )


def _sighan() -> tuple[Benchmark, ...]:
    """Return an entry for each year; for 2015, LEMON's copy is first: its digest is known."""
    releases = {
        "13": (_sighan_pairs("13"),),
        "14": (_sighan_pairs("14"), _sighan_release("14", "CLP14_CSC_Test")),
        "15": (
            Release((_LEMON_15,), "lemon"),
            _sighan_pairs("15"),
            _sighan_release("15", "SIGHAN15_CSC_Test"),
        ),
    }
    return tuple(
        Benchmark(
            name=f"sighan{year}",
            title=f"SIGHAN 20{year} test set",
            rows={"13": None, "14": None, "15": 1100}[year],
            licence=_SIGHAN_LICENCE,
            restricted=True,
            citation=_SIGHAN_CITATION[year],
            homepage="http://nlp.ee.ncu.edu.tw/resource/csc.html",
            releases=releases[year],
            note="Copies in circulation differ; the digest in the signature tells them apart.",
        )
        for year in releases
    )


_ECSPELL_CITATION = (
    "Lv, Cao, Geng, Ai, Yan, Fu: General and Domain-adaptive Chinese Spelling Check with "
    "Error-consistent Pretraining. TALLIP 2023."
)

# domain → (title, rows, sha256 of LEMON's copy)
_ECSPELL_DOMAINS = {
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


def _ecspell() -> tuple[Benchmark, ...]:
    """Return an entry for each domain, read from the copy in LEMON's repository."""
    return tuple(
        Benchmark(
            name=f"ecspell/{domain}",
            title=f"ECSpell, {title}",
            rows=rows,
            licence=_LEMON_LICENCE,
            restricted=True,
            citation=_ECSPELL_CITATION,
            homepage="https://github.com/Aopolin-Lv/ECSpell",
            releases=(
                Release(
                    (
                        File(
                            f"sighan_ecspell/ec_{domain}.txt",
                            f"{_LEMON}/sighan_ecspell/ec_{domain}.txt",
                            sha256,
                        ),
                    ),
                    "lemon",
                    "the copy of the LEMON repository",
                ),
            ),
            note="All rows of that file are scored; published scores often use the last 500 only.",
        )
        for domain, (title, rows, sha256) in _ECSPELL_DOMAINS.items()
    )


_MCSC = (
    "https://raw.githubusercontent.com/yzhihao/MCSCSet/"
    "4754ccf88ef03e33b2d65c75a23a70756f6d66f6/data/mcsc_benchmark_dataset"
)


def _mcsc() -> tuple[Benchmark, ...]:
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
            releases=(Release((File("mcsc/test.txt", f"{_MCSC}/test.txt"),), "table"),),
        ),
    )
