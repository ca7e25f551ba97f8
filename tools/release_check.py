"""Check what a release needs: one version everywhere, a clean tree, a wheel that works alone.

`make release-check` runs it. It makes the wheel and the source archive in dist/, installs the
wheel into an empty virtual environment, and runs commands of the README there.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINES = (
    ["cectrain", "correct", "他的病情己经好转。"],
    ["cecdata", "build", "sample", "--limit", "50", "--filters", "levenshtein", "--out", "data"],
    ["cecdata", "verify", "data"],
    ["cecbench", "list"],
)


def run(*command: str, cwd: Path = ROOT) -> str:
    """Run a command and return its standard output; a failure ends the check."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def version() -> str:
    """Return the version, which four files must name alike."""
    patterns = {
        "pyproject.toml": r'^version = "(.+)"$',
        "CITATION.cff": r"^version: (\S+)$",
        "CHANGELOG.md": r"^## (\d\S*)",
        "cecdata/common/machine.py": r'^__version__ = "(.+)"$',
    }
    found = {}
    for name, pattern in patterns.items():
        match = re.search(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    if len(set(found.values())) > 1:
        sys.exit(f"the files name several versions: {found}")
    return found["pyproject.toml"]


def main() -> None:
    """Print each step as it passes."""
    number = version()
    print(f"version {number}: the same in pyproject.toml, CITATION.cff, CHANGELOG.md and cecdata")
    if changed := run("git", "status", "--porcelain"):
        sys.exit(f"the working tree has changes:\n{changed}")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist")
    wheel = ROOT / "dist" / f"cec_zero-{number}-py3-none-any.whl"
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "venv", str(folder / "venv"))
        run(str(folder / "venv/bin/pip"), "install", "--quiet", str(wheel))
        for line in LINES:
            run(str(folder / "venv/bin" / line[0]), *line[1:], cwd=folder)
            print(f"passed: {' '.join(line)}")
    print(f"ready: git tag v{number}")


if __name__ == "__main__":
    main()
