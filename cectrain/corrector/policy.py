"""A policy: a causal language model that corrects, with the prompt of its training; its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cecbench import causal
from cecbench.causal import CausalModel, decode, generate, prompt_ids, token_budget
from cecbench.local_models import in_batches
from cecdata.common.errors import InputError
from cecdata.common.pretrained import torch_and_transformers
from cectrain.corrector import folder, speculative
from cectrain.corrector.speculative import Written


@dataclass(frozen=True, slots=True)
class Policy(CausalModel):
    """A model that corrects.

    `max_chars` is the longest source that it reads, in characters; None: no limit is known.
    """

    max_chars: int | None = None


def load(name: str, prompt: str | None = None, device: str = "auto", **settings: object) -> Policy:
    """Return the policy of a folder or a hub id (`builtin` is the one that ships), on its device.

    prompt: a version; None is that of its training. settings: for `from_pretrained`, by default
    weights in fp32. Raises InputError where nothing loads or the folder is not whole.
    """
    torch, _ = torch_and_transformers("train")
    version = prompt or folder.trained_prompt(name)
    where = folder.model_folder(name)
    folder.prove_weights(name)
    # fp32: steps at the end of a schedule are smaller than bf16 can add.
    settings = settings or {"dtype": torch.float32}
    loaded = causal.load(where, version, device, extra="train", **settings)
    longest = folder.longest_source(name)
    return Policy(loaded.model, loaded.tokenizer, version, max_chars=longest)


def target_ids(policy: Policy, target: str) -> list[int]:
    """Return the tokens of an answer with the end token."""
    ids: list[int] = policy.tokenizer.encode(target, add_special_tokens=False)
    return [*ids, int(policy.tokenizer.eos_token_id)]


def check_context(policy: Policy, longest_source: str, new_tokens: int) -> None:
    """Raise InputError if the longest question and its answer do not fit the model's context."""
    limit = int(getattr(policy.model.config, "max_position_embeddings", 0) or 0)
    needed = len(prompt_ids(policy, longest_source)) + new_tokens
    if limit and needed > limit:
        raise InputError(
            f"a prompt needs {needed - new_tokens} tokens and its answer up to {new_tokens}, but "
            f"the policy's context holds {limit}: lower policy.max_chars, or take another policy"
        )


def greedy(policy: Policy, sources: Sequence[str], batch: int) -> list[Written]:
    """Return the greedy answer to each source; no random numbers are drawn.

    An answer is nearly its source, so the source is its draft where the model allows that
    (`speculative`); other models write token by token.
    """
    import torch

    asked = [prompt_ids(policy, source) for source in sources]
    write = _checked if speculative.supported(policy.model) else _token_by_token

    def run(chosen: list[int]) -> list[Written]:
        texts = [sources[i] for i in chosen]
        budgets = [token_budget(policy, text) for text in texts]
        written = write(policy, [asked[i] for i in chosen], texts, budgets)
        # Each row is cut at its own budget, so that an answer does not depend on its batch.
        return [
            Written(one.tokens[:budget], one.log_probs[:budget])
            for one, budget in zip(written, budgets, strict=True)
        ]

    was_training = policy.model.training
    policy.model.eval()
    try:
        with torch.no_grad():
            return list(in_batches([len(ids) for ids in asked], batch, run))
    finally:
        policy.model.train(was_training)


def corrections(policy: Policy, sources: Sequence[str], batch: int = 64) -> list[str]:
    """Return the greedy answer to each source as text, as the policy wrote it."""
    written = greedy(policy, sources, batch)
    return [text.strip() for text in decode(policy, [one.tokens for one in written])]


def _checked(
    policy: Policy, asked: Sequence[Sequence[int]], sources: Sequence[str], budgets: Sequence[int]
) -> list[Written]:
    named = policy.model.generation_config.eos_token_id
    stops = list(named) if isinstance(named, (list, tuple)) else [int(named)] if named else []
    return speculative.write(
        policy.model,
        asked,
        policy.tokenizer(list(sources), add_special_tokens=False).input_ids,
        1,
        end=int(policy.tokenizer.eos_token_id),
        stops=stops,
        longest=max(budgets),
        temperature=None,
    )


def _token_by_token(
    policy: Policy,
    asked: Sequence[Sequence[int]],
    sources: Sequence[str],  # noqa: ARG001 - `_checked` drafts with them
    budgets: Sequence[int],
) -> list[Written]:
    answers = generate(policy, asked, budgets)
    return [
        Written(answer, _log_probs(policy.model, question, answer))
        for question, answer in zip(asked, answers, strict=True)
    ]


def _log_probs(model: Any, question: Sequence[int], answer: list[int]) -> list[float]:
    import torch

    ids = torch.tensor([[*question, *answer]], device=model.device)
    logits = model(input_ids=ids).logits[0, len(question) - 1 : -1].float()
    chosen = ids[0, len(question) :, None]
    log_probs: list[float] = logits.log_softmax(-1).gather(1, chosen)[:, 0].tolist()
    return log_probs
