"""What a score.json must look like before anything is computed from it, and its seal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TypeAlias

from cecdata.common.codec import Json
from cecdata.common.errors import InputError, VerificationError

FORMAT = 2  # 1 had no seal
SEAL = "seal"  # last key: SHA-256 of the file's text without it
PREDICTIONS_SHA256 = "predictions_sha256"
TABLE_SHA256 = "table_sha256"  # of predictions.tsv

# A kind of value, an object with these keys (`?`: may be missing), or an object of like values.
Shape: TypeAlias = "str | Mapping[str, Shape]"
_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "whole": (int,),
    "number": (int, float),
    "flag": (bool,),
}
_EACH = "*"
_NUMBERS: Shape = {_EACH: "number?"}
_PART: Shape = {
    "sentences": "whole", "p": "number?", "r": "number?", "f": "number?", "low": "number?",
    "high": "number?",
}  # fmt: skip
_SIGNATURE: dict[str, Shape] = {
    "scorer": "text", "signature": "text", "signature.benchmark?": "text",
    "signature.rows_scored?": "whole", "signature.rows_read?": "whole",
    "signature.beta?": "number", "signature.level?": "text", "format?": "whole",
}  # fmt: skip
_RUN: dict[str, Shape] = {
    **_SIGNATURE,
    "signature.benchmark": "text", "signature.level": "text",
    "policy": "text", "scored_policy": "text", "headline": "text", "benchmark": "text",
    "system": "text", "synthetic": "flag", "rows_scored": "whole", "rows_read": "whole",
    "benchmark_rows?": "whole", "unanswered?": "whole", "unanswered_means?": "text",
    "traditional_predictions?": "whole", "projection?": "text?", "mode?": "text?",
    "behaviour.over_correction_per_1000_chars?": "number?",
    "behaviour.length_violation_rate?": "number?", "behaviour.copy_rate?": "number?",
    "answers": {_EACH: "whole"}, "retried?": {_EACH: "whole"},
    "usage": _NUMBERS,
    "interval?": {"value": "number", "low": "number", "high": "number", "level": "number"},
    "breakdown": {
        "category?": {_EACH: _PART}, "errors?": {_EACH: _PART}, "frequency?": {_EACH: _PART},
        "cross_table?": {_EACH: {_EACH: "whole"}},
        "clean?": {"sentences": "whole", "changed?": "whole", "over_correction_rate?": "number?"},
    },
}  # fmt: skip


def check_score(values: Mapping[str, Json], where: str) -> None:
    """InputError unless these are a score that this version can read."""
    version = values.get("format", 1)
    if isinstance(version, int) and version > FORMAT:
        raise InputError(
            f"{where}: format {version}; this release reads up to {FORMAT}: install a newer one"
        )
    _refuse(_misfit(dict(values), _SIGNATURE, ""), where)


def check_run(values: Mapping[str, Json], where: str) -> None:
    """InputError unless these are the score of a whole run."""
    _refuse(_misfit(dict(values), _RUN, ""), where)
    printed = _number(values.get(str(values["headline"])))
    _refuse(_misfit(printed, "number?", str(values["headline"])), where)


def _number(printed: Json) -> Json:
    """ChERRANT and Paddle print their numbers as text: the number that it is, where it is one."""
    try:
        return float(printed) if isinstance(printed, str) else printed
    except ValueError:
        return printed


def sealed(values: Mapping[str, object]) -> str:
    """The text of score.json; `values` hold something, and no seal yet."""
    bare = json.dumps(values, ensure_ascii=False, indent=1).removesuffix("\n}")
    return f'{bare}{_LAST}{_sum(bare)}"\n}}\n'


def is_sealed(text: str) -> bool:
    """Is this what `sealed` wrote, to the last character? It is not written again to find out."""
    bare, found, seal = text.rpartition(_LAST)
    return bool(found) and seal == f'{_sum(bare)}"\n}}\n'


_LAST = f',\n "{SEAL}": "'


def _sum(bare: str) -> str:
    """Of the text without its seal; `bare` lacks the closing brace."""
    return hashlib.sha256(f"{bare}\n}}".encode("utf-8", "surrogatepass")).hexdigest()


def unsealed(values: dict[str, Json], text: str, where: str) -> dict[str, Json]:
    """The values without their seal; VerificationError where it is broken or was taken off."""
    if SEAL not in values and values.get("format") != FORMAT:
        return values
    if not is_sealed(text):
        raise VerificationError(
            f"{where}: its seal is broken: a bit turned over or it was edited. Run the same "
            "`cecbench run` again: it writes the file anew"
        )
    return {name: value for name, value in values.items() if name != SEAL}


def _refuse(what: str, where: str) -> None:
    if what:
        raise InputError(
            f"{where} is not a score that `cecbench run` or `score --json` wrote: {what}"
        )


def _misfit(value: Json, shape: Shape, place: str) -> str:
    """What is wrong with a value; '' where nothing is."""
    if isinstance(shape, str):
        return _misfit_scalar(value, shape, place)
    if not isinstance(value, dict):
        return f"{place or 'it'} is {type(value).__name__}, not an object"
    if _EACH in shape:
        found = (_misfit(item, shape[_EACH], f"{place}.{name}") for name, item in value.items())
        return next(filter(None, found), "")
    for name, inner in shape.items():
        key = name.removesuffix("?")
        if key not in value:
            if name == key:
                return f"{key!r} is missing in {place or 'it'}"
            continue
        if what := _misfit(value[key], inner, f"{place}.{key}" if place else key):
            return what
    return ""


def _misfit_scalar(value: Json, kind: str, place: str) -> str:
    if value is None and kind.endswith("?"):
        return ""
    types = _KINDS[kind.removesuffix("?")]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return f"{place} is {value!r:.40}, a {kind.removesuffix('?')} is wanted"
    return ""
