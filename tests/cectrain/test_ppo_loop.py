"""The loop of examples/ppo_loop.py: short, complete, and independent of the trainer."""

import ast
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")
torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

FILE = Path(__file__).parents[2] / "examples" / "ppo_loop.py"


@pytest.fixture(scope="module")
def loop():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("ppo_loop", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_short_and_takes_only_the_reward():
    """A researcher reads 250 lines, and none of cectrain's machinery."""
    text = FILE.read_text("utf-8")
    assert len(text.splitlines()) <= 250
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    own = {node.module for node in nodes if node.module.startswith("cectrain")}
    assert own == {f"cectrain.{name}" for name in ("config", "reward.batch", "reward.terms")}


def test_it_trains_on_a_dataset(loop, dataset_path, capsys, monkeypatch):
    """Two updates move the weights and print their figures; scores are fractions."""
    monkeypatch.setattr(loop, "MOST", 20)
    before, after = loop.train(dataset_path, updates=2, groups=2, size=2, held_out=2, seed=1)
    assert all(0 <= share <= 1 for share in (*before, *after))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["before:", "1", "2", "after:"]


def test_the_clipped_objective_favours_what_earned_more(loop):
    """After an update, an answer of negative advantage is less likely, and more so than another."""
    policy = loop.Policy(str(Path(loop.files("cectrain") / "weights")))
    prompts = policy.prompts(["他己经来了。", "他己经来了。"])
    texts = ["他已经来了。<|end|>", "他己经来了。<|end|>"]
    answers = policy.tokenizer(texts, add_special_tokens=False, return_tensors="pt").input_ids
    optimizer = torch.optim.SGD(policy.model.parameters(), 0.01)

    def chances():
        with torch.no_grad():
            return policy.log_probs(*prompts, answers)[0].sum(1)

    first = chances()
    loop.update(policy, optimizer, prompts, answers, torch.tensor([1.0, -1.0]))
    change = chances() - first
    assert change[1] < min(0, change[0])
