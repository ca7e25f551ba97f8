"""The answers of a policy, each with the log-probabilities of its tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from cectrain.corrector import speculative
from cectrain.corrector.loading import batches_by_length
from cectrain.corrector.policy import Policy, decode, prompt_ids
from cectrain.corrector.speculative import Written

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
EXTRA_TOKENS = 32  # of an answer, besides twice those of its source
GREEDY: Mapping[str, object] = {
    "do_sample": False,
    "temperature": None,
    "top_p": None,
    "top_k": None,
}


def token_budget(policy: Policy, source: str) -> int:
    """Return the most tokens that an answer to a source may have."""
    return 2 * len(policy.tokenizer.encode(source, add_special_tokens=False)) + EXTRA_TOKENS


def in_batches(
    sizes: Sequence[int], batch: int, run: Callable[[list[int]], Sequence[T]]
) -> Iterator[T]:
    """Return what `run` gives for each index, in order; batches are of similar sizes.

    A batch that does not fit the GPU's memory is halved and tried again, and so are those after it.
    """
    import torch

    results: dict[int, T] = {}
    queue = batches_by_length(list(sizes), batch)
    while queue:
        chosen = queue.pop(0)
        try:
            results.update(zip(chosen, run(chosen), strict=True))
        except torch.OutOfMemoryError:
            if len(chosen) == 1:
                raise
            torch.cuda.empty_cache()
            half = len(chosen) // 2
            rest = [index for group in [chosen, *queue] for index in group]
            queue = [rest[start : start + half] for start in range(0, len(rest), half)]
    return (results[index] for index in range(len(sizes)))


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


def generate(
    policy: Policy,
    asked: Sequence[Sequence[int]],
    budgets: Sequence[int],
    settings: Mapping[str, object] = GREEDY,
) -> list[list[int]]:
    """Return the tokens that `transformers` generates for each question, padding left out.

    budgets: the most tokens of each answer. settings: of `generate`.
    """
    import torch

    model, pad = policy.model, int(policy.tokenizer.pad_token_id)
    width = max(len(ids) for ids in asked)
    rows = [[pad] * (width - len(ids)) + list(ids) for ids in asked]
    mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in asked]
    output: torch.Tensor = model.generate(
        input_ids=torch.tensor(rows, device=model.device),
        attention_mask=torch.tensor(mask, device=model.device),
        max_new_tokens=max(budgets),
        pad_token_id=pad,
        **settings,
    )
    written = output[:, width:].tolist()
    return [
        [token for token in row[:budget] if token != pad]
        for row, budget in zip(written, budgets, strict=True)
    ]


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
