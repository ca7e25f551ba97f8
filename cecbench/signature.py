"""The signature that accompanies every score and says how it was computed."""

from __future__ import annotations

from dataclasses import dataclass, fields

UNNAMED = "rows"  # the benchmark in the signature of rows that have no published name
#: name in the short form → field, in the order of printing
_SHORT = {
    "bench": "benchmark",
    "rows": "rows",
    "scorer": "scorer",
    "level": "level",
    "unequal": "unequal_length",
    "norm": "normalisation",
    "opencc": "opencc",
    "beta": "beta",
    "bs": "bootstrap",
    "v": "version",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that must be equal before two numbers are compared.

    >>> mine = Signature("lemon/gam@7e902c67", 393, 400, "cscd", "S_C_f1", "revert")
    >>> print(mine.short())
    bench:lemon/gam@7e902c67|rows:393/400|scorer:cscd|level:S_C_f1|unequal:revert|norm:none|\
opencc:none|beta:1|bs:none|v:0
    >>> theirs = Signature("lemon/gam@7e902c67", 380, 400, "cscd", "S_C_f1", "drop")
    >>> mine.differences(theirs)
    (('rows_scored', 393, 380), ('unequal_length', 'revert', 'drop'))
    """

    benchmark: str
    rows_scored: int
    rows_read: int
    scorer: str
    level: str
    unequal_length: str
    normalisation: str = "none"
    opencc: str = "none"
    beta: float = 1.0
    bootstrap: str = "none"
    version: str = "0"

    @property
    def rows(self) -> str:
        """The rows scored and the rows read, as in 393/400."""
        return f"{self.rows_scored}/{self.rows_read}"

    def short(self) -> str:
        """Return one line of `key:value`, joined with `|`."""
        return "|".join(f"{name}:{self._text(field)}" for name, field in _SHORT.items())

    def differences(self, other: Signature) -> tuple[tuple[str, object, object], ...]:
        """Return (field, mine, theirs) for each field that differs; () if scores are comparable."""
        pairs = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return tuple(entry for entry in pairs if entry[1] != entry[2])

    def _text(self, field: str) -> str:
        value = getattr(self, field)
        return f"{value:g}" if isinstance(value, float) else str(value)
