from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))
from calls import counted, nth, struck

from cecdata.common.durable import STATE, Workspace
from cecdata.common.durable.workspace import list_differences
from cecdata.common.errors import CecError, RefusedError

CONFIG = {
    "seed": 42,
    "prior": {"noise": 0.2, "split": 0.2},
    "inputs": [{"path": "a", "sha256": "0"}],
}


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and STATE not in path.parts
    }


def build(out: Path, config=CONFIG, *, overwrite=False) -> bool:
    """A small run with everything a real one has; gives whether it went on from an older one."""
    with Workspace(out, config, overwrite=overwrite) as work:
        for key in ("0", "1", "2"):
            if work.journal.get("chunk", key) is None:
                work.write_bytes(f"{STATE}/data/train-{key}.bin", f"rows {key}".encode())
                work.journal.record("chunk", key, rows=1)
        work.publish(f"{STATE}/data", "data")
        work.write_text("README.md", "卡片")
        work.journal.record("build", "done")
        return work.resumed


def test_a_run_and_the_same_run_again(tmp_path):
    """The first run makes the folder, the second finds all of it done and changes nothing."""
    out = tmp_path / "deep" / "out"
    assert build(out) is False
    first = tree(out)
    assert first == {f"data/train-{k}.bin": f"rows {k}".encode() for k in "012"} | {
        "README.md": "卡片".encode()
    }
    assert build(out) is True
    assert tree(out) == first


def interrupt() -> None:
    raise KeyboardInterrupt


def test_killed_at_every_call_the_run_goes_on(tmp_path):
    """A run stopped before any call that changes its folder resumes to the very same tree."""
    whole = tmp_path / "whole"
    calls = counted(whole, lambda: build(whole))
    expected = tree(whole)
    assert len(calls) > 40
    for stop in range(len(calls)):
        out = tmp_path / f"k{stop}"
        with contextlib.suppress(KeyboardInterrupt), struck(out, nth(stop, interrupt)):
            build(out)
        if out.exists():
            assert tree(out).items() <= expected.items()
        build(out)
        assert tree(out) == expected
        assert list((out / STATE / "tmp").iterdir()) == []


def refused(out: Path, config=CONFIG, **options) -> str:
    with pytest.raises(RefusedError) as caught:
        build(out, config, **options)
    assert caught.value.exit_code == 5
    return str(caught.value)


def test_another_configuration_is_refused_with_the_difference(tmp_path):
    """Each changed, added or lost setting is a line `was → is`, and nothing is touched."""
    build(tmp_path)
    before = tree(tmp_path)
    other = {
        "seed": 7,
        "prior": {"noise": 0.2},
        "inputs": [{"path": "a", "sha256": "1"}],
        "new": None,
    }
    message = refused(tmp_path, other)
    assert message.splitlines()[1:-1] == [
        '  inputs[0].sha256: "0" → "1"',
        "  prior.split: 0.2 → (not set)",
        "  seed: 42 → 7",
        "  new: (not set) → null",
    ]
    assert "--overwrite" in message
    assert tree(tmp_path) == before
    assert list_differences(CONFIG, CONFIG) == ""


def test_a_refusal_names_twelve_differences_and_counts_the_others(tmp_path):
    """The advice at the end stays on the screen where the corpus has many files."""
    build(tmp_path)
    lines = refused(tmp_path, {**CONFIG, "inputs": [f"{n}.txt" for n in range(40)]}).splitlines()
    assert len(lines) == 15
    assert lines[-2].endswith(" more")
    assert "--overwrite" in lines[-1]


def test_overwrite_starts_anew(tmp_path):
    """With `overwrite` the old run's files go, those it would not write again included."""
    build(tmp_path)
    with Workspace(tmp_path, CONFIG) as work:
        work.write_text("reports/old.txt", "alt")
    assert build(tmp_path, {"seed": 7}, overwrite=True) is False
    assert "reports/old.txt" not in tree(tmp_path)
    assert not (tmp_path / "reports").exists()
    assert build(tmp_path, {"seed": 7}) is True


def test_overwrite_never_takes_foreign_files(tmp_path):
    """A file that the workspace did not write stops `overwrite` before anything is removed."""
    build(tmp_path)
    (tmp_path / "data" / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    assert "data/notes.txt" in refused(tmp_path, {"seed": 7}, overwrite=True)
    assert tree(tmp_path) == before
    assert build(tmp_path) is True  # the run itself is not disturbed by it


@pytest.mark.parametrize("name", [".", "README.md", "data", "data/train-0.bin"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_that_would_read_its_own_output_is_refused(tmp_path, name, overwrite):
    """An input inside OUT is refused, also by way of a link, and nothing is removed."""
    out = tmp_path / "out"
    build(out)
    before = tree(out)
    (tmp_path / "link").symlink_to(out / name)
    for path in (out / name, tmp_path / "link", str(out / name)):
        with (
            pytest.raises(RefusedError, match="is in the output folder"),
            Workspace(out, {"seed": 7}, overwrite=overwrite, reads=[tmp_path, path]),
        ):
            pass
    assert tree(out) == before


def test_overwrite_killed_half_way_is_not_stuck(tmp_path):
    """A run that dies before it removes its first file can be started again, either way."""
    build(tmp_path)

    def kill(event: str, _path: str) -> None:
        if event == "os.remove":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), struck(tmp_path / "data", kill):
        build(tmp_path, {"seed": 7}, overwrite=True)
    assert "seed: 42 → 7" in refused(tmp_path, {"seed": 7})
    assert build(tmp_path, {"seed": 7}, overwrite=True) is False


def test_foreign_folders_are_refused(tmp_path):
    """A folder with anything in it that is no workspace stays as it is, also with `overwrite`."""
    (tmp_path / "thesis.docx").write_text("x")
    for overwrite in (False, True):
        assert "is not empty and has no .cecdata" in refused(tmp_path, overwrite=overwrite)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.docx"]
    (tmp_path / "empty").mkdir()
    assert build(tmp_path / "empty") is False


def test_a_file_as_output_is_refused(tmp_path):
    """OUT that is a file, or lies below one, is named as such."""
    path = tmp_path / "file"
    path.write_text("x")
    assert "is a file" in refused(path)
    with pytest.raises(CecError, match=f"{path}.*Not a directory"):
        build(path / "out")
    assert path.read_text() == "x"


def test_a_dangling_link_as_output_is_refused(tmp_path):
    """OUT that is a link to nothing is named as such; a link to a folder stands for the folder."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone")
    assert "is a link to" in refused(link)
    (tmp_path / "gone").mkdir()
    assert build(link) is False


def test_an_unwritable_output_is_an_error():
    """A folder without the right to write is an error (exit 1), no refusal (exit 5)."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        user = os.geteuid()
        if user == 0:  # root writes everywhere, so step down for a moment
            os.seteuid(65534)
        try:
            with pytest.raises(CecError, match="Permission denied") as error:
                build(Path(folder) / "out")
            assert error.value.exit_code == 1
        finally:
            os.seteuid(user)


def test_a_living_run_is_named(tmp_path):
    """The second run is refused with pid, host and since when; after the first it may start."""
    with Workspace(tmp_path, CONFIG):
        message = refused(tmp_path, overwrite=True)
        assert f"in use by process {os.getpid()} on " in message
        assert "since 20" in message
    assert build(tmp_path) is True


def test_a_dead_runs_lock_is_taken(tmp_path):
    """A process that was killed inside its workspace leaves no lock behind."""
    code = textwrap.dedent(
        f"""
        import os, signal
        from cecdata.common.durable import Workspace
        with Workspace({str(tmp_path)!r}, {CONFIG!r}) as work:
            (work.tmp / "half").write_text("x")
            os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / STATE / "tmp" / "half").exists()
    assert build(tmp_path) is True
    assert not (tmp_path / STATE / "tmp" / "half").exists()


def test_a_forked_process_does_not_hold_the_lock(tmp_path):
    """A process that a killed run forked may go on for a while; the folder is free at once."""
    code = textwrap.dedent(
        f"""
        import os, signal, time
        from cecdata.common.durable import Workspace
        with Workspace({str(tmp_path)!r}, {CONFIG!r}):
            if not os.fork():
                print(os.getpid(), flush=True)
                time.sleep(60)
                os._exit(0)
            time.sleep(60)
        """
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as running:
        child = int(running.stdout.readline())
        running.kill()
        running.wait()
        try:
            assert build(tmp_path) is True
        finally:
            os.kill(child, signal.SIGKILL)


def begun(out: Path, config=CONFIG) -> None:
    """A run that was stopped when its chunks were done and not yet published."""

    def stop(event: str, path: str) -> None:
        if event == "os.rename" and path.endswith(f"{STATE}/data"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), struck(out, stop):
        build(out, config)


SPOILT = {
    "gone": lambda path: path.unlink(),
    "cut": lambda path: path.write_text("{"),
    "empty": lambda path: path.write_bytes(b""),
    "another": lambda path: path.write_text(path.read_text().replace("42", "43")),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
@pytest.mark.parametrize("make", [begun, build], ids=["begun", "finished"])
@pytest.mark.parametrize("seed", [42, 43])
def test_a_fingerprint_that_is_not_the_journals_is_refused(tmp_path, make, spoil, seed):
    """Lost, damaged, edited: what lies there is bound to none; only --overwrite replaces it."""
    make(tmp_path)
    before = tree(tmp_path)
    spoil(tmp_path / STATE / "fingerprint.json")
    for _ in range(2):  # the refusal itself must not mend it
        message = refused(tmp_path, {**CONFIG, "seed": seed})
        assert f"{tmp_path}/{STATE}/fingerprint.json is missing, damaged" in message
    assert tree(tmp_path) == before
    assert build(tmp_path, {"seed": 7}, overwrite=True) is False
    assert build(tmp_path, {"seed": 7}) is True


def test_a_run_that_recorded_nothing_binds_no_other(tmp_path):
    """Its fingerprint may be gone, damaged, or another: the next run begins."""
    with Workspace(tmp_path, CONFIG):
        pass
    for seed, spoil in enumerate(SPOILT.values()):
        spoil(tmp_path / STATE / "fingerprint.json")
        with Workspace(tmp_path, {"seed": seed}) as work:
            assert not work.resumed
    assert build(tmp_path) is False
    assert build(tmp_path) is True


def test_what_is_kept_for_the_run_alone_binds_it_too(tmp_path):
    """Answers that were paid for lie in `.cecdata` until 512 are there: they are never cleared."""
    with Workspace(tmp_path, CONFIG) as work:
        (work.state / "requests.jsonl").write_text("{}\n")
    assert "seed: 42 → 7" in refused(tmp_path, {"seed": 7})
    assert (tmp_path / STATE / "requests.jsonl").read_text() == "{}\n"
    with Workspace(tmp_path, CONFIG) as work:
        assert work.resumed
    with Workspace(tmp_path, {"seed": 7}, overwrite=True) as work:
        assert not (work.state / "requests.jsonl").exists()


def test_every_failing_call_is_an_error_with_a_path(tmp_path):
    """EIO at any call: an error that names a path below OUT, and the run can go on."""

    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    whole = tmp_path / "whole"
    calls = counted(whole, lambda: build(whole))
    failed = 0
    for stop in range(len(calls)):
        out = tmp_path / f"e{stop}"
        errors = []
        try:
            with struck(out, nth(stop, fail)):
                build(out)
        except CecError as error:
            errors.append(str(error))
        assert all(re.search(f"{out}.*Input/output error", text) for text in errors)
        failed += len(errors)
        build(out)
        assert tree(out) == tree(whole)
    # a folder that is there already need not be made, and what is in the way may stay
    may_fail = ("os.mkdir", "os.rmdir", "os.remove")
    assert failed >= sum(not call.startswith(may_fail) for call in calls) > 20


def test_parts_of_two_kinds_differ_in_their_kinds_alone():
    """Their other keys are not the same things; those of other parts are shown."""
    was = {"system": {"kind": "copy", "name": "copy"}, "limit": 2}
    now = {"system": {"kind": "channel", "pairs": 2}, "limit": 3}
    assert list_differences(was, now) == '\n  system.kind: "copy" → "channel"\n  limit: 2 → 3'
