"""Causal language models of transformers as scorers: a hub name, a folder, or a GGUF file.

The unchanged text is read once. What its tokens say of each place estimates the changes of it, by
the tokens that would write them. All changes share that pass: behind the text stand, packed into
the same row, only the tokens that a change replaces and a few after them, and a mask lets each
see the text before its change and nothing of the others. Of the vocabulary only what Chinese text
is written with competes there, because most of a small model's time goes into the rest. Where a
model does not take such a pass (it is tried once), each changed text is read whole.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cecdata.common.errors import InputError
from cecdata.common.progress import stop_if_given_up
from cecdata.lm.language_model import (
    Change,
    Doubles,
    Kind,
    LanguageModel,
    apply_change,
    count_common_ends,
    encodable,
)
from cecdata.models.hub import identify_checkpoint
from cecdata.models.loading import load_causal, name_cache
from cecdata.models.vocabulary import HAN, decode_tokens, writes_chinese

if TYPE_CHECKING:
    from torch import Tensor

REACH = 6  # tokens behind a change that are judged with it: docs/reports/language-model.md
# The most tokens of a packed pass, and the most bytes that the logits of a batch take in float32.
_LIMITS_CPU, _LIMITS_GPU = (1 << 10, 1 << 28), (1 << 14, 1 << 30)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_LONGEST_WORD = 4  # characters
_WORD = re.compile(f"{HAN.pattern}{{1,{_LONGEST_WORD}}}")
_PASSES = 16  # texts whose pass is kept until their changes are judged
# Nats by which a packed pass may differ from a plain one, in float32 and with bfloat16.
_ALIKE, _ALIKE_MIXED = 0.05, 0.5
_PROBE = ("今天天气很好，我们去公园。", ((2, 4, "夭汽"), (9, 10, "")))


class _Suffix(NamedTuple):
    """A change in tokens: `old`, from `start` on, become `new`; some equal ones end both."""

    start: int
    old: list[int]
    new: list[int]


class _Pack(NamedTuple):
    """The tokens of a text and of changes that are read in one pass, which is a row."""

    text: int  # number of the text among those that were asked
    ids: list[int]
    places: list[int]  # of the changes among those of the text
    suffixes: list[_Suffix]  # the changes

    @property
    def size(self) -> int:
        """Return the number of tokens of the text and of all changes."""
        return len(self.ids) + sum(len(suffix.new) for suffix in self.suffixes)


class CausalScorer(LanguageModel):
    """A causal language model. A text begins behind the token that begins documents."""

    def __init__(self, name: str, *, reach: int = REACH) -> None:
        """Load a model onto the first GPU, or the processor without one.

        reach: tokens behind a change that are judged with it.
        """
        model, tokenizer = load_causal(name, "lm", dtype="fast")
        import torch
        from transformers import DynamicCache

        self._torch, self._cache_class = torch, DynamicCache
        self.name = Path(name).resolve().name if Path(name).exists() else name
        self._tokenizer, self._model = tokenizer, model.eval()
        self.device, self.dtype = self._model.device.type, self._model.dtype
        self._mixed = self.device == "cpu" and self.dtype == torch.bfloat16
        if self._mixed:  # products in bfloat16, sums over the layers in float32
            embeddings = self._model.get_input_embeddings()
            embeddings.register_forward_hook(lambda *call: call[-1].float())
        limits = _LIMITS_CPU if self.device == "cpu" else _LIMITS_GPU
        self._most_tokens, self._most_bytes = limits
        # with coarse products, what stands beside a text moves its ratios; alone it is as fast
        self._most_at_once = 0 if self._mixed else self._most_tokens
        text = self._model.config.get_text_config()
        self._vocabulary = int(text.vocab_size)
        self._begin = _find_first_token(self._tokenizer, name)
        self._unknown = self._tokenizer.unk_token_id  # stands for what no token writes
        if self._unknown is None:
            self._unknown = self._begin
        self.context = int(getattr(text, "max_position_embeddings", None) or 1 << 20)
        window = int(getattr(text, "sliding_window", None) or self.context)
        self._longest = min(self.context, window)  # tokens of a pass whose changes are packed
        self._reach = reach
        self._cache_name = name_cache(self._model.base_model)
        *_, digest = identify_checkpoint(name, model).values()
        self.identity = f"{digest} {self.dtype} {reach}"
        # by the tokens of a text: the states after it, and the model's cache of keys and values
        self._passes: dict[tuple[int, ...], tuple[Tensor, Any]] = {}
        self._packs = self._takes_packed()
        self._words: dict[str, int] = {}  # the tokens of one to four Han characters
        if self._packs:
            texts = decode_tokens(self._tokenizer, self._vocabulary)
            self._set_competing(_find_competing(texts, self._tokenizer, self._vocabulary))
            if self._tokenizer.is_fast:  # others do not tell where a token stands
                self._words = {t: n for n, t in enumerate(texts) if _WORD.fullmatch(t)}

    def log_prob(self, texts: Sequence[str]) -> Doubles:
        """Return log P of each text in nats.

        NaN for a text longer than the context, or with a character that the vocabulary cannot
        write.
        """
        nats = np.zeros(len(texts))
        rows: dict[int, list[int]] = {}
        for n, text in enumerate(texts):
            ids = self._tokenize(text)
            if len(ids) > self.context or self._unknown in ids[1:]:
                nats[n] = math.nan
            elif len(ids) > 1:
                rows[n] = ids
        most = self._most_bytes // (4 * self._vocabulary)
        for members in _batch_by_size({n: len(ids) for n, ids in rows.items()}, most):
            nats[members] = self._score_rows([rows[n] for n in members])
        return nats

    def log_ratios_of(
        self, texts: Sequence[str], changes: Sequence[Sequence[Change]]
    ) -> list[Doubles]:
        """Return the ratios of several texts; their passes are batched by length."""
        ratios = [np.zeros(len(listed)) for listed in changes]
        packs: list[_Pack] = []
        for n, (text, listed) in enumerate(zip(texts, changes, strict=True)):
            ids = self._tokenize(text) if listed else []
            if not self._packs or len(ids) + self._reach > self._longest:
                ratios[n] = super().log_ratios_of([text], [listed])[0]
            else:
                packs += self._cut_packs(n, ids, text, listed, ratios[n])
        sizes = {n: pack.size for n, pack in enumerate(packs)}
        for members in _batch_by_size(sizes, self._most_at_once):
            batch = [packs[n] for n in members]
            for pack, values in zip(batch, self._judge_packs(batch), strict=True):
                ratios[pack.text][pack.places] = values
        return ratios

    def estimate_ratios(
        self, texts: Sequence[str], changes: Sequence[Sequence[Change]]
    ) -> list[Doubles]:
        """Return the ratios of single tokens; the passes are batched by length."""
        ratios = super().estimate_ratios(texts, changes)
        numbers = [n for n, of_text in enumerate(changes) if of_text and self._words]
        rows = {n: self._tokenize(texts[n]) for n in numbers}
        readable = {
            n: len(ids)
            for n, ids in rows.items()
            if 1 < len(ids) <= self._longest and self._unknown not in ids[1:]
        }
        for members in _batch_by_size(readable, self._most_at_once):
            scored: list[tuple[int, int, int]] = []  # row, place and the token behind it
            # number of the text and of the change; in `scored`, its token and those it replaces
            compared: list[tuple[int, int, int, slice]] = []
            for row, n in enumerate(members):
                begin = len(scored)
                scored += [(row, place, id_) for place, id_ in enumerate(rows[n][1:])]
                for at, token, first, last in self._find_writings(texts[n], changes[n]):
                    compared.append((n, at, len(scored), slice(begin + first, begin + last)))
                    scored.append((row, first, token))
            with self._inference():
                states = self._read_texts([rows[n] for n in members])
                logs = self._log_probs(states, self._torch.tensor(scored, device=self.device))
            for n, at, token, replaced in compared:
                ratios[n][at] = max(ratios[n][at], logs[token] - logs[replaced].sum())
        return ratios

    def _read_texts(self, rows: list[list[int]]) -> Tensor:
        """Return the states of texts, [rows, tokens, D], given by their tokens.

        With coarse products a text is alone, and its pass is kept for its changes.
        """
        key = tuple(rows[0])
        if self._mixed and key in self._passes:
            return self._passes[key][0]
        ids = self._make_rows(rows)
        cache = self._cache_class() if self._mixed else None
        states = self._model.base_model(
            input_ids=ids.to(self.device), use_cache=self._mixed, **{self._cache_name: cache}
        ).last_hidden_state
        if self._mixed:
            if len(self._passes) == _PASSES:
                del self._passes[next(iter(self._passes))]
            self._passes[key] = states, cache
        return states

    def _find_writings(
        self, text: str, changes: Sequence[Change]
    ) -> Iterator[tuple[int, int, int, int]]:
        """Yield (number of a change, token, first, last): a token that writes it in place of these.

        A token of up to four characters may write more than the change: what stands beside it, too.
        The tokens [first, last) of the text are all that it stands for.
        """
        first_at, count_at = self._locate_tokens(text)
        for n, (start, end, new) in enumerate(changes):
            for begin in range(max(0, start - _LONGEST_WORD + 1), start + 1):
                if begin not in first_at:
                    continue
                written = text[begin:start] + new
                farthest = min(len(text), begin + _LONGEST_WORD)
                for stop in range(max(end, begin + 1), farthest + 1):
                    token = self._words.get(written + text[end:stop])
                    if token is not None:
                        yield n, token, first_at[begin], count_at[stop]

    def _locate_tokens(self, text: str) -> tuple[dict[int, int], dict[int, int]]:
        """Return which token begins at a place in a text, and how many tokens cover what is before.

        No token begins within a character that several tokens write.
        """
        encoded = self._tokenizer(
            encodable(text), add_special_tokens=False, return_offsets_mapping=True
        )
        first_at: dict[int, int] = {}
        count_at: dict[int, int] = {}
        done = 0
        for number, (start, end) in enumerate(encoded["offset_mapping"]):
            if start >= done:
                first_at[start] = number
            count_at |= dict.fromkeys(range(done + 1, end + 1), number + 1)
            done = max(done, end)
        return first_at, count_at

    def _cut_packs(
        self, n: int, ids: list[int], text: str, changes: Sequence[Change], ratios: Doubles
    ) -> Iterator[_Pack]:
        """Yield the passes over a text, each with as many of its changes as fit.

        Changes that need no pass, or that the model cannot judge, are written to `ratios`.
        """
        pack = _Pack(n, ids, [], [])
        for at, change in enumerate(changes):
            suffix = self._make_suffix(ids, self._tokenize(apply_change(text, change)))
            if suffix is None or self._unknown in suffix.new:
                ratios[at] = 0.0 if suffix is None else math.nan
                continue
            if pack.places and pack.size + len(suffix.new) > self._most_tokens:
                yield pack
                pack = _Pack(n, ids, [], [])
            pack.places.append(at)
            pack.suffixes.append(suffix)
        if pack.places:
            yield pack

    def _make_suffix(self, ids: list[int], other: list[int]) -> _Suffix | None:
        """Return where the tokens differ, with those behind within reach; None for equal ones."""
        if ids == other:
            return None
        start, tail = count_common_ends(ids, other)
        beyond = tail - min(tail, self._reach)
        return _Suffix(start, ids[start : len(ids) - beyond], other[start : len(other) - beyond])

    def _tokenize(self, text: str) -> list[int]:
        """Return the tokens of a text, with the unknown one for what the vocabulary lacks."""
        ids = self._tokenizer(encodable(text), add_special_tokens=False)["input_ids"]
        return [self._begin, *ids]

    def _score_rows(self, rows: list[list[int]]) -> Doubles:
        """Return log P of each row of tokens behind its first, over the whole vocabulary."""
        ids, seen = self._make_rows(rows), self._make_rows([[1] * len(row) for row in rows])
        with self._inference():
            logits = self._model(
                input_ids=ids.to(self.device), attention_mask=seen.to(self.device), use_cache=False
            ).logits
            next_ids = ids[:, 1:, None].to(self.device)
            parts = []
            for at in range(0, logits.shape[1] - 1, 64):  # in float32, some positions at a time
                block, targets = logits[:, at : at + 64].float(), next_ids[:, at : at + 64]
                block = block[:, : targets.shape[1]]
                parts.append(block.gather(-1, targets)[..., 0] - block.logsumexp(-1))
            logs = self._torch.cat(parts, 1) * seen[:, 1:].to(self.device)
        return np.asarray(logs.cpu().double().sum(1).numpy())

    def _judge_packs(self, packs: list[_Pack]) -> list[Doubles]:
        """Return, for each pack, the ratios of its changes, from one pass over all."""
        torch = self._torch
        ids, positions, visible = self._lay_out(packs)
        mask = torch.zeros(visible.shape, dtype=torch.float32 if self._mixed else self.dtype)
        mask.masked_fill_(~visible, torch.finfo(mask.dtype).min)
        scored, signs = _list_scored(packs)
        with self._inference():
            states = self._read_packs(packs, ids, mask, positions)
            logs = self._log_probs(states, torch.tensor(scored, device=self.device))
        owners, weights = zip(*signs, strict=True)
        counts = [len(pack.suffixes) for pack in packs]
        ratios = np.bincount(owners, logs * np.array(weights), sum(counts))
        return np.split(ratios, np.cumsum(counts)[:-1])

    def _lay_out(self, packs: list[_Pack]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tokens of each row and their positions, [rows, T], and what each sees.

        That is [rows, T, T]: the tokens of a change, all but the last, stand behind the text. They
        have the positions of the changed text, and see the text before the change.
        """
        torch = self._torch
        ids = self._make_rows(
            [[*p.ids, *(id_ for s in p.suffixes for id_ in s.new[:-1])] for p in packs]
        )
        positions = torch.zeros_like(ids)
        # what fills a row up sees itself alone, because a token must see something
        visible = torch.eye(ids.shape[1], dtype=torch.bool).repeat(len(packs), 1, 1)
        for n, pack in enumerate(packs):
            at = len(pack.ids)
            positions[n, :at] = torch.arange(at)
            visible[n, :at, :at] = torch.ones(at, at, dtype=torch.bool).tril()
            for suffix in pack.suffixes:
                size = max(0, len(suffix.new) - 1)
                positions[n, at : at + size] = torch.arange(suffix.start, suffix.start + size)
                visible[n, at : at + size, : suffix.start] = True
                visible[n, at : at + size, at : at + size] |= torch.ones(size, size).tril().bool()
                at += size
        return ids, positions, visible

    def _read_packs(
        self, packs: list[_Pack], ids: Tensor, mask: Tensor, positions: Tensor
    ) -> Tensor:
        """Return the states of the rows, [rows, T, D].

        Of a text whose pass is kept, only the tokens of changes behind it are read.
        """
        begun, cache, parts = 0, None, []
        if self._mixed:
            begun = len(packs[0].ids)
            parts.append(self._read_texts([packs[0].ids]))
            cache = self._passes[tuple(packs[0].ids)][1]
            if further := cache.get_seq_length() - begun:  # of the last changes
                cache.crop(-further)
        if ids.shape[1] > begun:
            output = self._model.base_model(
                input_ids=ids[:, begun:].to(self.device),
                attention_mask=mask[:, None, begun:].to(self.device),
                position_ids=positions[:, begun:].to(self.device),
                use_cache=self._mixed,
                **{self._cache_name: cache},
            )
            parts.append(output.last_hidden_state)
        return self._torch.cat(parts, 1)

    def _log_probs(self, states: Tensor, scored: Tensor) -> Doubles:
        """Return log P of each (row, place, token) of `scored`, by states [rows, places, D]."""
        torch = self._torch
        flat_places = scored[:, 0] * states.shape[1] + scored[:, 1]
        places, place_of = flat_places.unique(return_inverse=True)
        weight, bias = self._output
        flat = states.flatten(0, 1)[places].to(weight.dtype)
        competing = (torch.nn.functional.linear(part, *self._competing) for part in flat.split(64))
        sums = [logits.float().logsumexp(-1) for logits in competing]
        totals = torch.cat(sums)[place_of]
        logits = (flat[place_of].float() * weight[scored[:, 2]]).sum(-1)
        if bias is not None:
            logits += bias[scored[:, 2]]
        outside = ~self._competes[scored[:, 2]]  # then it competes with those that do
        totals[outside] = torch.logaddexp(totals[outside], logits[outside])
        return np.asarray((logits - totals).cpu().double().numpy())

    def _set_competing(self, competing: Tensor) -> None:
        """Let only these tokens [vocabulary] compete in packed passes."""
        layer = self._model.get_output_embeddings()
        weight, bias = layer.weight.detach(), getattr(layer, "bias", None)
        bias = None if bias is None else bias.detach()
        self._output, self._competes = (weight, bias), competing.to(self.device)
        if not competing.all():
            chosen = self._competes.nonzero()[:, 0]
            weight, bias = weight[chosen], None if bias is None else bias[chosen]
        self._competing = weight, bias

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Let the model compute without gradients, and in the formats that it was loaded for."""
        mixed = self._torch.autocast("cpu", self._torch.bfloat16, enabled=self._mixed)
        with self._torch.inference_mode(), mixed:
            yield

    def _make_rows(self, rows: list[list[int]]) -> Tensor:
        """Return lists of numbers as one tensor, with zeros behind the shorter ones."""
        longest = max(map(len, rows))
        return self._torch.tensor([row + [0] * (longest - len(row)) for row in rows])

    def _takes_packed(self) -> bool:
        """Return whether a packed pass gives what passes over the whole texts give.

        Not so for models that carry a state from token to token, or whose logits are more than a
        product of the last states.
        """
        names = inspect.signature(self._model.base_model.forward).parameters
        stateful = getattr(self._model, "_is_stateful", False)
        if stateful or not {"attention_mask", "position_ids", self._cache_name} <= names.keys():
            return False
        self._set_competing(self._torch.ones(self._vocabulary, dtype=self._torch.bool))
        text, changes = _PROBE
        ratios = np.zeros(len(changes))
        reach, self._reach = self._reach, len(text)  # a pass over the whole text leaves nothing out
        packs = list(self._cut_packs(0, self._tokenize(text), text, changes, ratios))
        self._reach = reach
        if packs:
            ratios[packs[0].places] = self._judge_packs(packs)[0]
        whole = super().log_ratios_of([text], [changes])[0]
        tolerance = _ALIKE_MIXED if self._mixed else _ALIKE
        return bool(np.allclose(ratios, whole, atol=tolerance, equal_nan=True))


def _list_scored(
    packs: list[_Pack],
) -> tuple[list[tuple[int, int, int]], list[tuple[int, float]]]:
    """Return what the ratios of changes are sums of, as two parallel lists.

    One has the row, a place in it and the token behind that place; the other the number of the
    change whose ratio its log P moves, and which way: 1 or -1.
    """
    scored: list[tuple[int, int, int]] = []
    signs: list[tuple[int, float]] = []
    count = 0
    for n, pack in enumerate(packs):
        at = len(pack.ids)
        for suffix in pack.suffixes:
            size = max(0, len(suffix.new) - 1)
            before = [suffix.start - 1, *range(at, at + size)]  # one too many if `new` is empty
            scored += [(n, place, id_) for place, id_ in zip(before, suffix.new, strict=False)]
            scored += [(n, suffix.start - 1 + k, id_) for k, id_ in enumerate(suffix.old)]
            signs += [(count, 1.0)] * len(suffix.new) + [(count, -1.0)] * len(suffix.old)
            count, at = count + 1, at + size
    return scored, signs


def _batch_by_size(sizes: Mapping[int, int], most: int) -> Iterator[list[int]]:
    """Yield the keys in order of size, as many at once as do not exceed `most` tokens.

    The rows of a batch are as long as its longest one.
    """
    order, first = sorted(sizes, key=sizes.__getitem__), 0
    for last in range(1, len(order) + 1):
        if last == len(order) or (last + 1 - first) * sizes[order[last]] > most:
            stop_if_given_up()
            yield order[first:last]
            first = last


def _find_competing(texts: list[str], tokenizer: Any, size: int) -> Tensor:
    """Return which tokens Chinese text is written with: those with a Han character or no letter."""
    import torch

    competing = torch.zeros(size, dtype=torch.bool)
    competing[: len(texts)] = torch.tensor([writes_chinese(text) for text in texts])
    competing[[number for number in tokenizer.all_special_ids if number < size]] = True
    return competing


def _takes_name(name: str) -> bool:
    """Return whether a name is that of a folder, a GGUF file or a model on the hub."""
    return Path(name).is_dir() or name.endswith(".gguf") or bool(_HUB_NAME.fullmatch(name))


def _find_first_token(tokenizer: Any, name: str) -> int:
    """Return the token behind which documents begin."""
    for token in (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id):
        if token is not None:
            return int(token)
    raise InputError(f"{name} needs a token that begins or ends a text: use another model")


KIND = Kind(_takes_name, CausalScorer)
