"""The corrected sentence in what a language model wrote.

A small grammar of answers: a thought and special tokens go first; what is left is cut into pieces,
each of them a line, what a label introduces, a cell of a table or a value of JSON, and each piece
is freed of the marks around it. A piece near the source is a candidate. What an answer's label
introduces wins over bare lines, and these over an echo of the source. Where several different
candidates remain, nothing is decided: the answer is `unclear`. tests/cecbench/answers.jsonl has the
forms that were met; each new one belongs there first.

An endpoint may send anything: no pattern has two adjacent parts that match the same run of
characters, so that each takes time linear in the answer's length.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from rapidfuzz.distance import Levenshtein

from cecbench.systems.unwrap import (
    FAR,
    LONGEST_LABEL,
    SAYS,
    Role,
    bare,
    last_word,
    own_words,
    role_of,
)

_FEW = 4  # characters of a source to which any word is near
_MOST_PIECES = 2000  # looked at; a longer answer is no correction of a sentence


@dataclass(frozen=True, slots=True)
class Extracted:
    """The sentence that is scored, and its status (a key of STATUSES)."""

    text: str
    status: str


_CLOSE = r"[*_】\]）)〕\"”]*"
#: where a label ends: at a colon or a closing bracket
_COLON = re.compile(rf"{_CLOSE}\s?(?:[：:]|——|[=-]>|→){_CLOSE}|[】\]](?!\s*[：:])")
_HEAD = re.compile(r"[^：:]{1,20}[：:]\s*")
_ARROW = re.compile(r"→|⇒|⟶|➡️?|=+>|-+>|\t|应该?被?(?:改|修改|纠正|更正|订正)(?:为|成)")
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
_NOTHING = " *_#-（([【】])）<>“”\"'0123456789.、"
_BETWEEN = ' ；;|/（([【“"*'  # between two labels of a line
#: frames of an unknown form begin and end at these
_OUTSIDE = frozenset("\"'“”「」『』‘’`*_[]【】<>《》()（）{}|：:=~#")


def extract(raw: str, source: str) -> Extracted:
    """Return the corrected sentence of a model's output; the source where there is none.

    >>> extract("改正后：他已经来了。", "他己经来了。")
    Extracted(text='他已经来了。', status='cleaned')
    >>> extract("抱歉，我无法处理这个请求。", "他己经来了。").status
    'refusal'
    >>> extract("1. 他已经来了。\\n2. 他已经走了。", "他己经来了。").status
    'unclear'
    """
    if raw.strip() == source.strip():
        return Extracted(_keep_ends(raw, source), "ok")
    said = own_words(raw, source)
    if said is None:
        return Extracted(source, "unparsable")
    said = said.strip()
    if not said:
        return Extracted(source, "empty")
    found = _decide(said, source)
    if found is None:
        return Extracted(source, "unclear")
    if found:
        # White space at the ends is not meant as a correction: the source's own is kept.
        text = _keep_ends(found, source)
        if text != source or not _refuses(said, source):
            return Extracted(text, "ok" if text.strip() == raw.strip() else "cleaned")
    if _refuses(said, source):
        return Extracted(source, "refusal")
    if any(_NO_ERROR.match(line.strip()) for line in said.split("\n")[:_MOST_PIECES]):
        return Extracted(source, "cleaned")
    empty = not any(character.isalnum() for character in said)
    return Extracted(source, "unparsable" if empty else "chatter")


def _decide(said: str, source: str) -> str | None:
    """Return the one best candidate; "" where nothing is near the source, None if several are."""
    found: dict[str, Role] = {}
    for role, text in _pieces(said, source):
        if role >= Role.BARE and _near(text, source) and _akin(text, role, said, source):
            found[text] = max(role, found.get(text, role))
    changed = {text: role for text, role in found.items() if text != source.strip()}
    labelled = [text for text, role in found.items() if role >= Role.ANSWER]
    if not found:
        return _inside(said, source)
    if labelled == [source.strip()]:  # said to be right as it is
        return source.strip()
    if not changed:
        return source.strip()
    best = max(changed.values())
    top = [text for text, role in changed.items() if role == best]
    return top[0] if len(top) == 1 else None


def _pieces(said: str, source: str) -> Iterator[tuple[Role, str]]:
    """Yield the pieces of an answer, each freed of what is around it, with their roles."""
    if "\n" in source.strip():
        first, *others = said.split("\n")
        *_, (_, rest) = _labelled(first.strip(), source)
        lines = [line for line in (rest, *others) if line and not line.startswith("```")]
        if len(lines) == len(source.strip().split("\n")):
            yield Role.BARE, bare("\n".join(lines), source)
        return
    records = list(_records(said, source))
    for role, text in records:
        yield role, bare(text, source)
    if records:
        return
    waiting = Role.BARE  # what the last line introduced
    columns: list[Role] = []
    for line in map(str.strip, said.split("\n")[:_MOST_PIECES]):
        if not line and waiting == Role.REMARK:
            waiting = Role.BARE
        if line.startswith("```") or set(line) <= set("-—=*|:· "):
            continue
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            roles = [role_of(cell) for cell in cells]
            if len(cells) > 1 and roles[0] is not None and not any(roles[1:]):
                columns = []
                yield from ((roles[0], bare(cell, source)) for cell in cells[1:])
            elif any(roles):
                columns = [role or Role.BARE for role in roles]
            else:
                known = [*columns, *[Role.BARE] * (len(cells) - len(columns))]
                yield from (
                    (role, bare(cell, source)) for role, cell in zip(known, cells, strict=False)
                )
            continue
        waiting = yield from _of_line(line, source, waiting)


def _of_line(line: str, source: str, waiting: Role) -> Generator[tuple[Role, str], None, Role]:
    """Yield the pieces of a line, and return the role of the next one."""
    parts = list(_labelled(line, source))
    if parts[-1][0] is not None and not parts[-1][1].strip(_NOTHING):
        return parts[-1][0]  # the line introduces the next one
    pieces = [piece for part in parts for piece in _sides(*part, source, waiting)]
    whole = bare(line, source)
    if _near(whole, source):
        nearest = min((_distance(text, source) for _, text in pieces), default=len(line))
        if nearest >= _distance(whole, source):  # it only resembles a label
            pieces = [(waiting, whole)]
    yield from pieces
    if any(_near(text, source) for _, text in pieces):
        return Role.BARE
    return waiting if waiting == Role.REMARK else Role.BARE


def _sides(role: Role | None, part: str, source: str, waiting: Role) -> Iterator[tuple[Role, str]]:
    """Yield a part of a line, or what is before and behind an arrow in it."""
    own = waiting if role is None else role
    sides = [part] if _ARROW.search(source) else _ARROW.split(part)
    left = bare(sides[0], source)
    if len(sides) == 2 and _near(left, source):
        yield Role.SOURCE, left
        yield max(own, Role.ANSWER), bare(sides[1], source)
    else:
        yield own, _without_head(bare(part, source), source)


def _without_head(text: str, source: str) -> str:
    """Return a piece without a label of unknown words, all of which is foreign to the source."""
    head = _HEAD.match(text)
    if head is None or not _near(text, source):
        return text
    rest = text[head.end() :]
    foreign = _distance(text, source) - _distance(rest, source) == head.end()
    return bare(rest, source) if rest and foreign else text


def _labelled(line: str, source: str) -> Iterator[tuple[Role | None, str]]:
    """Yield the parts of a line with the role of the label before each, None without one."""
    if len(line) > 40 * len(source) + 2000:  # no line of an answer
        yield None, line
        return
    start, role = 0, None
    for mark in _COLON.finditer(line):
        head = line[max(start, mark.start() - LONGEST_LABEL) : mark.start()]
        if mark[0].strip() in ("→", "->", "=>") and _near(bare(head, source), source):
            continue  # an arrow between two sentences
        word = last_word(head, source)
        if word is None:
            rest = line[mark.end() :].strip(" *_")
            if start == 0 and not rest and not _near(bare(line, source), source):
                yield Role.ANSWER, ""  # `Here you are:`, whatever its words are
                return
            continue
        at, found = word
        before = line[start : max(start, mark.start() - LONGEST_LABEL) + at]
        if before.strip(_NOTHING):
            yield role, before.rstrip(_BETWEEN)
        role, start = found, mark.end() - (mark[0][-1:] == source[:1])  # its own quotation mark
    rest = line[start:]
    if role is None:
        says = SAYS.search(rest[:LONGEST_LABEL])
        if says and not SAYS.search(source):
            role, rest = Role.ANSWER, rest[says.end() :]
    yield role, rest


def _records(said: str, source: str) -> Iterator[tuple[Role, str]]:
    """Yield the texts of an answer in JSON."""
    if said[:1] == source[:1] and said[-1:] == source[-1:] and _near(said, source):
        return  # the source is written so itself
    opening = [place for place in (said.find("{"), said.find("[")) if place >= 0]
    start, end = min(opening, default=-1), max(said.rfind("}"), said.rfind("]"))
    text = ""
    if 0 <= start < end:
        text = said[start : end + 1]
    elif said[:1] == said[-1:] == '"':
        text = said
    with suppress(ValueError, RecursionError):
        yield from _leaves(json.loads(text), Role.BARE)
        return


def _leaves(value: object, role: Role, depth: int = 0) -> Iterator[tuple[Role, str]]:
    if isinstance(value, str):
        yield role, value
    elif isinstance(value, dict) and depth < 9:
        for key, inner in list(value.items())[:_MOST_PIECES]:
            yield from _leaves(inner, role_of(str(key)) or role, depth + 1)
    elif isinstance(value, list | tuple) and depth < 9:
        for inner in value[:_MOST_PIECES]:
            yield from _leaves(inner, role, depth + 1)


def _inside(said: str, source: str) -> str | None:
    """Return the part of an answer of unknown form that is near the source; "" without one.

    Parts begin and end at quotation marks, brackets and the like.
    """
    found: dict[str, int] = {}
    lines = (part for part in said.split("\n") if len(part) >= FAR * len(source))
    for line in islice((part for part in lines if len(part) <= 4 * len(source) + 200), 100):
        signs = (at for at, sign in enumerate(line) if sign in _OUTSIDE)
        cuts = [-1, *islice(signs, 40), len(line)]
        for number, first in enumerate(cuts):
            for last in cuts[number + 1 :]:
                text = line[first + 1 : last].strip()
                limit = max(1, len(source) // 3)
                if abs(len(text) - len(source)) <= limit:
                    distance = Levenshtein.distance(text, source, score_cutoff=limit)
                    if distance <= limit:
                        found[text] = distance
    changed = {text: distance for text, distance in found.items() if text != source.strip()}
    if not changed:
        return source.strip() if found else ""
    least = min(changed.values())
    best = [text for text, distance in changed.items() if distance == least]
    return best[0] if len(best) == 1 else None


def _refuses(said: str, source: str) -> bool:
    return bool(_REFUSAL.search(said)) and not _REFUSAL.search(source)


def _distance(text: str, source: str) -> int:
    return int(Levenshtein.distance(text, source))


def _near(text: str, source: str) -> bool:
    # A short sentence may be mostly wrong: two edits are always allowed.
    limit = int(max(2, FAR * len(source)))
    return bool(text) and Levenshtein.distance(text, source, score_cutoff=limit) <= limit


def _akin(text: str, role: Role, said: str, source: str) -> bool:
    """Return whether a text may be meant: of few characters any word is near."""
    alone = role >= Role.ANSWER or text in said.partition("\n")[0]
    return alone or len(source) > _FEW or bool(set(text) & set(source))


def _keep_ends(text: str, source: str) -> str:
    head = source[: len(source) - len(source.lstrip())]
    tail = source[len(source.rstrip()) :]
    return f"{head}{text.strip()}{tail}"
