"""`cectrain serve`, `lsp` and `mcp`: the corrector for browsers, editors and agents."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from cecdata.common.errors import MissingPackageError, UsageError, how_to_install
from cectrain.commands.corrector_options import add_corrector_options, open_corrector

if TYPE_CHECKING:
    from cectrain.corrector.corrector import Corrector


@click.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    help="Port to listen on; 0 takes a free one.",
)
@add_corrector_options
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=1 << 20,
    help="Maximum size of a request body, in bytes.",
)
@click.option(
    "--timeout-s",
    "seconds",
    type=click.FloatRange(0.1),
    default=300.0,
    help="Maximum time to read and answer a request, in seconds.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=4,
    help="Number of threads; each corrects one request at a time.",
)
def serve(host: str, port: int, **settings: Any) -> None:
    """Serve a page for correcting text, and a JSON endpoint, on this machine.

    \b
    cectrain serve                         the page: http://127.0.0.1:8000/
    curl localhost:8000/correct --json '{"texts": ["他己经来了。"]}'

    The server also has /health and /openapi.json. A request may have its
    own "confidence", "protect", "terms" and "dictionary".

    The server has no password. If --host is not a loopback address, everyone who can reach the
    port can use the corrector.
    """
    try:
        from cectrain.serve.server import Server
    except ImportError as error:
        raise _explain_missing_package(error, "serve") from None
    limits = {name: settings.pop(name) for name in ("max_bytes", "seconds", "workers")}
    corrector = _load_compiled_corrector(settings)
    with contextlib.suppress(UsageError):  # of a model without terms
        corrector.also(terms=["预热"])  # loads tables before a client waits
    with Server((host, port), corrector, **limits) as server:
        click.echo(f"{server.url} (press Ctrl+C to stop)")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def _load_compiled_corrector(settings: Mapping[str, Any]) -> Corrector:
    """Return the corrector of a program that runs for long, with its kernels compiled."""
    from cectrain.corrector.channel.proposer import read_clauses

    read_clauses.stop_interpreting()
    return open_corrector(**settings)


def _explain_missing_package(error: ImportError, extra: str) -> MissingPackageError:
    """Return the error for a package of the servers that is missing."""
    return MissingPackageError(
        f"the server needs {error.name or error}, which is missing: {how_to_install(extra)}"
    )


@click.command()
@add_corrector_options
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
        raise _explain_missing_package(error, "lsp") from None

    def load(wanted: Mapping[str, Any]) -> Corrector:
        return _load_compiled_corrector({**settings, **wanted})

    Server(load).editor.start_io()


@click.command()
@add_corrector_options
def mcp(**settings: Any) -> None:
    """Let agents check and correct texts, by the model context protocol (standard input, output).

    \b
    cectrain mcp --model channel        what an agent's program starts

    The tools are check(text) and correct(text, terms, confidence).
    """
    try:
        from cectrain.mcp import make_server
    except ImportError as error:
        raise _explain_missing_package(error, "mcp") from None
    make_server(_load_compiled_corrector(settings)).run()
