"""readings.tsv: the readings of every standard character and how often each one occurs.

The list of readings is that of 通用规范汉字字典 (Unihan kTGHZ2013), completed with kMandarin where
a common one is missing. A reading's share blends three estimates: counts in a corpus of running
text (kHanyuPinlu), the words of jieba's dictionary whose reading pypinyin's phrases give, and a
prior that favours the reading named first by kMandarin. Occurrences outside such words (的 alone)
follow the corpus, or the prior where the corpus has none: 目的 must not decide for every 的.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from inputs import Inputs, numbered

HEADER = ["char", "readings"]
# Weights of corpus, words, prior. Where the corpus has no counts, its weight goes to the words.
CORPUS, WORDS, PRIOR = 0.70, 0.25, 0.05
PRIOR_FIRST = 0.8
# Characters whose usual reading the counts miss: few counts, or counts from one word (仿佛).
USUAL = {"茄": "qie2", "佛": "fo2", "琢": "zhuo2", "似": "si4", "欸": "ei4", "豁": "huo4"}
USUAL_SHARE = 0.8
_VALID = frozenset("abcdefghijklmnopqrstuvwxyz")


def rows(inputs: Inputs) -> list[list[str]]:
    """Return one row per standard character: ``xing2:0.880 hang2:0.120``, most frequent first."""
    allowed, first = _allowed(inputs)
    corpus = _corpus(inputs)
    words = _words(inputs, allowed)
    total = _occurrences(inputs)
    table = []
    for character, readings in allowed.items():
        prior = _prior(readings, first[character])
        base = _shares(_fold(corpus[character], readings)) or prior
        spoken = _with_rest(words[character], total[character], base)
        corpus_weight = CORPUS if base is not prior else 0.0
        shares = {
            name: corpus_weight * base.get(name, 0.0)
            + (WORDS + CORPUS - corpus_weight) * spoken.get(name, 0.0)
            + PRIOR * prior[name]
            for name in readings
        }
        if character in USUAL:
            shares = _raised(shares, USUAL[character])
        ordered = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        table.append([character, " ".join(f"{name}:{share:.3f}" for name, share in ordered)])
    return table


def _allowed(inputs: Inputs) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return character → its readings, and character → the one that kMandarin names first."""
    dictionary, mandarin = inputs.unihan("kTGHZ2013"), inputs.unihan("kMandarin")
    allowed, first = {}, {}
    for character in inputs.standard:
        listed = [numbered(value.split(":")[1]) for value in dictionary[character]]
        common = [numbered(value) for value in mandarin[character]]
        names = list(dict.fromkeys([*listed, *common[:1]]))
        if not names or any(not set(name[:-1]) <= _VALID for name in names):
            raise SystemExit(f"{character}: expected readings in pinyin, found {names}")
        allowed[character] = names
        first[character] = common[0] if common else names[0]
    return allowed, first


def _corpus(inputs: Inputs) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for character, values in inputs.unihan("kHanyuPinlu").items():
        for value in values:
            reading, count = value.rstrip(")").split("(")
            counts[character][numbered(reading)] += int(count)
    return counts


def _words(inputs: Inputs, allowed: dict[str, list[str]]) -> dict[str, Counter[str]]:
    """Return character → reading → summed counts of the words in which it has this reading."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for word, count in inputs.word_counts:
        spoken = inputs.phrases.get(word)
        if spoken is None or len(spoken) != len(word):
            continue
        for character, options in zip(word, spoken, strict=True):
            if character in allowed:
                heard = Counter({numbered(options[0]): count})
                counts[character].update(_fold(heard, allowed[character]))
    return counts


def _fold(counts: Counter[str], readings: list[str]) -> Counter[str]:
    """Return the counts by listed reading.

    The count of an unlisted reading (a neutral tone) goes to the listed one with the same letters;
    it is dropped if there is none, or more than one.
    """
    folded: Counter[str] = Counter()
    for name, count in counts.items():
        same = [reading for reading in readings if reading[:-1] == name[:-1]]
        if name in readings:
            folded[name] += count
        elif len(same) == 1:
            folded[same[0]] += count
    return folded


def _prior(readings: list[str], first: str) -> dict[str, float]:
    if len(readings) == 1:
        return {readings[0]: 1.0}
    rest = (1 - PRIOR_FIRST) / (len(readings) - 1)
    return {name: PRIOR_FIRST if name == first else rest for name in readings}


def _raised(shares: dict[str, float], usual: str) -> dict[str, float]:
    rest = (1 - USUAL_SHARE) / (1 - shares[usual])
    return {name: USUAL_SHARE if name == usual else rest * s for name, s in shares.items()}


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total else {}


def _occurrences(inputs: Inputs) -> Counter[str]:
    total: Counter[str] = Counter()
    for word, count in inputs.word_counts:
        for character in word:
            total[character] += count
    return total


def _with_rest(words: Counter[str], total: int, base: dict[str, float]) -> dict[str, float]:
    """Return shares over all occurrences: in known words as read there, elsewhere as in `base`."""
    known = sum(words.values())
    total = max(total, known, 1)
    rest = {name: (total - known) / total * share for name, share in base.items()}
    return {name: rest.get(name, 0.0) + words[name] / total for name in {*base, *words}}
