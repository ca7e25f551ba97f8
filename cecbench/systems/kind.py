"""A kind of system: its name in `--system`, its options, and the function that creates it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Generic, TypeVar

from cecbench.benchmarks.row import Row
from cecbench.systems.answer import System
from cecbench.systems.options import NoOptions
from cecbench.systems.secrets import refuse_in_path

Options = TypeVar("Options", bound=NoOptions)


@dataclass(frozen=True, slots=True)
class Context:
    """The facts of a run that a system may use.

    rows: the whole benchmark. state: the folder for what a killed run needs again; None where
    nothing is written.
    """

    rows: Sequence[Row] = ()
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class Kind(Generic[Options]):
    """A kind of system; `table.BUILT_IN` or an entry point of a package leads to it.

    form: how `--system` writes it, such as `tagger:PATH`; without a colon it takes no argument.
    meaning: one line for `cecbench list`. options: a dataclass whose fields are made by `option`.
    make: the system for the text after the colon. check: raises UsageError for such a text that is
    wrong or holds a secret. recorded: whether `cecbench run` writes a folder unasked, since asking
    again would cost time or money. unavailable: the reason why it cannot run here, '' if it can.
    """

    form: str
    meaning: str
    options: type[Options]
    make: Callable[[str, Options, Context], System]
    check: Callable[[str], object] | None = None
    recorded: bool = True
    unavailable: Callable[[], str] = str

    @property
    def name(self) -> str:
        """The word before the colon."""
        return self.form.partition(":")[0]

    @property
    def takes(self) -> frozenset[str]:
        """The names of the options."""
        return frozenset(field.name for field in fields(self.options))

    def refuse(self, argument: str) -> None:
        """Raise UsageError for an argument that is wrong or that outputs must not name."""
        if self.check is None:
            refuse_in_path(argument, self.form)
        else:
            self.check(argument)
