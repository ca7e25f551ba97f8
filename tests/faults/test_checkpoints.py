"""Checkpoints: a damaged one never costs a whole one."""

from __future__ import annotations

from cectrain import checkpoints


def saved(folder, step):
    checkpoints.save(folder, lambda where: (where / "weights").write_bytes(b"w"), step=step)


def test_a_damaged_checkpoint_does_not_count(tmp_path):
    """One that fails its proof and has a higher number is not kept in place of a whole one."""
    for step in (2, 4):
        saved(tmp_path / f"checkpoint-{step}", step)
    (tmp_path / "checkpoint-4" / "weights").write_bytes(b"x")
    assert checkpoints.newest(tmp_path)[1] == {"step": 2}
    saved(tmp_path / "checkpoint-3", 3)
    checkpoints.prune(tmp_path, 1, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-3"]
    assert checkpoints.newest(tmp_path)[1] == {"step": 3}
