"""The masking of personal data by typed placeholders: <EMAIL>, <PHONE>, <NAME>; see `RULES`.

It is off by default, and strict: most numbers need a checksum or a label before them, an address
needs a road with a house number after a word that introduces one, a name needs a title after it or
a label before it. Masking lowers the risk; it does not guarantee anonymity.
benchmarks/bench_privacy.py measures precision and recall by type.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HAN = "\u4e00-\u9fff"
_SURNAMES = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡"
    "贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段"
    "雷钱汤尹黎易常武乔贺赖龚文"
)
# GB 11643-1999: weights of the first 17 digits and the check character by the sum modulo 11.
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS = "10X98765432"


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern whose group `it` becomes the placeholder where `holds` returns True.

    trace: an RE2 pattern, without lookaround, that occurs in every text that `pattern` matches; it
    is searched for in a whole column at once.
    """

    placeholder: str
    trace: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool]


def mask_text(text: str) -> str:
    """Replace personal data in one text by placeholders.

    >>> mask_text("我叫张伟，电话13812345678，住在中山路12号3栋502室。")
    '我叫<NAME>，电话<PHONE>，住在<ADDR>。'
    >>> mask_text("订单号是13812345678901，总共3张。")
    '订单号是13812345678901，总共3张。'
    """
    for rule in RULES:
        text = _masked(text, rule)
    return text


def mask(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Mask the texts of a batch of the schema ROW; texts without a trace stay unchanged."""
    text = batch.column("text")
    traces = "|".join(f"(?:{rule.trace})" for rule in RULES)
    places = np.flatnonzero(np.asarray(pc.match_substring_regex(text, traces)))
    if not len(places):
        return batch
    some = text.take(pa.array(places))
    values = some.to_pylist()
    for rule in RULES:
        for place in np.flatnonzero(np.asarray(pc.match_substring_regex(some, rule.trace))):
            values[place] = _masked(values[place], rule)
    chosen = np.zeros(len(text), dtype=np.bool_)
    chosen[places] = True
    replaced = pc.replace_with_mask(text, pa.array(chosen), pa.array(values, pa.string()))
    return batch.set_column(
        batch.schema.get_field_index("text"), batch.schema.field("text"), replaced
    )


def _masked(text: str, rule: Rule) -> str:
    return rule.pattern.sub(lambda match: _replaced(match, rule), text)


def _replaced(match: re.Match[str], rule: Rule) -> str:
    whole, it = match[0], match["it"]
    if not rule.holds(it):
        return whole
    start = match.start("it") - match.start()
    return whole[:start] + rule.placeholder + whole[start + len(it) :]


def _always(_: str) -> bool:
    return True


def is_resident_id(text: str) -> bool:
    """Return whether an 18-character resident identity number has a right birthday and checksum."""
    try:
        date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    except ValueError:
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, text, strict=False))
    return text[17].upper() == _ID_CHECKS[total % 11]


def is_card(text: str) -> bool:
    """Return whether 15 to 19 digits, spaces and hyphens aside, pass the Luhn check.

    The digits must not all be equal. One random number in ten passes, so the pattern also requires
    the first digit of a card, 3 to 6.
    """
    digits = [int(char) for char in text if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    in_range = 15 <= len(digits) <= 19 and len(set(digits)) > 1
    return in_range and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def is_ip(text: str) -> bool:
    """Return whether a text is an IP address; one of version 6 has at least two groups."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "." in text or sum(map(bool, text.split(":"))) > 1


def _is_plate(text: str) -> bool:
    return sum(map(str.isdigit, text)) >= 3


def _rule(
    placeholder: str, trace: str, pattern: str, holds: Callable[[str], bool] = _always
) -> Rule:
    return Rule(placeholder, trace, re.compile(pattern), holds)


_IS = r"(?:是|为|[：:（(])?[ ]?"  # between a label and its value
_NO_NAME = "何对向和跟的地得在是有给被让与为把"
_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
# Eleven digits after one of these labels are no telephone number, although they begin like one.
_NO_PHONE = "".join(
    rf"(?<!{label}{sign})"
    for label in ("单号", "编号", "流水号", "序列号", "批号", "货号", "型号", "订单", "运单")
    for sign in ("", "：", ":", "是", "为", " ")
)
_INTRODUCES = "在到至于往址住"  # none of them is part of the name of the place itself
_NAME_OF_PLACE = rf"(?:(?![{_INTRODUCES}])[{_HAN}])"
_UNITS = "".join(
    rf"(?:{_NAME_OF_PLACE}{{{size}}}{kind})?"
    for size, kind in (("2,7", "(?:省|自治区)"), ("2,7", "市"), ("1,6", "[区县]"))
)
_ROAD = rf"{_NAME_OF_PLACE}{{2,6}}?(?:大道|路|街|巷|弄|胡同)"
_ROOM = r"(?:[0-9A-Za-z一二三四五六七八九十]{1,4}(?:号楼|栋|幢|座|单元|楼|层|室|号))*"

# Longer and stricter patterns first: an identity number is no card, a card is no telephone.
RULES: tuple[Rule, ...] = (
    # A local part has at most 64 octets (RFC 5321): without the limit a long run of letters takes
    # time proportional to the square of its length.
    _rule(
        "<EMAIL>",
        "@",
        r"(?P<it>[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
        str.isascii,
    ),
    _rule("<URL>", r"://|www\.", r"(?P<it>(?:https?://|www\.)[!-~]*[0-9A-Za-z/=&#_-])"),
    _rule(
        "<ID>",
        "[0-9]{17}",
        r"(?<![0-9A-Za-z])(?P<it>[1-9][0-9]{16}[0-9Xx])(?![0-9A-Za-z])",
        is_resident_id,
    ),
    _rule(
        "<CARD>",
        "[3-6](?:[ -]?[0-9]){14}",
        r"(?<![0-9A-Za-z])(?P<it>[3-6](?:[ -]?[0-9]){14,18})(?![0-9A-Za-z])",
        is_card,
    ),
    _rule(
        "<PHONE>",
        r"1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}|0[0-9]{2,3}[ )-]|[48]00-[0-9]{3}",
        rf"(?<![0-9A-Za-z.-]){_NO_PHONE}"
        r"(?P<it>(?:\+?86[ -]?)?1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}"
        r"|\(0[0-9]{2,3}\)[ ]?[2-9][0-9]{6,7}|0[0-9]{2,3}(?:-|[ ](?=[2-9]))[0-9]{7,8}"
        r"|[48]00-[0-9]{3,4}-[0-9]{3,4})(?![0-9A-Za-z元万亿])",
    ),
    _rule(
        "<PASSPORT>",
        "护照|通行证",
        rf"(?:护照|通行证)(?:号码?|编号)?{_IS}"
        r"(?P<it>[A-Z](?:[0-9]{8}|[A-Z][0-9]{7}))(?![0-9A-Za-z])",
    ),
    _rule(
        "<PLATE>",
        rf"[{_PROVINCES}][A-HJ-Z]·?[0-9A-HJ-NP-Z]{{4}}",
        rf"(?P<it>[{_PROVINCES}][A-HJ-Z]·?[0-9A-HJ-NP-Z]{{4}}"
        r"(?:[0-9A-HJ-NP-Z]{1,2}|[挂学警港澳]))"
        r"(?![0-9A-Za-z])",
        _is_plate,
    ),
    _rule(
        "<QQ>",
        "[Qq]{2}|扣扣|加[Qq]",
        rf"(?:[Qq]{{2}}|扣扣|加[Qq])[群号码]{{0,3}}{_IS}(?P<it>[1-9][0-9]{{4,10}})(?![0-9A-Za-z])",
    ),
    _rule(
        "<WECHAT>",
        "微信|[VvWw][Xx]",
        rf"(?:微信|[VvWw][Xx])号?码?{_IS}(?P<it>[A-Za-z][0-9A-Za-z_-]{{5,19}})(?![0-9A-Za-z_-])",
        lambda text: not text.isalpha(),
    ),
    # Four numbers with dots are also versions.
    _rule(
        "<IP>",
        r"(?:[0-9]{1,3}\.){3}[0-9]|:[0-9A-Fa-f]*:",
        r"(?<![0-9A-Za-z.:])(?<!版本)(?<!版本号)(?<!升级到)(?P<it>(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
        r"|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})(?![0-9A-Za-z]|\.[0-9]|:[0-9A-Fa-f]*:)",
        is_ip,
    ),
    _rule(
        "<ADDR>",
        "(?:大道|路|街|巷|弄|胡同)[0-9]{1,5}号",
        rf"(?<=[{_INTRODUCES}：:])(?P<it>{_UNITS}{_ROAD}[0-9]{{1,5}}号{_ROOM})(?![线码])",
    ),
    _rule(
        "<NAME>",
        "我叫|姓名|联系人|收件人|收货人",
        rf"(?:我叫|姓名|联系人|收件人|收货人)(?:是|为|[：:])?"
        rf"(?P<it>[{_SURNAMES}][{_HAN}]{{1,2}})(?=$|[，。；！？、,.;\s先女小])",
    ),
    _rule(
        "<NAME>",
        "先生|女士|小姐",
        rf"(?:^|(?<=[^{_HAN}])|(?<=[找给向是叫由让请被和与跟对为到]))"
        rf"(?P<it>[{_SURNAMES}](?:(?![{_NO_NAME}])[{_HAN}]){{0,2}}?)(?=先生|女士|小姐(?!姐))",
    ),
)
