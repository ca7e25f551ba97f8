# ruff: noqa: E402 - what is not installed is asked first
"""What an exported folder says: greedy decoding, merged weights, a card of the model that it holds."""

import json

import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")

from cectrain.export import save_model

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def decoding(policy, folder):
    """The generation config that is written for a policy."""
    save_model(policy, folder, {})
    return json.loads((folder / "generation_config.json").read_text("utf-8"))


def test_the_folder_decodes_greedily_whatever_its_base_did(small_policy, tmp_path):
    """Qwen3 samples with several end tokens: those stay, and what a tool would sample with goes.

    An answer may take half of the context, and the policy in memory stays as it was.
    """
    from transformers import GenerationConfig

    policy = small_policy()
    end, pad = policy.tokenizer.eos_token_id, policy.tokenizer.pad_token_id
    base = GenerationConfig(
        do_sample=True, temperature=0.6, top_k=20, top_p=0.95, eos_token_id=[7, end], pad_token_id=9
    )
    policy.model.generation_config = base
    found = decoding(policy, tmp_path / "several")
    assert found.pop("transformers_version")
    assert found == {
        "do_sample": False, "eos_token_id": [7, end], "pad_token_id": pad, "max_new_tokens": 512,
    }  # fmt: skip
    assert policy.model.generation_config is base
    # vLLM takes its temperature from there, and does not know do_sample: the card has the words.
    told = (tmp_path / "several" / "README.md").read_text("utf-8")
    assert """vllm serve FOLDER --override-generation-config '{"temperature": 0}'""" in told
    # What the policy has learnt to end with is no token that its base ended with.
    policy.model.generation_config = GenerationConfig(do_sample=True, eos_token_id=7)
    assert decoding(policy, tmp_path / "another")["eos_token_id"] == [7, end]
    policy.model.generation_config = GenerationConfig(do_sample=True)
    assert decoding(policy, tmp_path / "none")["eos_token_id"] == end
