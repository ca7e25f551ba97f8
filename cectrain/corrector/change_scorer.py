"""A policy's judgement of single changes, by one forward pass over the unchanged text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cecdata.common.codec import parse
from cecdata.common.errors import InputError
from cecdata.common.machine import BLAS_THREADS
from cecdata.models import prompts
from cecdata.models.causal import is_built_in_kind
from cectrain.corrector.correction import Change
from cectrain.corrector.folder import check_weights, locate_model, read_longest_source, read_prompt
from cectrain.corrector.numpy_policy import Floats, Ints, NumpyPolicy

FLOOR = -15.0  # least log-ratio; that of a text which the policy cannot write
_END = "\0"  # stands for the end token, which has no character
_TOKENS = 2048  # about so many in a forward pass: more cost memory and are no faster


class Tokens:
    """The tokens of a policy of the built-in kind: characters, placeholders, bytes for the rest.

    document: the text of `tokenizer.json`. source, target, end: the tokens before a question,
    before its answer and behind it. characters: the tokens of single characters. special: the
    pattern of special tokens. Raises ValueError, KeyError or TypeError where it is damaged or that
    of another kind.
    """

    def __init__(self, document: str | bytes) -> None:
        settings: Any = parse(document)
        added: dict[str, int] = {
            token["content"]: token["id"] for token in settings["added_tokens"]
        }
        special: list[str] = [
            token["content"] for token in settings["added_tokens"] if token["special"]
        ]
        self._numbers: dict[str, int] = {**settings["model"]["vocab"], **added}
        self.source, self.target, self.end = (
            added[f"<|{name}|>"] for name in ("source", "target", "end")
        )
        self.characters = {text: n for text, n in self._numbers.items() if len(text) == 1}
        self.special = re.compile("|".join(map(re.escape, special)))
        self._parts = re.compile("|".join([*map(re.escape, added), "(?s:.)"]))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; a character without one is spelled in bytes."""
        tokens: list[int] = []
        for part in self._parts.findall(text):
            if part in self._numbers:
                tokens.append(self._numbers[part])
            else:
                tokens += (self._numbers[f"<0x{byte:02X}>"] for byte in part.encode())
        return tokens


class _Differing(NamedTuple):
    """A character that a change replaces: its place in the text, and the tokens of both."""

    place: int
    old: int
    new: int


class ChangeScorer:
    """A policy of the built-in kind, which has one token for each character.

    name: `builtin`, or the folder of a run or of a model. longest: the most characters that it
    reads at once. folder: that of its weights. Raises InputError for a policy of another kind.
    """

    def __init__(self, name: str) -> None:
        folder = self.folder = locate_model(name)
        if not is_built_in_kind(Path(folder)):
            raise InputError(
                f"{name} cannot be combined with the channel: name the folder of a finished "
                "training of the built-in policy, or of another one with a token for each character"
            )
        check_weights(name)
        self._policy = NumpyPolicy(Path(folder))
        self._prompt = read_prompt(name)
        path = Path(folder) / "tokenizer.json"
        try:
            self.tokens = Tokens(path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} cannot be read ({error}): copy the complete folder again"
            ) from error
        self._written = {**self.tokens.characters, _END: self.tokens.end}
        self.longest = (self._policy.context - len(self._question_tokens("")) - 1) // 2
        if trained := read_longest_source(name):
            self.longest = min(self.longest, trained)

    def unread(self, text: str) -> list[bool]:
        """Return for each character whether it has no token, or is part of a special token."""
        unread = [character not in self.tokens.characters for character in text]
        for match in self.tokens.special.finditer(text):
            unread[match.start() : match.end()] = [True] * len(match[0])
        return unread

    def log_ratios(
        self, texts: Sequence[str], changes: Sequence[Collection[Change]]
    ) -> list[dict[Change, float]]:
        """Return log P(change) − log P(no change) of each change of each text, at least FLOOR.

        P is the policy's probability of the characters that differ, each after the unchanged text
        before it, as if no other character were changed. A change of the length is judged by the
        first character that differs.
        """
        results: list[dict[Change, float]] = [{} for _ in texts]
        numbers = [n for n in range(len(texts)) if changes[n]]
        numbers.sort(key=lambda n: len(texts[n]))
        # of questions and answers up to each text's end
        token_counts = itertools.accumulate(2 * len(texts[n]) for n in numbers)
        batch_of = dict(zip(numbers, (count // _TOKENS for count in token_counts), strict=True))
        with BLAS_THREADS.limit(1):
            for _, batch in itertools.groupby(numbers, key=batch_of.__getitem__):
                self._write_ratios(list(batch), texts, changes, results)
        return results

    def _write_ratios(
        self,
        batch: Sequence[int],
        texts: Sequence[str],
        changes: Sequence[Collection[Change]],
        results: list[dict[Change, float]],
    ) -> None:
        """Write the log-ratios of the changes of those texts whose numbers are in the batch."""
        differing: dict[tuple[int, Change], list[_Differing]] = {}
        for n in batch:
            for change in changes[n]:
                results[n][change] = FLOOR
                if (characters := self._find_differing(texts[n], change)) is not None:
                    differing[n, change] = characters
        ratios = self._compare_tokens(texts, differing)
        first = 0
        for (n, change), characters in differing.items():
            end = first + len(characters)
            results[n][change] = max(FLOOR, float(ratios[first:end].sum()))
            first = end

    def _compare_tokens(
        self, texts: Sequence[str], differing: Mapping[tuple[int, Change], list[_Differing]]
    ) -> Floats:
        """Return the log-ratio of all differing characters, one after the other.

        Tokens after the last one of a text are not read.
        """
        compared = [(n, *one) for (n, _), characters in differing.items() for one in characters]
        if not compared:
            return np.zeros(0, np.float32)
        places: dict[int, set[int]] = {}  # by the number of the text
        for n, place, _, _ in compared:
            places.setdefault(n, set()).add(place)
        rows: list[list[int]] = []
        asked: list[Ints] = []
        state_of: dict[tuple[int, int], int] = {}  # its number, by text and place
        for n, spots in places.items():
            question, answer = self._question_tokens(texts[n]), texts[n][: max(spots)]
            rows.append(question + [self._written.get(c, self.tokens.end) for c in answer])
            asked.append(np.array(sorted(spots)) + len(question) - 1)
            for place in sorted(spots):
                state_of[n, place] = len(state_of)
        numbers = [state_of[n, place] for n, place, _, _ in compared]
        states = self._policy.compute_states(rows, asked)[numbers]
        _, _, old, new = np.array(compared).T
        logits = self._policy.compute_logits
        return logits(states, new) - logits(states, old)

    def _find_differing(self, text: str, change: Change) -> list[_Differing] | None:
        """Return each character that the change replaces; None where one has no token."""
        start, end, target = change
        old, new = text[start:end], target
        if len(old) != len(new):  # judged by the first character that differs
            old, new = text[start:] + _END, target + text[end:] + _END
            pairs = enumerate(zip(old, new, strict=False))  # `_END` makes them differ
            first = next(n for n, (before, after) in pairs if before != after)
            start, old, new = start + first, old[first], new[first]
        differing = []
        for place, (before, after) in enumerate(zip(old, new, strict=True), start):
            if before != after:
                if before not in self._written or after not in self._written:
                    return None
                differing.append(_Differing(place, self._written[before], self._written[after]))
        return differing

    def _question_tokens(self, text: str) -> list[int]:
        """Return the tokens that ask for a correction, as the policy's template writes them."""
        question = prompts.make_messages(text, self._prompt)[-1]["content"]
        return [self.tokens.source, *self.tokens.encode(question), self.tokens.target]
