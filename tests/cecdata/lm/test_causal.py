"""Causal models as scorers: a shared pass gives what a slow pass over each whole text gives."""

from __future__ import annotations

import numpy as np
import pytest

from cecdata.common.errors import InputError
from cecdata.lm import open_scorer

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXT = "他的病情己经好转，明天就能出院。"
SIGNS = sorted(set(TEXT + "已专她公园我们今天气很夭汽去，。"))
CHANGES = [(4, 5, "已"), (0, 1, "她"), (4, 6, "已专"), (3, 4, ""), (9, 9, "我们"), (15, 16, "")]


def tokenizer():
    """Characters as tokens, with an unknown one and one that begins texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    words = {sign: number for number, sign in enumerate(["<unk>", "<s>", *SIGNS])}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    made.decoder = decoders.Fuse()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>"
    )


def save(folder, config_class, model_class, **settings):
    torch.manual_seed(5)
    config = config_class(vocab_size=len(SIGNS) + 2, bos_token_id=1, eos_token_id=1, **settings)
    model_class(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A random Qwen3 whose weights are large enough to have opinions."""
    return save(
        tmp_path_factory.mktemp("tiny"), transformers.Qwen3Config, transformers.Qwen3ForCausalLM,
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, max_position_embeddings=96, initializer_range=0.6,
    )  # fmt: skip


@pytest.fixture
def scorer(tiny):
    return open_scorer(tiny)


def slow(scorer, text):
    """log P of a text by one forward pass and a loop over its tokens."""
    ids = [1, *scorer._tokenizer(text)["input_ids"]]
    with torch.inference_mode():
        logs = scorer._model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    return sum(float(logs[n, token]) for n, token in enumerate(ids[1:]))


def variants(text, changes):
    return [text[:start] + new + text[end:] for start, end, new in changes]


def test_log_prob_is_the_sum_over_tokens(scorer):
    """In batches of different lengths; an empty text has 0, an unknown character NaN."""
    texts = [TEXT, "他的", "", *variants(TEXT, CHANGES), "好转"]
    found = scorer.log_prob(texts)
    assert found.tolist() == pytest.approx([slow(scorer, text) for text in texts], abs=1e-3)
    assert found[2] == 0
    assert np.isnan(scorer.log_prob(["他龘"])[0])


def test_a_shared_pass_gives_the_ratios_of_whole_texts(scorer):
    """Replacements, deletions, insertions, at both ends; in one pack, and in several."""
    assert scorer._packs
    scorer._reach = len(TEXT)  # nothing behind a change is left out
    expected = np.array([slow(scorer, each) for each in variants(TEXT, CHANGES)])
    expected -= slow(scorer, TEXT)
    assert scorer.log_ratios(TEXT, CHANGES).tolist() == pytest.approx(expected, abs=1e-3)
    scorer._most_tokens = 30
    split, none, short = scorer.log_ratios_of([TEXT, "他的", "他的"], [CHANGES, [], [(0, 1, "她")]])
    assert split.tolist() == pytest.approx(expected, abs=1e-3)
    assert none.tolist() == []
    assert short[0] == pytest.approx(slow(scorer, "她的") - slow(scorer, "他的"), abs=1e-3)


def test_the_unchanged_text_estimates_what_one_token_writes(scorer):
    """By the text before it alone; what no token writes, or the vocabulary lacks, is unknown."""
    ids = [1, *scorer._tokenizer(TEXT)["input_ids"]]
    with torch.inference_mode():
        logs = scorer._model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)

    def gain(place, new):
        (token,) = scorer._tokenizer(new)["input_ids"]
        return float(logs[place, token] - logs[place, ids[place + 1]])

    changes = [(4, 5, "已"), (0, 1, "她"), (4, 6, "已专"), (4, 5, "龘"), (15, 16, "今")]
    found, alone = scorer.estimate_ratios([TEXT, "他的"], [changes, [(0, 1, "她")]])
    expected = [gain(4, "已"), gain(0, "她"), -np.inf, -np.inf, gain(15, "今")]
    assert found.tolist() == pytest.approx(expected, abs=1e-3)
    assert alone[0] == pytest.approx(expected[1], abs=1e-3)
    assert np.isinf(scorer.estimate_ratios(["他龘", ""], [[(0, 1, "她")], [(0, 0, "她")]])).all()


def test_products_in_bfloat16_give_nearly_the_same(tiny, scorer, monkeypatch):
    """Where the processor multiplies so and the model is not small; the states stay exact."""
    from cecdata.models import loading

    monkeypatch.setattr(loading, "SMALL", 0)
    monkeypatch.setattr(loading, "multiplies_bfloat16", lambda: True)
    fast = open_scorer(tiny)
    assert (fast.dtype, fast._packs) == (torch.bfloat16, True)
    assert fast.identity != scorer.identity
    texts = [TEXT, "他的"]
    assert fast.log_prob(texts) == pytest.approx(scorer.log_prob(texts), rel=0.01)
    ratios = scorer.log_ratios(TEXT, CHANGES)
    alone = fast.log_ratios(TEXT, CHANGES).tolist()
    assert alone == pytest.approx(ratios, abs=0.5)
    assert fast.log_ratios_of([TEXT, "他的"], [CHANGES, [(0, 1, "她")]])[0].tolist() == alone
    estimates = scorer.estimate_ratios([TEXT], [CHANGES])[0].tolist()
    assert fast.estimate_ratios([TEXT], [CHANGES])[0].tolist() == pytest.approx(estimates, abs=0.5)
    again = open_scorer(tiny)  # has not read the text before
    assert again.log_ratios(TEXT, CHANGES).tolist() == alone


def test_the_unchanged_text_is_read_once(scorer, monkeypatch):
    """All changes of a text are one call of the model, and no row is longer than needed."""
    calls = []
    forward = scorer._model.base_model.forward

    def counted(*args, **named):
        calls.append(tuple(named["input_ids"].shape))
        return forward(*args, **named)

    monkeypatch.setattr(scorer._model.base_model, "forward", counted)
    scorer._reach = 3
    scorer.log_ratios(TEXT, CHANGES)
    assert len(calls) == 1
    rows, width = calls[0]
    assert rows == 1
    assert width <= len(TEXT) + 1 + sum(len(new) + 3 for *_, new in CHANGES)


def test_a_short_reach_leaves_out_what_is_far(scorer):
    """With a reach of k the k tokens behind the change count, and no further ones."""
    scorer._reach = 2
    ids = [1, *scorer._tokenizer(TEXT)["input_ids"]]
    other = [1, *scorer._tokenizer(variants(TEXT, CHANGES[:1])[0])["input_ids"]]
    with torch.inference_mode():
        logs = [
            scorer._model(input_ids=torch.tensor([row])).logits[0].log_softmax(-1)
            for row in (ids, other)
        ]
    expected = sum(float(logs[1][n - 1, other[n]] - logs[0][n - 1, ids[n]]) for n in (5, 6, 7))
    assert scorer.log_ratios(TEXT, CHANGES[:1])[0] == pytest.approx(expected, abs=1e-3)


def test_a_change_that_cannot_be_written_is_not_judged(scorer):
    """NaN for a character that the vocabulary lacks, 0 for a change to the same text."""
    found = scorer.log_ratios(TEXT, [(0, 1, "龘"), (0, 1, "他"), (0, 1, "她")])
    assert np.isnan(found[0])
    assert found[1] == 0
    assert np.isfinite(found[2])


def test_a_lone_surrogate_is_not_judged(scorer):
    """It is no character that the vocabulary has."""
    assert np.isnan(scorer.log_prob(["他\ud800"])[0])


def test_a_text_beyond_the_context_is_not_judged(scorer):
    """Neither it nor a change of it."""
    text = TEXT * 20
    assert len(text) > scorer.context
    assert np.isnan(scorer.log_ratios(text, [(4, 5, "已")])).all()
    assert np.isnan(scorer.log_prob([text])[0])


def test_a_model_without_such_masks_reads_each_text_whole(tmp_path):
    """A recurrent model takes no mask of a packed row: the ratios are right all the same."""
    folder = save(
        tmp_path, transformers.MambaConfig, transformers.MambaForCausalLM,
        hidden_size=16, num_hidden_layers=1, state_size=4, initializer_range=0.6,
    )  # fmt: skip
    scorer = open_scorer(folder)
    assert not scorer._packs
    expected = slow(scorer, variants(TEXT, CHANGES)[0]) - slow(scorer, TEXT)
    assert scorer.log_ratios(TEXT, CHANGES[:1])[0] == pytest.approx(expected, abs=1e-3)


def test_the_identity_tells_models_apart(tiny, tmp_path):
    """It is that of the files and of what changes numbers, not that of the folder's name."""
    from shutil import copytree

    copytree(tiny, tmp_path / "copy")
    assert open_scorer(tmp_path / "copy").identity == open_scorer(tiny).identity
    from cecdata.lm.causal import CausalScorer

    assert CausalScorer(str(tiny), reach=4).identity != open_scorer(tiny).identity


def test_what_is_no_causal_model_is_refused(tmp_path, tiny):
    """An encoder, a folder without a model or a tokenizer, two GGUF files, a missing folder."""
    save(
        tmp_path / "bert", transformers.BertConfig, transformers.BertForMaskedLM,
        hidden_size=16, num_hidden_layers=1, num_attention_heads=1, intermediate_size=16,
    )  # fmt: skip
    with pytest.raises(InputError, match=r"not a causal language model.*BertForMaskedLM"):
        open_scorer(tmp_path / "bert")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is not a model"):
        open_scorer(tmp_path / "empty")
    (tmp_path / "bare").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "bare" / name).write_bytes((tiny / name).read_bytes())
    with pytest.raises(InputError, match=r"the tokenizer of|cannot be loaded"):
        open_scorer(tmp_path / "bare")
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / "empty" / name).write_bytes(b"GGUF")
    with pytest.raises(InputError, match=r"2 \.gguf files"):
        open_scorer(tmp_path / "empty")
    with pytest.raises(InputError, match="is not a language model"):
        open_scorer(tmp_path / "absent")
    with pytest.raises(InputError, match=r"x cannot be opened: File name too long"):
        open_scorer("x" * 300)
