"""What is generated when the site is built: pages of commands and settings, and text for programs.

mkdocs calls the functions `on_…` (https://www.mkdocs.org/user-guide/configuration/#hooks). Beside
each page lies its Markdown, index.md, and `llms.txt` lists them (https://llmstxt.org).
"""

from __future__ import annotations

import importlib
import inspect
import os
import pydoc
import re
import sys
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]  # mkdocs takes them back when this is read
import settings  # noqa: E402

#: page of the site → file at the top level, whose relative links are rewritten
TOP = {
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
}
TOOLS = ("cecdata", "cectrain", "cecbench")
#: folder of pages → weight in the search, so that guides come first
BOOST = {"howto": 4, "zh": 4, "tutorial.md": 4, "concepts": 2, "reports": 0.5}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
_MARKDOWN: dict[str, str] = {}  # path in the site → text
_NAV: list[object] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of docs/."""
    for page, source in TOP.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=text))
    made = {"reference/settings.md": settings.page(), **command_pages()}
    for page, text in made.items():
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

    text = LINK.sub(turned, markdown)
    page.meta["search"] = {"boost": BOOST.get(Path(page.file.src_uri).parts[0], 1)}
    _MARKDOWN[_twin(page.file.src_uri)] = _as_text(text, page.file.src_uri)
    return text


def on_nav(nav: Navigation, **_: object) -> None:
    """Keep the navigation for llms.txt."""
    _NAV[:] = nav.items


def on_post_build(config: MkDocsConfig) -> None:
    """Write the Markdown of each page beside it, and llms.txt."""
    site = Path(config.site_dir)
    for path, text in _MARKDOWN.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, "utf-8")
    lines = ["# CEC-Zero", "", f"> {config.site_description}", ""]
    lines += [line for item in _NAV for line in _listed(item)]
    (site / "llms.txt").write_text("\n".join(lines) + "\n", "utf-8")


def on_page_context(
    context: TemplateContext, *, page: Page, config: MkDocsConfig, **_: object
) -> TemplateContext:
    """Let the theme's own words, such as those of its search, be in the language of the page."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("zh/") else "en"
    return context


def on_post_page(output: str, *, config: MkDocsConfig, **_: object) -> str:
    """Label the search dialog for screen readers."""
    label = {"zh": "搜索", "en": "Search"}[config.theme["language"]]
    return output.replace('role="dialog"', f'role="dialog" aria-label="{label}"')


def _twin(page: str) -> str:
    """Return the path of a page's Markdown in the site."""
    name = page.removesuffix(".md")
    return f"{name}.md" if Path(name).name == "index" else f"{name}/index.md"


def _as_text(markdown: str, page: str) -> str:
    """Return Markdown whose links lead to other pages' Markdown, with docstrings in full."""

    def turned(match: re.Match[str]) -> str:
        label, path, anchor = match[1], match[2], match[3] or ""
        if "://" in path or not path.endswith(".md"):
            return match[0]
        there = _twin(os.path.normpath(Path(page).parent / path))
        return f"[{label}]({os.path.relpath(there, Path(_twin(page)).parent)}{anchor})"

    text = re.sub(r"^::: (\S+)(\n    .*)?", _documented, markdown, flags=re.MULTILINE)
    return LINK.sub(turned, text)


def _documented(match: re.Match[str]) -> str:
    found = pydoc.locate(match[1])
    heading = re.search(r"heading: ([\w.]+)", match[2] or "")
    name = heading[1] if heading else match[1]
    signature = inspect.signature(found) if callable(found) else ""
    return f"## {name}\n\n```python\n{name}{signature}\n```\n\n{inspect.getdoc(found)}\n"


def _listed(item: object) -> list[str]:
    """Return the lines of llms.txt for a part of the navigation."""
    if isinstance(item, Section):
        return [f"## {item.title}", "", *(x for c in item.children for x in _listed(c)), ""]
    assert isinstance(item, Page)
    body = _MARKDOWN[_twin(item.file.src_uri)].partition("\n")[2].strip()
    about = re.split(r"(?<=[.。])\s|(?<=。)|\n\n", body, maxsplit=1)[0].replace("\n", " ")
    about = LINK.sub(r"\1", about.removeprefix("- "))
    told = "" if about.startswith(("#", "|", "```")) else f": {about}"
    return [f"- [{item.title}]({_twin(item.file.src_uri)}){told}"]


def command_pages() -> dict[str, str]:
    """Return one page for each command with what its help prints, and an index."""
    intro = "Each page shows what `--help` prints."
    pages, index = {}, ["# Commands", intro]
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
