"""Free memory of the heap returns to the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

CODE = """
import ctypes
from pathlib import Path
from cectrain.supervised import loop as memory

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
blocks = [libc.malloc(100_000) for _ in range(3000)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[:-1]:  # the last one, at the top, keeps the heap as it is
    libc.free(block)
before = held()
assert memory.trim()
print(before - held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is nothing to ask elsewhere")
def test_free_memory_returns_to_the_system():
    """300 MB freed below one block in use return to the system."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 250
