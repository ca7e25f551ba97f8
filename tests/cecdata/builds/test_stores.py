"""Builds in an object store, a real S3 server on the loopback: the bytes of a local build."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import polars as pl
import pyarrow as pa
import pytest

import cecdata as api
from cecdata.common import durable, store
from cecdata.common.errors import CecError
from cecdata.common.store import Store
from cecdata.corpus.inputs import find_sources

#: of one service alone: else each request looks for the one that it means
SERVE = """
import sys
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), create_backend_app("s3"), threaded=True)
"""


class Server:
    """moto's S3 server in a process of its own, which a test may stop."""

    def __init__(self, log, **environment: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        words = [sys.executable, "-c", SERVE, str(self.port)]
        with log.open("ab") as file:
            own = {**os.environ, "PYTHONPATH": "", **environment}
            self.process = subprocess.Popen(words, stdout=file, stderr=file, env=own)
        for _ in range(300):
            try:
                urllib.request.urlopen(self.url, timeout=5).close()
            except urllib.error.HTTPError as error:  # an answer, if without rights
                error.close()
            except OSError:
                time.sleep(0.1)
                continue
            return
        raise AssertionError("the server did not start")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("moto") / "log")
    yield one
    one.stop()


@pytest.fixture
def bucket(server, monkeypatch, tmp_path):
    """The URI of an empty bucket, with the environment that a user would set."""
    use(monkeypatch, server, tmp_path)
    name = re.sub("[^a-z0-9]", "-", tmp_path.name.lower()).strip("-")
    urllib.request.urlopen(urllib.request.Request(f"{server.url}/{name}", method="PUT")).close()
    return f"s3://{name}"


def use(monkeypatch, server, tmp_path) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "AKIA0",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_REGION": "us-east-1",
        "CECDATA_SCRATCH": str(tmp_path / "scratch"),
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def uploaded(bucket, corpus):
    """The corpus in the bucket."""
    Store(bucket).put(corpus, "in/corpus.txt")
    return f"{bucket}/in"


def tree(uri: str) -> dict[str, bytes]:
    """What a second build repeats, with its bytes."""
    store = Store(uri)
    names = (n for n in store.list() if n != "run.json" and not n.startswith(".cecdata/"))
    return {name: store.read(name) for name in names}


def put_bytes(place: Store, name: str, data: bytes) -> None:
    place.put(SimpleNamespace(open=lambda _: io.BytesIO(data)), name)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_object_appears_whole_or_not_at_all(error, bucket, tmp_path):
    """Whether the file can no longer be read, or the run is interrupted."""

    class Breaking(io.BytesIO):
        def read(self, size=-1):
            if self.tell():
                raise error
            return super().read(size)

    for place in map(Store, (bucket, f"file://{tmp_path}")):
        with pytest.raises((KeyboardInterrupt, CecError)):
            place.put(SimpleNamespace(open=lambda _: Breaking(b"half")), "a.parquet")
        assert place.list() == {}


def test_a_store_gets_the_bytes_of_a_local_build(
    uploaded, bucket, cecdata, flags, built, tree_of, monkeypatch, tmp_path
):
    """Corpus and dataset in a bucket: every shard, reject and document is that of a local build;
    the same command again checks it, and every reader reads it."""
    out = f"{bucket}/out"
    words = ("build", uploaded, "--out", out, *flags)
    assert cecdata(*words)[0] == 0
    here, there = tree_of(built), tree(out)
    assert there.keys() == here.keys()
    # the manifest and the rejected rows name the file, which is another one
    other = [name for name in here if here[name] != there[name]]
    assert other == ["manifest.json", "rejects/rows-00000-0000.parquet"]
    manifests = [json.loads(files["manifest.json"]) for files in (here, there)]
    assert len({manifest["content_sha256"] for manifest in manifests}) == 1
    assert not (tmp_path / "scratch/builds").exists()
    assert cecdata(*words)[0] == 0
    strays = []

    def watched(path, fill, *, tmp):
        def filled(temporary):
            fill(temporary)
            strays.extend((tmp_path / "scratch/copies").glob("*/**/.*-*"))

        return durable.write(path, filled, tmp=tmp)

    monkeypatch.setattr("cecdata.common.store.write", watched)
    assert api.scan(out).collect().equals(api.scan(built).collect())
    assert {path.parent.suffix for path in strays} == {".tmp"}  # not among what is read
    assert cecdata("verify", out)[0] == 0
    assert cecdata("report", out, "--out", tmp_path)[0] == 0


def test_a_damaged_object_is_replaced(uploaded, bucket, cecdata, flags, corpus, built, tree_of):
    """The same command mends a dataset in a bucket, also from local files; another one is refused;
    so is a place with other objects."""
    out, store = f"{bucket}/out", Store(f"{bucket}/out")
    words = ("build", corpus, "--out", out, *flags)
    assert cecdata(*words)[0] == 0
    whole = tree(out)
    name = next(name for name in whole if name.startswith("data/train-00002"))
    put_bytes(store, name, whole[name][::-1])
    assert cecdata(*words)[0] == 0
    assert tree(out) == whole
    code, _, said = cecdata(*words, "--seed", 7)
    assert (code, out in said, "seed: 42 → 7" in said) == (5, True, True)
    code, _, said = cecdata("build", corpus, "--out", uploaded, *flags)
    assert (code, "is not empty (corpus.txt)" in said) == (5, True)


def test_another_machine_goes_on(
    corpus, bucket, cecdata, flags, built, tree_of, tmp_path, monkeypatch
):
    """A store that goes away midway leaves what it has; a machine without the scratch folder of the
    first makes only the rest."""
    from cecdata.builds.corrupt import Corrupt

    out, made, make, put = f"{bucket}/out", [], Corrupt.make, Store.put

    def failing(self, path, name):
        if name.startswith("data/train-00004"):
            monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            self = Store(self.uri)
        put(self, path, name)

    words = ["build", corpus, "--out", out, *flags, "--workers", 1]
    url = os.environ["AWS_ENDPOINT_URL"]
    monkeypatch.setattr(Store, "put", failing)
    monkeypatch.setattr(store, "_ATTEMPTS", 2)
    code, _, said = cecdata(*words)
    monkeypatch.setattr(Store, "put", put)
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    assert (code, f"{out}/data/train-00004" in said) == (1, True)
    assert "the store gave an error" in said
    assert "manifest.json" not in Store(out).list()
    monkeypatch.setenv("CECDATA_SCRATCH", str(tmp_path / "other"))
    monkeypatch.setattr(Corrupt, "make", lambda self, k: made.append(k) or make(self, k))
    assert cecdata(*words)[0] == 0
    assert made == [4, 5]
    assert tree(out) == tree_of(built)


def test_two_drivers_on_one_place_are_harmless(
    corpus, bucket, cecdata, flags, built, tree_of, zygote, tmp_path
):
    """Two builds at once, one of which is killed midway: the other one's dataset is whole, and what
    either has made is not made again."""
    out, midway = f"{bucket}/out", tmp_path / "midway"
    words = ["build", str(corpus), "--out", out, *flags, "--workers", "1"]

    def watch() -> None:
        while not any("/done/corrupt/" in name for name in Store(out).list()):
            time.sleep(0.02)
        midway.touch()

    with ThreadPoolExecutor() as threads:
        watching, environment = threads.submit(watch), {**os.environ}
        killed = threads.submit(
            zygote.zygote.run, "cecdata", *words, after_s=0, when=midway, environment=environment
        )
        code, _, said = cecdata(*words)
        watching.result()
        assert killed.result().killed
    assert (code, said) == (0, "")
    assert tree(out) == tree_of(built)
    assert cecdata(*words)[0] == 0


KILLED = """
import os, sys
from cecdata.builds.place import Place
Place.mark = lambda *_: os.kill(os.getpid(), 9)
from cecdata.cli import main
sys.argv[1:] = {words}
main()
"""


@pytest.mark.parametrize("remote", [False, True])
def test_a_kill_in_the_first_task_binds_nothing(
    zygote, cecdata, corpus, bucket, flags, tree_of, tmp_path, remote
):
    """Killed behind its files, before the first marker: another command or the same one makes
    what it makes in an empty place, and no file of the killed one is left."""
    out, whole, clean = tmp_path / "out", tmp_path / "whole", tmp_path / "clean.txt"
    clean.write_bytes(corpus.read_bytes().splitlines()[0])
    words = ["build", str(clean), *map(str, flags), "--out"]
    assert cecdata(*words, whole)[0] == 0
    words.append(f"{bucket}/out" if remote else str(out))
    for given in (["build", str(corpus), *words[2:], "--seed", "7"], words):
        script = KILLED.format(words=given)
        ended = zygote.zygote.run("python", "-c", script, environment=os.environ)
        assert ended.killed, ended.text
    for _ in range(2):
        assert cecdata(*words)[0] == 0
        assert (tree(words[-1]) if remote else tree_of(out)) == tree_of(whole)


def test_overwrite_replaces_a_dataset_in_a_store(bucket, corpus, cecdata, flags, built, tree_of):
    """--overwrite gives the bytes of a build in an empty place, and refuses where another object
    or no sentence is: then every object stays."""
    out, store = f"{bucket}/out", Store(f"{bucket}/out")
    words = ("build", corpus, "--out", out, *flags)
    assert cecdata(*words, "--seed", 7)[0] == 0
    assert cecdata(*words)[0] == 5
    before = tree(out)
    put_bytes(store, "notes.txt", b"mine")
    code, _, said = cecdata(*words, "--overwrite")
    assert (code, "notes.txt" in said) == (5, True)
    store.remove("notes.txt")
    assert cecdata("build", "/dev/null", "--out", out, *flags, "--overwrite")[0] == 1
    assert tree(out) == before
    assert cecdata(*words, "--overwrite")[0] == 0
    assert tree(out) == tree_of(built)


def test_a_bucket_without_rights_is_named(corpus, cecdata, flags, monkeypatch, tmp_path):
    """Without rights, without a bucket and without a server: which, and what to do."""
    monkeypatch.setattr(store, "_ATTEMPTS", 2)
    server = Server(tmp_path / "log", INITIAL_NO_AUTH_ACTION_COUNT="0")
    use(monkeypatch, server, tmp_path)
    try:
        for words in (["build", corpus, "--out", "s3://closed/out"], ["verify", "s3://closed/out"]):
            code, _, said = cecdata(*words)
            assert (code, "s3://closed/out: the store refuses access" in said) == (1, True)
    finally:
        server.stop()
    code, _, said = cecdata("build", "s3://closed/in", "--out", tmp_path / "out", *flags)
    assert (code, "s3://closed/in: the store gave an error" in said) == (1, True)


class Ailing(BaseHTTPRequestHandler):
    """A store that answers every request with `status`, `wait_s` seconds late."""

    status, wait_s = 200, 0.0
    asked: ClassVar[list[str]] = []
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        self.asked.append(self.requestline)
        self.rfile.read(int(self.headers.get("content-length") or 0))
        time.sleep(self.wait_s)
        with contextlib.suppress(OSError):  # the client may have gone meanwhile
            self.send_response(self.status)
            self.send_header("content-length", "0")
            self.end_headers()

    do_GET = do_HEAD = do_POST = do_PUT = answer

    def log_message(self, *_args) -> None:
        pass


@pytest.fixture
def ailing(monkeypatch, tmp_path):
    """The function that starts such a store, and returns the list of what it was asked."""
    servers = []

    def start(status: int, wait_s: float = 0.0) -> list[str]:
        own = type("Own", (Ailing,), {"status": status, "wait_s": wait_s, "asked": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), own)
        server.daemon_threads, server.block_on_close = True, False
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        use(monkeypatch, server, tmp_path)
        return own.asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_small_object_is_one_request(ailing):
    """Each request costs time and money: one that is put whole is not put in parts."""
    asked = ailing(200)
    put_bytes(Store("s3://bucket"), "marker.json", b"{}")
    assert asked == ["PUT /bucket/marker.json HTTP/1.1"]


def test_a_uri_may_say_how_a_store_is_reached(ailing, monkeypatch):
    """Its key, its address and its switches hold beside our limits; an unknown one is named."""
    asked = ailing(200)
    address = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://")
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    query = f"endpoint_override={address}&scheme=http&region=eu-west-1&allow_bucket_creation=false"
    put_bytes(Store(f"s3://AKIA1:a%2Fb@bucket/in?{query}"), "marker.json", b"{}")
    assert asked == ["PUT /bucket/in/marker.json HTTP/1.1"]
    with pytest.raises(CecError, match="smart_defaults"):
        Store(f"s3://AKIA1:a%2Fb@bucket/in?{query}&smart_defaults=auto")


@pytest.mark.parametrize(("status", "wait_s"), [(500, 0.0), (503, 0.0), (200, 60.0)])
@pytest.mark.parametrize("place", ["in", "out"])
def test_a_store_that_fails_is_given_up(
    ailing, corpus, cecdata, flags, monkeypatch, tmp_path, status, wait_s, place
):
    """One that answers 500, or not at all, is named after a few tries."""
    monkeypatch.setattr(store, "_ANSWER_S", 1)
    monkeypatch.setattr(store, "_ATTEMPTS", 2)
    asked = ailing(status, wait_s)
    words = {
        "in": ("s3://ill/in", "--out", tmp_path / "out"),
        "out": (corpus, "--out", "s3://ill/o"),
    }
    code, _, said = cecdata("build", *words[place], *flags)
    assert (code, "s3://ill/" in said, "the store gave an error" in said) == (1, True, True)
    assert 2 <= len(asked) <= 4


def test_any_error_of_a_client_names_the_store(bucket):
    """Also those of Arrow's own base: of Azure over plain HTTP without a signature, for one."""
    said = f"{bucket}/x: the store gave an error.*no TLS"
    with pytest.raises(CecError, match=said), Store(bucket)._naming("x"):
        raise pa.ArrowException("no TLS")


def test_a_slow_store_is_waited_for(ailing):
    """An answer after the three seconds that its library would wait is an answer."""
    ailing(200, 3.2)
    assert Store("s3://slow/in").find("x") is not None


def test_of_a_dataset_in_a_store_its_shards_are_read(bucket, monkeypatch, tmp_path):
    """They are `data/*.parquet`, as of a local folder: notes beside them are no corpus."""
    folder = tmp_path / "dataset"
    (folder / "data/old").mkdir(parents=True)
    shard = folder / "data/train-00000.parquet"
    pl.DataFrame({"text": ["他的病情已经好转。"]}).write_parquet(shard)
    shutil.copy(shard, folder / "data/old/train-00000.parquet")
    (folder / "data/notes.txt").write_text("这不是语料。\n", "utf-8")
    for file in filter(Path.is_file, folder.rglob("*")):
        Store(bucket).put(file, f"set/{file.relative_to(folder).as_posix()}")
    here, there = (find_sources([str(place)]) for place in (folder, f"{bucket}/set"))
    assert [one.label for one in there] == [f"{bucket}/set/data/train-00000.parquet"]
    assert [one.path.name for one in here] == [shard.name]


def test_what_a_bucket_lacks_is_named(bucket, corpus, cecdata, tmp_path):
    """No bucket, no object, an unknown kind of store."""
    Store(bucket).put(corpus, "in/corpus.jsonl")
    for uri, what in {
        "s3://nowhere-at-all/in": "there is no bucket 'nowhere-at-all'",
        f"{bucket}/none.txt": "there is neither an object",
        "fsspec+nothing://a/b": "this kind of store is not supported",
    }.items():
        code, _, said = cecdata("build", uri, "--out", tmp_path / "out")
        assert (code, what in said) == (1, True), said
    assert cecdata("verify", f"{bucket}/out")[0] == 1


def test_fsspec_by_the_same_interface(
    corpus, cecdata, flags, built, tree_of, monkeypatch, tmp_path
):
    """A filesystem of fsspec takes a dataset, too."""
    monkeypatch.setenv("CECDATA_SCRATCH", str(tmp_path / "scratch"))
    out = "fsspec+memory://bucket/out"
    assert cecdata("build", corpus, "--out", out, *flags)[0] == 0
    assert tree(out) == tree_of(built)


def test_a_key_in_a_uri_is_written_nowhere(uploaded, bucket, cecdata, flags, monkeypatch):
    """A login in the URI opens the store, and neither files nor messages repeat it."""
    login = bucket.replace("://", "://AKIA0:s3cretkey@")
    words = ("build", f"{login}/in", "--out", f"{login}/out", *flags)
    monkeypatch.setattr(sys, "argv", ["cecdata", *map(str, words)])
    code, *said = cecdata(*words)
    assert code == 0, said
    store = Store(bucket)
    kept = b"".join(store.read(name) for name in store.list())
    texts = [kept.decode("utf-8", "replace"), *said, "".join(cecdata(*words, "--seed", 7)[1:])]
    texts += ["".join(cecdata("verify", f"{login}/out", "--json")[1:])]
    assert [text for text in texts if "s3cretkey" in text] == []


@pytest.mark.slow
def test_thirty_kills_of_a_build_in_a_store(corpus, bucket, flags, built, tree_of, tmp_path):
    """A driver killed at random moments, half of the time on another machine than before: the
    unbroken dataset, byte for byte."""
    chance, kills, datasets = random.Random(22), 0, 0
    script = "from cecdata.cli import main; main()"
    while kills < 30:
        datasets += 1
        out = f"{bucket}/out{datasets}"
        words = ["build", str(corpus), "--out", out, *flags, "--workers", "1"]
        done = 1
        while done != 0:
            scratch = str(tmp_path / f"machine{chance.randrange(2)}")
            job = subprocess.Popen(
                [sys.executable, "-c", script, *words],
                env={**os.environ, "CECDATA_SCRATCH": scratch},
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                _, said = job.communicate(timeout=1.5 + 4 * chance.random() if kills < 30 else 180)
            except subprocess.TimeoutExpired:
                job.kill()
                job.communicate()
                kills += 1
                continue
            assert (job.returncode, said) == (0, "")
            done = 0
        assert tree(out) == tree_of(built)
    print(f"store: {kills} kills, {datasets} datasets")


@pytest.mark.parametrize("name", ["/VICTIM/kept", "UP/kept", "a/../../../x", "a//b", "a\\..\\b"])
@pytest.mark.parametrize("words", [("verify",), ("build",)])
def test_no_name_in_a_bucket_leads_out(bucket, server, cecdata, corpus, tmp_path, name, words):
    """A key that could name a file elsewhere is refused by name, and no file is made or cut."""
    import boto3

    victim = tmp_path / "victim" / "kept"
    victim.parent.mkdir()
    victim.write_text("kept")
    up = "../" * 40 + str(victim.parent)[1:]
    name = name.replace("VICTIM", str(victim.parent)[1:]).replace("UP", up)
    client = boto3.client("s3", endpoint_url=server.url)
    client.put_object(Bucket=bucket.removeprefix("s3://"), Key="ds/manifest.json", Body=b"{}")
    client.put_object(Bucket=bucket.removeprefix("s3://"), Key=f"ds/{name}", Body=b"x")
    before = sorted(tmp_path.rglob("*"))
    given = (str(corpus), "--out", f"{bucket}/ds") if words == ("build",) else (f"{bucket}/ds",)
    code, _, said = cecdata(*words, *given)
    assert code == 1, said
    assert "points outside" in said or "empty part" in said.lower(), said
    assert "Traceback" not in said
    assert victim.read_text() == "kept"
    scratch = tmp_path / "scratch"
    assert [p for p in sorted(tmp_path.rglob("*")) if not p.is_relative_to(scratch)] == [
        p for p in before if not p.is_relative_to(scratch)
    ]


@pytest.mark.parametrize("name", ["数据 集", "out[1]", "a+b=c", "50%25"])
def test_a_place_in_a_store_is_named_as_it_is_written(bucket, name):
    """Signs that a URI must escape may stand in the name of a place, as in a local path."""
    store = Store(f"{bucket}/{name}")
    put_bytes(store, "x", b"1")
    assert list(store.list()) == ["x"]
    assert Store(f"{bucket}/{name}").read("x") == b"1"
