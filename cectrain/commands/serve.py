"""`cectrain serve`."""

from __future__ import annotations

import contextlib

import click

from cecdata.common.errors import InputError
from cecdata.common.progress import loading
from cectrain.corrector.opening import COMBINED


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--policy",
    default=COMBINED,
    show_default=True,
    help="Model that corrects, as for `cectrain correct`.",
)
@click.option("--lm", help="N-gram model of the noisy channel, as in `cectrain correct`.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=1 << 20,
    show_default=True,
    help="Largest request body that is read, in bytes.",
)
def serve(host: str, port: int, policy: str, lm: str | None, max_bytes: int) -> None:
    """Serve a page for correcting text, and a JSON endpoint, on this machine.

    \b
    cectrain serve                         the page: http://127.0.0.1:8000/
    curl localhost:8000/correct --json '{"texts": ["他己经来了。"]}'

    There is no password: if --host is not a loopback address, everyone who reaches the port may
    use the corrector.
    """
    from cectrain.corrector.corrector import Corrector
    from cectrain.serve.server import Server

    corrector = Corrector(policy, lm=lm)
    loading(lambda: corrector.correct(""))
    try:
        server = Server((host, port), corrector, max_bytes)
    except OSError as error:
        raise InputError(f"{host}:{port}: cannot listen there ({error.strerror})") from error
    with server:
        click.echo(f"{server.url} (press Ctrl+C to stop)")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
