"""Any OpenAI-compatible endpoint. Every answer is kept on disk before it is used: a run that was
killed asks for the rest alone. The key comes from the environment and is written nowhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from cecbench.systems.answer import Answer
from cecbench.systems.extract import Extracted, extract
from cecbench.systems.kind import Context, Kind
from cecbench.systems.options import FROM_1, NOT_NEGATIVE, PromptOptions, option
from cecbench.systems.secrets import holds, refuse_in_body
from cecbench.systems.transport import Endpoint, Reply, RequestOptions
from cecdata.common.codec import decode, encode
from cecdata.common.durable import Journal
from cecdata.common.errors import UsageError, VerificationError
from cecdata.common.strict_json import parse
from cectrain.corrector import prompts

CACHE = "requests.jsonl"
_PATIENCE_S = 2.0  # after an interrupt
EXAMPLE = "api:qwen3@http://127.0.0.1:8000/v1"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _parse_body(_context: object, _option: object, pairs: tuple[str, ...]) -> dict[str, object]:
    """Return the fields of `--body NAME=VALUE`, for click; UsageError for what is no JSON."""
    body: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        try:
            body[name] = parse(value)
        except ValueError:
            equals = ""
        if not equals or not name:  # the text is not repeated: it may be a secret
            raise UsageError("--body: give NAME=VALUE with VALUE in JSON, as in top_k=20")
    return body


@dataclass(frozen=True)
class ApiOptions(PromptOptions, RequestOptions):
    """Options of an endpoint."""

    concurrency: int = option(8, "Number of requests that wait for an answer at once.", type=FROM_1)
    body: Mapping[str, object] = field(
        default_factory=dict,
        metadata={
            "help": "A further field of each request, its value in JSON; null leaves a field out.",
            "multiple": True,
            "metavar": "NAME=VALUE",
            "callback": _parse_body,
        },
    )
    price_in: float = option(0.0, "Price of a million tokens that are read.", type=NOT_NEGATIVE)
    price_out: float = option(0.0, "Price of a million tokens that are written.", type=NOT_NEGATIVE)


class ApiSystem:
    """MODEL@URL: chat completions, several at once, answers in the order of the sources.

    state: the folder of the answers that a killed run needs again; None keeps none.
    """

    block = 512

    def __init__(self, rest: str, options: ApiOptions, state: Path | None = None) -> None:
        model, base = parted(rest)
        prompts.prompt(options.prompt)
        key = _key(base, options)
        refuse_in_body(options.body, key)
        _refuse_in_name(model, base, key)
        self.name = model.rsplit("/", 1)[-1]
        self._model = model
        self._options = options
        self._state = state
        self._endpoint = Endpoint(
            _completions(base),
            key,
            options,
            lambda body: _content(body) is not None,
        )
        self._cache: Journal | None = None
        self.identity: Mapping[str, object] = {
            "kind": "api",
            "model": model,
            "url": base,
            "prompt": f"{options.prompt}@{prompts.sha256(options.prompt)[:8]}",
            # Read off a request, so that no field that is ever sent can be forgotten here.
            "request": {k: v for k, v in self._body("").items() if k not in ("model", "messages")},
            "body": dict(options.body),  # a null leaves a field out; these may replace any other
        }

    @property
    def troubles(self) -> Mapping[str, int]:
        """How often requests failed and were sent again, by reason."""
        return dict(self._endpoint.troubles)

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """Return the price of so many tokens; None where no price was given."""
        options = self._options
        if not options.price_in and not options.price_out:
            return None
        return (tokens_in * options.price_in + tokens_out * options.price_out) / 1e6

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """One answer a source; equal sources are asked once. An EndpointError ends the run."""
        self._open()
        self._endpoint.stop.clear()
        pool = ThreadPoolExecutor(max(1, self._options.concurrency), "cecbench-api")
        asked: dict[str, Future[Answer]] = {}
        try:
            for source in sources:
                if source not in asked:
                    asked[source] = pool.submit(self._answer, source)
            for source in sources:
                yield asked[source].result()
        finally:
            # Threads that wait for a turn give up. Answers under way are still kept if they come
            # soon: nobody who interrupts a run waits for an endpoint that does not answer.
            self._endpoint.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            wait([f for f in asked.values() if not f.cancelled()], _PATIENCE_S)

    def _open(self) -> None:
        if self._state is not None and self._cache is None:
            self._cache = Journal(self._state / CACHE, self._state)

    def _answer(self, source: str) -> Answer:
        body = self._body(source)
        name = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        kept = self._cache.get("reply", name) if self._cache else None
        if kept is not None:
            return self._read(source, *_kept(kept.facts, f"{self._state}/{CACHE}"))
        started = time.perf_counter()
        came = self._endpoint.post(body, name)
        seconds = time.perf_counter() - started
        facts = self._facts(came)
        if facts is None:
            return Answer(source, came.trouble, "failed", seconds=seconds)
        if self._cache:
            self._cache.record("reply", name, reply=encode(facts), seconds=seconds)
        return self._read(source, facts, seconds)

    def _body(self, source: str) -> dict[str, object]:
        options = self._options
        body: dict[str, object] = {
            "model": self._model,
            "messages": prompts.messages(source, options.prompt),
            "temperature": options.temperature,
            "stream": False,
        }
        if options.temperature > 0:
            body |= {"top_p": options.top_p, "seed": options.seed}
        if options.max_new_tokens:
            body["max_tokens"] = options.max_new_tokens
        # A field set to null is left out: some endpoints refuse `temperature`, for example.
        return {k: v for k, v in {**body, **options.body}.items() if v is not None}

    def _facts(self, reply: Reply) -> _Facts | None:
        """What is kept of a reply; None where it holds no answer at all."""
        if reply.filtered:
            return _Facts(self._endpoint.hidden(reply.trouble), "filtered", (0, 0))
        if reply.body is None:
            return None
        found = _content(reply.body)
        assert found is not None  # the endpoint was told what an answer is
        content, finish = found
        usage = reply.body.get("usage")
        counted = usage if isinstance(usage, Mapping) else {}
        tokens = (_whole(counted.get(key)) for key in ("prompt_tokens", "completion_tokens"))
        hidden = self._endpoint.hidden
        return _Facts(hidden(content), hidden(finish), tuple(tokens))

    def _read(self, source: str, facts: _Facts, seconds: float) -> Answer:
        if facts.finish in ("filtered", "content_filter"):
            found = Extracted(source, "refusal")
        elif facts.finish == "length":  # cut off: half a sentence is no correction
            found = Extracted(source, "unparsable")
        else:
            found = extract(facts.raw, source)
        read, written = facts.tokens
        return Answer(found.text, facts.raw, found.status, read, written, seconds)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What is kept of a reply; tokens read and written."""

    raw: str
    finish: str
    tokens: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.tokens) != 2:
            raise ValueError(f"{len(self.tokens)} counts of tokens, two are wanted")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A line of the cache."""

    reply: _Facts
    seconds: float


def _kept(facts: Mapping[str, object], where: str) -> tuple[_Facts, float]:
    try:
        found = decode(_Kept, dict(facts), where)  # type: ignore[arg-type]  # what JSON held
    except ValueError as error:
        raise VerificationError(
            f"{where}: an answer kept there cannot be read ({error}): another version wrote it. "
            "Remove the file and the same command asks again"
        ) from error
    return found.reply, found.seconds


def _content(body: Mapping[str, object]) -> tuple[str, str] | None:
    """The text and the finish reason; None for JSON that is no chat completion."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None
    message = choices[0].get("message")
    if not isinstance(message, Mapping):
        return None
    content = message.get("content")
    if isinstance(content, list):  # some gateways give parts
        parts = (part.get("text", "") for part in content if isinstance(part, Mapping))
        content = "".join(str(part) for part in parts)
    finish = str(choices[0].get("finish_reason") or "stop")
    return (content if isinstance(content, str) else ""), finish


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def parted(rest: str) -> tuple[str, str]:
    """Model and URL; UsageError, which repeats neither, where one is missing or could leak."""
    found = re.fullmatch(r"(?P<model>.+?)@(?P<url>https?://.+)", rest, re.IGNORECASE | re.DOTALL)
    try:
        parts = urllib.parse.urlsplit(found["url"] if found else "")
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket without its fellow, a port that is no number
        usable = False
    if found is None or not usable or "://" in found["model"]:
        raise UsageError(
            f"--system api:…: give it as api:MODEL@URL, such as {EXAMPLE}; what was given is not "
            "repeated here, as it may hold a password"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            "the URL of an endpoint must not hold a user, a password, a query or a fragment: "
            "outputs name the URL, and a key belongs in the environment (--key-variable says "
            "which variable)"
        )
    if not re.fullmatch(r"[!-~]+", found["url"]):  # every request would fail, and be tried again
        raise UsageError(
            "the URL of an endpoint must not hold a space, a control character or a character "
            "outside ASCII: they are written as %20 and the like, a host's as xn--…"
        )
    return found["model"], found["url"].rstrip("/")


def _completions(base: str) -> str:
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"


def _key(base: str, options: ApiOptions) -> str | None:
    variable = options.key_variable
    if not re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII):  # not repeated: it may be the key
        raise UsageError(
            "--key-variable names an environment variable, as in OPENAI_API_KEY; what was given is "
            "no such name. The key itself must not stand on the command line"
        )
    key = os.environ.get(variable, "").strip() or None
    if key is None and urllib.parse.urlsplit(base).hostname not in LOOPBACK:
        raise UsageError(
            f"{base} needs a key: set the environment variable {variable}, or name "
            "another one with --key-variable"
        )
    if key is not None and not re.fullmatch(r"[!-~]+", key):
        raise UsageError(
            f"the environment variable {variable} holds what no header can carry (a space, a line "
            "end, or a character outside ASCII): was more than the key copied?"
        )
    return key


def _refuse_in_name(model: str, base: str, key: str | None) -> None:
    if holds(model, key) or holds(base, key):
        raise UsageError(
            "the key stands in the model's name or in the URL, which outputs name: it belongs in "
            "the environment alone (--key-variable says which variable)"
        )


def _make(argument: str, options: ApiOptions, context: Context) -> ApiSystem:
    return ApiSystem(argument, options, context.state)


KIND = Kind("api:MODEL@URL", "an OpenAI-compatible endpoint", ApiOptions, _make, check=parted)
