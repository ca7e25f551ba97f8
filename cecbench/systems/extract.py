"""Extraction of the corrected sentence from the output of a language model.

The status of an answer says what was removed, or why there is no sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

QUOTES = (("“", "”"), ("「", "」"), ("『", "』"), ('"', '"'), ("'", "'"), ("‘", "’"), ("`", "`"))
# An endpoint may send anything. No pattern has two adjacent parts that could match the same run of
# characters, so that each takes time linear in the answer's length.
_THOUGHT = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"```[^\n`]*\n(?P<inside>.*?)\n?```", re.DOTALL)
_LEAD_IN = re.compile(
    r"^(?:(?:好的|当然)[，,。！!])?\s*(?!\s)(?:以下是|这是)?[*#\s]*"
    r"(?:改正|修改|纠正|校对|修正|订正|更正|纠错|正确)(?:之?后)?的?"
    r"(?:句子|文本|结果|内容|版本|文字|答案)?(?:是|如下|为)?[*\s]*[:：][*\s]*"
)
_PLAIN_LEAD_IN = re.compile(
    r"^(?:输出|答案|答|结果|corrected(?: sentence)?|output|answer)\s*[:：]\s*", re.IGNORECASE
)
_NO_ERROR = re.compile(
    r"^(?:经检查，?|这个?句(?:子|话)|该句(?:子)?|原句|句子)?(?:中|里)?"
    r"(?:没有|无|未发现)(?:任何)?(?:错别字|拼写错误|错误)[。，,.]?"
    r"(?:原样输出|无需(?:修改|改正)|不需要修改)?[。.]?$"
)
_REFUSAL = re.compile(
    r"^(?:很抱歉|抱歉|对不起|非常抱歉)|我(?:无法|不能)(?:提供|回答|处理|协助|满足)|作为(?:一个)?(?:AI|人工智能)"
    r"|^(?:i'?m sorry|i am sorry|sorry,|i can(?:no|')t )",
    re.IGNORECASE,
)
_REMARK = re.compile(r"^[（(【\[]?\s*(?:解释|说明|注|修改说明|理由|原因|分析|改动)\s*[:：]")
FAR = 0.5  # of the source's length: an answer with more edits is no correction


@dataclass(frozen=True, slots=True)
class Extracted:
    """The sentence that is scored, and its status (a key of STATUSES)."""

    text: str
    status: str


def extract(raw: str, source: str) -> Extracted:
    """Return the corrected sentence of a model's output; the source where there is none.

    >>> extract("改正后：他已经来了。", "他己经来了。")
    Extracted(text='他已经来了。', status='cleaned')
    >>> extract("抱歉，我无法处理这个请求。", "他己经来了。").status
    'refusal'
    """
    said = _without_thoughts(raw)
    if said is None:
        return Extracted(source, "unparsable")
    said = said.strip()
    if not said:
        return Extracted(source, "empty")
    if _REFUSAL.search(said) and not _near(said, source):
        return Extracted(source, "refusal")
    if _NO_ERROR.match(said) and not _near(said, source):
        return Extracted(source, "cleaned")
    text = _candidate(said, source)
    if not text:
        return Extracted(source, "unparsable")
    if not _near(text, source):
        return Extracted(source, "chatter")
    # White space at the ends is not meant as a correction: the source's own is kept.
    text = _keep_ends(text, source)
    return Extracted(text, "ok" if text.strip() == raw.strip() else "cleaned")


def _without_thoughts(raw: str) -> str | None:
    """Return the text outside the thoughts; None where the answer ends inside one.

    A closing mark without an opening one ends a thought that the chat template opened.
    """
    kept: list[str] = []
    end, opened = 0, -1
    for mark in _THOUGHT.finditer(raw):
        opens = not mark[0].startswith("</")
        if opens and opened < 0:
            opened = mark.start()
        elif not opens:
            if opened >= 0:
                kept.append(raw[end:opened])
            else:
                kept.clear()
            end, opened = mark.end(), -1
    return None if opened >= 0 else "".join(kept) + raw[end:]


def _candidate(said: str, source: str) -> str:
    fenced = _FENCE.search(said)
    if fenced and "```" not in source:
        said = fenced["inside"].strip()
    lines = [line.strip() for line in said.split("\n") if line.strip()]
    if "\n" not in source.strip():
        lines = [line for line in lines if not _REMARK.match(line)] or lines
        bare = [_unwrapped(line, source) for line in lines]
        bare = [line for line in bare if line]
        # Of several lines the nearest to the source; of equal ones the first.
        return min(bare, key=lambda line: _distance(line, source), default="")
    return _unwrapped(said, source)


def _unwrapped(line: str, source: str) -> str:
    for pattern in (_LEAD_IN, _PLAIN_LEAD_IN):
        if not pattern.match(source):
            line = pattern.sub("", line, count=1).strip()
    start, end = 0, len(line)
    while end - start >= 2:
        pair = (line[start], line[end - 1])
        if pair not in QUOTES or (source.startswith(pair[0]) and source.endswith(pair[1])):
            break
        start, end = start + 1, end - 1
        while start < end and line[start].isspace():
            start += 1
        while start < end and line[end - 1].isspace():
            end -= 1
    return line[start:end]


def _distance(text: str, source: str) -> int:
    return int(Levenshtein.distance(text, source))


def _near(text: str, source: str) -> bool:
    # A short sentence may be mostly wrong: two edits are always allowed.
    return _distance(text, source) <= max(2, FAR * len(source))


def _keep_ends(text: str, source: str) -> str:
    head = source[: len(source) - len(source.lstrip())]
    tail = source[len(source.rstrip()) :]
    return f"{head}{text.strip()}{tail}"
