"""Measure generation and training with Qwen3-0.6B's architecture against the floor that FLOPs set.

    python benchmarks/bench_train_gpu.py [--groups 96] [--candidates 4] [--chars 40] [--bf16]

The weights are random. The script measures the card's own rate with a large matrix product, then
the tokens/s of generating candidates (token by token, as with `ppo.rollout = generate`), of a
forward pass, and of a training step, each with the floor FLOPs / rate and the share of the rate
that is reached, and the peak memory of tensors. `--tiny` and `--device cpu` run the same code on
any machine, as a test does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

QWEN3_06B = {
    "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "max_position_embeddings": 4096, "tie_word_embeddings": True,
}  # fmt: skip
TINY = {
    "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    "max_position_embeddings": 512, "tie_word_embeddings": True,
}  # fmt: skip
INSTRUCTION = 120  # tokens of the prompt besides the sentence, about
A_CHARACTER = 0.7  # tokens per character with Qwen's tokenizer, about


def main(given: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=96)
    parser.add_argument("--candidates", type=int, default=4)
    parser.add_argument("--chars", type=int, default=40, help="characters of a sentence")
    parser.add_argument("--micro", type=int, default=96, help="sequences in a backward pass")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--tiny", action="store_true", help="a tiny model, to try the script")
    options = parser.parse_args(given)
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("no GPU found: run this on a GPU, or try the script with --device cpu --tiny")
    torch.manual_seed(0)
    config = Qwen3Config(**(TINY if options.tiny else QWEN3_06B))
    figures = measure(Qwen3ForCausalLM(config).to(options.device), options)
    for name, value in figures.items():
        print(f"{name:34}{value:>16,.3f}")
    print(json.dumps({**vars(options), **figures}))
    return figures


def measure(model: Qwen3ForCausalLM, options: argparse.Namespace) -> dict[str, float]:
    written = max(2, round(options.chars * A_CHARACTER))
    asked = INSTRUCTION + written
    sequences = options.groups * options.candidates
    dtype = torch.bfloat16 if options.bf16 else torch.float32
    rate = matrix_rate(options.device, dtype, 256 if options.tiny else 8192)
    figures = {"matrix product, TFLOP/s": rate / 1e12, "parameters, M": parameters(model) / 1e6}
    ids = torch.randint(5, model.config.vocab_size, (sequences, asked), device=options.device)
    floor = flops(model, asked, written) * sequences
    work = generation(model, ids, written)
    figures |= against("writing", sequences * written, rate, options, work, floor)
    rows = torch.randint(
        5, model.config.vocab_size, (min(options.micro, sequences), asked + written),
        device=options.device,
    )  # fmt: skip
    tokens, once = rows.numel(), flops(model, 0, asked + written) * len(rows)
    figures |= against("forward", tokens, rate, options, forward(model, rows), once)
    figures |= against("training", tokens, rate, options, training(model, rows), 3 * once)
    if options.device == "cuda":
        figures["most memory, GB"] = torch.cuda.max_memory_allocated() / 1e9
    return figures


def against(
    name: str,
    tokens: int,
    rate: float,
    options: argparse.Namespace,
    work: Callable[[], object],
    operations: float,
) -> dict[str, float]:
    """Return the fastest round's tokens/s, the floor's, and the share of the card's rate."""
    seconds = min(timed(work, options) for _ in range(options.rounds))
    return {
        f"{name}, tokens/s": tokens / seconds,
        f"{name}, floor tokens/s": tokens * rate / operations,
        f"{name}, share of the rate": operations / rate / seconds,
    }


def timed(work: Callable[[], object], options: argparse.Namespace) -> float:
    synchronise(options.device)
    started = time.perf_counter()
    with torch.autocast(options.device, torch.bfloat16, options.bf16):
        work()
    synchronise(options.device)
    return time.perf_counter() - started


def generation(model: Qwen3ForCausalLM, ids: torch.Tensor, written: int) -> Callable[[], object]:
    def work() -> object:
        with torch.inference_mode():
            return model.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True,
                max_new_tokens=written, min_new_tokens=written, top_k=0, pad_token_id=0,
            )  # fmt: skip

    return work


def forward(model: Qwen3ForCausalLM, rows: torch.Tensor) -> Callable[[], object]:
    def work() -> object:
        with torch.no_grad():
            return model(input_ids=rows, labels=rows).loss

    return work


def training(model: Qwen3ForCausalLM, rows: torch.Tensor) -> Callable[[], object]:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-6)

    def work() -> object:
        model(input_ids=rows, labels=rows).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return None

    return work


def parameters(model: Qwen3ForCausalLM) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def flops(model: Qwen3ForCausalLM, before: int, tokens: int) -> float:
    """Return the FLOPs (multiply-adds × 2) of reading `before` tokens and writing `tokens` more.

    They count the products with the weights (the embedding table once, as the head) and with keys
    and values, but not norms and softmax. The head counts for the written tokens alone.
    """
    c = model.config
    body = parameters(model) - c.vocab_size * c.hidden_size
    every = before + tokens
    attention = 4.0 * c.num_hidden_layers * c.num_attention_heads * c.head_dim * every**2 / 2
    return 2.0 * body * every + 2.0 * c.vocab_size * c.hidden_size * tokens + attention


def matrix_rate(device: str, dtype: torch.dtype, size: int, rounds: int = 20) -> float:
    """Return the FLOP/s of large matrix products, the device's attainable rate."""
    left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    left @ right
    synchronise(device)
    started = time.perf_counter()
    for _ in range(rounds):
        left @ right
    synchronise(device)
    return rounds * 2.0 * size**3 / (time.perf_counter() - started)


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
