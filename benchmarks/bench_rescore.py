"""What a language model adds to the corrector: F1, over-correction, recall of proposals, speed.

    python benchmarks/bench_rescore.py MODEL lemon/car lemon/cot lemon/gam lemon/mec cscd-ns/dev \
        --data FOLDER --rows 300 [--lm TABLE] [--probe 10] [--json FILE] [--svg FILE]

MODEL is what `cectrain correct --rescore` takes; its weights are those of `cectrain calibrate`, or
the cautious ones. So many rows of each set are drawn by the seed. Scores are of whole sentences: a
correction counts where the answer is the reference. With --probe so many sentences are also judged
by the plain way, which reads each changed text whole and asks the whole vocabulary. `none` in place
of MODEL measures the channel and the combined corrector alone. With --margins it measures, on
erroneous rows alone, what the channel proposes: the share of rows all of whose errors are among the
16 or 24 changes of a piece that the channel finds likeliest, the 16 of 64 that channel and policy
together do, and all, with the changes a row and what is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cecbench.benchmarks.catalogue import load_benchmark
from cecdata.hanzi.readings import have_same_sound, link_sounds
from cecdata.lm.language_model import apply_change
from cectrain.corrector.calibration import find_right_changes
from cectrain.corrector.channel.inverse import load_shipped_channel
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.channel.tables import open_tables
from cectrain.corrector.combined import CombinedProposer, choose_changes, logit
from cectrain.corrector.correction import Change, apply_edits
from cectrain.corrector.edit_guard import cut_pieces
from cectrain.corrector.rescoring import JUDGED, LEAST

JUDGE = "with the model"
THRESHOLDS = (0.1, 0.2, 0.3, LEAST, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
Row = tuple[str, str]
Confidences = list[list[tuple[str, dict[Change, float]]]]  # of each part of each row


def confidences(rows: Sequence[Row], longest: int | None, ask: Callable[..., Any]) -> Confidences:
    """Return the parts of each row with the confidences of their changes."""
    parts = [
        (n, s[p.start : p.end]) for n, (s, _) in enumerate(rows) for p in cut_pieces(s, longest)
    ]
    found: Confidences = [[] for _ in rows]
    for first in range(0, len(parts), 64):
        some = parts[first : first + 64]
        asked = ask([text for _, text in some])
        for (n, text), own in zip(some, asked, strict=True):
            found[n].append((text, own))
    return found


def outcomes(rows: Sequence[Row], found: Confidences, least: float) -> np.ndarray:
    """Return for each row: corrected, changed, erroneous, changed though error-free."""
    table = np.zeros((len(rows), 4))
    for n, ((source, target), parts) in enumerate(zip(rows, found, strict=True)):
        answer = "".join(apply_edits(text, choose_changes(text, own, least)) for text, own in parts)
        wrong, moved = source != target, answer != source
        table[n] = wrong and answer == target, moved, wrong, moved and not wrong
    return table


def figures(table: np.ndarray) -> dict[str, float]:
    """Return percentages of `outcomes`."""
    right, moved, wrong, spoilt = table.sum(0)
    return {
        "f1": 200 * right / max(1, moved + wrong),
        "changed": 100 * spoilt / max(1, len(table) - wrong),
        "precision": 100 * right / max(1, moved),
        "recall": 100 * right / max(1, wrong),
    }


def mean(tables: Sequence[np.ndarray]) -> dict[str, float]:
    """Return the mean of the figures of several sets."""
    each = [figures(table) for table in tables]
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def interval(tables: Sequence[np.ndarray], name: str) -> tuple[float, float]:
    """Return the middle 95 % of a mean figure over 300 resamples of the rows."""
    drawn = np.random.default_rng(1)
    values = [
        mean([table[drawn.integers(0, len(table), len(table))] for table in tables])[name]
        for _ in range(300)
    ]
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def misses(rows: Sequence[Row], found: Confidences) -> tuple[float, float, Counter[str]]:
    """Return the share of erroneous rows whose errors are all proposed, changes a row, and causes.

    A cause is counted for each character or edit that no proposal sets right.
    """
    causes: Counter[str] = Counter()
    whole = erroneous = proposed = 0
    for (source, target), parts in zip(rows, found, strict=True):
        begin, held = 0, []
        for text, own in parts:
            held += [(start + begin, end + begin, new) for start, end, new in own]
            begin += len(text)
        proposed += len(held)
        if source == target:
            continue
        erroneous, before = erroneous + 1, causes.total()
        for start, end, new in find_right_changes(source, target):
            if end - start != len(new):
                causes["length"] += (start, end, new) not in held
                continue
            for at in range(start, end):
                right = new[at - start]
                if right == source[at] or any(
                    low <= at < high and len(text) == high - low and text[at - low] == right
                    for low, high, text in held
                ):
                    continue
                if right in {text for text, _ in load_shipped_channel().row(source[at])}:
                    causes["below the margin"] += 1
                    continue
                alike = have_same_sound(source[at], right) or link_sounds(source[at], right)
                causes[f"not in a confusion set, {'alike in sound' if alike else 'other'}"] += 1
        whole += causes.total() == before
    return 100 * whole / max(1, erroneous), proposed / max(1, len(rows)), causes


def likeliest(own: Mapping[Change, float], most: int | None) -> dict[Change, float]:
    """Return the likeliest changes."""
    return {c: own[c] for c in sorted(own, key=lambda c: (-own[c], c))[:most]}


def by_policy(plain: CombinedProposer, found: Confidences) -> Confidences:
    """Return the 64 likeliest changes of each part with logits by channel and policy."""
    asked = [(text, likeliest(own, 64)) for of_row in found for text, own in of_row]
    ratios = plain.scorer.log_ratios([text for text, _ in asked], [own for _, own in asked])
    logits = iter(
        (text, {c: plain.weights.logit((logit(own[c]), v)) for c, v in of_text.items()})
        for (text, own), of_text in zip(asked, ratios, strict=True)
    )
    return [[next(logits) for _ in of_row] for of_row in found]


def proposals(plain: CombinedProposer, rows: Sequence[Row], margin: float, lm: str | None) -> None:
    """Print what a channel with this margin proposes."""
    settings = plain.channel.settings._replace(margin=margin)
    channel = ChannelProposer(open_tables(lm), settings=settings)

    def probable(texts: list[str]) -> list[dict[Change, float]]:
        held = [reading.posterior for reading in channel.read_pieces(texts)]
        return [{c: p for c, p in own.items() if p >= JUDGED} for own in held]

    found = confidences(rows, plain.longest, probable)
    both = by_policy(plain, found)
    for title, of, most in (
        *(("channel", found, 16), ("channel", found, 24)),
        *(("channel and policy", both, 16), ("all", found, None)),
    ):
        taken = [[(text, likeliest(own, most)) for text, own in parts] for parts in of]
        share, size, causes = misses(rows, taken)
        print(f"  {margin:g} nats, {title}: {share:.1f} % at {size:.1f} a row {dict(causes)}")


def plainly(scorer: Any, text: str, changes: Sequence[Change]) -> None:
    """Judge changes as the probe did: each text whole, states from their common prefix on."""
    import torch

    ids = [scorer._ids(each) for each in (text, *(apply_change(text, c) for c in changes))]  # noqa: SLF001
    width, shared = max(map(len, ids)), 0
    while shared < min(map(len, ids)) and len({row[shared] for row in ids}) == 1:
        shared += 1
    table = torch.tensor([row + [0] * (width - len(row)) for row in ids])
    model = scorer._model  # noqa: SLF001
    with torch.inference_mode():
        states = model.base_model(input_ids=table, use_cache=False).last_hidden_state
        model.lm_head(states[:, max(1, shared) - 1 : width - 1]).float().log_softmax(-1)


def speed(proposer: CombinedProposer, rows: Sequence[Row], count: int) -> None:
    """Print sentences a CPU-second of the model alone, by the plain way and as `correct` asks."""
    texts = [source for source, _ in rows[:count]]
    asked = [
        list(own) for own in proposer.gather_evidence(texts, proposer.channel.read_pieces(texts))
    ]
    scorer = proposer.rescorer.scorer  # type: ignore[union-attr]
    scorer.log_ratios_of(texts[:2], asked[:2])
    start = time.process_time()
    scorer.log_ratios_of(texts, asked)
    ours = time.process_time() - start
    start = time.process_time()
    for text, changes in zip(texts, asked, strict=True):
        if changes:
            plainly(scorer, text, changes)
    whole = time.process_time() - start
    print(
        f"{len(texts)} sentences, judged by the model: {len(texts) / ours:.2f} a CPU-second, "
        f"the plain way {len(texts) / whole:.2f}, ratio {whole / ours:.1f}",
        flush=True,
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="language model, or none")
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--data", type=Path, help="folder of benchmarks, as for `cecbench run`")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--lm")
    parser.add_argument("--probe", type=int, default=0)
    parser.add_argument("--margins", type=float, nargs="+", default=(), help="in nats")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path, help="draw F1 against error-free sentences changed")
    options = parser.parse_args()
    plain = CombinedProposer(lm=options.lm)
    systems: dict[str, Callable[..., Any]] = {
        "channel": lambda texts: [
            {c: r.posterior[c] for c in r.best} for r in plain.channel.read_pieces(texts)
        ],
        "combined": lambda texts: plain.judge_changes(texts, plain.channel.read_pieces(texts)),
    }
    judge = plain
    if options.model != "none":
        judge = CombinedProposer(lm=options.lm, rescore=options.model)
        systems[JUDGE] = lambda texts: judge.judge_changes(texts, judge.channel.read_pieces(texts))
        print(judge.rescorer.weights, judge.rescorer.note)
    tables: dict[str, dict[float, list[np.ndarray]]] = {
        name: {least: [] for least in sorted({*THRESHOLDS, judge.least})} for name in systems
    }
    usual = dict.fromkeys(systems, LEAST) | ({} if judge is plain else {JUDGE: judge.least})
    if options.json or options.svg:
        judge.least = min(THRESHOLDS)  # so that the model judges what the whole curve needs
    for name in options.sets:
        held = [(row.source, row.target) for row in load_benchmark(name, options.data).rows]
        if options.margins:
            held = [pair for pair in held if pair[0] != pair[1]]
        rows = random.Random(options.seed).sample(held, min(options.rows, len(held)))
        for margin in options.margins:
            print(name, flush=True)
            proposals(plain, rows, margin, options.lm)
        if options.margins:
            continue
        if options.probe and judge is not plain:
            speed(judge, rows, options.probe)
        for system, ask in systems.items():
            start = time.process_time()
            found = confidences(rows, plain.longest, ask)
            spent = time.process_time() - start
            for least in tables[system]:
                tables[system][least].append(outcomes(rows, found, least))
            latest = figures(tables[system][usual[system]][-1])
            told = "  ".join(f"{key} {value:.1f}" for key, value in latest.items())
            print(f"{name:12} {system:14} {told}  {len(rows) / spent:.1f} a CPU-second")
        share, size, causes = misses(
            rows, confidences(rows, plain.longest, lambda texts: judge.gather_evidence(
                texts, judge.channel.read_pieces(texts))),
        )  # fmt: skip
        print(
            f"{name:12} all errors proposed {share:.0f} %, {size:.1f} changes a row, missed:",
            ", ".join(f"{count} {cause}" for cause, count in causes.most_common()),
            flush=True,
        )
    if not options.margins:
        report(tables, usual, options.json)
        if options.svg:
            draw(tables, usual, options.svg)


def report(
    tables: dict[str, dict[float, list[np.ndarray]]], usual: dict[str, float], out: Path | None
) -> None:
    """Print the means over the sets at each threshold, with intervals at the usual one."""
    held: dict[str, Any] = {}
    for system, by_threshold in tables.items():
        print(f"\n{system}: means over the sets\nthreshold    F1  changed  precision  recall")
        held[system] = {}
        for least, each in by_threshold.items():
            one = held[system][str(least)] = mean(each)
            print(
                "{:9.2f} {f1:5.1f} {changed:8.1f} {precision:10.1f} {recall:7.1f}".format(
                    least, **one
                )
            )
        least = usual[system]
        f1, spoilt = (interval(by_threshold[least], name) for name in ("f1", "changed"))
        print(
            f"at {least}: F1 {f1[0]:.1f} to {f1[1]:.1f}, changed {spoilt[0]:.1f} to {spoilt[1]:.1f}"
        )
        held[system]["intervals"] = {"f1": f1, "changed": spoilt}
    if out:
        out.write_text(json.dumps(held, indent=1), "utf-8")


def draw(
    tables: dict[str, dict[float, list[np.ndarray]]], usual: dict[str, float], out: Path
) -> None:
    """Draw the curve of each system over its thresholds; whiskers are 95 % intervals of F1."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "curve"}):
        canvas = Figure(figsize=(6.5, 4.2), layout="constrained")
        axes = canvas.add_subplot()
        for system, by_threshold in tables.items():
            means = {least: mean(each) for least, each in by_threshold.items()}
            at = [one["changed"] for one in means.values()]
            f1 = np.array([one["f1"] for one in means.values()])
            low, high = np.array([interval(each, "f1") for each in by_threshold.values()]).T
            axes.errorbar(at, f1, (f1 - low, high - f1), elinewidth=0.4, label=system)
            chosen_at = means[usual[system]]
            axes.plot(chosen_at["changed"], chosen_at["f1"], "ko", markersize=5)
        axes.set_xlabel("error-free sentences changed, %")
        axes.set_ylabel("F1 of whole sentences, %")
        axes.legend(frameon=False)
        canvas.savefig(out, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
