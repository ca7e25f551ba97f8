"""Measure what becomes of addresses and code among errors: edits inside them, and errors beside.

    python benchmarks/bench_not_prose.py [--pool CLEAN.parquet] [--model combined] [--count 20000]

Errors of the recipe `typed` are planted into held-out sentences. Each sentence is corrected as
it is, and with one or two addresses or pieces of code, which hold wrong words themselves, after its
clauses. An edit inside these is a fault; an error that is corrected in the sentence alone must be
corrected beside them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from bench_clean import drawn
from common import arguments, cpu_s, machine

import cecdata
from cectrain.corrector.correction import Correction
from cectrain.corrector.corrector import Corrector

#: with {} for wrong words
SPANS = (
    *("https://example.org/{}/a", "https://例{}.中国/?名={}", "www.{}.com", "{}@example.com"),
    *("/home/用户/{}", "./图片/{}.png", "D:\\文档\\{}\\a.docx", "{}.xlsx", "[见图](docs/{}.md)"),
    *("![]({}/图.png)", "`{}`", "${{}}", "{{{}}}", "%({})s", "\\ref{{}}", "\\cite{{}}"),
    *('<img src="{}.png">', '<a title="{}">', "[[{}|图]]", "--名={}"),
)
GOAL = 0.99


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--model", default="combined")
    parser.add_argument("--count", type=int, default=20_000, help="sentences  [20000]")
    asked = parser.parse_args()
    print(machine())
    texts = drawn(asked.pool, asked.count)["text"].to_list()
    filters = ("levenshtein",)
    pairs = cecdata.build(texts=texts, recipe="typed", copies=1, filters=filters)
    sources = [source for source in pairs["source"].to_list() if source]
    mixed = [mixture(source, sources, number) for number, source in enumerate(sources)]
    corrector = Corrector(asked.model)
    corrector.correct("我们")  # loads the models
    seconds, corrections = [], []
    for those in (sources, [text for text, _ in mixed]):
        made: list[Correction] = []
        seconds.append(cpu_s(lambda those=those, made=made: made.extend(corrector.stream(those))))
        corrections.append(made)
    alone, beside = corrections
    inside = wanted = found = gained = 0
    for plain, one, (_, places) in zip(alone, beside, mixed, strict=True):
        edits = set()
        for edit in one.edits:
            inside += any(start < edit.end and edit.start < end for start, end in places)
            before = sum(end - start for start, end in places if end <= edit.start)
            edits.add((edit.start - before, edit.target))
        wanted += len(plain.edits)
        gained += len(edits) - len(plain.edits)
        found += sum((edit.start, edit.target) in edits for edit in plain.edits)
    print(
        f"{len(mixed)} lines, {seconds[0]:.1f} CPU s alone, {seconds[1]:.1f} with addresses, code"
    )
    print(f"edits inside addresses and code: {inside} (goal: 0)")
    print(
        f"of {wanted} edits without these, also made beside them: {found / wanted:.2%} ({GOAL:.0%})"
    )


def mixture(source: str, others: Sequence[str], seed: int) -> tuple[str, list[tuple[int, int]]]:
    """Return a sentence with one or two spans after its clauses, and where these are."""
    generator = np.random.default_rng(seed)
    ends = [match.end() for match in re.finditer("[，。；：！？]", source)] or [len(source)]
    chosen = generator.choice(ends, size=min(len(ends), 1 + seed % 2), replace=False)
    text, places, done = "", [], 0
    for end in sorted(chosen.tolist()):
        wrong = re.findall("[一-龥]{2,4}", str(others[int(generator.integers(len(others)))]))
        span = SPANS[int(generator.integers(len(SPANS)))].replace("{{", "\0").replace("}}", "\1")
        span = (
            span.replace("{}", wrong[0] if wrong else "己经").replace("\0", "{").replace("\1", "}")
        )
        text += source[done:end] + " "
        places.append((len(text) - 1, len(text) + len(span) + 1))
        text += span + " "
        done = end
    return text + source[done:], places


if __name__ == "__main__":
    main()
