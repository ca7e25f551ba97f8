"""What all questions of a batch begin with passes a language model once, with the same gradient as
where each row passes as a whole."""

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")

import torch
import transformers
from tiny_models import llama

from cectrain import config
from cectrain.corrector.policy import Policy
from cectrain.data.shards import Pair
from cectrain.model.policy import add_adapter
from cectrain.run import loss

PAIRS = [("他己经来了。", "他已经来了。"), ("天汽很好。", "天气很好。"), ("再见。", "再见。"),
         ("我吃过反了吗？", "我吃过饭了吗？")]  # fmt: skip
ROWS = [Pair(n, 0, source, target, "labelled") for n, (source, target) in enumerate(PAIRS)]
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

SIZE = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 8, "num_hidden_layers": 3}  # fmt: skip
MODELS = {
    "gemma3, a window of 64 tokens": ("gemma3_text", {"sliding_window": 64}),
    "gemma3, a window that is longer": ("gemma3_text", {"sliding_window": 4096}),
    "qwen2": ("qwen2", {}),
    "llama": ("llama", {}),
}


def make_policy(name, rank):
    """Return a random model of this kind, with an adapter of this rank."""
    kind, more = MODELS[name]
    tokenizer = llama(base=True)
    tokenizer.pad_token = tokenizer.eos_token
    if kind == "gemma3_text":
        more |= {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        made = transformers.AutoConfig.for_model(kind, vocab_size=len(tokenizer), **SIZE, **more)
        policy = Policy(transformers.AutoModelForCausalLM.from_config(made), tokenizer, "1")
        return add_adapter(policy, config.PolicyConfig(lora_rank=rank))


def find_gradients(policy, **more):
    """Return the loss, its gradients, and the number of tokens that passed the model."""
    bare = policy.model.get_base_model() if hasattr(policy.model, "get_base_model") else None
    passed = []
    (bare or policy.model).get_input_embeddings().register_forward_hook(
        lambda _module, given, _out: passed.append(given[0].numel())
    )
    policy.model.train()
    value = loss.make_loss(policy, "fp32", **more)(loss.collate(policy, ROWS))
    value.backward()
    gradients = {n: p.grad for n, p in policy.model.named_parameters() if p.grad is not None}
    return value.item(), gradients, sum(passed)


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("name", MODELS)
def test_one_beginning_has_the_gradient_of_all(name, rank):
    """Loss and gradients are equal up to rounding, and fewer tokens pass; an adapter, too."""
    value, gradients, tokens = find_gradients(make_policy(name, rank))
    whole, wanted, all_tokens = find_gradients(make_policy(name, rank), fast_forward=False)
    assert value == pytest.approx(whole, rel=1e-5)
    assert gradients.keys() == wanted.keys()
    assert any(gradient.abs().max() > 1e-3 for gradient in wanted.values())
    for weight, gradient in gradients.items():
        torch.testing.assert_close(gradient, wanted[weight], rtol=1e-3, atol=1e-5)
    assert tokens < all_tokens / 2
