"""Any causal LM gets the prompt of cecbench, thinking off, and trains: chats of several makers, and
plain text where there is no template."""

import os

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

from tiny_models import byte_level, gemma, llama

from cecdata.models import prompts
from cecdata.models.causal import encode_prompt
from cectrain import config
from cectrain.config import DataConfig
from cectrain.corrector.correction import apply_edits
from cectrain.corrector.policy import PolicyProposer, correct_texts, encode_target
from cectrain.data.shards import Pair
from cectrain.data.training_pairs import select_pairs
from cectrain.model import policy
from cectrain.reward.group_reward import GroupReward
from experiments.pretraining.model import small_qwen3

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

REAL = "CEC_QWEN3_TOKENIZER"
MADE = {
    "like qwen's": byte_level,
    "like gemma's": gemma,
    "like llama's": llama,
    "of a base model": lambda: llama(base=True),
}
#: what the model writes after
LAST = {
    "like qwen's": "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "like gemma's": "<end_of_turn>\n<start_of_turn>model\n",
    "like llama's": "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "of a base model": "他己经来了。\n",
}


@pytest.fixture(scope="module", params=[*MADE, "qwen3"])
def folder(request, tmp_path_factory):
    """A tiny random Qwen3 with a tokenizer: a stand-in, or the real one if it is available."""
    from transformers import AutoTokenizer

    if request.param == "qwen3":
        where = os.environ.get(REAL)
        if not where:
            pytest.skip(f"{REAL} does not name a folder with Qwen3's tokenizer.json and config")
        tokenizer = AutoTokenizer.from_pretrained(where)
    else:
        tokenizer = MADE[request.param]()
    out = tmp_path_factory.mktemp("chat") / "model"
    model, _ = small_qwen3(tokenizer, 7, hidden=32, layers=1)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return out


@pytest.fixture
def made(folder):
    return policy.load_policy(config.PolicyConfig(name=str(folder)))


def test_the_question_is_cecbenchs(made, folder, request):
    """The tokens equal those of the benchmark's system; a text begins as the model's texts do, and
    no thinking is left open."""
    from cecbench.systems.local import LlmOptions, LlmSystem

    ours = encode_prompt(made, "他己经来了。")
    theirs = encode_prompt(LlmSystem(str(folder), LlmOptions())._policy, "他己经来了。")
    text = made.tokenizer.decode(ours)
    assert ours == theirs
    assert prompts.find_prompt().instruction in text
    assert text.endswith(LAST.get(request.node.callspec.params["folder"], "</think>\n\n"))
    first = made.tokenizer.bos_token_id
    assert ours.count(first) == (first is not None)
    assert first in (None, ours[0])


def test_only_the_answer_and_its_end_are_learned(made):
    """Rows of several lengths: the question and the padding have no label, also where the token of
    the end pads."""
    from cectrain.run.loss import IGNORED, collate

    pairs = [Pair(1, 0, "己经", "已经", "noise"), Pair(2, 0, "天气很好吃", "天气很好。", "noise")]
    batch = collate(made, pairs)
    for pair, ids, labels in zip(pairs, batch["input_ids"], batch["labels"], strict=True):
        question, answer = encode_prompt(made, pair.source), encode_target(made, pair.target)
        end = len(question) + len(answer)
        assert ids[:end].tolist() == question + answer
        assert labels[: len(question)].unique().tolist() == [IGNORED]
        assert labels[len(question) : end].tolist() == answer
        assert answer[-1] == made.tokenizer.eos_token_id
        assert made.tokenizer.decode(answer, skip_special_tokens=True) == pair.target
        assert set(labels[end:].tolist()) <= {IGNORED}


def test_edits_of_a_byte_level_policy_spell_its_answer(made):
    """Several tokens a character: the edits lead to the answer, each with a probability."""
    pieces = ["他己经来了。", "天气𠀀很好，真的。"]
    for piece, answer, edits in zip(
        pieces, correct_texts(made, pieces), PolicyProposer(made).propose(pieces), strict=True
    ):
        assert apply_edits(piece, edits) == answer
        assert all(0 <= edit.confidence <= 1 for edit in edits)
        assert edits  # random weights


@pytest.mark.parametrize("folder", ["like qwen's", "of a base model"], indirect=True)
def test_ppo_runs_on_the_chat_path(made, dataset, encoder, tmp_path):
    """In one batch TRL renders the same prompt, and the candidates are rewarded."""
    from cectrain.run import trainer
    from cectrain.run.ppo import make_arguments

    settings = ["ppo.groups=2", "ppo.candidates=2", "ppo.updates=1", "ppo.epochs=1"]
    ppo = config.load("exact-match", [*settings, "ppo.oversampling=1", "ppo.baseline=value"]).ppo
    pairs = select_pairs(dataset, DataConfig(limit=4), 40, 42)
    args = make_arguments(ppo, out=tmp_path / "run", seed=42, new_tokens=4, processes=1, cpu=True)
    seen = []

    class Watching(trainer.GroupTrainer):
        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            asked = [
                ids[mask.bool()]
                for ids, mask in zip(
                    *(out[name] for name in ("prompt_ids", "prompt_mask")), strict=True
                )
            ]
            seen.extend(zip(inputs, asked, strict=True))
            return out

    reward = GroupReward(encoder, config.load("exact-match").reward, 2)
    watching = Watching(made, pairs, reward, ppo, args, sft_pairs=pairs, warmup_examples=0)
    assert watching.train().global_step == 1
    for row, ids in seen:
        assert ids.tolist() == encode_prompt(made, row["source"])


def test_a_prompt_of_one_s_own_is_stored_with_the_model(folder, tmp_path):
    """Its text, with the sentence in its place, is the only message, and a loaded policy has it."""
    from cectrain.corrector.policy import load
    from cectrain.model.policy import save_model

    own = load(str(folder), "改正：{sentence}。完")
    question = own.tokenizer.decode(encode_prompt(own, "他{己}经来了"))
    assert "改正：他{己}经来了。完" in question
    assert "system" not in question
    save_model(own, tmp_path / "model", {})
    assert encode_prompt(load(str(tmp_path / "model")), "好") == encode_prompt(own, "好")


def test_a_gguf_file_is_trained_as_any_model(tmp_path, monkeypatch):
    """Supervised steps with an adapter, from the command line; the result corrects."""
    from click.testing import CliRunner
    from tiny_models import llama_gguf

    from cectrain.cli import cli
    from cectrain.corrector.policy import load

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"他己经来了{n}次\t他已经来了{n}次\n" for n in range(40)), "utf-8")
    words = ["sft", str(pairs), "--model", str(llama_gguf(tmp_path / "model.gguf"))]
    words += ["--set", "policy.lora_rank=2", "--set", "policy.max_chars=9", "--set", "sft.steps=2"]
    words += ["--set", "data.tuning=true"]
    done = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    trained = load(str(tmp_path / "out"), device="cpu")
    assert correct_texts(trained, ["他己经来了。"])[0] is not None
