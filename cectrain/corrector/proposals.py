"""The edits of a policy's greedy answers, with their probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property

from cecbench.causal import EXTRA_TOKENS, decode, prompt_ids
from cecbench.local_models import thread_count, use_threads
from cecdata.hanzi.edits import align
from cectrain.corrector.correction import Edit
from cectrain.corrector.policy import Policy, greedy
from cectrain.corrector.speculative import Written

LEAST = 0.5  # least confidence of an edit: it must be likelier than everything else together
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # the token of a byte, for characters without their own


class PolicyProposer:
    """A policy as a corrector asks it.

    batch: pieces in a forward pass. threads: of the processor; 0 takes one for a small model.
    least: least confidence of an edit that is proposed, 0..1; None: the default.
    """

    def __init__(
        self, policy: Policy, batch: int = 64, threads: int = 0, *, least: float | None = None
    ) -> None:
        self.policy, self._batch = policy, batch
        self.least = LEAST if least is None else least
        self._readable: dict[str, bool] = {}
        self._threads = thread_count(policy.model, threads)
        self.longest = self.most = self._longest()

    def unread(self, text: str) -> list[bool]:
        """Return for each character whether it is spelled in bytes, or part of a special token.

        A policy does not copy bytes, and it would obey special tokens.
        """
        unread = [not self.readable(character) for character in text]
        for match in self._special.finditer(text) if self._special else ():
            unread[match.start() : match.end()] = [True] * len(match[0])
        return unread

    def readable(self, character: str) -> bool:
        """Return whether a character has a token of its own, or several that are not its bytes."""
        if "\ud800" <= character <= "\udfff":  # a lone surrogate is no text that can be encoded
            return False
        if character not in self._readable:
            tokenizer = self.policy.tokenizer
            ids = tokenizer.encode(character, add_special_tokens=False)
            tokens = tokenizer.convert_ids_to_tokens(ids)
            bad = tokenizer.unk_token_id in ids or any(map(_BYTE.fullmatch, tokens))
            self._readable[character] = not bad
        return self._readable[character]

    def propose(self, pieces: Sequence[str]) -> list[list[Edit]]:
        """Return the edits of each piece, one for each run of changed characters."""
        with use_threads(self._threads):
            written = greedy(self.policy, pieces, self._batch)
        answers = decode(self.policy, [one.tokens for one in written])
        return [
            self._edits(piece, answer, one)
            for piece, answer, one in zip(pieces, answers, written, strict=True)
        ]

    def _longest(self) -> int | None:
        """Return the most characters that fit the context with their answer, as in training."""
        policy, limits = self.policy, [self.policy.max_chars]
        if context := getattr(policy.model.config, "max_position_embeddings", None):
            characters = "的龘" if self.readable("龘") else "的"  # a common and a rare one
            encoded = (policy.tokenizer.encode(c, add_special_tokens=False) for c in characters)
            free = int(context) - len(prompt_ids(policy, "")) - EXTRA_TOKENS
            # A question of n characters, and an answer of at most twice its tokens.
            limits.append(max(1, free // (3 * max(map(len, encoded)))))
        return min((limit for limit in limits if limit is not None), default=None)

    @cached_property
    def _special(self) -> re.Pattern[str] | None:
        tokens = self.policy.tokenizer.added_tokens_decoder.values()
        texts = [str(token) for token in tokens if token.special]
        return re.compile("|".join(map(re.escape, texts))) if texts else None

    def _edits(self, piece: str, answer: str, written: Written) -> list[Edit]:
        stripped = answer.strip()
        if stripped == piece:
            return []
        log_probs = self._by_character(answer, written)
        shift = len(answer) - len(answer.lstrip())  # from offsets in the piece to the answer's
        edits = []
        for change in align(stripped, piece):
            start = change.start + shift
            end = start + len(change.source)
            shift += len(change.source) - len(change.target)
            those = log_probs[start : max(end, start + 1)]
            # Rounded, because sums of floats depend on what else is in a batch.
            chance = round(math.exp(sum(those) / len(those)), 4)
            if chance >= self.least:
                edits.append(Edit(change.start, change.end, change.target, change.source, chance))
        return edits

    def _by_character(self, answer: str, written: Written) -> list[float]:
        """Return the log-probability of each character of an answer, and last of its end."""
        prefixes = [written.tokens[: n + 1] for n in range(len(written.tokens))]
        ends = [len(text) for text in decode(self.policy, prefixes)]
        log_probs, before = [0.0] * (len(answer) + 1), 0
        special = self.policy.tokenizer.all_special_ids
        for token, log_prob, end in zip(written.tokens, written.log_probs, ends, strict=True):
            if token in special:
                log_probs[min(end, len(answer))] += log_prob
            else:  # several tokens may spell one character, and one token several
                for place in range(max(0, min(before, end - 1)), min(end, len(answer))):
                    log_probs[place] += log_prob
            before = end
        return log_probs
