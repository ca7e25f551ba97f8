"""What a system may be told on the command line; every field with its default and its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cectrain.corrector import prompts


@dataclass(frozen=True, slots=True)
class SystemOptions:
    """One record for all kinds of systems; each takes what concerns it."""

    name: str = ""  # what the system is called in results; "": what it calls itself
    prompt: str = prompts.DEFAULT
    batch: int = 16  # sentences a forward pass, local models
    device: str = "auto"  # auto: the first GPU, else the processor
    dtype: str = "auto"  # of the weights: auto (as stored), float32, bfloat16, float16
    max_length: int = 512  # tokens a tagger reads
    rephrase: bool = False  # ReLM's form: source, separator, one mask a character
    max_new_tokens: int = 0  # 0: twice the source's tokens and 32 more
    temperature: float = 0.0  # 0: greedy
    top_p: float = 1.0
    seed: int = 42  # of sampling and of the jitter between retries
    concurrency: int = 8  # requests under way at once
    requests_per_minute: float = 0.0  # 0: no limit of our own
    timeout_s: float = 120.0  # one request, from connecting to the last byte
    retries: int = 6  # after the first try
    backoff_s: float = 1.0  # before the first retry; doubles each time
    backoff_max_s: float = 60.0
    key_variable: str = "OPENAI_API_KEY"  # the environment variable that holds the key
    price_in: float = 0.0  # currency units a million tokens read
    price_out: float = 0.0  # a million tokens written
    body: Mapping[str, object] = field(default_factory=dict)  # further fields of each request
    partial: bool = False  # a predictions file may lack rows
    state: Path | None = None  # where the request cache goes
