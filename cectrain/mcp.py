"""A server of the model context protocol: agents check and correct texts, and rewrite nothing."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from cecdata.common.errors import CecError
from cectrain.corrector.correction import edit_record, to_record
from cectrain.corrector.corrector import Corrector

INSTRUCTIONS = (
    "Checks Chinese texts for wrong characters. Only characters that are probably wrong are "
    "changed; nothing is rephrased. Offsets are code points, half-open."
)


def make_server(corrector: Corrector) -> MCPServer:
    """Return a server with the tools `check` and `correct`."""
    server: MCPServer = MCPServer("cectrain", instructions=INSTRUCTIONS)

    @server.tool()
    def check(text: str) -> list[dict[str, Any]]:
        """List the places of a Chinese text that look wrong, each with its probable correction."""
        return [*map(edit_record, corrector.correct(text)[0].edits)]

    @server.tool()
    def correct(
        text: str, terms: list[str] | None = None, confidence: float | None = None
    ) -> dict[str, Any]:
        """Return a Chinese text corrected, with the edits that were made.

        terms: words of the subject; text that sounds or looks like one of them is replaced by it.
        confidence: the least confidence of an edit, from that of the server to 1.
        """
        try:
            adapted = corrector.also(terms=terms or (), confidence=confidence)
        except CecError as error:
            raise ToolError(str(error)) from error
        return to_record(adapted.correct(text)[0])

    return server
