"""What the channel's kernels take: arrays, settings, and what is known of names.

Some text looks wrong but is right: names of people, foreign names, titles, repeated text. A name is
an edge of the lattice, a word that the n-gram model need not list. In a title or a short quotation,
and in two characters that recur, an error costs more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cecdata.common.kernels import called
from cecdata.lm.table import Tables

LONGEST_CLAUSE = 48  # characters; a longer run of Han is cut before, where few words cross
MOST_WORD = 8  # characters of the longest word
MOST_KEPT = 160  # edited edges of a clause
MOST_EDGES = LONGEST_CLAUSE * (MOST_WORD + 3) + MOST_KEPT
MOST_STATES = 1 << 14  # pairs of adjacent edges
MOST_STEPS = 1 << 19  # triples of adjacent edges

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
HOLE = 1  # in place of a character in `form_keys`
# log P of an observed character that no operator writes for the right one: any of the 8,105
COMPLETED = -9.0
PERSON, FOREIGN = np.uint8(1), np.uint8(2)
LONGEST_TITLE = 12
WINDOW = 200  # characters within which two characters recur
_TITLES = re.compile(f"《[^《》]{{1,{LONGEST_TITLE}}}》|“[^“”]{{1,{LONGEST_TITLE}}}”")


class ChannelArrays(NamedTuple):
    """A channel for the kernel.

    `slot` [0x110000] is an observed character's row plus 1; row r is [bounds[r]:bounds[r + 1]] of
    `right` (code points) and `log_prob`, from ends[r] on for terms alone. `span_keys` is a hash
    table of observed spans, whose rows lead to `span_words` (numbers of words) and `span_log_prob`.
    `form_keys`, `form_rows`, `form_bounds` and `form_words` lead in the same way from a word with
    `HOLE` in place of one character to the words. `sounds` [0x110000, 2] are the numbers of a
    character's usual syllables, -1 for none, and `near` [syllables, syllables] is 1 where one is
    taken for the other. `repeated` is log P that a character is written twice. `word_points`
    [V, MOST_WORD] and `word_size` [V] are the texts of the n-gram model's words. `kinds`
    [0x110000]: see `name_kinds`.
    `term_words` are the numbers of the user's terms; those with a character of slot s at place p
    < 3 are [term_bounds[3 * s + p]:term_bounds[3 * s + p + 1]].
    """

    slot: NDArray[np.int32]
    bounds: NDArray[np.int64]
    ends: NDArray[np.int64]
    right: NDArray[np.int32]
    log_prob: NDArray[np.float32]
    span_keys: NDArray[np.uint64]
    span_shift: np.uint64
    span_rows: NDArray[np.int32]
    span_bounds: NDArray[np.int64]
    span_words: NDArray[np.int32]
    span_log_prob: NDArray[np.float32]
    form_keys: NDArray[np.uint64]
    form_shift: np.uint64
    form_rows: NDArray[np.int32]
    form_bounds: NDArray[np.int64]
    form_words: NDArray[np.int32]
    sounds: NDArray[np.int32]
    near: NDArray[np.uint8]
    repeated: float
    word_points: NDArray[np.int32]
    word_size: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    term_bounds: NDArray[np.int64]
    term_words: NDArray[np.int32]


class Settings(NamedTuple):
    """The weights of the decoder; scores are natural logarithms."""

    channel: float = 1.0  # λ; 1 is Bayes' rule
    error: float = 3.0  # θ, for each error
    margin: float = 6.0  # an edited edge that loses more than this is dropped
    temperature: float = 2.0  # of the posteriors
    unknown: float = -8.0  # added to log P of the unknown word
    name: float = -5.0  # log P that a word is a name
    title: float = 2.0  # further cost of an error in a title or a short quotation
    recurring: float = 2.0  # further cost of an error in two characters that recur


class Work(NamedTuple):
    """Scratch space of one call, used clause by clause; the kernels allocate nothing.

    By edge [MOST_EDGES]: `start`, `end`, `word` and `price`; `before` and `after`, the best scores
    of the words as written up to and with the edge, and after it; `chain`, another edge that ends
    at the same place; `low` and `states`, its first state and how many. `sorted` holds the edges by
    start. By place [LONGEST_CLAUSE + 1]: `first`, the first edge that starts there; `head`, the
    last one that ends there; `leading`, how many do; `ahead` and `rest`, bounds of the scores
    before and after it; `leave` and `enter`, those beside a term; `guard`, the further cost of an
    error.

    A state is an edge after another one: `entry` after `previous`. `slot` is the bigram of their
    words, `best` the score of the best path to it and `back` the state before it there; `forward`
    and `backward` are sums over all paths, relative to the best. `step` [MOST_STEPS] holds the
    chance of each step between states, relative to the best path. By edited edge [MOST_KEPT]:
    `share`, its posterior; `path`, whether it is on the best path.
    """

    start: NDArray[np.int32]
    end: NDArray[np.int32]
    word: NDArray[np.int32]
    chain: NDArray[np.int32]
    low: NDArray[np.int32]
    states: NDArray[np.int32]
    sorted: NDArray[np.int32]
    price: NDArray[np.float32]
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    first: NDArray[np.int32]
    head: NDArray[np.int32]
    leading: NDArray[np.int32]
    ahead: NDArray[np.float32]
    rest: NDArray[np.float32]
    leave: NDArray[np.float32]
    enter: NDArray[np.float32]
    guard: NDArray[np.float32]
    entry: NDArray[np.int32]
    previous: NDArray[np.int32]
    back: NDArray[np.int32]
    slot: NDArray[np.int64]
    best: NDArray[np.float64]
    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    step: NDArray[np.float64]
    share: NDArray[np.float64]
    path: NDArray[np.uint8]


class Clause(NamedTuple):
    """A clause of Han characters, the tables it is read by, and the scratch space of its lattice.

    `used` beside it in the kernels is the number of edges that the space holds, and `floor` the
    least score of the clause with an edited edge.
    """

    points: NDArray[np.int32]
    lm: Tables
    channel: ChannelArrays
    settings: Settings
    work: Work


def make_workspace() -> Work:
    """Return scratch space for one call of `correct`, which runs without the interpreter's lock.

    Only memory that is written is ever mapped, so that a call pays for what it uses.
    """
    edge, place, state = MOST_EDGES, LONGEST_CLAUSE + 2, MOST_STATES
    kinds = (  # how many fields of `Work` in a row, their size and type
        (7, edge, np.int32),
        (3, edge, np.float32),
        (3, place, np.int32),
        (5, place, np.float32),
        (3, state, np.int32),
        (1, state, np.int64),
        (3, state, np.float64),
        (1, MOST_STEPS, np.float64),
        (1, MOST_KEPT, np.float64),
        (1, MOST_KEPT, np.uint8),
    )
    return Work._make(np.empty(size, kind) for count, size, kind in kinds for _ in range(count))


def name_kinds() -> NDArray[np.uint8]:
    """Return PERSON for family names, FOREIGN for characters of foreign ones [0x110000]."""
    kind = np.zeros(0x110000, np.uint8)
    kind[[ord(sign) for sign in FAMILY_NAMES]] |= PERSON
    kind[[ord(sign) for sign in FOREIGN_SIGNS]] |= FOREIGN
    return kind


def list_guards(
    pieces: Sequence[str], offsets: NDArray[np.int64], title: float
) -> NDArray[np.float32]:
    """Return the further cost in nats of an error at each character: `title` in titles and short
    quotations, else 0.
    """
    guard = np.zeros(int(offsets[-1]), np.float32)
    for piece, begin in zip(pieces, offsets[:-1].tolist(), strict=True):
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
        for later in range(place + 2, min(stop - 1, place + WINDOW)):
            if points[later] == points[place] and points[later + 1] == points[place + 1]:
                for at in (place, place + 1, later, later + 1):
                    guard[at] = max(guard[at], recurring)
