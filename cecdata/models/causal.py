"""Causal language models that are asked: the tokens of a question, answers in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cecdata.common.codec import parse
from cecdata.common.errors import InputError
from cecdata.models import hub, prompts
from cecdata.models.loading import load_causal

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

THINKING_OFF = {"enable_thinking": False}  # Qwen3's switch; templates without one ignore it
EXTRA_TOKENS = 32  # of an answer, besides twice those of its source
GREEDY: Mapping[str, object] = {
    "do_sample": False,
    "temperature": None,
    "top_p": None,
    "top_k": None,
}
PROMPT_FILE = "prompt.json"  # {"version": "1", "template": true}: what a model was trained with
_MARKS = (b'"<|source|>"', b'"<|target|>"')  # in the template of cectrain's built-in models
_TEMPLATES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")


@dataclass(frozen=True, slots=True)
class CausalModel:
    """A model with its tokenizer, and the version of its prompt.

    system: whether the chat template takes an instruction by the system; if it does not, the
    instruction stands before the first message of the user.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    prompt: str
    system: bool = True


def load(
    where: str, prompt: str, device: str = "auto", dtype: str = "auto", *, extra: str = "bench"
) -> CausalModel:
    """Return the model of a folder or a hub id on its device, as `load_causal` loads it.

    Raises InputError where the folder is not whole or the model cannot be asked.
    """
    prompts.find_prompt(prompt)  # an unknown one is refused before the model is read
    check_template(Path(where))  # a hub id is no folder, and lacks nothing
    model, tokenizer = load_causal(where, extra, device, dtype)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.eos_token_id is None:
        raise InputError(f"{where} has no end token: set eos_token in tokenizer_config.json")
    tokenizer.padding_side = "left"
    return CausalModel(model, tokenizer, prompt, _takes_system(where, tokenizer, prompt))


def _takes_system(where: str, tokenizer: PreTrainedTokenizerBase, prompt: str) -> bool:
    """Return whether a chat template takes a message of the system.

    Raises InputError where it refuses the instruction in a message of the user, too.
    """
    if not getattr(tokenizer, "chat_template", None):
        return True
    for system in (True, False):
        chat = prompts.make_messages("", prompt, system=system)
        try:
            tokenizer.apply_chat_template(chat, tokenize=False, **THINKING_OFF)
        except Exception as error:  # noqa: BLE001 - a template raises whatever it likes
            why = hub.shorten(error)
        else:
            return system
    raise InputError(
        f"the chat template of {where} refuses the prompt ({why}): give a --prompt of your own "
        "with {sentence} in it, or use another model"
    )


def identify_prompt(policy: CausalModel) -> dict[str, object]:
    """Return what tells the prompt from others: its version, and where its instruction stands."""
    version: dict[str, object] = {
        "prompt": f"{policy.prompt}@{prompts.hash_prompt(policy.prompt)[:8]}"
    }
    return version if policy.system else {**version, "instruction": "before the first sentence"}


def make_question(policy: CausalModel, source: str) -> list[dict[str, str]] | str:
    """Return the question: a chat where the tokenizer has a template, else its words as text."""
    chat = prompts.make_messages(source, policy.prompt, system=policy.system)
    if getattr(policy.tokenizer, "chat_template", None):
        return chat
    return "\n\n".join(message["content"] for message in chat) + "\n"


def encode_prompt(policy: CausalModel, source: str) -> list[int]:
    """Return the tokens of the question, thinking off.

    A template writes the tokens that a text begins with; without one the tokenizer adds them.
    """
    question = make_question(policy, source)
    if isinstance(question, str):
        plain: list[int] = policy.tokenizer.encode(question)
        return plain
    text = policy.tokenizer.apply_chat_template(
        question, add_generation_prompt=True, tokenize=False, **THINKING_OFF
    )
    ids: list[int] = policy.tokenizer.encode(str(text), add_special_tokens=False)
    return ids


def decode(policy: CausalModel, completions: Sequence[Sequence[int]]) -> list[str]:
    """Return the texts of completions without their special tokens."""
    if not completions:  # transformers decodes no rows into one
        return []
    texts: list[str] = policy.tokenizer.batch_decode(completions, skip_special_tokens=True)
    return texts


def find_token_budget(policy: CausalModel, source: str) -> int:
    """Return the most tokens that an answer to a source may have."""
    return 2 * len(policy.tokenizer.encode(source, add_special_tokens=False)) + EXTRA_TOKENS


def generate(
    policy: CausalModel, asked: Sequence[Sequence[int]], budgets: Sequence[int]
) -> list[list[int]]:
    """Return the tokens that `transformers` generates for each question, padding left out.

    Decoding is greedy. budgets: the most tokens of each answer.
    """
    import torch

    model, pad = policy.model, int(policy.tokenizer.pad_token_id)
    width = max(len(ids) for ids in asked)
    rows = [[pad] * (width - len(ids)) + list(ids) for ids in asked]
    mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in asked]
    output: torch.Tensor = model.generate(
        input_ids=torch.tensor(rows, device=model.device),
        attention_mask=torch.tensor(mask, device=model.device),
        max_new_tokens=max(budgets),
        pad_token_id=pad,
        **GREEDY,
    )
    written = output[:, width:].tolist()
    return [
        [token for token in row[:budget] if token != pad]
        for row, budget in zip(written, budgets, strict=True)
    ]


def check_template(folder: Path) -> None:
    """Raise InputError where a model's folder has lost its chat template.

    Without it the model would be asked in words that it has never seen. prompt.json says whether
    there was one; the built-in kind always has one.
    """
    path = folder / PROMPT_FILE
    used = read_prompt_record(path).get("template", False) if path.is_file() else False
    if not isinstance(used, bool):
        raise InputError(f"{path}: template must be true or false, not {used!r}")
    settings = folder / "tokenizer_config.json"
    inside = settings.is_file() and b'"chat_template"' in settings.read_bytes()
    if inside or any((folder / name).exists() for name in _TEMPLATES):
        return
    built_in = is_built_in_kind(folder)
    if built_in or used:
        why = "a policy with these tokens needs" if built_in else "its policy was trained with"
        raise InputError(
            f"{folder} lacks chat_template.jinja, which {why}: copy the complete folder again"
        )


def is_built_in_kind(folder: Path) -> bool:
    """Return whether a folder's tokenizer is that of cectrain's built-in models."""
    tokens = folder / "tokenizer.json"
    return tokens.is_file() and all(mark in tokens.read_bytes() for mark in _MARKS)


def read_prompt_record(path: Path) -> dict[str, object]:
    """Return the fields of a prompt.json; raise InputError where it is not JSON."""
    try:
        value = parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as JSON, so the prompt version is unknown ({error}): copy the "
            "complete model folder again"
        ) from None
    return dict(value) if isinstance(value, dict) else {}
