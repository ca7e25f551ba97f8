"""The prompts of language models: numbered texts, the same in training and in benchmarks.

A published text never changes. Another wording is another version, which scores name. A text of
one's own is its own version.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cecdata.common.errors import UsageError, did_you_mean

DEFAULT = "1"
_PLACE = "{sentence}"  # in a frame

Message = dict[str, str]  # {"role": …, "content": …}, as chat templates take them


@dataclass(frozen=True, slots=True)
class Prompt:
    """An instruction, the frame around a sentence (`{sentence}` marks its place), and examples."""

    instruction: str
    frame: str
    examples: tuple[tuple[str, str], ...] = ()


_VERSIONS = {
    # The rules name what the benchmarks count as wrong: rephrasing, punctuation, comments.
    "1": Prompt(
        "你是中文拼写校对员。请改正句子里的错别字：读音相同或相近而写错的字、字形相近而写错的字、"
        "多写或少写偏旁的字、被拆成两半的字，以及混进句子的多余符号。\n"
        "只改错处，其余文字、标点、语序、数字和字母一律照原样保留；不润色，不增删内容，"
        "不把简体换成繁体。没有错误就原样输出。\n"
        "只输出改正后的句子，不要解释，不要加引号。",
        "{sentence}",
    ),
    # For models that answer a bare sentence as if it were a question to them.
    "2": Prompt(
        "你是中文拼写校对员。请改正句子里的错别字，只改错处，其余一律照原样保留；没有错误就原样输出。只输出改正后的句子，不要解释，不要加引号，也不要回答句子里的问题。",
        "待校对的句子：{sentence}\n改正后的句子：",
        (("这本书我己经看完了。", "这本书我已经看完了。"), ("天气很好。", "天气很好。")),
    ),
}


def find_prompt(version: str = DEFAULT) -> Prompt:
    """Return the prompt of a version, or of a text of one's own, which has {sentence} in it.

    Raises UsageError, which lists the versions.

    >>> find_prompt("改正：{sentence}").frame
    '改正：{sentence}'
    """
    if _PLACE in version:
        return Prompt("", version)
    if version not in _VERSIONS:
        raise UsageError(
            f"no prompt version {version!r}: {did_you_mean(version, list(_VERSIONS))}; a prompt of "
            f"your own must contain {_PLACE}"
        )
    return _VERSIONS[version]


def make_messages(source: str, version: str = DEFAULT, *, system: bool = True) -> list[Message]:
    """Return the chat that asks for a correction of `source`.

    system: whether the instruction is a message of the system, or before the user's first sentence.

    >>> [message["role"] for message in make_messages("他己经来了。")]
    ['system', 'user']
    >>> make_messages("他己经来了。")[-1]["content"]
    '他己经来了。'
    """
    text = find_prompt(version)
    chat = []
    for wrong, right in text.examples:
        chat.append({"role": "user", "content": _fill_frame(text, wrong)})
        chat.append({"role": "assistant", "content": right})
    chat.append({"role": "user", "content": _fill_frame(text, source)})
    if not text.instruction:
        return chat
    if system:
        return [{"role": "system", "content": text.instruction}, *chat]
    chat[0]["content"] = f"{text.instruction}\n\n{chat[0]['content']}"
    return chat


def hash_prompt(version: str = DEFAULT) -> str:
    """Return the SHA-256 (hex) of a version's whole text, which is part of a run's identity.

    >>> hash_prompt("1") == hash_prompt("2")
    False
    """
    text = find_prompt(version)
    parts = (text.instruction, text.frame, *(part for pair in text.examples for part in pair))
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def _fill_frame(text: Prompt, sentence: str) -> str:
    # No str.format: a sentence may hold braces.
    return text.frame.replace(_PLACE, sentence)
