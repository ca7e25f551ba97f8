"""Engines that run the tasks: the same bytes, also where their processes are killed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from tiny_models import sentence_encoder

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no ray here")

SCRIPT = "from cecdata.cli import main; main()"
MARK = "CEC_TEST_BUILD"
FLAGS = ("--filters", "levenshtein", "--shard-sentences", "20", "--workers", "2")


class Build:
    """A build in processes of its own, all of which have a mark in their environment."""

    def __init__(self, *words: object, script: str = SCRIPT) -> None:
        self.mark = uuid.uuid4().hex
        ray = {"RAY_DISABLE_IMPORT_WARNING": "1", "RAY_worker_niceness": "0"}
        environment = {**os.environ, MARK: self.mark, **ray}
        self.driver = subprocess.Popen(
            [sys.executable, "-c", script, "build", *map(str, words)],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def processes(self, name: str) -> list[int]:
        """The processes whose command line has `name` in it, apart from the driver."""
        chosen = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                marked = f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes()
                if marked and name.encode() in (folder / "cmdline").read_bytes():
                    chosen.append(int(folder.name))
        return [process for process in chosen if process != self.driver.pid]

    def kill(self, victim: str, chance: random.Random) -> bool:
        """Kill the driver, or one process of that name; False where there is none."""
        if self.driver.poll() is not None:
            return False
        if victim == "driver":
            self.driver.kill()
            return True
        processes = self.processes(victim)
        if processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(processes), signal.SIGKILL)
        return bool(processes)

    def end(self) -> tuple[int, str]:
        said, _ = self.driver.communicate(timeout=600)
        for process in self.processes(""):  # what a killed driver left
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        return self.driver.returncode, said


def killed_until(out, words, kills, victims, chance) -> int:
    """Start the build again and again, kill something each time, and let it end at last."""
    done = 0
    while done < kills:
        build = Build(*words)
        markers = out / ".cecdata/done"
        before = len(list(markers.rglob("*")))
        while build.driver.poll() is None and done < kills:
            # at a random moment after the first new marker, or before it
            now = len(list(markers.rglob("*")))
            if now > before or chance.random() < 0.01:
                time.sleep(chance.random() * 0.2)
                done += build.kill(chance.choice(victims), chance)
                before = now
            time.sleep(0.02)
        code, said = build.end()
        assert "Traceback" not in said, said
        if code == 0 and done < kills:
            break
    build = Build(*words)
    code, said = build.end()
    assert code == 0, said
    return done


@pytest.fixture(scope="module")
def many(tmp_path_factory, lines_of):
    """A corpus of 100 chunks."""
    path = tmp_path_factory.mktemp("many") / "many.txt"
    path.write_text("\n".join(lines_of(2000)), "utf-8")
    return path


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory, many, tree_of):
    """The dataset of a build that nobody stopped."""
    out = tmp_path_factory.mktemp("unbroken") / "out"
    code, said = Build(many, "--out", out, *FLAGS).end()
    assert code == 0, said
    return tree_of(out)


@pytest.mark.slow
def test_ray_writes_the_same_files(cecdata, tmp_path, lines_of, tree_of):
    """Threads and Ray tasks write the same bytes under the same names."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(lines_of(70)), "utf-8")
    assert cecdata("build", corpus, "--out", tmp_path / "local", *FLAGS)[0] == 0
    code, said = Build(corpus, "--out", tmp_path / "ray", *FLAGS, "--engine", "ray").end()
    assert code == 0, said
    assert len(list((tmp_path / "ray" / "data").iterdir())) == 8
    assert tree_of(tmp_path / "ray") == tree_of(tmp_path / "local")


def test_engine_without_ray_says_how_to_get_it(monkeypatch):
    """Without the package the engine `ray` names the extra that brings it, and a bad address."""
    from cecdata.builds.engine import start_engine
    from cecdata.common.errors import CecError, MissingPackageError

    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(CecError, match=r"format: nowhere.*RAY_ADDRESS"), start_engine("ray", 1):
        pass
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match=r"cec-zero\[ray\]"), start_engine("ray", 1):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "victims"),
    [("local", ["driver"]), ("ray", ["ray::_make", "ray::_make", "driver", "raylet/raylet"])],
)
def test_thirty_kills(engine, victims, many, unbroken, tree_of, tmp_path):
    """Workers, drivers and the object store (which Ray keeps in the raylet) killed at random: the
    unbroken dataset, byte for byte."""
    chance, kills, round_ = random.Random(20), 0, 0
    while kills < 30:
        round_ += 1
        out = tmp_path / f"out{round_}"
        words = (many, "--out", out, *FLAGS, "--engine", engine)
        kills += killed_until(out, words, 30 - kills, victims, chance)
        assert tree_of(out) == unbroken
    print(f"{engine}: {kills} kills, {round_} datasets")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A BERT of one layer whose tokens are characters, as a sentence-transformers folder."""
    pytest.importorskip("sentence_transformers")
    from cecdata.hanzi.characters import standard_characters

    characters = [*standard_characters(), *"，。"]
    return sentence_encoder(tmp_path_factory.mktemp("bert") / "model", characters)


ONE_GPU = (
    "import ray; ray.init(num_cpus=2, num_gpus=1, log_to_driver=False, include_dashboard=False); "
    f"{SCRIPT}"
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the library's own imports
def test_tasks_of_ray_share_the_gpus(many, model, tree_of, tmp_path):
    """Tasks on one (nominal) GPU for two cores: the bytes of threads."""
    flags = ("--shard-sentences", "200", "--workers", "2", "--encoder", str(model))
    alone, out = tmp_path / "alone", tmp_path / "out"
    code, said = Build(many, "--out", alone, *flags).end()
    assert code == 0, said
    code, said = Build(many, "--out", out, *flags, "--engine", "ray", script=ONE_GPU).end()
    assert code == 0, said
    assert tree_of(out) == tree_of(alone)
