"""`cectrain lsp` and `cectrain mcp`: servers on standard input and output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from cecdata.common.errors import MissingPackageError, how_to_install
from cectrain.commands.correct import corrector_of, corrector_options

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector


def _missing(error: ImportError, extra: str) -> MissingPackageError:
    return MissingPackageError(
        f"the server needs {error.name or error}, which is missing: {how_to_install(extra)}"
    )


@click.command()
@corrector_options
def lsp(**settings: Any) -> None:
    """Show the edits in an editor, by the language server protocol on standard input and output.

    \b
    cectrain lsp --model channel        what an editor starts

    Settings of the workspace (`model`, `terms`, `dictionary`, `protect`, `confidence`, `rescore`,
    `script`, `lm`) replace the options.
    """
    try:
        from cectrain.lsp import Server
    except ImportError as error:
        raise _missing(error, "lsp") from None

    def load(wanted: Mapping[str, Any]) -> Corrector:
        return corrector_of(**{**settings, **{key: wanted[key] for key in wanted if wanted[key]}})

    Server(load).editor.start_io()


@click.command()
@corrector_options
def mcp(**settings: Any) -> None:
    """Let agents check and correct texts, by the model context protocol (standard input, output).

    \b
    cectrain mcp --model channel        what an agent's program starts

    The tools are check(text) and correct(text, terms, confidence).
    """
    try:
        from cectrain.mcp import make_server
    except ImportError as error:
        raise _missing(error, "mcp") from None
    make_server(corrector_of(**settings)).run()
