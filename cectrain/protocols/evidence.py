"""Is PPO above its start, and above supervised steps of the same cost? Three seeds, paired.

The recipe's rate suits its few supervised steps. Many of them have an optimum of their own, so the
supervised side gets the rate that is best on a tenth of the training split; with the recipe's alone
PPO would be compared with a baseline that nobody would use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from cecdata.errors import CecError
from cecdata.shards.codec import Json
from cectrain import config
from cectrain.protocols import evidence_words, tables
from cectrain.protocols.evidence_words import Comparison, cpu_seconds
from cectrain.protocols.frame import Done, Plan, Run, run_all, write
from cectrain.protocols.paired import Difference, difference

SEEDS = (42, 137, 314)  # paper §5
NAME = "evidence"
_EVERYTHING = ("data.held_out=100000", "data.held_out_clean=100000", "ppo.eval_every=0")
_FACTORS = (1.0, 0.5, 0.25)  # of the recipe's rate, tried for the supervised side
_TIMED, _WARM = 30, 5  # supervised steps whose cost is measured, the first of them not counted
TIMING = Run(
    "sft-timing",
    (f"sft.steps={_TIMED}", "ppo.updates=0", f"sft.log_every={_WARM}", "data.held_out=1",
     "data.held_out_clean=1"),
)  # fmt: skip


def evidence(plan: Plan, seeds: Sequence[int] = SEEDS, rates: Sequence[float] = ()) -> list[str]:
    """Runs PPO and supervised training of equal CPU seconds for each seed; the findings in words.

    `rates` are tried for the supervised side, by default the recipe's, its half and its quarter.
    Everything of the validation split is held out. What is finished is reported after each run, so
    that a protocol that was cut short still says what it knows; the same call goes on.
    """
    words: list[str] = []
    tried = tuple(rates) or rates_of(plan)

    def after(found: dict[str, Done]) -> None:
        words[:] = _report(plan, found, seeds)

    run_all(plan, runs_of(seeds, tried), after)
    return words


def rates_of(plan: Plan) -> tuple[float, ...]:
    """The rates that are tried for the supervised side of this recipe, the recipe's own first."""
    own = config.load(plan.recipe, plan.settings).sft.learning_rate
    return tuple(own * factor for factor in _FACTORS)


def runs_of(seeds: Sequence[int], rates: Sequence[float]) -> list[Run]:
    """All runs in their order; of several rates each is tried once, with the first seed."""
    first = ppo_run(seeds[0]).name
    tried = [rate_run(rate, seeds[0], first) for rate in rates] if len(rates) > 1 else []
    supervised = [sft_run(seed, first, rates) for seed in seeds]
    return [*(ppo_run(seed) for seed in seeds), TIMING, *tried, *supervised]


def ppo_run(seed: int) -> Run:
    """PPO from the start policy, everything of validation held out."""
    return Run(f"ppo-{seed}", (*_EVERYTHING, f"seed={seed}"))


def rate_run(rate: float, seed: int, first: str) -> Run:
    """Supervised steps at this rate, judged on a part of the training split that none learns."""

    def more(found: Mapping[str, Done]) -> tuple[str, ...]:
        return _steps(found, first, rate)

    settings = (*_EVERYTHING, f"seed={seed}", "ppo.updates=0", "data.tuning=true")
    return Run(_name(rate), settings, (first, TIMING.name), more)


def sft_run(seed: int, first: str, rates: Sequence[float]) -> Run:
    """Supervised steps that cost what the PPO run named `first` did, at the best of the rates."""
    names = [_name(rate) for rate in rates] if len(rates) > 1 else []

    def more(found: Mapping[str, Done]) -> tuple[str, ...]:
        scores = [f1(found[name]) for name in names] or [0.0]
        return _steps(found, first, rates[scores.index(max(scores))])

    settings = (*_EVERYTHING, f"seed={seed}", "ppo.updates=0")
    return Run(f"sft-{seed}", settings, (first, TIMING.name, *names), more)


def _name(rate: float) -> str:
    return f"rate-{rate:g}"


def f1(done: Done) -> float:
    """Sentence-level F1 of what the finished run answered."""
    _, tops, bottoms = counted(done.sentences(), "f1", "after")
    return sum(tops) / max(1.0, sum(bottoms))


def _steps(found: Mapping[str, Done], first: str, rate: float) -> tuple[str, ...]:
    steps = equal_steps(found[first], found[TIMING.name])
    return (f"sft.steps={steps}", f"sft.save_every={steps}", f"sft.learning_rate={rate!r}")


def equal_steps(ppo: Done, timed: Done) -> int:
    """Supervised steps that cost what PPO (with its warm start) did, by measured CPU seconds.

    Seconds, not tokens: writing a token costs more than learning from one, and only seconds count
    that against PPO. CPU seconds, because other programs must not buy either side more steps.
    """
    lines = timed.lines("sft")[1:]  # the first one warms up
    a_step = sum(line["cpu_seconds"] for line in lines) / (_TIMED - _WARM)
    return max(1, math.ceil(cpu_seconds(ppo) / a_step))


def comparisons(runs: Mapping[str, Done], seeds: Sequence[int]) -> list[Comparison]:
    """PPO and SFT against the start, and PPO against SFT, on all seeds that both sides have."""
    found = []
    for after, before in (("ppo", "start"), ("sft", "start"), ("ppo", "sft")):
        both = [s for s in seeds if _both(runs, s, after, before)]
        for chosen in ([both] if len(both) > 1 else []) + [[seed] for seed in both]:
            for rate in evidence_words.RATES:
                value = _compare(runs, chosen, rate, after, before)
                if value is not None:
                    found.append(Comparison(rate, after, before, tuple(chosen), value))
    return found


def _both(runs: Mapping[str, Done], seed: int, after: str, before: str) -> bool:
    return f"{after}-{seed}" in runs and (before == "start" or f"{before}-{seed}" in runs)


def _compare(
    runs: Mapping[str, Done], seeds: Sequence[int], rate: str, after: str, before: str
) -> Difference | None:
    found: list[tuple[list[list[float]], list[list[float]]]] = [([], []), ([], [])]
    clusters: list[str] = []
    for seed in seeds:
        # What a PPO run answered before its first batch is the start.
        first = (f"ppo-{seed}", "before") if before == "start" else (f"{before}-{seed}", "after")
        sides = (first, (f"{after}-{seed}", "after"))
        keys = []
        for (run, answers), kept in zip(sides, found, strict=True):
            told, tops, bottoms = counted(runs[run].sentences(), rate, answers)
            keys.append(told)
            kept[0].append(tops)
            kept[1].append(bottoms)
        if keys[0] != keys[1] or (clusters and keys[0] != clusters):
            raise CecError(f"runs of seed {seed} held out other sentences: run them anew")
        clusters = keys[0]
    if not clusters:
        return None
    (tops_before, of_before), (tops_after, of_after) = found
    return difference(tops_before, tops_after, clusters, (of_before, of_after))


def counted(
    rows: Sequence[Mapping[str, str]], rate: str, column: str
) -> tuple[list[str], list[float], list[float]]:
    """Targets, numerators and denominators of the rows that a rate is about, in one order for all.

    exact: erroneous sentences corrected to the letter. over_correction: clean ones changed. f1: of
    sentence-level correction over both, twice the corrected by the changed and the erroneous.
    """
    # By its text, as `heldout.evaluate`: of a build's own clean pairs the operator is `unchanged`.
    about = [
        row for row in rows if rate == "f1" or (row["source"] == row["target"]) == (rate != "exact")
    ]
    about.sort(key=lambda row: (row["target"], row["source"]))
    wrong = [row["source"] != row["target"] for row in about]
    changed = [row[column] != row["source"] for row in about]
    right = [row[column] == row["target"] for row in about]
    if rate == "f1":
        tops = [2.0 * (bad and good) for bad, good in zip(wrong, right, strict=True)]
        bottoms = [float(bad + other) for bad, other in zip(wrong, changed, strict=True)]
    else:
        tops = [float(good == (rate == "exact")) for good in right]
        bottoms = [1.0] * len(about)
    return [row["target"] for row in about], tops, bottoms


def _report(plan: Plan, runs: Mapping[str, Done], seeds: Sequence[int]) -> list[str]:
    ppo = {name: done for name, done in runs.items() if name.startswith("ppo")}
    if not ppo:
        return []
    found = comparisons(runs, seeds)
    tried = {name: f1(done) for name, done in runs.items() if name.startswith("rate-")}
    words = evidence_words.verdict(found, ppo, seeds) + evidence_words.rates_tried(tried)
    head, rows = evidence_words.table(found)
    course_head, course_rows = evidence_words.course(ppo)
    cost_head, cost_rows = evidence_words.cost(runs)
    about = [(head, rows), (course_head, course_rows), (cost_head, cost_rows)]
    text = "\n\n".join([*words, *(tables.markdown(h, r) for h, r in about)]) + "\n"
    facts: dict[str, Json] = {
        "words": list(words),
        "comparisons": [_as_json(one) for one in found],
        "course": [dict(zip(course_head, row, strict=True)) for row in course_rows],
        "cost": [dict(zip(cost_head, row, strict=True)) for row in cost_rows],
    }
    figures = [evidence_words.rates_figure(found), evidence_words.course_figure(ppo)]
    page = tables.page("PPO against its start and against supervised steps", words,
                       [*figures, *(tables.html(h, r) for h, r in about)])  # fmt: skip
    write(plan, NAME, facts, text, page)
    return words


def _as_json(one: Comparison) -> Json:
    return {
        "rate": one.rate, "of": one.after, "against": one.before, "seeds": list(one.seeds),
        **asdict(one.found), "difference": one.found.value,
    }  # fmt: skip
