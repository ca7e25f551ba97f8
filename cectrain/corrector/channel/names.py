"""What looks like an error and is none: names of people, foreign names, titles, what recurs."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cecdata.common.kernels.jit import called

# The hundred commonest family names, and characters that foreign names are written with.
FAMILY = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏"
    "吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱"
)
FOREIGN = (
    "阿埃艾安奥巴白贝本比彼波勃博布查达戴丹德登迪蒂杜多恩尔法菲费芬弗福富盖冈戈格古哈海汉赫亨华霍基吉"
    "加贾杰金卡凯坎康考柯科克肯库拉莱兰朗劳勒雷黎李里丽利莉列林留卢鲁路伦罗洛马玛迈麦曼梅门蒙米密莫墨"
    "姆穆纳娜奈南内尼努诺欧帕潘庞佩皮普奇乔切琼让热日瑞若萨塞森沙山舍圣施史舒丝司斯苏索塔泰坦汤特提廷"
    "图托瓦万旺威韦维温文沃乌武西希夏谢辛休雅亚扬耶伊因英尤约扎泽詹珍朱兹佐茨什蕾薇妮蒂娅黛露琳莎"
)
PERSON, OTHER = np.uint8(1), np.uint8(2)
LONGEST_TITLE = 12
WINDOW = 200  # characters within which two characters recur
_TITLES = re.compile("《[^《》]{1,%d}》|“[^“”]{1,%d}”" % ((LONGEST_TITLE,) * 2))


def kinds() -> NDArray[np.uint8]:
    """Return for each code point below 2**16 whether it begins names or writes foreign ones."""
    kind = np.zeros(1 << 16, np.uint8)
    kind[[ord(sign) for sign in FAMILY]] |= PERSON
    kind[[ord(sign) for sign in FOREIGN]] |= OTHER
    return kind


def guards(
    pieces: Sequence[str], offsets: NDArray[np.int64], title: float
) -> NDArray[np.float32]:
    """Return the nats that an error at each character costs more, `title` in titles and quotations."""
    guard = np.zeros(int(offsets[-1]), np.float32)
    for piece, begin in zip(pieces, offsets.tolist(), strict=False):
        if "《" in piece or "“" in piece:
            for match in _TITLES.finditer(piece):
                guard[begin + match.start() : begin + match.end()] = title
    return guard


@called
def guard_recurring(points, begin, stop, recurring, guard):
    """Guard pairs of Han characters of [begin, stop) that recur within `WINDOW`."""
    for place in range(begin, stop - 1):
        if points[place] < 0x3400 or points[place + 1] < 0x3400:
            continue
        for other in range(place + 2, min(stop - 1, place + WINDOW)):
            if points[other] == points[place] and points[other + 1] == points[place + 1]:
                for at in (place, place + 1, other, other + 1):
                    guard[at] = max(guard[at], recurring)
