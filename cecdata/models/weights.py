"""The files of a model's weights, looked at before anything is loaded: their tensors and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cecdata.common.codec import parse
from cecdata.common.errors import InputError
from cecdata.models.hub import first_line

# Of each of them a configuration or a model makes a list, before it looks at the weights.
_LISTED = frozenset(
    {"num_hidden_layers", "num_layers", "n_layers", "n_layer", "block_count"}
    | {"num_experts", "num_local_experts", "n_routed_experts", "expert_count"}
)
_POINTER = b"version https://git-lfs"


def count_weights(folder: Path, gguf: str | None = None) -> int:
    """Return how many numbers the weights of a folder, or of the GGUF file in it, have.

    Only headers are read. Raises InputError, which names the file, where a file is missing, empty,
    cut off or a pointer of Git LFS, and where the settings list more layers than there are tensors.
    """
    if gguf is not None:
        source = folder / gguf
        settings, sizes = _read_gguf(source)
    else:
        source = folder / "config.json"
        settings = _read_json(source)
        sizes = [size for path in _files(folder) for size in _read_safetensors(path)]
    parts = [settings, *(value for value in settings.values() if isinstance(value, dict))]
    for part in parts:
        for name in sorted(_LISTED & part.keys()):
            if isinstance(part[name], int) and part[name] > len(sizes):
                raise InputError(
                    f"{source}: {name} is {part[name]:,}, but the weights have only {len(sizes):,} "
                    "tensors: copy the complete model again"
                )
    return sum(sizes)


def refuse_pointer(path: Path) -> None:
    """Raise InputError where a file is empty, or what Git leaves in place of a large file."""
    with path.open("rb") as file:
        start = file.read(len(_POINTER))
    if not start:
        raise InputError(f"{path} is empty: copy or download it again")
    if start == _POINTER:
        raise InputError(
            f"{path} is a pointer of Git LFS and not the file itself: run `git lfs pull` in its "
            "folder, or download the file"
        )


def _files(folder: Path) -> list[Path]:
    """Return the files of weights that transformers reads, in one part or in several."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        parts = _read_json(index).get("weight_map")
        names = sorted(set(parts.values())) if isinstance(parts, dict) else []
    else:
        names = ["model.safetensors"]
    for name in names:
        if not (folder / name).is_file():
            raise InputError(
                f"{folder / name} is missing: copy the complete model again; weights are read from "
                "safetensors alone"
            )
    return [folder / name for name in names]


def _read_safetensors(path: Path) -> list[int]:
    from safetensors import SafetensorError, safe_open

    refuse_pointer(path)
    try:
        with safe_open(path, framework="numpy") as file:
            return [math.prod(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from error


def _read_gguf(path: Path) -> tuple[Mapping[str, Any], list[int]]:
    """Return those settings that make lists, and the sizes of the tensors."""
    from gguf import GGUFReader

    refuse_pointer(path)
    try:
        reader = GGUFReader(path)
        named = {name.rpartition(".")[2]: field for name, field in reader.fields.items()}
        settings = {name: named[name].contents() for name in _LISTED & named.keys()}
        return settings, [int(tensor.n_elements) for tensor in reader.tensors]
    except Exception as error:  # a damaged file raises whatever it likes
        raise _damaged(path, error) from error


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(
            f"{path} is missing: name a folder with config.json, a tokenizer and weights in "
            "safetensors, or a model on a hub"
        )
    try:
        value = parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a JSON object: copy the complete model again")
    return value


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(
        f"{path} is damaged or incomplete ({first_line(error)}): copy or download it again"
    )
