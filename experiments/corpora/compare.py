"""Compare error corpora by the corrector that each one trains; all else is equal.

    python -m experiments corpora CLEAN.parquet --data BENCHMARKS --out OUT [--seeds 1 2 3]
        [--only b-paper c-typed] [--peers PYTHON] [--policy START | --rescore MODEL]
        [--corpora factors.toml]

With --policy the corrector is a neural one: the policy of the folder START, which has learned to
copy and to denoise but has seen no confusion set (neutral.toml), takes the same supervised steps on
the pairs of each corpus (neural.py). Without it the corrector is a noisy channel: the shipped
n-gram model, which has seen no error, times P(wrong | right) as counted in the pairs. With
--rescore MODEL, a language model judges the changes that this channel proposes, with the same
weights for every corpus: what a strong corrector would learn of each (rescored.py). For each
variant of corpora.toml and each seed the same sentences get errors, and the corrector learns from
the pairs. The confidence threshold for edits is chosen on held-out pairs of the same variant, half
of them clean: it has the best sentence-level F1 among those that change at most 5 % of the clean
sentences. OUT/VARIANT/SEED holds the predictions and score.json; a variant that has its score.json
is not run again. From these files the script prints the table and writes OUT/compare.html, .md and
.json.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from operator import ne
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import tomllib

import cecbench
from cecdata.builds import pairs as built
from cecdata.common.durable import sha256_of, write_text
from cecdata.config import Config, load
from cecdata.corpus.ids import hash_texts, is_validation, make_id_column
from cecdata.lm import open_scorer
from cecdata.lm.ngrams import find_model
from cecdata.models.hub import hash_model
from cecdata.perturbation.engine import Perturber
from cecdata.shards.manifest import fingerprint
from cecdata.shards.schema import SENTENCE
from cectrain.corrector.channel.inverse import Channel
from cectrain.corrector.channel.layout import Settings
from cectrain.corrector.channel.proposer import ChannelProposer
from cectrain.corrector.channel.tables import make_tables
from cectrain.corrector.correction import Edit, apply_edits
from cectrain.corrector.rescoring import MARGIN
from experiments.corpora.neural import Neural, trained
from experiments.corpora.rescored import Rescored
from experiments.corpora.results import SETS, write_results

_KEPT = 60  # right texts of a wrong one, as tools/channel/invert.py keeps them
open_judge = cache(open_scorer)
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / name) for name in ("tools/ngram", "benchmarks")]
from build import HELD_OUT, ORIGINS
from listing import Listing, tables

SETTINGS = ("sentences", "steps", "clean", "sample", "tuned", "error")
OF_TEXT = ("origins", "sentences")  # of a variant: which clean text it has
TUNED = 3000  # half of these held-out sentences are left clean
CONFIDENCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MOST_CHANGED = 0.05
FAILED = "failed on "  # what peers.py prints of a generator's errors
UNSEEN = 5.0  # added to a character's error count, so that rare errors get lower probabilities
FILES = {of: "cscd-ns/dev.tsv" if of == "cscd-ns" else f"lemon_v2/{of}.txt" for of in SETS}
Pairs = list[tuple[str, str]]


@cache
def clean(
    corpus: Path, count: int, tuned: int, origins: tuple[str, ...]
) -> tuple[list[str], list[str]]:
    """Return the sentences to train on and to tune on, the same for every variant of `origins`."""
    frame = pl.read_parquet(corpus, glob=False).filter(pl.col("origin").is_in(origins))
    frame = frame.filter(pl.col("text").str.len_chars().is_between(8, 64)).sort("text")
    held = pl.Series(
        is_validation(hash_texts(frame["text"].to_arrow().cast(pa.string())), HELD_OUT)
    )
    one, other = frame.filter(~held)["text"], frame.filter(held)["text"]
    if len(one) < count or len(other) < tuned:
        raise SystemExit(
            f"{corpus} has {len(one):,} sentences of these origins to train on and {len(other):,} "
            f"to tune on: lower --sentences {count} or --tuned {tuned}"
        )
    return one.sample(count, seed=1).to_list(), other.sample(tuned, seed=1).to_list()


def configured(variant: dict[str, object], seed: int) -> Config:
    """Return the recipe of a variant with its settings.

    `density` multiplies the rates. `only` keeps the operators it names, and `without` switches off
    those it names. What is OF_TEXT is left out.
    """
    asked = {key: value for key, value in variant.items() if key not in OF_TEXT}
    recipe = str(asked.pop("recipe"))
    prior = dict(load(recipe).prior)
    off = set(asked.pop("without", ())) | prior.keys() - set(asked.pop("only", prior))
    asked["prior"] = {name: 0.0 if name in off else share for name, share in prior.items()}
    density = float(asked.pop("density", 1.0))
    usual = load(recipe)
    asked["rate"] = {name: rate * density for name, rate in usual.rate.items()}
    asked["mixed_rate"] = usual.mixed_rate * density
    return load(recipe, **{"copies": 1, "seed": seed, **asked})


def corrupted(texts: list[str], variant: dict[str, object], seed: int, peers: str) -> Pairs:
    """Return the pairs (source, target) that a variant makes of the texts.

    A recipe makes `copies` pairs of each text. A pair without an error is kept.
    """
    asked = dict(variant)
    if asked.pop("listing", False):
        drawn = Listing(tables(), seed)
        return [drawn.perturb(text, 1)[0] for text in texts]
    if program := asked.pop("program", None):
        command = [peers, str(HERE / program[0]), *program[1:], str(seed)]
        done = subprocess.run(
            command, input="\n".join(texts), capture_output=True, text=True, check=True
        )
        pairs = [tuple(line.split("\t")) for line in done.stdout.removesuffix("\n").split("\n")]
        if [pair[1:] for pair in pairs] != [(text,) for text in texts]:
            raise SystemExit(f"{program}: expected one line, source TAB target, for each sentence")
        if failed := [line for line in done.stderr.splitlines() if line.startswith(FAILED)]:
            print(f"{program}: {failed[-1]}", file=sys.stderr)
        return [(pair[0], pair[1]) for pair in pairs]
    config = configured(asked, seed)
    text = pa.array(texts, pa.string())
    origin = pa.array([""] * len(texts), pa.string())
    batch = pa.RecordBatch.from_arrays([make_id_column(text), text, origin], schema=SENTENCE)
    perturber = Perturber.calibrated(config, text)
    if "filters" in asked:
        table = built.corrupted(perturber, batch, len(texts))[0].table
    else:
        table = perturber.pairs(batch).table
    return list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))


def counted(pairs: Pairs, name: str) -> Channel:
    """Return the channel P(wrong | right, an error there), estimated from the pairs by counting.

    Pairs whose source and target differ in length are ignored.
    """
    of_pair: Counter[tuple[str, str]] = Counter()
    for source, target in pairs:
        if len(source) == len(target) and source != target:
            both = zip(source, target, strict=True)
            of_pair.update((wrong, right) for wrong, right in both if wrong != right)
    of_right: Counter[str] = Counter()
    for (_, right), count in of_pair.items():
        of_right[right] += count
    rows: dict[str, list[tuple[str, float]]] = {}
    for (wrong, right), count in of_pair.items():
        chance = float(np.log(count / (of_right[right] + UNSEEN)))
        rows.setdefault(wrong, []).append((right, chance))
    for wrong, row in rows.items():
        rows[wrong] = sorted(row, key=lambda item: (-of_pair[wrong, item[0]], item[0]))[:_KEPT]
    observed = tuple(sorted(rows))
    flat = [item for sign in observed for item in rows[sign]]
    return Channel(
        recipe=name,
        observed=observed,
        bounds=np.cumsum([0, *(len(rows[sign]) for sign in observed)]).astype(np.int64),
        right=tuple(right for right, _ in flat),
        log_prob=np.array([chance for _, chance in flat], np.float32),
        repeated=None,
        missing=None,
    )


def answers(sources: list[str], proposed: list[list[Edit]], least: float) -> list[str]:
    return [
        apply_edits(source, [edit for edit in edits if edit.confidence >= least])
        for source, edits in zip(sources, proposed, strict=True)
    ]


def threshold(proposer: ChannelProposer | Neural | Rescored, pairs: Pairs) -> float:
    """Return the confidence threshold with the best F1 of those that change few clean sentences.

    If none does, return the highest, and say so on stderr.
    """
    half = len(pairs) // 2
    rows = pairs[:half] + [(target, target) for _, target in pairs[half:]]
    proposed = proposer.propose([source for source, _ in rows])
    best = (-1.0, CONFIDENCES[-1])
    for least in CONFIDENCES:
        got = answers([source for source, _ in rows], proposed, least)
        spoilt = sum(a != t for a, (_, t) in zip(got[half:], rows[half:], strict=True))
        right = sum(a == t != s for a, (s, t) in zip(got, rows, strict=True))
        changed = sum(a != s for a, (s, _) in zip(got, rows, strict=True))
        wrong = sum(s != t for s, t in rows)
        if spoilt <= MOST_CHANGED * (len(rows) - half):
            best = max(best, (2 * right / max(1, changed + wrong), least))
    if best[0] < 0:
        share = 100 * spoilt / (len(rows) - half)  # of the last and highest
        print(f"the threshold {best[1]} changes {share:.1f} % of the clean pairs", file=sys.stderr)
    return best[1]


def benchmark(data: Path, name: str) -> Pairs:
    """Return the pairs (source, target) of a set as published."""
    lines = (data / FILES[name]).read_text("utf-8").splitlines()
    if name == "cscd-ns":
        return [(parts[1], parts[2]) for parts in (line.split("\t") for line in lines)]
    pairs = [line.replace(" ", "").split("\t") for line in lines]
    return [(pair[0], pair[1]) for pair in pairs]


def counting(
    channel: Channel, error: float | None, judge: str | None = None
) -> ChannelProposer | Rescored:
    """Return the corrector of a channel that was counted; `error` replaces the model's cost.

    judge: a language model that judges what the channel proposes.
    """
    model = find_model("words")
    settings = Settings(error=model.error if error is None else error)
    if judge:
        settings = settings._replace(margin=MARGIN)
    proposer = ChannelProposer(make_tables(model, channel), least=0.0, settings=settings)
    return Rescored(proposer, channel, open_judge(judge)) if judge else proposer


def changing(rows: Pairs, proposed: list[list[Edit]], share: float) -> float:
    """Return the least confidence at which no more than a share of the error-free rows change."""
    pairs = zip(rows, proposed, strict=True)
    highest = [max((e.confidence for e in edits), default=0.0) for (s, t), edits in pairs if s == t]
    if not highest:
        return 0.0
    highest.sort(reverse=True)
    return float(np.nextafter(highest[int(share * len(highest))], 2.0))


def scored(
    rows: Pairs, proposed: list[list[Edit]], least: float
) -> tuple[list[str], dict[str, object]]:
    """Return the answers with the edits of at least this confidence, and their scores."""
    sources, targets = (list(side) for side in zip(*rows, strict=True))
    got = answers(sources, proposed, least)
    score = cecbench.score(sources, targets, got)
    at = score.scorer.fields.index("S_C_tp")
    return got, {
        "f1": score.headline,
        "over_correction": score.values["behaviour.over_correction_rate"],
        "signature": score.values["signature"],
        "counts": score.counts[:, at : at + 3].tolist(),
    }


def settings_of(
    asked: argparse.Namespace, variant: dict[str, object], seed: int
) -> dict[str, object]:
    """Return what a score depends on: the options, and digests of what is read."""
    settings = {key: getattr(asked, key) for key in SETTINGS} | variant
    settings["policy"] = hash_model(asked.policy) if asked.policy else None
    if asked.rescore:
        settings["judge"] = open_judge(asked.rescore).identity
    settings["clean text"] = sha256_of(asked.corpus).sha256
    settings["benchmarks"] = [sha256_of(asked.data / file).sha256 for file in FILES.values()]
    if "recipe" in variant:
        settings["digest of recipe"] = fingerprint({"recipe": configured(variant, seed)})
    return settings


def keep(folder: Path, settings: dict[str, object]) -> None:
    """Write the settings of a run to its new folder; refuse a folder of other ones.

    So neither a score nor a checkpoint of other settings is taken for one of these.
    """
    file = folder / "settings.json"
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        write_text(file, json.dumps(settings))
    made = json.loads(file.read_text("utf-8")) if file.is_file() else None
    if made != settings:
        raise SystemExit(
            f"{folder} is of other settings:\n{made}\nThey are now\n{settings}\n"
            "Choose another --out, or remove the folder."
        )


def run(asked: argparse.Namespace, name: str, seed: int) -> None:
    """Train and score one variant with one seed, unless its score.json exists."""
    folder = asked.out / name / str(seed)
    variant = tomllib.loads(asked.corpora.read_text("utf-8"))[name]
    keep(folder, settings_of(asked, variant, seed))
    if (folder / "score.json").is_file():
        return
    began = time.process_time()
    origins = tuple(variant.get("origins", ORIGINS))
    texts = clean(asked.corpus, variant.get("sentences", asked.sentences), asked.tuned, origins)
    pairs = corrupted(texts[0], variant, seed, asked.peers)
    channel = counted(pairs, name)
    proposer = (
        trained(asked.policy, pairs, asked.steps, asked.clean, seed, folder / "checkpoints")
        if asked.policy
        else counting(channel, asked.error, asked.rescore)
    )
    tuning = corrupted(texts[1], {**variant, "copies": 1}, seed + 1000, asked.peers)
    random.Random(seed).shuffle(tuning)
    least = threshold(proposer, tuning)
    changed = [sum(map(ne, s, t)) for s, t in pairs if len(s) == len(t) and s != t]
    result: dict[str, Any] = {
        "pairs": len(pairs),
        "usable": len(changed),
        "characters": sum(changed) / max(1, len(changed)),
        "confusions": len(channel.right),
        "least": least,
        "sets": {},
        "equal": {},
    }
    for of in SETS:
        rows = benchmark(asked.data, of)
        if asked.sample and asked.sample < len(rows):
            rows = random.Random(0).sample(rows, asked.sample)
        proposed = proposer.propose([source for source, _ in rows])
        got, result["sets"][of] = scored(rows, proposed, least)
        (folder / f"{of}.txt").write_text("\n".join(got) + "\n", "utf-8")
        _, result["equal"][of] = scored(rows, proposed, changing(rows, proposed, MOST_CHANGED))
    result["cpu_s"] = round(time.process_time() - began, 1)
    work = folder / "score.json.part"
    work.write_text(json.dumps(result), "utf-8")
    work.replace(folder / "score.json")
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # only a neural corrector has any
    print(f"{name} {seed}: {result['cpu_s']} s of CPU", file=sys.stderr, flush=True)


def arguments(words: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser("python -m experiments corpora", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--corpora", type=Path, default=HERE / "corpora.toml")
    parser.add_argument("--sentences", type=int, default=60_000)
    parser.add_argument("--policy", type=Path, help="Start policy, by the command pretrain.")
    parser.add_argument("--rescore", help="Language model that judges what a channel proposes.")
    parser.add_argument("--steps", type=int, default=1000, help="Supervised steps with --policy.")
    parser.add_argument("--clean", type=float, default=0.25, help="Clean share with --policy.")
    parser.add_argument("--sample", type=int, help="Score this many random sentences of a set.")
    parser.add_argument("--tuned", type=int, default=TUNED, help="Held-out pairs to tune on.")
    parser.add_argument("--error", type=float, help="Cost of an error, in nats; the model's.")
    parser.add_argument("--peers", default=sys.executable, help="Python with the peers installed.")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    asked = arguments(words)
    known = list(tomllib.loads(asked.corpora.read_text("utf-8")))
    names = asked.only or known
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"{asked.corpora} has no {', '.join(unknown)}; it has {', '.join(known)}")
    for seed in asked.seeds:
        for name in names:
            try:
                run(asked, name, seed)
            except subprocess.CalledProcessError as error:
                print(f"{name}: {error.stderr[-300:]}", file=sys.stderr)
    command = f"python -m experiments corpora {shlex.join(words)}"
    print(write_results(asked.out, names, asked.seeds, command))
