"""The constants of the reward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from cecdata.common.settings import require, require_at_least, require_fractions, require_known

KINDS = ("consensus", "majority")
_WEIGHT = "_weight"  # ends the names of shares


@dataclass(frozen=True, slots=True)
class RewardConfig:
    """Constants of the reward. Defaults are the paper's where it states them (tab:hparams).

    A field NAME_weight is the share of the term NAME of `terms.ADDITIONAL`.
    """

    reward: str = ""  # "package:function": a function of your own in place of `kind`
    functions: Mapping[str, float] = field(default_factory=dict)  # further ones: share, 0–1
    kind: str = "consensus"  # or "majority": TTRL's vote, which needs no reference and no encoder
    alpha: float = 0.5  # weight of the pair term, 0–1
    tau: float = 0.70  # cosine to the reference that earns 0
    beta: float = 0.75  # cosine to the centroid that earns 0
    epsilon: float = 0.10  # DBSCAN's radius, as 1 − cosine
    min_samples: int = 2  # scikit-learn's default, 5, finds no cluster among 4 candidates
    edit_weight: float = 0.0  # share of the edit term, 0–1
    unchanged: float | None = None  # reward of leaving an error as it is, 0–1; None: not set apart

    def __post_init__(self) -> None:
        require_known("reward", self.kind, KINDS)
        shares = [f"{name}_weight" for name in self.weights()]
        require_fractions(self, "alpha", "unchanged", *shares, section="reward.")
        for name in ("tau", "beta"):
            cosine = getattr(self, name)
            require(-1 <= cosine < 1, f"reward.{name}", cosine, "a cosine below 1")
        require_at_least(0, self, "epsilon", section="reward.")
        require_at_least(1, self, "min_samples", section="reward.")
        for name, share in self.functions.items():
            require(0 <= share <= 1, f"reward.functions.{name}", share, "a fraction from 0 to 1")
        total = self.additional_weight
        require(total <= 1, "the sum of reward.…_weight", total, "at most 1")

    @property
    def is_consensus(self) -> bool:
        """Whether the reward has the pair and consensus terms, which need an encoder."""
        return self.kind == "consensus" and not self.reward

    def weights(self) -> dict[str, float]:
        """Return the shares of the additional terms by their names."""
        names = [field.name for field in fields(self) if field.name.endswith(_WEIGHT)]
        return {name.removesuffix(_WEIGHT): getattr(self, name) for name in names}

    @property
    def additional_weight(self) -> float:
        """The share of the reward that additional terms and functions take together."""
        return sum(self.weights().values()) + sum(self.functions.values())

    def words(self) -> str:
        """Return the constants as one line of text.

        >>> RewardConfig(edit_weight=0.2, unchanged=0.3).words()
        'α 0.5, τ 0.7, β 0.75, edit term 0.2, unchanged 0.3'
        """
        words = [f"α {self.alpha:g}", f"τ {self.tau:g}", f"β {self.beta:g}"]
        words += [f"{name} term {share:g}" for name, share in self.weights().items() if share]
        words += [f"{name} {share:g}" for name, share in self.functions.items()]
        words += [] if self.unchanged is None else [f"unchanged {self.unchanged:g}"]
        return ", ".join(words)
