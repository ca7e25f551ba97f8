"""Speculative decoding, and the variance that chooses sources, are those of the policy itself."""

import math

import pytest

pytest.importorskip("transformers", reason="the extra `train` is not installed")

import torch

from cecdata.common.errors import UsageError
from cecdata.models.causal import encode_prompt
from cectrain import config
from cectrain.corrector import speculative
from cectrain.corrector.policy import encode_target
from cectrain.data.shards import Pair
from cectrain.model import qwen3_forward
from cectrain.run import batches

END = 3


@pytest.fixture(scope="module")
def sure(small_policy):
    """A small random model with probabilities sharp enough to accept and to reject."""
    model = small_policy(layers=2).model
    with torch.no_grad():
        model.model.norm.weight.mul_(6.0)
    return model.eval()


def slowly(model, prompt, longest):
    """The oracle: greedy search, token by token, each from a pass over everything."""
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(longest):
            logits = model(input_ids=torch.tensor([tokens])).logits[0, -1]
            tokens.append(int(logits.argmax()))
            if tokens[-1] == END:
                break
    return tokens[len(prompt) :]


def logp_of(model, prompt, tokens, temperature=1.0):
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0]
    logp = torch.log_softmax(logits / temperature, dim=-1)
    rows = range(len(prompt) - 1, len(prompt) + len(tokens) - 1)
    return [float(logp[row, token]) for row, token in zip(rows, tokens, strict=True)]


PROMPTS = [[1, 500, 600, 700, 2], [1, 900, 2], [1, 801, 802, 803, 804, 805, 806, 2]]


@pytest.mark.parametrize("kind", ["source", "right", "nearly", "empty"])
def test_greedy_is_greedy_whatever_the_draft(sure, kind):
    """The draft is the source, the answer itself, the answer with errors, or empty."""
    wanted = [slowly(sure, prompt, 24) for prompt in PROMPTS]
    drafts = {
        "source": [prompt[1:-1] for prompt in PROMPTS],
        "right": [[t for t in tokens if t != END] for tokens in wanted],
        "nearly": [[*t[:3], 999, *t[4:9], *t[10:14], 77, *t[14:]] for t in wanted],
        "empty": [[] for _ in PROMPTS],
    }[kind]
    found = speculative.write_answers(
        sure, PROMPTS, drafts, 1, end=END, longest=24, temperature=None
    )
    assert [one.tokens for one in found] == wanted


def test_log_probabilities_are_those_of_a_pass_over_everything(sure):
    """The log-probability kept with each token equals the model's at the temperature."""
    torch.manual_seed(3)
    drafts = [prompt[1:-1] for prompt in PROMPTS]
    found = speculative.write_answers(
        sure, PROMPTS, drafts, 3, end=END, longest=12, temperature=0.8
    )
    for place, one in enumerate(found):
        slow = logp_of(sure, PROMPTS[place // 3], one.tokens, 0.8)
        assert one.log_probs == pytest.approx(slow, abs=1e-4)
        assert len(one.tokens) <= 12
        assert END not in one.tokens[:-1]


@pytest.mark.parametrize("top_p", [0.3, 0.6, 0.95, 0.999])
def test_the_nucleus_is_transformers(sure, top_p):
    """The same tokens are kept as by transformers' warper, with the same probabilities, whether
    the most likely tokens suffice or all must be sorted."""
    from transformers import TopPLogitsWarper

    with torch.no_grad():
        logits = sure(input_ids=torch.tensor(PROMPTS[2:])).logits[0].float()
    theirs = TopPLogitsWarper(top_p)(None, logits).log_softmax(-1)
    ours = speculative.keep_nucleus(logits.log_softmax(-1), top_p)
    # A sum of thousands of probabilities rounds: a token at the border may be in or out.
    assert int((ours.isinf() != theirs.isinf()).sum(-1).max()) <= (10 if top_p > 0.99 else 0)
    torch.testing.assert_close(ours.exp(), theirs.exp(), atol=5e-5, rtol=1e-4)


@pytest.mark.parametrize("draft", [[500, 600], [700]])
def test_drafts_are_judged_within_the_nucleus(sure, draft):
    """Frequencies of first tokens match the nucleus, and none outside it is ever drawn."""
    torch.manual_seed(5)
    prompt, draws = [1, 500, 2], 300
    with torch.no_grad():
        logits = sure(input_ids=torch.tensor([prompt])).logits[0, -1:]
    inside = speculative.keep_nucleus(logits.log_softmax(-1), 0.6)[0].exp()
    drawn = speculative.write_answers(sure, [prompt], [draft], draws, end=END, longest=2, top_p=0.6)
    counts = torch.bincount(torch.tensor([one.tokens[0] for one in drawn]), minlength=len(inside))
    assert not bool(counts[inside == 0].any())
    likely = inside.topk(20)
    spread = (likely.values * (1 - likely.values) / draws).sqrt()
    assert bool(((counts[likely.indices] / draws - likely.values).abs() <= 4.5 * spread).all())


@pytest.mark.parametrize(
    "draft",
    [
        [500, 600],
        pytest.param([], marks=pytest.mark.slow),
        pytest.param([700, 700, 700], marks=pytest.mark.slow),
    ],
)
def test_the_distribution_is_the_models_own(sure, draft):
    """Frequencies of the first two tokens over many draws match the exact probabilities."""
    torch.manual_seed(11)
    prompt, draws = [1, 500, 2], 1500
    with torch.no_grad():
        first = sure(input_ids=torch.tensor([prompt])).logits[0, -1].softmax(-1)
    likely = first.topk(4).indices.tolist()
    found = speculative.write_answers(sure, [prompt], [draft], draws, end=END, longest=2)
    starts = torch.tensor([one.tokens[0] for one in found])
    for token in likely:
        expected, seen = float(first[token]), float((starts == token).float().mean())
        assert seen == pytest.approx(expected, abs=4 * (expected * (1 - expected) / draws) ** 0.5)
    top = likely[0]
    with torch.no_grad():
        second = sure(input_ids=torch.tensor([[*prompt, top]])).logits[0, -1].softmax(-1)
    after = torch.tensor([one.tokens[1] for one in found if one.tokens[0] == top])
    for token in second.topk(2).indices.tolist():
        expected, seen = float(second[token]), float((after == token).float().mean())
        spread = (expected * (1 - expected) / max(1, len(after))) ** 0.5
        assert seen == pytest.approx(expected, abs=4.5 * spread + 1e-3)


def test_a_right_draft_costs_one_pass(sure, monkeypatch):
    """A draft that equals the answer needs one pass, and one error in it one more."""
    passes, forward = [], speculative._run_pass
    monkeypatch.setattr(speculative, "_run_pass", lambda *a: passes.append(1) or forward(*a))
    wanted = slowly(sure, PROMPTS[2], 20)
    body = [t for t in wanted if t != END]
    speculative.write_answers(
        sure, PROMPTS[2:], [body], 4, end=END, longest=len(body), temperature=None
    )
    assert len(passes) == 1
    passes.clear()
    slip = [*body[:5], 4000, *body[6:]]
    speculative.write_answers(
        sure, PROMPTS[2:], [slip], 4, end=END, longest=len(body), temperature=None
    )
    assert len(passes) == 2


def test_many_prompts_are_taken_in_parts(sure, monkeypatch):
    """With bounded memory, one prompt at a time gives the same as all at once."""
    drafts = [prompt[1:-1] for prompt in PROMPTS]
    whole = speculative.write_answers(
        sure, PROMPTS, drafts, 2, end=END, longest=8, temperature=None
    )
    monkeypatch.setattr(speculative, "_CELLS", 1)
    parts = speculative.write_answers(
        sure, PROMPTS, drafts, 2, end=END, longest=8, temperature=None
    )
    assert [a.tokens for a in whole] == [b.tokens for b in parts]


def test_what_is_supported(sure):
    """Only decoders with full attention are supported; others generate token by token."""
    assert speculative.is_supported(sure)
    other = type("Other", (), {"config": type("C", (), {"model_type": "mamba"})()})()
    assert not speculative.is_supported(other)


PAIRS = [
    Pair(1, 0, "他己经来了", "他已经来了", "near_glyph"),
    Pair(2, 0, "天", "天", ""),
    Pair(3, 0, "今天的天气很好我们去公圆", "今天的天气很好我们去公园", "homophone"),
]


def by_hand(policy, pair, temperature):
    """The oracle: the probability of the whole reference, token by token, with transformers."""
    given, answer = encode_prompt(policy, pair.source), encode_target(policy, pair.target)
    total = 0.0
    for place, token in enumerate(answer):
        ids = torch.tensor([given + answer[:place]])
        logits = policy.model(input_ids=ids).logits[0, -1].double() / temperature
        total += logits.log_softmax(-1)[token].item()
    return math.exp(total)


@pytest.mark.parametrize("known", [True, False], ids=["lean pass", "transformers' pass"])
def test_as_by_hand(small_policy, monkeypatch, known):
    """Either pass gives the product of the tokens' probabilities at the temperature."""
    monkeypatch.setattr(qwen3_forward, "pick_dtype", lambda: torch.float32)
    monkeypatch.setattr(batches, "_ROWS", 2)
    if not known:
        monkeypatch.setattr(qwen3_forward, "is_supported", lambda _model: False)
    policy = small_policy(hidden=64, layers=2)
    # a random policy writes nothing in particular: a low temperature makes chances that count
    for temperature in (1.0, 0.02):
        chances = torch.tensor([by_hand(policy, pair, temperature) for pair in PAIRS])
        found = batches.find_reward_variance(policy, PAIRS, temperature)
        torch.testing.assert_close(found, chances * (1 - chances), rtol=1e-3, atol=1e-9)


def test_it_is_the_variance_of_sampled_rewards(small_policy):
    """Of 1,500 answers of a policy that half knows the reference, the share of it is p."""
    policy, pair = small_policy(), Pair(0, 0, "他来了", "甲", "noise")
    half = _half(policy, pair)
    expected = float(batches.find_reward_variance(half, [pair], 1.0))
    draft = half.tokenizer([pair.source], add_special_tokens=False).input_ids
    end = int(half.tokenizer.eos_token_id)
    torch.manual_seed(0)
    written = speculative.write_answers(
        half.model, [encode_prompt(half, pair.source)], draft, 1_500, end=end, longest=3
    )
    share = sum(one.tokens == encode_target(half, pair.target) for one in written) / 1_500
    assert expected > 0.05
    assert share * (1 - share) == pytest.approx(expected, abs=0.02)


def _half(policy, pair):
    """Train the policy until it writes the reference about every second time."""
    from cectrain.run.loss import collate

    batch = collate(policy, [pair])
    adam = torch.optim.Adam(policy.model.parameters(), 0.01)
    for _ in range(400):
        loss = policy.model(**batch).loss * len(encode_target(policy, pair.target))
        if loss < math.log(2):
            return policy
        adam.zero_grad()
        loss.backward()
        adam.step()
    raise AssertionError("the policy did not learn one pair")


def test_oversampling_must_divide_the_candidates():
    """ppo.oversampling must divide ppo.candidates: sources take the places of candidates."""
    four = ["ppo.candidates=8", "ppo.oversampling=4"]
    assert config.load("exact-match", four).ppo.oversampling == 4
    for wrong in (0, 3, 16):
        with pytest.raises(UsageError, match=r"ppo\.oversampling must be"):
            config.load("exact-match", ["ppo.candidates=8", f"ppo.oversampling={wrong}"])
