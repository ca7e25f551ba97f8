"""Causal models of transformers on disk or on the hub: what is loaded, in which number format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cecdata.common.durable import sha256_of
from cecdata.common.errors import InputError
from cecdata.common.machine import free_memory
from cecdata.models.hub import load_pretrained
from cecdata.models.identity import sha256_of_model

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A causal model that is not loaded yet; `gguf` is the file of the folder, if it is one."""

    folder: str
    gguf: str | None
    config: Any
    device: str
    dtype: torch.dtype

    @classmethod
    def at(cls, name: str) -> Checkpoint:
        """Return the model that a folder, a GGUF file or a hub name has.

        Raises InputError for what is no causal model, and where the weights exceed the memory.
        """
        import torch

        folder, gguf = _located(name)
        config, device = _config(folder, gguf), "cuda" if torch.cuda.is_available() else "cpu"
        return cls(folder, gguf, config, device, _fitting_dtype(name, config, device))

    def tokenizer(self) -> Any:
        """Load the tokenizer."""
        from transformers import AutoTokenizer

        tokenizer = load_pretrained(AutoTokenizer, self.folder, **_file(self.gguf))
        if not tokenizer("字", add_special_tokens=False)["input_ids"]:
            # transformers makes one without its files
            raise InputError(f"the tokenizer of {self.folder} is empty: copy its files again")
        return tokenizer

    def model(self) -> Any:
        """Load the model onto its device."""
        from transformers import AutoModelForCausalLM

        # a GGUF file is no safetensors, but no pickle either
        settings = {"dtype": self.dtype, "use_safetensors": self.gguf is None, **_file(self.gguf)}
        model = load_pretrained(AutoModelForCausalLM, self.folder, **settings)
        return model.to(self.device).eval()

    def digest(self) -> str:
        """Return the commit of a hub's model, or the SHA-256 of the files."""
        if commit := getattr(self.config, "_commit_hash", None):
            return str(commit)
        if self.gguf is None:
            return sha256_of_model(Path(self.folder))
        return sha256_of(Path(self.folder) / self.gguf).sha256


def _located(name: str) -> tuple[str, str | None]:
    """Return the folder or hub name, and the GGUF file in it, if that is what it holds."""
    path = Path(name)
    if path.is_file():
        return str(path.parent), path.name
    if not path.is_dir() or (path / "config.json").is_file():
        return name, None
    held = sorted(path.glob("*.gguf"))
    if len(held) != 1:
        raise InputError(
            f"{name} has {len(held)} .gguf files: name one of them"
            if held
            else f"{name} is not a model: it has neither config.json nor a .gguf file"
        )
    return name, held[0].name


def _file(gguf: str | None) -> dict[str, str]:
    return {} if gguf is None else {"gguf_file": gguf}


def _config(folder: str, gguf: str | None) -> Any:
    """Return a model's configuration; raise InputError for what is no causal model."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = load_pretrained(AutoConfig, folder, **_file(gguf))
    named = config.architectures or []
    causal = not named or any(n.endswith(("ForCausalLM", "LMHeadModel")) for n in named)
    known = type(config) in AutoModelForCausalLM._model_mapping  # noqa: SLF001 - no public table
    if not causal or not known or getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{folder} is not a causal language model "
            f"({', '.join(named) or type(config).__name__}): name one that predicts the next "
            "token, such as a Qwen3 model"
        )
    return config


def _fitting_dtype(name: str, config: Any, device: str) -> torch.dtype:
    """Return the number format: on a processor float32, or bfloat16 where that would not fit.

    Raises InputError where the weights exceed the memory.
    """
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):  # the number of parameters, without making them
        model = AutoModelForCausalLM.from_config(config)
    count = sum(each.numel() for each in model.parameters())
    on_gpu = device == "cuda"
    free = torch.cuda.mem_get_info(device)[0] if on_gpu else free_memory()
    if on_gpu:
        dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    else:
        dtype = torch.float32 if free is None or 8 * count < free else torch.bfloat16
    needed = count * dtype.itemsize
    if free is not None and needed > free:
        raise InputError(
            f"{name} has {count / 1e9:.1f} billion parameters, {needed / 2**30:.1f} GiB in "
            f"{str(dtype).removeprefix('torch.')}, but only {free / 2**30:.1f} GiB of memory are "
            f"free on {device}: choose a smaller model, or the URL of an endpoint"
        )
    return dtype
