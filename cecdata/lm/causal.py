"""Causal language models of transformers as scorers: a hub name, a folder, or a GGUF file.

The unchanged text is read once. All changes of it share that pass: behind the text stand, packed
into the same row, only the tokens that a change replaces and a few after them, and a mask lets each
see the text before its change and nothing of the others. Where a model does not take such a mask
(it is tried once), each changed text is read whole.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cecdata.common import hub
from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cecdata.common.hub import sha256_of_model
from cecdata.common.machine import free_memory
from cecdata.lm.scorer import Change, Doubles, Kind, changed

if TYPE_CHECKING:
    import pyarrow as pa
    import torch
    from torch import Tensor

Longs = NDArray[np.int64]
REACH = 32  # tokens behind a change whose probability it still moves
_LOGITS_BYTES = {"cpu": 1 << 28, "cuda": 1 << 30}  # most that the logits of a batch take, float32
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_ALIKE = 0.05  # nats by which a packed pass may differ from a plain one, rounding being coarse
_PROBE = ("今天天气很好，我们去公园。", ((2, 4, "夭汽"), (9, 10, "")))


@dataclass(frozen=True, slots=True)
class _Suffix:
    """What a change replaces: the tokens `old` from `start` on by `new`, with some after them."""

    start: int
    old: list[int]
    new: list[int]


class CausalScorer:
    """A causal language model. A text begins behind the token that begins documents."""

    def __init__(
        self, name: str, *, device: str = "auto", dtype: str = "auto", reach: int = REACH
    ) -> None:
        """Load a model.

        device: cpu, cuda, …; auto is the first GPU, if there is one. dtype: auto is the stored one
        on a GPU; on a processor float32, or bfloat16 where that would not fit. reach: tokens behind
        a change that are judged with it.
        """
        self._torch = _torch()
        folder, gguf = _located(name)
        self.name = name if not Path(name).exists() else Path(name).name
        config = _config(folder, gguf)
        self.device = device if device != "auto" else self._first_device()
        self.dtype = self._fitting_dtype(name, config, dtype)
        self._tokenizer = _tokenizer(folder, gguf)
        self._model = _model(folder, gguf, self.dtype).to(self.device).eval()
        self._begin = _beginning(self._tokenizer, name)
        text = config.get_text_config()
        self.context = int(getattr(text, "max_position_embeddings", None) or 1 << 20)
        self._window = int(getattr(text, "sliding_window", None) or self.context)
        self._vocabulary = int(text.vocab_size)
        self._reach = reach
        revision = getattr(config, "_commit_hash", None)
        of_files = revision or _digest(folder, gguf)
        self.identity = f"{of_files} {self.dtype} {reach}".removeprefix("torch.")
        self._packs = False
        self._packs = self._takes_packed()

    def log_prob(self, texts: Sequence[str] | pa.Array) -> Doubles:
        """Return log P of each text in nats; one longer than the context is read in parts.

        NaN for a text with a character that the vocabulary cannot write.
        """
        given = [str(text) for text in texts]
        found = np.zeros(len(given))
        rows: dict[int, list[int]] = {}
        for n, text in enumerate(given):
            ids = self._ids(text)
            if len(ids) > self.context:
                found[n] = self._in_parts(text)
            elif self._tokenizer.unk_token_id in ids[1:]:
                found[n] = math.nan
            elif len(ids) > 1:
                rows[n] = ids
        order = sorted(rows, key=lambda n: len(rows[n]))
        for batch in self._batches([len(rows[n]) for n in order]):
            members = [order[at] for at in batch]
            logs = self._plain([rows[n] for n in members])
            for n, values in zip(members, logs, strict=True):
                found[n] = values.sum()
        return found

    def log_ratios(self, text: str, changes: Sequence[Change]) -> Doubles:
        """Return log P(text after the change) - log P(text), for each change alone."""
        return self.log_ratios_of([text], [changes])[0]

    def log_ratios_of(
        self, texts: Sequence[str], changes: Sequence[Sequence[Change]]
    ) -> list[Doubles]:
        """Return the ratios of several texts; their passes are batched by length."""
        ratios = [np.zeros(len(of_text)) for of_text in changes]
        packs: list[tuple[int, list[int], list[tuple[int, _Suffix]]]] = []
        for n, (text, of_text) in enumerate(zip(texts, changes, strict=True)):
            ids = self._ids(text)
            if not of_text:
                continue
            if not self._packs or len(ids) + self._reach > min(self.context, self._window):
                ratios[n] = self._whole(text, of_text)
                continue
            packs += self._packs_of(n, ids, text, of_text, ratios[n])
        sizes = [len(ids) + sum(len(s.new) for _, s in suffixes) for _, ids, suffixes in packs]
        order = sorted(range(len(packs)), key=sizes.__getitem__)
        for batch in self._batches([sizes[at] for at in order]):
            members = [packs[order[at]] for at in batch]
            found = self._packed([(ids, [s for _, s in marked]) for _, ids, marked in members])
            for (n, _, marked), values in zip(members, found, strict=True):
                ratios[n][[at for at, _ in marked]] = values
        return ratios

    def _packs_of(
        self, n: int, ids: list[int], text: str, changes: Sequence[Change], ratios: Doubles
    ) -> Iterator[tuple[int, list[int], list[tuple[int, _Suffix]]]]:
        """Yield the passes over a text, each with as many of its changes as the logits allow."""
        room = self._most_tokens() - len(ids)
        held: list[tuple[int, _Suffix]] = []
        size = 0
        for at, change in enumerate(changes):
            suffix = self._suffix(ids, self._ids(changed(text, change)))
            if suffix is None or self._tokenizer.unk_token_id in suffix.new:
                ratios[at] = 0.0 if suffix is None else math.nan
                continue
            if held and size + len(suffix.new) > room:
                yield n, ids, held
                held, size = [], 0
            held.append((at, suffix))
            size += len(suffix.new)
        if held:
            yield n, ids, held

    def _suffix(self, ids: list[int], other: list[int]) -> _Suffix | None:
        """Return where the tokens differ, with those behind within reach; None for equal ones."""
        if ids == other:
            return None
        shortest, start, tail = min(len(ids), len(other)), 0, 0
        while start < shortest and ids[start] == other[start]:
            start += 1
        while tail < shortest - start and ids[-1 - tail] == other[-1 - tail]:
            tail += 1
        beyond = tail - min(tail, self._reach)
        return _Suffix(start, ids[start : len(ids) - beyond], other[start : len(other) - beyond])

    def _whole(self, text: str, changes: Sequence[Change]) -> Doubles:
        """Return ratios of texts that are read whole, or, if too long, around each change."""
        pairs = [self._excerpts(text, change) for change in changes]
        logs = self.log_prob([each for pair in pairs for each in pair])
        return np.asarray(logs[1::2] - logs[::2])

    def _excerpts(self, text: str, change: Change) -> tuple[str, str]:
        """Return the text and the changed text, cut around the change to fit into the context."""
        start, end, replacement = change
        if len(self._ids(text)) + 4 * len(replacement) <= self.context:
            return text, changed(text, change)
        room = max(1, self.context // 8)  # characters; a character may take four tokens
        low, high = max(0, start - room), end + max(1, room - len(replacement) - (end - start))
        part = text[low:high]
        return part, changed(part, (start - low, end - low, replacement))

    def _in_parts(self, text: str) -> float:
        """Return log P of a text beyond the context: each part given the part before it."""
        room = max(1, self.context // 8)
        parts = [text[at : at + room] for at in range(0, len(text), room)]
        joint = self.log_prob([a + b for a, b in zip(["", *parts], parts, strict=False)])
        alone = self.log_prob(parts[:-1])
        return float(joint.sum() - alone.sum())

    def _ids(self, text: str) -> list[int]:
        ids = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return [self._begin, *ids]

    def _most_tokens(self) -> int:
        kind = "cuda" if str(self.device).startswith("cuda") else "cpu"
        return max(8, _LOGITS_BYTES[kind] // (4 * self._vocabulary))

    def _batches(self, sizes: list[int]) -> Iterator[range]:
        """Yield ranges of rows, ordered by size, whose logits are held at once."""
        most, first = self._most_tokens(), 0
        for last in range(1, len(sizes) + 1):
            if last == len(sizes) or (last + 1 - first) * sizes[last] > most:
                yield range(first, last)
                first = last

    def _plain(self, rows: list[list[int]]) -> list[Doubles]:
        """Return log P of the tokens of each row behind its first."""
        torch = self._torch
        width = max(map(len, rows))
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        seen = torch.zeros((len(rows), width), dtype=torch.long)
        for n, row in enumerate(rows):
            ids[n, : len(row)] = torch.tensor(row)
            seen[n, : len(row)] = 1
        with torch.inference_mode():
            logits = self._model(
                input_ids=ids.to(self.device), attention_mask=seen.to(self.device), use_cache=False
            ).logits
        found = self._picked(logits[:, :-1], ids[:, 1:])
        return [found[n, : len(row) - 1] for n, row in enumerate(rows)]

    def _packed(self, rows: list[tuple[list[int], list[_Suffix]]]) -> list[Doubles]:
        """Return, for each text, the ratio of each of its changes, from one pass over all."""
        torch = self._torch
        layouts = [_layout(ids, suffixes) for ids, suffixes in rows]
        width = max(len(each.ids) for each in layouts)
        shape = (len(rows), width)
        ids, positions, wanted = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
        # what fills a row up sees itself alone, because a token must see something
        visible = torch.eye(width, dtype=torch.bool).repeat(len(rows), 1, 1)
        for n, each in enumerate(layouts):
            size = len(each.ids)
            ids[n, :size] = torch.from_numpy(each.ids)
            positions[n, :size] = torch.from_numpy(each.positions)
            wanted[n, :size] = torch.from_numpy(each.wanted)
            visible[n, :size, :size] |= torch.from_numpy(each.visible)
        mask = torch.zeros(visible.shape, dtype=self.dtype)
        mask.masked_fill_(~visible, torch.finfo(self.dtype).min)
        with torch.inference_mode():
            logits = self._model(
                input_ids=ids.to(self.device),
                attention_mask=mask[:, None].to(self.device),
                position_ids=positions.to(self.device),
                use_cache=False,
            ).logits
        found = self._picked(logits, wanted)
        firsts = self._firsts(logits, rows)
        return [
            np.array([
                _ratio(found[n], first, suffix, place)
                for first, suffix, place in zip(firsts[n], suffixes, each.places, strict=True)
            ])
            for n, ((_, suffixes), each) in enumerate(zip(rows, layouts, strict=True))
        ]  # fmt: skip

    def _firsts(self, logits: Tensor, rows: list[tuple[list[int], list[_Suffix]]]) -> list[Doubles]:
        """Return log P of each suffix's first token, which the text before the change predicts."""
        found = []
        for n, (_, suffixes) in enumerate(rows):
            before = self._torch.tensor([s.start - 1 for s in suffixes], device=logits.device)
            # a change that only removes the end of a text has no token of its own
            wanted = self._torch.tensor([s.new[0] if s.new else 0 for s in suffixes])
            found.append(self._picked(logits[n, before][None], wanted[None])[0])
        return found

    def _picked(self, logits: Tensor, wanted: Tensor) -> Doubles:
        """Return log P of the wanted tokens, in float32 and some positions at a time."""
        parts = []
        for at in range(0, logits.shape[1], 64):
            some = logits[:, at : at + 64].float()
            tokens = wanted[:, at : at + 64, None].to(some.device)
            parts.append(some.gather(-1, tokens)[..., 0] - some.logsumexp(-1))
        return np.asarray(self._torch.cat(parts, 1).double().cpu().numpy())

    def _takes_packed(self) -> bool:
        """Return whether a packed pass gives what passes over the whole texts give."""
        text, changes = _PROBE
        expected = self._whole(text, changes)
        self._packs = True
        try:
            found = self.log_ratios(text, changes)
        except (RuntimeError, TypeError, ValueError, IndexError):
            return False  # such as a model without attention
        return bool(np.allclose(found, expected, atol=_ALIKE, equal_nan=True))

    def _first_device(self) -> str:
        return "cuda" if self._torch.cuda.is_available() else "cpu"

    def _fitting_dtype(self, name: str, config: Any, wanted: str) -> torch.dtype:
        """Return the number format; raise InputError where the weights exceed the memory."""
        torch = self._torch
        count = _parameters(config)
        on_gpu = str(self.device).startswith("cuda")
        free = torch.cuda.mem_get_info(self.device)[0] if on_gpu else free_memory()
        if wanted != "auto":
            dtype = getattr(torch, wanted)
        elif on_gpu:
            dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
        else:
            dtype = torch.float32 if free is None or 8 * count < free else torch.bfloat16
        needed = count * dtype.itemsize
        if free is not None and needed > free:
            raise InputError(
                f"{name} has {count / 1e9:.1f} billion parameters, {needed / 2**30:.1f} GiB in "
                f"{str(dtype).removeprefix('torch.')}, and {free / 2**30:.1f} GiB of memory are "
                f"free on {self.device}: choose a smaller model, or serve it and name the URL"
            )
        return dtype


@dataclass(frozen=True, slots=True)
class _Layout:
    """A packed row: a text, and behind it the tokens of its changes but the last of each.

    `wanted` are the tokens that are predicted; `places` is where each change's own tokens begin.
    """

    ids: Longs
    positions: Longs
    wanted: Longs
    visible: NDArray[np.bool_]
    places: list[int]


def _layout(text: list[int], suffixes: list[_Suffix]) -> _Layout:
    counts = [max(0, len(suffix.new) - 1) for suffix in suffixes]
    places = np.cumsum([len(text), *counts]).tolist()
    ids = [*text]
    wanted = [*text[1:], 0]
    positions = [*range(len(text))]
    visible = np.zeros((places[-1], places[-1]), np.bool_)
    visible[: len(text), : len(text)] = np.tri(len(text), dtype=np.bool_)
    for suffix, count, at in zip(suffixes, counts, places, strict=False):
        ids += suffix.new[:-1]
        wanted += suffix.new[1:]
        positions += range(suffix.start, suffix.start + count)
        visible[at : at + count, : suffix.start] = True
        visible[at : at + count, at : at + count] = np.tri(count, dtype=np.bool_)
    return _Layout(np.array(ids), np.array(positions), np.array(wanted), visible, places[:-1])


def _ratio(logs: Doubles, first: float, suffix: _Suffix, place: int) -> float:
    """Return the log-ratio of a change; `place` is where its own tokens stand in the row."""
    before = logs[suffix.start - 1 : suffix.start - 1 + len(suffix.old)].sum()
    if not suffix.new:
        return float(-before)
    return float(first + logs[place : place + len(suffix.new) - 1].sum() - before)


def _torch() -> Any:
    hub.prepare_hub()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingPackageError(
            f"a causal language model needs torch and transformers: {how_to_install('lm')}"
        ) from error
    if not sys.stderr.isatty():
        transformers.utils.logging.disable_progress_bar()
    return torch


def _located(name: str) -> tuple[str, str | None]:
    """Return the folder or hub name, and the GGUF file in it, if that is what it holds."""
    path = Path(name)
    if path.is_file():
        return str(path.parent), path.name
    if not path.is_dir():
        return name, None
    held = sorted(path.glob("*.gguf"))
    if (path / "config.json").is_file() or not held:
        return name, None
    if len(held) > 1:
        raise InputError(f"{name} has {len(held)} .gguf files: name one of them")
    return name, held[0].name


def _config(folder: str, gguf: str | None) -> Any:
    """Return a model's configuration; raise InputError for what is no causal model."""
    from transformers import AutoConfig, AutoModelForCausalLM

    if Path(folder).is_dir() and gguf is None and not (Path(folder) / "config.json").is_file():
        raise InputError(f"{folder} holds no model: neither config.json nor one .gguf file")
    try:
        with hub.quiet_hub():
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False, **_file(gguf))
    except Exception as error:  # whatever the library that reads it raises
        raise _unreadable(folder, "configuration", error) from error
    named = config.architectures or []
    causal = not named or any(n.endswith(("ForCausalLM", "LMHeadModel")) for n in named)
    known = type(config) in AutoModelForCausalLM._model_mapping  # noqa: SLF001 - no public table
    if not causal or not known or getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{folder} is no causal language model ({', '.join(named) or type(config).__name__}): "
            "name one that predicts the next token, such as a Qwen3 model"
        )
    return config


def _tokenizer(folder: str, gguf: str | None) -> Any:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, **_file(gguf))
        written = tokenizer("字", add_special_tokens=False)["input_ids"]
    except Exception as error:  # whatever the library that reads it raises
        raise _unreadable(folder, "tokenizer", error) from error
    if not written:  # without its files transformers makes one that has no tokens
        raise _unreadable(folder, "tokenizer", ValueError("it has no tokens"))
    return tokenizer


def _model(folder: str, gguf: str | None, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    try:
        # a GGUF file is no safetensors file, but no pickle either
        with hub.quiet_hub():
            model, info = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=dtype,
                trust_remote_code=False,
                use_safetensors=gguf is None,
                output_loading_info=True,
                **_file(gguf),
            )
    except Exception as error:  # whatever the library that reads it raises
        if isinstance(error, MemoryError):
            raise
        raise _unreadable(folder, "model", error) from error
    if missing := sorted(info["missing_keys"]):  # transformers draws them at random, and goes on
        raise InputError(
            f"{folder} lacks {len(missing)} of the model's tensors, such as {missing[0]}: copy it "
            "again"
        )
    return model


def _unreadable(folder: str, part: str, error: Exception) -> InputError:
    return InputError(
        f"the {part} of {folder} cannot be read ({hub.first_line(error)}): name a "
        "folder or a hub name of a causal model with its tokenizer"
    )


def _beginning(tokenizer: Any, name: str) -> int:
    """Return the token behind which documents begin."""
    for token in (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id):
        if token is not None:
            return int(token)
    raise InputError(f"the tokenizer of {name} has no token that begins or ends a text")


def _parameters(config: Any) -> int:
    """Return the number of a model's parameters, without making it."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return sum(each.numel() for each in model.parameters())


def _digest(folder: str, gguf: str | None) -> str:
    if gguf is None:
        return sha256_of_model(Path(folder))
    return sha256_of(Path(folder) / gguf).sha256


def _file(gguf: str | None) -> dict[str, str]:
    return {} if gguf is None else {"gguf_file": gguf}


def _takes(name: str) -> bool:
    return Path(name).is_dir() or name.endswith(".gguf") or bool(_HUB_NAME.fullmatch(name))


KIND = Kind(_takes, CausalScorer)
