"""The page of all settings, read from the dataclasses that hold them.

A field's comment, behind it or on the lines above it, is its meaning.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: heading, file, class, section of the recipe
CLASSES = (
    ("cecdata build", "cecdata/config.py", "Config", ""),
    ("cectrain: top level", "cectrain/config.py", "Config", ""),
    ("cectrain: [data]", "cectrain/config.py", "DataConfig", "data."),
    ("cectrain: [policy]", "cectrain/config.py", "PolicyConfig", "policy."),
    ("cectrain: [sft]", "cectrain/config.py", "SftConfig", "sft."),
    ("cectrain: [reward]", "cectrain/config.py", "RewardConfig", "reward."),
    ("cectrain: [ppo]", "cectrain/config.py", "PpoConfig", "ppo."),
)
HEAD = """# Settings

A recipe is a TOML file with these keys. `cecdata build --recipe FILE` reads those of a build,
most of which are also options; `cectrain train --recipe FILE --set section.key=value` those of a
training. An unknown key is refused with the nearest name. Shares and rates are fractions, lengths
are code points. The defaults are those without a recipe; the recipes that ship set many of them.
"""


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join([HEAD, *(_section(*one) for one in CLASSES)])


def _section(heading: str, file: str, name: str, prefix: str) -> str:
    text = (ROOT / file).read_text("utf-8")
    rows = [f"## {heading}\n", "| setting | default | meaning |", "| --- | --- | --- |"]
    for key, default, meaning in fields(text, name):
        shown = f"`{default}`" if default else ""
        rows.append(f"| `{prefix}{key}` | {shown} | {meaning} |")
    return "\n".join(rows) + "\n"


def fields(text: str, name: str) -> list[tuple[str, str, str]]:
    """Return the name, default and meaning of each field of a dataclass but nested ones."""
    tree = ast.parse(text)
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    lines = text.splitlines()
    rows = []
    for item in found.body:
        if not isinstance(item, ast.AnnAssign) or not isinstance(item.target, ast.Name):
            continue
        default = ast.unparse(item.value) if item.value else ""
        if default.endswith("Config)"):
            continue
        default = re.sub(r"field\(default_factory=dict\)", "{}", default).replace("|", "\\|")
        rows.append((item.target.id, default, _meaning(lines, item)))
    return rows


def _meaning(lines: list[str], item: ast.AnnAssign) -> str:
    behind = lines[(item.end_lineno or item.lineno) - 1][item.end_col_offset or 0 :]
    above = []
    row = item.lineno - 2
    while not behind.strip() and lines[row].strip().startswith("# "):
        above.insert(0, lines[row].strip().removeprefix("# "))
        row -= 1
    return " ".join([*above, behind.strip().removeprefix("# ")]).strip().replace("|", "\\|")
