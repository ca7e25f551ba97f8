"""The files of a run for scripts and for the next call, and the seconds that all calls took."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from cecdata.common.codec import Json, parse, sealed, unsealed
from cecdata.common.durable import STATE, Workspace, sha256_of
from cecdata.common.errors import VerificationError
from cecdata.common.version import git_commit
from cectrain.config import Config
from cectrain.corrector.folder import MODEL, RUN, SUMMARY
from cectrain.run import reproducibility
from cectrain.run.progress import Logger, OnStep
from cectrain.store import checkpoints, metrics_log
from cectrain.store.metrics_log import MetricsLog

ANSWERS = "heldout.jsonl"  # the held-out sentences with the answers before and after PPO
FILES = "files_sha256"  # in the summary: name → SHA-256 of the other files
_OWN = (metrics_log.FILE, ANSWERS)


def write_summary(work: Workspace, facts: Mapping[str, Json]) -> dict[str, Json]:
    """Write the summary with the SHA-256 of every result file and a seal; return its content."""
    whole: dict[str, Json] = {**facts, FILES: {**_sums(work.root)}}
    data = sealed(whole)
    work.write_bytes(SUMMARY, data)
    return dict(json.loads(data))


def _sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each result file but the model card, which its owner completes."""
    paths = [folder / name for name in _OWN if (folder / name).is_file()]
    paths += (p for p in sorted((folder / MODEL).rglob("*")) if p.is_file() and p.suffix != ".md")
    return {path.relative_to(folder).as_posix(): sha256_of(path).sha256 for path in paths}


def finished(folder: Path) -> dict[str, Json] | None:
    """Return the summary of a finished run; None if the run is not finished.

    Raises VerificationError if the summary is damaged, or if a result file differs from those that
    it records.
    """
    if not (folder / SUMMARY).is_file():
        return None
    summary = read_summary(folder / SUMMARY)
    recorded, sums = summary.get(FILES), _sums(folder)
    if not isinstance(recorded, dict):
        raise _damaged(folder / SUMMARY, f"it has no {FILES}")
    differ = sorted(n for n in {*recorded, *sums} if recorded.get(n) != sums.get(n))
    if differ:
        raise VerificationError(
            f"{folder}: {', '.join(differ[:5])}: changed, added or removed since {SUMMARY} was "
            "written: use --overwrite to train again"
        )
    return summary


def read_summary(path: Path) -> dict[str, Json]:
    """Return the content of a summary; raise VerificationError if it is damaged."""
    try:
        data = path.read_bytes()
        unsealed(data)
        summary = parse(data)
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    assert isinstance(summary, dict)
    return summary


def _damaged(path: Path, reason: str) -> VerificationError:
    return VerificationError(f"{path}: damaged ({reason}): use --overwrite to train again")


def begin(
    work: Workspace | None,
    out: Path,
    config: Config,
    identity: Mapping[str, object],
    log: Logger,
    on_step: OnStep,
) -> MetricsLog:
    """Write run.json, drop the metrics that a resume writes again, and open the metrics log.

    `work` is None on ranks other than 0, which write nothing.
    """
    if work is None:
        return MetricsLog(None)
    state = out.absolute() / STATE
    sft_step = checkpoints.newest_step(state / "sft")
    batch = checkpoints.newest_step(state / "ppo") // config.ppo.epochs
    path = out / metrics_log.FILE
    work.write_text(metrics_log.FILE, metrics_log.kept_lines(path, sft_step, batch))
    write_run(work, identity)
    return MetricsLog(path, log, on_step)


def write_run(work: Workspace, identity: Mapping[str, object]) -> None:
    """Write run.json: the identity of the run, its command, commit and hardware."""
    settings = json.dumps(identity["configuration"], ensure_ascii=False, sort_keys=True)
    facts = {
        **identity,
        "configuration_sha256": hashlib.sha256(settings.encode()).hexdigest(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "git_commit": git_commit(),
        "hardware": reproducibility.hardware(),
    }
    work.write_text(RUN, json.dumps(facts, ensure_ascii=False, indent=1, sort_keys=True) + "\n")
