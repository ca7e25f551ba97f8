"""Tiny checkpoints with random weights, and their tokenizers."""

import json

CHARACTERS = list("他已己经来了再在见明天气很好吃过我。，？ABab1")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)


def bert(folder, *, labels=False, lower=True):
    """Write a BERT masked-language model, or a token classifier whose labels are the vocabulary."""
    import torch
    import transformers

    folder.mkdir()
    vocabulary = [*SPECIAL, *[c for c in CHARACTERS if not (lower and c.isupper())]]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizer(
        vocab={name: i for i, name in enumerate(vocabulary)}, do_lower_case=lower
    )
    tokenizer.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=24, num_labels=len(vocabulary),
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        made = transformers.BertForTokenClassification if labels else transformers.BertForMaskedLM
        made(config).save_pretrained(folder)
    return folder


def byte_level():
    """Return a byte-level tokenizer with a chat template that has Qwen3's thinking switch."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({c: i for i, c in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"], padding_side="left",
    )  # fmt: skip
    tokenizer.chat_template = TEMPLATE
    return tokenizer


GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<start_of_turn>{{ 'model' if m['role'] == 'assistant' else 'user' }}\n"
    "{{ m['content'] }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
LLAMA = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)


def gemma():
    """Return a tokenizer as Gemma's: characters and bytes, a first token, no role of the system,
    and a turn that ends with another token than a text."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, normalizers, processors

    special = ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"]
    tokens = [*special, *(f"<0x{n:02X}>" for n in range(256)), "▁", *CHARACTERS]
    core = Tokenizer(models.BPE({t: n for n, t in enumerate(tokens)}, [], byte_fallback=True))
    core.normalizer = normalizers.Replace(" ", "▁")
    core.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    core.post_processor = processors.TemplateProcessing("<bos> $A", special_tokens=[("<bos>", 2)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>",
        additional_special_tokens=special[3:],
    )  # fmt: skip
    tokenizer.chat_template = GEMMA
    return tokenizer


def llama(*, base=False):
    """Return a tokenizer as Llama 3's: bytes, a first token, no token for padding; with `base` as
    before any chat, without a template."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = {token: number for number, token in enumerate([*alphabet, "<|begin_of_text|>"])}
    core = Tokenizer(models.BPE(tokens, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.post_processor = processors.TemplateProcessing(
        "<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 256)]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<|begin_of_text|>",
        eos_token="<|end_of_text|>" if base else "<|eot_id|>",
        additional_special_tokens=["<|start_header_id|>", "<|end_header_id|>"],
    )  # fmt: skip
    tokenizer.chat_template = None if base else LLAMA
    return tokenizer


def qwen3(folder):
    """Write a Qwen3 with that tokenizer."""
    import torch
    import transformers

    tokenizer = byte_level()
    tokenizer.save_pretrained(folder)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        transformers.Qwen3ForCausalLM(config).save_pretrained(folder)
    return folder


def sentence_encoder(folder, characters):
    """Write a BERT of one layer whose tokens are characters, as sentence-transformers does."""
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    plain = folder.with_name("plain")
    plain.mkdir()
    (plain / "vocab.txt").write_text("\n".join([*SPECIAL, *characters]), "utf-8")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(SPECIAL) + len(characters), hidden_size=32, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(plain)
    transformers.BertTokenizerFast(str(plain / "vocab.txt")).save_pretrained(plain)
    modules = [Transformer(str(plain), max_seq_length=64), Pooling(32)]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


def prompt_file(folder, version):
    (folder / "prompt.json").write_text(json.dumps({"version": version}), encoding="utf-8")


def llama_gguf(path):
    """Write a Llama of one layer as a GGUF file, with the same tokenizer."""
    import gguf
    import numpy as np

    tokenizer, width = byte_level(), 16
    tokens = [name for name, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    tokens[255] = "ĠĠ"  # what its one merge makes
    file = gguf.GGUFWriter(path, "llama")
    file.add_block_count(1)
    file.add_context_length(512)
    file.add_embedding_length(width)
    file.add_feed_forward_length(2 * width)
    file.add_head_count(2)
    file.add_head_count_kv(2)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_vocab_size(len(tokens))
    file.add_tokenizer_model("gpt2")
    file.add_token_list(tokens)
    file.add_token_scores([0.0] * len(tokens))
    file.add_token_types([1] * 256 + [3] * (len(tokens) - 256))
    file.add_token_merges(["Ġ Ġ"])
    file.add_bos_token_id(tokenizer.eos_token_id)
    file.add_eos_token_id(tokenizer.eos_token_id)
    shapes = {"token_embd": (len(tokens), width), "output_norm": (width,)}
    square, wide = (width, width), (2 * width, width)
    names = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    for name, shape in zip(names, (*[square] * 4, wide, wide, wide[::-1]), strict=True):
        shapes[f"blk.0.{name}"] = shape
    shapes |= {"blk.0.attn_norm": (width,), "blk.0.ffn_norm": (width,)}
    draw = np.random.default_rng(7)
    for name, shape in shapes.items():
        file.add_tensor(f"{name}.weight", draw.normal(size=shape).astype("f4"))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return path
