"""The built-in policy's tokenizer is lossless; SFT learns, resumes bit for bit, and refuses bad
input."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="the extra `train` is not installed")

import torch

from cecdata.common.errors import CecError, InputError, UsageError
from cecdata.hanzi.characters import standard_characters
from cecdata.models.causal import encode_prompt
from cectrain import checkpoints
from cectrain.config import DataConfig, PolicyConfig, SftConfig
from cectrain.corrector.policy import Policy, check_context, encode_target
from cectrain.data.shards import Pair
from cectrain.data.training_pairs import select_pairs
from cectrain.model import policy
from cectrain.run import loss
from cectrain.run import supervised as loop
from experiments.pretraining.model import SPECIAL, character_tokenizer, placeholders, small_qwen3

ALPHABET = st.text(st.sampled_from("他己经来了。，𠀀😀é\n\t A<|>#ﾊ\u0301　"), max_size=20)


@pytest.fixture(scope="module")
def tokenizer():
    return character_tokenizer()


@pytest.fixture
def tiny(tokenizer):
    model, made = small_qwen3(tokenizer, 7, hidden=32, layers=1)
    return Policy(model, made, "1")


@given(text=ALPHABET)
def test_every_text_comes_back(text):
    """Decoding is the inverse of encoding, also for characters outside the vocabulary."""
    made = character_tokenizer()
    ids = made.encode(text, add_special_tokens=False)
    assert made.decode(ids, skip_special_tokens=True) == text


def test_a_character_and_a_placeholder_is_one_token(tokenizer):
    """Each of the 8,105 characters and of the placeholders is one token."""
    assert len(standard_characters()) == 8105
    ids = tokenizer.encode("".join(standard_characters()), add_special_tokens=False)
    assert len(ids) == len(set(ids)) == 8105
    assert "<PHONE>" in placeholders()
    assert all(len(tokenizer.encode(p, add_special_tokens=False)) == 1 for p in placeholders())


def test_the_question_is_the_sentence_between_two_marks(tiny):
    """The small policy's prompt is the sentence between two special tokens, without instruction."""
    tokens = tiny.tokenizer.convert_ids_to_tokens(encode_prompt(tiny, "己经"))
    assert tokens == [SPECIAL[1], "己", "经", SPECIAL[2]]


def test_the_tokenizer_survives_a_save(tokenizer, tmp_path):
    """transformers loads the saved tokenizer: ids, template and padding side."""
    from transformers import AutoTokenizer

    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.encode("他<PHONE>𠀀") == tokenizer.encode("他<PHONE>𠀀")
    assert (again.chat_template, again.padding_side) == (tokenizer.chat_template, "left")


def test_a_policy_that_is_not_there_is_named(tmp_path):
    """The error says that the name is neither a folder nor on the hub, and what to give."""
    with pytest.raises(InputError, match="a folder with"):
        policy.load_policy(PolicyConfig(name=str(tmp_path / "none")))
    with pytest.raises(UsageError, match="prompt version"):
        policy.load_policy(PolicyConfig(prompt="99"))


def test_a_prompt_beyond_the_context_is_refused(tiny):
    """The error has the context and the prompt in tokens."""
    with pytest.raises(InputError, match="1024"):
        check_context(tiny, "长" * 1000, 100)
    check_context(tiny, "长" * 100, 100)


def test_only_the_answer_has_labels(tiny):
    """Labels are the target's tokens and the end token; prompt and padding have none."""
    pairs = [Pair(1, 0, "己经", "已经", "homophone"), Pair(2, 0, "他来", "他来了", "noise")]
    batch = loss.collate(tiny, pairs)
    learned = [row[row != -100].tolist() for row in batch["labels"]]
    assert learned == [encode_target(tiny, pair.target) for pair in pairs]
    assert batch["input_ids"].shape == batch["labels"].shape == (2, 8)
    assert (batch["input_ids"] != tiny.tokenizer.pad_token_id).sum().item() == 7 + 8


@pytest.fixture
def pairs(dataset, tmp_path):
    return select_pairs(dataset, DataConfig(), 40, 42)


def test_batches_walk_every_pair_once_an_epoch(pairs):
    """Batches across the boundary of two epochs contain each pair once per epoch."""
    total = len(pairs)
    walked = [p for step in range(2 * total // 5 + 1) for p in pairs.read_batch(step, 5)]
    for epoch in (walked[:total], walked[total : 2 * total]):
        assert len({(p.id, p.copy) for p in epoch}) == total
    assert walked[:total] != walked[total : 2 * total]


def test_long_pairs_are_left_out_and_none_left_is_an_error(dataset, pairs, tmp_path):
    """max_chars limits both sides; a limit that leaves no pair is an error."""
    assert all(max(len(p.source), len(p.target)) <= 40 for p in pairs.take(range(len(pairs)), 0))
    with pytest.raises(InputError, match="max_chars"):
        select_pairs(dataset, DataConfig(), 2, 42)
    some = select_pairs(dataset, DataConfig(limit=7), 40, 42)
    assert len(some) == 7


def test_fresh_pairs_are_another_build_of_the_same_sentences(dataset, tmp_path):
    """Targets stay, sources differ by epoch, and a pair does not depend on its batch."""
    fresh = select_pairs(dataset, DataConfig(fresh=True), 60, 42)
    stored = select_pairs(dataset, DataConfig(), 60, 42)
    places = list(range(12))
    old, one, two = stored.take(places, 0), fresh.take(places, 0), fresh.take(places, 1)
    assert [p.target for p in old] == [p.target for p in one]
    assert [p.source for p in one] != [p.source for p in two] != [p.source for p in old]
    assert fresh.take([5], 1) == [two[5]]


def test_fresh_pairs_keep_the_share_of_unchanged_ones(tmp_path):
    """A pair drawn unchanged stays clean, so every epoch has the build's share of them."""
    from cecdata.builds.build import build
    from cecdata.config import load
    from cectrain.data.shards import open_shards

    text = tmp_path / "a.txt"
    text.write_text("".join(f"第{n}次列车今天晚上准时到达。\n" for n in range(300)), "utf-8")
    made = load(filters=("levenshtein",), unchanged=0.5, copies=1)
    build([str(text)], tmp_path / "data", made)
    built = open_shards(tmp_path / "data")
    fresh = select_pairs(built, DataConfig(fresh=True), 60, 42)
    for epoch in (0, 1):
        pairs = fresh.take(range(len(fresh)), epoch)
        same = [pair for pair in pairs if pair.source == pair.target]
        assert 0.4 < len(same) / len(pairs) < 0.6
        assert {pair.operator for pair in same} == {"unchanged"}


def test_a_clean_share_depends_on_the_pair_alone(dataset, tmp_path):
    """Whether a pair is clean does not depend on its batch."""
    mixed = select_pairs(dataset, DataConfig(clean_share=0.5), 60, 42)
    together = mixed.take(range(30), 0)
    assert [mixed.take([place], 0)[0] for place in range(30)] == together
    assert 5 < sum(p.source == p.target for p in together) < 25


def test_a_sentence_is_on_one_side_with_all_copies(pairs):
    """All copies of a sentence are on one side; both sides together are all pairs."""
    taught, left = pairs.split(0.4)
    sides = [side.take(range(len(side)), 0) for side in (taught, left)]
    ids = [{pair.id for pair in side} for side in sides]
    assert not ids[0] & ids[1]
    assert sorted((p.id, p.copy) for side in sides for p in side) == sorted(
        (p.id, p.copy) for p in pairs.take(range(len(pairs)), 0)
    )
    everyone = len(ids[0] | ids[1])
    assert abs(len(ids[1]) - 0.4 * everyone) < 4 * (0.24 * everyone) ** 0.5
    again = pairs.split(0.4)[1]
    assert again.take(range(5), 0) == left.take(range(5), 0)
    assert {p.id for p in replace(pairs, seed=7).split(0.4)[1].take(range(9), 0)} - ids[1]
    assert pairs.split(0.0) == (pairs, pairs)
    with pytest.raises(InputError, match=r"ppo\.ppo_only_share = 1e-09"):
        pairs.split(1e-9)


def weights(made):
    return {n: p.detach().clone() for n, p in made.model.named_parameters()}


def test_sft_learns_and_resumes_bit_for_bit(tokenizer, pairs, tmp_path):
    """The loss falls; a run that was stopped and resumed ends with the same weights."""
    config = SftConfig(steps=12, batch=4, learning_rate=2e-2, save_every=6, log_every=1)
    losses, runs = [], []
    for folder, stops in ((tmp_path / "a", [12]), (tmp_path / "b", [9, 12])):
        for stop in stops:  # a run of 9 of 12 steps leaves the checkpoint of step 6
            model, made = small_qwen3(tokenizer, 7, hidden=32, layers=1)
            tiny = Policy(model, made, "1")

            def log(step, values, stop=stop):
                losses.append(values["loss"])
                if step == stop < 12:
                    raise KeyboardInterrupt

            try:
                loop.train_sft(tiny, pairs, config, folder, log)
            except KeyboardInterrupt:
                assert checkpoints.find_newest(folder)[1] == 6
        runs.append(weights(tiny))
    assert losses[11] < losses[0] - 0.5
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])


def test_a_checkpoint_that_cannot_be_written_leaves_nothing(tmp_path):
    """Without space the error is reported, no partial folder remains, and the older one stays
    whole."""
    checkpoints.save_checkpoint(
        tmp_path / "checkpoint-1", lambda p: (p / "w").write_bytes(b"x"), step=1
    )

    def full(_path):
        raise OSError(28, "No space left on device")

    with pytest.raises(CecError, match="no space"):
        checkpoints.save_checkpoint(tmp_path / "checkpoint-2", full, step=2)
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-1"]
    assert checkpoints.find_newest(tmp_path)[1] == 1


def test_a_loss_that_is_no_number_stops(tiny, pairs, tmp_path):
    """NaN weights end the run at once."""
    with torch.no_grad():
        tiny.model.model.embed_tokens.weight.fill_(float("nan"))
    with pytest.raises(CecError, match="the loss is nan"):
        loop.train_sft(tiny, pairs, SftConfig(steps=1, batch=2), tmp_path)
