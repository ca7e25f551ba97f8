# ruff: noqa: E402 - what is not installed is asked first
"""The shipped weights are small and complete, match their card, and correct errors."""

import hashlib
import json
import re

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from cectrain.config import PolicyConfig
from cectrain.corrector import folder
from cectrain.corrector.folder import read_prompt
from cectrain.corrector.policy import correct_texts
from cectrain.data.shards import Pair
from cectrain.model import policy, qwen3_forward
from experiments.pretraining.config import load
from experiments.pretraining.model import character_tokenizer
from experiments.pretraining.run import exact_greedy

CARD = (folder.WEIGHTS / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def builtin():
    return policy.load_policy(PolicyConfig(), "cpu")


def test_the_built_in_policy_is_trained_and_small(builtin):
    """It loads in fp32, has 2–6 M parameters, and the folder holds 12 MB at most."""
    assert all(p.dtype == torch.float32 for p in builtin.model.parameters())
    assert 2e6 < sum(p.numel() for p in builtin.model.parameters()) < 6e6
    files = list(folder.WEIGHTS.iterdir())
    assert sum(path.stat().st_size for path in files) <= 12_000_000
    assert not [path for path in files if path.suffix in (".bin", ".pt", ".pkl", ".py")]


def test_the_card_names_these_weights(builtin):
    """SHA-256, parameters and every origin of the recipe with its licence are in the card."""
    content = (folder.WEIGHTS / "model.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest() in CARD
    assert f"{sum(p.numel() for p in builtin.model.parameters()):,}" in CARD
    for name, origin in load().origins.items():
        row = rf"\n\| {name} \| {re.escape(origin.licence)} \| [\d,]+ \|\n"
        assert re.search(row, CARD)


def test_the_card_holds_no_path_of_a_machine():
    """The card names files without their folders."""
    assert not re.search(r"(?<![\w.])/(?:home|root|tmp|work|Users|mnt)\b", CARD)


def test_its_tokenizer_is_the_one_in_the_code(builtin):
    """Tokens, ids, template and padding side are equal."""
    tokenizer = character_tokenizer()
    assert builtin.tokenizer.get_vocab() == tokenizer.get_vocab()
    assert builtin.tokenizer.chat_template == tokenizer.chat_template
    assert builtin.tokenizer.padding_side == "left"
    text = "他己经<PHONE>𠀀来了。abc\n"
    assert builtin.tokenizer.encode(text) == tokenizer.encode(text)


def test_it_is_asked_with_the_prompt_of_its_training():
    """prompt.json names the version."""
    stored = json.loads((folder.WEIGHTS / "prompt.json").read_text("utf-8"))
    assert read_prompt("builtin") == stored["version"] == "1"


# Written for this test; each target's least likely token had a chance above 0.9.
WRONG = {
    "他己经来了。": "他已经来了。",
    "我们明天去学校#上课。": "我们明天去学校上课。",
    "这个问题非*常重要。": "这个问题非常重要。",
    "用户可以在系统中查看日志文件内溶。": "用户可以在系统中查看日志文件内容。",
    "我%们今天晚上去看电影吧。": "我们今天晚上去看电影吧。",
    "他说白勺话我都听懂了。": "他说的话我都听懂了。",
    "我们应该保护环竟。": "我们应该保护环境。",
    "我木目信你会成功的。": "我相信你会成功的。",
}
RIGHT = ("我喜欢在图书馆看书。", "用户可以修改配置文件。", "下雨了，记得带伞。")


def test_it_corrects_and_leaves_alone(builtin):
    """Errors of all five kinds are corrected, right sentences are left as they are."""
    assert list(correct_texts(builtin, list(WRONG))) == list(WRONG.values())
    assert list(correct_texts(builtin, RIGHT)) == list(RIGHT)


@pytest.mark.parametrize("lean_pass", [True, False])  # without it: as on a GPU
def test_one_pass_and_decoding_agree(builtin, monkeypatch, lean_pass):
    """exact_greedy is true exactly where decoding writes the target."""
    if not lean_pass:
        monkeypatch.setattr(qwen3_forward, "is_supported", lambda _model: False)
    pairs = [Pair(n, 0, source, target, "") for n, (source, target) in enumerate(WRONG.items())]
    pairs += [Pair(99, 0, source, source, "") for source in WRONG]
    written = list(correct_texts(builtin, [pair.source for pair in pairs]))
    wanted = [text == pair.target for text, pair in zip(written, pairs, strict=True)]
    assert exact_greedy(builtin, pairs, "fp32") == wanted
    assert 0 < sum(wanted) < len(wanted)
