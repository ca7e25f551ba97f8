"""Causal language models through transformers: Qwen3, DeepSeek-R1-Distill and their like."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cecbench.systems.answer import Answer
from cecbench.systems.extract import extract
from cecbench.systems.kind import Kind
from cecbench.systems.options import LocalOptions, PromptOptions
from cecbench.systems.threads import thread_count, threads
from cectrain.corrector import loading, prompts

THINKING_OFF = {"enable_thinking": False}  # Qwen3's switch; templates without one ignore it


@dataclass(frozen=True)
class LlmOptions(PromptOptions, LocalOptions):
    """Options of a local language model."""


class LlmSystem:
    """Asks a local model with the versioned prompt, batched by length."""

    def __init__(self, checkpoint: str, options: LlmOptions, name: str | None = None) -> None:
        torch, transformers = loading.torch_and_transformers()
        prompts.prompt(options.prompt)  # an unknown version is refused before the weights load
        self._torch = torch
        self._options = options
        self._device = loading.pick_device(torch, options.device)
        self._tokenizer = loading.load_pretrained(transformers.AutoTokenizer, checkpoint)
        self._tokenizer.padding_side = "left"  # type: ignore[attr-defined]
        if self._tokenizer.pad_token_id is None:  # type: ignore[attr-defined]
            self._tokenizer.pad_token = self._tokenizer.eos_token  # type: ignore[attr-defined]
        dtype = loading.pick_dtype(torch, options.dtype)
        model = loading.load_pretrained(transformers.AutoModelForCausalLM, checkpoint, dtype=dtype)
        loading.check_tokens(checkpoint, self._tokenizer, model)
        self._model = model.to(self._device).eval()  # type: ignore[attr-defined]
        self._threads = thread_count(self._model, options.threads)
        self._batch = options.batch
        self.block = 8 * options.batch
        revision = getattr(self._model.config, "_commit_hash", None)
        identity = loading.checkpoint_identity(checkpoint, revision)
        self.name = name or str(identity["checkpoint"])
        self.identity: Mapping[str, object] = {
            "kind": "llm",
            **identity,
            **loading.run_identity(torch, transformers, self._device),
            "prompt": f"{options.prompt}@{prompts.sha256(options.prompt)[:8]}",
            "thinking": "off where the template has a switch; thoughts are taken off the answer",
            "decoding": _decoding(options),
            "max_new_tokens": options.max_new_tokens or "2 × source + 32",
            "dtype": str(next(self._model.parameters()).dtype),
        }

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """One answer a source; a batch that does not fit the memory is halved and tried again."""
        asked = [self._prompt(source) for source in sources]
        answers: dict[int, Answer] = {}
        queue = loading.batches_by_length([len(ids) for ids in asked], self._batch)
        while queue:
            batch = queue.pop(0)
            try:
                found = self._generate([sources[i] for i in batch], [asked[i] for i in batch])
            except self._torch.OutOfMemoryError:
                if len(batch) == 1:
                    raise
                self._torch.cuda.empty_cache()
                half = self._batch = len(batch) // 2
                queue = [batch[:half], batch[half:], *queue]
                continue
            answers.update(zip(batch, found, strict=True))
        return (answers[index] for index in range(len(sources)))

    def _prompt(self, source: str) -> list[int]:
        chat = prompts.messages(source, self._options.prompt)
        tokenizer = self._tokenizer
        if getattr(tokenizer, "chat_template", None):
            text = tokenizer.apply_chat_template(  # type: ignore[attr-defined]
                chat, add_generation_prompt=True, tokenize=False, **THINKING_OFF
            )
        else:  # a base model: the same words, as plain text
            text = "\n\n".join(message["content"] for message in chat) + "\n"
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False)  # type: ignore[attr-defined]
        return ids

    def _generate(self, sources: Sequence[str], asked: Sequence[list[int]]) -> list[Answer]:
        torch, tokenizer = self._torch, self._tokenizer
        started = time.perf_counter()
        rooms = [self._room(source) for source in sources]
        width = max(len(ids) for ids in asked)
        pad = int(tokenizer.pad_token_id)  # type: ignore[attr-defined]
        rows = [[pad] * (width - len(ids)) + ids for ids in asked]
        mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in asked]
        # Sampling draws from torch's global generator: it is seeded inside and put back after.
        with threads(self._threads), torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(self._options.seed)
            output = self._model.generate(
                input_ids=torch.tensor(rows, device=self._device),
                attention_mask=torch.tensor(mask, device=self._device),
                max_new_tokens=max(rooms),
                pad_token_id=pad,
                **self._sampling(),
            )
        seconds = (time.perf_counter() - started) / len(sources)
        answers = []
        written = output[:, width:].tolist()
        for source, ids, room, new in zip(sources, asked, rooms, written, strict=True):
            # Each row is cut at its own room, so that an answer does not depend on its batch.
            own = [token for token in new[:room] if token != pad]
            raw = str(tokenizer.decode(own, skip_special_tokens=True))  # type: ignore[attr-defined]
            found = extract(raw, source)
            answers.append(Answer(found.text, raw, found.status, len(ids), len(own), seconds))
        return answers

    def _room(self, source: str) -> int:
        if self._options.max_new_tokens:
            return self._options.max_new_tokens
        tokens = self._tokenizer.encode(source, add_special_tokens=False)  # type: ignore[attr-defined]
        return 2 * len(tokens) + 32

    def _sampling(self) -> dict[str, object]:
        if self._options.temperature == 0:
            return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        return {
            "do_sample": True,
            "temperature": self._options.temperature,
            "top_p": self._options.top_p,
            "top_k": 0,
        }


def _decoding(options: LlmOptions) -> str:
    if options.temperature == 0:
        return "greedy"
    drawn = f"temperature {options.temperature}, top_p {options.top_p}, seed {options.seed}"
    return f"sampled, {drawn}, batch {options.batch}"  # one batch draws from one stream


KIND = Kind(
    "llm:PATH",
    "a causal language model through transformers",
    LlmOptions,
    lambda argument, options, _: LlmSystem(argument, options),
)
