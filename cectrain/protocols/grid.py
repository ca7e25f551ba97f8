"""What a search tries: the settings of a grid, in which order, and whether they can run at all."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from cecdata.common.errors import CecError, UsageError
from cectrain import config
from cectrain.protocols.frame import Plan

Value = float | int
#: of trials and of what is retrained, unless --set or --over has them: a recipe's scan need not
#: divide the grid's candidates, and a trial has too few pairs to leave some to PPO alone
OWN: Mapping[str, str] = {"ppo.oversampling": "1", "ppo.unseen": "0.0"}
#: the same where the grid has constants of the reward: a recipe's price of copies is one beside
#: the recipe's own
BESIDE_CONSTANTS: Mapping[str, str] = {"reward.copy": "null"}
SAMPLERS = ("random", "grid")
TUNING, VALIDATION = "tuning", "validation"


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched, how far, and by what the best are chosen.

    select: `tuning` (a tenth of the training split that no trial trains on), `validation`, or a
    benchmark of cecbench, which the report then calls a test set that chose (docs/paper.md row 15).
    """

    space: Mapping[str, tuple[Value, ...]]
    trials: int
    updates: int  # of a trial
    share: float = 0.02  # of the training pairs that a trial sees
    sampler: str = "random"
    select: str = TUNING
    best: int = 5
    seeds: tuple[int, ...] = (42, 137, 314)

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise UsageError(f"no sampler {self.sampler!r}: {' or '.join(SAMPLERS)}")
        if not 0 < self.share <= 1:
            raise UsageError(f"share {self.share}: a fraction of the training pairs is wanted")
        if not self.space or not all(self.space.values()):
            raise UsageError("nothing to search: give settings with their values")

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmark that chooses, if one does."""
        return () if self.select in (TUNING, VALIDATION) else (self.select,)


def check(plan: Plan, told: Search, pairs: int) -> None:
    """Raises UsageError for settings of the grid that no trial could run with.

    Whole numbers and `ppo.unseen` are tried in all combinations, because they depend on one
    another; every other value once.
    """
    linked = {
        name: values
        for name, values in told.space.items()
        if name == "ppo.unseen" or all(isinstance(value, int) for value in values)
    }
    first = {name: values[0] for name, values in told.space.items()}
    alone = [{**first, n: v} for n, vs in told.space.items() if n not in linked for v in vs]
    seen, short = limit_of(told, pairs), dict[int, str]()
    together = (dict(zip(linked, values, strict=True)) for values in product(*linked.values()))
    for chosen in [*alone, *({**first, **one} for one in together)]:
        words = " ".join(f"{name}={value}" for name, value in chosen.items())
        try:
            made = config.load(plan.recipe, [*plan.settings, *settings_of(plan, told, chosen)])
        except CecError as error:
            raise UsageError(f"settings of the grid cannot run ({words}): {error}") from error
        ppo = made.ppo
        split = ppo.unseen if made.sft.steps or ppo.supervised else 0.0
        here = int(seen * split) if split else seen
        if (sources := ppo.groups * ppo.oversampling) > here:
            short[sources - here] = (
                f"ppo.groups={ppo.groups} × ppo.oversampling={ppo.oversampling} = {sources} "
                f"sources a batch, and PPO of a trial would see about {here} of {pairs} pairs "
                f"(share {told.share:g}, ppo.unseen {ppo.unseen:g})"
            )
    if short:
        raise UsageError(
            f"settings of the grid cannot run: {short[max(short)]}: raise --share, lower "
            "ppo.groups with --over, or build more pairs"
        )


def drawn(told: Search) -> Iterator[dict[str, Value]]:
    """All settings of the grid, each once, in an order that the seed alone decides."""
    values = [list(dict.fromkeys(some)) for some in told.space.values()]
    left, source = math.prod(map(len, values)), random.Random(told.seeds[0])
    seen: set[tuple[Value, ...]] = set()
    while len(seen) < left:
        one = tuple(source.choice(some) for some in values)
        if one not in seen:
            seen.add(one)
            yield dict(zip(told.space, one, strict=True))


def limit_of(told: Search, pairs: int) -> int:
    """How many pairs a trial sees."""
    return max(1, math.ceil(told.share * pairs))


def settings_of(plan: Plan, told: Search, chosen: Mapping[str, Value]) -> list[str]:
    """Of a trial, without its number of pairs."""
    settings = [*own(plan, chosen), *(f"{name}={value}" for name, value in chosen.items())]
    settings += [f"ppo.updates={told.updates}", "ppo.eval_every=0", 'constants="given"']
    return [*settings, "data.tuning=true"] if told.select == TUNING else settings


def own(plan: Plan, chosen: Mapping[str, Value]) -> list[str]:
    """The search's own settings that neither the user nor the grid has."""
    given = {*chosen, *(text.partition("=")[0].strip() for text in plan.settings)}
    ours = dict(OWN)
    if any(name.startswith("reward.") for name in chosen):
        ours |= BESIDE_CONSTANTS
    return [f"{name}={value}" for name, value in ours.items() if name not in given]
