"""The upload of a finished dataset to the Hugging Face Hub."""

from __future__ import annotations

from pathlib import Path

from cecdata.common import hub, names
from cecdata.common.errors import InputError, MissingPackageError, RefusedError, how_to_install
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL
from cecdata.shards.reader import Dataset, open_dataset


def uploads(dataset: Dataset) -> list[str]:
    """Return the files that `push` uploads, relative to the dataset: card, manifest and shards.

    Left out are rejected rows, which are not part of the dataset, and `run.json`, which names paths
    of this machine.
    """
    manifest = dataset.manifest
    documents = [r.path for r in manifest.documents if r.path.endswith((".md", ".json"))]
    shards = [record.path for files in manifest.outputs.values() for record in files]
    return [MANIFEST, *documents, *shards]


def push(folder: Path, repository: str, *, private: bool = False) -> str:
    """Upload the dataset in `folder` to OWNER/NAME in one commit, and return its address.

    Every file is hashed first. Raises VerificationError for a damaged dataset, RefusedError for a
    link in place of a file or folder, and InputError where the hub refuses or does not answer.
    """
    dataset = open_dataset(folder, PAIRS, POOL)
    listed = uploads(dataset)
    for name in listed:
        _refuse_links(dataset.path, name)
    dataset.prove_files(r for r in dataset.manifest.files() if r.path in listed)
    hub.prepare_hub()
    try:
        from huggingface_hub import CommitOperationAdd, HfApi
    except ImportError as error:
        raise MissingPackageError(
            f"push needs huggingface_hub: {how_to_install('embed')}"
        ) from error
    with hub.quiet_hub():
        try:
            HfApi().create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
            operations = [CommitOperationAdd(name, folder / name) for name in listed]
            commit = HfApi().create_commit(
                repository, operations, commit_message="Upload the dataset", repo_type="dataset"
            )
        except Exception as error:  # noqa: BLE001 - no network, no login, no such owner
            raise InputError(
                f"{repository}: the upload failed ({hub.first_line(error)}). Log in with "
                "`hf auth login` or set HF_TOKEN, and check the name OWNER/NAME and the network"
            ) from None
    return str(commit.commit_url)


def _refuse_links(root: Path, name: str) -> None:
    """Raise RefusedError where a part of a name is a link: git and tar can bring one."""
    try:
        names.below(root, name)
    except ValueError as error:
        raise RefusedError(
            f"{error}: put the file itself there, or make the dataset anew"
        ) from error
