"""Arrays come back from their file as they were, and a damaged file is refused."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from cecdata.common.errors import InputError
from cectrain.corrector.change_scorer import ChangeScorer
from cectrain.corrector.folder import WEIGHTS
from cectrain.corrector.numpy_policy import read_tensors, to_single


def test_arrays_are_mapped(tmp_path):
    """With their types and shapes; writing to one leaves the file alone."""
    path = tmp_path / "a.safetensors"
    arrays = {"half": np.arange(6, dtype=np.float16).reshape(2, 3), "none": np.zeros((0, 4), "<f4")}
    save_file(arrays, path)
    for _ in range(2):
        tensors = read_tensors(path)
        assert tensors.keys() == arrays.keys()
        for name, array in tensors.items():
            assert array.dtype == arrays[name].dtype
            np.testing.assert_array_equal(array, arrays[name])
            array[...] = 1


@pytest.mark.parametrize("cut", [0, 4, 8, 60, -1])
def test_damage_is_noticed(tmp_path, cut):
    """A file that is cut anywhere."""
    path = copy_weights(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"model\.safetensors cannot be read"):
        read_tensors(path)


def test_a_half_of_a_single_is_read(tmp_path):
    """BF16 is the upper half of a float."""
    values = np.array([1.5, -2.0, 0.0], np.float32)
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(to_single(upper), values)


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
        (cut_rows, r"embed_tokens\.weight has the shape \(10, 256\), not \(8511, 256\)"),
        (retype, r"model\.norm\.weight is U8, not F32, F16 or BF16"),
        (spoil("model.layers.2.mlp.up_proj.weight", np.nan), "numbers that are not finite"),
        (spoil("model.embed_tokens.weight", np.inf), "numbers that are not finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path, change, message):
    """The message names the file and the tensor; no correction is silently lost."""
    path = copy_weights(tmp_path)
    arrays = {name: array.copy() for name, array in read_tensors(path).items()}
    change(arrays)
    save_file(arrays, path)
    with pytest.raises(InputError, match=rf"model\.safetensors.*{message}"):
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
