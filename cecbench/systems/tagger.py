"""Correctors of the BERT family, which predict one character for each character.

A checkpoint is a masked language model, or a token classifier whose labels are the vocabulary or
single characters. Characters outside the vocabulary and those beyond the longest input are kept
unchanged; the answer's status says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from cecbench.option import option
from cecbench.systems.base import Answer, Kind, LocalOptions, SureEdit, applied
from cecdata.models import hub
from cecdata.models.device import in_batches, pick_device, thread_count, use_threads
from cecdata.models.identity import checkpoint_identity, run_identity
from cecdata.models.loading import check_finite
from cecdata.models.weights import count_weights


@dataclass(frozen=True, slots=True)
class Encoded:
    """A sentence as input of the model.

    tokens: ids of the whole input. first: the position in `tokens` of the first character's
    prediction, which those of the others follow. own: the id of each character within the longest
    input, None if it is not in the vocabulary.
    """

    tokens: list[int]
    first: int
    own: list[int | None]
    truncated: bool


@dataclass(frozen=True)
class TaggerOptions(LocalOptions):
    """Options of a tagger."""

    max_length: int = option(
        512,
        "Maximum number of tokens that are read of a sentence; the rest stays unchanged.",
        type=click.IntRange(min=8),
    )
    rephrase: bool = option(
        default=False,
        meaning="Use the input format of ReLM: source, separator, and one mask for each character.",
    )


class TaggerSystem:
    """A corrector whose answers have the length of their sources."""

    block = 2048

    def __init__(self, checkpoint: str, options: TaggerOptions) -> None:
        torch, transformers = hub.torch_and_transformers()
        self._torch = torch
        self._options = options
        self._device = pick_device(torch, options.device)
        if Path(checkpoint).is_dir():
            count_weights(Path(checkpoint))
        config = hub.load_pretrained(transformers.AutoConfig, checkpoint)
        self._tokenizer = hub.load_pretrained(transformers.AutoTokenizer, checkpoint)
        labels = any("TokenClassification" in a for a in (config.architectures or ()))
        auto = (
            transformers.AutoModelForTokenClassification
            if labels
            else transformers.AutoModelForMaskedLM
        )
        model = hub.load_pretrained(auto, checkpoint, dtype=options.dtype)
        check_finite(checkpoint, model)
        self._model = model.to(self._device).eval()
        self._threads = thread_count(self._model, options.threads)
        self._characters = self._output_characters(labels, config)
        self._longest = min(options.max_length, int(config.max_position_embeddings))
        identity = checkpoint_identity(checkpoint, model)
        self.name = identity["checkpoint"]
        self.identity: Mapping[str, object] = {
            "kind": "tagger",
            **identity,
            **run_identity(torch, transformers, self._device),
            "form": "rephrase" if options.rephrase else "tag",
            "max_length": self._longest,
            "unknown": "characters outside the vocabulary are kept unchanged",
            "truncation": "characters beyond max_length are kept unchanged",
            "dtype": str(next(self._model.parameters()).dtype),
        }

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return one answer for each source, of the source's length."""
        encoded = [self._encode(source) for source in sources]

        def run(chosen: list[int]) -> list[Answer]:
            started = time.perf_counter()
            predicted = self._predict([encoded[index] for index in chosen])
            seconds = (time.perf_counter() - started) / len(chosen)
            return [
                self._answer(sources[index], encoded[index], *best, seconds)
                for index, best in zip(chosen, predicted, strict=True)
            ]

        lengths = [len(one.tokens) for one in encoded]
        return in_batches(lengths, self._options.batch, run)

    def _encode(self, source: str) -> Encoded:
        tokenizer = self._tokenizer
        pieces: list[int | None] = []
        for character in source:
            ids = tokenizer.encode(character, add_special_tokens=False)
            pieces.append(ids[0] if len(ids) == 1 else None)
        unknown = int(tokenizer.unk_token_id)
        ids = [unknown if piece is None else piece for piece in pieces]
        own = [None if piece == unknown else piece for piece in pieces]
        cls, sep = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
        room = (self._longest - 3) // 2 if self._options.rephrase else self._longest - 2
        kept = ids[:room]
        tokens = [cls, *kept, sep]
        first = 1
        if self._options.rephrase:
            first = len(tokens)
            tokens += [int(tokenizer.mask_token_id)] * len(kept) + [sep]
        return Encoded(tokens, first, own[:room], len(kept) < len(ids))

    def _predict(self, batch: Sequence[Encoded]) -> list[tuple[list[int], list[float]]]:
        """Return the best id at each position of each sentence, and its probability."""
        torch = self._torch
        width = max(len(e.tokens) for e in batch)
        pad = int(self._tokenizer.pad_token_id or 0)
        ids = torch.tensor([e.tokens + [pad] * (width - len(e.tokens)) for e in batch])
        mask = torch.tensor([[1] * len(e.tokens) + [0] * (width - len(e.tokens)) for e in batch])
        with use_threads(self._threads), torch.inference_mode():
            logits = self._model(
                input_ids=ids.to(self._device), attention_mask=mask.to(self._device)
            ).logits
            top = logits.float().max(dim=-1)
            sure = (top.values - logits.float().logsumexp(dim=-1)).exp()
        return list(zip(top.indices.tolist(), sure.tolist(), strict=True))

    def _answer(
        self, source: str, encoded: Encoded, ids: list[int], sure: list[float], seconds: float
    ) -> Answer:
        edits = []
        for index, own in enumerate(encoded.own):
            place = encoded.first + index
            if own is None or ids[place] == own:
                continue  # an upper-case letter whose own id is the lower-case one stays upper
            written = self._characters.get(ids[place], source[index])
            if written != source[index]:
                edits.append(SureEdit(index, index + 1, written, round(sure[place], 6)))
        status = "ok"
        if encoded.truncated:
            status = "truncated"
        elif any(o is None and not c.isspace() for o, c in zip(encoded.own, source, strict=True)):
            status = "unknown"
        text = applied(source, edits)
        counts = len(encoded.tokens), len(source)
        return Answer(text, text, status, *counts, seconds, tuple(edits))

    def _output_characters(self, labels: bool, config: Any) -> dict[int, str]:
        """Return label or token id → the single character that it stands for."""
        size = int(config.num_labels if labels else config.vocab_size)
        names = self._tokenizer.convert_ids_to_tokens(range(len(self._tokenizer)))
        table = dict(enumerate(names[:size]))
        if labels and size != len(names):
            table = {int(k): str(v) for k, v in config.id2label.items()}
        bare = ((i, n.removeprefix("##") if len(n) > 2 else n) for i, n in table.items())
        return {index: name for index, name in bare if len(name) == 1}


KIND = Kind(
    "tagger:PATH",
    "a BERT-family corrector: folder or hub name",
    TaggerOptions,
    lambda argument, options, _: TaggerSystem(argument, options),
)
