"""The quality filters: sentences that are hardly Chinese, no sentences, or unlikely ones.

A new filter is one entry in `QUALITY`. Filters look at the judged form of a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.kernels.jit import compiled
from cecdata.common.kernels.utf8 import Bytes, Int32s, code_point, string_buffers
from cecdata.corpus.normalise import Normalised, judged, reject

if TYPE_CHECKING:
    import polars as pl

MOST = 8  # classes of characters that one pass counts: one byte each of 64 bits
_BITS = 8
_SURROGATES = (0xD800, 0xE000)

Lanes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Quality:
    """A rule by which a sentence is rejected.

    fails: maps the column of sentences to a boolean expression, true where one is rejected.
    detail: the text of the column `detail` of a rejected row.
    counts: returns the patterns, each of one character, that `_number` and `_share` may take.
    """

    fails: Callable[[pl.Expr], pl.Expr]
    detail: str
    counts: Callable[[], tuple[str, ...]] = tuple


def _number(pattern: str) -> pl.Expr:
    """Return the number of characters of a text that match one of `Quality.counts`."""
    import polars as pl

    return pl.col(pattern)


def _share(text: pl.Expr, pattern: str) -> pl.Expr:
    """Return the share of a text's characters that match one of `Quality.counts`."""
    return _number(pattern) / text.str.len_chars()


_HAN, _KANA = r"[\u4e00-\u9fff\u3400-\u4dbf]", r"[\u3041-\u3096\u30a1-\u30fa]"
_LETTERS, _SIGNS = r"[\p{L}\p{N}]", r"[^\p{L}\s]"
LEAST_HAN, MOST_KANA, MOST_SIGNS, MOST_OTHERS = 0.5, 0.1, 0.4, 0.1


@cache
def _standard() -> str:
    """Return the characters of 通用规范汉字表, which the operators and tables cover."""
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


def _repeats(text: pl.Expr) -> pl.Expr:
    head = text.str.head(HEAD)
    length, different = head.str.len_chars(), head.str.split("").list.n_unique()
    return (length >= SHORTEST_REPEATED) & (different < LEAST_DISTINCT * length)


QUALITY: dict[str, Quality] = {
    "han": Quality(
        lambda _: _number(_HAN) < LEAST_HAN * _number(_LETTERS),
        f"less than {LEAST_HAN:.0%} of its letters and digits are Han",
        lambda: (_HAN, _LETTERS),
    ),
    "kana": Quality(
        lambda text: _share(text, _KANA) > MOST_KANA,
        f"more than {MOST_KANA:.0%} of its characters are kana",
        lambda: (_KANA,),
    ),
    "simplified": Quality(
        lambda _: _number(_HAN) - _number(_standard()) > MOST_OTHERS * _number(_HAN),
        f"more than {MOST_OTHERS:.0%} of its Han characters are not standard simplified ones",
        lambda: (_HAN, _standard()),
    ),
    "signs": Quality(
        lambda text: _share(text, _SIGNS) > MOST_SIGNS,
        f"more than {MOST_SIGNS:.0%} of its characters are digits or signs",
        lambda: (_SIGNS,),
    ),
    "repeated": Quality(
        _repeats, f"less than {LEAST_DISTINCT:.0%} of its first {HEAD} characters are distinct"
    ),
    "mojibake": Quality(
        lambda text: text.str.contains(_MOJIBAKE) | (_number(_RARE) >= _MOST_RARE),
        "it looks like text that was decoded in a wrong encoding",
        lambda: (_RARE,),
    ),
    "boilerplate": Quality(
        lambda text: (
            (text.str.len_chars() <= LONGEST_BOILERPLATE) & text.str.contains("|".join(_PHRASES))
        ),
        "it is boilerplate of a page",
    ),
}
PERPLEXITY = "perplexity"
_ANY_HAN = "[\u3400-\u9fff\U00020000-\U000323af]"


def sieve(
    clean: Normalised, names: Sequence[str], model: str = "", most: float = np.inf
) -> Normalised:
    """Reject the sentences that fail a filter; the reason names the first filter that they fail.

    With a `model`, sentences whose perplexity is above `most` fail a last filter.
    """
    if not (names or model) or not len(clean.batch):
        return clean
    text = clean.batch.column("text")
    failed = {series.name: series.to_numpy() for series in failing(text, names)}
    details = {name: QUALITY[name].detail for name in names}
    if model:
        failed[PERPLEXITY] = perplexity(text, model) > most
        details[PERPLEXITY] = f"its perplexity per Chinese character is above {most:g}"
    left, rejected = np.ones(len(clean.batch), dtype=np.bool_), [clean.rejected]
    for name, detail in details.items():
        bad = failed[name] & left
        left &= ~bad
        rows = clean.batch.filter(pa.array(bad))
        rejected.append(reject(rows, f"quality_{name}", [detail] * len(rows)))
    return Normalised(clean.batch.filter(pa.array(left)), pa.concat_batches(rejected))


def failing(text: pa.Array, names: Sequence[str]) -> pl.DataFrame:
    """Return a frame with a column for each filter: whether each text fails it."""
    import polars as pl

    text = _without_placeholders(judged(text))
    patterns = dict.fromkeys(p for name in names for p in QUALITY[name].counts())
    frame = pl.DataFrame({"text": pl.from_arrow(text), **counted(text, list(patterns))})
    return frame.select(QUALITY[name].fails(pl.col("text")).alias(name) for name in names)


def _without_placeholders(text: pa.Array) -> pa.Array:
    """Leave out placeholders of masks, such as <PHONE>, where a sentence has more than these."""
    if not pc.any(pc.match_substring(text, "<")).as_py():
        return text
    rest = pc.replace_substring_regex(text, "<[A-Z]{2,8}>", "")
    return pc.if_else(pc.match_substring_regex(rest, _ANY_HAN), rest, text)


def perplexity(text: pa.Array, model: str) -> npt.NDArray[np.float64]:
    """Return exp(-log P / n) of each text under a model, n being its Chinese characters.

    Under n-grams, which know no other characters, a text without Chinese ones has 1.
    """
    from cecdata.lm import shared_scorer  # it loads the tables of words

    characters = np.asarray(pc.count_substring_regex(text, _ANY_HAN))
    nats = shared_scorer(model).log_prob(text)
    return np.asarray(np.exp(-nats / np.maximum(characters, 1)))


def counted(text: pa.Array, patterns: Sequence[str]) -> dict[str, Int32s]:
    """Return, for each pattern, the number of characters in each text that match it."""
    data, bounds = string_buffers(text)
    counts: dict[str, Int32s] = {}
    for first in range(0, len(patterns), MOST):
        some = tuple(patterns[first : first + MOST])
        numbers = np.zeros((MOST, len(text)), np.int32)
        _count(data, bounds, _lanes(some), numbers)
        counts.update(zip(some, numbers, strict=False))
    return counts


@cache
def _lanes(patterns: tuple[str, ...]) -> Lanes:
    """Return, for each code point, a word with a 1 in the byte of each pattern that it matches."""
    import polars as pl

    low, high = _SURROGATES
    points = np.r_[0:low, high:0x110000].astype("<u4")
    # split by Polars: a million Python strings would take 100 MB
    signs = pl.Series([points.tobytes().decode("utf-32-le")]).str.split("").explode()
    lanes = np.zeros(0x110000, np.uint64)
    for number, pattern in enumerate(patterns):
        held = signs.str.contains(f"(?s)^(?:{pattern})$").to_numpy()
        lanes[points[held]] |= np.uint64(1 << (_BITS * number))
    return lanes


@compiled
def _count(data: Bytes, bounds: Int32s, lanes: Lanes, numbers: npt.NDArray[np.int32]) -> None:
    for row in range(bounds.size - 1):
        at, stop = np.uint64(bounds[row]), np.uint64(bounds[row + 1])
        while at < stop:
            held = np.uint64(0)
            for _ in range(255):  # a byte can count no further
                if at >= stop:
                    break
                code, at = code_point(data, at)
                held += lanes[code]
            for lane in range(MOST):
                byte = held >> np.uint64(_BITS * lane) & np.uint64(255)
                numbers[lane, row] += np.int32(byte)
