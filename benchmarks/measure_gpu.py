"""Measure the figures of docs/reports/gpu.md in order of worth, within the minutes given.

    python benchmarks/measure_gpu.py --minutes 8 --out out/gpu.json
    python tools/fill_gpu_page.py out/gpu.json

JSON with the reason for what is missing is written after each figure. Models have the published
architectures and random weights. A share is FLOPs / seconds / the rate of a large matrix product
on this card. `--device cpu --tiny` runs the same code on any machine; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    BertTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from cecdata import embed
from cecdata.hanzi.characters import standard_characters
from cectrain import config
from cectrain.corrector.folder import WEIGHTS
from cectrain.run import metrics_log
from cectrain.run.results import read_versions
from cectrain.train import train

#: hidden size, inner size, layers, heads, heads of keys; the second is tiny
QWEN3 = ((1024, 3072, 28, 16, 8), (32, 64, 1, 2, 1))
BERT = ((1024, 4096, 24, 16), (32, 64, 1, 2))  # bge-large
VOCABULARY, READ, WRITTEN = 151_936, 148, 28  # of Qwen3; tokens of a prompt, of an answer, about
Figures = dict[str, float]
Work = Callable[[], object]


class Bench:
    """The device, the sizes, the data and the folder of one measurement."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.device, self.tiny, self.data = options.device, options.tiny, options.data
        self.folder, self.rate = folder, 0.0
        self.rows, self.rounds = (2, 1) if self.tiny else (96, 3)

    def seconds(self, work: Work) -> float:
        """Return the time of the fastest round, after one to warm up."""
        taken = []
        for _ in range(self.rounds + 1):
            started = time.perf_counter()
            with torch.autocast(self.device, torch.bfloat16, self.device == "cuda"):
                work()
            if self.device == "cuda":
                torch.cuda.synchronize()
            taken.append(time.perf_counter() - started)
        return min(taken[1:])

    def speed(self, name: str, work: Work, tokens: float, operations: float) -> Figures:
        """Return tokens a second, and the share of the card's rate."""
        seconds = self.seconds(work)
        share = operations / seconds / self.rate
        return {f"{name}tokens/s": tokens / seconds, f"{name}share of rate": share}

    def qwen(self, words: int, end: int = 1, pad: int = 0) -> Any:
        """Return Qwen3-0.6B with random weights and this vocabulary."""
        torch.manual_seed(0)
        hidden, inner, layers, heads, keys = QWEN3[self.tiny]
        settings = Qwen3Config(
            vocab_size=words, hidden_size=hidden, intermediate_size=inner, num_hidden_layers=layers,
            num_attention_heads=heads, num_key_value_heads=keys, head_dim=16 if self.tiny else 128,
            tie_word_embeddings=True, eos_token_id=end, pad_token_id=pad,
        )  # fmt: skip
        return Qwen3ForCausalLM(settings).to(self.device)

    def policy(self) -> str:
        """Return the folder of that model with the built-in policy's tokenizer."""
        folder, words = self.folder / "policy", AutoTokenizer.from_pretrained(str(WEIGHTS))
        if not folder.exists():
            self.qwen(len(words), words.eos_token_id, words.pad_token_id).save_pretrained(folder)
            words.save_pretrained(folder)
        return str(folder)

    def encoder(self) -> str:
        """Return the folder of bge-large's architecture with random weights."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.models import Pooling, Transformer

        root = self.folder / "bert"
        if not root.exists():
            root.mkdir()
            words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *standard_characters()]
            (root / "vocab.txt").write_text("\n".join(words), "utf-8")
            hidden, inner, layers, heads = BERT[self.tiny]
            settings = BertConfig(
                vocab_size=len(words), hidden_size=hidden, intermediate_size=inner,
                num_hidden_layers=layers, num_attention_heads=heads,
            )  # fmt: skip
            BertModel(settings, add_pooling_layer=False).save_pretrained(root / "plain")
            BertTokenizerFast(str(root / "vocab.txt")).save_pretrained(root / "plain")
            parts = [Transformer(str(root / "plain"), max_seq_length=512), Pooling(hidden)]
            SentenceTransformer(modules=parts, device="cpu").save(str(root / "model"))
        return str(root / "model")

    def run(self, recipe: str, settings: list[str]) -> list[dict[str, float]]:
        """Train in this process, and return the lines of metrics.jsonl of its PPO."""
        small = ["data.held_out=8", "data.held_out_clean=4", "diagnose_pairs=24"]
        if self.tiny:  # without kernels to compile; a random policy writes up to the limit
            small = ["data.held_out=2", "data.held_out_clean=1", "diagnose_pairs=8"]
            small += ["data.fresh=false", "ppo.groups=4", "ppo.new_tokens=8", "policy.max_chars=24"]
        out = Path(tempfile.mkdtemp(dir=self.folder)) / "run"
        train(self.data, out, config.load(recipe, [*small, "ppo.eval_every=0", *settings]))
        return metrics_log.read_lines(out / metrics_log.FILE, "ppo")


def matrix_product(bench: Bench) -> Figures:
    """Measure the card's own rate, which the shares below refer to."""
    size = 256 if bench.tiny else 8192
    left, right = (torch.randn(size, size, device=bench.device) for _ in range(2))
    bench.rate = 2.0 * size**3 / bench.seconds(lambda: left @ right)  # in bf16 by autocast
    return {"TFLOP/s": bench.rate / 1e12}


def flops(model: Any, read: int, written: int) -> float:
    """Return the FLOPs of a sequence: products with weights and keys, and the head on `written`."""
    c, every = model.config, read + written
    body = sum(p.numel() for p in model.parameters()) - c.vocab_size * c.hidden_size
    attention = 2.0 * c.num_hidden_layers * c.num_attention_heads * c.head_dim * every**2
    return 2.0 * (body * every + c.vocab_size * c.hidden_size * written) + attention


def step_of(model: Any, rows: Any) -> Work:
    """Return a training step on these rows."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-6)

    def step() -> None:
        model(input_ids=rows, labels=rows).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def qwen3(bench: Bench) -> Figures:
    """Measure training, forward passes and writing with Qwen3-0.6B."""
    model, length = bench.qwen(9000 if bench.tiny else VOCABULARY), READ + WRITTEN
    rows = torch.randint(5, model.config.vocab_size, (bench.rows, length), device=bench.device)
    once, tokens = flops(model, 0, length) * len(rows), float(rows.numel())

    def forward() -> None:
        with torch.no_grad():
            model(input_ids=rows)

    asked = rows[:, :READ].repeat(1 if bench.tiny else 4, 1)

    def writing() -> None:
        with torch.inference_mode():
            model.generate(
                input_ids=asked, attention_mask=torch.ones_like(asked), do_sample=True, top_k=0,
                max_new_tokens=WRITTEN, min_new_tokens=WRITTEN, pad_token_id=0,
            )  # fmt: skip

    made = flops(model, READ, WRITTEN) * len(asked)
    return {
        **bench.speed("training, ", step_of(model, rows), tokens, 3 * once),
        **bench.speed("forward, ", forward, tokens, once),
        **bench.speed("writing, ", writing, float(len(asked) * WRITTEN), made),
    }


def encoder(bench: Bench) -> Figures:
    """Measure bge-large alone, and through cecdata with its tokenizer and transfers."""
    from sentence_transformers import SentenceTransformer

    folder = bench.encoder()
    count = 16 if bench.tiny else 20_000
    texts = [("他的病情已经好转" * 8)[number % 8 :][:40] for number in range(count)]
    raw = SentenceTransformer(folder, device=bench.device)[0].auto_model.eval()
    size = bench.rows * 4
    ids = torch.randint(5, 3000, (size, 42), device=bench.device)

    def alone() -> None:
        with torch.inference_mode():
            for _ in range(0, count, size):
                raw(input_ids=ids)

    batched = embed.encoder(folder, alone=False)
    raw_rate = -(-count // size) * size / bench.seconds(alone)
    ours = count / bench.seconds(lambda: batched.encode(texts))
    return {"alone, sentences/s": raw_rate, "cecdata, sentences/s": ours, "share": ours / raw_rate}


def paper_update(bench: Bench, *more: str) -> Figures:
    """Measure updates of the recipe `paper` with 96 × 4 candidates and K = 2."""
    named = [f'policy.name="{bench.policy()}"', f'encoder="{bench.encoder()}"']
    exact = f"ppo.bf16={str(bench.device == 'cuda').lower()}"
    length = ["ppo.updates=1"] if bench.tiny else ["ppo.updates=2", "ppo.new_tokens=48"]
    return update(bench.run("paper", [*named, exact, *length, *more]))


def builtin_batch(bench: Bench) -> Figures:
    """Measure batches of `cectrain train` with the built-in policy."""
    tiny = ["sft.steps=1", "sft.batch=8", "ppo.updates=1"]
    return update(bench.run("warm-consensus", tiny if bench.tiny else ["ppo.updates=20"]))


def update(lines: list[dict[str, float]]) -> Figures:
    """Return the figures of the last batch, which is no longer warming up."""
    shown = ("_seconds", "_tokens_per_s", "_memory_gb")
    return {name: value for name, value in lines[-1].items() if name.endswith(shown)}


def pretraining(bench: Bench) -> Figures:
    """Measure supervised steps of 65,536 tokens of a model of 27 M parameters."""
    hidden, layers, count = (64, 1, 2) if bench.tiny else (512, 8, 780)
    settings = Qwen3Config(
        vocab_size=8_511, hidden_size=hidden, intermediate_size=hidden * 8 // 3,
        num_hidden_layers=layers, num_attention_heads=hidden // 32,
        num_key_value_heads=hidden // 64, head_dim=32, tie_word_embeddings=True,
    )  # fmt: skip
    model = Qwen3ForCausalLM(settings).to(bench.device)
    rows = torch.randint(5, 8000, (count, 84), device=bench.device)
    return bench.speed("", step_of(model, rows), 84.0 * count, 3 * flops(model, 0, 84) * count)


#: in order of worth, with the seconds that one must have left
FIGURES: tuple[tuple[Callable[[Bench], Figures], int], ...] = (
    (matrix_product, 5), (qwen3, 40), (encoder, 40), (paper_update, 60), (builtin_batch, 40),
    (pretraining, 15),
)  # fmt: skip


def attempt(figure: Callable[[Bench], Figures], bench: Bench) -> Figures | str:
    """Return a figure with its peak memory, or the reason why it is missing."""
    try:
        found = figure(bench)
    except Exception as error:  # noqa: BLE001 - the other figures are still wanted
        return f"{type(error).__name__}: {error}"[:300]
    if bench.device == "cuda":
        found["peak GB"] = torch.cuda.max_memory_allocated() / 1e9
        torch.cuda.reset_peak_memory_stats()
    return found


def measure(options: argparse.Namespace) -> None:
    """Measure what fits into the time, and write the JSON after each figure."""
    started = time.monotonic()
    card = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    found: dict[str, Any] = {
        "card": card,
        "versions": read_versions(),
        "figures": {},
        "missing": {},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(options, Path(name))
        for figure, needed in FIGURES:
            left = 60 * options.minutes - (time.monotonic() - started)
            short = f"it needs {needed} s, and {max(0, left):.0f} were left"
            told = attempt(figure, bench) if left >= needed else short
            found["missing" if isinstance(told, str) else "figures"][figure.__name__] = told
            print(f"{figure.__name__}: {json.dumps(told, ensure_ascii=False)}", flush=True)
            options.out.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--data", type=Path, default=Path("out/data"), help="of `make data`")
    parser.add_argument("--out", type=Path, default=Path("out/gpu.json"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="tiny models, to try the script")
    options = parser.parse_args(given)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("no GPU found: run this on a GPU, or try the script with --device cpu --tiny")
    measure(options)


if __name__ == "__main__":
    main()
