"""A bge-large encoder against the floor of its arithmetic, on one GPU.

    python benchmarks/bench_encoder_gpu.py CORPUS.txt [--batch-tokens 65536] [--sentences 100000]

The architecture of bge-large-zh-v1.5 (BERT: 24 layers, 1024 wide, 16 heads) with random weights,
which serve for speed; one token a code point and two more, as its vocabulary has it. First the
card's own rate of a large matrix product, then sentences per second of length-bucketed batches in
fp16 and bf16, the floor FLOPs / rate and the share of the rate that is reached (goal: 40 %).
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np

LAYERS, WIDTH, INNER, LONGEST = 24, 1024, 4096, 512


def flops(length: int) -> float:
    """Multiply-adds × 2 of one sentence of so many tokens, without padding."""
    products = 4 * WIDTH * WIDTH + 2 * WIDTH * INNER
    return LAYERS * (2.0 * length * products + 4.0 * length * length * WIDTH)


def matrix_rate(dtype: object, size: int = 8192, rounds: int = 30) -> float:
    """FLOP/s of one large product, the best that the card does here."""
    import torch

    left, right = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
    for _ in range(5):
        left @ right
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(rounds):
        left @ right
    torch.cuda.synchronize()
    return rounds * 2.0 * size**3 / (time.perf_counter() - started)


def batches(lengths: np.ndarray, tokens: int) -> list[np.ndarray]:
    """Lengths sorted and cut so that a padded batch holds about `tokens` tokens."""
    ordered, found, start = np.sort(lengths)[::-1], [], 0
    while start < len(ordered):
        size = max(1, tokens // int(ordered[start]))
        found.append(ordered[start : start + size])
        start += size
    return found


def measure(dtype: object, lengths: np.ndarray, tokens: int, rounds: int) -> float:
    """Seconds for all sentences once, after a warm-up."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=21128, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=16,
        intermediate_size=INNER, max_position_embeddings=LONGEST, attn_implementation="sdpa",
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).to("cuda", dtype).eval()
    made = []
    for part in batches(lengths, tokens):
        width = -(-int(part[0]) // 8) * 8  # a multiple of 8 suits the matrix units
        ids = torch.randint(5, 21128, (len(part), width), device="cuda")
        places = torch.arange(width, device="cuda")
        mask = places[None] < torch.tensor(part, device="cuda")[:, None]
        made.append((ids, mask))
    best = float("inf")
    with torch.inference_mode():
        for turn in range(rounds + 1):
            torch.cuda.synchronize()
            started = time.perf_counter()
            for ids, mask in made:
                state = model(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
                torch.nn.functional.normalize(state.float(), dim=1).to(torch.float16)
            torch.cuda.synchronize()
            if turn:
                best = min(best, time.perf_counter() - started)
    return best


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("corpus", type=Path)
    options.add_argument("--batch-tokens", type=int, default=65_536)
    options.add_argument("--sentences", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    import torch

    if not torch.cuda.is_available():
        sys.exit("no GPU here: this benchmark measures one")
    with given.corpus.open(encoding="utf-8") as file:
        sizes = [len(line.strip()) + 2 for line in islice(file, given.sentences)]
    lengths = np.minimum(np.array(sizes), LONGEST)
    work = sum(flops(int(length)) for length in lengths)
    card = torch.cuda.get_device_name()
    print(f"{card}: {len(lengths):,} sentences of {lengths.mean():.1f} tokens")
    for name in ("float16", "bfloat16"):
        dtype = getattr(torch, name)
        rate = matrix_rate(dtype)
        seconds = measure(dtype, lengths, given.batch_tokens, given.rounds)
        print(
            f"{name:<9} {len(lengths) / seconds:10,.0f} sentences/s; matrix rate "
            f"{rate / 1e12:.0f} TFLOP/s; floor {work / rate:.3f} s, taken {seconds:.3f} s: "
            f"{work / rate / seconds:.1%} of the rate (goal 40 %)"
        )


if __name__ == "__main__":
    main()
