"""Systems behind an OpenAI-compatible endpoint.

Each answer is on disk before it is used, so that a killed run asks only for the rest. The key comes
from the environment and is written nowhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import astuple, dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cecbench.systems.base import FROM_0, FROM_1, NOT_NEGATIVE, SECONDS, Answer, Kind, PromptOptions
from cecdata.common.codec import parse
from cecdata.common.durable import Journal
from cecdata.common.errors import SHORTEST, UsageError, hide_key
from cecdata.common.settings import option
from cecdata.models import prompts
from cecdata.models.http import Endpoint, Reply

CACHE = "requests.jsonl"
_PATIENCE_S = 2.0  # after an interrupt
EXAMPLE = "api:qwen3@http://127.0.0.1:8000/v1"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _parse_body(_context: object, _option: object, pairs: tuple[str, ...]) -> dict[str, object]:
    """Return the fields of `--body NAME=VALUE`, for click; raise UsageError if one is not JSON."""
    body: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        try:
            body[name] = parse(value)
        except ValueError:
            equals = ""
        if not equals or not name:  # the text is not repeated: it may be a secret
            raise UsageError("--body must be NAME=VALUE with VALUE in JSON, as in top_k=20")
    return body


@dataclass(frozen=True)
class ApiOptions(PromptOptions):
    """Options of an endpoint."""

    key_variable: str = option(
        "OPENAI_API_KEY", "Name of the environment variable that holds the endpoint's key."
    )
    timeout_s: float = option(
        120.0,
        "Time limit of a request in seconds, from connecting to the last byte of the answer.",
        type=SECONDS,
    )
    retries: int = option(6, "Number of times that a failed request is sent again.", type=FROM_0)
    backoff_s: float = option(
        1.0,
        "Pause before a request is sent again, in seconds; it doubles each time, up to a minute.",
        type=NOT_NEGATIVE,
    )
    concurrency: int = option(8, "Number of concurrent requests.", type=FROM_1)
    body: Mapping[str, object] = field(
        default_factory=dict,
        metadata={
            "help": "Field to add to each request, with a JSON value; null removes the field.",
            "multiple": True,
            "metavar": "NAME=VALUE",
            "callback": _parse_body,
        },
    )


class ApiSystem:
    """Chat completions of MODEL@URL, with several requests at once.

    state: the folder of the answers that a killed run needs again; None keeps none.
    """

    block = 512

    def __init__(self, rest: str, options: ApiOptions, state: Path | None = None) -> None:
        model, base = split_model_and_url(rest)
        prompts.find_prompt(options.prompt)
        key = _read_key(base, options)
        if any(key and len(key) >= SHORTEST and key in unquote(text) for text in (model, base)):
            raise UsageError(
                "the name of the model or the URL contains the key, so outputs would show it: set "
                "the key only in the environment variable of --key-variable"
            )
        self.name = model.rsplit("/", 1)[-1]
        self._model = model
        self._options = options
        self._state = state
        self._endpoint = Endpoint(
            f"{base.removesuffix('/chat/completions')}/chat/completions",
            key,
            options.key_variable,
            timeout_s=options.timeout_s,
            retries=options.retries,
            backoff_s=options.backoff_s,
            concurrency=options.concurrency,
            extra="bench",
            hint="--body NAME=VALUE changes a field of the request; a model without a system role "
            "needs --prompt '…{sentence}'",
            is_answer=lambda body: _find_content(body) is not None,
        )
        self._cache: Journal | None = None
        self.identity: Mapping[str, object] = {
            "kind": "api",
            "model": model,
            "url": base,
            "prompt": f"{options.prompt}@{prompts.hash_prompt(options.prompt)[:8]}",
            # Taken from a request, so that no field that is sent can be missing here.
            "request": {
                name: value
                for name, value in self._make_request("").items()
                if name not in ("model", "messages", *options.body)
            },
            "body": _hide_texts(options.body, key),  # may replace any other field
        }

    @property
    def troubles(self) -> Mapping[str, int]:
        """The number of requests that failed and were sent again, by reason."""
        return dict(self._endpoint.troubles)

    def correct(self, sources: Sequence[str]) -> Iterator[Answer]:
        """Yield one answer for each source; equal sources are asked once.

        Raises EndpointError where the endpoint refuses requests of this kind.
        """
        if self._state is not None and self._cache is None:
            self._cache = Journal(self._state / CACHE)
        self._endpoint.stop.clear()
        pool = ThreadPoolExecutor(max(1, self._options.concurrency), "cecbench-api")
        answers: dict[str, Future[Answer]] = {}
        try:
            for source in sources:
                if source not in answers:
                    answers[source] = pool.submit(self._answer, source)
            for source in sources:
                yield answers[source].result()
        finally:
            # Threads that wait for a turn give up. Answers that arrive soon are still kept, but an
            # interrupted run does not wait for an endpoint that does not answer.
            self._endpoint.stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            wait([f for f in answers.values() if not f.cancelled()], _PATIENCE_S)

    def _answer(self, source: str) -> Answer:
        """Return the answer that is on disk, or else ask the endpoint, and keep what it answers."""
        body = self._make_request(source)
        name = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        entry = self._cache.get("reply", name) if self._cache else None
        if entry is not None:
            return Answer(*entry["answer"])
        started = time.perf_counter()
        reply = self._endpoint.send(body, name)
        answer = _read_reply(source, reply, time.perf_counter() - started)
        if self._cache and answer.status != "failed":
            self._cache.record("reply", name, answer=astuple(answer))
        return answer

    def _make_request(self, source: str) -> dict[str, object]:
        options = self._options
        body: dict[str, object] = {
            "model": self._model,
            "messages": prompts.make_messages(source, options.prompt),
            "temperature": 0,
            "stream": False,
        }
        if options.max_new_tokens:
            body["max_tokens"] = options.max_new_tokens
        # A field set to null is left out: some endpoints refuse `temperature`, for example.
        return {k: v for k, v in {**body, **options.body}.items() if v is not None}


def _hide_texts(value: object, key: str | None) -> object:
    """Return a value of --body for outputs: a digest for each text, because it may be a secret."""
    if isinstance(value, str):
        return f"sha256:{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
    if isinstance(value, Mapping):
        return {hide_key(str(name), key): _hide_texts(inner, key) for name, inner in value.items()}
    return [_hide_texts(item, key) for item in value] if isinstance(value, list | tuple) else value


def _read_reply(source: str, reply: Reply, seconds: float) -> Answer:
    """Return the answer in a reply; its status is `failed` where the reply holds none."""
    from cecbench.systems.extract import Extracted, extract_correction

    if reply.filtered:
        return Answer(source, reply.trouble, "refusal", seconds=seconds)
    body = reply.body or {}
    content = _find_content(body)
    if content is None:
        return Answer(source, reply.trouble, "failed", seconds=seconds)
    raw, finish = content
    if finish == "content_filter":
        extracted = Extracted(source, "refusal")
    elif finish == "length":  # cut off: half a sentence is no correction
        extracted = Extracted(source, "unparsable")
    else:
        extracted = extract_correction(raw, source)
    usage = body.get("usage")
    counted = usage if isinstance(usage, Mapping) else {}
    read, written = (_to_count(counted.get(f"{key}_tokens")) for key in ("prompt", "completion"))
    return Answer(extracted.text, raw, extracted.status, read, written, seconds)


def _find_content(body: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the text and the finish reason; None for JSON that is no chat completion."""
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


def _to_count(value: object) -> int:
    """Return a number of tokens; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def split_model_and_url(rest: str) -> tuple[str, str]:
    """Return model and URL.

    Raises UsageError, which repeats neither, if one is missing or holds a secret.
    """
    match = re.fullmatch(r"(?P<model>.+?)@(?P<url>https?://.+)", rest, re.IGNORECASE | re.DOTALL)
    try:
        parts = urlsplit(match["url"] if match else "")
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:  # an unbalanced bracket, or a port that is no number
        usable = False
    if match is None or not usable or "://" in match["model"]:
        raise UsageError(
            f"--system must be api:MODEL@URL, such as {EXAMPLE}. The given value "
            "is not shown, because it may contain a password"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            "the URL of an endpoint must not contain a user, a password, a query or a fragment, "
            "because outputs show the URL: set the key in the environment variable of "
            "--key-variable"
        )
    if not re.fullmatch(r"[!-~]+", match["url"]):  # each request would fail and be tried again
        raise UsageError(
            "the URL of an endpoint must not contain spaces, control characters or characters "
            "outside ASCII: write them as %20 and so on, and in a host name as xn--…"
        )
    return match["model"], match["url"].rstrip("/")


def _read_key(base: str, options: ApiOptions) -> str | None:
    """Return the key in the environment; None without one, for an endpoint on this machine."""
    variable = options.key_variable
    if not re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII):
        # The message does not repeat it: it may be the key.
        raise UsageError(
            "--key-variable must be the name of an environment variable, such as OPENAI_API_KEY. "
            "The key itself must not be on the command line"
        )
    key = os.environ.get(variable, "").strip() or None
    if key is None and urlsplit(base).hostname not in LOOPBACK:
        raise UsageError(
            f"{base} needs a key: set the environment variable {variable}, or name "
            "another one with --key-variable"
        )
    return key


KIND = Kind(
    "api:MODEL@URL",
    "an OpenAI-compatible endpoint",
    ApiOptions,
    lambda argument, options, context: ApiSystem(argument, options, context.state),
    check=split_model_and_url,
)
