"""Measure recall, precision and CPU time of near-duplicates against datasketch's MinHash-LSH.

Near-copies of a tenth of the sentences of 10 characters or more are put at random places after
them, with one to three characters (but at most a tenth of them) replaced, lost or added. A found
pair is right if its Levenshtein distance is at most 3.

    python benchmarks/bench_near_duplicates.py [--pool clean.parquet] [--sentences 200000]
        [--datasketch PYTHON]

PYTHON is an interpreter that has datasketch; it needs nothing of this project. It gets the same
sentences: character bigrams, 128 permutations, threshold 0.6. Each sentence is looked up, and
inserted if none is near.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
from pathlib import Path

import polars as pl
import pyarrow as pa
from common import arguments, cpu_s, machine
from rapidfuzz.distance import Levenshtein

from cecdata.corpus.near_duplicates import NearDuplicates

LONG = 30
BATCH = 65_536
TIMES = 10
PEER = """
import sys, time
from datasketch import MinHash, MinHashLSH
texts = open(sys.argv[1], encoding="utf-8").read().split("\\n")
start = time.process_time()
index = MinHashLSH(threshold=0.6, num_perm=128)
pairs = []
for number, text in enumerate(texts):
    signs = MinHash(num_perm=128)
    signs.update_batch([text[i : i + 2].encode() for i in range(len(text) - 1)])
    near = index.query(signs)
    if near:
        pairs.append((number, near[0]))
    else:
        index.insert(number, signs)
print(time.process_time() - start)
for one, other in pairs:
    print(one, other)
"""


def planted(texts: list[str], seed: int = 3) -> tuple[list[str], set[int]]:
    """Return the texts with near-copies inserted, and the places of the copies."""
    draw = random.Random(seed)
    signs = "".join(texts[:2000])
    keyed = [(draw.random(), text, False) for text in texts]
    for place, text, _ in keyed[:]:
        if draw.random() < 0.1 and len(text) >= 10:
            letters = list(text)
            for at in draw.sample(range(len(text)), draw.randint(1, min(3, len(text) // 10))):
                one = draw.choice(signs)
                letters[at] = draw.choice(("", letters[at] + one, one, one))
            if "".join(letters) != text:
                keyed.append((draw.uniform(place, 1), "".join(letters), True))
    keyed.sort()
    return [text for _, text, _ in keyed], {n for n, (_, _, copy) in enumerate(keyed) if copy}


def report(
    name: str, texts: list[str], copies: set[int], pairs: dict[int, str], cpu: float
) -> None:
    """Print recall of the copies and precision of all pairs, for long and short sentences."""
    for what, long in (("30 characters or more", True), ("10 to 29", False)):
        own = {n for n in copies if (len(texts[n]) >= LONG) == long}
        found = {n: text for n, text in pairs.items() if (len(texts[n]) >= LONG) == long}
        right = sum(Levenshtein.distance(texts[n], text) <= 3 for n, text in found.items())
        print(
            f"{name:12} {what:22} recall {len(own & found.keys()) / max(len(own), 1):.4f}  "
            f"precision {right / max(len(found), 1):.4f}  {len(found):,} pairs"
        )
    print(f"{name:12} {cpu:.2f} CPU seconds, {1e6 * cpu / len(texts):.1f} µs a sentence")


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--sentences", type=int, default=200_000)
    parser.add_argument("--datasketch", help="Python interpreter that has datasketch")
    asked = parser.parse_args()
    print(machine())
    own = pl.read_parquet(asked.pool, columns=["text"], glob=False)["text"].unique(
        maintain_order=True
    )
    sample = own.sample(min(asked.sentences, len(own)), seed=1).to_list()
    texts, copies = planted(sample)
    print(f"{len(texts):,} sentences, {len(copies):,} of them near-copies")
    NearDuplicates().first(pa.array(["compiled before it is timed"]))
    column, seen, pairs = pa.array(texts), NearDuplicates(), dict[int, str]()

    def look() -> None:
        for start in range(0, len(texts), BATCH):
            near, _ = seen.first(column.slice(start, BATCH))
            rows = (near >= 0).nonzero()[0].tolist()
            pairs.update((start + row, seen.text(int(near[row]))) for row in rows)

    ours = cpu_s(look)
    report("cecdata", texts, copies, pairs, ours)
    if asked.datasketch:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "texts").write_text("\n".join(texts), "utf-8")
            command = [asked.datasketch, "-c", PEER, str(Path(folder) / "texts")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        first, *lines = done.stdout.splitlines()
        theirs = {int(a): texts[int(b)] for a, b in map(str.split, lines)}
        report("datasketch", texts, copies, theirs, float(first))
        times = float(first) / ours
        print(f"{times:.0f} times the CPU of cecdata, goal ≥ {TIMES}")


if __name__ == "__main__":
    main()
