"""The answers of a policy, each with the log-probabilities of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cecbench.causal import decode, generate, in_batches, prompt_ids, token_budget
from cectrain.corrector import speculative
from cectrain.corrector.policy import Policy
from cectrain.corrector.speculative import Written


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
