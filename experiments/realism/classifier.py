"""A test of realism: can a classifier tell a recipe's errors from real ones?

Both kinds of errors are in the same target sentences. An AUC of 0.5 means that it cannot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cecdata.common.codec import Json
from cecdata.common.errors import InputError, MissingPackageError, how_to_install
from cecdata.common.progress import advance_bar
from cecdata.config import Config
from cecdata.corpus.ids import make_id_column
from cecdata.perturbation.engine import Perturber
from cecdata.shards.schema import SENTENCE
from experiments.realism.features import features, names

FOLDS = 5
LEAST_PAIRS = 20
UNDEFINED = -100.0  # beyond every defined value
Table = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Realism:
    """The AUC of telling real errors from a recipe's, and of telling the recipe's from its own.

    `auc_by_group` holds the AUC with the features of one group alone. `pairs` is the number of real
    pairs that were compared, `skipped` the number of other pairs with an error: their target is too
    long, or the recipe writes no error in it.
    """

    auc: float
    auc_null: float
    auc_by_group: dict[str, float]
    pairs: int
    skipped: int

    def as_dict(self) -> dict[str, Json]:
        """Return the figures as JSON values."""
        return {
            "auc": self.auc,
            "auc_null": self.auc_null,
            "auc_by_group": dict(self.auc_by_group),
            "classified_pairs": self.pairs,
            "skipped_pairs": self.skipped,
        }


def classify(pairs: Iterable[tuple[str, str]], config: Config) -> Realism:
    """Compare the errors of real pairs (source, target) with the recipe's in the same targets.

    The recipe writes two sources of every target: the first is compared with the real source, and
    in the null test with the second. The AUC is that of gradient-boosted trees over `features`,
    cross-validated in five folds by target. The seed is the configuration's.

    Raises InputError where fewer than 20 pairs can be compared.
    """
    wrong = [pair for pair in pairs if pair[0] != pair[1] and pair[1]]
    usable = [pair for pair in wrong if len(pair[1]) <= config.max_chars]
    drawn = synthetic([target for _, target in usable], config)
    kept = [place for place, (one, other) in enumerate(drawn) if one and other]
    if len(kept) < LEAST_PAIRS:
        raise InputError(
            f"{len(kept)} pairs with an error where the recipe can write one: a classifier needs "
            f"at least {LEAST_PAIRS}"
        )
    targets = [usable[place][1] for place in kept]
    groups = np.unique(targets, return_inverse=True)[1]
    real, first, second = (
        _table(column, targets)
        for column in (
            [usable[place][0] for place in kept],
            [drawn[place][0] for place in kept],
            [drawn[place][1] for place in kept],
        )
    )
    of = np.array([group for group, _ in names()])
    by_group = dict.fromkeys(of.tolist())

    def measured(positive: Table, negative: Table) -> float:
        value = auc(positive, negative, groups, config.seed)
        advance_bar("classify", 1, 2 + len(by_group))
        return value

    return Realism(
        auc=measured(real, first),
        auc_null=measured(second, first),
        auc_by_group={
            group: measured(real[:, of == group], first[:, of == group]) for group in by_group
        },
        pairs=len(kept),
        skipped=len(wrong) - len(kept),
    )


def _table(sources: list[str], targets: list[str]) -> Table:
    rows = []
    for source, target in zip(sources, targets, strict=True):
        rows.append(features(source, target))
        advance_bar("features", 1, 3 * len(targets))  # real, first and second
    return np.array(rows)


def synthetic(targets: list[str], config: Config) -> list[tuple[str, str]]:
    """Return two sources of every target; "" where the recipe can write no error."""
    text = pa.array(targets, pa.string())
    # a sentence that occurs twice must get different errors
    ids = make_id_column(pa.array([f"{place}\n{target}" for place, target in enumerate(targets)]))
    origin = pa.array(["real"] * len(targets), pa.string())
    batch = pa.RecordBatch.from_arrays([ids, text, origin], schema=SENTENCE)
    both = replace(config, copies=2, unchanged=0.0)
    table = Perturber.calibrated(both, text).pairs(batch).table
    sources = table.column("source").to_pylist()
    repeated = [target for target in targets for _ in range(2)]
    changed = [s if s != t else "" for s, t in zip(sources, repeated, strict=True)]
    return list(zip(changed[::2], changed[1::2], strict=True))


def auc(positive: Table, negative: Table, groups: Labels, seed: int) -> float:
    """Return the cross-validated AUC of two tables [N, F]; `groups` [N] are those of both."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import roc_auc_score
        from sklearn.model_selection import GroupKFold
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingPackageError(
            f"the classifier needs scikit-learn: {how_to_install('experiments')}"
        ) from error
    # scikit-learn refuses a column without any number
    table = np.nan_to_num(np.concatenate([positive, negative]), nan=UNDEFINED)
    label = np.repeat([1, 0], [len(positive), len(negative)])
    both = np.concatenate([groups, groups])
    score = np.zeros(len(table))
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    with threadpool_limits(1, "openmp"):  # with several threads, sums depend on their number
        for seen, held in folds.split(table, label, both):
            model = HistGradientBoostingClassifier(
                learning_rate=0.06,
                max_iter=150,
                max_leaf_nodes=15,
                min_samples_leaf=10,
                early_stopping=False,
                random_state=seed,
            )
            model.fit(table[seen], label[seen])
            score[held] = model.predict_proba(table[held])[:, 1]
    return round(float(roc_auc_score(label, score)), 4)
