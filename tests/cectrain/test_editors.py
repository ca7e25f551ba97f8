"""Editors and agents ask a corrector, each by its protocol, over standard input and output."""

import asyncio
import json
import subprocess
import sys
import time
from functools import partial

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from cectrain.lsp import DELAY_S, KEEP

COMMAND = [sys.executable, "-m", "cectrain"]
OPTIONS = ["--model", "channel", "--lm", "words"]


class Editor:
    """An editor with one document open."""

    def __init__(self, root, name="a.md"):
        self.uri, self.root, self.number = (root / name).as_uri(), root, 0
        self.client = LanguageClient("editor", "1")
        self.news = asyncio.Queue()
        self.messages = asyncio.Queue()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self.news.put_nowait))
        self.client.feature(types.WINDOW_SHOW_MESSAGE)(partial(self.messages.put_nowait))

    async def __aenter__(self):
        await self.client.start_io(*COMMAND, "lsp", *OPTIONS)
        wanted = types.InitializeParams(
            types.ClientCapabilities(), root_uri=self.root.as_uri(), initialization_options={}
        )
        await self.client.initialize_async(wanted)
        self.client.initialized(types.InitializedParams())
        return self

    async def __aexit__(self, *_):
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()

    async def next(self):
        return (await asyncio.wait_for(self.news.get(), 60)).diagnostics

    async def open(self, text):
        item = types.TextDocumentItem(self.uri, "markdown", self.number, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.next()

    def type(self, text):
        self.number += 1
        whole = types.TextDocumentContentChangeWholeDocument(text)
        document = types.VersionedTextDocumentIdentifier(self.number, self.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, [whole]))

    async def actions(self, place):
        document = types.TextDocumentIdentifier(self.uri)
        context = types.CodeActionContext([])
        wanted = types.CodeActionParams(document, place, context)
        return await self.client.text_document_code_action_async(wanted)


def spans(diagnostics):
    return [
        (d.range.start.line, d.range.start.character, d.range.end.character) for d in diagnostics
    ]


def test_an_editor_shows_edits_and_makes_them(tmp_path):
    """In units of UTF-16, in prose alone; what is typed quickly is read once, at last; a word that
    is kept stands in the file of protected words, which the command line reads too."""

    async def edit():
        async with Editor(tmp_path) as editor:
            found = await editor.open("# 题\r\n\r\n💪𠀀他**己**经来了，`己经`。\r\n")
            assert spans(found) == [(2, 7, 8)]
            assert found[0].message.startswith("己 → 已 (same-stroke, 0.9")
            first, *others, keep = await editor.actions(found[0].range)
            (change,) = first.edit.changes[editor.uri]
            assert (change.range, change.new_text) == (found[0].range, "已")
            assert first.is_preferred
            assert not any(other.is_preferred for other in others)
            assert keep.title == "Keep 己经 in this project"
            for end in range(1, 9):
                editor.type("我门明天去公园。"[:end])
            assert spans(await editor.next()) == [(0, 1, 2)]
            assert editor.news.empty()
            assert await editor.actions(found[0].range) == ()
            assert KEEP in keep.command
            wanted = types.ExecuteCommandParams(KEEP, ["我门"])
            await editor.client.workspace_execute_command_async(wanted)
            assert await editor.next() == ()
            assert (tmp_path / ".cec-protect").read_text("utf-8") == "我门\n"

    asyncio.run(edit())


MESSAGES = (
    {"id": 1, "method": "initialize", "params": {"capabilities": {}}},
    {"id": 2, "method": "shutdown"},
    {"method": "exit"},
)


def test_a_session_ends_without_an_error():
    """With exit code 0 and nothing on stderr, after the editor has closed the stream."""
    bodies = [json.dumps({"jsonrpc": "2.0", **message}) for message in MESSAGES]
    asked = "".join(f"Content-Length: {len(body)}\r\n\r\n{body}" for body in bodies)
    words = [*COMMAND, "lsp", *OPTIONS]
    done = subprocess.run(words, input=asked.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


WRONG_SETTINGS = (
    ({"terms": ["no.txt"]}, "no.txt cannot be read"),
    ({"terms": "no.txt"}, "no.txt cannot be read"),
    ({"protect": "no.txt"}, "no.txt cannot be read"),
    ({"protect": ["words.txt"]}, "protect"),
    ({"dictionary": [1]}, "dictionary"),
    ({"confidence": "0.9"}, "confidence"),
    ({"script": 1}, "script"),
    ({"enable": True}, "enable"),
    ({"confidense": 0.9}, "did you mean 'confidence'"),
    ({"model": "nope"}, "nope"),
)


def test_settings_of_a_workspace_replace_the_options(tmp_path):
    """Names of files are below its root; what is wrong with them is shown, and no finding is."""
    (tmp_path / "words.txt").write_text("明天\t后天\n", "utf-8")

    async def configure(editor, **settings):
        wanted = types.DidChangeConfigurationParams({"cectrain": settings})
        editor.client.workspace_did_change_configuration(wanted)

    async def change():
        async with Editor(tmp_path) as editor:
            assert len(await editor.open("明天他己经来了。")) == 1
            await configure(editor, dictionary=["words.txt"])
            assert len(await editor.next()) == 2
            for wrong, said in WRONG_SETTINGS:
                await configure(editor, **wrong)
                message = await asyncio.wait_for(editor.messages.get(), 60)
                assert said in message.message
                assert await editor.next() == ()
                await configure(editor, dictionary="words.txt", protect="", confidence=None)
                assert len(await editor.next()) == 2
            editor.client.workspace_did_change_configuration(
                types.DidChangeConfigurationParams({"cectrain": None})
            )
            assert len(await editor.next()) == 1

    asyncio.run(change())


def test_a_changed_paragraph_is_answered_soon(tmp_path):
    """Within 100 ms, beside the wait for further signs; other paragraphs are not read again."""

    async def measure():
        async with Editor(tmp_path) as editor:
            text = "\n\n".join(f"第{n}段：他们明天去公园看花，天气很好。" for n in range(300))
            await editor.open(text)
            for n in range(50):  # on a busy machine an answer may wait for others
                begin = time.perf_counter()
                editor.type(f"{text}\n\n我门明天{n}点去。")
                assert len(await editor.next()) == 1
                if time.perf_counter() - begin - DELAY_S < 0.1:
                    return True
        return False

    assert asyncio.run(measure())


def test_an_agent_checks_and_corrects(tmp_path):
    """By two tools, whose answers are JSON as of `cectrain correct --json`."""
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def ask():
        server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp", *OPTIONS])
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools] == ["check", "correct"]
            found = await session.call_tool("check", {"text": "他己经来了。"})
            wanted = {"text": "梅饶臣他己经来了。", "terms": ["梅尧臣"], "confidence": 0.6}
            made = await session.call_tool("correct", wanted)
            wrong = await session.call_tool("correct", {"text": "好", "confidence": 2})
            return found, made, wrong

    found, made, wrong = asyncio.run(ask())
    (edit,) = found.structured_content["result"]
    assert (edit["start"], edit["source"], edit["target"]) == (1, "己", "已")
    assert made.structured_content["target"] == "梅尧臣他已经来了。"
    assert wrong.is_error
    assert "confidence must be" in wrong.content[0].text
