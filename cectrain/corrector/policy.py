"""A policy: a causal language model that corrects, with the prompt of its training; its answers,
and the edits of those answers with their probabilities.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cecdata.common.errors import InputError
from cecdata.hanzi.edits import align
from cecdata.models import causal, hub
from cecdata.models.causal import CausalModel
from cecdata.models.hub import identify_checkpoint, run_identity
from cecdata.models.loading import choose_thread_count, run_in_batches, use_threads
from cectrain.corrector import folder, speculative
from cectrain.corrector.correction import Edit, Proposer, make_edit
from cectrain.corrector.edit_guard import Plain, put_stand_ins
from cectrain.corrector.speculative import Written

LEAST = 0.5  # least confidence of an edit: it must be likelier than everything else together
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # the token of a byte, for characters without their own


@dataclass(frozen=True, slots=True)
class Policy(CausalModel):
    """A model that corrects.

    `max_chars` is the longest source that it reads, in characters; None: no limit is known.
    """

    max_chars: int | None = None


def load(
    name: str, prompt: str | None = None, device: str = "auto", dtype: str = "float32"
) -> Policy:
    """Return the policy of a folder or a hub id (`builtin` is the one that ships), on its device.

    prompt: a version; None is that of its training. dtype: of the weights; float32 because the
    steps at the end of a schedule are smaller than bfloat16 can add. Raises InputError where
    nothing loads or the folder is not whole.
    """
    version = prompt or folder.read_prompt(name)
    where = folder.locate_model(name)
    folder.check_weights(name)
    loaded = causal.load(where, version, device, dtype, extra="train")
    longest = folder.read_longest_source(name)
    return Policy(loaded.model, loaded.tokenizer, version, loaded.system, max_chars=longest)


def make_reader(policy: Policy) -> Callable[[str], str]:
    """Return a function from a text to what the policy reads of it in a corrector.

    Spaces and the like inside of words are left out, and characters that it cannot read (those it
    would spell in bytes, and its special tokens) have stand-ins.
    """
    unread = PolicyProposer(policy).unread
    return lambda text: put_stand_ins(Plain.make(text).text, unread)


def encode_target(policy: Policy, target: str) -> list[int]:
    """Return the tokens of an answer with the end token."""
    ids: list[int] = policy.tokenizer.encode(target, add_special_tokens=False)
    return [*ids, int(policy.tokenizer.eos_token_id)]


def end_tokens(model: Any) -> list[int]:
    """Return the tokens that end an answer according to the model's generation config."""
    named = model.generation_config.eos_token_id
    listed = named if isinstance(named, (list, tuple)) else [named]
    return [token for token in listed if token is not None]


def check_context(policy: Policy, longest_source: str, new_tokens: int) -> None:
    """Raise InputError if the longest question and its answer do not fit the model's context."""
    limit = int(getattr(policy.model.config, "max_position_embeddings", 0) or 0)
    needed = len(causal.encode_prompt(policy, longest_source)) + new_tokens
    if limit and needed > limit:
        raise InputError(
            f"a prompt of {needed - new_tokens} tokens and an answer of {new_tokens} exceed the "
            f"policy's context of {limit}: lower policy.max_chars, or choose another policy"
        )


def write_greedily(policy: Policy, sources: Sequence[str], batch: int) -> list[Written]:
    """Return the greedy answer to each source; no random numbers are drawn.

    An answer is nearly its source, so the source is its draft where the model allows that
    (`speculative`); other models write token by token.
    """
    prompts = [causal.encode_prompt(policy, source) for source in sources]
    write = _write_from_drafts if speculative.is_supported(policy.model) else _write_token_by_token

    def write_batch(numbers: list[int]) -> list[Written]:
        """Return the answers to these sources, each cut at its own budget, whatever its batch."""
        texts = [sources[number] for number in numbers]
        budgets = [causal.find_token_budget(policy, text) for text in texts]
        answers = write(policy, [prompts[number] for number in numbers], texts, budgets)
        return [
            Written(answer.tokens[:budget], answer.log_probs[:budget])
            for answer, budget in zip(answers, budgets, strict=True)
        ]

    with speculative.pause_training(policy.model):
        return list(run_in_batches([len(ids) for ids in prompts], batch, write_batch))


def correct_texts(policy: Policy, sources: Sequence[str], batch: int = 64) -> list[str]:
    """Return the greedy answer to each source as text, as the policy wrote it."""
    written = write_greedily(policy, sources, batch)
    return [text.strip() for text in causal.decode(policy, [answer.tokens for answer in written])]


def _write_from_drafts(
    policy: Policy, prompts: Sequence[Sequence[int]], sources: Sequence[str], budgets: Sequence[int]
) -> list[Written]:
    """Return greedy answers, for which the sources are the drafts."""
    return speculative.write_answers(
        policy.model,
        prompts,
        policy.tokenizer(list(sources), add_special_tokens=False).input_ids,
        1,
        end=int(policy.tokenizer.eos_token_id),
        stops=end_tokens(policy.model),
        longest=max(budgets),
        temperature=None,
    )


def _write_token_by_token(
    policy: Policy,
    prompts: Sequence[Sequence[int]],
    sources: Sequence[str],  # noqa: ARG001 - for the drafts of `_write_from_drafts`
    budgets: Sequence[int],
) -> list[Written]:
    """Return greedy answers as `transformers` writes them, and their log-probabilities."""
    answers = causal.generate(policy, prompts, budgets)
    return [
        Written(answer, _compute_log_probs(policy.model, prompt, answer))
        for prompt, answer in zip(prompts, answers, strict=True)
    ]


def _compute_log_probs(model: Any, prompt: Sequence[int], answer: list[int]) -> list[float]:
    """Return the log-probability of each token of an answer."""
    import torch

    ids = torch.tensor([[*prompt, *answer]], device=model.device)
    logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].float()
    chosen = ids[0, len(prompt) :, None]
    log_probs: list[float] = logits.log_softmax(-1).gather(1, chosen)[:, 0].tolist()
    return log_probs


class PolicyProposer(Proposer):
    """A policy as a corrector uses it.

    batch: pieces in a forward pass. least: least confidence of an edit that is proposed, 0..1;
    None: the default. name: what the policy was loaded from.
    """

    def __init__(
        self, policy: Policy, batch: int = 64, *, least: float | None = None, name: str = ""
    ) -> None:
        self.policy, self._batch, self._name = policy, batch, name
        self.least = LEAST if least is None else least
        self._readable: dict[str, bool] = {}
        self._threads = choose_thread_count(policy.model)
        self.longest = self.most = self._find_longest()

    @property
    def identity(self) -> Mapping[str, object]:
        torch, transformers = hub.import_torch("train")
        model = self.policy.model
        return {
            **identify_checkpoint(folder.locate_model(self._name), model),
            **run_identity(torch, transformers, str(model.device)),
            **causal.identify_prompt(self.policy),
            "dtype": str(model.dtype),
            "longest_piece": self.longest,
            "unchanged": "what is not Han, what the policy cannot read, answers that stray",
        }

    def unread(self, text: str) -> list[bool]:
        """Return for each character whether it is spelled in bytes, or part of a special token.

        A policy does not copy bytes, and it would obey special tokens.
        """
        unread = [not self._is_readable(character) for character in text]
        for match in self._special.finditer(text):
            unread[match.start() : match.end()] = [True] * len(match[0])
        return unread

    def _is_readable(self, character: str) -> bool:
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
            written = write_greedily(self.policy, pieces, self._batch)
        answers = causal.decode(self.policy, [answer.tokens for answer in written])
        return [
            self._align_answer(piece, text, answer)
            for piece, text, answer in zip(pieces, answers, written, strict=True)
        ]

    def _find_longest(self) -> int | None:
        """Return the most characters that fit the context with their answer, as in training.

        None where neither the training nor the model has a limit.
        """
        policy, limit = self.policy, self.policy.max_chars
        if context := getattr(policy.model.config, "max_position_embeddings", None):
            characters = "的龘" if self._is_readable("龘") else "的"  # a common and a rare one
            encoded = (policy.tokenizer.encode(c, add_special_tokens=False) for c in characters)
            free = int(context) - len(causal.encode_prompt(policy, "")) - causal.EXTRA_TOKENS
            # A question of n characters, and an answer of at most twice its tokens.
            most = max(1, free // (3 * max(map(len, encoded))))
            limit = most if limit is None else min(limit, most)
        return limit

    @cached_property
    def _special(self) -> re.Pattern[str]:
        """The pattern of the tokenizer's special tokens."""
        tokens = self.policy.tokenizer.added_tokens_decoder.values()
        texts = [re.escape(str(token)) for token in tokens if token.special]
        return re.compile("|".join(texts) or "(?!)")  # which matches nothing

    def _align_answer(self, piece: str, answer: str, written: Written) -> list[Edit]:
        """Return the edits by which an answer differs from a piece, if they are sure enough."""
        stripped = answer.strip()
        if stripped == piece:
            return []
        log_probs = self._spread_log_probs(answer, written)
        shift = len(answer) - len(answer.lstrip())  # from offsets in the piece to the answer's
        edits = []
        for change in align(stripped, piece):
            start = change.start + shift
            end = start + len(change.source)
            shift += len(change.source) - len(change.target)
            span = log_probs[start : max(end, start + 1)]
            # Rounded, because sums of floats depend on what else is in a batch.
            confidence = round(math.exp(sum(span) / len(span)), 4)
            if confidence >= self.least:
                edits.append(make_edit(piece, change.start, change.end, change.source, confidence))
        return edits

    def _spread_log_probs(self, answer: str, written: Written) -> list[float]:
        """Return the log-probability of each character of an answer, and last of its end.

        Several tokens may spell one character, which has their sum, and one token several.
        """
        prefixes = [written.tokens[: n + 1] for n in range(len(written.tokens))]
        ends = [len(text) for text in causal.decode(self.policy, prefixes)]  # of tokens, in text
        log_probs, begin = [0.0] * (len(answer) + 1), 0
        special = self.policy.tokenizer.all_special_ids
        for token, log_prob, end in zip(written.tokens, written.log_probs, ends, strict=True):
            if token in special:
                log_probs[min(end, len(answer))] += log_prob
            else:  # a token that only completes a character counts for it
                for place in range(max(0, min(begin, end - 1)), min(end, len(answer))):
                    log_probs[place] += log_prob
            begin = end
        return log_probs
