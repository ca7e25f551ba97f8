"""The report's page in a real browser; skipped where no Chromium is installed."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cecbench.report.write import find_runs, write_report
from cecbench.run import Settings, evaluate

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
WIDTHS = (1280, 420)
PAIRS = [
    ("他己经来了，你呢？", "他已经来了，你呢？"),
    ("明天在见。", "明天再见。"),
    ("天气很好。",) * 2,
]
# A frame may be narrower than a browser's window.
WRAPPER = """<!doctype html>{frames}<script>
onload = () => {{
  const seen = [...document.querySelectorAll("iframe")].map((frame) => {{
    const page = frame.contentDocument;
    const choice = page.getElementById("filter-judgement");
    choice.value = "missed";
    choice.dispatchEvent(new Event("change"));
    return {{
      window: frame.contentWindow.innerWidth,
      page: page.scrollingElement.scrollWidth,
      count: page.getElementById("case-count").textContent,
      begins: [...page.querySelectorAll(".same")].map((part) => part.textContent[0]),
      legends: page.querySelector("#parts .legend").textContent.split("s-").length - 1,
    }};
  }});
  document.body.dataset.seen = JSON.stringify(seen);
}};
</script>"""


def reported(folder: Path, systems: int) -> Path:
    """Return the page of this many systems; the first misses every error, the others correct."""
    bench = folder / "own.tsv"
    bench.write_text("".join("\t".join(pair) + "\n" for pair in PAIRS * 5), encoding="utf-8")
    missed, right = folder / "missed.txt", folder / "right.txt"
    # It changes a clean sentence: a system that changes nothing is not listed.
    answers = [source for source, _ in PAIRS[:-1]] + ["天气真好。"]
    missed.write_text("".join(answer + "\n" for answer in answers * 5), encoding="utf-8")
    right.write_text("".join(answer + "\n" for _, answer in PAIRS * 5), encoding="utf-8")
    for number in range(systems):
        spec = f"predictions:{right if number else missed}"
        name = f"s-{number}, a name of some length"
        evaluate(Settings(str(bench), spec, folder / "runs" / f"{number:02}", name=name))
    return write_report(find_runs([folder / "runs"]), folder / "report")[0]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("systems", [1, 30])
def test_a_page_fits_its_window_and_its_filter_works(tmp_path: Path, systems: int) -> None:
    """On a desktop and a phone, only tables and figures scroll sideways, in their boxes."""
    page = reported(tmp_path, systems).as_uri()
    frames = "".join(f'<iframe src="{page}" width="{w}" height="800"></iframe>' for w in WIDTHS)
    wrapper = tmp_path / "wrapper.html"
    wrapper.write_text(WRAPPER.format(frames=frames.replace("<iframe", '<iframe style="border:0"')))
    done = subprocess.run(
        [
            str(CHROMIUM),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            "--allow-file-access-from-files",
            "--virtual-time-budget=5000",
            f"--user-data-dir={tmp_path / 'profile'}",
            wrapper.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    match = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert match is not None, done.stderr[-2000:]
    seen = json.loads(html.unescape(match[1]))
    for width, frame in zip(WIDTHS, seen, strict=True):
        assert frame["window"] == width
        assert frame["page"] <= width
        assert frame["count"] == "10 of 15 sentences"
        assert not set(frame["begins"]) & set("，。？")
        assert frame["legends"] == min(systems, 7)
