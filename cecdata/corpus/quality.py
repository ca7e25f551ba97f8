"""The quality filters: sentences that are hardly Chinese, or no sentences.

A new filter is one entry in `QUALITY`. Filters look at the judged form of a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.corpus.normalise import Normalised, fold_for_judging, reject_rows

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Quality:
    """A rule by which a sentence is rejected.

    fails: maps the column of sentences to a boolean expression, true where one is rejected.
    detail: the text of the column `detail` of a rejected row.
    """

    fails: Callable[[pl.Expr], pl.Expr]
    detail: str


def _shorten_signs(text: pl.Expr) -> pl.Expr:
    """Return the text without quotation marks, and with one sign for ……, —— and ！！！."""
    return text.str.replace_all("[“”‘’「」『』]", "").str.replace_all(
        "([…—！？!?.。~～])[…—！？!?.。~～]+", "$1"
    )


def _measure_share(text: pl.Expr, pattern: str) -> pl.Expr:
    return text.str.count_matches(pattern) / text.str.len_chars()


_HAN, _KANA = r"[\u4e00-\u9fff\u3400-\u4dbf]", r"[\u3041-\u3096\u30a1-\u30fa]"
_LETTERS, _SIGNS = r"[\p{L}\p{N}]", r"[^\p{L}\s]"
LEAST_HAN, MOST_KANA, MOST_SIGNS, MOST_OTHERS = 0.5, 0.1, 0.4, 0.1


@cache
def _make_standard_class() -> str:
    """Return the character class of 通用规范汉字表, which the operators and tables cover."""
    from cecdata.hanzi.characters import standard_characters  # it loads the tables

    return f"[{''.join(standard_characters())}]"


# The replacement character through GBK, uninitialised memory, and UTF-8 read as Latin-1.
_MOJIBAKE = r"锟斤拷|锘挎|烫烫|屯屯屯|[ÃÂ][\u0080-\u00bf]|[äåæçèé][\u0080-\u00bf]{2}|â€"
# The most frequent characters of UTF-8 text that is read as GBK; three are hardly a coincidence.
_RARE, _MOST_RARE = r"[浣犲ソ鐨勬槸鍦ㄦ垜浠涓鏈夊悗鍙锛銆]", 3

LONGEST_BOILERPLATE = 60  # a longer sentence has other content, too
_PHRASES = (
    "版权所有[ ，,。！!：:]{0,2}(?:侵权|翻印|盗版|违者|未经|©|[0-9]{4}|$)",
    "(?i)all rights reserved", r"(?i)copyright ?(?:©|\(c\)|[0-9]{4})|© ?[0-9]{4}",
    "ICP备[0-9]", "公网安备",
    ("未经.{0,10}(?:许可|授权|同意|允许)[，,]?(?:任何.{1,8})?"
    "(?:不得|禁止|严禁|请勿|谢绝)(?:以.{1,8})?"
    "(?:擅自|自行)?(?:转载|摘编|镜像|刊登|翻印)"),
    "转载请注明", "责任编辑[:：]", "关注[^的了]{0,4}公众号",
    ("^(?:请|欢迎)?(?:点击|扫码|长按).{0,6}"
    "(?:(?:查看|阅读|展开|浏览|了解)(?:全文|原文|更多|详情|大图).{0,6}"
    "|(?:关注|下载)(?:我们|本店|APP|客户端)?|(?:识别)?二维码.{0,6})[！!。…>》]*$"),
    "^(?:上一篇|下一篇)[:：]", "^(?:返回顶部|返回首页|展开全文|阅读原文|查看更多)[！!。…>》]*$",
    ("^(?:首页|登录|注册)(?: ?[>|·›»/] ?[^ ，。>|·›»/]{1,8}"
    "| (?:首页|登录|注册|搜索|帮助|关于我们))+$"),
)  # fmt: skip

LEAST_DISTINCT, SHORTEST_REPEATED = 0.3, 12  # share of distinct characters; shorter: not judged
HEAD = 60  # characters judged, because long texts have a smaller share of distinct ones


def _is_repetitive(text: pl.Expr) -> pl.Expr:
    """Return whether few of the first HEAD characters are distinct."""
    head = text.str.head(HEAD)
    length, different = head.str.len_chars(), head.str.split("").list.n_unique()
    return (length >= SHORTEST_REPEATED) & (different < LEAST_DISTINCT * length)


QUALITY: dict[str, Quality] = {
    "han": Quality(
        lambda text: text.str.count_matches(_HAN) < LEAST_HAN * text.str.count_matches(_LETTERS),
        f"less than {LEAST_HAN:.0%} of its letters and digits are Han",
    ),
    "kana": Quality(
        lambda text: _measure_share(text, _KANA) > MOST_KANA,
        f"more than {MOST_KANA:.0%} of its characters are kana",
    ),
    "simplified": Quality(
        lambda text: (
            text.str.count_matches(_make_standard_class())
            < (1 - MOST_OTHERS) * text.str.count_matches(_HAN)
        ),
        f"more than {MOST_OTHERS:.0%} of its Han characters are not standard simplified ones",
    ),
    "signs": Quality(
        lambda text: _measure_share(_shorten_signs(text), _SIGNS) > MOST_SIGNS,
        f"more than {MOST_SIGNS:.0%} of its characters are digits or signs, …… counted as one",
    ),
    "repeated": Quality(
        _is_repetitive,
        f"less than {LEAST_DISTINCT:.0%} of its first {HEAD} characters are distinct",
    ),
    "mojibake": Quality(
        lambda text: text.str.contains(_MOJIBAKE) | (text.str.count_matches(_RARE) >= _MOST_RARE),
        "it looks like text that was decoded in a wrong encoding",
    ),
    "boilerplate": Quality(
        lambda text: (
            (text.str.len_chars() <= LONGEST_BOILERPLATE) & text.str.contains("|".join(_PHRASES))
        ),
        "it is boilerplate of a page",
    ),
}
_ANY_HAN = "[\u3400-\u9fff\U00020000-\U000323af]"


def reject_failing(clean: Normalised, names: Sequence[str]) -> Normalised:
    """Reject the sentences that fail a filter; the reason names the first filter that they fail."""
    if not names or not len(clean.batch):
        return clean
    failures = find_failures(clean.batch.column("text"), names)
    left, rejected = np.ones(len(clean.batch), dtype=np.bool_), [clean.rejected]
    for name in names:
        bad = failures[name].to_numpy() & left
        left &= ~bad
        rows = clean.batch.filter(pa.array(bad))
        rejected.append(reject_rows(rows, f"quality_{name}", [QUALITY[name].detail] * len(rows)))
    return Normalised(clean.batch.filter(pa.array(left)), pa.concat_batches(rejected))


def find_failures(text: pa.Array, names: Sequence[str]) -> pl.DataFrame:
    """Return a frame with a column for each filter: whether each text fails it."""
    import polars as pl

    text = _remove_placeholders(fold_for_judging(text))
    frame = pl.DataFrame({"text": pl.from_arrow(text)})
    return frame.select(QUALITY[name].fails(pl.col("text")).alias(name) for name in names)


def _remove_placeholders(text: pa.Array) -> pa.Array:
    """Leave out placeholders of masks, such as <PHONE>, where a sentence has more than these."""
    if not pc.any(pc.match_substring(text, "<")).as_py():
        return text
    rest = pc.replace_substring_regex(text, "<[A-Z]{2,8}>", "")
    return pc.if_else(pc.match_substring_regex(rest, _ANY_HAN), rest, text)
