"""The pairs of a step as a function of (seed, step): characters to copy, or corrupted sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata import config as recipes
from cecdata.corpus.ids import make_id_column
from cecdata.hanzi.characters import LENGTHS, list_words, standard_characters
from cecdata.shards.schema import SENTENCE
from cectrain.data import shards
from cectrain.data.shards import Pair
from experiments.pretraining.config import PretrainConfig, Stage
from experiments.pretraining.model import PUNCTUATION, placeholders

_CHUNK = 64  # steps whose pairs are made and sorted by length together
_MARKS = 3  # tokens of a row that are neither source nor target
_HELD_OUT_SEED = 7  # added to the run's seed, so that held-out sources occur in no step
_LENGTHS = (0.7, 0.15, 0.15)  # chances of words of two, three and four characters
_POWER = 0.3  # a word is drawn with its count to this power, so that rare ones occur
_SMALL = "的了在是和与就也都不把被从到对为这那有没"  # between words
_SIGNS = "，，，、：；“”！？"
_SHORTEST = 6  # characters of a row of words


class Batches:
    """The pairs of every step of a run."""

    def __init__(self, sentences: pa.Table, config: PretrainConfig) -> None:
        self._config = config
        self._stages = [
            _Copies(stage, config.seed, number)
            if stage.kind == "copy"
            else _Corrupted(stage, config.seed, number, sentences)
            for number, stage in enumerate(config.stages)
        ]

    def at(self, step: int) -> list[Pair]:
        """Return the pairs of a step, which have similar lengths."""
        number, place = self._config.stage_at(step)
        return self._stages[number].at(place)


def held_out_pairs(sentences: pa.Table, config: PretrainConfig) -> list[Pair]:
    """Return the held-out sentences corrupted by the recipe of the last stage, none left clean."""
    last = [stage for stage in config.stages if stage.kind == "pairs"][-1:]
    stage = replace(last[0] if last else Stage("pairs", 1), density=1.0, mixed=0.0, clean=0.0)
    corruption = _Corruption(replace(stage, prior={}), sentences)
    return corruption.pairs(sentences, config.seed + _HELD_OUT_SEED)


@dataclass(frozen=True, slots=True)
class _Copies:
    """Rows of standard characters, drawn evenly, so that none is rare for copying."""

    stage: Stage
    seed: int
    number: int

    def at(self, place: int) -> list[Pair]:
        generator = np.random.default_rng((self.seed, self.number, place))
        length = int(generator.integers(self.stage.shortest, self.stage.longest + 1))
        count = max(1, self.stage.tokens // (2 * length + _MARKS))
        characters = np.array(standard_characters())
        rows = characters[generator.integers(len(characters), size=(count, length))]
        texts = ["".join(row) for row in rows.tolist()]
        return [Pair(n, 0, text, text, "unchanged") for n, text in enumerate(texts)]


class _Corruption:
    """The engine of `cecdata build` with rates that are calibrated on these sentences."""

    def __init__(self, stage: Stage, sentences: pa.Table) -> None:
        from cecdata.perturbation.engine import Perturber

        paper = recipes.load(stage.recipe)
        config = recipes.load(
            stage.recipe,
            copies=1,
            mixed=stage.mixed,
            mixed_rate=min(1.0, paper.mixed_rate * stage.density),
            unchanged=stage.clean,
            rate={name: min(1.0, rate * stage.density) for name, rate in paper.rate.items()},
            prior=dict(stage.prior) or None,
        )
        self.engine = Perturber.calibrated(config, sentences.column("text").combine_chunks())

    def pairs(self, sentences: pa.Table, seed: int) -> list[Pair]:
        """Return one pair for each sentence, as a build with this seed makes it."""
        from cecdata.shards.schema import SENTENCE

        columns = [sentences.column(name).combine_chunks() for name in SENTENCE.names]
        batch = pa.RecordBatch.from_arrays(columns, schema=SENTENCE)
        table = self.engine.with_seed(seed).pairs(batch).table
        names = ("id", "source", "target", "operator")
        rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
        return [Pair(key, 0, source, target, operator) for key, source, target, operator in rows]


class _Denoising:
    """Characters replaced by standard characters drawn evenly: errors of no confusion set."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._characters = np.array(standard_characters())

    def pairs(self, sentences: pa.Table, seed: int) -> list[Pair]:
        """Return one pair for each sentence; a share `clean` of them is left as it is."""
        generator = np.random.default_rng(seed)
        rows = zip(*(sentences.column(name).to_pylist() for name in ("id", "text")), strict=True)
        return [Pair(key, 0, *self._noisy(text, generator)) for key, text in rows]

    def _noisy(self, text: str, generator: np.random.Generator) -> tuple[str, str, str]:
        if generator.random() < self._stage.clean:
            return text, text, "unchanged"
        signs = np.array(list(text))
        chosen = generator.random(len(signs)) < self._stage.replaced
        signs[chosen] = generator.choice(self._characters, int(chosen.sum()))
        return "".join(signs), text, "denoise"


class _Corrupted:
    """Sentences in another order in each epoch, corrupted again each time."""

    def __init__(self, stage: Stage, seed: int, number: int, sentences: pa.Table) -> None:
        self._stage, self._seed, self._number = stage, seed, number
        lengths = pc.utf8_length(sentences.column("text"))
        fit = pc.and_(
            pc.greater_equal(lengths, stage.shortest), pc.less_equal(lengths, stage.longest)
        )
        self._table = sentences.filter(fit)
        denoise = stage.kind == "denoise"
        self._corruption = _Denoising(stage) if denoise else _Corruption(stage, self._table)
        mean = 2 * float(pc.mean(lengths.filter(fit)).as_py()) + _MARKS
        self._rows = max(_CHUNK, round(_CHUNK * stage.tokens / mean))
        self._kept: tuple[int, list[list[Pair]]] = (-1, [])

    def at(self, place: int) -> list[Pair]:
        chunk, within = divmod(place, _CHUNK)
        if self._kept[0] != chunk:
            self._kept = (chunk, self._chunk(chunk))
        return self._kept[1][within]

    def _chunk(self, chunk: int) -> list[list[Pair]]:
        seed = (self._seed, self._number, chunk)
        generator = np.random.default_rng(seed)
        stage = self._stage
        words, signs = round(stage.words * self._rows), round(stage.scattered * self._rows)
        rows = self._table.take(self._places(chunk, self._rows - words - signs))
        pairs = self._corruption.pairs(rows, int(generator.integers(2**62)))
        if words:
            added = as_sentences(rows_of_words(words, stage.longest, generator))
            pairs += self._corruption.pairs(added, int(generator.integers(2**62)))
        texts = rows_of_signs(signs, stage.shortest, stage.longest, generator)
        pairs += [Pair(n, 0, text, text, "unchanged") for n, text in enumerate(texts)]
        sizes = np.array([len(pair.source) + len(pair.target) + _MARKS for pair in pairs])
        order = np.argsort(sizes + generator.random(len(sizes)), kind="stable")
        # Cut at each 64th of the tokens, so that all steps have nearly the same size.
        ends = np.cumsum(sizes[order]) * _CHUNK
        cuts = np.searchsorted(ends, np.arange(1, _CHUNK) * sizes.sum())
        parts = np.split(order, cuts)
        return [[pairs[i] for i in parts[n]] for n in generator.permutation(_CHUNK)]

    def _places(self, chunk: int, count: int) -> npt.NDArray[np.int64]:
        """Return the indices of the chunk's sentences; each epoch has its own order."""
        total = len(self._table)
        numbers = np.arange(chunk * count, (chunk + 1) * count)
        places = np.empty(len(numbers), np.int64)
        for epoch in np.unique(numbers // total):
            mine = numbers // total == epoch
            walk = shards.order_rows(total, self._seed + self._number, int(epoch))
            places[mine] = walk[numbers[mine] % total]
        return places


def rows_of_words(count: int, longest: int, generator: np.random.Generator) -> list[str]:
    """Return rows of 6 to `longest` characters: words with function words and marks between."""
    return [_row(int(generator.integers(_SHORTEST, longest + 1)), generator) for _ in range(count)]


def rows_of_signs(
    count: int, shortest: int, longest: int, generator: np.random.Generator
) -> list[str]:
    """Return rows of standard characters, of which a quarter are ASCII, marks or placeholders."""
    others = (*(chr(point) for point in range(0x21, 0x7F)), *PUNCTUATION.strip(), *placeholders())
    rows = []
    for _ in range(count):
        length = int(generator.integers(shortest, longest + 1))
        plain = generator.integers(len(standard_characters()), size=length)
        other = generator.integers(len(others), size=length)
        rare = generator.random(length) < 0.25
        rows.append(
            "".join(
                others[o] if r else standard_characters()[p]
                for p, o, r in zip(plain, other, rare, strict=True)
            )[:longest]
        )
    return rows


def as_sentences(texts: list[str]) -> pa.Table:
    """Return the table that the engine of `cecdata` reads."""
    column = pa.array(texts, pa.string())
    columns = {"id": make_id_column(column), "text": column, "origin": pa.array([""] * len(texts))}
    return pa.table([columns[name] for name in SENTENCE.names], schema=SENTENCE)


def _row(length: int, generator: np.random.Generator) -> str:
    text = ""
    while len(text) < length:
        draw = generator.random(3)
        size = LENGTHS[int(np.searchsorted(np.cumsum(_LENGTHS), draw[0]))]
        upto = _chances(size)
        text += list_words(size).texts[int(np.searchsorted(upto, draw[1] * upto[-1]))]
        if draw[2] < 0.25:
            text += _SMALL[int(generator.integers(len(_SMALL)))]
        elif draw[2] < 0.4:
            text += _SIGNS[int(generator.integers(len(_SIGNS)))]
        elif draw[2] < 0.44:
            text += str(generator.integers(10_000))
        elif draw[2] < 0.47:
            text += placeholders()[int(generator.integers(len(placeholders())))]
    return text[: length - 1] + "。"


@cache
def _chances(size: int) -> npt.NDArray[np.float64]:
    """Return cumulated weights of the words of this length."""
    counts: npt.NDArray[np.float64] = list_words(size).counts
    return np.cumsum(np.maximum(counts, 1.0) ** _POWER)
