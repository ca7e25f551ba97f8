"""Which commit made a result: the tree's own, and nobody else's."""

import re
import subprocess

from cecdata.common.version import git_commit


def test_the_commit_of_a_file_s_own_tree(tmp_path):
    """Forty digits, `-dirty` behind a change; nothing for a file that the tree does not hold, as
    a package is that lies in another project's environment."""

    def git(*words):
        name = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(tmp_path), *name, *words], check=True, capture_output=True)

    own, installed = tmp_path / "own.py", tmp_path / ".venv" / "package.py"
    installed.parent.mkdir()
    own.write_text("1")
    installed.write_text("1")
    assert git_commit(own) == ""
    git("init")
    git("add", "own.py")
    git("commit", "-m", "first")
    assert re.fullmatch("[0-9a-f]{40}", git_commit(own))
    assert git_commit(installed) == ""
    first = git_commit(own)
    own.write_text("2")
    assert git_commit(own) == f"{first}-dirty"
