"""Manifest and seal: what is written is read back, and any damage is noticed."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cecdata.common import codec
from cecdata.common.codec import SEAL, is_sealed, seal_object, unseal_object
from cecdata.common.errors import InputError, VerificationError
from cecdata.shards.manifest import (
    Calibration,
    Cosine,
    Counts,
    File,
    Manifest,
    decode_manifest,
    encode_manifest,
    fingerprint,
    read_manifest,
)

SHARD = File("data/train-00000-of-00001.parquet", "a" * 64, 10, 3)
MANIFEST = Manifest(
    version="0.1.0",
    configuration={"seed": 42, "prior": {"noise": 0.2}, "none": None},
    versions={"pyarrow": "26.0.1"},
    tables={"readings": "b" * 64},
    inputs=(File("语料.txt", "c" * 64, 1, 4),),
    outputs={"train": (SHARD,), "validation": ()},
    rows=Counts(4, 1, {"too_short": 3}),
    pairs=Counts(4, 3, {"distance": 1}),
    calibration=(Calibration("noise", 0.037, 0.04, 0.01, 0.04),),
    cosine=Cosine("encoder", 0.65, "sample", 2),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


def as_document() -> dict[str, object]:
    document = json.loads(encode_manifest(MANIFEST))
    del document["seal"]
    return document


def test_what_is_written_is_read_back():
    """A manifest survives its file, and its bytes are the same each time."""
    data = encode_manifest(MANIFEST)
    assert decode_manifest(data) == MANIFEST
    assert encode_manifest(decode_manifest(data)) == data
    assert b'\n  "configuration": {\n    "seed": 42' in data  # for people, too


def test_an_alias_that_python_3_10_leaves_a_string(monkeypatch):
    """Mapping[str, Json] of collections.abc: 3.10 does not resolve Json, which is any value."""
    monkeypatch.setattr(codec, "_resolve_hints", lambda _: {"total": Mapping[str, "codec.Json"]})
    counts = dataclasses.make_dataclass("Counts", ["total"])
    assert codec.decode(counts, {"total": {"a": [1]}}, "counts").total == {"a": [1]}


def test_keys_of_the_future_are_kept():
    """Keys of the manifest and of its files that this release does not know are written back."""
    document = as_document()
    document["colour"] = {"deep": [1, None]}
    document["outputs"]["train"][0]["bloom"] = 3
    manifest = decode_manifest(seal_object(document))
    again = json.loads(encode_manifest(manifest))
    del again["seal"]
    assert again == document


@given(st.binary(max_size=200))
def test_bytes_that_are_no_manifest_are_refused(data):
    """Any bytes give a VerificationError, never another exception."""
    with pytest.raises(VerificationError):
        decode_manifest(data)


@given(st.sampled_from(sorted(as_document())), JSON)
def test_any_value_anywhere_is_read_or_refused(key, value):
    """A sealed document with any JSON under any key is read or refused, never a crash."""
    manifest = None
    with contextlib.suppress(VerificationError):
        manifest = decode_manifest(seal_object({**as_document(), key: value}))
    assert manifest is None or decode_manifest(encode_manifest(manifest)) == manifest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": {"read": 5, "kept": 1, "rejected": {"empty": 2}}}, "2 unaccounted for"),
        ({"schema_version": 99}, "newer"),
        ({"inputs": "x"}, r"inputs must be a list, not 'x'"),
        ({"pairs": {"read": 4}}, r"pairs: the key 'kept' is missing"),
        ({"outputs": {"train": [{"path": 1}]}}, r"outputs.train\[0\].path must be text, not 1"),
        ({"outputs": {}}, "3 pairs kept, but the shards hold 0"),
    ],
)
def test_a_wrong_manifest_says_where(change, message):
    """What is wrong is named by its place."""
    with pytest.raises(VerificationError, match=message):
        decode_manifest(seal_object({**as_document(), **change}))


def test_fingerprint_is_of_the_content():
    """The order of keys does not matter; every value does."""
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 1.0})
    with pytest.raises(ValueError):
        fingerprint({"a": float("nan")})


def test_folders_that_are_no_dataset_say_what_they_are(tmp_path):
    """A missing folder, a foreign one and an unfinished build each get their own message."""
    with pytest.raises(InputError, match="no such folder"):
        read_manifest(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no manifest\.json"):
        read_manifest(tmp_path)
    (tmp_path / ".cecdata").mkdir()
    with pytest.raises(VerificationError, match="not finished"):
        read_manifest(tmp_path)


def with_ids(*ranges):
    """Shards of one split with these ranges of ids."""
    return {
        "train": tuple(
            dataclasses.replace(SHARD, path=f"data/train-{n}.parquet", rows=0, extra={"ids": ids})
            for n, ids in enumerate(ranges)
        )
    }


def test_shards_are_ranges_of_ids():
    """Each shard of a split has the range of its ids; other layouts have none."""
    pairs = Counts(0, 0)
    made = dataclasses.replace(
        MANIFEST, outputs=with_ids([-9, -2], [-1, 5]), pairs=pairs, content_sha256=""
    )
    assert [file.ids for file in decode_manifest(encode_manifest(made)).outputs["train"]] == [
        (-9, -2),
        (-1, 5),
    ]
    assert SHARD.ids is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text('a"\\\n好𠀀é😀{}:')
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('a"好', max_size=3), inner),
    max_leaves=8,
)  # fmt: skip
DOCUMENTS = st.dictionaries(st.text('ab"好\n', max_size=4), VALUES, max_size=5)


@given(DOCUMENTS, st.sampled_from([None, 1, 2]))
def test_a_sealed_object_comes_back(document, indent):
    """What was sealed is read back, and the seal is the SHA-256 with its own digits as zeros."""
    data = seal_object(document, indent=indent)
    assert unseal_object(data) == document
    seal = json.loads(data)[SEAL]
    assert data.count(b"\n", 0, -1) == 0 or indent is not None
    assert hashlib.sha256(data.replace(seal.encode(), b"0" * 64)).hexdigest() == seal


@given(DOCUMENTS, st.sampled_from([None, 1]), st.data())
def test_any_flipped_bit_breaks_the_seal(document, indent, data):
    """No bit can be changed, and nothing added, cut off or put before."""
    whole = seal_object(document, indent=indent)
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    for other in (bytes(flipped), whole + b" ", whole[:-1], whole[place + 1 :], b" " + whole):
        assert not is_sealed(other)
        with pytest.raises(ValueError):
            unseal_object(other)


def test_an_object_without_a_seal():
    """JSON that carries no seal is told from what is no JSON."""
    with pytest.raises(ValueError, match="checksum does not match"):
        unseal_object(b'{"a": 1}\n')
    with pytest.raises(ValueError, match="not a JSON object"):
        unseal_object(b"[]")
