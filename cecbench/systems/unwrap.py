"""What models put around a sentence: thoughts, special tokens, labels, marks, quotes, remarks.

What the source has itself is not taken off.
"""

from __future__ import annotations

import re
import unicodedata
from enum import IntEnum

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
_STRUCK = re.compile(r"~~[^~\n]{0,200}~~|<(?P<tag>del|s)>[^<\n]{0,200}</(?P=tag)>")
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


LONGEST_LABEL = 40  # characters before a colon
#: of a source's length: a text with more edits is no correction of it
FAR = 0.5


class Role(IntEnum):
    """What introduces a piece; of candidates the one with the highest role counts."""

    REMARK, SOURCE, BARE, CANDIDATE, ANSWER, FINAL = range(1, 7)


_CHANGED = (
    "改正|修改|纠正|校对|修正|订正|更正|纠错|校正|修订|改错"
    "|更改|调整|优化|润色|修复|改写|检查|处理|改"
)
_WORDS = {
    Role.REMARK: (
        rf"(?:{_CHANGED}|错误|错别字|补充)?的?(?:说明|解释|理由|原因|分析|内容|之处|备注|意见)",
        rf"(?:{_CHANGED})(?:点|处)|错误|错别字|改动|变更|注意|思考|分析|注(?=\W|$)",
        r"\b(?:explanations?|notes?|changes?|reasons?|errors?|remarks?|comments?)\b",
        r"\b(?:analysis|corrections made)\b",
    ),
    Role.SOURCE: (
        rf"(?:{_CHANGED})前|原(?:来的|始)?(?:句子?|文本?|始)|(?:错误|有误)的?(?:句子?|文本|写法)",
        r"病句|错句|输入|待(?:校对|纠错|改正|修改)|用户|(?<!\w)[原错误](?!\w)",
        r"\b(?:original|input|source|before|incorrect|wrong|given|old|user|question|Q)\b",
    ),
    Role.CANDIDATE: (
        r"(?:候选|方案|版本|选项|备选|可能)(?:的\w{1,4})?\s*[一二三四五1-9A-E]|初步|初稿",
        r"\b(?:candidate|option|version|alternative|draft)\s*[1-9A-E]?\b",
    ),
    Role.FINAL: (r"最终|最后|结论|定稿|综上|总之|因此|所以|\b(?:final|conclusion|therefore)\b",),
    Role.ANSWER: (
        rf"{_CHANGED}|正确|应(?:该|当)?(?:是|为)|输出|答案?|结果|回答|建议|规范|写作|助手",
        r"新句|现句|(?<!\w)[对正](?!\w)",
        r"\b(?:corrected|correction|correct|fixed?|revised|edited|proofread|rewritten|output)\b",
        r"\b(?:answer|result|response|target|after|assistant|right|new|should (?:be|read)|A)\b",
    ),
}
#: a word that says what follows; of several before one colon the last one counts
_WORD = re.compile(
    "|".join(f"(?P<{role.name}>{'|'.join(words)})" for role, words in _WORDS.items()), re.IGNORECASE
)
#: a label without a colon
SAYS = re.compile(
    rf"(?:(?:句子|文本|{_CHANGED})(?:之?后)?的?(?:句子|文本|版本)?|应该?|正确的(?:句子|文本|写法))"
    r"(?:改)?(?:为|是|成|如下)(?=[^：:，。])"
)


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
    return text[: stop.start()] if stop else text


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


def last_word(head: str, source: str) -> tuple[int, Role] | None:
    """Return where the first word of a label begins, and the role of its last word."""
    begin = max(head.rfind(mark) for mark in "。；！？\t|") + 1
    words = [word for word in _WORD.finditer(head, begin) if word[0]]
    if not words or len(head) - words[-1].end() > 12:
        return None
    if head[words[0].start() :] and head[words[0].start() :] in source:
        return None  # the source has these words itself
    final = any(word.lastgroup == "FINAL" for word in words)
    role = Role[str(words[-1].lastgroup)]
    if final and role in (Role.ANSWER, Role.FINAL):
        role = Role.FINAL
    return words[0].start(), role


def role_of(text: str) -> Role | None:
    """Return the role that a heading, a key of JSON or a tag's name gives; None for none."""
    words = [word for word in _WORD.finditer(text.replace("_", " ")) if word[0]]
    if not words or len(text) > LONGEST_LABEL:
        return None
    return Role[str(words[-1].lastgroup)]
