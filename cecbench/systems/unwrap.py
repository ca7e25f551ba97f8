"""What models put around a sentence: thoughts, special tokens, marks, quotes, remarks in brackets.

What the source has itself is not taken off.
"""

from __future__ import annotations

import html
import re
import unicodedata

_THOUGHT = re.compile(
    r"[<◁](?P<ends>/?)(?:think(?:ing)?|thought|reasoning|reflection|analysis|scratchpad)[>▷]"
    r"|<\|(?:(?P<begin>begin)|end)_of_thought\|>",
    re.IGNORECASE,
)
_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>")
_TURN = re.compile(
    r"<\|start_header_id\|>assistant<\|end_header_id\|>|<\|im_start\|>assistant|<\|assistant\|>"
    r"|<start_of_turn>model|\[/INST\]|<｜Assistant｜>",
    re.IGNORECASE,
)
_SPECIAL = re.compile(
    r"<\|[a-z_]{1,24}\|>|<eos>|<bos>|<(?:start|end)_of_turn>|\[/?INST\]|<｜[^<>｜]{1,24}｜>",
    re.IGNORECASE,
)
_OPENED = re.compile(rf"(?:(?:{_SPECIAL.pattern})\s*)+", re.IGNORECASE)
TAG = re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z一-鿿_]{1,20})(?: [^<>]{0,80})?>")
_INLINE = frozenset({"b", "u", "i", "em", "strong", "mark", "ins", "span", "font", "p", "br"})
_STRUCK = re.compile(
    r"~~[^~\n]{0,200}~~|\[-[^\[\]\n]{0,200}-\]|<(?P<tag>del|s)>[^<\n]{0,200}</(?P=tag)>"
)
_ADDED = re.compile(r"\{\+([^{}\n]{0,200})\+\}")
_BRACKETED = re.compile(r"[（(](?P<new>[^（）()\n]{1,20})[）)]")
_VERDICT = re.compile("正确|无误|有误|不变|无需|错|原")
_REPLACED = re.compile(r"(?P<old>[\u4e00-\u9fff]{1,8})[（(](?P<new>[\u4e00-\u9fff]{1,8})[）)]")
_BULLET = re.compile(
    r"(?:\*(?=\s)|[-+•·●▪►>#]{1,6}|[=-]>|[（(]?(?:\d{1,2}|[A-Za-z])[)）.、．](?!\d)|[①-⑳]|[…→⇒])\s*"
)
_WRAPS = (
    *(("“", "”"), ("「", "」"), ("『", "』"), ('"', '"'), ("'", "'"), ("‘", "’"), ("`", "`")),
    *(("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("~~", "~~"), ("$", "$")),
    *(("[", "]"), ("【", "】"), ("<", ">"), ("《", "》"), ("(", ")"), ("（", "）"), ("{", "}")),
    *(("\\boxed{", "}"), ("\\text{", "}")),
)
_PAIRS = ("“”", "「」", "『』", "‘’", '""', "''", "``", "**", "__", "||", "[]", "【】", "<>", "{}")
_BRACKETS = (("（", "）"), ("(", ")"), ("【", "】"), ("[", "]"))
_PICTURES = ("So", "Sk", "Cf", "Co", "Mn")
_OPENING = ("（", "(", "【", "[")


#: of a source's length: a text with more edits is no correction of it
FAR = 0.5


def own_words(raw: str, source: str) -> str | None:
    """Return the text outside the thoughts and special tokens; None if it ends in a thought.

    A closing mark without an opening one ends a thought that the chat template opened.
    """
    final = _CHANNEL.search(raw)
    if final:
        raw = raw[final.end() :]
    kept: list[str] = []
    end, opened = 0, -1
    for mark in _THOUGHT.finditer(raw):
        opens = not mark["ends"] and (mark["begin"] or not mark[0].startswith("<|"))
        if opens and opened < 0:
            opened = mark.start()
        elif not opens:
            if opened >= 0:
                kept.append(raw[end:opened])
            else:
                kept.clear()
            end, opened = mark.end(), -1
    if opened >= 0:
        return None
    return _own_turn("".join(kept) + raw[end:], source)


def _own_turn(text: str, source: str) -> str:
    """Return what the model says in its first turn, without special tokens."""
    text = text.strip("\ufeff\u200b \t\r\n")
    if _SPECIAL.search(source):
        return text
    text = text.removeprefix("<s>")
    text = text if "<s>" in text else text.partition("</s>")[0]
    turn = _TURN.search(text)
    if turn and _SPECIAL.match(text):
        text = text[turn.end() :].strip()
    if opening := _OPENED.match(text):
        text = text[opening.end() :]
    stop = _SPECIAL.search(text)
    text = text[: stop.start()] if stop else text
    if "&" in text and "&" not in source:
        text = html.unescape(text)
    return text if "\\" in source else text.replace("\\n", "\n")


def bare(text: str, source: str) -> str:
    """Return a piece without the marks around and in it that the source does not have."""
    text = text.strip()
    if not FAR * len(source) <= len(text) <= 3 * len(source) + 200 or text == source:
        return text
    text = _without_marks(text, source)
    for _ in range(6):
        before = text
        text = _without_symbols(text, source)
        bullet = _BULLET.match(text)
        if bullet and not _BULLET.match(source):
            text = text[bullet.end() :]
        text = _without_remark(_unwrapped(text, source), source)
        if text == before:
            break
    return text


def _without_symbols(text: str, source: str) -> str:
    """Return a piece without the pictures and invisible signs at its ends."""
    while text and text[-1] not in source and unicodedata.category(text[-1]) in _PICTURES:
        text = text[:-1].rstrip()
    while text and text[0] not in source and unicodedata.category(text[0]) in _PICTURES:
        text = text[1:].lstrip()
    return text


def _without_marks(text: str, source: str) -> str:
    """Return a piece without emphasis, tags and corrections that are written into it."""
    if not _STRUCK.search(source) and (without := _STRUCK.sub("", text).strip()):
        text = without
    if not TAG.search(source):
        text = TAG.sub(lambda tag: "" if tag["name"].lower() in _INLINE else tag[0], text)
    if "**" not in source:
        text = text.replace("**", "")
    text = _ADDED.sub(r"\1", text) if not _ADDED.search(source) else text
    if not _BRACKETED.search(source) and _BRACKETED.sub("", text) == source.strip():
        text = _REPLACED.sub(_replaced, text)
    return text.strip()


def _replaced(found: re.Match[str]) -> str:
    """Return 已 for 己（已）: as many characters as the bracket holds are replaced."""
    old, new = found["old"], found["new"]
    remark = _VERDICT.search(new) or len(new) > min(3, len(old))
    return found[0] if remark else f"{old[: len(old) - len(new)]}{new}"


def _unwrapped(text: str, source: str) -> str:
    for left, right in _WRAPS:
        if source.startswith(left) and source.endswith(right):
            continue
        body = text
        if body.endswith(right + "。") and not source.endswith(right + "。"):
            body = body[:-1]  # the full stop of the sentence around the quoted one
        if body.startswith(left) and body.endswith(right) and len(body) > len(left) + len(right):
            return body[len(left) : len(body) - len(right)].strip()
    return text


def _without_remark(text: str, source: str) -> str:
    """Return a piece without a remark in brackets behind it."""
    for left, right in _BRACKETS:
        if text.endswith(right) and not source.endswith(right) and left in text[1:]:
            return text[: text.rindex(left)].strip()
    if text.endswith(_OPENING):
        return text[:-1].strip()
    for pair in _PAIRS:  # one half of it, as in JSON that was cut off
        if not set(pair) & set(source):
            text = text.strip(pair).strip()
    return text
