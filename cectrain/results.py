"""What a run leaves for scripts and for the next call: its facts, its summary, its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cecdata.durable import Workspace
from cecdata.errors import VerificationError
from cecdata.shards.codec import Json
from cecdata.strictjson import parse
from cectrain import reproducibility

SUMMARY, RUN, MODEL = "summary.json", "run.json", "model"


def finished(folder: Path) -> dict[str, Json] | None:
    """The summary of a finished run; None where it is not finished.

    Raises VerificationError where the summary is damaged or the weights are not those it names.
    """
    if not (folder / SUMMARY).is_file():
        return None
    found = read_summary(folder / SUMMARY)
    if reproducibility.weights_sha256(folder / MODEL) != found.get("model_sha256"):
        raise VerificationError(
            f"{folder / MODEL}: not the weights that {SUMMARY} names; --overwrite trains anew"
        )
    return found


def read_summary(path: Path) -> dict[str, Json]:
    """What a finished run says of itself; VerificationError where it is damaged."""
    try:
        found = parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise VerificationError(f"{path}: damaged ({error}); --overwrite trains anew") from error
    if not isinstance(found, dict):
        raise VerificationError(f"{path}: damaged (not a JSON object); --overwrite trains anew")
    return found


def write_run(work: Workspace, identity: Mapping[str, object]) -> None:
    """What the run is, and where, with what and by which command it is made."""
    facts = {
        **identity,
        "command": reproducibility.command_line(),
        "git_commit": reproducibility.git_commit(),
        "hardware": reproducibility.hardware(),
    }
    work.write_text(RUN, json.dumps(facts, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
