"""A server of the language server protocol: an editor shows the edits, and makes those wanted."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Event
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec

from cecdata.common.command_group import explain_error
from cecdata.common.errors import UsageError
from cecdata.common.progress import GivenUpError, asking_whether_given_up
from cecdata.common.settings import require_known
from cectrain.corrector.correction import Correction, Edit
from cectrain.corrector.corrector import Corrector
from cectrain.documents.document import correct_document, find_line_starts, list_edits, spell_target
from cectrain.documents.protected import PROTECTED, find_word, keep_word
from cectrain.documents.table import Reading, read_document

DELAY_S = 0.1  # after a change, so that keystrokes in quick succession cause one check
KEEP = "cectrain.keepWord"
#: formats by an editor's name of their language; other documents are read by their own names
_FORMATS = {"markdown": "a.md", "html": "a.html", "xml": "a.xml", "latex": "a.tex", "tex": "a.tex"}
_REMEMBERED = 10_000  # passages
_SETTINGS = ("model", "lm", "rescore", "script", "confidence", "protect", "terms", "dictionary")
_LISTS = ("terms", "dictionary")  # settings that may name several files

Load = Callable[[Mapping[str, Any]], Corrector]


@dataclass(frozen=True, slots=True)
class _Finding:
    """An edit as an editor shows it, and the word that it would change."""

    edit: Edit
    word: str
    diagnostic: types.Diagnostic


class _Remembering:
    """A corrector that asks its model once for each passage, however often a document changes."""

    def __init__(self, corrector: Corrector) -> None:
        self.corrector, self.least = corrector, corrector.least
        self._corrections: dict[str, Correction] = {}

    def stream(self, texts: Iterable[str]) -> Iterator[Correction]:
        """Return the corrections of texts in their order."""
        texts = [*texts]
        if len(self._corrections) > _REMEMBERED:
            self._corrections = {}
        new = [text for text in dict.fromkeys(texts) if text not in self._corrections]
        for correction in self.corrector.stream(new):
            self._corrections[correction.source] = correction
        return map(self._corrections.__getitem__, texts)


class Server:
    """Checks the documents that an editor has open.

    load: the corrector for the settings of a workspace: `model`, `terms`, `dictionary`, `protect`,
    `confidence`, `rescore`, `script` and `lm`, as the options of `cectrain correct`.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._reader: _Remembering | None = None
        self._settings: Any = {}
        self._pool = ThreadPoolExecutor(1)  # models answer one after another
        self._waiting: dict[str, tuple[asyncio.Task[None], Event]] = {}
        self._findings: dict[str, tuple[int | None, list[_Finding]]] = {}
        self.editor = editor = LanguageServer("cectrain", version("cec-zero"))
        fix = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])
        for feature, answer in (
            (types.INITIALIZE, self._take_first_settings),
            (types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._take_new_settings),
            (types.TEXT_DOCUMENT_DID_OPEN, self._check_soon),
            (types.TEXT_DOCUMENT_DID_CHANGE, self._check_soon),
            (types.TEXT_DOCUMENT_DID_CLOSE, self._forget_document),
        ):
            editor.feature(feature)(partial(answer))  # pygls marks what it is given
        editor.feature(types.TEXT_DOCUMENT_CODE_ACTION, fix)(partial(self._offer_actions))
        editor.command(KEEP)(partial(self._keep_word))

    def _take_first_settings(self, params: types.InitializeParams) -> None:
        """Take the settings with which the editor starts."""
        self._settings = params.initialization_options

    def _take_new_settings(self, params: types.DidChangeConfigurationParams) -> None:
        """Take new settings, and check all documents again."""
        settings = params.settings
        self._settings = settings.get("cectrain", settings) if settings else settings
        self._reader = None
        self._check_all()

    def _check_all(self) -> None:
        for uri in self.editor.workspace.text_documents:
            self._check_soon_in(uri)

    def _check_soon(
        self, params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams
    ) -> None:
        self._check_soon_in(params.text_document.uri)

    def _check_soon_in(self, uri: str) -> None:
        """Check a document after a while, in place of the check that it waits for."""
        self._cancel(uri)
        given_up = Event()
        task = asyncio.get_running_loop().create_task(self._check(uri, given_up))
        self._waiting[uri] = task, given_up

    def _cancel(self, uri: str) -> None:
        """Give up the check of a document that has not ended."""
        if uri in self._waiting:
            task, given_up = self._waiting.pop(uri)
            given_up.set()
            task.cancel()

    def _forget_document(self, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        self._cancel(uri)
        self._findings.pop(uri, None)
        self._publish(uri, None, [])

    async def _check(self, uri: str, given_up: Event) -> None:
        """Check a document and show what is found; an error becomes a message."""
        await asyncio.sleep(DELAY_S)
        document = self.editor.workspace.get_text_document(uri)
        name = _FORMATS.get(document.language_id or "", to_fs_path(uri) or uri)
        text, revision = document.source, document.version
        loop = asyncio.get_running_loop()
        try:
            edits = await loop.run_in_executor(self._pool, self._find_edits, name, text, given_up)
        except GivenUpError:
            return
        except Exception as error:  # noqa: BLE001 - a task that ends with one says nothing
            said = f"cectrain: {explain_error(error)}"
            self.editor.window_show_message(types.ShowMessageParams(types.MessageType.Error, said))
            edits = []
        findings = list(_list_findings(edits, text, document.position_codec))
        self._publish(uri, revision, findings)

    def _find_edits(self, name: str, text: str, given_up: Event) -> list[Edit]:
        """Return the edits of a document, in a thread of the pool."""
        with asking_whether_given_up(given_up.is_set):
            if self._reader is None:
                self._reader = _Remembering(self._load(self._resolve_settings()))
            document = read_document(name, text.encode(), Reading("utf-8"))
            return list_edits(correct_document(self._reader, document))

    def _root(self) -> Path:
        return Path(self.editor.workspace.root_path or ".")

    def _resolve_settings(self) -> dict[str, Any]:
        """Return the settings with names of files below the root of the workspace."""
        root = self._root()
        settings: dict[str, Any] = {}
        if (root / PROTECTED).exists():
            settings["protect"] = root / PROTECTED
        for key, value in (self._settings or {}).items():
            require_known("setting", key, _SETTINGS)
            if value in (None, "", []):
                continue
            parts = value if isinstance(value, list) and key in _LISTS else [value]
            kind, meant = ((int, float), "a number") if key == "confidence" else (str, "a text")
            if not all(isinstance(part, kind) for part in parts):
                raise UsageError(f"the setting {key} must be {meant}, not {value!r}")
            settings[key] = root / value if key == "protect" else value
            if key in _LISTS:
                settings[key] = [root / part for part in parts]
        return settings

    def _publish(self, uri: str, number: int | None, findings: list[_Finding]) -> None:
        """Show the findings of a document; `number` is that of its version."""
        self._findings[uri] = number, findings
        shown = [finding.diagnostic for finding in findings]
        self.editor.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, shown, number)
        )

    def _offer_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Return what can be done about the findings in a range, the best first."""
        uri = params.text_document.uri
        number, findings = self._findings.get(uri, (None, []))
        document = self.editor.workspace.get_text_document(uri)
        if number != document.version:
            return []  # the text has changed since
        actions: list[types.CodeAction] = []
        for finding in findings:
            place = finding.diagnostic.range
            if place.end < params.range.start or params.range.end < place.start:
                continue
            targets = [finding.edit.target, *(a.target for a in finding.edit.alternatives)]
            for target in targets:
                written = spell_target(document.source, replace(finding.edit, target=target))
                change = types.WorkspaceEdit({uri: [types.TextEdit(place, written)]})
                title = f"{finding.edit.source or '∅'} → {target or '∅'}"
                actions.append(_make_action(finding, title, target == targets[0], edit=change))
            title = f"Keep {finding.word} in this project"
            command = types.Command(title, KEEP, arguments=[finding.word])
            actions.append(_make_action(finding, title, preferred=False, command=command))
        return actions

    def _keep_word(self, word: str) -> None:
        """Protect a word in the file of the project, and check again."""
        keep_word(self._resolve_settings().get("protect") or self._root() / PROTECTED, word)
        self._reader = None
        self._check_all()


def _list_findings(edits: Iterable[Edit], text: str, codec: PositionCodec) -> Iterator[_Finding]:
    """Yield the findings of a text, whose places an editor counts in its own units."""
    starts = find_line_starts(text)

    def position(place: int) -> types.Position:
        line = bisect_right(starts, place) - 1
        return types.Position(line, codec.client_num_units(text[starts[line] : place]))

    for edit in edits:
        diagnostic = types.Diagnostic(
            types.Range(position(edit.start), position(edit.end)),
            edit.message,
            types.DiagnosticSeverity.Warning,
            source="cectrain",
        )
        yield _Finding(edit, find_word(text, edit), diagnostic)


def _make_action(finding: _Finding, title: str, preferred: bool, **what: Any) -> types.CodeAction:
    """Return a quick fix for a finding; `what` is what it does."""
    return types.CodeAction(
        title, types.CodeActionKind.QuickFix, [finding.diagnostic], is_preferred=preferred, **what
    )
