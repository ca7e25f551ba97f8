"""The masking of personal data by typed placeholders: <EMAIL>, <PHONE>, <NAME>; see `RULES`.

It is off by default, and strict: most numbers need a checksum, a label before them or the usual
groups, an address needs a road with a house number after a word that introduces one, a name needs a
title after it or a label before it. Masking lowers the risk; it does not guarantee anonymity.

Patterns look at the judged form of a text (`normalise.map_forms`), so that width, style and
invisible characters hide nothing; placeholders replace the characters of the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from cecdata.corpus.normalise import fold_for_judging, map_forms
from cecdata.hanzi.edits import splice

_HAN = "\u4e00-\u9fff"
_SURNAME = (
    "(?:欧阳|司马|上官|诸葛|夏侯|皇甫|尉迟|公孙|慕容|令狐|司徒|东方|端木|"
    "[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡"
    "贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段"
    "雷钱汤尹黎易常武乔贺赖龚文])"
)
# GB 11643-1999: weights of the first 17 digits and the check character by the sum modulo 11.
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECKS = "10X98765432"
_VALUES = str.maketrans("〇零○一二三四五六七八九幺壹贰叁肆伍陆柒捌玖", "0001234567891123456789")


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern whose group `it` becomes the placeholder where `holds` returns True.

    trace: a quick pattern that occurs in every text that `pattern` matches; RE2, which searches a
    whole column at once, reads it, too, so that it has no lookaround.
    """

    placeholder: str
    trace: str
    pattern: str
    holds: Callable[[str], bool] = lambda _: True


def mask_text(text: str) -> str:
    """Replace personal data in one text by placeholders; masking twice changes nothing.

    >>> mask_text("我叫张伟，电话13812345678，住在中山路12号3栋502室。")
    '我叫<NAME>，电话<PHONE>，住在<ADDR>。'
    >>> mask_text("订单号是13812345678901，总共3张。")
    '订单号是13812345678901，总共3张。'
    """
    masked = _mask_once(text)
    while masked != text:  # what stands beside a placeholder may now match
        text, masked = masked, _mask_once(masked)
    return text


def mask_column(text: pa.Array) -> pa.Array:
    """Mask the texts of a column; those without a trace stay unchanged."""
    traces = "|".join(f"(?:{rule.trace})" for rule in RULES)
    chosen = pc.match_substring_regex(fold_for_judging(text), traces)
    if not pc.any(chosen).as_py():
        return text
    values = [mask_text(value) for value in text.filter(chosen).to_pylist()]
    return pc.replace_with_mask(text, chosen, pa.array(values, pa.string()))


def _mask_once(text: str) -> str:
    """Apply the rules once, in their order, and mask each name wherever it occurs."""
    judged = _Judged(text)
    names: set[str] = set()
    for rule in RULES:
        is_possible = re.search(rule.trace, judged.form)
        matches = re.finditer(rule.pattern, judged.form) if is_possible else ()
        confirmed = [match for match in matches if rule.holds(match["it"])]
        if rule.placeholder == "<NAME>":
            names.update(match["it"] for match in confirmed)
        if confirmed:
            judged = judged.replace([match.span("it") for match in confirmed], rule.placeholder)
    if names:
        names.update(match[0] for match in re.finditer(_TITLED, judged.form))
        # The longest first; a surname alone is no name.
        known = "".join(rf"|{name}" for name in sorted(names, key=len, reverse=True) if name[1:])
        places = re.finditer(f"{_TITLED}{known}", judged.form)
        judged = judged.replace([match.span() for match in places], "<NAME>")
    return judged.text


class _Judged:
    """A text and its judged form.

    `_places` has the place in the text of each character of the form, and the end of the text.
    """

    def __init__(self, text: str) -> None:
        table = map_forms()
        forms = [table.get(ord(sign), sign) for sign in text]
        self.text, self.form = text, "".join(forms)
        self._places = [place for place, form in enumerate(forms) for _ in form] + [len(text)]

    def replace(self, spans: Iterable[tuple[int, int]], placeholder: str) -> _Judged:
        """Return the text with a placeholder at spans of the judged form."""
        places = self._places
        changes = ((places[start], places[stop], placeholder) for start, stop in spans)
        return _Judged(splice(self.text, changes))


def _to_ascii_digits(text: str) -> str:
    """Return the digits and letters of a text; Han digits become ASCII ones."""
    signs = text.translate(_VALUES)
    return "".join(sign for sign in signs if sign.isascii() and sign.isalnum())


def _is_date(digits: str) -> bool:
    try:
        return bool(date(int(digits[:4]), int(digits[4:6]), int(digits[6:])))
    except ValueError:
        return False


def is_resident_id(text: str) -> bool:
    """Return whether an 18-character resident identity number has a right birthday and checksum."""
    text = _to_ascii_digits(text)
    if not _is_date(text[6:14]):
        return False
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, text, strict=False))
    last = text[17:].upper() or "X"  # nothing is left of an X of another alphabet, such as ×
    return last == _ID_CHECKS[total % 11]


def is_card(text: str) -> bool:
    """Return whether 15 to 19 digits, spaces and hyphens aside, pass the Luhn check.

    The digits must not all be equal. One random number in ten passes, so the pattern also requires
    the first digit of a card, 3 to 6.
    """
    digits = [int(char) for char in text if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]  # the sums of their digits
    in_range = 15 <= len(digits) <= 19 and len(set(digits)) > 1
    return in_range and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_IS = r'["”]?[ ]?[是为]?[ ]?[：:（(=#→|【\[-]?[ ]?["“]?'  # between a label and its value
_NO_NAME = "何对向和跟的地得在是有给被让与为把"
# Eleven digits after one of these labels are no telephone number, although they begin like one.
_NO_PHONE = "".join(
    rf"(?<!{label}{sign})"  # one each, because a pattern looks back by a fixed length
    for label in ("单号", "编号", "流水号", "序列号", "批号", "货号", "型号", "订单", "运单")
    for sign in ("", "：", ":", "是", "为", " ")
)
_GAP = r"[ \-−./·•_]{0,2}"  # between the groups of a number
_WIDE_GAP = "[ \u3000−./~～*·•_-]{0,3}"  # the same, where the groups have few sizes
_ANY_GAP = r"[ \-−./·•_,，、:：;；|()（）…+=]{0,3}"  # in a number that its digits prove
_EDGE = r"(?<![0-9A-Za-z])(?<![0-9A-Za-z][._-])"  # no longer number or code begins before
_END = r"(?![0-9A-Za-z元万亿年米倍%])(?!\.[0-9])"
_DIAL = r"(?:[(（]?(?:\+|00)?86[)）]?[ .-]{0,2})?0?"
_HAN_DIGIT = "[0-9〇零○一二三四五六七八九幺壹贰叁肆伍陆柒捌玖]"
_MOBILE = (
    "|".join(
        _WIDE_GAP.join(rf"[0-9]{{{size}}}" for size in sizes)
        for sizes in ("344", "335", "353", "434", "443", "56", "74", "3233", "32222")
    )
    + r"|[0-9](?P<gap>[ \-.·])[0-9](?:(?P=gap)[0-9]){9}"
    # but no list of round numbers
    r"|[0-9]{3}(?P<mark>[ ]?[,;:|=+'…\\]{1,3}[ ]?)(?!...0(?P=mark)...0)[0-9]{4}(?P=mark)[0-9]{4}"
)
_YEAR = "(?:1[3-9]|20)[0-9]{2}"
_CALL = "(?:电话|座机|传真|热线|致电|拨打|客服|[Tt][Ee][Ll]|[Ff]ax)(?:号码?)?"
_LANDLINE = r"[2-9][0-9]{2,3}[ -]?[0-9]{4}"
_IN_HAN = f"[1一幺壹][3-9三四五六七八九叁肆伍陆柒捌玖]{_HAN_DIGIT}(?:{_GAP}{_HAN_DIGIT}{{4}}){{2}}"
_HOTLINE = "[48]00(?:[ -](?:[0-9]{3}[ -]?[0-9]{4}|[0-9]{4}[ -]?[0-9]{3})|[0-9](?:[ -][0-9]{3}){2})"

_WECHAT = "[微薇威徽维V][ ]?信|加微|[VvWw][ ]?[Xx]|[Ww]e[Cc]hat|[Ww]ei[Xx]in"

_LETTER = "0-9A-Za-z\u00c0-\u024f\u0370-\u04ff"  # Latin, and what looks so
_AT = r"[ ]?(?:@{1,2}|%40|艾特|[\[(（【<{][ ]?(?:at|AT|艾特|@)[ ]?[\])）】>}])[ ]?"
_DOT = r"[ ]?(?:[.。·点]|[\[(（【<{][ ]?(?:dot|DOT|点|\.)[ ]?[\])）】>}]|[ ](?:dot|DOT)[ ])[ ]?"
_HOST = f"[{_LETTER}-]{{1,63}}"

_INTRODUCES = "在到至于往址住"  # none of them is part of the name of the place itself
_NAME_OF_PLACE = rf"(?:(?![{_INTRODUCES}是为即])[{_HAN}])"
_UNITS = (
    rf"(?:{_NAME_OF_PLACE}{{2,7}}(?:省|自治区))?(?:{_NAME_OF_PLACE}{{2,7}}市)?"
    rf"(?:{_NAME_OF_PLACE}{{1,6}}[区县])?(?:{_NAME_OF_PLACE}{{2,6}}(?:[镇乡]|街道))?"
)
_STREET = "(?:(?:大道|路|街|巷|弄|胡同|村)(?:[一二三四五六七八九十东西南北中]段)?)"
_ROAD = rf"{_NAME_OF_PLACE}{{2,6}}?{_STREET}"
_NUMBER = (
    "[ ]?[甲乙丙丁附]?(?:[0-9]{1,5}(?:[-之][0-9]{1,4})?|[一二三四五六七八九十百千零〇]{1,7})[ ]?"
)
_ESTATE = "(?:小区|花园|公寓|新村|家园|佳苑|大厦|大楼|饭店|酒店|宾馆|商厦|广场|中心)"
_ROOM = (
    rf"(?:[ ]?(?:{_NAME_OF_PLACE}{{2,6}}?{_ESTATE})?"
    "[ ]?[0-9A-Za-z一二三四五六七八九十百零〇]{1,5}[ ]?"
    "(?:号楼|栋|幢|座|单元|楼|层|室|门|号房?|组|弄|#)"
    r"|[ ]?[0-9]{1,3}-[0-9]{1,4}(?:-[0-9]{1,4})?室?"
    r"|(?<=[元栋幢座楼#])[0-9]{1,4}室?|(?<=[号门])[0-9]{3,4}室?(?![0-9年月日元人个米]))"
)

_TITLED = (  # 于 behind another particle is no surname
    rf"(?<!任)(?!(?<=[由对关属等至基鉴])于){_SURNAME}(?:(?![{_NO_NAME}])[{_HAN}]){{0,2}}?"
    "(?=先生|女士|小姐(?!姐))"
)
_HOUSE = rf"{_NUMBER}(?:号(?:院(?!子))?|弄|组|#)"
_INTRODUCED = rf"(?:(?<=[{_INTRODUCES}：:=])|(?<=址[是为]))"
_START = '(?:^|(?<=[，。；、 “"（(]))'

# Longer and stricter patterns first: an identity number is no card, a card is no telephone.
RULES: tuple[Rule, ...] = (
    # A local part has at most 64 octets (RFC 5321): without the limit a long run of letters takes
    # time proportional to the square of its length.
    Rule(
        "<EMAIL>",
        r"@|%40|艾特|[\[(（【<{][ ]?(?:at|AT)| (?:at|AT) ",
        rf"(?P<it>[{_LETTER}][{_LETTER}._%+'~&-]{{0,63}}(?:{_AT}{_HOST}(?:{_DOT}{_HOST}){{1,5}}"
        rf"|@(?:{_HOST}\.)?[{_HAN}]{{1,12}}\.(?:中国|公司|网络|[A-Za-z]{{2,6}})"
        rf"|[ ](?:at|AT)[ ]{_HOST}(?:[ ](?:dot|DOT)[ ]{_HOST}){{1,4}})"
        rf"|(?:(?<![{_HAN}])|(?<=[箱是为到给件]))[{_HAN}]{{1,4}}@(?:{_HOST}\.)?[{_HAN}{_LETTER}-]{{1,12}}"
        r"\.(?:中国|公司|网络|com|cn|net|org)(?![0-9A-Za-z]))",
    ),
    Rule(
        "<ID>",
        rf"(?:{_HAN_DIGIT}{_ANY_GAP}){{17}}",
        rf"{_EDGE}(?P<it>{_HAN_DIGIT}(?:{_ANY_GAP}{_HAN_DIGIT}){{16}}{_ANY_GAP}"
        rf"(?:{_HAN_DIGIT}|[Xx×ΧХ]))(?![A-Za-z])(?!{_HAN_DIGIT})",
        is_resident_id,
    ),
    Rule(
        "<ID>",
        "身份证",
        rf"身份证(?:号码?|件号码?|明号码?)?{_IS}"
        rf"(?P<it>{_HAN_DIGIT}(?:{_ANY_GAP}{_HAN_DIGIT}){{14}})(?![A-Za-z])(?!{_HAN_DIGIT})",
        lambda text: _is_date("19" + _to_ascii_digits(text)[6:12]),  # of 15 digits
    ),
    Rule(
        "<CARD>",
        rf"[3-6](?:{_GAP}[0-9]){{14}}",
        rf"{_EDGE}(?P<it>[3-6](?:{_GAP}[0-9]){{14,18}})(?![0-9A-Za-z])",
        is_card,
    ),
    Rule(
        "<PHONE>",
        rf"1{_WIDE_GAP}[3-9]|{_IN_HAN}",
        rf"(?:{_EDGE}|(?<=[Tt][Ee][Ll])|(?<=[Tt][Ee][Ll]\.)|(?<=[VvWw][Xx])){_NO_PHONE}"
        rf"(?P<it>{_DIAL}(?:[(（]1[3-9][0-9][)）][ -]?[0-9]{{4}}[ -]?[0-9]{{4}}"
        rf"|(?=1{_WIDE_GAP}[3-9])(?:{_MOBILE})"
        rf"|{_IN_HAN})){_END}(?!{_HAN_DIGIT})",
        lambda text: not re.match(rf"{_YEAR}[^0-9]+{_YEAR}\b", text),
    ),
    Rule(
        "<PHONE>",
        r"0[0-9]{2,3}[ )）./-]|[48]00[0-9]?[ .-]|86|[+][0-9]",
        rf"{_EDGE}{_NO_PHONE}(?P<it>"
        rf"(?:\(?(?:\+|00)?86\)?[ -]{{1,2}})?[(（]0[0-9]{{2,3}}[)）][ -]?{_LANDLINE}"
        rf"|(?:\+|00)86[ -]?\(?0?[1-9][0-9]{{1,2}}\)?[ -]?{_LANDLINE}"
        rf"|[(（](?:\+|00)?86[ -][0-9]{{2,3}}[)）][ -]?{_LANDLINE}"
        rf"|86-[0-9]{{2,3}}-{_LANDLINE}"
        rf"|0[0-9]{{2,3}}[ ]?(?:-{{1,2}}[ ]?[0-9]{{3,4}}[ -]?[0-9]{{4}}|[ ]{_LANDLINE})"
        r"|0[1-9][0-9]{1,2}[./][0-9]{4}[ .-]?[0-9]{4}|09[0-9]{2}-[0-9]{3}-[0-9]{3}"
        rf"|{_HOTLINE}|[48]00\.[0-9]{{3}}\.[0-9]{{4}}){_END}",
    ),
    Rule(
        "<PHONE>",
        r"(?:[+]|008)(?:[0-9][ ()-]{0,2}){8}",
        rf"(?<![0-9A-Za-z])(?P<it>(?:\+[1-9][0-9]{{0,2}}|00(?:85[23]|886))"
        rf"(?:[ -]?\(?[0-9]{{1,5}}\)?){{2,5}}){_END}",
        lambda text: 8 <= sum(map(str.isdigit, text)) <= 15,
    ),
    Rule(
        "<PHONE>",
        _CALL,
        rf"{_CALL}{_IS}(?P<it>0?[0-9]{{0,3}}[ -]?{_LANDLINE}"
        rf"|[48]00[0-9]{{7}}){_END}",
    ),
    Rule(
        "<QQ>",
        "[Qq][ ]?[Qq群]|扣[扣群]|球球|秋秋|企鹅号|加[Qq扣]",
        rf"(?:[Qq][ ]?[Qq群]|扣[扣群]|球球|秋秋|企鹅号|加[Qq扣])[ ]?[群号码帐账]{{0,3}}{_IS}"
        r"(?P<it>[1-9](?:[ -]?[0-9]){4,10})(?![0-9A-Za-z])",
    ),
    Rule(
        "<WECHAT>",
        _WECHAT,
        rf"(?:{_WECHAT})[ ]?(?:号码?|ID|id|账号|帐号)?码?{_IS}"
        # a name such as Windows10 behind no sign is a product's
        r"(?!(?<=[信Xxt微])[a-z]?[A-Z][a-z]+[0-9])(?P<it>[A-Za-z][0-9A-Za-z_-]{5,19})"
        "(?![0-9A-Za-z_-])",
        lambda text: not text.isalpha(),
    ),
    *(
        Rule(
            "<ADDR>",
            rf"{_STREET}{_NUMBER}[号弄组#]|{_ESTATE}{_NUMBER}(?:号楼|栋|幢|座)",
            rf"{before}(?P<it>{place})(?![线码])",
        )
        for before, place in (
            (_INTRODUCED, rf"{_UNITS}{_ROAD}{_HOUSE}{_ROOM}{{0,6}}"),
            (_START, rf"{_NAME_OF_PLACE}{{2,7}}[省市区县]{_UNITS}{_ROAD}{_HOUSE}{_ROOM}{{0,6}}"),
            (_START, rf"{_UNITS}{_ROAD}{_HOUSE}{_ROOM}{{1,6}}"),
            (
                rf"(?:{_START}|{_INTRODUCED})",
                rf"{_UNITS}{_NAME_OF_PLACE}{{2,8}}?{_ESTATE}{_NUMBER}(?:号楼|栋|幢|座){_ROOM}{{1,6}}",
            ),
        )
    ),
    Rule(
        "<NAME>",
        "我叫|我的名字|[姓户][ ]?名|[系件货请表办][ ]?人",
        '(?:(?:我的名字[叫是]|(?:我叫|姓[ ]?名|联[ ]?系[ ]?人|收[件货]人)"?[ ]?[是为]?|'
        '(?:[寄发]件人|申请人|代表人|经办人|户名)(?="?[：:]))"?[ ]?[：:=|【]?[ ]?["“]?'
        '(?!(?<![：:=|【"“叫是为 ])[于任常易方高]))'
        rf"(?P<it>{_SURNAME}[ ]?[{_HAN}]{{1,2}})(?=$|[，。；！？、,.;/】()（）”\"\s先女小<])",
    ),
    Rule(
        "<NAME>",
        "联系",
        rf"联系(?!方式|方法)(?P<it>{_SURNAME}[{_HAN}]{{1,2}}?)"
        r"(?=[，, ：:（(]{0,2}(?:电话|手机|微信|QQ|<PHONE>))",
    ),
    Rule(
        "<NAME>",
        "先生|女士|小姐",
        rf"(?:^|(?<=[^{_HAN}])|(?<=[找给向是叫由让请被和与跟对为到于]))"
        rf"(?P<it>{_TITLED})",
    ),
)
