"""What a number means: the signature that travels with every score."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from importlib.metadata import PackageNotFoundError, version

from cecdata.common.errors import InputError

#: name in the short form → field; the order is the order of print
_SHORT = {
    "bench": "benchmark", "rows": "rows", "scorer": "scorer", "level": "level",
    "policy": "policy", "norm": "normalisation", "opencc": "opencc", "beta": "beta",
    "bs": "bootstrap", "v": "version",
}  # fmt: skip


def package_version() -> str:
    """The installed version of this package; `0+unknown` in a tree that is not installed."""
    try:
        return version("cec-zero")
    except PackageNotFoundError:
        return "0+unknown"


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that two people must share before they compare two numbers.

    >>> mine = Signature("lemon/gam@7e902c67", 393, 400, "cscd", "S_C_f1", "revert")
    >>> print(mine.short())
    bench:lemon/gam@7e902c67|rows:393/400|scorer:cscd|level:S_C_f1|policy:revert|norm:none|\
opencc:none|beta:1|bs:none|v:0
    >>> theirs = Signature("lemon/gam@7e902c67", 380, 400, "cscd", "S_C_f1", "drop")
    >>> mine.differences(theirs)
    (('rows_scored', 393, 380), ('policy', 'revert', 'drop'))
    """

    benchmark: str
    rows_scored: int
    rows_read: int
    scorer: str
    level: str
    policy: str
    normalisation: str = "none"
    opencc: str = "none"
    beta: float = 1.0
    bootstrap: str = "none"
    version: str = "0"

    @property
    def rows(self) -> str:
        """Rows scored of rows read."""
        return f"{self.rows_scored}/{self.rows_read}"

    def short(self) -> str:
        """One line, `key:value` joined with `|`."""
        return "|".join(f"{name}:{self._text(field)}" for name, field in _SHORT.items())

    def differences(self, other: Signature) -> tuple[tuple[str, object, object], ...]:
        """(field, mine, theirs) for every field that differs; empty where scores compare."""
        pairs = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return tuple(entry for entry in pairs if entry[1] != entry[2])

    def as_dict(self) -> dict[str, str | int | float]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, object]) -> Signature:
        """The inverse of `as_dict`; unknown or missing fields are an InputError."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(values) - known)
        missing = sorted(known - set(values))
        if unknown or missing:
            raise InputError(
                f"not a signature: unknown fields {unknown}, missing fields {missing};"
                " was the file written by another version?"
            )
        whole = {"rows_scored", "rows_read"}
        converted = {
            name: int(str(value)) if name in whole else float(str(value)) if name == "beta"
            else str(value)
            for name, value in values.items()
        }  # fmt: skip
        return cls(**converted)  # type: ignore[arg-type]

    def _text(self, field: str) -> str:
        value = getattr(self, field)
        return f"{value:g}" if isinstance(value, float) else str(value)
