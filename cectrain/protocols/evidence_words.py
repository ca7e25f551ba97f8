"""What the runs of the evidence say: sentences, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cecbench.report.figures import Point, curves, intervals
from cecdata.common.errors import CecError
from cectrain.protocols import tables
from cectrain.protocols.frame import Done
from cectrain.protocols.paired import Difference

#: rate → what it is called
RATES = {
    "exact": "exact corrections",
    "over_correction": "over-correction",
    "f1": "sentence-level F1",
}
_NAMES = {"ppo": "PPO", "sft": "SFT", "start": "start"}
_PARTS = 10  # of a run, in the figure of its course
_QUANTITIES = {
    "reward": "reward",
    "exact_rate": "exact rate of candidates",
    "zero_advantage_share": "groups without advantage",
    "reached_share": "right answer among the candidates",
    "mixed_share": "right and wrong candidates",
    "over_correction_rate": "over-correction of candidates",
    "entropy": "entropy, nats",
    "clip_share": "clipped tokens",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One question: which rate, after what, against what, over which seeds."""

    rate: str  # a key of RATES
    after: str  # ppo or sft
    before: str  # start or sft
    seeds: tuple[int, ...]
    found: Difference


def cpu_seconds(done: Done) -> float:
    """What a run spent on training, its evaluations apart."""
    by_phase = done.summary.get("cpu_seconds")
    if not isinstance(by_phase, dict) or not by_phase:
        raise CecError(f"{done.folder}: its summary has no CPU seconds: remove it, and run again")
    return sum(float(str(value)) for value in by_phase.values())


def verdict(
    found: Sequence[Comparison], ppo: Mapping[str, Done], seeds: Sequence[int]
) -> list[str]:
    """What was found, in sentences; where PPO is not above, why, from what was measured."""
    words = []
    for after, before, name in (("ppo", "start", "its start"), ("ppo", "sft", "further SFT")):
        for rate, what in RATES.items():
            one = _widest(found, rate, after, before)
            if one is None:
                words.append(f"PPO against {name}, {what}: not measured yet.")
                continue
            words.append(_sentence(one, name, what))
    known = max((one.seeds for one in found), key=len, default=())
    if len(known) < len(seeds):
        words.append(f"Only {len(known)} of {len(seeds)} seeds are finished.")
    return words + _why(found, ppo)


def _why(found: Sequence[Comparison], ppo: Mapping[str, Done]) -> list[str]:
    """Why PPO is not above, and last what its candidates were, which both reasons draw on."""
    words = []
    above = _widest(found, "exact", "ppo", "start")
    if above is not None and not above.found.above:
        words.append("Why: " + reason(ppo))
    beyond, f1 = (_widest(found, rate, "ppo", "sft") for rate in ("exact", "f1"))
    if beyond is not None and not beyond.found.above:
        if f1 is not None and f1.found.above:
            words.append(
                "Further SFT corrects as many by changing more of everything; F1 counts what was "
                "changed wrongly, too, and there PPO is above."
            )
        else:
            words.append(
                "Why not above SFT: a supervised step learns from every character of the target, "
                "a group of candidates from their ranks alone."
            )
    return [*words, *_share_words(ppo)] if words else []


def tried(scores: Mapping[str, float]) -> list[str]:
    """What the supervised side chose from; `scores`: name of the run that tried it → its F1."""
    if not scores:
        return []
    told = ", ".join(f"{name.replace('-', ' ', 1)} ({f1:.1%})" for name, f1 in scores.items())
    what = "Tried for further SFT, rates and then shares of clean sources at the best of them"
    return [f"{what}, F1 on a tenth of the training split: {told}."]


def reason(ppo: Mapping[str, Done]) -> str:
    """Why PPO did not raise the exact rate, as far as its own figures tell."""
    first, last = _ends(ppo, "reward")
    exact_first, exact_last = _ends(ppo, "exact_rate")
    if last - first < 0.005:
        moved = f"the reward itself hardly moved ({first:.3f} → {last:.3f})"
        return f"{moved}: too few or too small steps."
    if exact_last <= exact_first:
        return (
            f"the reward rose ({first:.3f} → {last:.3f}) and the candidates' exact rate did not "
            f"({exact_first:.3f} → {exact_last:.3f}): the reward pays for something else."
        )
    return (
        f"the candidates' exact rate rose ({exact_first:.3f} → {exact_last:.3f}) and that of "
        "greedy answers did not: the likeliest answer was right already, or training pairs were "
        "learnt that are not held out."
    )


def _share_words(ppo: Mapping[str, Done]) -> list[str]:
    zero, reached, mixed = (
        [x for one in ppo.values() for x in _values(one, name)]
        for name in ("zero_advantage_share", "reached_share", "mixed_share")
    )
    if not zero:
        return []
    words = f"{np.mean(zero):.0%} of the groups had no advantage and taught nothing."
    if reached and mixed:
        words += (
            f" The right answer was among the candidates of {np.mean(reached):.0%} of the "
            f"erroneous sources, beside wrong ones in {np.mean(mixed):.0%}: only there is "
            "exactness taught, and what no candidate reaches no reward can raise."
        )
    return [words]


def _ends(ppo: Mapping[str, Done], name: str) -> tuple[float, float]:
    """Means over the first and the last tenth of the batches, over all runs."""
    ends = []
    for one in ppo.values():
        values = _values(one, name)
        tenth = max(1, len(values) // 10)
        ends.append((np.mean(values[:tenth]), np.mean(values[-tenth:])))
    first, last = np.mean(ends, axis=0)
    return float(first), float(last)


def _values(done: Done, name: str) -> list[float]:
    return [line[name] for line in done.lines("ppo") if name in line]


def _widest(found: Sequence[Comparison], rate: str, after: str, before: str) -> Comparison | None:
    about = [c for c in found if (c.rate, c.after, c.before) == (rate, after, before)]
    return max(about, key=lambda one: len(one.seeds), default=None)


def _sentence(one: Comparison, name: str, what: str) -> str:
    d = one.found
    if one.rate != "over_correction":
        relation = "above" if d.above else "below" if d.below else "not told apart from"
    else:
        relation = "worse than" if d.above else "better than" if d.below else "not told apart from"
    return (
        f"PPO is {relation} {name} in {what}: {d.before:.1%} → {d.after:.1%}, difference "
        f"{100 * d.value:+.1f} points, 95 % interval [{100 * d.low:+.1f}, {100 * d.high:+.1f}], "
        f"{len(one.seeds)} seed{'s' if len(one.seeds) > 1 else ''}."
    )


def table(found: Sequence[Comparison]) -> tuple[list[str], list[list[str]]]:
    head = ["rate", "after", "against", "seeds", "before %", "after %", "difference", "95 %"]
    rows = [
        [
            one.rate.replace("_", "-"), _NAMES[one.after], _NAMES[one.before], _seeds(one.seeds),
            tables.percent(one.found.before), tables.percent(one.found.after),
            f"{100 * one.found.value:+.2f}",
            f"{100 * one.found.low:+.2f} … {100 * one.found.high:+.2f}",
        ]
        for one in found
    ]  # fmt: skip
    return head, rows


def course(ppo: Mapping[str, Done]) -> tuple[list[str], list[list[str]]]:
    head = ["run", "batches", *_QUANTITIES]
    rows = []
    for name, done in ppo.items():
        cells = []
        for quantity in _QUANTITIES:
            known = bool(_values(done, quantity))
            first, last = _ends({name: done}, quantity) if known else (0.0, 0.0)
            cells.append(f"{first:.3f} → {last:.3f}" if known else "–")
        rows.append([name, str(len(done.lines("ppo"))), *cells])
    return head, rows


def cost(runs: Mapping[str, Done]) -> tuple[list[str], list[list[str]]]:
    head = ["run", "CPU seconds", "supervised steps", "PPO batches", "seconds in all"]
    rows = [
        [name, f"{cpu_seconds(done):.0f}", f"{done.number('sft_steps') or 0:.0f}",
         f"{done.number('ppo_batches') or 0:.0f}", f"{done.number('seconds') or 0:.0f}"]
        for name, done in runs.items()
    ]  # fmt: skip
    return head, rows


def rates_figure(found: Sequence[Comparison]) -> str:
    labels, series = [], dict[str, dict[str, Point]]()
    for rate in RATES:
        label = rate.replace("_", "-")
        for after in ("ppo", "sft"):
            one = _widest(found, rate, after, "start")
            if one is None:
                continue
            d = one.found
            # Each beside the start of its own seeds: one side may have more of them finished.
            of = f"{len(one.seeds)} seed{'s' if len(one.seeds) > 1 else ''}"
            series.setdefault(f"start, {of}", {})[label] = Point(100 * d.before)
            series.setdefault(f"{_NAMES[after]}, {of}", {})[label] = Point(
                100 * d.after, 100 * (d.before + d.low), 100 * (d.before + d.high),
                "the interval is that of the difference from the start",
            )  # fmt: skip
        labels.append(label)
    return intervals("Held-out sentences, %", labels, series, {})


def course_figure(ppo: Mapping[str, Done]) -> str:
    labels = [f"{100 * (part + 1) // _PARTS}" for part in range(_PARTS)]
    series = {}
    for quantity in ("reward", "exact_rate", "zero_advantage_share"):
        by_run = [np.array(_values(done, quantity)) for done in ppo.values()]
        parts = [np.array_split(values, _PARTS) for values in by_run if len(values) >= _PARTS]
        if parts:
            means = np.mean([[part.mean() for part in run] for run in parts], axis=0)
            points = {x: Point(100 * float(y)) for x, y in zip(labels, means, strict=True)}
            series[_QUANTITIES[quantity]] = points
    return curves("Candidates during training, % (mean over seeds)", labels, series, " %")


def _seeds(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
