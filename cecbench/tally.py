"""The sums of one pass over rows, block by block, and the score that they give."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cecbench.metrics import behaviour
from cecbench.metrics.base import Report, Scorer, flatten
from cecbench.metrics.policies import MEANING, apply_policy
from cecbench.metrics.positions import IntArray
from cecbench.metrics.rows import Row
from cecbench.signature import Signature, package_version

if TYPE_CHECKING:
    from cecbench.metrics.scan import Scan

_BASE = 1 << 20  # of the number that encodes a sentence's three counts; each count is below it


class Tally:
    """Sums of the rows taken so far, a digest of them and, optionally, their triples.

    A triple is (tp, predicted, gold) of the headline in one sentence. A bootstrap needs only how
    often each occurs, and there are few different ones, however many sentences there are.
    """

    def __init__(self, scorer: Scorer, policy: str | None, *, triples: bool = False) -> None:
        self.scorer = scorer
        self.policy = policy or scorer.default_policy
        self.read = 0
        self.kept = 0
        self._counts = np.zeros(len(scorer.fields), dtype=np.int64)
        self._behaviour = np.zeros(len(behaviour.FIELDS), dtype=np.int64)
        self._triples: Counter[int] | None = Counter() if triples else None
        self._digest = hashlib.sha256()
        self._stopped = False

    def take(self, block: Sequence[Row]) -> tuple[list[Row], IntArray]:
        """Add rows; return those that are scored, and their counts, shape (rows, fields)."""
        identity = "\n".join(["\t".join(row[:3]) for row in block])
        self._digest.update((identity + "\n").encode("utf-8", "surrogatepass"))
        kept = apply_policy(block, self._policy(stops=self.scorer.stops(block)))
        counts = self.scorer.count(kept) if kept else self._none()
        self._add(len(block), counts, behaviour.count(block))
        return kept, counts

    def take_scan(self, block: Scan) -> None:
        """Add a scanned block, of which no rows were built; for scorers that count facts."""
        from cecbench.metrics.facts import behaviour_of, lengths_differ, under_policy

        self._digest.update(block.identity.data)
        policy = self._policy(stops=bool(self.scorer.stop_error) and lengths_differ(block))
        counts = self.scorer.count_facts(*under_policy(block, policy))
        self._add(len(block), counts, behaviour_of(block))

    def triples(self) -> tuple[IntArray, IntArray]:
        """Return the distinct triples in order, shape (kinds, 3), and how often each occurs."""
        assert self._triples is not None
        keys = np.array(sorted(self._triples), dtype=np.int64)
        times = np.array([self._triples[key] for key in keys.tolist()], dtype=np.int64)
        return np.column_stack((keys // _BASE**2, keys // _BASE % _BASE, keys % _BASE)), times

    def signature(self, benchmark: str, bootstrap: str = "none") -> Signature:
        """Return the signature; the digest of ids, sources and targets is added to the name."""
        scorer = self.scorer
        return Signature(
            benchmark=f"{benchmark}@{self._digest.hexdigest()[:8]}",
            rows_scored=self.kept,
            rows_read=self.read,
            scorer=scorer.name,
            level=scorer.headline,
            policy=scorer.fallback if self._stopped else self.policy,
            normalisation=scorer.normalisation,
            opencc=scorer.details.get("opencc", "none"),
            beta=scorer.beta,
            bootstrap=bootstrap,
            version=package_version(),
        )

    def values(self, signature: Signature) -> Report:
        """Return the published script's numbers, the rates of behaviour, and the signature."""
        scorer = self.scorer
        used = scorer.fallback if self._stopped else self.policy
        values: Report = {
            "scorer": scorer.name,
            "policy": self.policy,
            "scored_policy": used,
            "policy_means": MEANING[used],
            "rows": self.read if self._stopped else self.kept,
            "rows_scored": self.kept,
            "rows_read": self.read,
            **scorer.details,
        }
        if self._stopped:
            values["error"] = scorer.stop_error
            values["error_because"] = (
                "the published script stops where source, target and prediction are not of one"
                f" length; the numbers here are those of policy {used}"
            )
        if self.kept == 0:
            values.setdefault("error", "no rows")
            values["error_because"] = f"policy {used} left out every row"
        else:
            sums = dict(zip(scorer.fields, self._counts.tolist(), strict=True))
            values.update(flatten(scorer.report(sums)))
        if self.read:
            sums = dict(zip(behaviour.FIELDS, self._behaviour.tolist(), strict=True))
            values.update(flatten(behaviour.report(sums), "behaviour."))
        named = {f"signature.{name}": value for name, value in signature.as_dict().items()}
        return {**values, "signature": signature.short(), **named}

    def _policy(self, *, stops: bool) -> str:
        """Return the policy of a block: strict becomes the fallback if the script can stop."""
        if self.policy != "strict" or not self.scorer.stop_error:
            return self.policy
        # Rows on which the published script does not stop are the same under both policies.
        self._stopped |= stops
        return self.scorer.fallback

    def _add(self, read: int, counts: IntArray, behaved: IntArray) -> None:
        self.read += read
        self.kept += len(counts)
        self._counts += counts.sum(axis=0)
        self._behaviour += behaved.sum(axis=0)
        if self._triples is None:
            return
        tp, predicted, gold = counts[:, list(self.scorer.headline_columns)].T
        keys, times = np.unique((tp * _BASE + predicted) * _BASE + gold, return_counts=True)
        self._triples.update(dict(zip(keys.tolist(), times.tolist(), strict=True)))

    def _none(self) -> IntArray:
        return np.zeros((0, len(self.scorer.fields)), dtype=np.int64)
