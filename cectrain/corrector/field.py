"""The folder of a field, which `cectrain adapt` writes and `--model FOLDER` loads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.codec import parse
from cecdata.common.durable import sha256_of, write_text
from cecdata.common.errors import InputError, RefusedError, VerificationError
from cectrain.corrector.folder import hash_weights

if TYPE_CHECKING:
    from cecdata.lm.table import Ngrams
    from cectrain.corrector.rescoring import Weights

KIND = "cectrain field 1"
RECORD, TABLE, POLICY = "field.json", "words.ngram", "policy"
WORK = ".training"  # folder of the policy's training, which is removed at the end


def is_field(folder: str) -> bool:
    """Return whether a folder is that of a field."""
    return (Path(folder) / RECORD).is_file()


def refuse_foreign(folder: Path) -> None:
    """Raise RefusedError where a folder without the record of a field holds other files."""
    record = folder / RECORD
    names = {path.name for path in folder.glob("*")}
    if RECORD in names and KIND.encode() in record.read_bytes():
        return
    if foreign := sorted(names - {TABLE, POLICY, WORK}):
        raise RefusedError(
            f"{folder} holds {foreign[0]}, which is not of a field: name another folder"
        )


def write_field(
    folder: Path,
    ngrams: Ngrams | None,
    policy: Path | None,
    weights: Weights | None,
    sentences: int,
    facts: Mapping[str, object],
) -> None:
    """Write the folder with the n-grams and a copy of the policy; its record comes last.

    weights: of the combined corrector. What is None is that which ships. sentences: how many the
    field was learned from. facts: what was measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECORD).unlink(missing_ok=True)
    (folder / TABLE).unlink(missing_ok=True)
    shutil.rmtree(folder / POLICY, ignore_errors=True)
    digests = {"table": "", "policy": ""}
    if policy is not None:
        shutil.copytree(policy, folder / POLICY, ignore=shutil.ignore_patterns("README.md"))
        digests["policy"] = hash_weights(folder / POLICY)
    if ngrams is not None:
        ngrams.save(folder / TABLE)
        digests["table"] = sha256_of(folder / TABLE).sha256
    record = {
        "kind": KIND,
        "sentences": sentences,
        "weights": weights and weights._asdict(),
        **digests,
        "facts": facts,
    }
    write_text(folder / RECORD, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def read_field(folder: str) -> tuple[Weights | None, Path | None, Path | None]:
    """Return the weights of a field, the file of its n-grams and the folder of its policy, if any.

    Raises InputError where the record is damaged, VerificationError where one of these is.
    """
    from cectrain.corrector.rescoring import Weights  # late: a list of models needs no arrays

    path = Path(folder) / RECORD
    try:
        record: Any = parse(path.read_bytes())
        weights = record["weights"] and Weights(**record["weights"])
        recorded = record["table"], record["policy"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({error}): run cectrain adapt again") from error
    table, policy = Path(folder) / TABLE, Path(folder) / POLICY
    digests = (
        sha256_of(table).sha256 if table.is_file() else "",
        hash_weights(policy) if policy.is_dir() else "",
    )
    for part, digest, wanted in zip((table, policy), digests, recorded, strict=True):
        if digest != wanted:
            raise VerificationError(
                f"{part} is not the one that {path} records: run cectrain adapt again"
            )
    return weights, table if digests[0] else None, policy if digests[1] else None
