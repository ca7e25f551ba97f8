"""Causal models of transformers, loaded in one way: what is refused, the device, the format; and
where local models compute: in which batches, with how many threads.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from cecdata.common.errors import InputError, UsageError
from cecdata.common.machine import measure_free_memory
from cecdata.common.progress import say
from cecdata.models.gguf import find_conversion, keep_conversion
from cecdata.models.hub import import_torch, load_pretrained, shorten
from cecdata.models.vocabulary import cut_vocabulary

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Below this, threads cost more by waiting than they save (docs/reference/systems.md).
SMALL = 30_000_000  # parameters
_TURN = Lock()
T = TypeVar("T")
_POINTER = b"version https://git-lfs"
_COMMON = "的一是不了在人有我他这中大来上国"  # each vocabulary of Chinese has some of these
_MOST_LAYERS = 1000
_CAUSAL = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")  # ends of architectures


def load_causal(
    name: str, extra: str, device: str = "auto", dtype: str = "auto"
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the causal model of a folder, a hub name or a GGUF file on its device, and its
    tokenizer. The model of a GGUF file has only the tokens that Chinese text is written with.

    extra: the one that brings the packages. dtype: `auto` is the format of the files on a GPU; on a
    processor it is float32, unless that takes more than half of the free memory. `fast` is bfloat16
    where the processor multiplies in it and the model is not small, otherwise `auto`. Raises
    InputError for what is not a causal model, is damaged, does not fit its own settings or exceeds
    the memory.
    """
    file = _locate_gguf(name)
    needs = ("lm", "gguf", "accelerate") if file else (extra,)
    torch, _ = import_torch(*needs)
    place = pick_device(torch, device)
    if file is None:
        refuse_pointers(Path(name))
        model, tokenizer = _load(name, name, place, dtype)
        _check_model(name, model, tokenizer)
        return model, tokenizer
    _refuse_pointer(file)
    if folder := find_conversion(file):
        return _load(name, str(folder), place, dtype)
    reader = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    vars(reader)["tqdm"] = lambda tensors, **_: tensors  # in place of its bar
    # a GGUF file is no safetensors, but no pickle either
    model, tokenizer = _load(
        name, str(file.parent), place, dtype, gguf_file=file.name, use_safetensors=False
    )
    _check_model(name, model, tokenizer)
    cut_vocabulary(model, tokenizer)
    keep_conversion(file, model, tokenizer)
    return model, tokenizer


def _load(
    name: str, folder: str, place: str, dtype: str, **settings: Any
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model of a folder or a hub name, and its tokenizer; `name` is for messages."""
    import transformers

    gguf = {key: value for key, value in settings.items() if key == "gguf_file"}
    config = load_pretrained(transformers.AutoConfig, folder, **gguf)
    _check_config(name, config)
    if gguf:  # the head of the file could be read, and its weights are converted now
        say(f"{name} is read for the first time, which takes a minute or two")
    settings["dtype"] = _choose_dtype(name, config, place, dtype)
    tokenizer = load_pretrained(transformers.AutoTokenizer, folder, **gguf)
    model = load_pretrained(transformers.AutoModelForCausalLM, folder, **settings).to(place)
    return model, tokenizer


def refuse_pointers(folder: Path) -> None:
    """Raise InputError where weights in safetensors are empty, or what Git leaves in place."""
    for path in sorted(folder.glob("*.safetensors")):
        _refuse_pointer(path)


def _refuse_pointer(path: Path) -> None:
    """Raise InputError where a file is empty, or what Git leaves in place of a large one."""
    with path.open("rb") as stream:
        start = stream.read(len(_POINTER))
    if not start:
        raise InputError(f"{path} is empty: copy or download it again")
    if start == _POINTER:
        raise InputError(
            f"{path} is a pointer of Git LFS and not the file itself: run `git lfs pull` in "
            "its folder, or download the file"
        )


def check_finite(name: str, model: Any) -> None:
    """Raise InputError where a weight of a model is not a finite number."""
    import torch

    for parameter, weights in model.named_parameters():
        if weights.is_floating_point() and weights.numel():
            extremes = torch.stack(torch.aminmax(weights.detach()))  # NaN shows in both
            if not extremes.isfinite().all():
                raise InputError(
                    f"{name}: {parameter} has weights that are not finite: copy the model "
                    "again, or name an earlier checkpoint"
                )


def _locate_gguf(name: str) -> Path | None:
    """Return the GGUF file of this name, or the one in the folder; None where there is none."""
    path = Path(name)
    if path.is_file():
        return path
    if not path.is_dir() or (path / "config.json").is_file():
        return None
    files = sorted(path.glob("*.gguf"))
    if len(files) != 1:
        raise InputError(
            f"{name} has {len(files)} .gguf files: name one of them"
            if files
            else f"{name} is not a model: it has neither config.json nor a .gguf file. If it is "
            "the folder of a training, that is not finished: run it again"
        )
    return files[0]


def _check_config(name: str, config: Any) -> None:
    """Raise InputError for the settings of a model that is not causal, or that nobody can have."""
    from transformers import AutoModelForCausalLM

    architectures = config.architectures or []
    is_causal = not architectures or any(name.endswith(_CAUSAL) for name in architectures)
    is_known = type(config) in AutoModelForCausalLM._model_mapping  # noqa: SLF001 - no public table
    if not is_causal or not is_known or getattr(config, "is_encoder_decoder", False):
        raise InputError(
            f"{name} is not a causal language model "
            f"({', '.join(architectures) or type(config).__name__}): name one that predicts the "
            "next token, such as a Qwen3 model"
        )
    layers = getattr(config.get_text_config(), "num_hidden_layers", 0)
    if layers > _MOST_LAYERS:  # `_choose_dtype` makes them all
        raise InputError(f"{name}: no model has {layers:,} layers: copy or download it again")


def _choose_dtype(name: str, config: Any, device: str, wanted: str) -> torch.dtype:
    """Return the number format, as `load_causal` says."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        with torch.device("meta"):  # the number of parameters, without making them
            model = AutoModelForCausalLM.from_config(config)
    except Exception as error:  # settings that contradict each other raise whatever they like
        raise InputError(
            f"{name}: no model can have these settings ({shorten(error)}): copy config.json again"
        ) from error
    count = sum(weights.numel() for weights in model.parameters())
    on_gpu = device.startswith("cuda")
    free = torch.cuda.mem_get_info(device)[0] if on_gpu else measure_free_memory()
    dtype: torch.dtype
    if wanted == "fast" and device == "cpu" and count >= SMALL and multiplies_bfloat16():
        dtype = torch.bfloat16
    elif wanted not in {"auto", "fast"}:
        dtype = getattr(torch, wanted)
    elif device == "cpu" and (free is None or 8 * count < free):
        dtype = torch.float32
    else:
        dtype = config.dtype or torch.bfloat16
    needed = count * dtype.itemsize
    if free is not None and needed > free:
        raise InputError(
            f"{name} has {count / 1e9:.1f} billion parameters, {needed / 2**30:.1f} GiB in "
            f"{str(dtype).removeprefix('torch.')}, but only {free / 2**30:.1f} GiB of memory are "
            f"free on {device}: choose a smaller model"
        )
    return dtype


def multiplies_bfloat16() -> bool:
    """Return whether the processor has instructions for products in bfloat16."""
    import torch

    is_supported = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)  # no public name
    return bool(is_supported())


def _check_model(name: str, model: Any, tokenizer: Any) -> None:
    """Raise InputError where weights of a model are not finite, or its tokenizer does not fit.

    A tokenizer that is empty, reads no Chinese, or exceeds the model does not. What a GGUF file was
    converted into was checked then.
    """
    check_finite(name, model)
    tokens = tokenizer(_COMMON, add_special_tokens=False)["input_ids"]
    if not tokens:
        # transformers makes one without its files
        raise InputError(
            f"the tokenizer of {name} is empty: copy tokenizer_config.json and the "
            "files beside it again"
        )
    if not set(_COMMON) & set(tokenizer.decode(tokens, skip_special_tokens=True)):
        raise InputError(
            f"the vocabulary of {name} has no Chinese characters: choose a model that was trained "
            "on Chinese, such as a Qwen3 model"
        )
    last, rows = max(tokenizer.get_vocab().values()), len(model.get_input_embeddings().weight)
    if last >= rows:
        raise InputError(
            f"{name}: the tokenizer has tokens up to number {last}, but the model only {rows} "
            "tokens: use the tokenizer.json and tokenizer_config.json of this model"
        )


def pick_device(torch: ModuleType, wanted: str) -> str:
    """Return the torch device of a name; `auto` is the first GPU, or the processor without one."""
    if wanted != "auto":
        try:
            torch.empty(0, device=wanted)
        except (RuntimeError, AssertionError) as error:
            raise UsageError(f"device {wanted} cannot be used: {shorten(error)}") from error
        return wanted
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def name_cache(model: Any) -> str:
    """Return the name of a model's argument for its cache: transformers 5.24 has another."""
    return "cache" if "cache" in signature(model.forward).parameters else "past_key_values"


def run_in_batches(
    sizes: Sequence[int], batch: int, run: Callable[[list[int]], Sequence[T]]
) -> Iterator[T]:
    """Return what `run` gives for each index, in order.

    Batches are of similar sizes, the largest first: if memory runs out, it does so at once. A batch
    that does not fit the GPU's memory is halved and tried again, and so are those after it.
    """
    import torch

    results: dict[int, T] = {}
    order = sorted(range(len(sizes)), key=lambda index: (-sizes[index], index))
    queue = [order[start : start + batch] for start in range(0, len(order), batch)]
    while queue:
        chosen = queue.pop(0)
        try:
            results.update(zip(chosen, run(chosen), strict=True))
        except torch.OutOfMemoryError:
            if len(chosen) == 1:
                raise
            torch.cuda.empty_cache()
            half = len(chosen) // 2
            rest = [index for group in [chosen, *queue] for index in group]
            queue = [rest[start : start + half] for start in range(0, len(rest), half)]
    return (results[index] for index in range(len(sizes)))


def choose_thread_count(model: object) -> int | None:
    """Return one for a small model, None (torch's default) for another."""
    size = sum(parameter.numel() for parameter in model.parameters())  # type: ignore[attr-defined]
    return 1 if size < SMALL else None


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Let torch compute with `count` threads inside; None leaves their number as it is.

    One caller at a time is inside: the number and a tokenizer's settings belong to the process.
    """
    import torch

    with _TURN:
        before = torch.get_num_threads()
        torch.set_num_threads(count or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)
