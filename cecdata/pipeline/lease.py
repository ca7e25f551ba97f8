"""A lease on a job in an object store, which has no locks: each applicant writes a claim.

The oldest live claim holds the lease. Ages are by the store's clock alone, so the machines' clocks
may differ. A claim is live while its holder renews it. Two holders at once would only waste time,
because every job writes the same bytes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from typing import TYPE_CHECKING

from cecdata.common.durable import STATE, HeldError
from cecdata.common.durable.lock import about_me, holder_of
from cecdata.common.errors import CecError
from cecdata.common.store import Store, Stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

LEASES = f"{STATE}/leases/"
LIVE_S = 60.0  # a claim not renewed for this long belongs to a job that was killed
_RENEW_S = 15.0
_SETTLE_S = 1.1  # times of objects are whole seconds: a claim made after this wait is younger
_BEAT = ".beat"


class Lease:
    """The lease `name` below a store's URI.

    If another job holds it, entering waits until it is free with `wait`, else raises HeldError.
    """

    def __init__(self, store: Store, name: str, *, wait: bool = False) -> None:
        self._store, self._name, self._wait = store, name, wait
        self._end = threading.Event()

    def __enter__(self) -> Self:
        while True:
            self._claim = f"{LEASES}{self._name}/{os.getpid()}-{secrets.token_hex(8)}"
            self._store.put_bytes(self._claim, about_me())
            time.sleep(_SETTLE_S)
            holder = self._older()
            if holder is None:
                break
            self._remove(self._claim)
            if not self._wait:
                raise HeldError(
                    f"{self._name} of {self._store.uri} is in use by {holder}. Wait for it to end, "
                    f"or kill it and run the same command {LIVE_S:.0f} seconds later"
                )
        threading.Thread(target=self._renew, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._remove(self._claim)
        self._remove(self._claim + _BEAT)

    def _older(self) -> str | None:
        """Return the holder of an older live claim, or None; remove claims no longer live."""
        objects = self._store.list()
        mine = objects[self._claim]
        for claim, stored in objects.items():
            if not claim.startswith(f"{LEASES}{self._name}/") or claim.endswith(_BEAT):
                continue
            if claim == self._claim:
                continue
            note = self._read(claim)
            if not live(objects, claim, mine.written_s) or not (holder := holder_of(note)):
                self._remove(claim)
                self._remove(claim + _BEAT)
            elif (stored.written_s, claim) < (mine.written_s, self._claim):
                return holder
        return None

    def _read(self, claim: str) -> bytes:
        try:
            return self._store.read(claim)
        except CecError:  # the claim has just been released
            return b""

    def _renew(self) -> None:
        while not self._end.wait(_RENEW_S):
            with contextlib.suppress(CecError):  # the job itself reports an unreachable store
                self._store.put_bytes(self._claim + _BEAT, b"")

    def _remove(self, name: str) -> None:
        with contextlib.suppress(CecError):
            self._store.remove(name)


def live(objects: Mapping[str, Stored], claim: str, now_s: float) -> bool:
    """Return whether a claim was made or renewed in the last `LIVE_S` seconds."""
    times = [objects[name].written_s for name in (claim, claim + _BEAT) if name in objects]
    return max(times) > now_s - LIVE_S


def claims(objects: Mapping[str, Stored]) -> dict[str, str]:
    """Return the live claims, each with the name of its lease, by the clock of this machine."""
    names = (name for name in objects if name.startswith(LEASES) and not name.endswith(_BEAT))
    now_s = time.time()
    return {name: name.split("/")[2] for name in names if live(objects, name, now_s)}
