"""The folder of a field, which `cectrain adapt` writes and `--model FOLDER` loads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.codec import parse
from cecdata.common.durable import sha256_of, write_text
from cecdata.common.errors import InputError, VerificationError

if TYPE_CHECKING:
    from cecdata.lm.table import Ngrams
    from cectrain.corrector.rescoring import Weights

KIND = "cectrain field 1"
RECORD, TABLE = "field.json", "words.ngram"


@dataclass(frozen=True, slots=True)
class Field:
    """The record of a field.

    sentences: how many it was learned from. weights: of the combined corrector. table: the SHA-256
    of its n-grams; '' where what ships is better, which is then used. facts: what was measured.
    """

    sentences: int
    weights: Weights | None
    table: str
    facts: dict[str, object]


def is_field(folder: str) -> bool:
    """Return whether a folder is that of a field."""
    return (Path(folder) / RECORD).is_file()


def write_field(folder: Path, ngrams: Ngrams | None, field: Field) -> None:
    """Write the folder; its record comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)
    (folder / TABLE).unlink(missing_ok=True)
    table = ""
    if ngrams is not None:
        ngrams.save(folder / TABLE)
        table = sha256_of(folder / TABLE).sha256
    weights = field.weights and field.weights._asdict()
    record = {"kind": KIND, **asdict(field), "weights": weights, "table": table}
    write_text(folder / RECORD, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def read_field(folder: str) -> tuple[Field, Path | None]:
    """Return the record of a field and the file of its n-grams, if it has one.

    Raises InputError where the record is damaged, VerificationError where the n-grams are.
    """
    from cectrain.corrector.rescoring import Weights  # late: a list of models needs no arrays

    path = Path(folder) / RECORD
    try:
        record: Any = parse(path.read_bytes())
        weights = record["weights"] and Weights(**record["weights"])
        field = Field(record["sentences"], weights, record["table"], record["facts"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({error}): run cectrain adapt again") from error
    table = Path(folder) / TABLE
    if not field.table:
        return field, None
    if not table.is_file() or sha256_of(table).sha256 != field.table:
        raise VerificationError(
            f"{table} is not the one that {path} records: run cectrain adapt again"
        )
    return field, table
