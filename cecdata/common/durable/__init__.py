"""Durable files: atomic writes, journals, locks and workspaces. All files are written here.

The order of every write: temporary file on the same filesystem → fsync → re-read → sha256 →
rename → fsync of the folder → journal. A file with its final name is therefore complete.
"""

from cecdata.common.durable.files import (
    publish,
    sha256_of,
    write,
    write_bytes,
    write_text,
)
from cecdata.common.durable.state import Journal, Lock
from cecdata.common.durable.workspace import STATE, Workspace

__all__ = [
    "STATE",
    "Journal",
    "Lock",
    "Workspace",
    "publish",
    "sha256_of",
    "write",
    "write_bytes",
    "write_text",
]
