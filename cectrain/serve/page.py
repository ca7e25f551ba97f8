"""The page on which people paste text and decide on each correction, in English or Chinese."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cecdata.common import html

_WORDS = {
    "en": {
        "title": "Chinese spelling correction",
        "about": "The text stays on this machine. Ctrl+Enter corrects it.",
        "text": "Text",
        "correct": "Correct",
        "result": "Corrected text",
        "choose": "Choose a correction to accept or reject it, or to take another one.",
        "copy": "Copy text",
        "accept": "Accept all",
        "reject": "Reject all",
        "working": "Correcting …",
        "one": "1 correction",
        "many": "{} corrections",
        "unread": "{} characters were not looked at",
        "copied": "Copied",
        "keep": "keep {}",
        "nothing": "nothing",
        "delete": "(delete)",
        "confidence": "{}, confidence {}",
        "other": "中文",
        "switch": "zh",
    },
    "zh": {
        "title": "中文纠错",
        "about": "文字不会离开这台机器。按 Ctrl+Enter 开始纠错。",
        "text": "文本",
        "correct": "纠错",
        "result": "改正后的文本",
        "choose": "点开每处修改，可以接受、拒绝，或另选一个。",
        "copy": "复制文本",
        "accept": "全部接受",
        "reject": "全部拒绝",
        "working": "正在纠错……",
        "one": "1 处修改",
        "many": "{} 处修改",
        "unread": "{} 个字没有检查",
        "copied": "已复制",
        "keep": "保留 {}",
        "nothing": "（无）",
        "delete": "（删去）",
        "confidence": "{}，置信度 {}",
        "other": "English",
        "switch": "en",
    },
}


@cache
def page(language: str = "en") -> str:
    """Return the page; it loads nothing and sends requests only to /correct of its own server."""
    folder, words = Path(__file__).parent, _WORDS[language]
    body = (folder / "page.html").read_text("utf-8").format_map(words)
    whole = html.page(words["title"], body, folder, data=words)
    return whole.replace('<html lang="en">', f'<html lang="{language}">', 1)
