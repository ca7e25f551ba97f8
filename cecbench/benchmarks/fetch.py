"""Download of a benchmark into the cache: its licence accepted, its digest checked."""

from __future__ import annotations

import hashlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from cecbench.benchmarks.catalogue import lookup
from cecbench.benchmarks.locate import DIGESTS, cache_folder, read_digests
from cecbench.benchmarks.row import Benchmark, File
from cecdata.common import durable
from cecdata.common.errors import CecError, InputError, RefusedError, VerificationError

TIMEOUT_S = 60.0
LARGEST_MIB = 64  # of a file; the largest published one has 3 MB


def fetch(name: str, *, accept: Callable[[Benchmark], bool]) -> tuple[Path, ...]:
    """Download the files of a benchmark that are not in the cache yet; return the paths of all.

    accept: asked where the licence restricts the use. Raises RefusedError if it returns False,
    InputError if nothing can be downloaded, VerificationError for other bytes than the published
    ones, CecError without a network.
    """
    benchmark = lookup(name)
    copy = next((c for c in benchmark.copies if all(file.url for file in c.files)), None)
    if copy is None:
        raise InputError(_by_hand(benchmark, "cannot be downloaded by a program"))
    if benchmark.restricted and not accept(benchmark):
        raise RefusedError(
            f"{name} is under this licence: {benchmark.licence} ({benchmark.homepage}). "
            "Nothing was downloaded. --accept-licence declares that you will keep to it."
        )
    return tuple(_one(benchmark, file) for file in copy.files)


def _one(benchmark: Benchmark, file: File) -> Path:
    path = cache_folder() / file.path
    wanted = file.sha256 or read_digests(cache_folder()).get(file.path)
    if path.is_file() and wanted and durable.sha256_of(path).sha256 == wanted:
        return path
    data = _download(benchmark, file)
    digest = hashlib.sha256(data).hexdigest()
    if wanted and digest != wanted:
        raise VerificationError(
            f"{file.url} gave sha256 {digest[:16]}… instead of {wanted[:16]}…: the file has "
            "changed at its source or was altered on the way; nothing was kept"
        )
    durable.write_bytes(path, data)
    if file.sha256 is None:
        digests = {**read_digests(cache_folder()), file.path: digest}
        text = json.dumps(digests, indent=1, sort_keys=True) + "\n"
        durable.write_text(cache_folder() / DIGESTS, text)
    return path


def _download(benchmark: Benchmark, file: File) -> bytes:
    assert file.url is not None
    try:
        with urllib.request.urlopen(file.url, timeout=TIMEOUT_S) as answer:  # noqa: S310 - catalogue or test URL
            data = bytes(answer.read((LARGEST_MIB << 20) + 1))
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise CecError(_by_hand(benchmark, f"could not be downloaded ({reason})")) from None
    if len(data) > LARGEST_MIB << 20:
        raise VerificationError(
            f"{file.url} sends more than {LARGEST_MIB} MiB, and no benchmark is so large: nothing "
            f"was kept. See {benchmark.homepage}"
        )
    return data


def _by_hand(benchmark: Benchmark, why: str) -> str:
    places = "; or ".join(
        ", ".join(f"{file.url or 'its file'} as {cache_folder() / file.path}" for file in c.files)
        for c in benchmark.copies
    )
    return (
        f"{benchmark.name} {why}. Place {places} (or under the folder that --data or "
        f"$CECBENCH_DATA names). Homepage: {benchmark.homepage}; licence: {benchmark.licence}"
    )
