"""Readers of n-gram models, tensors, users' lists, and the texts of benchmarks."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import fuzz_corpus
import numpy as np
from fuzz_case import PAGE, Reader
from fuzz_mutate import Mutator
from safetensors.numpy import save_file

from cecdata.contamination.benchmarks import read_row_texts
from cecdata.lm import ngrams
from cectrain.corrector.numpy_policy import read_tensors
from cectrain.corrector.wordlists import read_dictionary, read_names, read_terms

MODEL = """\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1.0\t<unk>\t-0.3
-99\t<s>\t-0.5
-0.7\t病情\t-0.2
-0.9\t好转

\\2-grams:
-0.3\t<s> 病情\t-0.1
-0.4\t病情 好转

\\end\\
"""


def readers() -> tuple[Reader, ...]:
    """One a kind of file."""
    lists = Mutator(lambda: (b"", "病情\t0.5\t注\n# 注\n\n出院\n".encode()), "lines")
    pairs = Mutator(lambda: ("己经\t已经\n# 注\n在见\t再见\r\n".encode(),), "lines")
    table = Mutator(fuzz_corpus._parquet, "binary")
    packed, held, tensors = (
        Mutator(lambda name=name: _saved(name), "binary") for name in ("gz", "ngram", "tensors")
    )
    return (
        Reader("arpa", "a.arpa", _words, Mutator(lambda: (MODEL.encode(),), "lines")),
        Reader("arpa-gz", "a.arpa.gz", _words, packed),
        Reader("ngrams", "a.ngram", _words, held),
        Reader("tensors", "a.tensors", lambda p: map(str, read_tensors(p).values()), tensors),
        Reader("terms", "a.txt", lambda p: map(str, read_terms([p])), lists),
        Reader("protected", "a.txt", read_names, lists),
        Reader("dictionary", "a.txt", lambda p: read_dictionary([p]), pairs, names_file=False),
        Reader("benchmark-texts", "a.parquet", _texts, table, memory=PAGE),
    )  # fmt: skip


def _words(path: Path) -> tuple[str, ...]:
    return ngrams.read(path).words


def _texts(path: Path) -> None:
    for text, rows, _ in read_row_texts(str(path)):
        text.validate()
        assert len(rows) == len(text)


def _saved(name: str) -> tuple[bytes, ...]:
    """Return the bytes of a file of this kind."""
    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder, name), Path(folder, "a.arpa")
        plain.write_text(MODEL, "utf-8")
        if name == "gz":
            path.write_bytes(gzip.compress(MODEL.encode(), mtime=0))
        elif name == "ngram":
            ngrams.read(plain).save(path)
        else:
            save_file({"x": np.arange(6, dtype=np.float32)}, path, {"facts": "{}"})
        return (path.read_bytes(),)
