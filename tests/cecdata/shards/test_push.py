"""A dataset is uploaded whole or not at all, and a dry run asks no server."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from cecdata.cli import cli
from cecdata.common.errors import InputError
from cecdata.shards.push import push


def test_a_dry_run_lists_every_file_of_the_dataset(dataset, monkeypatch):
    """Card, manifest and shards, not the rejects."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    done = CliRunner().invoke(cli, ["push", str(dataset), "owner/name", "--dry-run"])
    assert done.exit_code == 0, done.output
    *listed, last = done.stdout.splitlines()
    shards = {path.relative_to(dataset).as_posix() for path in dataset.glob("data/*")}
    assert set(listed) == {"README.md", "manifest.json", *shards}
    assert last == "not uploaded (--dry-run)"


def test_a_damaged_dataset_is_not_uploaded(dataset, monkeypatch):
    """Before a server is asked, each shard is compared with its digest in the manifest."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    shard = next((dataset / "data").glob("train-*.parquet"))
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    done = CliRunner().invoke(cli, ["push", str(dataset), "owner/name"])
    assert "damaged" in done.output


def test_a_hub_that_does_not_answer_is_an_error_with_advice(dataset):
    """The message names the repository and how to log in."""
    pytest.importorskip("huggingface_hub", reason="the extra `embed` is not installed")
    import huggingface_hub.constants as constants

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
        with pytest.raises(InputError, match=r"owner/name.*hf auth login"):
            push(dataset, "owner/name")


@pytest.mark.parametrize("name", ["data", "a/b/c", "owner/", "../x", "/x"])
def test_a_repository_has_an_owner_and_a_name(dataset, name):
    """Another form is refused before anything is read."""
    done = CliRunner().invoke(cli, ["push", str(dataset), name, "--dry-run"])
    assert "OWNER/NAME" in done.output
