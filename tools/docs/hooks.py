"""Pages that are generated when the site is built: one for each command, and the top-level ones.

mkdocs calls `on_files` (https://www.mkdocs.org/user-guide/configuration/#hooks).
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from html import escape
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
#: page of the site → file at the top level, whose relative links are rewritten
TOP = {
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
TOOLS = ("cecdata", "cectrain", "cecbench")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of docs/."""
    for page, source in TOP.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=text))
    for page, text in {**command_pages(), **evidence_pages()}.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrite links that leave docs/ in the repository as links of the site or as plain text."""
    source = Path(TOP.get(page.file.src_uri, f"docs/{page.file.src_uri}"))
    made = {name: Path("docs") / target for target, name in TOP.items()}
    here = Path("docs") / page.file.src_uri

    def turned(match: re.Match[str]) -> str:
        label, path, anchor = match[1], match[2], match[3] or ""
        if "://" in path or not path:
            return match[0]
        named = os.path.normpath(source.parent / path)
        target = made.get(named, Path(named))
        if target.parts[0] == "docs":
            return f"[{label}]({os.path.relpath(target, here.parent)}{anchor})"
        return f"`{named}`" if (ROOT / named).exists() else match[0]

    return re.sub(r"\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)", turned, markdown)


def on_post_page(output: str, **_: object) -> str:
    """Label the search dialog for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def evidence_pages() -> dict[str, str]:
    """Return a page with the figures of each comparison in docs/evidence."""
    sys.path.insert(0, str(ROOT))
    from cecdata.common import html
    from experiments.corpora.results import TITLE, figures

    pages = {}
    for path in sorted((ROOT / "docs/reports/evidence").glob("*.json")):
        facts = json.loads(path.read_text("utf-8"))
        command = f"<p><code>{escape(facts['command'])}</code></p>"
        body = f"<h1>{TITLE}</h1>\n{command}\n{''.join(figures(facts))}"
        pages[f"reports/evidence/{path.stem}.html"] = html.page(TITLE, body)
    return pages


def command_pages() -> dict[str, str]:
    """Return one page for each command with what its `--help` prints, and an index."""
    pages, index = {}, ["# Commands", "Each page shows what `--help` prints."]
    for tool in TOOLS:
        group = importlib.import_module(f"{tool}.cli").cli
        context = click.Context(group, info_name=tool)
        index.append(f"## {tool}\n\n{_first(group)}\n\n| command | |\n| --- | --- |")
        rows = []
        for name, (_, about) in group.table.items():
            command = group.get_command(context, name)
            assert command is not None
            inner = click.Context(command, info_name=name, parent=context)
            text = f"# {tool} {name}\n\n{about}\n\n```text\n{command.get_help(inner)}\n```\n"
            if isinstance(command, click.Group):
                for sub in command.list_commands(inner):
                    below = command.get_command(inner, sub)
                    assert below is not None
                    deeper = click.Context(below, info_name=sub, parent=inner)
                    text += f"\n## {tool} {name} {sub}\n\n```text\n{below.get_help(deeper)}\n```\n"
            pages[f"reference/commands/{tool}/{name}.md"] = text
            rows.append(f"| [`{tool} {name}`]({tool}/{name}.md) | {about} |")
        index.append("\n".join(rows))
    text = "\n\n".join(index).replace("| --- | --- |\n\n", "| --- | --- |\n")
    pages["reference/commands/index.md"] = text
    return pages


def _first(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0]
