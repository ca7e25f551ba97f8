"""A policy of `cectrain`, asked exactly as `cectrain correct --policy` asks it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cecbench.systems.answer import Answer
from cecbench.systems.kind import Kind
from cecbench.systems.options import LocalOptions
from cecdata.common.errors import InputError
from cectrain.corrector import loading, prompts
from cectrain.corrector.correction import Correction
from cectrain.corrector.corrector import Corrector
from cectrain.corrector.folder import BUILTIN, model_folder
from cectrain.corrector.policy import load
from cectrain.corrector.proposals import PolicyProposer


class PolicySystem:
    """The corrector with the policy of a folder; `builtin` is the one that ships.

    The folder is a model's or a run's; `./builtin` is a folder of that name.
    """

    def __init__(self, name: str, options: LocalOptions) -> None:
        torch, transformers = loading.torch_and_transformers()
        where = model_folder(name) or ""
        if not (Path(where) / "config.json").is_file():
            raise InputError(
                f"{name} holds no model (no config.json there or in its `model` folder): "
                "name the output folder of a finished `cectrain` run, or policy:builtin"
            )
        policy = load(name, device=options.device, dtype=loading.pick_dtype(torch, options.dtype))
        proposer = PolicyProposer(policy, options.batch, options.threads)
        self._corrector = Corrector(proposer)
        self.block = 8 * options.batch
        self.name = BUILTIN if name == BUILTIN else "policy"
        self.identity: Mapping[str, object] = {
            "kind": "policy",
            **loading.checkpoint_identity(where, None),
            **loading.run_identity(torch, transformers, str(policy.model.device)),
            "prompt": f"{policy.prompt}@{prompts.sha256(policy.prompt)[:8]}",
            "dtype": str(policy.model.dtype),
            "longest_piece": proposer.longest,
            "unchanged": "what is not Han, what the policy cannot read, answers that stray",
        }

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return one answer a source, in the order of the sources."""
        started = time.perf_counter()
        corrections = self._corrector.correct(sources)
        seconds = (time.perf_counter() - started) / max(1, len(sources))
        return (
            Answer(one.target, one.target, _status(one), seconds=seconds) for one in corrections
        )


def _status(correction: Correction) -> str:
    """Return the status, which says what was kept as written: all, a part, or some characters."""
    kept = {one.reason for one in correction.kept}
    whole = any((one.start, one.end) == (0, len(correction.source)) for one in correction.kept)
    if "strayed" in kept and whole:
        return "chatter"
    if kept & {"strayed", "too_long"}:
        return "truncated"
    return "unknown" if "unreadable" in kept else "ok"


KIND = Kind(
    "policy:DIR",
    "an output folder of `cectrain`; policy:builtin is what ships",
    LocalOptions,
    lambda argument, options, _: PolicySystem(argument, options),
)
BUILTIN_KIND = Kind(
    BUILTIN,
    "the policy that ships, alone",
    LocalOptions,
    lambda _, options, __: PolicySystem(BUILTIN, options),
)
