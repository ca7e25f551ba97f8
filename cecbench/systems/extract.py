"""The corrected sentence in what a language model wrote.

A thought and special tokens go first. Every part of the rest that begins and ends at a mark, a
label's colon or a space, and that is near the source, is a candidate; of parts that overlap, the
nearest one. An echo of the source does not count beside another candidate. Where several different
ones remain, the one that is called final counts; otherwise nothing is decided, and the answer is
`unclear`. tests/cecbench/answers.jsonl has the forms that were met; each new one belongs there
first.

An endpoint may send anything: no pattern has two adjacent parts that match the same run of
characters, so that each takes time linear in the answer's length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rapidfuzz.distance import Levenshtein

_FAR = 0.5  # of a source's length: a text with more edits is no correction of it
_FEW = 4  # characters of a source to which any word is near
_MOST_LINES, _MOST_CUTS = 200, 60  # looked at; a longer answer is no correction of a sentence


@dataclass(frozen=True, slots=True)
class Extracted:
    """The sentence that is scored, and its status (a key of STATUSES)."""

    text: str
    status: str


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
_SPECIALS = re.compile(rf"\A(?:(?:{_SPECIAL.pattern})\s*)+", re.IGNORECASE)
#: emphasis, and what is struck out
_EMPHASIS = re.compile(
    r"\*\*|__|~~[^~\n]{0,200}~~|<(?P<tag>del|s)>[^<\n]{0,200}</(?P=tag)>"
    r"|</?(?:b|u|i|em|strong|mark|ins|span|font|p|br)(?: [^<>]{0,80})?>",
    re.IGNORECASE,
)
_BRACKET = re.compile(r"[（(][一-鿿]{1,4}[）)]")
_REPLACED = re.compile(r"(?P<old>[一-鿿]{1,8})[（(](?P<new>[一-鿿]{1,4})[）)]")
_PAIRS = ("“”", "‘’", "「」", "『』", "《》", "（）", "()", "[]", "【】", "{}", "<>")
#: where a candidate may begin or end
_CUT = re.compile(
    r"[^\w，、。！？,!?%]|_|[0-9A-Za-z一二三][.、)）]|如下|(?:改|改正|修改|更正|应|建议|可)?(?:为|是)"
    r"|(?<=[。！？])(?=\w)"
)
_FINAL = re.compile(r"最终|最后|结论|因此|所以|\b(?:final|conclusion|therefore)\b", re.IGNORECASE)
_NO_ERROR = re.compile(
    r"^(?:经检查，?|这个?句(?:子|话)|该句(?:子|话)?|原句|句子|文本)?(?:中|里)?(?:已经)?"
    r"(?:没有|无|未发现|不存在|正确)(?:任何)?(?:错别字|拼写错误|错误|误|问题)?[。，,.！]?"
    r"(?:因此|所以)?(?:原样输出|无需(?:修改|改正|更正)|不需要(?:修改|改正))?[。.！]?$"
    r"|^(?:the )?(?:sentence|text) (?:is|has|contains) (?:already )?(?:correct|no )"
    r"|^no (?:spelling )?(?:errors?|changes?|corrections?)\b",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"^(?:很抱歉|抱歉|对不起|非常抱歉)|我(?:无法|不能)(?:提供|回答|处理|协助|满足)|作为(?:一个)?(?:AI|人工智能)"
    r"|^(?:i'?m sorry|i am sorry|sorry,|i can(?:no|')t )",
    re.IGNORECASE,
)


def extract_correction(raw: str, source: str) -> Extracted:
    """Return the corrected sentence of a model's output; the source where there is none.

    >>> extract_correction("改正后：他已经来了。", "他己经来了。")
    Extracted(text='他已经来了。', status='cleaned')
    >>> extract_correction("抱歉，我无法处理这个请求。", "他己经来了。").status
    'refusal'
    >>> extract_correction("1. 他已经来了。\\n2. 他已经走了。", "他己经来了。").status
    'unclear'
    """
    if raw.strip() == source.strip():
        return Extracted(_keep_ends(raw, source), "ok")
    answer = remove_thoughts(raw, source)
    if answer is None:
        return Extracted(source, "unparsable")
    answer = answer.strip()
    if not answer:
        return Extracted(source, "empty")
    text = _choose_candidate(answer, source.strip())
    if text is None:
        return Extracted(source, "unclear")
    refuses = _REFUSAL.search(answer) and not _REFUSAL.search(source)
    if text and (text != source.strip() or not refuses):
        # White space at the ends is not meant as a correction: the source's own is kept.
        text = _keep_ends(text, source)
        return Extracted(text, "ok" if text.strip() == raw.strip() else "cleaned")
    if refuses:
        return Extracted(source, "refusal")
    if any(_NO_ERROR.match(line.strip()) for line in answer.split("\n")[:_MOST_LINES]):
        return Extracted(source, "cleaned")
    empty = not any(character.isalnum() for character in answer)
    return Extracted(source, "unparsable" if empty else "chatter")


def remove_thoughts(raw: str, source: str) -> str | None:
    """Return the text outside the thoughts and special tokens; None if it ends in a thought.

    A closing mark without an opening one ends a thought that the chat template opened.
    """
    final = _CHANNEL.search(raw)
    if final:
        raw = raw[final.end() :]
    parts: list[str] = []
    end, opened = 0, -1  # of the last thought; where one began that is open, or -1
    for mark in _THOUGHT.finditer(raw):
        is_end = mark["ends"] or (mark[0].startswith("<|") and not mark["begin"])
        if is_end:
            if opened >= 0:
                parts.append(raw[end:opened])
            else:
                parts.clear()
            end, opened = mark.end(), -1
        elif opened < 0:
            opened = mark.start()
    if opened >= 0:
        return None
    text = ("".join(parts) + raw[end:]).strip("\ufeff\u200b \t\r\n")
    return text if _SPECIAL.search(source) else _cut_first_turn(text)


def _cut_first_turn(text: str) -> str:
    """Return what the model says in its first turn, without special tokens."""
    text = text.removeprefix("<s>")
    text = text if "<s>" in text else text.partition("</s>")[0]
    turn = _TURN.search(text)
    if turn and _SPECIAL.match(text):
        text = text[turn.end() :].strip()
    text = _SPECIALS.sub("", text, count=1)
    return _SPECIAL.split(text, maxsplit=1)[0]


def _choose_candidate(answer: str, source: str) -> str | None:
    """Return the candidate; "" where nothing is near the source, None if it cannot be decided.

    Of several that change the source, the last one is it if the text before calls it final.
    """
    parts = _split_answer(answer, source)
    candidates = [
        (number, text) for number, part in enumerate(parts) for text in _find_nearest(part, source)
    ]
    if not candidates:
        return ""
    changed = [(number, text) for number, text in candidates if text != source]
    if not changed:
        return source
    if len(source) <= _FEW:
        changed = [(n, text) for n, text in changed if set(text) & set(source)] or changed
    number, last = changed[-1]
    if all(text == last for _, text in changed):
        return last
    before = "\n".join([*parts[max(0, number - 3) : number], parts[number].rpartition(last)[0]])
    return last if _FINAL.search(before[-40:]) else None


def _split_answer(answer: str, source: str) -> Sequence[str]:
    """Return the texts of JSON, or the lines, without marks that the source does not have."""
    parts = _find_json_texts(answer, source)
    if not parts:
        lines = (
            [answer] if "\n" in source else [line for line in answer.split("\n") if line.strip()]
        )
        parts = lines[:_MOST_LINES]
    if not _EMPHASIS.search(source):
        parts = [_EMPHASIS.sub("", part) for part in parts]
    return [
        _REPLACED.sub(_apply_bracket, part) if _BRACKET.sub("", part).strip() == source else part
        for part in parts
    ]


def _find_json_texts(answer: str, source: str) -> list[str]:
    if answer[:1] == source[:1] and answer[-1:] == source[-1:]:
        return []  # the source is written so itself
    begin = min((at for at in map(answer.find, "{[") if at >= 0), default=0)
    end = max(map(answer.rfind, "}]"))
    try:
        return list(islice(_list_strings(json.loads(answer[begin : end + 1])), _MOST_LINES))
    except (ValueError, RecursionError):
        return []


def _list_strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _list_strings(inner)


def _apply_bracket(match: re.Match[str]) -> str:
    """Return 已 for 己（已）: as many characters as the bracket holds are replaced."""
    old, new = match["old"], match["new"]
    before, wrong = old[: -len(new)], old[-len(new) :]
    is_character = len(new) == 1 and new not in "对错正误"
    is_correction = len(new) <= len(old) and (is_character or set(new) & set(wrong))
    return before + new if is_correction else match[0]


def _find_nearest(part: str, source: str) -> list[str]:
    """Return the candidates in a text that do not overlap; of those that do, the nearest one."""
    # A short sentence may be mostly wrong: two edits are always allowed.
    limit = int(max(2, _FAR * len(source)))
    cuts = list(islice(_CUT.finditer(part), _MOST_CUTS))
    begins, ends = [0, *(cut.end() for cut in cuts)], [*(cut.start() for cut in cuts), len(part)]
    candidates = []
    for begin in begins:
        for end in ends:
            text = part[begin:end].strip()
            if not text or abs(len(text) - len(source)) > limit:
                continue
            distance = Levenshtein.distance(text, source, score_cutoff=limit)
            if distance <= limit and _is_balanced(text, source):
                candidates.append((distance, begin - end, begin, end, text))
    chosen: list[tuple[int, int, str]] = []
    for *_, begin, end, text in sorted(candidates):  # the nearest first, of these the longest
        if all(end <= first or begin >= last for first, last, _ in chosen):
            chosen.append((begin, end, text))
    return [text for *_, text in sorted(chosen)]


def _is_balanced(text: str, source: str) -> bool:
    """Return whether a text has both marks of each pair, unless the source has not."""
    pairs = [pair for pair in _PAIRS if source.count(pair[0]) == source.count(pair[1])]
    return all(text.count(pair[0]) == text.count(pair[1]) for pair in pairs)


def _keep_ends(text: str, source: str) -> str:
    head = source[: len(source) - len(source.lstrip())]
    tail = source[len(source.rstrip()) :]
    return f"{head}{text.strip()}{tail}"
