"""Endpoints as scorers, on a loopback server that is right, slow, lying or down."""

from __future__ import annotations

import contextlib
import json
import logging
import time

import loopback
import numpy as np
import pytest

from cecdata.common.errors import CecError, InputError, UsageError
from cecdata.lm import open_scorer

pytest.importorskip("httpx")
from cecdata.lm.endpoint import EndpointScorer

SECRET = "sk-very-secret-key-123"


def weight(sign):
    return -1.0 - ord(sign) % 7 / 10


def by_vllm(body):
    tokens = [{str(ord(sign)): {"logprob": weight(sign), "rank": 1}} for sign in body["prompt"]]
    return {"choices": [{"text": "x", "prompt_logprobs": [None, *tokens[1:]]}]}


def by_echo(body):
    if "echo" not in body:
        return {"choices": [{"text": "x", "logprobs": None}]}
    logs = [None, *(weight(sign) for sign in body["prompt"][1:]), -0.1]
    return {
        "choices": [{"text": "x", "logprobs": {"token_logprobs": logs}}],
        "usage": {"completion_tokens": 1},
    }


class Handler(loopback.Handler):
    """Answers completions by `server.answer`: an object, or a status and bytes."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked[body["prompt"]] += 1
        self.server.headers_seen.append(dict(self.headers))
        answer = self.server.answer(body)
        if isinstance(answer, tuple):
            self.raw(answer[1], answer[0])
        else:
            self.reply(answer)


@pytest.fixture
def serve(monkeypatch):
    """A function that starts a server."""
    monkeypatch.delenv("CEC_LM_KEY", raising=False)
    with contextlib.ExitStack() as started:

        def start(answer):
            server = started.enter_context(loopback.serving(handler=Handler))
            server.answer = answer
            server.get = lambda handler: handler.reply({"data": [{"id": "tiny"}]})
            return server

        yield start


def opened(server, **settings):
    return EndpointScorer(server.url, **{"pause_s": 0.01, "tries": 3, **settings})


@pytest.mark.parametrize("answer", [by_vllm, by_echo])
def test_log_prob_is_the_sum_over_the_prompt(serve, answer):
    """By `prompt_logprobs` or by `echo`; the first token, a line feed, does not count."""
    server = serve(answer)
    scorer = open_scorer(server.url)
    texts = ["他来了。", "", "他", "他来了。"]
    expected = [sum(map(weight, text)) for text in texts]
    assert scorer.log_prob(texts).tolist() == pytest.approx(expected)
    changes = [(0, 1, "她"), (1, 2, "")]
    ratios = [weight("她") - weight("他"), -weight("来")]
    assert scorer.log_ratios("他来了。", changes).tolist() == pytest.approx(ratios)
    assert scorer.name == f"{server.url}#tiny"
    server.get = lambda handler: handler.reply({"data": [{"id": "\x1b[3m"}]})
    assert open_scorer(server.url).name == f"{server.url}#\\x1b[3m"  # no terminal obeys it


def test_a_server_may_leave_out_its_usage(serve):
    """One token is asked for, and one was answered."""

    def answer(body):
        return {name: value for name, value in by_echo(body).items() if name != "usage"}

    assert opened(serve(answer)).log_prob(["他来了。"])[0] == pytest.approx(
        sum(map(weight, "他来了。"))
    )


def test_numbers_that_say_nothing_are_refused(serve):
    """Two different texts must not be equally likely."""

    def answer(body):
        logs = [None, *(0.0 for _ in body["prompt"])]
        return {"choices": [{"text": "x", "logprobs": {"token_logprobs": logs}}]}

    with pytest.raises(InputError, match="two different texts got the same number, 0"):
        opened(serve(answer))


def test_a_model_that_is_named_after_the_key_is_refused(serve, monkeypatch):
    """By the endpoint or in the URL; no message repeats the key."""
    monkeypatch.setenv("CEC_LM_KEY", SECRET)
    server = serve(by_vllm)
    server.get = lambda handler: handler.reply({"data": [{"id": f"m-{SECRET}"}]})
    for url in (server.url, f"{server.url}#m-{SECRET}", f"{server.url}/{SECRET}#m"):
        with pytest.raises(CecError, match="CEC_LM_KEY") as caught:
            EndpointScorer(url)
        assert SECRET not in str(caught.value)


def test_a_text_is_asked_once(serve):
    """However often it occurs in a call."""
    server = serve(by_vllm)
    first, *_, last = opened(server).log_prob(["他来了。", "他", "他来了。"])
    assert first == last
    assert server.asked["\n他来了。"] == 1


def test_an_endpoint_that_fails_in_the_middle_is_an_error(serve):
    """It says how often it was asked, and what to do."""
    server = serve(by_vllm)
    scorer = opened(server)
    server.answer = lambda body: (503, b"") if "9" in body["prompt"] else by_vllm(body)
    with pytest.raises(CecError, match=r"failed 3 times.*503.*run the same command again"):
        scorer.log_prob([f"第{n}句" for n in range(10)])


def test_a_passing_fault_is_tried_again(serve):
    """A server that is busy, or answers no JSON or without an end, is asked again."""
    endless = b" " * (9 << 20)
    faults = iter([(429, b"busy"), (200, b"<html>"), (500, b""), (200, endless)])
    server = serve(lambda body: next(faults, None) or by_vllm(body))
    assert np.isfinite(opened(server, tries=5).log_prob(["他"])).all()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _: {"choices": [{"message": {"content": "好"}}]}, "no log-probabilities"),
        (lambda _: {"choices": []}, "no log-probabilities"),
        (lambda _: {"choices": [{"prompt_logprobs": [None, {"1": {"logprob": 3.0}}]}]}, "numbers"),
        (lambda _: {"choices": [{"prompt_logprobs": [None]}]}, "numbers"),
        (
            lambda _: {"choices": [{"prompt_logprobs": [0, {"": {"logprob": -(10**390)}}]}]},
            "no log",
        ),
        (
            lambda _: {"choices": [{"prompt_logprobs": [0, *[{"": {"logprob": -1e308}}] * 2]}]},
            "no l",
        ),
        (lambda _: {"choices": [{"prompt_logprobs": [None, {}]}]}, "no log-probabilities"),
        (lambda _: (401, b"no"), "HTTP 401.*CEC_LM_KEY"),
    ],
    ids=["chat", "empty", "positive", "none", "large", "large sum", "no token", "key"],
)
def test_an_endpoint_that_cannot_or_lies_is_refused(serve, answer, message):
    """The message says what is missing, and by which two ways it was asked for."""
    with pytest.raises(InputError, match=message):
        opened(serve(answer))


def test_a_text_that_is_refused_is_not_judged(serve):
    """One beyond the model's context has NaN; a lone surrogate is sent."""
    server = serve(lambda body: (400, b"too long") if len(body["prompt"]) > 4 else by_vllm(body))
    scorer = opened(server)
    assert np.isnan(scorer.log_prob(["他", "他来了。", "\ud800"])).tolist() == [0, 1, 0]


def test_a_slow_endpoint_has_a_deadline(serve):
    """A request ends after its time, and is tried as often as told."""

    def slow(_):
        time.sleep(1)
        return {}

    began = time.monotonic()
    with pytest.raises(CecError, match="failed 2 times"):
        opened(serve(slow), timeout_s=0.2, tries=2)
    assert time.monotonic() - began < 3


def test_the_key_is_in_the_header_alone(serve, monkeypatch, caplog):
    """Neither a message nor a log holds it, where it is echoed, too."""
    monkeypatch.setenv("CEC_LM_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    server = serve(by_vllm)
    scorer = opened(server)
    scorer.log_prob(["他"])
    assert {seen.get("Authorization") for seen in server.headers_seen} == {f"Bearer {SECRET}"}
    assert SECRET not in scorer.identity + caplog.text
    with pytest.raises(InputError) as told:
        opened(serve(lambda _: (400, f"bad key {SECRET}".encode())))
    assert SECRET not in str(told.value)
    with pytest.raises(InputError, match="login"):
        open_scorer("http://me:secret@127.0.0.1:9/v1")
    with pytest.raises(UsageError, match="is not a URL"):
        open_scorer("http://[::1/v1")
    monkeypatch.setenv("CEC_LM_KEY", f"{SECRET}\nx")
    with pytest.raises(UsageError, match="the variable CEC_LM_KEY must hold a key") as told:
        open_scorer(server.url)
    assert SECRET not in str(told.value)
