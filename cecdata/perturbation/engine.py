"""From sentences to pairs: arrays for the kernel, and a table of its output."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cecdata.common.errors import InputError, UsageError, VerificationError
from cecdata.common.kernels import view_string_buffers
from cecdata.config import Config, decode_config
from cecdata.corpus.protect import mark_spans
from cecdata.perturbation import kernel
from cecdata.perturbation.calibrate import Rate, calibrate, count_table
from cecdata.perturbation.kernel.layout import Draws, Output, Scratch, Sentences
from cecdata.perturbation.pairs import Pairs, build_edits, build_pairs, code_texts, name_codes
from cecdata.perturbation.tables import Compiled, compile_recipe
from cecdata.shards.manifest import Manifest

# Values of the column `operator` besides the operators' names. `none`: no operator could edit
# the sentence, and validation rejects the pair.
MIXED, UNCHANGED, NONE = "mixed", "unchanged", "none"
_WIDEST_TEXT = 8  # most bytes that one edit adds to a sentence


class Histogram:
    """Counts of sentences by operator, length and number of positions, to calibrate rates on.

    `counts` [operators, length, positions] are sums of integers, so that the order of
    sentences does not matter. A sentence counts for an operator with the probability of drawing
    that operator.
    """

    def __init__(self, config: Config, tables: Compiled | None = None) -> None:
        tables = tables or compile_recipe(config)
        self.config, self.tables, self._priors = config, tables, _list_priors(config, tables)
        lengths, positions = config.max_chars + 1, config.max_chars + 2  # each from 0 on
        shape = len(tables.operators), lengths, positions
        self.counts: npt.NDArray[np.int64] = np.zeros(shape, np.int64)

    def add(self, text: pa.Array) -> None:
        """Count a batch of sentences of at most `max_chars` code points; one batch at a time."""
        ids = pa.nulls(len(text), pa.int64()).fill_null(0)  # which do not matter here
        batch = pa.RecordBatch.from_arrays([ids, text], ["id", "text"])
        arrays = view_sentences(batch, self.config)
        space = make_scratch(self.config, self.tables)
        kernel.add_to_histogram(arrays, self.tables.arrays, self._priors, space, self.counts)

    def rates(self) -> dict[str, Rate]:
        """Return the rate per position of every operator with a prior."""
        mosts = _find_most_edits(self.config, self.tables)
        return {
            name: calibrate(
                self.counts[o], self.config.rate[name], mosts[o], self.tables.costs[o].mean
            )
            for o, name in enumerate(self.tables.operators)
            if self.config.prior.get(name)
        }


def _list_priors(config: Config, tables: Compiled) -> npt.NDArray[np.float64]:
    return np.array([config.prior.get(name, 0.0) for name in tables.operators], np.float64)


def _find_most_edits(config: Config, tables: Compiled) -> list[int]:
    """Return the maximum number of edits of a pair by operator, and last that of mixed pairs.

    It keeps the sum of the edits' distances within `max_distance`.
    """
    costs = [cost.most for cost in tables.costs]
    # spans are no part of mixed pairs
    columns = tables.arrays.spans.column
    mixed = [cost for cost, column in zip(costs, columns, strict=True) if column < 0]
    costs.append(max(mixed, default=1))
    return [max(1, min(config.max_edits, config.max_distance // cost)) for cost in costs]


class Perturber:
    """The engine with its frozen inputs: configuration, rates, tables. Threads may share it.

    The tables are by default those of the configuration's operators and weights.
    """

    def __init__(
        self, config: Config, rates: Mapping[str, Rate], tables: Compiled | None = None
    ) -> None:
        tables = tables or compile_recipe(config)
        self.config, self.tables, self._priors = config, tables, _list_priors(config, tables)
        per_position = [
            rates[name].per_position if name in rates else 0.0 for name in tables.operators
        ]
        per_position.append(config.mixed_rate)
        most_edits = _find_most_edits(config, tables)
        self._count_cdf = count_table(per_position, most_edits, config.max_chars + 1)
        self._names = (*tables.operators, MIXED, UNCHANGED, NONE)

    @classmethod
    def calibrated(cls, config: Config, text: pa.Array) -> Perturber:
        """Return the engine of a configuration with rates calibrated on these sentences."""
        histogram = Histogram(config)
        histogram.add(text)
        return cls(config, histogram.rates(), histogram.tables)

    @classmethod
    def from_manifest(cls, manifest: Manifest) -> Perturber:
        """Return the engine that built a dataset, with its rates.

        Raises VerificationError where this installation's confusion sets are not the dataset's.
        """
        config = decode_config(manifest.configuration)
        ours = compile_recipe(config).sha256
        changed = [name for name, digest in manifest.tables.items() if ours.get(name) != digest]
        if changed:
            raise VerificationError(
                f"the dataset was built with other confusion sets ({', '.join(changed)}) by "
                f"version {manifest.version}; install that version"
            )
        rates = {c.operator: Rate(c.target, c.reachable, c.rate) for c in manifest.calibration}
        return cls(config, rates)

    def with_seed(self, seed: int) -> Perturber:
        """Return the same engine with another seed."""
        other = copy(self)
        other.config = replace(self.config, seed=seed)
        return other

    @property
    def draws(self) -> Draws:
        """Return the inputs of the draws, apart from the sentences' ids."""
        c, cdf = self.config, self._count_cdf
        unchanged = c.unchanged if c.keep_duplicates else raise_share(c.unchanged, c.copies)
        return Draws(c.seed, c.copies, c.mixed, unchanged, self._priors, cdf, c.proposals)

    def pairs(self, sentences: pa.RecordBatch) -> Pairs:
        """Return all copies of every sentence (schema SENTENCE), sentence by sentence."""
        config, tables, text = self.config, self.tables, sentences.column("text")
        lengths = np.asarray(pc.utf8_length(text))
        if len(lengths) and lengths.max() > config.max_chars:
            raise InputError(
                f"a sentence has {lengths.max():,} code points, but max_chars is "
                f"{config.max_chars:,}: split the sentence, or raise max_chars"
            )
        arrays = view_sentences(sentences, config)
        out = self.make_output(arrays)
        edits = kernel.perturb(arrays, self.draws, tables.arrays, make_scratch(config, tables), out)
        out.operator[out.operator < 0] = len(self._names) - 1  # of NONE
        rows = np.repeat(np.arange(len(text), dtype=np.int32), config.copies)  # of each pair
        buffers = [None, pa.py_buffer(out.offsets), pa.py_buffer(out.data[: out.offsets[-1]])]
        origin = sentences.column("origin").dictionary_encode()
        origins = pa.array(np.asarray(origin.indices)[rows])
        columns = {
            "id": pa.array(np.repeat(arrays.ids.view(np.int64), config.copies)),
            "copy": pa.array(np.tile(np.arange(config.copies, dtype=np.int16), len(text))),
            "source": pa.Array.from_buffers(pa.string(), len(out.offsets) - 1, buffers),
            "target": pa.DictionaryArray.from_arrays(pa.array(rows), text),
            "operator": name_codes(out.operator, self._names),
            "edits": self._make_edits(out, edits),
            "distance": pa.array(out.distance),
            "origin": pa.DictionaryArray.from_arrays(origins, origin.dictionary),
        }
        return Pairs(build_pairs(columns), np.repeat(lengths, config.copies))

    def make_output(self, sentences: Sentences) -> Output:
        """Return arrays for the kernel's output; raise UsageError if the text exceeds a column."""
        count = len(sentences.offsets) - 1
        most_edits = self._count_cdf.shape[2] * self.config.copies * count
        text_bytes = int(sentences.offsets[-1]) - int(sentences.offsets[0])
        bytes_ = self.config.copies * text_bytes + most_edits * _WIDEST_TEXT
        if bytes_ > 2**31 - 1:
            raise UsageError(
                f"{self.config.copies:,} copies of {count:,} sentences may need {bytes_:,} bytes, "
                "but a shard holds at most 2 GiB: lower --shard-sentences, and add --overwrite"
            )
        return Output.make(self.config.copies * count, most_edits, bytes_)

    def _make_edits(self, out: Output, edits: int) -> pa.Array:
        """Return the first `edits` edits of an output as a list for each of its pairs."""
        texts = self.tables.texts
        return build_edits(
            out.edits,
            out.start[:edits],
            out.end[:edits],
            code_texts(out.old[:edits], texts),
            code_texts(out.new[:edits], texts),
            out.edited_by[:edits],
            out.kind[:edits],
            self.tables.operators,
            self.tables.kinds,
        )


def raise_share(share: float, copies: int) -> float:
    """Return the share of unchanged pairs to draw, so that `share` of the kept ones are unchanged.

    Of several unchanged copies of a sentence one is kept, so more must be drawn.
    """
    if copies == 1 or share in {0.0, 1.0}:
        return share
    low, high = share, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        remaining = 1 - (1 - middle) ** copies  # unchanged pairs of a sentence, on average
        enough = remaining >= share * (remaining + copies * (1 - middle))
        low, high = (low, middle) if enough else (middle, high)
    return high


def view_sentences(sentences: pa.RecordBatch, config: Config) -> Sentences:
    """Return the kernel's view of a batch of the schema SENTENCE; no text is copied."""
    ids = np.asarray(sentences.column("id")).view(np.uint64)
    data, offsets = view_string_buffers(sentences.column("text"))
    marks = mark_spans(data, offsets) if config.protect_spans else np.zeros(0, np.uint8)
    return Sentences(offsets, data, ids, marks)


def make_scratch(config: Config, tables: Compiled) -> Scratch:
    """Return the kernel's scratch arrays for one sentence at a time."""
    arrays = tables.arrays
    return Scratch.make(
        config.max_chars,
        len(arrays.inserts),
        len(arrays.spans.operator),
        max(_find_most_edits(config, tables)),
        config.proposals,
    )
