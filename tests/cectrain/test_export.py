# ruff: noqa: E402 - what is not installed is asked first
"""An exported folder has greedy decoding, merged weights and a card of that model."""

import copy
import json

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from cectrain.config import PolicyConfig
from cectrain.model.policy import add_adapter, load_policy, save_model

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def decoding(policy, folder):
    """The generation config that is written for a policy."""
    save_model(policy, folder, {})
    return json.loads((folder / "generation_config.json").read_text("utf-8"))


def test_the_folder_decodes_greedily_whatever_its_base_did(small_policy, tmp_path):
    """End tokens of the base are kept, its sampling settings are not; an answer may use half of the
    context, and the policy in memory is unchanged."""
    from transformers import GenerationConfig

    policy = small_policy()
    end, pad = policy.tokenizer.eos_token_id, policy.tokenizer.pad_token_id
    base = GenerationConfig(
        do_sample=True, temperature=0.6, top_k=20, top_p=0.95, eos_token_id=[7, end], pad_token_id=9
    )
    policy.model.generation_config = base
    (tmp_path / "several").mkdir()
    (tmp_path / "several" / ".tmp-of-a-killed-run").write_bytes(b"half")
    found = decoding(policy, tmp_path / "several")
    assert not (tmp_path / "several" / ".tmp-of-a-killed-run").exists()
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


@pytest.fixture
def adapted(start):
    """A policy with a trained adapter over a base in a folder."""
    config = PolicyConfig(name=str(start), lora_rank=2)
    policy = add_adapter(load_policy(config, "cpu"), config)
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return policy


def test_an_adapter_is_merged(adapted, start, tmp_path):
    """The weights are peft's, and the card has the merged model's class and parameters."""
    plain = load_policy(PolicyConfig(name=str(start)), "cpu").model
    merged = copy.deepcopy(adapted.model).merge_and_unload().state_dict()
    save_model(adapted, tmp_path / "model", {})
    written = load_policy(PolicyConfig(name=str(tmp_path / "model")), "cpu").model.state_dict()
    assert all(torch.equal(written[name], merged[name]) for name in merged)
    assert not all(torch.equal(plain.state_dict()[name], merged[name]) for name in merged)
    told = (tmp_path / "model" / "README.md").read_text("utf-8")
    count = sum(parameter.numel() for parameter in plain.parameters())
    assert f"{count / 1e6:.1f} M parameters, Qwen3ForCausalLM" in told
