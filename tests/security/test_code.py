"""What the source must never hold: read here as text and as syntax, whoever wrote it."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("cecdata", "cecbench", "cectrain")
FILES = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]


@functools.cache
def calls() -> list[tuple[Path, ast.Call]]:
    """Every call in the source, with its file."""
    trees = ((path, ast.parse(path.read_text("utf-8"))) for path in FILES)
    nodes = ((path, node) for path, tree in trees for node in ast.walk(tree))
    return [(path, node) for path, node in nodes if isinstance(node, ast.Call)]


# Modules whose readers run what they read, and what starts a shell.
NEVER = {
    "pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "code", "pty",
    "commands",
}  # fmt: skip


def named(node: ast.Call) -> str:
    """`a.b` of the call `a.b(…)`."""
    return ast.unparse(node.func)


def told(found) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{node.lineno} {named(node)}" for path, node in found]


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in node.keywords if word.arg == name), None)


def test_no_module_that_runs_what_it_reads():
    """Nothing imports pickle or one of its kind, but for the kernels that numba pickles.

    These come from folders that only this user can write (tests/cecdata/test_kernels.py).
    """
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{path}: {n}" for n in names if n.split(".")[0] in NEVER]
    assert found == [f"{ROOT}/cecdata/common/kernels.py: pickle"]


def test_nothing_is_unpickled():
    """`torch.load` does not occur, every `np.load` and `np.save` forbids pickles, and no state of
    an object of others is read as pickle reads it."""
    never = ("torch.load", "torch.save", ".__reduce__", ".__reduce_ex__", ".__getstate__")
    assert not told((p, n) for p, n in calls() if named(n).endswith(never))
    loads = [(p, n) for p, n in calls() if named(n) in ("np.load", "np.save", "np.savez")]
    forbidding = [(p, n) for p, n in loads if _is_false(keyword(n, "allow_pickle"))]
    assert not told(one for one in loads if one not in forbidding)


def test_no_shell_no_evaluation_no_unpacking():
    """Data never becomes a command or an object, and no name in an archive leads out."""
    never = {"os.system", "os.popen", "eval", "exec", "compile", "__import__", "yaml.load"}
    never |= {"yaml.unsafe_load", "shutil.unpack_archive"}
    assert not told((p, n) for p, n in calls() if named(n) in never)
    opened = {"tarfile.", "zipfile."}
    assert not told((p, n) for p, n in calls() if named(n).startswith(tuple(opened))
                    and "extract" in named(n))  # fmt: skip
    assert not told((p, n) for p, n in calls() if keyword(n, "shell") is not None)


def test_programs_are_started_from_fixed_words():
    """A child process is git, nvidia-smi or our own interpreter, and gets a list, not a line."""
    starters = ("subprocess.", "os.exec", "os.spawn")
    starts = [(p, n) for p, n in calls() if named(n).startswith(starters)]
    allowed = {
        "cecdata/common/machine.py",
        "experiments/training/runs.py",
    }
    assert {str(p.relative_to(ROOT)) for p, _ in starts} <= allowed
    for path, node in starts:
        assert node.args, told([(path, node)])
        assert not isinstance(node.args[0], (ast.Constant, ast.JoinedStr)), told([(path, node)])


def test_no_code_out_of_a_checkpoint():
    """`trust_remote_code` is nowhere but False; one module alone calls from_pretrained."""
    words = [(p, n) for p, n in calls() if keyword(n, "trust_remote_code") is not None]
    assert not told((p, n) for p, n in words if not _is_false(keyword(n, "trust_remote_code")))
    text = "".join(path.read_text("utf-8") for path in FILES)
    assert not re.search(r"trust_remote_code\W{1,4}True", text)
    places = {str(p.relative_to(ROOT)) for p, n in calls() if named(n).endswith(".from_pretrained")}
    assert places == {"cecdata/models/hub.py"}


@pytest.mark.parametrize("name", ["base.lock", "dev.lock", "build.lock"])
def test_every_locked_package_has_hashes(name):
    """Each pinned package of a lock file carries SHA-256, so that no other bytes are installed."""
    text = (ROOT / "requirements" / name).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    assert lines
    for line in lines:
        assert re.match(r"[A-Za-z0-9_.\-\[\]]+==\S+", line), line
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line


def test_installing_asks_for_the_hashes():
    """`make setup` and `make setup-dev` install with --require-hashes."""
    text = (ROOT / "Makefile").read_text("utf-8")
    installs = [line for line in text.splitlines() if ".lock" in line and "PIP" in line]
    assert installs
    assert all("--require-hashes" in line for line in installs)


def _is_false(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
