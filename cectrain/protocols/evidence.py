"""Is PPO above its start, and above supervised steps of the same cost? Three seeds, paired.

The recipe's rate suits its few supervised steps, its share of clean sources the PPO behind them.
Many steps have an optimum of their own, so the supervised side gets the rate, and then the share,
that is best on a tenth of the training split; with the recipe's alone PPO would be compared with a
baseline that nobody would use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from cecdata.common import html, markdown
from cecdata.common.codec import Json
from cecdata.common.errors import CecError
from cectrain import config
from cectrain.protocols import evidence_words, tables
from cectrain.protocols.evidence_words import Comparison, cpu_seconds
from cectrain.protocols.frame import Done, Plan, Run, run_all, write
from cectrain.protocols.paired import Difference, difference

Chosen = Callable[[Mapping[str, Done]], tuple[float, float | None]]  # rate, share of clean sources
SEEDS = (42, 137, 314)  # the paper's
NAME = "evidence"
_EVERYTHING = ("data.held_out=100000", "data.held_out_clean=100000", "ppo.eval_every=0")
_FACTORS = (1.0, 0.5, 0.25)  # of the recipe's rate, tried for the supervised side
_SHARES = (0.5, 1.5)  # of the recipe's share of clean sources, tried there at the best rate
_TIMED, _WARM = 30, 5  # supervised steps whose cost is measured, the first of them not counted
TIMING = Run(
    "sft-timing",
    (f"sft.steps={_TIMED}", "ppo.updates=0", f"sft.log_every={_WARM}", "data.held_out=1",
     "data.held_out_clean=1"),
)  # fmt: skip


def evidence(plan: Plan, seeds: Sequence[int] = SEEDS, rates: Sequence[float] = ()) -> list[str]:
    """Runs PPO and supervised training of equal CPU seconds for each seed; the findings in words.

    `rates` are tried for the supervised side, by default the recipe's, its half and its quarter,
    and at the best of them other shares of clean sources; a single rate is taken as it is.
    Everything of the validation split is held out. What is finished is reported after each run, so
    that a protocol that was cut short still says what it knows; the same call goes on.
    """
    words: list[str] = []
    tried = tuple(rates) or rates_of(plan)

    def after(found: dict[str, Done]) -> None:
        words[:] = _report(plan, found, seeds)

    run_all(plan, runs_of(seeds, tried, shares_of(plan)), after)
    return words


def rates_of(plan: Plan) -> tuple[float, ...]:
    """The rates that are tried for the supervised side of this recipe, the recipe's own first."""
    own = config.load(plan.recipe, plan.settings).sft.learning_rate
    return tuple(own * factor for factor in _FACTORS)


def shares_of(plan: Plan) -> tuple[float, ...]:
    """The other shares of clean sources that are tried for the supervised side of this recipe."""
    own = config.load(plan.recipe, plan.settings).data.clean_share
    return tuple({min(1.0, round(own * factor, 3)): None for factor in _SHARES if own})


def runs_of(
    seeds: Sequence[int], rates: Sequence[float], shares: Sequence[float] = ()
) -> list[Run]:
    """All runs in their order; of several rates each is tried once, with the first seed, and so
    are then the shares.
    """
    first = ppo_run(seeds[0]).name
    tried: list[Run] = []
    if len(rates) > 1:
        tried = [rate_run(rate, seeds[0], first) for rate in rates]
        tried += [share_run(share, seeds[0], first, rates) for share in shares]
    supervised = [sft_run(seed, first, rates, shares) for seed in seeds]
    return [*(ppo_run(seed) for seed in seeds), TIMING, *tried, *supervised]


def ppo_run(seed: int) -> Run:
    """PPO from the start policy, everything of validation held out."""
    return Run(f"ppo-{seed}", (*_EVERYTHING, f"seed={seed}"))


def rate_run(rate: float, seed: int, first: str) -> Run:
    """Supervised steps at this rate, judged on a part of the training split that none learns."""
    return _tried(_rate(rate), seed, first, (), lambda _found: (rate, None))


def share_run(share: float, seed: int, first: str, rates: Sequence[float]) -> Run:
    """The same at the best of the rates with this share of clean sources."""
    names = tuple(_rate(rate) for rate in rates)
    return _tried(_share(share), seed, first, names,
                  lambda found: (_best(found, rates)[0], share))  # fmt: skip


def _tried(name: str, seed: int, first: str, after: tuple[str, ...], chosen: Chosen) -> Run:
    def more(found: Mapping[str, Done]) -> tuple[str, ...]:
        return _steps(found, first, *chosen(found))

    settings = (*_EVERYTHING, f"seed={seed}", "ppo.updates=0", "data.tuning=true")
    return Run(name, settings, (first, TIMING.name, *after), more)


def sft_run(seed: int, first: str, rates: Sequence[float], shares: Sequence[float] = ()) -> Run:
    """Supervised steps that cost what the PPO run named `first` did, with the best of what was
    tried.
    """
    names = [_rate(rate) for rate in rates] + [_share(share) for share in shares]

    def more(found: Mapping[str, Done]) -> tuple[str, ...]:
        return _steps(found, first, *_best(found, rates, shares))

    settings = (*_EVERYTHING, f"seed={seed}", "ppo.updates=0")
    tried = names if len(rates) > 1 else []
    return Run(f"sft-{seed}", settings, (first, TIMING.name, *tried), more)


def _best(
    found: Mapping[str, Done], rates: Sequence[float], shares: Sequence[float] = ()
) -> tuple[float, float | None]:
    """The rate of the greatest F1, and the share where one has more than the recipe's own."""
    if len(rates) == 1:
        return rates[0], None
    rate = max(rates, key=lambda one: f1(found[_rate(one)]))
    most = f1(found[_rate(rate)])
    better = [share for share in shares if f1(found[_share(share)]) > most]
    return rate, max(better, key=lambda one: f1(found[_share(one)]), default=None)


def _rate(rate: float) -> str:
    """The name of the run that tries it."""
    return f"rate-{rate:g}"


def _share(share: float) -> str:
    """The name of the run that tries it."""
    return f"share-{share:g}"


def f1(done: Done) -> float:
    """Sentence-level F1 of what the finished run answered."""
    _, tops, bottoms = counted(done.sentences(), "f1", "after")
    return sum(tops) / max(1.0, sum(bottoms))


def _steps(
    found: Mapping[str, Done], first: str, rate: float, share: float | None
) -> tuple[str, ...]:
    steps = equal_steps(found[first], found[TIMING.name])
    own = () if share is None else (f"data.clean_share={share!r}",)
    return (f"sft.steps={steps}", f"sft.save_every={steps}", f"sft.learning_rate={rate!r}", *own)


def equal_steps(ppo: Done, timed: Done) -> int:
    """Supervised steps that cost what PPO (with its warm start) did, by measured CPU seconds.

    Seconds, not tokens: writing a token costs more than learning from one, and only seconds count
    that against PPO. CPU seconds, because other programs must not buy either side more steps. They
    do make each second hold less work, so a step's cost is that of the run's own warm start,
    minutes before its PPO; without one, that of the timed run.
    """
    own = ppo.lines("sft")
    lines = own if len(own) > 1 else timed.lines("sft")  # the first one warms up
    a_step = sum(line["cpu_seconds"] for line in lines[1:]) / (lines[-1]["step"] - lines[0]["step"])
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
    tried = {name: f1(done) for name, done in runs.items() if name.startswith(("rate-", "share-"))}
    words = evidence_words.verdict(found, ppo, seeds) + evidence_words.tried(tried)
    head, rows = evidence_words.table(found)
    course_head, course_rows = evidence_words.course(ppo)
    cost_head, cost_rows = evidence_words.cost(runs)
    about = [(head, rows), (course_head, course_rows), (cost_head, cost_rows)]
    text = "\n\n".join([*words, *(markdown.table(h, r) for h, r in about)]) + "\n"
    facts: dict[str, Json] = {
        "words": list(words),
        "comparisons": [_as_json(one) for one in found],
        "course": [dict(zip(course_head, row, strict=True)) for row in course_rows],
        "cost": [dict(zip(cost_head, row, strict=True)) for row in cost_rows],
    }
    figures = [evidence_words.rates_figure(found), evidence_words.course_figure(ppo)]
    page = tables.page("PPO against its start and against supervised steps", words,
                       [*figures, *(html.table(h, r) for h, r in about)])  # fmt: skip
    write(plan, NAME, facts, text, page)
    return words


def _as_json(one: Comparison) -> Json:
    return {
        "rate": one.rate, "of": one.after, "against": one.before, "seeds": list(one.seeds),
        **asdict(one.found), "difference": one.found.value,
    }  # fmt: skip
