"""Rows as the text formats of other tools: each function yields a piece for each row, and an end.

`sharegpt`, `alpaca`, `prompt-completion` and `openrlhf` have an instruction before the sentence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from cecdata.common.codec import Json

Row = Mapping[str, Json]
INSTRUCTION = "请改正下面句子里的错别字，其余文字照原样保留，只输出改正后的句子。"


@dataclass(frozen=True, slots=True)
class SourceEdit:
    """An edit seen from the source: source[start:end] (code points) must become `target`."""

    start: int
    end: int
    target: str


def source_edits(row: Row) -> list[SourceEdit]:
    """Return a row's edits with their places in the source.

    >>> source_edits({"edits": [{"start": 0, "end": 1, "source": "言吴", "target": "误"}]})
    [SourceEdit(start=0, end=2, target='误')]
    """
    made: list[SourceEdit] = []
    shift = 0
    edits = row["edits"]
    assert isinstance(edits, list)
    for edit in edits:
        assert isinstance(edit, dict)
        start, end, source = edit["start"], edit["end"], edit["source"]
        assert isinstance(start, int)
        assert isinstance(end, int)
        assert isinstance(source, str)
        begin = start + shift
        made.append(SourceEdit(begin, begin + len(source), str(edit["target"])))
        shift += len(source) - (end - start)
    return made


def _jsonl(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield _json(row) + "\n"
    yield ""


def _tsv(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield "\t".join(_sides(row)) + "\n"
    yield ""


def _cscd(rows: Iterable[Row]) -> Iterator[str]:
    """Yield lines of CSCD-NS: 1 if the source has an error, else 0; the source; the target."""
    for row in rows:
        source, target = _sides(row)
        yield f"{int(source != target)}\t{source}\t{target}\n"
    yield ""


def _m2(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the blocks of the M2 scorer; every character is a token."""
    for row in rows:
        yield f"S {_spaced(row['source'])}\n" + _annotations(row) + "\n"
    yield ""


def _cherrant(rows: Iterable[Row]) -> Iterator[str]:
    """Yield M2 as ChERRANT writes it: the corrected sentence precedes its edits."""
    for row in rows:
        corrected = f"T0-A0 {_spaced(row['target'])}\n"
        yield f"S {_spaced(row['source'])}\n{corrected}{_annotations(row)}\n"
    yield ""


def _annotations(row: Row) -> str:
    """Return the lines `A start end|||type|||text|||REQUIRED|||-NONE-|||0` of a row.

    The types are ChERRANT's: S for other characters, M for missing ones, R for redundant ones.
    """
    lines = [
        _annotation(f"{e.start} {e.end}", _type(e), " ".join(e.target) or "-NONE-")
        for e in _token_edits(row)
    ]
    return "".join(lines) or _annotation("-1 -1", "noop", "-NONE-")


def _token_edits(row: Row) -> list[SourceEdit]:
    """Return a row's edits as edits of tokens, which are the characters but white space.

    >>> _token_edits({"source": "a b己", "edits": [
    ...     {"start": 1, "end": 1, "source": " ", "target": ""},
    ...     {"start": 2, "end": 3, "source": "己", "target": " 已"},
    ... ]})
    [SourceEdit(start=2, end=3, target='已')]
    """
    source = str(row["source"])
    made: list[SourceEdit] = []
    for edit in source_edits(row):
        start, end = (len("".join(source[:at].split())) for at in (edit.start, edit.end))
        target = "".join(edit.target.split())
        if start == end and made and (made[-1].start, made[-1].end) == (start, end):
            # White space alone is between two insertions, whose order no reader would know.
            target = made.pop().target + target
        if start < end or target:
            made.append(SourceEdit(start, end, target))
    return made


def _annotation(place: str, kind: str, text: str) -> str:
    return f"A {place}|||{kind}|||{text}|||REQUIRED|||-NONE-|||0\n"


def _type(edit: SourceEdit) -> str:
    if edit.start == edit.end:
        return "M"
    return "S" if edit.target else "R"


def _spaced(text: Json) -> str:
    """Return the characters of a text, separated by spaces; whitespace is dropped."""
    return " ".join("".join(str(text).split()))


def _listed(convert: Callable[[Row], Row], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a JSON list of converted rows."""
    before = "[\n"
    for row in rows:
        yield before + _json(convert(row))
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


def _lines(convert: Callable[[Row], Row], rows: Iterable[Row]) -> Iterator[str]:
    """Yield each converted row as one line of JSON."""
    for row in rows:
        yield _json(convert(row)) + "\n"
    yield ""


def _pycorrector_row(row: Row) -> Row:
    """Return a row of pycorrector's format.

    `wrong_ids` are offsets in the source: those of each edit's characters, or the place where
    characters are missing.

    >>> _pycorrector_row({
    ...     "id": 7, "copy": 0, "source": "言吴会", "target": "误会",
    ...     "edits": [{"start": 0, "end": 1, "source": "言吴", "target": "误"}],
    ... })
    {'id': '7-0', 'original_text': '言吴会', 'wrong_ids': [0, 1], 'correct_text': '误会'}
    """
    wrong: list[Json] = []
    for edit in source_edits(row):
        wrong += range(edit.start, max(edit.end, edit.start + 1))
    return {
        "id": key(row),
        "original_text": row["source"],
        "wrong_ids": wrong,
        "correct_text": row["target"],
    }


def _sharegpt(row: Row) -> Row:
    return {
        "id": key(row),
        "conversations": [
            {"from": "human", "value": prompted(row)},
            {"from": "gpt", "value": row["target"]},
        ],
    }


def _alpaca(row: Row) -> Row:
    return {"instruction": INSTRUCTION, "input": row["source"], "output": row["target"]}


def _prompt_completion(row: Row) -> Row:
    return {"prompt": f"{prompted(row)}\n", "completion": row["target"]}


def _openrlhf(row: Row) -> Row:
    """Return a row for OpenRLHF with --input_key input --output_key output --label_key label."""
    return {"input": prompted(row), "output": row["target"], "label": row["target"]}


def prompted(row: Row) -> str:
    """Return the instruction and the sentence to correct."""
    return f"{INSTRUCTION}\n{row['source']}"


def key(row: Row) -> str:
    """Return the name of a pair: the id of its sentence and its copy."""
    return f"{row['id']}-{row['copy']}"


def _sides(row: Row) -> tuple[str, str]:
    return _flat(str(row["source"])), _flat(str(row["target"]))


def _json(row: Row) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def _flat(text: str) -> str:
    """Return the text with each tab and line break replaced by a space."""
    return " ".join(text.splitlines()).replace("\t", " ") if _BREAKS.intersection(text) else text


_BREAKS = frozenset("\t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

TEXT: Mapping[str, Callable[[Iterable[Row]], Iterator[str]]] = {
    "jsonl": _jsonl,
    "tsv": _tsv,
    "pycorrector": partial(_listed, _pycorrector_row),
    "cscd-tsv": _cscd,
    "m2": _m2,
    "cherrant": _cherrant,
    "sharegpt": partial(_listed, _sharegpt),
    "alpaca": partial(_listed, _alpaca),
    "prompt-completion": partial(_lines, _prompt_completion),
    "openrlhf": partial(_lines, _openrlhf),
}
