"""Measure supervised steps of a language model with an adapter: pairs a CPU second, and the share
of the floor that its multiplications set.

    python benchmarks/bench_sft.py MODEL DATA [--prompt "错：{sentence}"] [--batch 16] [--rounds 4]

Each round passes the same batches, forward and backward, with each row as a whole, and with what
all rows begin with once. The floor is what the matrix products of the tokens that must pass take at
the speed of one large product on this machine: the frozen weights forward and backward (4 a weight
and token), the adapter's and their gradient (6), the head on answers only.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from pathlib import Path

import torch
from common import machine, ratio

from cecdata.models.hub import prepare_hub
from cectrain.config import DataConfig, PolicyConfig, SftConfig
from cectrain.corrector.policy import Policy
from cectrain.data.shards import open_shards
from cectrain.data.training_pairs import select_pairs
from cectrain.model.policy import add_adapter, load_policy
from cectrain.run.loss import IGNORED, choose_product_dtype, collate, make_loss
from cectrain.run.supervised import Batch, read_batch

SIZE = 2048  # of the product whose speed is measured


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--prompt", default="1")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    prepare_hub()
    torch.set_num_threads(1)
    print(machine(), flush=True)
    named = PolicyConfig(name=options.model, prompt=options.prompt, lora_rank=options.rank)
    policy = add_adapter(load_policy(named, "cpu"), named)
    policy.model.train()
    pairs = select_pairs(open_shards(options.data), DataConfig(clean_share=0.5), 56, 42)
    batches = [
        collate(policy, read_batch(pairs, step, options.batch))
        for step in range(options.rounds + 1)
    ]
    passes = {
        "rows as a whole": make_loss(policy, SftConfig().precision, fast_forward=False),
        "one beginning": make_loss(policy, SftConfig().precision),
    }
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    for round_number, batch in enumerate(batches):
        for name, loss_of in passes.items():
            started = time.process_time()
            loss_of(batch).backward()
            if round_number:  # the first one warms up
                seconds[name].append(time.process_time() - started)
            policy.model.zero_grad()
    speed = product_speed()
    floor = [count_operations(policy, batch) / speed for batch in batches[1:]]
    for name, values in seconds.items():
        rate = options.batch * options.rounds / sum(values)
        print(f"{name:16} {rate:6.2f} pairs a CPU second, {ratio(values, floor):.2f} of the floor")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"products {speed / 1e9:,.0f} GFLOP/s, memory {peak:.1f} GiB")


def product_speed() -> float:
    """Return the operations a CPU second of one product in the type that `auto` takes."""
    left, right = torch.randn(2, SIZE, SIZE).to(choose_product_dtype("auto"))
    for repeats in (1, 8):  # the first one warms up
        started = time.process_time()
        for _ in range(repeats):
            left @ right
    return 8 * 2 * SIZE**3 / (time.process_time() - started)


def count_operations(policy: Policy, batch: Batch) -> float:
    """Return the operations of the products that a batch needs, forward and backward."""
    ids, labels = batch["input_ids"], batch["labels"]
    ends = (labels != IGNORED).long().cumsum(1).argmax(1) + 1  # of each answer
    shared = len(list(itertools.takewhile(bool, (ids == ids[:1]).all(0).tolist())))
    tokens = shared + int((ends - shared).sum())
    frozen = adapter = 0
    for name, weight in policy.model.named_parameters():
        if "lora_" in name:
            adapter += weight.numel()
        elif weight.ndim == 2 and "embed" not in name and "lm_head" not in name:
            frozen += weight.numel()
    head = policy.model.get_output_embeddings().weight.numel()
    answers = int((labels != IGNORED).sum())
    return float(tokens * (4 * frozen + 6 * adapter) + 4 * answers * head)


if __name__ == "__main__":
    main()
