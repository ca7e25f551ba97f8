"""`cecdata doctor`: the facts of this machine and this installation."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from cecdata import __version__
from cecdata.commands.show import print_json
from cecdata.common.errors import CecError
from cecdata.common.machine import total_memory, usable_cores

DISTRIBUTION = "cec-zero"
# Commands that call every kernel (a test counts them), on `FILES`.
_BUILD = (
    "cecdata build text.txt --out built --copies 1 --workers 1 --recipe typed --encoder builtin "
    "--cosine all --split-sentences --mask --quality han --quality repeated --perplexity words "
    "--near-duplicates --decontaminate other.txt --protect names.txt"
)
CALLS = (
    _BUILD,
    "cecdata pool gb18030.txt --out pool",
    "cectrain correct --model channel --terms names.txt 他的病情己经好转。",
    "cecbench score few.tsv --scorer cherrant --mode nosimp",  # needs no OpenCC
)
_ANSWER = "他的病情己经好转。\t他的病情已经好转。\t他的病情已经好转。\n"
_TEXT = "".join(f"我们在第{n}个会议室讨论方案，{n * n}天以后出发。\n" for n in range(1500))
FILES = {
    "text.txt": _TEXT,
    "gb18030.txt": _TEXT,
    "other.txt": "这句话不在语料里面，只用来比较。\n",
    "names.txt": "会议室\n",
    "few.tsv": f"1\t{_ANSWER}",
}


@click.command()
@click.option("--compile", "compiles", is_flag=True, help="Compile all kernels now.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def doctor(compiles: bool, as_json: bool) -> None:
    """Show versions, cores, memory, disk, GPUs, and which optional packages are installed.

    \b
    cecdata doctor
    cecdata doctor --json
    cecdata doctor --compile      makes the first use of each command faster
    """
    if compiles:
        facts = compile_kernels()
        if as_json:
            print_json(facts)
        else:
            click.echo(f"all kernels are compiled ({facts['seconds']} s)")
        return
    facts = examine()
    if as_json:
        print_json(facts)
        return
    for name in ("version", "python", "platform", "cores", "memory_gib", "disk_free_gib"):
        click.echo(f"{name:24}{facts[name]}")
    click.echo(f"{'gpus':24}{', '.join(facts['gpus']) or 'none (nvidia-smi lists none)'}")
    model = facts["input_method_model"]
    click.echo(f"{'input-method model':24}{model or 'not installed (`make lm` installs one)'}")
    click.echo("\noptional packages (install with: pip install 'cec-zero[NAME]')")
    for name, missing in facts["extras"].items():
        click.echo(f"  {name:14}{'missing ' + ', '.join(missing) if missing else 'installed'}")


def compile_kernels() -> dict[str, Any]:
    """Call every kernel, so that those that are not in the cache are compiled; return the seconds.

    Raises CecError where a command fails.
    """
    from cecdata.embed import ENCODERS

    began = time.perf_counter()
    for make in ENCODERS.values():
        make().encode(["他的病情已经好转。"])  # as a reward does
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            encoding = "gb18030" if name == "gb18030.txt" else "utf-8"
            (Path(folder) / name).write_text(text, encoding)
        for call in CALLS:
            program, *words = call.split()
            done = subprocess.run(  # noqa: S603 - our own programs
                [sys.executable, "-m", program, *words],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": paths},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise CecError(f"{call}: {done.stderr.strip()[-300:]}")
    return {"compiled": True, "seconds": round(time.perf_counter() - began, 1)}


def examine() -> dict[str, Any]:
    """Return the facts as JSON values; sizes in GiB."""
    from cecdata.lm.ngrams import user_table

    table, memory, needed = user_table(), total_memory(), _requirements()
    names = sorted({name for listed in needed.values() for name in listed})
    packages = {name: found for name in names if (found := _version(name))}
    return {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": usable_cores(),
        "memory_gib": None if memory is None else round(memory / 2**30, 1),
        "disk_free_gib": round(shutil.disk_usage(Path.cwd()).free / 2**30, 1),
        "gpus": list(_gpus()),
        "input_method_model": str(table) if table.is_file() else None,
        "packages": packages,
        "extras": {
            extra: [name for name in listed if name not in packages]
            for extra, listed in sorted(needed.items())
            if extra
        },
    }


def _gpus() -> list[str]:
    """Return the lines of `nvidia-smi -L`, one for each GPU."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    done = subprocess.run([command, "-L"], capture_output=True, text=True, check=False)  # noqa: S603
    return [line.partition(" (UUID")[0] for line in done.stdout.splitlines() if line]


def _requirements() -> dict[str, list[str]]:
    """Return the required packages by extra; those of the base are under ''."""
    needed: dict[str, list[str]] = defaultdict(list)
    for line in metadata.requires(DISTRIBUTION) or ():
        requirement, _, marker = line.partition(";")
        name = re.match(r"[\w.-]+", requirement.strip())
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        if name:
            needed[extra[1] if extra else ""].append(name[0])
    return needed


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
