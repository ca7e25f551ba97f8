"""One loader for every causal model: what is refused is refused alike, before memory is taken."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cecdata.common import progress
from cecdata.common.errors import InputError, MissingPackageError
from cecdata.lm import open_scorer
from cecdata.models.loading import name_cache

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and its kin, none ours

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 13\n"
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    from tiny_models import qwen3

    return qwen3(tmp_path_factory.mktemp("models") / "qwen3")


@pytest.fixture
def folder(sound, tmp_path):
    """The same, to be spoiled."""
    return shutil.copytree(sound, tmp_path / "model")


def ask(folder):
    from cecbench.systems.local import LlmOptions, LlmSystem

    return LlmSystem(str(folder), LlmOptions(device="cpu", batch=2))


def train(folder):
    from cectrain.corrector.policy import load

    return load(str(folder), "1", "cpu")


CONSUMERS = {"judge": open_scorer, "ask": ask, "train": train}


def settings(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")


def weights(folder, change):
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"format": "pt"})


def spoil_nan(folder):
    weights(folder, lambda t: t["model.layers.0.mlp.up_proj.weight"][0].fill_(torch.nan))


def spoil_inf(folder):
    weights(folder, lambda t: t["model.embed_tokens.weight"][5, 0].fill_(torch.inf))


def spoil_cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def spoil_rows(folder):
    """Take the last rows off the embedding, so that the tokenizer is larger."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(200)
    model.config.pad_token_id = model.config.eos_token_id = None
    model.save_pretrained(folder)


def spoil_kind(folder):
    shutil.rmtree(folder)
    from tiny_models import bert

    bert(folder)


def spoil_vocabulary(folder):
    """Leave Latin letters alone in the vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    core = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="[UNK]", eos_token="a"
    ).save_pretrained(folder)


SPOILED = {
    "weights that are not a number": (spoil_nan, "up_proj.weight has weights that are not finite"),
    "an infinite weight": (spoil_inf, "embed_tokens.weight has weights that are not finite"),
    "a file that is cut off": (spoil_cut, "cannot be loaded"),
    "an empty file": (
        lambda f: (f / "model.safetensors").write_bytes(b""), r"model\.safetensors is empty",
    ),
    "a pointer": (
        lambda f: (f / "model.safetensors").write_bytes(POINTER),
        r"model\.safetensors is a pointer of Git LFS",
    ),
    "one layer too many": (
        lambda f: settings(f, num_hidden_layers=2, layer_types=["full_attention"] * 2),
        r"lacks \d+ of the model's tensors",
    ),
    "too wide": (
        lambda f: settings(f, intermediate_size=1 << 40), "has .* billion parameters",
    ),
    "a tokenizer that is too large": (spoil_rows, "the tokenizer has tokens up to number"),
    "a vocabulary without Chinese": (spoil_vocabulary, "vocabulary of .* has no Chinese"),
    "settings that contradict each other": (
        lambda f: settings(f, pad_token_id=10**6), "no model can have these settings",
    ),
    "a masked model": (spoil_kind, r"not a causal language model \(BertForMaskedLM\)"),
}  # fmt: skip


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_sound_model_loads(sound, consumer):
    """What is refused below is refused for its own reason."""
    assert CONSUMERS[consumer](sound) is not None


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("fault", SPOILED)
def test_a_model_that_does_not_fit_is_refused(folder, fault, consumer):
    """A judge, a system and a training say the same, and name what is wrong."""
    spoil, message = SPOILED[fault]
    spoil(folder)
    with pytest.raises(InputError, match=message) as caught:
        CONSUMERS[consumer](folder)
    assert str(folder) in str(caught.value)


def test_a_model_beyond_the_memory_is_refused_before_it_is_loaded(folder):
    """The message has the size and what is free; the weights are not read."""
    settings(folder, hidden_size=131_072, intermediate_size=524_288)
    with pytest.raises(InputError, match=r"billion parameters, .* GiB in .*, but .* free on cpu"):
        open_scorer(folder)


def test_a_run_that_is_not_finished_is_no_model(tmp_path):
    """The message says so, and does not ask for files that the end of the run writes."""
    (tmp_path / ".cecdata").mkdir()
    with pytest.raises(InputError, match="the folder of a training, that is not finished"):
        open_scorer(tmp_path)


def gguf(path, **values):
    """Write the head of a GGUF file that has no tensors."""
    pairs = {"general.architecture": "llama", **values}
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs))
    for name, value in pairs.items():
        data += struct.pack("<Q", len(name)) + name.encode()
        if isinstance(value, str):
            data += struct.pack("<IQ", 8, len(value)) + value.encode()
        else:
            data += struct.pack("<II", 4, value)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (POINTER, "is a pointer of Git LFS"),
        (b"GGUF\x03\0\0\0\xff\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0", "cannot be loaded"),
        (b"<!DOCTYPE html>" * 9, "cannot be loaded"),
    ],
)
def test_a_damaged_gguf_file_is_named(tmp_path, monkeypatch, capsys, data, message):
    """The message names the file and not its folder, and no other says that it is read."""
    monkeypatch.setattr(progress, "command_runs", True)
    path = tmp_path / "judge.gguf"
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"judge\.gguf {message}"):
        open_scorer(path)
    assert not list(tmp_path.glob("*.json"))
    assert "for the first time" not in capsys.readouterr().err


def test_a_gguf_file_of_countless_layers_is_refused(tmp_path):
    """At once: its parameters are counted by making them, which would take minutes."""
    with pytest.raises(InputError, match=r"judge\.gguf: no model has 1,000,000,000 layers"):
        open_scorer(gguf(tmp_path / "judge.gguf", **{"llama.block_count": 10**9}))


def test_a_gguf_file_judges_while_it_is_whole(tmp_path, monkeypatch, capsys):
    """With what the extra `lm` brings; without its last bytes it is refused by name, at once."""
    from tiny_models import llama_gguf

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(progress, "command_runs", True)
    path = llama_gguf(tmp_path / "judge.gguf")
    judge = open_scorer(path)
    assert judge.log_prob(["他来了。"])[0] < 0
    assert open_scorer(tmp_path).identity  # the one file of a folder
    assert "is read for the first time" in capsys.readouterr().err
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"judge\.gguf cannot be loaded.*download it again"):
        open_scorer(path)
    assert "for the first time" not in capsys.readouterr().err


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_gguf_file_is_a_model_as_any_other(tmp_path, consumer):
    """It judges, is asked and is trained; so does a folder that has nothing else."""
    from tiny_models import llama_gguf

    path = llama_gguf(tmp_path / "model.gguf")
    for name in (path, tmp_path):
        assert CONSUMERS[consumer](name) is not None


@pytest.mark.parametrize("consumer", ["ask", "train"])
def test_a_model_without_an_end_token_is_refused(folder, consumer):
    """Its answers would never end; a judge writes none."""
    path = folder / "tokenizer_config.json"
    told = {**json.loads(path.read_text("utf-8")), "eos_token": None}
    path.write_text(json.dumps(told), "utf-8")
    assert open_scorer(folder)
    with pytest.raises(InputError, match="has no end token: set eos_token in tokenizer_config"):
        CONSUMERS[consumer](folder)


def test_a_missing_package_is_named_before_anything_is_imported(tmp_path):
    """The extra `lm` brings all that a GGUF file needs; torch takes seconds to import."""
    gguf(tmp_path / "judge.gguf")
    code = (
        "import sys\nsys.modules['accelerate'] = None\n"
        "from cecdata.lm import open_scorer\n"
        "from cecdata.common.errors import MissingPackageError\n"
        "try:\n    open_scorer('judge.gguf')\n"
        "except MissingPackageError as error:\n    print(error)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    message, loaded = done.stdout.splitlines()
    assert "need accelerate, which is missing: run pip install 'cec-zero[lm]'" in message
    assert loaded == "False"
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    extra = next(line for line in project.splitlines() if line.startswith("lm = "))
    assert all(f'"{name}>=' in extra for name in ("accelerate", "gguf", "torch", "transformers"))
    assert issubclass(MissingPackageError, ImportError)


def test_the_cache_has_the_name_of_the_installed_version():
    """Of transformers, which renamed it; by the other name, nothing is read once."""
    before = SimpleNamespace(forward=lambda past_key_values: past_key_values)
    assert name_cache(before) == "past_key_values"
    assert name_cache(SimpleNamespace(forward=lambda cache: cache)) == "cache"


def test_an_instruction_reaches_a_model_without_a_system_role(folder):
    """It stands before the first sentence, which the identity says; other models keep theirs."""
    from cecdata.models import causal, prompts

    before = ask(folder).identity
    assert "instruction" not in before
    (folder / "chat_template.jinja").write_text(NO_SYSTEM, "utf-8")
    for version in ("1", "2"):
        model = causal.load(str(folder), version, "cpu")
        text = model.tokenizer.decode(causal.encode_prompt(model, "他己经来了。"))
        instruction = prompts.find_prompt(version).instruction
        assert text.count(instruction) == 1
        assert text.index(instruction) < text.index("他己经来了。")
        chat = causal.make_question(model, "他己经来了。")
        assert {message["role"] for message in chat} <= {"user", "assistant"}
    assert ask(folder).identity["instruction"] == "before the first sentence"
    assert train(folder).system is False


def test_a_template_that_takes_no_prompt_is_refused(folder):
    """The message has the template's own, and says that another prompt may do."""
    (folder / "chat_template.jinja").write_text("{{ raise_exception('no chats') }}", "utf-8")
    with pytest.raises(InputError, match=r"chat template of .*no chats.*--prompt"):
        ask(folder)


def test_a_gguf_file_is_converted_once(tmp_path, monkeypatch):
    """The second start reads the safetensors in the cache, and gives the same numbers."""
    from tiny_models import llama_gguf

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = llama_gguf(tmp_path / "judge.gguf")
    nats = open_scorer(path).log_prob(["他来了。"])[0]
    (folder,) = (tmp_path / "cache/cec-zero/gguf").iterdir()
    made = (folder / "model.safetensors").stat().st_mtime_ns
    (path.parent / "other").mkdir()
    moved = path.rename(path.parent / "other/moved.gguf")
    assert open_scorer(moved).log_prob(["他来了。"])[0] == nats
    assert (folder / "model.safetensors").stat().st_mtime_ns == made


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", ".record.json"])
@pytest.mark.parametrize("damage", ["cut", "absent"])
def test_a_damaged_conversion_is_made_again(tmp_path, monkeypatch, name, damage):
    """Whichever of its files was cut or removed."""
    from tiny_models import llama_gguf

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = llama_gguf(tmp_path / "judge.gguf")
    nats = open_scorer(path).log_prob(["他来了。"])[0]
    (folder,) = (tmp_path / "cache/cec-zero/gguf").iterdir()
    whole = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage == "cut":
        (folder / name).write_bytes(whole[:-1])
    assert open_scorer(path).log_prob(["他来了。"])[0] == nats
    assert (folder / name).read_bytes() == whole


def test_another_file_of_the_same_name_replaces_its_conversion(tmp_path, monkeypatch):
    """The cache has one folder for each file, and nothing of a process that was killed."""
    from tiny_models import llama_gguf

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "cache/cec-zero/gguf"
    (root / ".999999999-0123").mkdir(parents=True)
    path = llama_gguf(tmp_path / "judge.gguf")
    open_scorer(path)
    path.write_bytes(path.read_bytes() + b"\0")
    open_scorer(path)
    (folder,) = root.iterdir()
    assert folder.name.startswith(hashlib.sha256(path.read_bytes()).hexdigest()[:16])


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path, monkeypatch, capsys):
    """The model is read all the same."""
    from tiny_models import llama_gguf

    monkeypatch.setattr(progress, "command_runs", True)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert open_scorer(llama_gguf(tmp_path / "judge.gguf")).log_prob(["他来了。"])[0] < 0
    assert "has to be read again next time" in capsys.readouterr().err
