"""The report of a dataset in a real browser; skipped where no Chromium is installed."""

from __future__ import annotations

import pytest
from browser import CHROMIUM, Browser

from cecdata.report import write_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_report_fits_its_window_and_its_filters_work(dataset, tmp_path, width, dark):
    """Only tables scroll sideways; a filter and a search leave what they name; nothing leaves."""
    path = write_report(dataset)
    with Browser(tmp_path / "profile") as page:
        page.open(path.as_uri(), width, dark=dark)
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        choose = "const s = document.getElementById('pair-operator'); s.value = 'split';"
        page.run(f"{{{choose} s.dispatchEvent(new Event('change'))}}")
        shown = "[...document.querySelectorAll('.pair .about span:nth-child(2)')]"
        operators = page.run(f"{shown}.map(node => node.textContent)")
        assert operators
        assert set(operators) == {"split"}
        page.run(
            "{const t = document.getElementById('confusion-text'); t.value = '胶';"
            " t.dispatchEvent(new Event('input'))}"
        )
        listed = page.run(
            "[...document.querySelectorAll('#confusion-list li')].map(node => node.textContent)"
        )
        assert listed
        assert all("胶" in text for text in listed)
        assert page.requests == [path.as_uri()]
