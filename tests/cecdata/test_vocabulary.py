"""A vocabulary that is cut to what Chinese text is written with."""

import json

import pytest

transformers = pytest.importorskip("transformers")
pytest.importorskip("torch")

from cecdata.models.vocabulary import cut_vocabulary  # noqa: E402

CHINESE = ["他的病情，已经好转。", "3号  楼", "〇", "了" * 20]
LATIN = ["the", "он и она", "Python is", "é", "\U0001f600"]


def gemma_like():
    """Return a tokenizer of characters and bytes, with merges, a first token and a special one."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors

    signs = [*"他的病情已经好转，。3号楼了theonPy", "▁"]
    merged = [
        ("病", "情"),
        ("已", "经"),
        ("t", "h"),
        ("th", "e"),
        ("▁", "▁"),
        ("了", "了"),
        ("o", "n"),
    ]
    tokens = ["<pad>", "the", "<eos>", "on", "<bos>", "<turn>", "th"]
    tokens += [*(f"<0x{n:02X}>" for n in range(256)), "о", "н", *signs]
    tokens += ["".join(pair) for pair in merged if "".join(pair) not in tokens]
    core = Tokenizer(models.BPE({t: n for n, t in enumerate(tokens)}, merged, byte_fallback=True))
    core.normalizer = normalizers.Replace(" ", "▁")
    core.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    core.post_processor = processors.TemplateProcessing("<bos> $A", special_tokens=[("<bos>", 4)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>",
        additional_special_tokens=["<turn>"],
    )  # fmt: skip


def qwen_like():
    """Return a tokenizer of bytes, whose Chinese characters are merged from theirs."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=360, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"]
    )
    core.train_from_iterator([*CHINESE, *LATIN, "the they on"] * 5, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )


def model_of(tokenizer, *, tied):
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer) + 5, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, head_dim=8, tie_word_embeddings=tied,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=[tokenizer.eos_token_id],
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("make", [gemma_like, qwen_like])
def test_chinese_is_written_as_before(make, tied, tmp_path):
    """With the same tokens and logits, also after writing and reading; any text comes back."""
    import torch

    whole, tokenizer = make(), make()
    model = model_of(tokenizer, tied=tied).eval()
    names = {text: whole.convert_ids_to_tokens(whole(text).input_ids) for text in CHINESE}
    with torch.no_grad():
        before = [model(torch.tensor([whole(text).input_ids])).logits[0] for text in CHINESE]
    cut_vocabulary(model, tokenizer)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert len(tokenizer) < len(whole)
    assert len(model.get_input_embeddings().weight) == len(tokenizer) == model.config.vocab_size
    numbers = whole.convert_tokens_to_ids(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))
    for text, logits in zip(CHINESE, before, strict=True):
        ids = tokenizer(text).input_ids
        assert tokenizer.convert_ids_to_tokens(ids) == names[text]
        with torch.no_grad():
            torch.testing.assert_close(model(torch.tensor([ids])).logits[0], logits[:, numbers])
    for text in (*CHINESE, *LATIN):
        ids = tokenizer(text, add_special_tokens=False).input_ids
        assert tokenizer.decode(ids) == text
        if text == "the":
            assert len(ids) == 3
    assert model.config.eos_token_id == [tokenizer.eos_token_id]
    assert model.config.bos_token_id == tokenizer.bos_token_id


def test_other_tokenizers_stay_whole():
    """One that is not byte-pair encoding keeps its tokens, and so does its model."""
    from tokenizers import Tokenizer, models

    core = Tokenizer(models.Unigram([("<eos>", 0.0), ("the", -1.0), ("他", -2.0)], unk_id=0))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<eos>", eos_token="<eos>"
    )
    model = model_of(tokenizer, tied=True)
    size = len(model.get_input_embeddings().weight)
    before = json.loads(tokenizer.backend_tokenizer.to_str())
    cut_vocabulary(model, tokenizer)
    assert len(model.get_input_embeddings().weight) == size
    assert json.loads(tokenizer.backend_tokenizer.to_str()) == before
