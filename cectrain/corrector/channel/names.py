"""Text that looks wrong but is right: names of people, foreign names, titles, repeated text.

A name is an edge of the lattice, a word that the n-gram model need not list. In a title or a short
quotation, and in two characters that recur, an error costs more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cecdata.common.kernels.jit import called

# Frequent family names of one character, and characters of transliterated names.
FAMILY_NAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏"
    "吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱"
)
FOREIGN_SIGNS = (
    "阿埃艾安奥巴白贝本比彼别波伯勃博卜布查茨达戴丹德登迪蒂杜顿多恩尔法菲费芬弗夫福富盖冈戈格古哈海汉"
    "赫亨华霍基吉加贾捷杰金卡喀凯坎康考柯科克肯库拉莱兰朗劳勒雷黎李里丽利莉列林琳留卢鲁露路伦罗洛马玛"
    "迈麦曼梅门蒙米密莫默墨姆穆纳娜奈南内尼涅努诺欧帕潘庞佩皮普奇齐乔切琴琼让热日瑞若萨塞赛森沙莎山舍"
    "圣施史什舒丝司斯苏索塔泰坦汤特提廷图托瓦万旺威韦维温文沃乌武西希夏谢辛欣休雅亚娅扬耶叶伊易因英尤"
    "约赞扎泽詹珍朱兹佐薇蕾妮黛"
)
PERSON, FOREIGN = np.uint8(1), np.uint8(2)
LONGEST_TITLE = 12
WINDOW = 200  # characters within which two characters recur
_TITLES = re.compile(f"《[^《》]{{1,{LONGEST_TITLE}}}》|“[^“”]{{1,{LONGEST_TITLE}}}”")


def kinds() -> NDArray[np.uint8]:
    """Return PERSON for family names, FOREIGN for characters of foreign ones [0x10000]."""
    kind = np.zeros(1 << 16, np.uint8)
    kind[[ord(sign) for sign in FAMILY_NAMES]] |= PERSON
    kind[[ord(sign) for sign in FOREIGN_SIGNS]] |= FOREIGN
    return kind


def guards(pieces: Sequence[str], offsets: NDArray[np.int64], title: float) -> NDArray[np.float32]:
    """Return the further cost in nats of an error at each character: `title` in titles and short
    quotations, else 0.
    """
    guard = np.zeros(int(offsets[-1]), np.float32)
    for piece, begin in zip(pieces, offsets.tolist(), strict=False):
        if "《" in piece or "“" in piece:
            for match in _TITLES.finditer(piece):
                guard[begin + match.start() : begin + match.end()] = title
    return guard


@called
def guard_recurring(points, begin, stop, recurring, guard):
    """Raise the cost of an error in pairs of characters that recur within `WINDOW`.

    Both are of U+3400 and above: Han characters and full-width signs.
    """
    for place in range(begin, stop - 1):
        if points[place] < 0x3400 or points[place + 1] < 0x3400:
            continue
        for other in range(place + 2, min(stop - 1, place + WINDOW)):
            if points[other] == points[place] and points[other + 1] == points[place + 1]:
                for at in (place, place + 1, other, other + 1):
                    guard[at] = max(guard[at], recurring)
