"""Language models behind an OpenAI-compatible endpoint that gives log-probabilities of a prompt.

vLLM answers `prompt_logprobs`; other servers have `echo` with `logprobs`. Which of the two is tried
once. The key is read from the environment and goes into the header alone.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from cecdata.common.errors import CecError, InputError, without_userinfo
from cecdata.common.text import escape_controls
from cecdata.lm.language_model import Doubles, Kind, LanguageModel, encodable
from cecdata.models.http import Endpoint, EndpointError, Reply

KEY = "CEC_LM_KEY"  # the environment variable with the endpoint's key
TIMEOUT_S = 60.0  # of a request, from connecting to the last byte
TRIES = 5
CONCURRENT = 8
_REFUSED = {400, 413, 422}  # such as a prompt that is longer than the context
_NO_LOGS = (LookupError, TypeError, AttributeError, ValueError, StopIteration, OverflowError)
_PROBES = "已经", "己经"  # any model tells them apart
_BEGIN = "\n"  # the first token of a prompt has no log-probability
Body = dict[str, object]


class _RefusedError(InputError):
    """A request that the endpoint does not take."""


class EndpointScorer(LanguageModel):
    """A model at a URL, such as `http://localhost:8000/v1` or `http://host/v1#MODEL`.

    Without a name the endpoint's only model is taken. Threads may share it.
    """

    def __init__(
        self, url: str, *, timeout_s: float = TIMEOUT_S, tries: int = TRIES, pause_s: float = 1.0
    ) -> None:
        base, _, model = url.partition("#")
        if without_userinfo(base) != base:
            raise InputError(
                f"the URL must not contain a login: put the key into the environment variable {KEY}"
            )
        self._base = base.rstrip("/")
        self._tries = tries
        self._open = partial(
            Endpoint,
            key=os.environ.get(KEY, "").strip() or None,
            key_variable=KEY,
            timeout_s=timeout_s,
            retries=tries - 1,
            backoff_s=pause_s,
            concurrency=CONCURRENT,
            extra="lm",
        )
        self._completions = self._open(f"{self._base}/completions")
        self._model = self._completions.hide_key(model) or self._find_only_model()
        if "***" in self._model:  # in place of the key
            raise InputError(
                f"the name of the model at {self._base} holds the key in {KEY}, so outputs would "
                "show it: give the model another name"
            )
        self.name = f"{self._base}#{self._model}"
        self.identity = self.name
        self._fields: Body = {}
        self._find_fields()

    def log_prob(self, texts: Sequence[str]) -> Doubles:
        """Return log P of each text in nats, behind a line feed.

        NaN for a text that the endpoint refuses, such as one longer than the model's context.
        """
        texts = [encodable(text) for text in texts]
        distinct = [text for text in dict.fromkeys(texts) if text]
        nats = {"": 0.0}
        for number, future in self._completions.send_all(map(self._make_request, distinct)):
            try:
                nats[distinct[number]] = self._log_prob_of(future)
            except _RefusedError:
                nats[distinct[number]] = math.nan
        return np.array([nats[text] for text in texts])

    def _find_fields(self) -> None:
        """Find the fields of a request that this endpoint answers with log-probabilities."""
        ways: tuple[Body, ...] = ({"prompt_logprobs": 0}, {"echo": True, "logprobs": 0})
        said = ""
        for self._fields in ways:
            try:
                sent = self._completions.send_all(map(self._make_request, _PROBES))
                right, wrong = [self._log_prob_of(future) for _, future in sent]
            except InputError as error:
                said = str(error)
            else:
                if right != wrong:
                    return
                said = f"two different texts got the same number, {right:g}"
        raise InputError(
            f"{self._base} does not return log-probabilities of a prompt, neither "
            f"with `prompt_logprobs` nor with `echo` ({said}): use another server, such as vLLM"
        )

    def _make_request(self, text: str) -> Body:
        return {
            "model": self._model,
            "prompt": _BEGIN + text,
            "max_tokens": 1,
            "temperature": 0,
            **self._fields,
        }

    def _log_prob_of(self, future: Future[Reply]) -> float:
        """Return log P of a text by its reply."""
        answer = self._read_reply(future)
        try:
            logs = _find_prompt_logs(answer)
            nats = math.fsum(logs)
        except _NO_LOGS as error:
            raise InputError(
                f"an answer of {self._base} has no log-probabilities ({error!r})"
            ) from error
        if not logs or any(not math.isfinite(log) or log > 1e-3 for log in logs):
            raise InputError(
                f"an answer of {self._base} holds numbers that are not log-probabilities"
            )
        return nats

    def _find_only_model(self) -> str:
        """Return the name of the endpoint's model; raise InputError where there are several."""
        ((_, future),) = self._open(f"{self._base}/models").send_all([None])
        listed = self._read_reply(future)
        try:
            names = [escape_controls(str(entry["id"])) for entry in listed["data"]]
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{self._base}/models lists no models: add #MODEL to the URL"
            ) from error
        if len(names) != 1:
            some = ", ".join(names[:5]) or "none"
            raise InputError(
                f"{self._base} serves {len(names)} models ({some}): add #MODEL to the URL"
            )
        return names[0]

    def _read_reply(self, future: Future[Reply]) -> Any:
        """Return the JSON of an answer."""
        try:
            reply = future.result()
        except EndpointError as error:
            refusal = _RefusedError if error.status in _REFUSED else InputError
            raise refusal(str(error)) from None
        if reply.filtered:
            raise _RefusedError(f"{self._base}: {reply.trouble}")
        if reply.body is None:
            raise CecError(
                f"{self._base} failed {self._tries} times ({reply.trouble}): run the same command "
                "again when it answers"
            )
        return reply.body


def _find_prompt_logs(answer: Any) -> list[float]:
    """Return the log-probabilities of the prompt's tokens behind the first."""
    choice = answer["choices"][0]
    if (by_token := choice.get("prompt_logprobs")) is not None:
        return [float(next(iter(entry.values()))["logprob"]) for entry in by_token[1:]]
    logs = choice["logprobs"]["token_logprobs"]
    answered = (answer.get("usage") or {}).get("completion_tokens", 1)  # one token is asked for
    return [float(log) for log in logs[1 : len(logs) - int(answered)]]


def _takes_name(name: str) -> bool:
    return name.startswith(("http://", "https://"))


KIND = Kind(_takes_name, EndpointScorer)
