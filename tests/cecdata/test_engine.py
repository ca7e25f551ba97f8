"""The engines: the same stage, the same bytes."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

_BUILD = """
import sys
from pathlib import Path
from cecdata.builds.build import build
from cecdata.config import load

corpus, out, engine = sys.argv[1:]
config = load(filters=["levenshtein"], shard_sentences=100)
build([corpus], Path(out), config, workers=2, engine=engine)
"""


def _built(corpus: Path, out: Path, engine: str) -> dict[str, bytes]:
    # a process of its own: a cluster leaves sockets and warnings behind
    subprocess.run([sys.executable, "-c", _BUILD, str(corpus), str(out), engine], check=True)
    names = [*sorted((out / "data").iterdir()), out / "manifest.json", out / "README.md"]
    return {path.name: path.read_bytes() for path in names}


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra [ray] is missing")
def test_ray_writes_the_same_files(tmp_path: Path) -> None:
    """Threads and Ray tasks write the same bytes under the same names."""
    corpus = tmp_path / "corpus.txt"
    lines = [f"第{n}号列车将于今天晚上准时到达本站的站台。" for n in range(350)]
    corpus.write_text("\n".join(lines), "utf-8")
    local = _built(corpus, tmp_path / "local", "local")
    assert len(local) == 2 * 4 + 2
    assert _built(corpus, tmp_path / "ray", "ray") == local


def test_engine_without_ray_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the package the engine `ray` names the extra that brings it."""
    from cecdata.builds.engine import engine_of
    from cecdata.common.errors import MissingPackageError

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"cec-zero\[ray\]"), engine_of("ray", 1):
        pass
