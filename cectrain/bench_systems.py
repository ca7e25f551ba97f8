"""The correctors of cectrain as systems of cecbench, which finds them by their entry points.

Each is asked exactly as `cectrain correct` asks it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cecbench.systems.base import SHARE, Answer, Context, DeviceOptions, Kind
from cecdata.common.settings import option
from cectrain.corrector.folder import CHANNEL, COMBINED, MODEL

if TYPE_CHECKING:
    from cectrain.corrector.correction import Correction
    from cectrain.corrector.corrector import Corrector

_TOGETHER = 256  # sentences corrected at once


@dataclass(frozen=True)
class ModelOptions(DeviceOptions):
    """The options of any model; each takes those that concern it."""

    lm: str = option(
        "", "N-gram model, as in `cectrain correct --lm`; empty means the default of the corrector."
    )
    confidence: float = option(
        0.0,
        "Make only edits with at least this confidence; 0 means the default of the corrector.",
        type=SHARE,
    )
    terms: str = option("", "File of terms, as in `cectrain correct --terms`; empty means none.")
    rescore: str = option(
        "", "Language model, as in `cectrain correct --rescore`; empty means none."
    )


class CorrectorSystem:
    """Answers with a corrector's targets. `cecbench.systems.base.System` says what `block` is."""

    def __init__(
        self, name: str, corrector: Corrector, identity: Mapping[str, object], block: int = 0
    ) -> None:
        self.name, self.identity, self.block = name, identity, block
        self._corrector = corrector

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        for first in range(0, len(sources), _TOGETHER):
            block = sources[first : first + _TOGETHER]
            started = time.perf_counter()
            corrections = self._corrector.correct(block)
            seconds = (time.perf_counter() - started) / len(block)
            for correction in corrections:
                target = correction.target
                yield Answer(target, target, _name_status(correction), seconds=seconds)


def _name_status(correction: Correction) -> str:
    """Return the status (STATUSES) of an answer, by what the corrector kept as written.

    The model strayed in the whole text: `chatter`. It strayed in a part, or a part was too long:
    `truncated`. It cannot read a character: `unknown`.
    """
    reasons = {span.reason for span in correction.kept}
    whole = any((span.start, span.end) == (0, len(correction.source)) for span in correction.kept)
    if "strayed" in reasons and whole:
        return "chatter"
    if reasons & {"strayed", "too_long"}:
        return "truncated"
    return "unknown" if "unreadable" in reasons else "ok"


def make_system(kind: str, model: str, options: ModelOptions, block: int = 0) -> CorrectorSystem:
    """Return whatever `cectrain correct --model` takes, as a system of this kind."""
    from cectrain.corrector.corrector import Corrector
    from cectrain.corrector.wordlists import read_terms

    terms = read_terms([Path(options.terms)]) if options.terms else ()
    corrector = Corrector(
        model,
        lm=options.lm or None,
        terms=terms,
        confidence=options.confidence or None,
        rescore=options.rescore or None,
        batch=options.batch,
        device=options.device,
    )
    identity = {**corrector.proposer.identity, "kind": kind}
    if terms:
        listed = json.dumps([(term.text, term.weight) for term in terms]).encode()
        identity["terms"] = hashlib.sha256(listed).hexdigest()[:8]
    name = kind
    if model != kind:
        folder = Path(model).absolute()
        run = folder.parent if folder.name == MODEL else folder
        name = f"{kind}:{run.name}"
    return CorrectorSystem(name, corrector, identity, block)


def _make_kind(form: str, meaning: str) -> Kind[ModelOptions]:
    """Return the kind of a system whose model is its argument or, without one, the kind itself."""
    name, colon, _ = form.partition(":")
    takes_model = bool(colon)

    def make(model: str, options: ModelOptions, _: Context) -> CorrectorSystem:
        block = 8 * options.batch if takes_model else 0
        return make_system(name, model or name, options, block)

    return Kind(form, meaning, ModelOptions, make, recorded=takes_model)


CHANNEL_KIND = _make_kind(CHANNEL, "the noisy channel, as in `cectrain correct --model channel`")
COMBINED_KIND = _make_kind(COMBINED, "the channel and a policy together, as in `cectrain correct`")
MODEL_KIND = _make_kind(
    "corrector:MODEL", "any model of `cectrain correct --model`, those of other packages as well"
)
POLICY_KIND = _make_kind(
    "policy:DIR", "a policy in an output folder of `cectrain`, or policy:builtin"
)
