"""The reference as one candidate of its group: what no candidate reaches is shown.

A reward chooses among candidates, and in half of the groups none is right. With the reference among
them every such group has a right one, as in minimum risk training (Shen et al. 2016, §3.1, whose
sampled subset holds the reference). The paper has no such candidate; `ppo.with_reference` is off
by default. The policy did not draw it: at the first epoch its ratio is 1, so that it adds the
gradient of a supervised step, weighed by what the policy's own candidates failed to earn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def tokens_of(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[list[int]]:
    """Tokens of each text, without special ones."""
    found: list[list[int]] = tokenizer(list(texts), add_special_tokens=False).input_ids
    return found


def with_references(
    written: Sequence[list[int]],
    references: Sequence[Sequence[int]],
    size: int,
    end: int,
    most: int,
) -> list[list[int]]:
    """The candidates, each group's last one replaced by its reference and the token `end`.

    `references` has a row for each candidate; nothing is longer than `most` tokens.

    >>> with_references([[5, 1], [6, 1]], [[7], [7]], 2, end=1, most=9)
    [[5, 1], [7, 1]]
    """
    return [
        [*references[place], end][:most] if place % size == size - 1 else tokens
        for place, tokens in enumerate(written)
    ]
