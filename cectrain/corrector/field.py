"""The folder of a field, which `cectrain adapt` writes and `--model FOLDER` loads."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.codec import parse
from cecdata.common.durable import sha256_of, write_text
from cecdata.common.errors import InputError, VerificationError
from cectrain.corrector.folder import weights_sha256

if TYPE_CHECKING:
    from cecdata.lm.table import Ngrams
    from cectrain.corrector.rescoring import Weights

KIND = "cectrain field 1"
RECORD, TABLE, POLICY = "field.json", "words.ngram", "policy"


@dataclass(frozen=True, slots=True)
class Field:
    """The record of a field.

    sentences: how many it was learned from. weights: of the combined corrector. table, policy: the
    SHA-256 of its n-grams and of its policy's weights; '' where what ships is better, which is then
    used. facts: what was measured.
    """

    sentences: int
    weights: Weights | None
    table: str
    policy: str
    facts: dict[str, object]


def is_field(folder: str) -> bool:
    """Return whether a folder is that of a field."""
    return (Path(folder) / RECORD).is_file()


def write_field(folder: Path, ngrams: Ngrams | None, policy: Path | None, field: Field) -> None:
    """Write the folder with the n-grams and a copy of the policy; its record comes last."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)
    (folder / TABLE).unlink(missing_ok=True)
    shutil.rmtree(folder / POLICY, ignore_errors=True)
    table = digest = ""
    if policy is not None:
        shutil.copytree(policy, folder / POLICY, ignore=shutil.ignore_patterns("README.md"))
        digest = weights_sha256(folder / POLICY)
    if ngrams is not None:
        ngrams.save(folder / TABLE)
        table = sha256_of(folder / TABLE).sha256
    weights = field.weights and field.weights._asdict()
    record = {"kind": KIND, **asdict(field), "weights": weights, "table": table}
    record["policy"] = digest
    write_text(folder / RECORD, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def read_field(folder: str) -> tuple[Field, Path | None, Path | None]:
    """Return the record of a field, the file of its n-grams and the folder of its policy, if any.

    Raises InputError where the record is damaged, VerificationError where one of these is.
    """
    from cectrain.corrector.rescoring import Weights  # late: a list of models needs no arrays

    path = Path(folder) / RECORD
    try:
        record: Any = parse(path.read_bytes())
        weights = record["weights"] and Weights(**record["weights"])
        field = Field(
            record["sentences"], weights, record["table"], record["policy"], record["facts"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({error}): run cectrain adapt again") from error
    table, policy = Path(folder) / TABLE, Path(folder) / POLICY
    digests = {
        table: sha256_of(table).sha256 if table.is_file() else "",
        policy: weights_sha256(policy) if policy.is_dir() else "",
    }
    for part, digest in ((table, field.table), (policy, field.policy)):
        if digests[part] != digest:
            raise VerificationError(
                f"{part} is not the one that {path} records: run cectrain adapt again"
            )
    return field, table if field.table else None, policy if field.policy else None
