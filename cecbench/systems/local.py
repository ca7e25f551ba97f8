"""Systems that run in this process: causal language models through transformers (Qwen3,
DeepSeek-R1-Distill and their like), and correctors of the BERT family, which predict one character
for each character.

A tagger keeps characters outside the vocabulary and those beyond the longest input unchanged; the
answer's status says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import click

from cecbench.systems.base import Answer, Kind, LocalOptions, PromptOptions
from cecdata.common.settings import option
from cecdata.hanzi.edits import splice
from cecdata.models import causal, hub
from cecdata.models.causal import decode, encode_prompt, find_token_budget, generate
from cecdata.models.hub import identify_checkpoint, run_identity
from cecdata.models.loading import choose_thread_count, run_in_batches, use_threads
from cecdata.models.tagger import Tagged, Tagger


@dataclass(frozen=True)
class LlmOptions(PromptOptions, LocalOptions):
    """Options of a local language model."""


class LlmSystem:
    """Asks a local model with the versioned prompt, batched by length."""

    def __init__(self, checkpoint: str, options: LlmOptions) -> None:
        torch, transformers = hub.import_torch()
        self._policy = causal.load(checkpoint, options.prompt, options.device, options.dtype)
        self._options = options
        self._threads = choose_thread_count(self._policy.model)
        self.block = 8 * options.batch
        model = self._policy.model.eval()
        identity = identify_checkpoint(checkpoint, model)
        self.name = identity["checkpoint"]
        self.identity: Mapping[str, object] = {
            "kind": "llm",
            **identity,
            **run_identity(torch, transformers, str(model.device)),
            **causal.identify_prompt(self._policy),
            "thinking": "off where the template has a switch; thoughts are taken off the answer",
            "decoding": "greedy",
            "max_new_tokens": options.max_new_tokens or "2 × source + 32",
            "dtype": str(model.dtype),
        }

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        asked = [encode_prompt(self._policy, source) for source in sources]

        def run(chosen: list[int]) -> list[Answer]:
            return self._generate_answers([sources[i] for i in chosen], [asked[i] for i in chosen])

        return run_in_batches([len(ids) for ids in asked], self._options.batch, run)

    def _generate_answers(self, sources: Sequence[str], asked: Sequence[list[int]]) -> list[Answer]:
        import torch

        from cecbench.systems.extract import extract_correction

        started = time.perf_counter()
        limit = self._options.max_new_tokens
        budgets = [limit or find_token_budget(self._policy, source) for source in sources]
        with use_threads(self._threads), torch.inference_mode():
            written = generate(self._policy, asked, budgets)
        seconds = (time.perf_counter() - started) / len(sources)
        answers, texts = [], decode(self._policy, written)
        for source, ids, new, raw in zip(sources, asked, written, texts, strict=True):
            extracted = extract_correction(raw, source)
            answers.append(
                Answer(extracted.text, raw, extracted.status, len(ids), len(new), seconds)
            )
        return answers


LLM = Kind(
    "llm:PATH",
    "a causal language model through transformers",
    LlmOptions,
    lambda argument, options, _: LlmSystem(argument, options),
)


@dataclass(frozen=True)
class TaggerOptions(LocalOptions):
    """Options of a tagger."""

    max_length: int = option(
        512,
        "Maximum number of tokens that are read of a sentence; the rest stays unchanged.",
        type=click.IntRange(min=8),
    )
    rephrase: bool = option(
        default=False,
        meaning="Use the input format of ReLM: source, separator, and one mask for each character.",
    )


class TaggerSystem:
    """A corrector whose answers have the length of their sources."""

    block = 2048

    def __init__(self, checkpoint: str, options: TaggerOptions) -> None:
        self.tagger = Tagger(checkpoint, **asdict(options))
        self.identity: Mapping[str, object] = self.tagger.identity
        self.name = str(self.identity["checkpoint"])

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Return one answer for each source, of the source's length."""
        for source, tagged in zip(sources, self.tagger.tag(sources), strict=True):
            yield _to_answer(source, tagged)


def _to_answer(source: str, tagged: Tagged) -> Answer:
    """Return what a tagger changed as an answer; its status says what was not read."""
    encoded = tagged.encoded
    status = "ok"
    if encoded.truncated:
        status = "truncated"
    elif any(
        token is None and not sign.isspace()
        for token, sign in zip(encoded.own, source, strict=True)
    ):
        status = "unknown"
    text = splice(source, ((place, place + 1, new) for place, new, _ in tagged.changes))
    return Answer(text, text, status, len(encoded.tokens), len(source), tagged.seconds)


TAGGER = Kind(
    "tagger:PATH",
    "a BERT-family corrector: folder or hub name",
    TaggerOptions,
    lambda argument, options, _: TaggerSystem(argument, options),
)
