"""FP16 vectors by 64-bit id: sorted keys, mapped segments, a FAISS file, checksums on everything.

DIR/cache.json names the other files and is replaced last: a file that it does not name does not
count. Segments never change; a reader keeps using those that it opened while a writer appends or
compacts.
"""

from __future__ import annotations

from cecdata.embed.cache.layout import SIDECAR, Sidecar, read_sidecar
from cecdata.embed.cache.reader import Cache, Found, ids_of
from cecdata.embed.cache.verify import verify_cache
from cecdata.embed.cache.writer import CacheWriter

__all__ = [
    "SIDECAR",
    "Cache",
    "CacheWriter",
    "Found",
    "Sidecar",
    "ids_of",
    "read_sidecar",
    "verify_cache",
]
