"""A finished pretraining as the folder that is shipped: half the bits, scored, with its card."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cecbench.evaluate import Settings
from cecbench.evaluate import evaluate as run_benchmark
from cecbench.metrics import cscd
from cecbench.metrics.policies import apply_policy
from cecbench.metrics.rows import Row
from cecbench.systems.options import SystemOptions
from cecbench.systems.policy import MODEL, RUN
from cecdata.common import durable
from cecdata.common.codec import Json, decode
from cecdata.common.durable import STATE
from cecdata.common.errors import InputError, VerificationError
from cecdata.common.strict_json import parse
from cectrain.config import PolicyConfig
from cectrain.data import shards
from cectrain.data.shards import HELD_OUT, Pair, open_shards
from cectrain.model import heldout
from cectrain.model.export import CARD, save_model
from cectrain.model.heldout import HeldOut
from cectrain.model.policy import load_policy
from cectrain.pretraining.card import Facts, card
from cectrain.pretraining.config import PretrainConfig
from cectrain.store import metrics_log
from cectrain.store.results import finished

MOST_BYTES = 12_000_000  # of all that is shipped
_ALL = 1_000_000  # more pairs than a validation split that is scored here has
Tell = Callable[[str], None]


def ship(
    run: Path,
    out: Path,
    dataset: Path,
    *,
    benchmarks: Sequence[str] = (),
    bench_data: Path | None = None,
    note: str = "",
    tell: Tell = lambda _line: None,
) -> dict[str, Json]:
    """Write the model of the pretraining in `run` to `out` in fp16, with a card of its scores.

    `dataset`: shards whose validation split it is scored on; `benchmarks`: names that `cecbench`
    finds below `bench_data`; `note` stands in the card beside the scores. Raises InputError for a
    run that is not finished, VerificationError for one that was changed or is too large to ship.
    """
    found = _finished(run)
    staged = run.absolute() / STATE / "shipped"
    _store(run / MODEL, staged)
    pairs = shards.sample(open_shards(dataset), HELD_OUT, _ALL, seed=0)
    tell(f"scoring {len(pairs):,} held-out pairs, as trained and as stored")
    full, half = (_scored(folder, pairs) for folder in (run / MODEL, staged))
    differ = sum(a != b for a, b in zip(full.answers, half.answers, strict=True))
    scores = []
    for name in benchmarks:
        tell(f"scoring {name}")
        scores.append(_benchmark(staged, name, bench_data, run.absolute() / STATE / "bench"))
    facts = _facts(run, found, staged, {**_rates(half), **_detection(pairs, half)}, scores)
    same = f"of {len(full.answers):,} answers {differ:,} differ from those of the fp32 weights"
    text = card(Facts(**{**facts, "same_answers": same, "note": note}))  # type: ignore[arg-type]
    durable.write_text(staged / CARD, text)
    total = sum(path.stat().st_size for path in staged.iterdir())
    if total > MOST_BYTES:
        raise VerificationError(f"{staged}: {total:,} bytes, and {MOST_BYTES:,} may be shipped")
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(staged.iterdir()):
        content = path.read_bytes()
        durable.write_bytes(out / path.name, content)
        (out / path.name).chmod(0o644)
    return {"exact": half.exact, "over_correction": half.over_correction, "differ": differ,
            "bytes": total, **{name: score for name, _, score in scores}}  # fmt: skip


def _finished(run: Path) -> dict[str, Json]:
    found = finished(run)
    if found is None:
        raise InputError(f"{run} holds no finished pretraining: `cectrain pretrain` makes one")
    return found


def _store(model: Path, staged: Path) -> None:
    """The model in fp16; its configuration says fp32, so that CPUs compute in that."""
    save_model(load_policy(PolicyConfig(name=str(model)), 0, "cpu"), staged, {}, "float16")
    path = staged / "config.json"
    settings = parse(path.read_bytes())
    assert isinstance(settings, dict)
    settings["dtype"] = "float32"
    path.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _scored(folder: Path, pairs: Sequence[Pair]) -> HeldOut:
    return heldout.evaluate(load_policy(PolicyConfig(name=str(folder)), 0), pairs, _clean(pairs))


def _clean(pairs: Sequence[Pair]) -> list[str]:
    return sorted({pair.target for pair in pairs})


def _rates(found: HeldOut) -> dict[str, object]:
    return {
        "exact": found.exact,
        **{f"exact, {name}": share for name, share in found.by_operator.items()},
        "left as it was": found.copied,
        "over-correction of clean sentences": found.over_correction,
        "sentences, erroneous and clean": found.rows,
    }


def _detection(pairs: Sequence[Pair], found: HeldOut) -> dict[str, object]:
    """CSCD-NS F1 of sentences, rows of other length reverted; fractions."""
    clean = _clean(pairs)
    sources = [*(pair.source for pair in pairs), *clean]
    targets = [*(pair.target for pair in pairs), *clean]
    triples = zip(sources, targets, found.answers, strict=True)
    rows = apply_policy([Row(str(n), *triple) for n, triple in enumerate(triples)], "revert")
    sums = dict(zip(cscd.FIELDS, cscd.count(rows).sum(axis=0).tolist(), strict=True))
    found_per_cent = {name: cscd.report(sums)[name] for name in ("S_D_f1", "S_C_f1")}
    return {
        name: value / 100 if isinstance(value, float) else "undefined"
        for name, value in found_per_cent.items()
    }


def _benchmark(
    model: Path, name: str, bench_data: Path | None, out: Path
) -> tuple[str, int, float]:
    """The benchmark's name, its rows and S_C_f1 in per cent."""
    settings = Settings(
        benchmark=name,
        system=f"policy:{model}",
        out=out / name.replace("/", "-"),
        data=bench_data,
        options=SystemOptions(batch=64),
    )
    values = run_benchmark(settings)
    return name, int(str(values["rows"])), float(str(values["S_C_f1"]))


def _facts(
    run: Path,
    found: dict[str, Json],
    staged: Path,
    rates: Mapping[str, object],
    scores: Sequence[tuple[str, int, float]],
) -> dict[str, object]:
    told = parse((run / RUN).read_bytes())
    assert isinstance(told, dict)
    weights = staged / "model.safetensors"
    sentences, hardware = found["sentences"], told["hardware"]
    assert isinstance(sentences, dict)
    assert isinstance(hardware, dict)
    return {
        "parameters": found["parameters"],
        "bytes": weights.stat().st_size,
        "sha256": durable.sha256_of(weights).sha256,
        "config": decode(PretrainConfig, told["configuration"], str(run / RUN)),
        "corpus": told["corpus"],
        "benchmarks": told["benchmarks"],
        "kept": sentences["kept"],
        "left_out": sentences["left_out"],
        "curve": _curve(run),
        "machine": f"{hardware['machine']}, {hardware['threads']} thread(s), "
        f"{len(hardware['gpus'])} GPUs; {_hours(found)} "  # type: ignore[arg-type]
        f"Source tree: commit {str(told['git_commit'])[:12] or 'not known'}.",
        "held_out": rates,
        "scores": scores,
    }


def _hours(found: dict[str, Json]) -> str:
    minutes = float(str(found["seconds_of_the_last_part"])) / 60
    return f"{minutes:.0f} minutes from the last start to the end, a resume being a start."


def _curve(run: Path) -> list[dict[str, float]]:
    lines = (run / metrics_log.FILE).read_text("utf-8").splitlines()
    return [line for line in map(json.loads, lines) if line["phase"] == "heldout"]
