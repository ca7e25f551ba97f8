"""Measure the corrector end to end: sentences per CPU-second on one core.

    python benchmarks/bench_channel.py [--model combined] [--lm TABLE] [--file SENTENCES]

The sentences are random ones of the pool, of lengths around the means of LEMON and CSCD-NS dev, or
the lines of a file. The script times `Corrector.correct` on blocks of 256 sentences, as
`cectrain correct` and `cecbench run --system channel` call it.
"""

from __future__ import annotations

from pathlib import Path

from common import arguments, cpu_s, judged, machine, sentences

from cectrain.corrector.corrector import Corrector

LENGTHS = {"LEMON": 40.0, "CSCD-NS": 56.6}  # mean characters of a sentence
GOAL = {"channel": 1000, "combined": 120}  # sentences a CPU-second
TOGETHER = 256
ROUNDS = 3


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--model", choices=GOAL, default="channel", help="  [channel]")
    parser.add_argument("--lm", default="words", help="n-gram model  [words: the shipped one]")
    parser.add_argument("--file", type=Path, help="sentences to correct, one a line")
    parser.add_argument("--count", type=int, default=2000, help="sentences  [2000]")
    asked = parser.parse_args()
    print(machine())
    corrector = Corrector(asked.model, lm=asked.lm)
    print(f"opening {asked.model}: {cpu_s(lambda: corrector.correct('我们')):.2f} s")
    if asked.file:
        pools = {asked.file.name: asked.file.read_text("utf-8").splitlines()}
    else:
        drawn = sentences(asked.pool, 20 * asked.count)["text"].to_pylist()
        pools = {
            name: [text for text in drawn if abs(len(text) - mean) < mean / 2][: asked.count]
            for name, mean in LENGTHS.items()
        }
    for name, texts in pools.items():

        def work(texts: list[str] = texts) -> None:
            for first in range(0, len(texts), TOGETHER):
                corrector.correct(texts[first : first + TOGETHER])

        seconds = sorted(cpu_s(work) for _ in range(ROUNDS))[ROUNDS // 2]
        mean = sum(map(len, texts)) / len(texts)
        what = f"{name}, {mean:.1f} characters: sentences/s"
        print(judged(what, len(texts) / seconds, GOAL[asked.model]))


if __name__ == "__main__":
    main()
