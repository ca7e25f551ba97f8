"""Pretraining of the built-in policy: corpus → pool → stages of supervised steps → a model."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cecdata.common.codec import Json, seal_object
from cecdata.common.durable import STATE, Workspace
from cecdata.common.errors import CecError, MissingPackageError
from cecdata.corpus.inputs import find_sources, hash_file
from cecdata.hanzi.characters import is_han, read_table
from cecdata.hanzi.components import ARITY, UNENCODED, find_ids
from cecdata.hanzi.readings import common_readings
from cecdata.models.loading import pick_device
from cectrain import checkpoints
from cectrain.config import PolicyConfig, SftConfig
from cectrain.corrector.folder import MODEL, SUMMARY, hash_weights, locate_model
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair
from cectrain.model import qwen3_forward
from cectrain.model.policy import load_policy, save_model
from cectrain.run import metrics_log, results
from cectrain.run.heldout import measure_exact_by_operator
from cectrain.run.job import set_up_torch
from cectrain.run.loss import IGNORED, answer_logits, choose_product_dtype, collate, make_autocast
from cectrain.run.metrics_log import MetricsLog
from cectrain.run.results import read_summary, write_run
from cectrain.run.supervised import fit
from experiments.pretraining.config import PretrainConfig
from experiments.pretraining.model import character_tokenizer, small_qwen3
from experiments.pretraining.pairs import Batches, held_out_pairs
from experiments.pretraining.pool import Pool, make_pool

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from cectrain.run.supervised import Batch


Tell = Callable[[str], None]
# Weights of a character's own vector and of those that it shares with other characters.
_OWN, _SYLLABLE, _TONE, _PARTS = 0.6, 0.55, 0.2, 0.55
_BATCH = 64
_AHEAD = 16  # batches prepared beyond the current one; each 64th takes as long as ten others


def pretrain(
    corpus: Sequence[str],
    out: Path,
    config: PretrainConfig,
    *,
    start: str = "",
    benchmarks: Sequence[str] = (),
    overwrite: bool = False,
    tell: Tell = lambda _line: None,
) -> dict[str, Json]:
    """Train the built-in policy from random weights; return the contents of summary.json.

    start: a policy (folder of a model or of a run, or `builtin`) to train on from instead. The same
    call continues where a killed one stopped. Sentences of the files `benchmarks` are left out.
    Raises InputError, UsageError, RefusedError, VerificationError, DiskFullError.
    """
    identity = _identity(corpus, benchmarks, config, start)
    with Workspace(out, identity, overwrite=overwrite) as work:
        if (done := read_summary(out)) is not None:
            tell(f"{out} already holds the finished run")
            return done
        state = Path(out).absolute() / STATE
        set_up_torch(config.seed)
        step = checkpoints.find_newest_step(state / "pretrain")
        kept = metrics_log.read_kept_lines(out / metrics_log.FILE, step, step)
        work.write_text(metrics_log.FILE, kept)
        write_run(work, identity)
        tell(f"continuing from step {step:,}" if step else "reading the corpus")
        pool = make_pool(corpus, benchmarks, config, state)
        tell(f"{len(pool.table):,} sentences of {len(pool.counts['kept']):,} origins")  # type: ignore[arg-type]
        started = time.monotonic()
        policy = load_policy(PolicyConfig(name=start)) if start else new_policy(config)
        log = MetricsLog(out / metrics_log.FILE, tell)
        _run(policy, pool, config, state, log)
        summary = _summary(policy, pool, config, time.monotonic() - started)
        return _publish(work, policy, summary)


def _run(policy: Policy, pool: Pool, config: PretrainConfig, state: Path, log: MetricsLog) -> None:
    batches = Batches(pool.trained, config)
    pairs = held_out_pairs(pool.watched, config)
    told = SftConfig(
        steps=config.steps,
        precision=config.precision,
        save_every=config.save_every,
        log_every=config.log_every,
    )

    def on_log(step: int, values: dict[str, float]) -> None:
        log.write("sft", step, values)

    def watch(step: int) -> None:
        if step % config.watch_every == 0 or step == config.steps:
            log.write("heldout", step, watched(policy, pairs, config.precision))

    def ahead(steps: range) -> Iterable[Batch]:
        return prepared(lambda step: collate(policy, batches.at(step)), steps)

    with lost_worker():
        fit(
            policy,
            ahead,
            optimizers(policy, config),
            told,
            state / "pretrain",
            config.share,
            on_log,
            watch,
            max_grad_norm=math.inf,  # the length of Muon's step does not depend on it
        )


def _identity(
    corpus: Sequence[str], benchmarks: Sequence[str], config: PretrainConfig, start: str
) -> dict[str, object]:
    """Return what must be the same for a run to continue."""

    def files(paths: Sequence[str]) -> dict[str, str]:
        return {Path(file.path).name: file.sha256 for file in map(hash_file, find_sources(paths))}

    return {
        "configuration": config.as_dict(),
        "corpus": files(corpus),
        "benchmarks": files(benchmarks) if benchmarks else {},
        "start": hash_weights(Path(locate_model(start))) if start else "",
        "versions": results.read_versions(),
    }


def _summary(policy: Policy, pool: Pool, config: PretrainConfig, seconds: float) -> dict[str, Json]:
    """Return the summary; rates are fractions."""
    scores = watched(policy, held_out_pairs(pool.watched, config), config.precision)
    return {
        "parameters": sum(parameter.numel() for parameter in policy.model.parameters()),
        "steps": config.steps,
        "seed": config.seed,
        "seconds_of_the_last_part": round(seconds, 1),
        "sentences": pool.counts,
        **scores,
    }


def _publish(work: Workspace, policy: Policy, summary: dict[str, Json]) -> dict[str, Json]:
    staged = f"{STATE}/{MODEL}"
    save_model(policy, work.root / staged, summary)
    work.publish(staged, MODEL)
    summary["model_sha256"] = hash_weights(work.root / MODEL)
    work.write_bytes(SUMMARY, seal_object(summary))
    return summary


def new_policy(config: PretrainConfig) -> Policy:
    """Return the untrained policy: random weights, and embeddings by sound and shape."""
    import torch

    model, tokenizer = small_qwen3(
        character_tokenizer(), config.seed, hidden=config.hidden, layers=config.layers
    )
    start = embeddings(tokenizer, config.hidden, config.seed) * config.embedding_std
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(torch.from_numpy(start))
    return Policy(model.to(pick_device(torch, "auto")), tokenizer, "1")


def embeddings(
    tokenizer: PreTrainedTokenizerBase, width: int, seed: int
) -> npt.NDArray[np.float32]:
    """Return vectors [tokens, width] of unit deviation, similar for similar characters.

    The vector of a character is the sum of random vectors of its own, of its syllable, of its
    syllable with the tone and of its components. Nothing is measured on text.
    """
    generator = np.random.default_rng(seed)
    table = generator.standard_normal((len(tokenizer), width))
    shared: dict[str, npt.NDArray[np.float64]] = {}

    def vector(name: str) -> npt.NDArray[np.float64]:
        if name not in shared:
            shared[name] = generator.standard_normal(width)
        return shared[name]

    for token, place in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        if len(token) != 1 or not is_han(ord(token)):
            continue
        table[place] *= _OWN
        for reading in common_readings(token)[:1]:
            table[place] += _SYLLABLE * vector(f"syllable {reading.syllable}")
            table[place] += _TONE * vector(f"reading {reading}")
        parts = _components(token)
        for part in parts:
            table[place] += _PARTS / len(parts) ** 0.5 * vector(f"part {part}")
    scaled: npt.NDArray[np.float32] = (table / table.std(axis=1, keepdims=True)).astype(np.float32)
    return scaled


def _components(character: str) -> tuple[str, ...]:
    """Return every component with a code point, most strokes first."""
    walked = dict.fromkeys(_walked(character))
    names = [name for name in walked if name not in (character, UNENCODED)]
    known = read_table("ids")
    return tuple(sorted(names, key=lambda name: -int(known[name][1]) if name in known else 0))


@cache
def _walked(character: str) -> tuple[str, ...]:
    """Return the parts of a character, each followed by its own."""
    parts = [sign for sign in find_ids(character) if sign not in ARITY and sign != character]
    return tuple(name for part in parts for name in (part, *_walked(part)))


def optimizers(policy: Policy, config: PretrainConfig) -> list[torch.optim.Optimizer]:
    """Return Muon for the layers' matrices, and AdamW for embeddings and norms.

    Muon (Jordan et al. 2024): after 200 steps of copying the loss was 2.1, with AdamW alone at
    2e-3 it was 5.2.
    """
    import torch

    if not hasattr(torch.optim, "Muon"):
        raise MissingPackageError(
            f"torch {torch.__version__} has no Muon optimizer: pretraining needs torch 2.9 or newer"
        )
    from experiments.pretraining.muon import Muon

    named = list(policy.model.named_parameters())
    matrices = [p for name, p in named if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in named if p.ndim != 2 or "embed" in name]
    return [
        Muon(matrices, config.matrix_rate, weight_decay=config.weight_decay),
        torch.optim.AdamW(others, config.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True),
    ]


def exact_greedy(policy: Policy, pairs: Sequence[Pair], precision: str = "auto") -> list[bool]:
    """Return for each pair whether greedy decoding would write exactly the target.

    It would if, after each prefix of the target, its next token or its end is the most likely one.
    One pass over all positions shows that, in a hundredth of the time of decoding.
    """
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].source))
    exact: npt.NDArray[np.bool_] = np.zeros(len(pairs), np.bool_)
    for start in range(0, len(order), _BATCH):
        chosen = order[start : start + _BATCH]
        batch = collate(policy, [pairs[i] for i in chosen])
        hits = _hits(policy, batch, precision)
        counts = (batch["labels"] >= 0).sum(1).tolist()
        exact[chosen] = [bool(part.all()) for part in hits.split(counts)]
    return [bool(hit) for hit in exact]


def _hits(policy: Policy, batch: dict[str, torch.Tensor], precision: str) -> torch.Tensor:
    """Return whether each answer token [tokens] is the most likely one, by the training pass."""
    import torch

    model = policy.model
    if not qwen3_forward.is_supported(model):
        with torch.no_grad(), make_autocast(model, precision):
            logits, labels = answer_logits(model, batch)
        asked = labels != IGNORED
        return logits.argmax(-1)[asked] == labels[asked]
    dtype = choose_product_dtype(precision)
    with torch.no_grad():
        hidden, wanted = qwen3_forward.split_at_answers(
            model, batch["input_ids"], batch["labels"], dtype
        )
        head = model.lm_head.weight.to(dtype)
        likeliest = [(part @ head.t()).argmax(-1) for part in hidden.split(qwen3_forward.ROWS)]
        return torch.cat(likeliest) == wanted


def watched(policy: Policy, pairs: Sequence[Pair], precision: str) -> dict[str, float]:
    """Return held-out scores as fractions, under the names of docs/reference/metrics.md."""
    wrong = [pair for pair in pairs if pair.source != pair.target]
    exact = exact_greedy(policy, wrong, precision)
    clean = [Pair(pair.id, 0, pair.target, pair.target, "unchanged") for pair in pairs]
    kept = exact_greedy(policy, clean, precision)
    by_operator = measure_exact_by_operator(wrong, exact)
    return {
        "heldout_exact": _mean(exact),
        "heldout_over_correction": 1 - _mean(kept),
        **{f"heldout_exact_{name}": share for name, share in by_operator.items()},
    }


def _mean(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits) if hits else float("nan")


@dataclass(frozen=True, slots=True)
class _Steps:
    """The batches by step, as torch's DataLoader asks for them."""

    batch_of: Callable[[int], Batch]

    def __getitem__(self, step: int) -> Batch:
        return self.batch_of(step)


def prepared(batch_of: Callable[[int], Batch], steps: range) -> Iterable[Batch]:
    """Return `batch_of(step)` for each step in order, computed in a process of its own.

    An error there is raised here, with its traceback in the message. The process is a fork, because
    the tables of corruption take seconds to build; only on Linux, where a fork keeps them safely.
    Elsewhere batches are computed here.
    """
    import torch
    from torch.utils.data import DataLoader

    worker: dict[str, Any] = {
        "num_workers": 1,
        "prefetch_factor": _AHEAD,
        "multiprocessing_context": "fork",
        "pin_memory": torch.cuda.is_available(),
    }
    batches: Iterable[Batch] = DataLoader(
        _Steps(batch_of),
        sampler=steps,
        batch_size=None,
        generator=torch.Generator(),  # the global one is that of the weights
        **(worker if sys.platform == "linux" else {}),
    )
    return batches


@contextmanager
def lost_worker() -> Iterator[None]:
    """Raise CecError instead of torch's error if the process of `prepared` is killed."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker (pid"):
            raise
        raise CecError(
            f"the process that prepares the batches ended ({str(error).strip()}): if memory was "
            "full, free some, then start the same command again; it goes on at the last checkpoint"
        ) from error
