"""Readers of the benchmark package: sets, predictions, scores, and what endpoints answer."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path

from fuzz_case import PAGE, Reader
from fuzz_mutate import Mutator, reseal

PAIRS = (
    ("他己经来了。", "他已经来了。"),
    ("我门去公圆。", "我们去公园。"),
    ("今天天气很好。", "今天天气很好。"),
    ("𠀀字少见，Ａ全角。", "𠀀字少见，Ａ全角。"),
)


def readers() -> tuple[Reader, ...]:
    """One a format."""
    return (
        Reader("bench-lemon", "a.lemon", _rows("lemon"), Mutator(_lemon, "lines")),
        Reader("bench-table", "a.tsv", _rows("table"), Mutator(_tsv, "lines")),
        Reader("bench-parallel", "a.src", _parallel, Mutator(_sources, "lines")),
        Reader("bench-sighan", "a.truth", _sighan,
               Mutator(lambda: ("A0, 2, 已\nA1, 2, 们, 5, 园\nA2, 0\nA3, 0\n".encode(),), "lines")),
        Reader("bench-m2", "a.m2", _rows("table"), Mutator(_m2, "lines")),
        Reader("bench-jsonl", "a.jsonl", _rows("table"), Mutator(_jsonl, "json")),
        Reader("bench-json", "a.json", _rows("table"), Mutator(_json, "json")),
        Reader("bench-parquet", "a.parquet", _rows("parquet"), Mutator(_parquet, "binary"),
               memory=PAGE),
        Reader("scored-file", "a.tsv", _scored, Mutator(_four, "lines"), suite=100),
        Reader("predictions-text", "p.tsv", _predictions, Mutator(_four, "lines")),
        Reader("predictions-jsonl", "p.jsonl", _predictions, Mutator(_answers, "json")),
        Reader("run-rows", "predictions.jsonl", _run_rows,
               Mutator(lambda: (_run_files()["predictions.jsonl"].encode(),), "json")),
        Reader("api-answer", "answer", _api_answer, Mutator(_completions, "json"),
               names_file=False),
        Reader("api-error", "answer", _api_error, Mutator(_errors, "json"), names_file=False),
        Reader("retry-after", "answer", _retry_after, names_file=False, mutator=Mutator(lambda: (
            b"2", b"Wed, 21 Oct 2015 07:28:00 GMT", b"0.5", b"soon", b"1e3", b"-5"), "text")),
        Reader("extract", "answer", _extract, Mutator(_said, "text"), names_file=False),
    )  # fmt: skip


def _rows(name: str) -> Callable[[Path], Iterable[str]]:
    def read(path: Path) -> Iterable[str]:
        from cecbench.benchmarks.readers import READERS

        for row in READERS[name]((path,), "a"):
            yield from (row.id, row.source, row.target)

    return read


def _parallel(path: Path) -> Iterable[str]:
    from cecbench.benchmarks.readers import read_parallel

    other = path.with_suffix(".tgt")
    other.write_text("".join(f"{b}\n" for _, b in PAIRS), "utf-8")
    for row in read_parallel((path, other), "a"):
        yield from (row.source, row.target)


def _sighan(path: Path) -> Iterable[str]:
    from cecbench.benchmarks.readers import read_sighan_truth

    inputs = path.with_suffix(".input")
    inputs.write_text("".join(f"(pid=A{n})\t{a}\n" for n, (a, _) in enumerate(PAIRS)), "utf-8")
    for row in read_sighan_truth((inputs, path), "a"):
        yield from (row.id, row.source, row.target)


def _scored(path: Path) -> Iterable[str]:
    from cecbench.scorers import score_file

    return [json.dumps(score_file(path, "cscd"), ensure_ascii=False)]


def _predictions(path: Path) -> Iterable[str]:
    from cecbench.benchmarks.readers import Example
    from cecbench.systems.predictions import PredictionSystem

    rows = [Example(f"r{n}", a, b) for n, (a, b) in enumerate(PAIRS)]
    system = PredictionSystem(path, rows, partial=True)
    asked = system.select_answered(rows)
    return [answer.text for answer in system.correct([row.source for row in asked])]


@cache
def _run_files() -> dict[str, str]:
    """What a run leaves behind."""
    import tempfile

    from cecbench.run import Settings, evaluate

    with tempfile.TemporaryDirectory() as name:
        data, out = Path(name) / "own.tsv", Path(name) / "out"
        data.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), "utf-8")
        answers = Path(name) / "answers.txt"
        answers.write_text("".join(f"{a.replace('己', '已')}\n" for a, _ in PAIRS), "utf-8")
        evaluate(Settings(str(data), f"predictions:{answers}", out))
        return {p.name: p.read_text("utf-8") for p in out.iterdir() if p.is_file()}


def _run_rows(path: Path) -> Iterable[str]:
    """Rows beside a score that names their sum; every eighth length is not what it names."""
    from cecbench.results import read_run, rescore_run

    data = path.read_bytes()
    sum_of = _run_files()["predictions.jsonl"].encode() if len(data) % 8 == 0 else data
    score = _run_files()["score.json"]
    old = json.loads(score)["predictions_sha256"]
    score = reseal(score.replace(old, hashlib.sha256(sum_of).hexdigest()).encode())
    path.with_name("score.json").write_bytes(score)
    run = read_run(path.parent)
    rescore_run(run)
    for row in run.rows:
        yield from row


@cache
def _api() -> object:
    import os

    from cecbench.systems.api import ApiOptions, ApiSystem

    os.environ["CEC_FUZZ_KEY"] = "sk-fuzz"
    options = ApiOptions(key_variable="CEC_FUZZ_KEY", retries=0)
    return ApiSystem("m@http://127.0.0.1:9/v1", options)


def _api_answer(path: Path) -> Iterable[str]:
    from cecbench.systems.api import _read_reply
    from cecdata.models.http import _TroubleError

    system = _api()
    try:
        came = system._endpoint._parse(path.read_bytes())
    except _TroubleError:
        return []
    answer = _read_reply(PAIRS[0][0], came, 0.1)
    assert answer.status != "failed"
    json.dumps(asdict(answer), ensure_ascii=False).encode()
    return [answer.text, answer.raw]


def _api_error(path: Path) -> Iterable[str]:
    import httpx

    from cecdata.models.http import _TroubleError

    head, _, body = path.read_bytes().partition(b"\n")
    code, _, wait = head.decode("latin-1").partition(" ")
    headers = httpx.Headers([(b"Retry-After", wait.replace("\r", "").encode("latin-1"))])
    number = int(code) if code.isascii() and code.isdigit() and len(code) < 4 else 500
    try:
        return [_api()._endpoint._refuse(number, headers, body).trouble]
    except _TroubleError as error:
        return [str(error)]


def _retry_after(path: Path) -> None:
    from cecdata.models.http import _retry_after as wait

    found = wait(path.read_bytes().decode("latin-1"))
    assert found is None or 0 <= found <= 86_400, found


def _extract(path: Path) -> Iterable[str]:
    from cecbench.systems.extract import extract_correction

    raw = path.read_bytes().decode("utf-8", "replace")
    return [extract_correction(raw, source).text for source in (PAIRS[0][0], PAIRS[3][0], "“好”\n")]


def _lemon() -> tuple[bytes, ...]:
    spaced = "".join(f"{' '.join(a)}\t{' '.join(b)}\n" for a, b in PAIRS)
    return (spaced.encode(), spaced.replace(" ", "").replace("\n", "\r\n").encode())


def _tsv() -> tuple[bytes, ...]:
    return (
        "".join(f"{a}\t{b}\n" for a, b in PAIRS).encode(),
        "".join(f"{int(a != b)}\t{a}\t{b}\n" for a, b in PAIRS).encode(),
        ("id\tsource\ttarget\n" + "".join(f"n{i}\t{a}\t{b}\n" for i, (a, b) in enumerate(PAIRS)))
        .encode(),
        "\ufeffsrc\ttgt\n一\t二\n".encode(),
    )  # fmt: skip


def _sources() -> tuple[bytes, ...]:
    return ("".join(f"{a}\n" for a, _ in PAIRS).encode(),)


def _m2() -> tuple[bytes, ...]:
    block = (
        "S 他 己 经 来 了\nT0-A0 他 已 经 来 了\nA 1 2|||S|||已|||REQUIRED|||-NONE-|||0\n\n"
        "S 好\nT0 没有错误\nA -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0\n\n"
        "S 我 门\nA 1 2|||R|||们|||REQUIRED|||-NONE-|||0\n"
        "A 0 0|||M|||和 你|||REQUIRED|||-NONE-|||1\n"
    )
    return (block.encode(), block.replace("T0-A0 他 已 经 来 了\n", "").encode())


def _jsonl() -> tuple[bytes, ...]:
    rows = [{"id": n, "source": a, "target": b} for n, (a, b) in enumerate(PAIRS)]
    return ("\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode(),)


def _json() -> tuple[bytes, ...]:
    own = [
        {"id": str(n), "original_text": a, "wrong_ids": [1], "correct_text": b}
        for n, (a, b) in enumerate(PAIRS)
    ]
    other = [{"src": a, "tgt": b} for a, b in PAIRS]
    return (json.dumps(own, ensure_ascii=False).encode(), json.dumps(other, indent=1).encode())


def _parquet() -> tuple[bytes, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for options in ({"compression": "none"}, {"compression": "zstd", "use_dictionary": False}):
        sink = io.BytesIO()
        table = pa.table(
            {"id": range(4), "copy": [0, 1, 0, 1], "source": [a for a, _ in PAIRS],
             "target": [b for _, b in PAIRS]}
        )  # fmt: skip
        pq.write_table(table, sink, **options)
        found.append(sink.getvalue())
    return tuple(found)


def _four() -> tuple[bytes, ...]:
    rows = [f"r{n}\t{a}\t{b}\t{b}" for n, (a, b) in enumerate(PAIRS)]
    three = [f"r{n}\t{a}\t{b}" for n, (a, b) in enumerate(PAIRS)]
    text = "\n".join(rows) + "\n"
    return (
        text.encode(),
        text.replace("\n", "\r\n").encode(),
        ("\ufeff" + "\n".join(three)).encode(),
        "".join(f"{b}\n" for _, b in PAIRS).encode(),
    )


def _answers() -> tuple[bytes, ...]:
    rows = [{"id": f"r{n}", "source": a, "prediction": b} for n, (a, b) in enumerate(PAIRS)]
    return (
        "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode(),
        "\n".join(json.dumps({"output": b}) for _, b in PAIRS).encode(),
    )


def _completions() -> tuple[bytes, ...]:
    whole = {
        "id": "x",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "他已经来了。"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 20, "completion_tokens": 7},
    }
    parts = json.loads(json.dumps(whole))
    parts["choices"][0]["message"]["content"] = [
        {"type": "text", "text": "他已经"},
        {"text": "来了"},
    ]
    thought = json.loads(json.dumps(whole))
    thought["choices"][0]["message"]["content"] = "<think>想</think>\n改正后：“他已经来了。”"
    return tuple(json.dumps(w, ensure_ascii=False).encode() for w in (whole, parts, thought))


def _errors() -> tuple[bytes, ...]:
    body = '{"error": {"message": "bad", "code": "content_filter"}}'
    heads = ("429 2", "400 ", "500 Wed, 21 Oct 2015 07:28:00 GMT", "401 x", "403 1")
    return tuple(f"{head}\n{body}".encode() for head in heads)


def _said() -> tuple[bytes, ...]:
    return tuple(
        text.encode()
        for text in (
            "他已经来了。", "改正后：“他已经来了。”\n解释：己改为已。",
            "<think>先想想</think>\n```text\n他已经来了。\n```", "抱歉，我无法处理这个请求。",
            "没有错别字。", "好的，以下是修改后的句子：**他已经来了。**",
        )
    )  # fmt: skip
