"""`cectrain serve`."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from cecdata.common.command_group import Finite
from cecdata.common.errors import MissingPackageError, UsageError, how_to_install
from cectrain.commands.correct import corrector_of, corrector_options


@click.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    help="Port to listen on; 0 takes a free one.",
)
@corrector_options
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=1 << 20,
    help="Maximum size of a request body, in bytes.",
)
@click.option(
    "--timeout-s",
    "seconds",
    type=Finite(0.1),
    default=60.0,
    help="Maximum time to read and answer a request, in seconds.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=4,
    help="Number of threads; each corrects one request at a time.",
)
@click.option(
    "--queue",
    type=click.IntRange(0),
    default=128,
    help="Maximum number of requests that wait for a thread; further requests are refused.",
)
@click.option(
    "--cors",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="Another site whose pages may send requests, such as https://a.example; repeatable.",
)
def serve(
    host: str,
    port: int,
    max_bytes: int,
    seconds: float,
    workers: int,
    queue: int,
    origins: tuple[str, ...],
    **settings: Any,
) -> None:
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
        from cectrain.serve.server import Limits, Server
    except ImportError as error:
        raise MissingPackageError(
            f"the server needs {error.name or error}, which is missing: {how_to_install('serve')}"
        ) from None
    corrector = corrector_of(**settings)
    with contextlib.suppress(UsageError):  # of a model without terms
        corrector.also(terms=["预热"])  # loads tables before a client waits
    with Server(
        (host, port), corrector, Limits(max_bytes, seconds, workers, queue), origins
    ) as server:
        click.echo(f"{server.url} (press Ctrl+C to stop)")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
