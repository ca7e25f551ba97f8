"""A copy that the kernel makes passes through no write call: the shim sees it all the same."""

from __future__ import annotations

import pytest
from test_synced import recorded

COPIES = """
    import shutil
    (here / "a").write_bytes(b"x" * 9000)
    armed()
    if {how!r} == "shutil":
        shutil.copyfile(here / "a", here / "b")
    else:
        one, other = os.open(here / "a", os.O_RDONLY), os.open(here / "b", os.O_WRONLY | os.O_CREAT)
        copy = {{"sendfile": lambda: os.sendfile(other, one, 0, 9000),
                "copy_file_range": lambda: os.copy_file_range(one, other, 9000)}}[{how!r}]
        assert copy() == 9000
    assert (here / "b").read_bytes() == b"x" * 9000
"""


@pytest.mark.parametrize("how", ["shutil", "sendfile", "copy_file_range"])
def test_a_copy_inside_the_kernel_is_counted(place, how):
    """As a read of one file and a write of the other, before the copy is read back."""
    here, calls = recorded(place, COPIES.format(how=how))
    seen = [(kind, path) for kind, path, _ in calls]
    assert ("write", str(here / "b")) in seen
    assert seen.index(("read", str(here / "a"))) < seen.index(("write", str(here / "b")))
