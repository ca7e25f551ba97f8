"""Every command of docs/reports/gpu.md runs here on a CPU with nothing but sizes changed.

A command that cannot run here is listed with the reason, and its options are checked.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")
pytest.importorskip("sentence_transformers", reason="the extra `embed` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch and libraries that build on it

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reports/gpu.md").read_text("utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.replace("\\\n", " ").splitlines()]
#: what cannot run on a CPU → the reason; a command belongs to the first part that it contains
NOT_RUN = {
    "pip install -e '.[vllm]'": "vLLM needs a GPU, and another transformers than the tests",
    "vllm": "vLLM needs a GPU",
    "fill_gpu_page": "it writes this page; test_measure_gpu.py tries it",
    "zero3.yaml": "accelerate uses neither DeepSpeed nor FSDP with processes on CPUs",
}
DATA = "--set data.held_out=4 --set data.held_out_clean=2 --set diagnose_pairs=20"
RUN = f"{DATA} --set policy.max_chars=40 --set ppo.groups=4 --set ppo.new_tokens=8"
#: part of a command → options that change sizes; MODEL and ENCODER are tiny ones of the same kind
SIZES = {
    "measure_gpu.py": "--device cpu --tiny --minutes 5",
    "cectrain diagnose": "--pairs 20",
    "python -m experiments evidence": f"{RUN} --set ppo.updates=1 --set sft.steps=20 --seeds 42 "
    "--sft-rates 4e-4 --workers 2",
    "--recipe paper": f"{RUN} --updates 1 --policy MODEL --encoder ENCODER",
    "--recipe configs": f"{RUN} --set ppo.updates=1 --policy MODEL",
    "cectrain train": f"{RUN} --set ppo.updates=1 --set sft.steps=2",
}


def reason(command):
    return next((why for part, why in NOT_RUN.items() if part in command), None)


RUNNABLE = [command for command in COMMANDS if reason(command) is None]


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory):
    """An encoder of bge-large's architecture, one layer deep, in a folder."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    from cecdata.hanzi.characters import standard_characters

    root = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "，", "。", *standard_characters()]
    (root / "vocab.txt").write_text("\n".join(words), "utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=128,
    )  # fmt: skip
    BertModel(config).save_pretrained(root / "plain")
    BertTokenizerFast(str(root / "vocab.txt")).save_pretrained(root / "plain")
    words_model = Transformer(str(root / "plain"), max_seq_length=128)
    SentenceTransformer(modules=[words_model, Pooling(32)], device="cpu").save(str(root / "model"))
    return root / "model"


@pytest.fixture
def clone(dataset_path, start, tmp_path):
    """A folder as the page supposes it: a clone with a corpus, a dataset and a pretraining."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("benchmarks", "cectrain", "configs"):
        (tmp_path / name).symlink_to(ROOT / name)
    lines = (ROOT / "cecdata" / "sample" / "news.txt").read_text("utf-8").splitlines()[:90]
    corpus = pa.table({"text": lines, "origin": ["tatoeba_cmn"] * len(lines)})
    pq.write_table(corpus, tmp_path / "clean.parquet")
    recipe = (ROOT / "cectrain" / "recipes" / "pretrain.toml").read_text("utf-8")
    for name, value in (("hidden", 64), ("layers", 1), ("steps", 1), ("held_out", 20)):
        recipe = re.sub(rf"^{name} = \d+", f"{name} = {value}", recipe, flags=re.MULTILINE)
    (tmp_path / "large.toml").write_text(recipe, "utf-8")
    return tmp_path


def fitted(command, model, encoder):
    """Return the command with tiny sizes, on two processes where a launcher starts eight."""
    launch = "accelerate launch --num_processes 2 --main_process_port 0"
    sizes = next((sizes for part, sizes in SIZES.items() if part in command), "")
    sizes = sizes.replace("MODEL", str(model)).replace("ENCODER", str(encoder))
    return f"{command.replace('accelerate launch', launch)} {sizes}"


@pytest.mark.slow  # two minutes: each command is a process with all of torch, or two
@pytest.mark.parametrize("command", RUNNABLE)
def test_a_command_of_the_page_runs(command, clone, dataset_path, start, tiny_bert):
    """It ends without an error, and a run writes its model."""
    (clone / "out").mkdir()
    out = re.search(r"--out (\S+)", command)
    for name, made in (("out/data", dataset_path), ("out/pretrain", start)):
        if not out or out[1] != name:
            (clone / name).symlink_to(made)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        ["bash", "-c", fitted(command, start, tiny_bert)],
        cwd=clone, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
    if re.search("cectrain (pre)?train ", command):
        assert (clone / out[1] / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize("command", [c for c in COMMANDS if "cectrain " in c])
def test_a_command_of_the_page_has_known_options(command):
    """The command line accepts every option, and the settings with the recipe are valid."""
    from cectrain import config
    from cectrain.cli import cli

    words = shlex.split(command)
    name, *given = words[next(i for i, w in enumerate(words) if w.endswith("cectrain")) + 1 :]
    asked = cli.get_command(None, name).make_context(name, given).params
    if name != "pretrain":
        loaded = config.load(str(asked["recipe"]), asked["settings"])
        processes = 8 if "accelerate" in command else 1
        config.check_shares(loaded.ppo, processes)


def test_the_page_has_the_paper_for_one_gpu_and_for_eight():
    """`--recipe paper` has one command for one GPU and one for eight, and both run here."""
    paper = [command for command in RUNNABLE if "--recipe paper" in command]
    assert [command.split()[0] for command in paper] == ["cectrain", "accelerate"]
    assert all(reason(command) for command in COMMANDS if command not in RUNNABLE)
