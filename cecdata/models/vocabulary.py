"""The tokens that Chinese text is written with, and models that know only these."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_LETTER = re.compile(r"[^\W\d_]")


def decode_tokens(tokenizer: Any, size: int) -> list[str]:
    """Return the text of each token by its number, for the first `size` tokens."""
    numbers = [[number] for number in range(min(size, len(tokenizer)))]
    decode = tokenizer.batch_decode
    if tokenizer.is_fast:  # without what transformers does around it, three times as fast
        decode = partial(tokenizer.backend_tokenizer.decode_batch, skip_special_tokens=False)
    return list(decode(numbers))


def writes_chinese(text: str) -> bool:
    """Return whether a token's text has a Han character or no letter.

    >>> [writes_chinese(text) for text in ("病情", "。", "3", "A股", "the", "д")]
    [True, True, True, True, False, False]
    """
    return bool(HAN.search(text)) or not _LETTER.search(text)


def cut_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Take from a model and its tokenizer the tokens that Chinese text is not written with.

    Single characters and special tokens stay, so that every text can still be written: a Latin word
    by its letters. The tokens of Chinese words are the same as before, with the same embeddings.
    A tokenizer that is not byte-pair encoding stays as it is, with its model.
    """
    from tokenizers import Tokenizer

    data = json.loads(tokenizer.backend_tokenizer.to_str()) if tokenizer.is_fast else {}
    if data.get("model", {}).get("type") != "BPE":
        return
    special = {token["content"] for token in data["added_tokens"]}
    texts = decode_tokens(tokenizer, len(model.get_input_embeddings().weight))
    names = tokenizer.convert_ids_to_tokens(range(len(texts)))
    kept = [
        number
        for number, (name, text) in enumerate(zip(names, texts, strict=True))
        if name in special or len(text.strip()) < 2 or writes_chinese(text)
    ]
    _renumber_tokens(data, {names[old]: new for new, old in enumerate(kept)})
    vars(tokenizer)["_tokenizer"] = Tokenizer.from_str(json.dumps(data))
    _keep_rows(model, kept)
    new_numbers = {old: new for new, old in enumerate(kept)}
    for settings in (model.config, model.generation_config):
        _renumber_special_tokens(settings, new_numbers)


def _renumber_special_tokens(settings: Any, new_numbers: dict[int, int]) -> None:
    """Let the settings of a model name its special tokens by their new numbers."""
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        ids = getattr(settings, key, None)
        if isinstance(ids, list):
            setattr(settings, key, [new_numbers[number] for number in ids])
        elif ids is not None:
            setattr(settings, key, new_numbers.get(ids))


def _renumber_tokens(data: dict[str, Any], numbers: dict[str, int]) -> None:
    """Let the settings of a tokenizer have only these tokens, with these numbers."""
    core = data["model"]
    pairs = (pair if isinstance(pair, list) else pair.split(" ") for pair in core["merges"])
    core["merges"] = [pair for pair in pairs if {*pair, "".join(pair)} <= numbers.keys()]
    core["vocab"] = numbers
    data["added_tokens"] = [
        {**token, "id": numbers[token["content"]]} for token in data["added_tokens"]
    ]
    processor = data["post_processor"] or {}
    for part in processor.get("processors", [processor]):
        for token in part.get("special_tokens", {}).values():
            token["ids"] = [numbers[name] for name in token["tokens"]]


def _keep_rows(model: PreTrainedModel, kept: list[int]) -> None:
    """Let a model have the embeddings and the outputs of these tokens only."""
    import torch

    chosen = torch.tensor(kept)
    layers = (model.get_input_embeddings, model.get_output_embeddings)
    rows = [layer().weight.detach()[chosen].clone() for layer in layers]
    model.resize_token_embeddings(len(kept), mean_resizing=False)
    with torch.no_grad():
        for layer, weights in zip(layers, rows, strict=True):
            layer().weight.copy_(weights)
