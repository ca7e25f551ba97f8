"""Models of the BERT family that predict one character for each character.

A checkpoint is a masked language model, or a token classifier whose labels are the vocabulary or
single characters.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from cecdata.models import hub, loading
from cecdata.models.hub import identify_checkpoint, run_identity


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


class Tagged(NamedTuple):
    """A tagged sentence.

    changes: place, character and its probability, where another character is likeliest. seconds:
    wall time; that of a batch is divided evenly.
    """

    changes: list[tuple[int, str, float]]
    encoded: Encoded
    seconds: float


class Tagger:
    """A loaded model.

    max_length: most tokens of an input. rephrase: the input is that of ReLM, which has a mask for
    each character. longest: the tokens that the model reads. identity: what its answers depend on.
    """

    def __init__(
        self,
        checkpoint: str,
        *,
        batch: int = 16,
        device: str = "auto",
        dtype: str = "auto",
        max_length: int = 512,
        rephrase: bool = False,
    ) -> None:
        torch, transformers = hub.import_torch()
        self._torch, self._batch, self._rephrase = torch, batch, rephrase
        self._device = loading.pick_device(torch, device)
        loading.refuse_pointers(Path(checkpoint))
        config = hub.load_pretrained(transformers.AutoConfig, checkpoint)
        self._tokenizer = hub.load_pretrained(transformers.AutoTokenizer, checkpoint)
        architectures = config.architectures or ()
        classifies = any("TokenClassification" in name for name in architectures)
        kind = "TokenClassification" if classifies else "MaskedLM"
        loader = getattr(transformers, f"AutoModelFor{kind}")
        model = hub.load_pretrained(loader, checkpoint, dtype=dtype)
        loading.check_finite(checkpoint, model)
        self.model = model.to(self._device).eval()
        self._ids: dict[str, int | None] = {}  # of characters
        self._threads = loading.choose_thread_count(self.model)
        self._characters = self._map_outputs_to_characters(classifies, config)
        self.longest = min(max_length, int(config.max_position_embeddings))
        self.identity: Mapping[str, object] = {
            "kind": "tagger",
            **identify_checkpoint(checkpoint, model),
            **run_identity(torch, transformers, self._device),
            "form": "rephrase" if rephrase else "tag",
            "max_length": self.longest,
            "unknown": "characters outside the vocabulary are kept unchanged",
            "truncation": "characters beyond max_length are kept unchanged",
            "dtype": str(next(self.model.parameters()).dtype),
        }

    def tag(self, sources: Sequence[str]) -> Iterator[Tagged]:
        """Return what the model would change in each sentence, in order."""
        encoded = [self.encode(source) for source in sources]

        def run(chosen: list[int]) -> list[Tagged]:
            started = time.perf_counter()
            predicted = self._predict([encoded[index] for index in chosen])
            seconds = (time.perf_counter() - started) / len(chosen)
            return [
                Tagged(
                    self.list_changes(sources[index], encoded[index], *best),
                    encoded[index],
                    seconds,
                )
                for index, best in zip(chosen, predicted, strict=True)
            ]

        return loading.run_in_batches([len(one.tokens) for one in encoded], self._batch, run)

    def knows(self, character: str) -> bool:
        """Return whether a character is in the vocabulary, or is white space."""
        return self._find_id(character) is not None or character.isspace()

    def _find_id(self, character: str) -> int | None:
        """Return the id of a character; None where the vocabulary lacks it."""
        if character not in self._ids:
            ids = self._tokenizer.encode(character, add_special_tokens=False)
            is_token = len(ids) == 1 and ids[0] != self._tokenizer.unk_token_id
            self._ids[character] = int(ids[0]) if is_token else None
        return self._ids[character]

    def encode(self, source: str) -> Encoded:
        """Return a sentence as input of the model."""
        tokenizer = self._tokenizer
        own = [self._find_id(character) for character in source]
        unknown = int(tokenizer.unk_token_id)
        ids = [unknown if number is None else number for number in own]
        cls, sep = int(tokenizer.cls_token_id), int(tokenizer.sep_token_id)
        room = (self.longest - 3) // 2 if self._rephrase else self.longest - 2
        kept = ids[:room]
        tokens = [cls, *kept, sep]
        first = 1
        if self._rephrase:
            first = len(tokens)
            tokens += [int(tokenizer.mask_token_id)] * len(kept) + [sep]
        return Encoded(tokens, first, own[:room], len(kept) < len(ids))

    def _predict(self, batch: Sequence[Encoded]) -> list[tuple[list[int], list[float]]]:
        """Return the best id at each position of each sentence, and its probability."""
        torch = self._torch
        inputs = [encoded.tokens for encoded in batch]
        width = max(map(len, inputs))
        pad = int(self._tokenizer.pad_token_id or 0)
        ids = torch.tensor([tokens + [pad] * (width - len(tokens)) for tokens in inputs])
        mask = torch.tensor([[1] * len(tokens) + [0] * (width - len(tokens)) for tokens in inputs])
        with loading.use_threads(self._threads), torch.inference_mode():
            logits = self.model(
                input_ids=ids.to(self._device), attention_mask=mask.to(self._device)
            ).logits
            top = logits.float().max(dim=-1)
            probabilities = (top.values - logits.float().logsumexp(dim=-1)).exp()
        return list(zip(top.indices.tolist(), probabilities.tolist(), strict=True))

    def list_changes(
        self, source: str, encoded: Encoded, ids: list[int], probabilities: list[float]
    ) -> list[tuple[int, str, float]]:
        """Return (index, character, probability) of each character that the model would change."""
        changes = []
        for index, own in enumerate(encoded.own):
            position = encoded.first + index
            if own is None or ids[position] == own:
                continue  # an upper-case letter whose own id is the lower-case one stays upper
            written = self._characters.get(ids[position], source[index])
            if written != source[index]:
                changes.append((index, written, round(probabilities[position], 6)))
        return changes

    def _map_outputs_to_characters(self, classifies: bool, config: Any) -> dict[int, str]:
        """Return label or token id → the single character that it stands for."""
        size = int(config.num_labels if classifies else config.vocab_size)
        tokens = self._tokenizer.convert_ids_to_tokens(range(len(self._tokenizer)))
        names = dict(enumerate(tokens[:size]))
        if classifies and size != len(tokens):
            names = {int(label): str(name) for label, name in config.id2label.items()}
        bare = (  # without the mark of a token within a word
            (number, name.removeprefix("##") if len(name) > 2 else name)
            for number, name in names.items()
        )
        return {number: name for number, name in bare if len(name) == 1}
