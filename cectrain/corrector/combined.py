"""The corrector that `cectrain correct` uses by default: the channel and a policy together.

The channel gives each possible change c of a text a posterior p(c), and the policy the logarithm
v(c) of how much likelier it writes the change than the text as it is. Both enter a log-linear model

    logit P(c) = bias + channel · logit p(c) + policy · v(c) + proposals · log n(c) + topic · t(c)

whose weights were fitted by maximum likelihood on synthetic pairs of held-out sentences
(benchmarks/fit_combined.py). P(c) is the confidence of an edit. n(c) is the number of changes that
the channel proposes in its sentence: where it finds many, it knows the text less, and few of them
can be right. t(c) is how much better its words suit the rest of the text (`cecdata/lm/vectors.py`).
A language model may have a say too: `rescoring.py`.
"""

from __future__ import annotations

import bisect
import copy
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from cecdata.lm import LanguageModel, open_scorer
from cecdata.lm.ngrams import SHIPPED_NAME
from cecdata.lm.vectors import load_shipped_vectors
from cecdata.models.hub import identify_checkpoint
from cectrain.corrector import rescoring
from cectrain.corrector.change_scorer import ChangeScorer
from cectrain.corrector.channel import proposer
from cectrain.corrector.channel.inverse import find_changes, load_shipped_channel
from cectrain.corrector.channel.layout import Settings
from cectrain.corrector.channel.proposer import ChannelProposer, Reading, is_settled
from cectrain.corrector.channel.tables import ChannelTables, open_tables
from cectrain.corrector.channel.terms import add_terms
from cectrain.corrector.correction import Change, Edit, Proposer, make_edits
from cectrain.corrector.edit_guard import SENTENCES
from cectrain.corrector.folder import BUILTIN, COMBINED
from cectrain.corrector.rescoring import Known, Rescorer, Weights, do_overlap
from cectrain.corrector.wordlists import Term

JUDGED, JUDGED_TERM = 0.005, 0.05  # least posteriors of changes, to terms, that the policy judges
#: For the n-gram model `words`; for the mean of both models that ship, and for others.
WORDS = Weights(0.11, 0.94, 0.15, -0.31, 0.28)
DEFAULT = Weights(0.35, 1.14, 0.15, -0.3, 0.35)
#: Of a change to a term of the user, which is likely and which the policy need not know: what is
#: added to logit P(c), and the least v(c); the least t(c) is 0. Chosen on other sentences than
#: bench_terms.py reports.
KNOWN, LEAST_RATIO = 0.75, -8.0
#: What is added besides where the term is a word of the n-gram model: its p(c) is that of a word
#: anywhere, and the user says that the text is of its field.
LISTED = 1.25
#: What is added to logit p(c) of a change of the length, by synthetic pairs: fewer are right.
LENGTH = -1.0


class CombinedProposer(Proposer):
    """Proposes the changes of a channel that a policy confirms.

    name: `combined`, or `combined:FOLDER` with another policy of the built-in kind. lm: see
    `ngrams.find_model`, or tables. least: least confidence of an edit that is proposed, 0..1:
    a higher one gives fewer and surer edits; None: the default. rescore: a language model that
    judges the changes as well, or its name. weights: those of a field; None: those that ship.
    """

    def __init__(
        self,
        name: str = COMBINED,
        lm: str | Path | ChannelTables | None = None,
        terms: Sequence[Term] = (),
        *,
        least: float | None = None,
        rescore: str | LanguageModel | None = None,
        weights: Weights | None = None,
    ) -> None:
        self.scorer = ChangeScorer(name.partition(":")[2] or BUILTIN)
        self.longest = self.scorer.longest
        tables = add_terms(lm if isinstance(lm, ChannelTables) else open_tables(lm), terms)
        margin = Settings().margin if rescore is None else rescoring.MARGIN
        settings = Settings(error=tables.error, margin=margin)
        self.channel = ChannelProposer(tables, settings=settings)
        self.weights = weights or (WORDS if tables.model == SHIPPED_NAME else DEFAULT)
        self.rescorer: Rescorer | None = None
        if rescore is not None:
            judge = open_scorer(rescore) if isinstance(rescore, str) else rescore
            self.rescorer = Rescorer(judge, self.weights, tables.model)
            self.note = self.rescorer.note
            self.together = rescoring.TOGETHER
        self.least = (self.rescorer or self).weights.least if least is None else least

    @property
    def identity(self) -> dict[str, object]:
        judge = self.rescorer
        weights = (judge or self).weights._asdict()
        del weights["least"]
        if judge is None:
            del weights["distortion"]
        return {
            **self.channel.identity,
            **identify_checkpoint(self.scorer.folder),
            "least": self.least,
            **{f"weight_{name}": weight for name, weight in weights.items()},
            **({"judge": judge.scorer.name, "judge_id": judge.scorer.identity} if judge else {}),
        }

    def unread(self, text: str) -> list[bool]:
        """Return for each character whether the policy cannot read it."""
        return self.scorer.unread(text)

    def with_terms(self, terms: Sequence[Term]) -> CombinedProposer:
        extended = copy.copy(self)
        extended.channel = self.channel.with_terms(terms)
        return extended

    def propose(self, pieces: Sequence[str]) -> list[list[Edit]]:
        """Return the edits of each piece, sorted; their confidence is P(change)."""
        readings = self.channel.read_pieces(pieces)
        confidences = self.judge_changes(pieces, readings)
        return [
            choose_changes(piece, scored, self.least, reading.terms)
            for piece, reading, scored in zip(pieces, readings, confidences, strict=True)
        ]

    def judge_changes(
        self, pieces: Sequence[str], readings: Sequence[Reading]
    ) -> list[dict[Change, float]]:
        """Return P(c) of the changes of each piece that the channel does not rule out.

        A piece that is longer than the policy reads is judged by the channel alone. A language
        model has no say in changes to the user's terms.
        """
        evidence = self.gather_evidence(pieces, readings)
        logits = [
            {c: self.weights.logit(known) for c, known in changes.items()} for changes in evidence
        ]
        if self.rescorer is not None:
            others = [
                {c: known for c, known in changes.items() if c not in reading.terms}
                for changes, reading in zip(evidence, readings, strict=True)
            ]
            least = logit(self.least) if self.least else -math.inf
            rescored = self.rescorer.judge(pieces, others, least)
            logits = [values | judged for values, judged in zip(logits, rescored, strict=True)]
        return [*map(self._find_confidences, pieces, readings, logits)]

    def _find_confidences(
        self, piece: str, reading: Reading, logits: Mapping[Change, float]
    ) -> dict[Change, float]:
        """Return P(c) of the changes of a piece, from logits without what is added to terms."""
        if len(piece) > self.scorer.longest:
            posteriors = {c: reading.posterior[c] for c in reading.best}
            return {c: p for c, p in posteriors.items() if p >= proposer.LEAST}
        return {
            c: logistic(value + KNOWN * (c in reading.terms) + LISTED * (c in reading.listed))
            for c, value in logits.items()
        }

    def gather_evidence(
        self, pieces: Sequence[str], readings: Sequence[Reading]
    ) -> list[dict[Change, Known]]:
        """Return what is known of the changes judged, before a language model judges them."""
        likely = [find_likely(reading) for reading in readings]
        judged = self._choose_likeliest(pieces, likely)
        proposed = estimates = [dict[Change, float]() for _ in pieces]
        if self.rescorer is not None:
            proposed, estimates = self._propose_freely(self.rescorer, pieces, judged, readings)
        scored = [[*changes, *free] for changes, free in zip(judged, proposed, strict=True)]
        ratios = self.scorer.log_ratios(pieces, scored)
        evidence = [*map(join_evidence, pieces, readings, likely, proposed, ratios)]
        if self.rescorer is None:
            return evidence
        return [*map(self._keep_hopeful, pieces, evidence, proposed, estimates)]

    def _keep_hopeful(
        self,
        piece: str,
        evidence: dict[Change, Known],
        proposed: Collection[Change],
        estimates: Mapping[Change, float],
    ) -> dict[Change, Known]:
        """Return the changes that a language model may yet confirm, with all that it is told."""
        channel = load_shipped_channel()
        return {
            change: values._replace(
                distortion=channel.distortion(piece, *change),
                estimate=estimates.get(change, -math.inf),
            )
            for change, values in evidence.items()
            if change in proposed or self.weights.logit(values) >= rescoring.HOPELESS
        }

    def _choose_likeliest(
        self, pieces: Sequence[str], likely: Sequence[dict[Change, float]]
    ) -> list[list[Change]]:
        """Return the changes of `find_likely` that are judged."""
        least = JUDGED if self.rescorer is None else rescoring.JUDGED
        most = None if self.rescorer is None else rescoring.MOST
        judged = []
        for piece, shares in zip(pieces, likely, strict=True):
            likeliest = sorted(shares, key=lambda c: (-shares[c], c))[:most]
            is_readable = len(piece) <= self.scorer.longest
            judged.append([c for c in likeliest if is_readable and shares[c] >= least])
        return judged

    def _propose_freely(
        self,
        rescorer: Rescorer,
        pieces: Sequence[str],
        judged: Sequence[Collection[Change]],
        readings: Sequence[Reading],
    ) -> tuple[list[dict[Change, float]], list[dict[Change, float]]]:
        """Return logit p(c) of changes that the model proposes, and its estimates r(c) of all.

        They undo errors that the channel has, but the n-grams do not see: what stands before makes
        the right token likelier than what is written, by more than log P(observed | right) takes
        away. Their p(c) is that of n-grams without an opinion.
        """
        possible = [  # with log P(observed | right)
            find_changes(piece) if len(piece) <= self.scorer.longest else {} for piece in pieces
        ]
        estimated = [
            list(dict.fromkeys((*listed, *log_probs)))
            for listed, log_probs in zip(judged, possible, strict=True)
        ]
        estimates = rescorer.estimate(pieces, estimated)
        error, temperature = self.channel.settings.error, self.channel.settings.temperature
        proposed = []
        for piece, listed, log_probs, reading, ratios in zip(
            pieces, judged, possible, readings, estimates, strict=True
        ):
            others = log_probs.keys() - reading.terms - set(listed)
            gains = {c: ratios[c] + log_probs[c] for c in others}
            gains = {c: g for c, g in gains.items() if g > 0 and not is_settled(piece, *c)}
            best = sorted(gains, key=lambda c: (-gains[c], c))[: rescoring.PROPOSED]
            proposed.append({c: (log_probs[c] - error) / temperature for c in best})
        return proposed, estimates


def find_likely(reading: Reading) -> dict[Change, float]:
    """Return the posteriors of the changes, without those to unlikely terms."""
    return {
        c: p for c, p in reading.posterior.items() if p >= JUDGED_TERM or c not in reading.terms
    }


def join_evidence(
    piece: str,
    reading: Reading,
    likely: dict[Change, float],
    proposed: Mapping[Change, float],
    ratios: Mapping[Change, float],
) -> dict[Change, Known]:
    """Return logit p(c), v(c), log n(c) and t(c) of the changes of a piece.

    likely: the posteriors by which n(c) is counted. proposed: logit p(c) of the changes that a
    language model proposes. ratios: v(c) of all changes.
    """
    counts = count_proposals(piece, likely, ratios)
    topics = load_shipped_vectors().compare_topics(piece, [*ratios])
    evidence = {}
    for (change, ratio), topic in zip(ratios.items(), topics, strict=True):
        log_odds = proposed.get(change)
        if log_odds is None:
            start, end, target = change
            log_odds = logit(reading.posterior[change]) + LENGTH * (len(target) != end - start)
        known = Known(log_odds, ratio, math.log(max(1, counts[change])), topic)
        if change in reading.terms:
            known = known._replace(policy=max(ratio, LEAST_RATIO), topic=max(topic, 0.0))
        evidence[change] = known
    return evidence


def count_proposals(
    piece: str, likely: Mapping[Change, float], changes: Collection[Change]
) -> dict[Change, int]:
    """Return the number of changes that the channel proposes in the sentence of each change."""
    ends = [sentence.end() for sentence in SENTENCES.finditer(piece)]
    counts = Counter(bisect.bisect(ends, c[0]) for c, p in likely.items() if p >= JUDGED)
    return {c: counts[bisect.bisect(ends, c[0])] for c in changes}


def logit(posterior: float) -> float:
    """Return the log-odds of a probability above 0; near 1 they are bounded."""
    share = min(posterior, 1 - 1e-4)
    return math.log(share / (1 - share))


def logistic(log_odds: float) -> float:
    """Return the probability of log-odds."""
    return 1 / (1 + math.exp(-max(log_odds, -500.0)))


def choose_changes(
    piece: str, confidences: dict[Change, float], least: float, terms: Collection[Change] = ()
) -> list[Edit]:
    """Return the surest changes that do not overlap, in order of place.

    least: the least confidence. terms: changes that write one of the user's terms.
    """
    taken: list[Change] = []  # in order, so that a change can only overlap its neighbours
    for change in sorted(confidences, key=lambda one: (-confidences[one], one)):
        if confidences[change] < least:
            break
        at = bisect.bisect(taken, change)
        if not any(do_overlap(change, neighbour) for neighbour in taken[max(0, at - 1) : at + 1]):
            taken.insert(at, change)
    return make_edits(piece, taken, confidences, terms)
