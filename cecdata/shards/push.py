"""The upload of a finished dataset to the Hugging Face Hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cecdata.common import hub, names
from cecdata.common.errors import InputError, MissingPackageError, RefusedError, how_to_install
from cecdata.shards.manifest import MANIFEST, PAIRS, POOL
from cecdata.shards.reader import Dataset, open_dataset


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to upload; `path` is relative to the dataset."""

    path: str
    bytes: int


def uploads(dataset: Dataset, *, rejects: bool = False) -> list[Upload]:
    """Return the files that `push` uploads: card, manifest and shards.

    Rejected rows are included only with `rejects`, because they are not part of the dataset.
    `run.json` is left out, because it names paths of this machine.
    """
    manifest = dataset.manifest
    records = [r for r in manifest.documents if r.path.endswith((".md", ".json"))]
    records += [record for files in manifest.outputs.values() for record in files]
    records += [record for record in manifest.rejects if rejects]
    size = (dataset.path / MANIFEST).stat().st_size
    return [Upload(MANIFEST, size), *(Upload(record.path, record.bytes) for record in records)]


def push(folder: Path, repository: str, *, private: bool = False, rejects: bool = False) -> str:
    """Upload the dataset in `folder` to OWNER/NAME in one commit, and return its address.

    Every file is hashed first. Raises VerificationError for a damaged dataset, RefusedError for a
    link in place of a file or folder, and InputError where the hub refuses or does not answer.
    """
    dataset = open_dataset(folder, PAIRS, POOL)
    files = uploads(dataset, rejects=rejects)
    for file in files:
        _refuse_links(dataset.path, file.path)
    listed = {file.path for file in files}
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
            operations = [CommitOperationAdd(file.path, folder / file.path) for file in files]
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
