"""Faults of endpoints, over real sockets on the loopback interface."""

import json
import time
import tracemalloc
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path

import loopback
import pytest
from loopback import corrected, says, serving, status

from cecbench.commands.run import describe_parts
from cecbench.run import Settings, evaluate
from cecbench.systems.api import ApiOptions, ApiSystem
from cecdata.common.errors import CecError, RefusedError, UsageError
from cecdata.models.http import EndpointError, _retry_after

SOURCES = ["他己经来了。", "明天在见。", "天气很好。", "我己经吃过了。"]
QUICK = {"backoff_s": 0.01, "timeout_s": 30.0, "retries": 3}
FAST = ApiOptions(**QUICK)


def ask(server, sources=SOURCES, options=FAST):
    system = ApiSystem(f"tiny@{server.url}", options)
    return system, list(system.correct(sources))


def once(act):
    return lambda _, nth: act if nth == 1 else None


def test_a_good_endpoint_answers_in_order_with_tokens():
    """Answers come in the order of the sources, in whatever order they arrive."""
    with serving() as server:
        _, answers = ask(server)
    assert [a.text for a in answers] == [corrected(s) for s in SOURCES]
    assert {a.status for a in answers} == {"ok"}
    assert [(a.tokens_in, a.tokens_out) for a in answers] == [(20, 7)] * 4


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (status(429), "HTTP 429"),
        (status(429, Retry_After="0"), "HTTP 429"),
        (status(500), "HTTP 500"),
        (status(503), "HTTP 503"),
        (loopback.half_json, "not JSON"),
        (loopback.cut_off, "the connection broke (RemoteProtocolError)"),
        (loopback.empty_body, "an empty body"),
        (loopback.no_choices, "JSON without an answer"),
        (loopback.Handler.hang_up, "the connection broke (RemoteProtocolError)"),
    ],
)
def test_a_passing_trouble_is_tried_again_and_counted(act, named):
    """After a temporary fault the request is sent again; the fault is counted by its name."""
    with serving(once(act)) as server:
        system, answers = ask(server)
    assert [a.text for a in answers] == [corrected(s) for s in SOURCES]
    assert system.troubles == {named: len(SOURCES)}
    assert all(n == 2 for n in server.asked.values())


@pytest.mark.parametrize(
    "act",
    [
        loopback.sleeps(1.0),
        loopback.trickles,
        loopback.drips_headers,
        loopback.drips_status,
        loopback.always_continues,
    ],
    ids=["silence", "body", "headers", "status", "continue"],
)
def test_a_request_has_a_deadline_of_its_own(act):
    """A request ends at its deadline if the endpoint is silent, or sends the status line, a header
    or the body byte by byte, or `100 Continue` for ever.
    """
    with serving(once(act)) as server:
        started = time.monotonic()
        system, answers = ask(server, SOURCES[:1], replace(FAST, timeout_s=0.3))
        took = time.monotonic() - started
    assert answers[0].text == corrected(SOURCES[0])
    assert system.troubles == {"timed out": 1}
    assert took < 2.0


@pytest.mark.parametrize("act", [loopback.endless, loopback.endless_chunks])
def test_an_answer_without_an_end_is_cut_off(act):
    """At most 8 MiB of an answer are read; then the request is sent again."""
    with serving(once(act)) as server:
        tracemalloc.start()
        try:
            system, answers = ask(server, SOURCES[:1])
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert answers[0].text == corrected(SOURCES[0])
    assert list(system.troubles) == ["an answer of more than 8 MiB"]
    assert peak < 64 << 20


def test_what_an_endpoint_says_cannot_command_the_terminal():
    """Control characters in the text of an error are replaced by spaces."""
    evil = b'{"error": "\x1b]0;pwn\x07 \xc2\x9b31m \x7f"}'
    with (
        serving(lambda *_: lambda handler: handler.raw(evil, 400)) as server,
        pytest.raises(EndpointError, match="pwn") as caught,
    ):
        ask(server, SOURCES[:1])
    assert all(sign.isprintable() for sign in str(caught.value))


def test_retry_after_is_kept_by_all_threads():
    """After a 429 with Retry-After no thread starts a request before that time has passed."""
    busy = status(429, Retry_After="0.4")
    with serving(
        lambda sentence, nth: busy if (sentence, nth) == (SOURCES[0], 1) else None
    ) as server:
        ask(server, SOURCES, replace(FAST, concurrency=2))
    early = [moment - server.times[0] for moment in server.times if moment - server.times[0] < 0.35]
    assert len(early) <= 3  # the refused one, and what was under way when it came back
    assert len(server.times) == len(SOURCES) + 1


def test_a_run_that_ends_does_not_wait_for_those_who_wait():
    """An error that ends the run also ends the threads that wait for Retry-After."""

    def misbehave(sentence, _):
        if sentence == SOURCES[0]:
            return status(429, Retry_After="60")
        time.sleep(0.2)
        return status(401)

    with serving(misbehave) as server:
        started = time.monotonic()
        with pytest.raises(EndpointError):
            list(ApiSystem(f"tiny@{server.url}", FAST).correct(SOURCES[1::-1]))
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("excluded", ["127.0.0.1", "10.0.0.1, 127.0.0.1", "*"])
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9", "what?"])
def test_an_endpoint_that_no_proxy_lists_is_asked_directly(monkeypatch, proxy, excluded):
    """By its address, whatever the proxy is."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", excluded)
    with serving() as server:
        assert [a.status for a in ask(server)[1]] == ["ok"] * 4


def test_a_request_that_went_to_a_proxy_is_named_as_such(monkeypatch):
    """Where it fails, what to do is in the message."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving() as proxy, serving() as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        proxy.get, proxy.misbehave = status(403), lambda *_: status(403)
        with pytest.raises(EndpointError, match=r"403 through the proxy of.*NO_PROXY"):
            ask(server)
        monkeypatch.setenv("HTTP_PROXY", "127.0.0.1:9")
        system, _ = ask(server, SOURCES[:1], replace(FAST, retries=0))
    (trouble,) = system.troubles
    assert trouble.startswith("no connection (ConnectError) through the proxy of the environment: ")


@pytest.mark.skipif(find_spec("socksio") is not None, reason="socksio is installed")
def test_a_socks_proxy_without_its_package_says_what_helps(monkeypatch):
    """The package, or the host for NO_PROXY."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("all_proxy", "socks5://me:pw-1@127.0.0.1:9")
    with pytest.raises(UsageError, match=r"'httpx\[socks\]'.*NO_PROXY") as caught:
        ApiSystem("tiny@http://127.0.0.1:9/v1", FAST)
    assert "pw-1" not in str(caught.value)


def test_connections_are_kept():
    """Requests one after another use one connection."""

    class Keeping(loopback.Handler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.asked[self.client_address] += 1
            data = json.dumps(loopback.completion(body["messages"][-1]["content"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with serving(handler=Keeping) as server:
        system = ApiSystem(f"tiny@{server.url}", replace(FAST, concurrency=1))
        list(system.correct(SOURCES))
        list(system.correct(SOURCES))
        assert list(server.asked.values()) == [8]
        del system


@pytest.mark.parametrize("proxy", ["socks9://me:pw-1@host:1", "http://me:pw-1@host:port"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_password(monkeypatch, proxy):
    """The error for a proxy from the environment names the variables, not its address."""
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(UsageError, match=r"ALL_PROXY.*NO_PROXY") as caught:
        ApiSystem("tiny@http://127.0.0.1:9/v1", FAST)
    assert "pw-1" not in str(caught.value)


def test_retry_after_reads_dates_too():
    """The header may hold an HTTP date; one that has passed means now."""
    assert _retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0


def test_a_sentence_without_an_answer_is_named_allowed_and_asked_again(tmp_path):
    """After the last retry the error names the row. With --allow-missing its source is scored and
    counted; without it the same command asks for it alone.
    """
    broken = [True]

    def misbehave(sentence, _):
        return status(500) if broken[0] and sentence == SOURCES[1] else None

    with serving(misbehave) as server:
        settings = _settings(tmp_path, server)
        with pytest.raises(CecError, match=r"1 of 4 sentences have no answer.*HTTP 500.*row-2"):
            evaluate(settings)
        assert server.asked[SOURCES[1]] == FAST.retries + 1
        elsewhere = replace(settings, out=tmp_path / "other")
        values = evaluate(replace(elsewhere, allow_missing=True))
        assert values["answers"] == {"ok": 3, "failed": 1}
        assert values["unanswered"] == 1
        assert values["retried"] == {"HTTP 500": FAST.retries + 1}
        assert any(f"{FAST.retries + 1} × HTTP 500" in line for line in describe_parts(values))
        assert values["counts_tp_pred_gold"]["S_C"] == [2, 2, 3]
        with pytest.raises(CecError, match="1 of 4 sentences have no answer"):
            evaluate(elsewhere)
        broken[0] = False
        assert evaluate(elsewhere)["answers"] == {"ok": 4}
        values = evaluate(settings)
    assert server.asked[SOURCES[0]] == 2  # once for each folder
    assert values["answers"] == {"ok": 4}
    assert values["S_C_f1"] == 100.0


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("抱歉，我无法处理这个请求。", "refusal"),
        (
            "这句话写得非常好，语言流畅，情感真挚，值得大家认真学习和借鉴，没有什么需要调整的。",
            "chatter",
        ),
        ("", "empty"),
        ("<think>先看看这句话有没有错", "unparsable"),
    ],
)
def test_what_is_no_correction_is_named_and_counted(tmp_path, said, expected):
    """For a refusal, chatter, an empty answer and an unfinished thought the source is scored, and
    the status is counted.
    """
    with serving(lambda sentence, _: says(said) if sentence == SOURCES[0] else None) as server:
        values = evaluate(_settings(tmp_path, server))
    assert values["answers"] == {"ok": 3, expected: 1}
    assert values["unanswered"] == 1
    assert values["counts_tp_pred_gold"]["S_C"] == [2, 2, 3]


def test_a_content_filter_is_a_refusal_and_an_answer_cut_off_is_unparsable():
    """A truncated answer is unparsable, and a content filter's error is a refusal."""

    def misbehave(sentence, _):
        return {
            SOURCES[0]: lambda h: h.reply({"error": {"code": "content_filter"}}, 400),
            SOURCES[1]: says("明天再", finish="length"),
        }.get(sentence)

    with serving(misbehave) as server:
        _, answers = ask(server)
    assert [a.status for a in answers] == ["refusal", "unparsable", "ok", "ok"]
    assert [a.text for a in answers[:2]] == SOURCES[:2]


@pytest.mark.parametrize(("code", "hint"), [(401, "OPENAI_API_KEY"), (404, "/v1"), (400, "--body")])
def test_what_will_never_work_stops_at_once(code, hint):
    """A permanent error ends the run at the first request, and the message says what to do."""
    with serving(lambda *_: status(code)) as server, pytest.raises(EndpointError, match=hint):
        ask(server, SOURCES[:1])
    assert sum(server.asked.values()) == 1


def test_equal_sentences_are_asked_once():
    """A sentence that occurs twice in the benchmark is asked once."""
    with serving() as server:
        _, answers = ask(server, [SOURCES[0]] * 3)
    assert sum(server.asked.values()) == 1
    assert len(answers) == 3


def test_an_endpoint_elsewhere_needs_a_key(monkeypatch):
    """Without a key in the environment a remote endpoint is refused."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        ApiSystem("m@https://example.org/v1", FAST)


def test_further_fields_are_sent_and_null_leaves_one_out():
    """--body adds fields to the request, and a null removes one."""
    options = replace(FAST, body={"top_k": 20, "temperature": None})
    with serving() as server:
        ask(server, SOURCES[:1], options)
    assert server.bodies[0]["top_k"] == 20
    assert "temperature" not in server.bodies[0]


#: every option with another value than the default; an option that is missing here fails the test
OTHERWISE = {
    "prompt": "2", "batch": 3, "device": "cpu", "dtype": "float32", "max_length": 9,
    "rephrase": True, "max_new_tokens": 7, "concurrency": 2, "timeout_s": 9.0,
    "retries": 1, "backoff_s": 0.5, "key_variable": "OTHER_KEY", "body": {"top_k": 3},
}  # fmt: skip


@pytest.mark.parametrize("name", [f.name for f in fields(ApiOptions)])
def test_what_is_sent_is_part_of_the_identity(name):
    """An option that changes a request changes the identity, and no other does."""
    options = replace(FAST, **{name: OTHERWISE[name]})
    with serving() as server:
        before, _ = ask(server, SOURCES[:1], FAST)
        after, _ = ask(server, SOURCES[:1], options)
    first, second = server.bodies
    assert (after.identity != before.identity) == (first != second)


def test_fields_that_replace_options_change_the_identity():
    """A field that is removed, and one that replaces an option, each change the identity."""
    with serving() as server:
        bodies = ({}, {"temperature": None}, {"temperature": 0.5}, {"messages": []}, {"seed": 1})
        found = [ApiSystem(f"tiny@{server.url}", replace(FAST, body=body)) for body in bodies]
    assert len({json.dumps(system.identity) for system in found}) == len(bodies)


@pytest.mark.parametrize(("option", "other"), [("prompt", "2"), ("body", {"seed": 43})])
def test_other_requests_in_the_same_folder_are_refused(tmp_path, option, other):
    """A run with another prompt or seed does not resume in the same folder."""
    drawn = {**QUICK, "body": {"temperature": 0.7, "seed": 42}}
    with serving() as server:
        settings = replace(_settings(tmp_path, server), options=drawn)
        evaluate(settings)
        with pytest.raises(RefusedError, match=option):
            evaluate(replace(settings, options={**drawn, option: other}))


def _settings(folder: Path, server):
    bench = folder / "row.tsv"
    bench.write_text("".join(f"{s}\t{corrected(s)}\n" for s in SOURCES), encoding="utf-8")
    return Settings(str(bench), f"api:tiny@{server.url}", folder / "run", options=QUICK)


@pytest.mark.parametrize("sign", [" ", "\t", "\n", "\x01", "\x7f", "\u3000", "\u00a0", "路"])
@pytest.mark.parametrize("form", ["{url}{sign}", "{url}/a{sign}b", "http://local{sign}host:9/v1"])
def test_an_address_that_no_request_can_carry_is_refused_at_once(sign, form):
    """A URL that no request could use is refused before the first request."""
    with serving() as server:
        spec = f"tiny@{form.format(url=server.url, sign=sign)}"
        with pytest.raises(UsageError, match=r"space.*ASCII.*%20"):
            ApiSystem(spec, ApiOptions())
        assert server.headers_seen == []
    with pytest.raises(UsageError, match=r"api:MODEL@URL"):  # no port either
        ApiSystem("tiny@http://127.0.0.1:80 80/v1", ApiOptions())
