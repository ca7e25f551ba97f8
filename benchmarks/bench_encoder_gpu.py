"""Measure a bge-large encoder on one GPU against the floor that its FLOPs set.

    python benchmarks/bench_encoder_gpu.py CORPUS.txt [--batch-tokens 65536] [--sentences 100000]

The model has the architecture of bge-large-zh-v1.5 (BERT: 24 layers, 1024 wide, 16 heads) and
random weights, which do not affect the speed. A sentence has one token a code point and two more,
as with that model's vocabulary. First comes the card's own rate of a large matrix product, then
sentences per second of length-bucketed batches in fp16 and bf16, the floor FLOPs / rate and the
share of the rate that is reached (goal: 40 %). Last come the same sentences through `cecdata`'s
encoder, tokenizer and transfers included.

`--device cpu --tiny` runs all of it in seconds on any machine; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Shape:
    """The dimensions of a BERT model."""

    layers: int = 24
    width: int = 1024
    inner: int = 4096
    heads: int = 16
    longest: int = 512

    def flops(self, length: int) -> float:
        """Return the FLOPs (multiply-adds × 2) of one sentence of `length` tokens, unpadded."""
        products = 4 * self.width * self.width + 2 * self.width * self.inner
        return self.layers * (2.0 * length * products + 4.0 * length * length * self.width)


TINY = Shape(layers=2, width=64, inner=128, heads=4, longest=64)


def wait(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[[], object], device: str, rounds: int) -> float:
    """Return the wall-clock seconds of the fastest of `rounds` rounds, after a warm-up."""
    best = float("inf")
    for turn in range(rounds + 1):
        wait(device)
        started = time.perf_counter()
        work()
        wait(device)
        if turn:
            best = min(best, time.perf_counter() - started)
    return best


def matrix_rate(dtype: object, device: str, size: int, products: int = 30) -> float:
    """Return the FLOP/s of large matrix products, the card's attainable rate."""
    import torch

    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))

    def work() -> None:
        for _ in range(products):
            left @ right

    return products * 2.0 * size**3 / seconds(work, device, 2)


def batches(lengths: np.ndarray, tokens: int) -> list[np.ndarray]:
    """Return the lengths, sorted and cut so that a padded batch holds at most `tokens` tokens.

    A longer sentence is a batch of its own.
    """
    ordered, found, start = np.sort(lengths)[::-1].copy(), [], 0
    while start < len(ordered):
        size = max(1, tokens // int(ordered[start]))
        found.append(ordered[start : start + size])
        start += size
    return found


def bert(shape: Shape, vocabulary: int = 21128) -> object:
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=shape.width, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, intermediate_size=shape.inner,
        max_position_embeddings=shape.longest, attn_implementation="sdpa",
    )  # fmt: skip
    return BertModel(config, add_pooling_layer=False)


def measure(
    dtype: object, device: str, shape: Shape, lengths: np.ndarray, tokens: int, rounds: int
) -> float:
    """Return the seconds that all sentences take once."""
    import torch

    model = bert(shape).to(device, dtype).eval()  # type: ignore[attr-defined]
    made = []
    for part in batches(lengths, tokens):
        width = min(-(-int(part[0]) // 8) * 8, shape.longest)  # multiples of 8 suit tensor cores
        ids = torch.randint(5, 21128, (len(part), width), device=device)
        places = torch.arange(width, device=device)
        mask = places[None] < torch.tensor(part, device=device)[:, None]
        made.append((ids, mask))

    def work() -> None:
        for ids, mask in made:
            state = model(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
            torch.nn.functional.normalize(state.float(), dim=1).to(torch.float16)

    with torch.inference_mode():
        return seconds(work, device, rounds)


def through_encoder(shape: Shape, sentences: list[str], device: str, rounds: int) -> float:
    """Return the seconds of `SentenceTransformerEncoder.encode`, as `cecdata embed` calls it."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertTokenizerFast

    from cecdata.embed import encoder

    known = sorted({character for text in sentences for character in text})
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "vocab.txt").write_text("\n".join(words), "utf-8")
        bert(shape, len(words)).save_pretrained(folder / "plain")  # type: ignore[attr-defined]
        BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "plain")
        parts = [
            Transformer(str(folder / "plain"), max_seq_length=shape.longest),
            Pooling(shape.width, pooling_mode="cls"),
        ]
        SentenceTransformer(modules=parts, device="cpu").save(str(folder / "model"))
        model = encoder(str(folder / "model"), alone=False)
        return seconds(lambda: model.encode(sentences), device, rounds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("corpus", type=Path)
    options.add_argument("--batch-tokens", type=int, default=65_536)
    options.add_argument("--sentences", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options.add_argument("--tiny", action="store_true")
    given = options.parse_args()
    import torch

    if given.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no GPU found: run this on a GPU, or try the script with --device cpu --tiny")
    shape = TINY if given.tiny else Shape()
    with given.corpus.open(encoding="utf-8") as file:
        sentences = [line.strip() for line in islice(file, given.sentences)]
    lengths = np.minimum([len(text) + 2 for text in sentences], shape.longest)
    work = sum(shape.flops(int(length)) for length in lengths)
    card = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
    print(f"{card}: {len(lengths):,} sentences of {lengths.mean():.1f} tokens")
    names = ("float16", "bfloat16") if given.device == "cuda" else ("float32",)
    for name in names:
        dtype = getattr(torch, name)
        rate = matrix_rate(dtype, given.device, 256 if given.tiny else 8192)
        taken = measure(dtype, given.device, shape, lengths, given.batch_tokens, given.rounds)
        print(
            f"{name:<9} {len(lengths) / taken:10,.0f} sentences/s; matrix rate "
            f"{rate / 1e12:.3g} TFLOP/s; floor {work / rate:.3g} s, taken {taken:.3g} s: "
            f"{work / rate / taken:.1%} of the rate (goal 40 %)"
        )
    taken = through_encoder(shape, sentences, given.device, given.rounds)
    print(f"through cecdata's encoder {len(lengths) / taken:10,.0f} sentences/s")


if __name__ == "__main__":
    main()
