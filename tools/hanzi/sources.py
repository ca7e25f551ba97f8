"""Writes SOURCES.md and LICENSES/: where every table comes from, with checksums."""

from __future__ import annotations

import zipfile
from pathlib import Path

from inputs import Inputs, sha256

# Input → (package and version, licence, file of the notice in LICENSES/).
PACKAGES = {
    "tghb": ("@mandel59/mojidata 1.8.1 (npm): 通用规范汉字表", "MIT (mojidata)", "mojidata.txt"),
    "unihan": ("@mandel59/mojidata 1.8.1: Unihan 17.0", "Unicode-3.0", "unicode.txt"),
    "ids": ("@mandel59/mojidata 1.8.1: BabelStone IDS", "free of copyright; MIT-0", ""),
    "jieba": ("jieba 0.42.1 (PyPI): dict.txt", "MIT", "jieba.txt"),
    "pypinyin": ("pypinyin 0.55.0 (PyPI): phrases_dict.json", "MIT", "pypinyin.txt"),
    "fuzzychinese": (
        "fuzzychinese 0.1.5 (PyPI): dict_chinese_stroke.txt", "BSD-3-Clause", "fuzzychinese.txt",
    ),
    "font 1": ("noto_cjk_sans_otc 0.0.1 (PyPI): face 2, measured only", "OFL-1.1", ""),
    "font 2": ("fonts-lxgw-wenkai 1.250+repack-1 (Debian): Regular, measured only", "OFL-1.1", ""),
    "regex": (
        "regex 2026.11.15 (PyPI): Grapheme_Cluster_Break", "Unicode-3.0 (data)", "unicode.txt",
    ),
}  # fmt: skip
USED = {
    "characters": ("tghb", "unihan", "jieba", "fuzzychinese", "ids"),
    "readings": ("tghb", "unihan", "jieba", "pypinyin"),
    "confusions": ("tghb", "unihan", "jieba", "pypinyin"),
    "ids": ("tghb", "ids"),
    "drops": ("tghb", "ids", "unihan"),
    "exchanges": ("tghb", "ids", "unihan"),
    "splits": ("tghb", "ids", "unihan"),
    "shapes": ("tghb", "ids", "fuzzychinese", "font 1", "font 2"),
    "clusters": ("regex",),
    "lexicon": ("jieba", "pypinyin"),
}
SCRIPTS = {"drops": "table_ids.py"}


def write(inputs: Inputs, tables: Path) -> None:
    """Write SOURCES.md beside the tables, and the notices that must accompany them."""
    _notices(inputs, tables / "LICENSES")
    lines = [
        "# Sources of the tables", "",
        "Written by `tools/hanzi/build_tables.py`; `tests/hanzi` checks the sums.", "",
        "## Inputs", "",
        "| name | package | licence | notice | sha256 of the file read |", "|---|---|---|---|---|",
    ]  # fmt: skip
    sums = _input_sums(inputs)
    for name, (package, licence, notice) in PACKAGES.items():
        link = f"[{notice}](LICENSES/{notice})" if notice else "–"
        lines.append(f"| {name} | {package} | {licence} | {link} | {sums.get(name, '–')} |")
    lines += ["", "## Tables", "", "| table | inputs | script | sha256 |", "|---|---|---|---|"]
    for table, used in USED.items():
        script = f"tools/hanzi/{SCRIPTS.get(table, f'table_{table}.py')}"
        total = sha256(tables / f"{table}.tsv")
        lines.append(f"| {table}.tsv | {', '.join(used)} | {script} | {total} |")
    (tables / "SOURCES.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _input_sums(inputs: Inputs) -> dict[str, str]:
    database = sha256(inputs.mojidata / "dist" / "moji.db")
    sums = dict.fromkeys(("tghb", "unihan", "ids"), database)
    for name in ("jieba", "pypinyin", "fuzzychinese"):
        sums[name] = sha256(inputs.wheel(name))
    for number, font in enumerate(inputs.fonts, 1):
        sums[f"font {number}"] = sha256(Path(font.partition("#")[0]))
    return sums


def _notices(inputs: Inputs, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    mojidata = (inputs.mojidata / "LICENSE.md").read_text(encoding="utf-8")
    mit = mojidata.split("\n---\n")[1].strip().removeprefix("## Mojidata License").strip()
    terms = mit[mit.index("Permission is hereby") :]
    notices = {
        "mojidata.txt": mit,
        # The source archive names its author and licence but carries no copy of the terms.
        "jieba.txt": f"Copyright (c) 2013 Sun Junyi\n\n{terms}",
        "unicode.txt": (inputs.mojidata / "licenses" / "unicode.txt").read_text(encoding="utf-8"),
    }
    for prefix in ("pypinyin", "fuzzychinese"):
        with zipfile.ZipFile(inputs.wheel(prefix)) as archive:
            names = [name for name in archive.namelist() if "LICENSE" in name]
            notices[f"{prefix}.txt"] = archive.read(min(names)).decode("utf-8")
    for name, text in notices.items():
        body = "\n".join(line.rstrip() for line in text.strip().splitlines())
        (folder / name).write_text(body + "\n", encoding="utf-8")
