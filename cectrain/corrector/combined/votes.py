"""A policy's judgement of single changes, by one forward pass over the unchanged text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from cecbench.causal import prompt_ids
from cecbench.local_models import thread_count, use_threads
from cecdata.common.errors import InputError
from cectrain.corrector.policy import Policy

if TYPE_CHECKING:
    import torch

Change = tuple[int, int, str]  # start and end in the text, and the text that belongs there
FLOOR = -15.0  # least log-ratio; that of a text which the policy cannot write
_END = "\0"  # stands for the end token, which has no character


class Voter:
    """A policy with one token for each character, in batches of `batch` texts.

    Raises InputError for a policy with another kind of tokens.
    """

    def __init__(self, policy: Policy, batch: int = 64, threads: int = 0) -> None:
        self._policy, self._batch = policy, batch
        self._threads = thread_count(policy.model, threads)
        self._tokens = {t: i for t, i in policy.tokenizer.get_vocab().items() if len(t) == 1}
        self._tokens[_END] = int(policy.tokenizer.eos_token_id)
        if not {*"的一是在不了"} <= self._tokens.keys():
            raise InputError(
                f"{policy.model.config.name_or_path}: the channel can be combined only with a "
                "policy that has one token for each character, such as the built-in one"
            )

    def votes(
        self, texts: Sequence[str], changes: Sequence[Collection[Change]]
    ) -> list[dict[Change, float]]:
        """Return log P(change) − log P(no change) of each change of each text, at least FLOOR.

        P is the policy's probability of the characters that differ, each after the unchanged text
        before it, as if no other character were changed. A change of the length is judged by the
        first character that differs.
        """
        results: list[dict[Change, float]] = [{} for _ in texts]
        asked = [n for n in range(len(texts)) if changes[n]]
        asked.sort(key=lambda n: len(texts[n]))
        with use_threads(self._threads):
            for first in range(0, len(asked), self._batch):
                self._judge(asked[first : first + self._batch], texts, changes, results)
        return results

    def _judge(
        self,
        chosen: Sequence[int],
        texts: Sequence[str],
        changes: Sequence[Collection[Change]],
        results: list[dict[Change, float]],
    ) -> None:
        import torch

        end, device = self._tokens[_END], self._policy.model.device
        rows, wanted = [], []
        for n in chosen:
            question = prompt_ids(self._policy, texts[n])
            answer = [*(self._tokens.get(character, end) for character in texts[n]), end]
            rows.append(question + answer)
            wanted.append(range(len(question) - 1, len(question) + len(answer) - 1))
        width = max(map(len, rows))
        # Padded on the right: no token sees what follows it, so no mask is needed.
        ids = torch.tensor([row + [end] * (width - len(row)) for row in rows]).to(device)
        with torch.inference_mode():
            states = self._policy.model.model(input_ids=ids, use_cache=False).last_hidden_state
            places = [(r, place) for r, span in enumerate(wanted) for place in span]
            at = torch.tensor(places).to(device)
            logits = self._policy.model.lm_head(states[at[:, 0], at[:, 1]]).float().cpu()
        first = 0
        for n, span in zip(chosen, wanted, strict=True):
            own = logits[first : first + len(span)]
            results[n] = {change: self._ratio(own, texts[n], change) for change in changes[n]}
            first += len(span)

    def _ratio(self, logits: torch.Tensor, text: str, change: Change) -> float:
        start, end, target = change
        old, new = text[start:end], target
        if len(old) != len(new):  # judged by the first character that differs
            old, new = text[start:] + _END, target + text[end:] + _END
            same = next(
                n for n, pair in enumerate(zip(old, new, strict=False)) if len(set(pair)) > 1
            )
            start, old, new = start + same, old[same], new[same]
        ratio = 0.0
        for place, (before, after) in enumerate(zip(old, new, strict=True), start):
            if before != after:
                if after not in self._tokens or before not in self._tokens:
                    return FLOOR
                ratio += float(
                    logits[place, self._tokens[after]] - logits[place, self._tokens[before]]
                )
        return max(FLOOR, ratio)
