"""The description of the server's JSON endpoint in OpenAPI, for tools that make clients of it."""

from __future__ import annotations

_TEXT = {"type": "string"}
_PLACE = {"type": "integer", "description": "in code points of the source"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_ALTERNATIVE = {"type": "object", "properties": {"target": _TEXT, "confidence": _SHARE}}
_EDIT = {
    "type": "object",
    "properties": {
        "start": _PLACE,
        "end": _PLACE,
        "source": _TEXT,
        "target": _TEXT,
        "confidence": _SHARE,
        "alternatives": {"type": "array", "items": _ALTERNATIVE},
        "type": _TEXT,
    },
}
_KEPT = {
    "type": "object",
    "properties": {"start": _PLACE, "end": _PLACE, "source": _TEXT, "reason": _TEXT},
}
_CORRECTION = {
    "type": "object",
    "properties": {
        "source": _TEXT,
        "target": _TEXT,
        "edits": {"type": "array", "items": _EDIT},
        "kept": {"type": "array", "items": _KEPT},
    },
}
_ASKED = {
    "type": "object",
    "required": ["texts"],
    "additionalProperties": False,
    "properties": {
        "texts": {"type": "array", "items": _TEXT},
        "confidence": {**_SHARE, "description": "at least that of the server"},
        "protect": {"type": "array", "items": _TEXT},
        "dictionary": {"type": "object", "additionalProperties": _TEXT},
    },
}
_ANSWER = {
    "type": "object",
    "properties": {"corrections": {"type": "array", "items": _CORRECTION}},
}
_REFUSED = {
    str(status): {"description": why}
    for status, why in (
        (400, "The body is wrong; `error` says what."),
        (413, "The body is too long."),
        (503, "Too many requests wait."),
        (504, "The request took too long."),
    )
}


def _json(schema: object) -> dict[str, object]:
    return {"content": {"application/json": {"schema": schema}}}


OPENAPI: dict[str, object] = {
    "openapi": "3.1.0",
    "info": {"title": "Chinese spelling correction", "version": "1"},
    "paths": {
        "/correct": {
            "post": {
                "summary": "Correct texts",
                "requestBody": {"required": True, **_json(_ASKED)},
                "responses": {
                    "200": {"description": "One correction a text", **_json(_ANSWER)},
                    **_REFUSED,
                },
            }
        },
        "/health": {"get": {"responses": {"200": {"description": "The server answers."}}}},
        "/metrics": {"get": {"responses": {"200": {"description": "Counts, for Prometheus."}}}},
    },
}
