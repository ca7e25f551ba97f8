"""Arrays come back from their file as they were, and a damaged file is refused."""

import numpy as np
import pytest

from cecdata.common.errors import InputError
from cectrain.corrector.change_scorer import ChangeScorer
from cectrain.corrector.folder import WEIGHTS
from cectrain.corrector.tensors import read_tensors, single, write_tensors

ARRAYS = {
    "bytes": np.arange(7, dtype=np.uint8),
    "wide": np.arange(6, dtype=np.uint64).reshape(2, 3),
    "half": np.arange(5, dtype=np.float16),
    "none": np.zeros((0, 4), np.int32),
    "signed": np.arange(-3, 3, dtype=np.int64),
}


def test_arrays_come_back(tmp_path):
    """With their types, shapes, alignment and notes; writing to one leaves the file alone."""
    path = tmp_path / "a.tables"
    write_tensors(path, ARRAYS, {"of": "a test"})
    for _ in range(2):
        notes, arrays = read_tensors(path, proven=True)
        assert notes["of"] == "a test"
        assert arrays.keys() == ARRAYS.keys()
        for name, array in arrays.items():
            assert array.dtype == ARRAYS[name].dtype
            assert array.flags.aligned
            np.testing.assert_array_equal(array, ARRAYS[name])
            array[...] = 0


def test_other_readers_read_it(tmp_path):
    """The form is that of safetensors."""
    numpy = pytest.importorskip("safetensors.numpy")
    write_tensors(tmp_path / "a.safetensors", ARRAYS, {})
    for name, array in numpy.load_file(tmp_path / "a.safetensors").items():
        np.testing.assert_array_equal(array, ARRAYS[name])


@pytest.mark.parametrize("cut", [0, 4, 8, 60, -1, "flip"])
def test_damage_is_noticed(tmp_path, cut):
    """A file that is cut anywhere, or whose bytes have changed."""
    path = tmp_path / "a.tables"
    write_tensors(path, ARRAYS, {})
    data = bytearray(path.read_bytes())
    if cut == "flip":
        data[-1] ^= 1
    else:
        data = data[:cut]
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.tables cannot be read"):
        read_tensors(path, proven=True)


def test_a_half_of_a_single_is_read(tmp_path):
    """BF16 is the upper half of a float."""
    values = np.array([1.5, -2.0, 0.0], np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(single(upper), values)


def copy_weights(folder):
    for path in WEIGHTS.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder / "model.safetensors"


def cut_rows(arrays):
    rows = arrays["model.embed_tokens.weight"]
    arrays["model.embed_tokens.weight"] = rows[:10]


def spoil(name, value):
    def change(arrays):
        arrays[name] = arrays[name].copy()
        arrays[name].flat[7] = value

    return change


def retype(arrays):
    arrays["model.norm.weight"] = np.ones(256, np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut_rows, r"embed_tokens\.weight is float16 of shape \(10, 256\), not \(8511, 256\)"),
        (retype, r"model\.norm\.weight is uint8"),
        (spoil("model.layers.2.mlp.up_proj.weight", np.nan), "numbers that are not finite"),
        (spoil("model.embed_tokens.weight", np.inf), "numbers that are not finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, change, message):
    """The message names the file and the tensor; no correction is silently lost."""
    path = copy_weights(tmp_path)
    notes, arrays = read_tensors(path)
    change(arrays)
    write_tensors(path, arrays, notes)
    with pytest.raises(InputError, match=rf"model\.safetensors: .*{message}"):
        ChangeScorer(str(tmp_path))


def test_a_pointer_in_place_of_weights_is_named(tmp_path):
    """Git LFS leaves one where a clone did not fetch the files."""
    copy_weights(tmp_path).write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(InputError, match=r"model\.safetensors is a pointer of Git LFS"):
        ChangeScorer(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("config.json", '"num_hidden_layers": 4', '"num_hidden_layers": 5', "do not fit"),
        ("config.json", "{", "", "do not fit"),
        ("config.json", '"num_hidden_layers": 4', '"num_hidden_layers": 1000000000', "do not fit"),
        ("tokenizer.json", "<|source|>", "<|quelle|>", "cannot be combined with the channel"),
        ("tokenizer.json", '"vocab"', '"words"', "cannot be read"),
    ],
)
def test_a_folder_of_another_kind_is_refused(tmp_path, name, old, new, message):
    """Each with what is wrong, before anything is corrected."""
    copy_weights(tmp_path)
    text = (tmp_path / name).read_text("utf-8")
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new), "utf-8")
    with pytest.raises(InputError, match=message):
        ChangeScorer(str(tmp_path))
