"""`cecdata doctor`: the facts of this machine and this installation."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from cecdata import __version__
from cecdata.commands.show import print_json
from cecdata.common.machine import total_memory, usable_cores

DISTRIBUTION = "cec-zero"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def doctor(as_json: bool) -> None:
    """Show versions, cores, memory, disk, GPUs, and which optional packages are installed.

    \b
    cecdata doctor
    cecdata doctor --json
    """
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
