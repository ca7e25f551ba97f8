"""Make the folder of the built-in policy from a finished pretraining.

    python -m experiments pretrain CLEAN.parquet --out out/pretrain --decontaminate car.txt
    python -m experiments ship out/pretrain --out cectrain/weights --dataset out/data \
        --benchmark lemon/car --data BENCHMARKS

The weights are stored in fp16 and scored as stored. The model card (card.md) is filled in from the
files of the run and from these scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from cecbench.run import Settings, evaluate
from cecbench.scorers import score
from cecdata.common import durable
from cecdata.common.codec import Json, decode, parse
from cecdata.common.durable import STATE
from cecdata.common.errors import InputError, VerificationError
from cectrain.config import PolicyConfig
from cectrain.corrector.folder import MODEL, RUN
from cectrain.data import shards
from cectrain.data.shards import HELD_OUT, Pair, open_shards
from cectrain.model.policy import CARD, load_policy, save_model
from cectrain.run import heldout, metrics_log
from cectrain.run.heldout import HeldOut
from cectrain.run.results import read_summary
from experiments.pretraining.config import PretrainConfig, Stage

TEMPLATE = Path(__file__).with_name("card.md")
MOST_BYTES = 12_000_000  # of the shipped folder
ALL = 1_000_000  # more pairs than any validation split that is scored here has
Score = tuple[str, int, float]  # benchmark, rows, S_C_f1 in per cent


def ship(
    run: Path,
    out: Path,
    dataset: Path,
    *,
    benchmarks: Sequence[str] = (),
    bench_data: Path | None = None,
    note: str = "",
    before: str = "",
) -> dict[str, Json]:
    """Write the model of the pretraining in `run` to `out` in fp16, and return its scores.

    `dataset` holds the shards whose validation split is scored; `benchmarks` are names that
    `cecbench` finds in `bench_data`. `note` enters the card beside the scores, and `before` says
    how the run's initial weights were made. Raise InputError for a run that is not finished,
    VerificationError for one that was changed or is too large.
    """
    summary = read_summary(run)
    if summary is None:
        raise InputError(
            f"{run} holds no finished pretraining: run `python -m experiments pretrain` first"
        )
    staged = run.absolute() / STATE / "shipped"
    store(run / MODEL, staged)
    pairs = shards.sample(open_shards(dataset), HELD_OUT, ALL, seed=0)
    clean = sorted({pair.target for pair in pairs})
    full, half = (
        heldout.evaluate(load_policy(PolicyConfig(name=str(folder))), pairs, clean)
        for folder in (run / MODEL, staged)
    )
    differ = sum(a != b for a, b in zip(full.answers, half.answers, strict=True))
    rates = {**rates_of(half), **f1_of(pairs, clean, half)}
    scores = [scored(staged, name, bench_data, run / STATE / "bench") for name in benchmarks]
    stored = f"of {len(full.answers):,} answers {differ:,} differ from those of the fp32 weights"
    weights = staged / "model.safetensors"
    text = card(run, summary, weights, rates, scores, stored, note=note, before=before)
    durable.write_text(staged / CARD, text)
    size = sum(path.stat().st_size for path in staged.iterdir())
    if size > MOST_BYTES:
        raise VerificationError(f"{staged}: {size:,} bytes, but at most {MOST_BYTES:,} may ship")
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(staged.iterdir()):
        durable.write_bytes(out / path.name, path.read_bytes())
        (out / path.name).chmod(0o644)
    return {
        "exact": half.exact,
        "over_correction": half.over_correction,
        "differ": differ,
        "bytes": size,
        **{name: score for name, _, score in scores},
    }


def store(model: Path, staged: Path) -> None:
    """Save the model in fp16 with a configuration that says fp32, so that CPUs compute in fp32."""
    save_model(load_policy(PolicyConfig(name=str(model)), "cpu"), staged, {}, "float16")
    path = staged / "config.json"
    settings = parse(path.read_bytes())
    assert isinstance(settings, dict)
    settings["dtype"] = "float32"
    path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def rates_of(scores: HeldOut) -> dict[str, object]:
    return {
        "exact": scores.exact,
        **{f"exact, {name}": share for name, share in scores.by_operator.items()},
        "left as it was": scores.copied,
        "over-correction of clean sentences": scores.over_correction,
        "sentences, erroneous and clean": scores.rows,
    }


def f1_of(pairs: Sequence[Pair], clean: Sequence[str], scores: HeldOut) -> dict[str, object]:
    """Return the CSCD-NS sentence-level F1 as fractions.

    An answer whose length differs from its source counts as the source.
    """
    sources = [*(pair.source for pair in pairs), *clean]
    targets = [*(pair.target for pair in pairs), *clean]
    triples = zip(sources, targets, scores.answers, strict=True)
    values = score(((str(n), *triple) for n, triple in enumerate(triples)), "cscd").values
    report = {name: values.get(name) for name in ("S_D_f1", "S_C_f1")}
    return {n: v / 100 if isinstance(v, float) else "undefined" for n, v in report.items()}


def scored(model: Path, name: str, bench_data: Path | None, out: Path) -> Score:
    settings = Settings(
        benchmark=name,
        system=f"policy:{model}",
        out=out.absolute() / name.replace("/", "-"),
        data=bench_data,
        options={"batch": 64},
    )
    values = evaluate(settings)
    return name, int(str(values["rows"])), float(str(values["S_C_f1"]))


def card(
    run: Path,
    summary: dict[str, Json],
    weights: Path,
    rates: dict[str, object],
    scores: Sequence[Score],
    stored: str,
    *,
    note: str,
    before: str,
) -> str:
    """Return the model card, in Markdown."""
    facts = json.loads((run / RUN).read_text("utf-8"))
    config = decode(PretrainConfig, facts["configuration"], str(run / RUN))
    sentences: dict[str, dict[str, int]] = summary["sentences"]  # type: ignore[assignment]
    size = f"{weights.stat().st_size:,}"
    properties = [
        ("parameters", f"{summary['parameters']:,}"),
        ("width × layers", f"{config.hidden} × {config.layers}"),
        ("vocabulary", "8,105 standard characters, ASCII, punctuation, bytes, placeholders"),
        ("stored as", f"fp16, {size} bytes; {stored}"),
        ("SHA-256 of model.safetensors", f"`{durable.sha256_of(weights).sha256}`"),
    ]
    kept = sentences["kept"]
    licences = [(name, config.origins[name].licence, f"{n:,}") for name, n in kept.items()]
    flags = [f"--decontaminate {name}" for name in facts["benchmarks"]]
    if facts.get("start"):
        flags += ["--recipe cooldown", "--start START"]
        before = f"The run started from weights with the digest `{facts['start'][:12]}…`. {before}"
    command = ["python -m experiments pretrain", *facts["corpus"], "--out out/pretrain", *flags]
    return TEMPLATE.read_text("utf-8").format(
        config=config,
        note=note,
        before=before,
        machine=machine_of(facts, summary),
        command=" ".join(command),
        corpus=files(facts["corpus"]),
        benchmarks=files(facts["benchmarks"]),
        kept=f"{sum(kept.values()):,}",
        held_out=f"{config.held_out:,}",
        left_out=", ".join(f"{reason} {n:,}" for reason, n in sentences["left_out"].items()),
        properties=table(("", ""), properties),
        origins=table(("origin", "licence", "sentences"), licences),
        stages=table(
            ("stage", "steps", "tokens a step", "characters", "recipe"),
            map(stage_row, config.stages),
        ),
        curve=table(("step", "exact", "over-correction"), curve(run)),
        rates=table(("", "fraction"), [(name, number(value)) for name, value in rates.items()]),
        scores=table(
            ("benchmark", "rows", "S_C_f1"),
            [(name, f"{rows:,}", f"{score:.2f}") for name, rows, score in scores],
        ),
    )


def machine_of(facts: dict[str, dict[str, object]], summary: dict[str, Json]) -> str:
    hardware = facts["hardware"]
    minutes = float(str(summary["seconds_of_the_last_part"])) / 60
    return (
        f"{hardware['machine']}, {hardware['threads']} thread(s), "
        f"{len(hardware['gpus'])} GPUs; "  # type: ignore[arg-type]
        f"{minutes:.0f} minutes from the last start or resume to the end. "
        f"Source tree: commit {str(facts['git_commit'])[:12] or 'not known'}."
    )


def curve(run: Path) -> list[tuple[str, ...]]:
    return [
        (
            f"{line['step']:,.0f}",
            f"{line['heldout_exact']:.3f}",
            f"{line['heldout_over_correction']:.3f}",
        )
        for line in metrics_log.read_lines(run / metrics_log.FILE, "heldout")
    ]


def stage_row(stage: Stage) -> tuple[object, ...]:
    span = f"{stage.shortest}–{stage.longest}"
    if stage.kind == "copy":
        return ("copying", stage.steps, stage.tokens, span, "characters drawn evenly")
    parts = [stage.recipe]
    if stage.density != 1:
        parts.append(f"rates × {stage.density:g}")
    if stage.mixed:
        parts.append(f"{stage.mixed:.0%} of several operators")
    if stage.prior:
        parts.append("operators " + " ".join(f"{n} {p:g}" for n, p in stage.prior.items()))
    parts.append(f"{stage.clean:.0%} clean")
    if stage.words:
        parts.append(f"{stage.words:.0%} rows of words of the lexicon")
    if stage.scattered:
        parts.append(f"{stage.scattered:.0%} rows of any signs, to be copied")
    return ("pairs", stage.steps, stage.tokens, span, ", ".join(parts))


def files(digests: dict[str, str]) -> str:
    return ", ".join(f"`{name}` ({sha256[:12]}…)" for name, sha256 in digests.items()) or "none"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def number(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
