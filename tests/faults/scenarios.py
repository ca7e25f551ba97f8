"""The runs that are harmed, one row each: what is run, what must be the same, what must be whole.

All inputs are written here, small, and made of sentences written for these tests.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import Canonical, temporary_names, tree

LINES = (
    "第{n}号列车将于今天晚上准时到达本站的站台。",
    "他在第{n}天已经完全康复，明天就可以出院了。",
    "合同第{n}条规定，双方应当在十日内付清全部货款。",
    "这款游戏的第{n}关难度很大，需要好友一起帮忙。",
)
FLAGS = ("--filters", "levenshtein,cosine", "--cosine", "40")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of run. `{out}` in `arguments` is the folder that it fills."""

    name: str
    program: str
    arguments: tuple[str, ...]
    rows: Callable[[Path], Counter[str]]  # of a finished output, each once
    canonical: Canonical = field(default_factory=dict)
    growing: tuple[str, ...] = ()  # files that are replaced by longer ones on the way
    last: str = ""  # the file whose presence says that the output is finished
    beside: bool = False  # no workspace: hidden files lie beside the output until they are named

    def words(self, out: Path) -> list[str]:
        """The command line for this folder."""
        return [self.program, *(word.format(out=out) for word in self.arguments)]

    def tree(self, out: Path) -> dict[str, bytes]:
        """What two runs must have in common."""
        return tree(out, self.canonical) if out.is_dir() else {}

    def partial(self, out: Path, wanted: Mapping[str, bytes]) -> list[str]:
        """Files under a final name that are not the finished ones, byte for byte."""
        if not out.is_dir():
            return []
        found = self.tree(out)
        wrong = [
            name
            for name, data in found.items()
            if name not in self.growing and data != wanted.get(name)
        ]
        return [name for name in (*wrong, *temporary_names(out)) if not self._filled(name)]

    def _filled(self, name: str) -> bool:
        return self.beside and name.startswith(".")


def sentences(count: int) -> list[str]:
    """So many distinct sentences."""
    return [LINES[n % len(LINES)].format(n=n) for n in range(count)]


def corpus(folder: Path, count: int) -> Path:
    """A text file with these sentences, one too short and one that is no UTF-8."""
    path = folder / f"corpus-{count}.txt"
    lines = [line.encode() for line in sentences(count)]
    lines[count // 2 : count // 2] = [b"\xe4\xbb\x96\xff\xe7\x9a\x84", "短".encode(), lines[0]]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def build(folder: Path, count: int = 320, shard: int = 40, *more: str) -> Scenario:
    """Pairs, edits, rejects, the pool on the way, card, manifest."""
    words = ("build", str(corpus(folder, count)), "--out", "{out}", *FLAGS,
             "--shard-sentences", str(shard), "--workers", "2", *more)  # fmt: skip
    return Scenario("build", "cecdata", words, _pairs, {"run.json": _nothing},
                    last="manifest.json")  # fmt: skip


def export(data: Path) -> Scenario:
    """A finished dataset as one file of lines."""
    words = ("export", str(data), "{out}/train.jsonl", "--overwrite")
    return Scenario("export", "cecdata", words, _lines, beside=True)


def bench(folder: Path, count: int = 200) -> Scenario:
    """Predictions out of a file, scored: nothing that takes long."""
    rows = sentences(count)
    benchmark, given = folder / "bench.tsv", folder / "predictions.txt"
    pairs = (f"{line.replace('已', '己')}\t{line}\n" for line in rows)
    benchmark.write_text("".join(pairs), "utf-8")
    given.write_text("".join(f"{line}\n" for line in rows), "utf-8")
    words = ("run", "--system", f"predictions:{given}", "--benchmark", str(benchmark),
             "--out", "{out}")  # fmt: skip
    return Scenario("bench", "cecbench", words, _predictions, last="score.json")


def asked(folder: Path, url: str, count: int = 24, concurrency: int = 2) -> Scenario:
    """The same against an endpoint: every answer goes to a journal before it is used."""
    bench(folder, count)
    words = ("run", "--system", f"api:tiny@{url}", "--benchmark", str(folder / "bench.tsv"),
             "--out", "{out}", "--concurrency", str(concurrency))  # fmt: skip
    timed = {"score.json": _unsealed, "predictions.jsonl": _untimed_lines}
    return Scenario("api", "cecbench", words, _predictions, timed, last="score.json")


TRAINING = (
    "ppo.groups=3", "ppo.candidates=2", "ppo.save_every=1", "ppo.eval_every=2", "ppo.new_tokens=6",
    "ppo.oversampling=2", "ppo.supervised=2", "ppo.ppo_only_share=0.4", "ppo.baseline=value",
    "ppo.whiten=none", "sft.batch=2", "sft.log_every=1", "sft.save_every=2", "data.held_out=6",
    "data.limit=30", "data.held_out_clean=2", "policy.max_chars=40", "diagnose_pairs=20",
)  # fmt: skip


def train(data: Path, policy: Path, steps: int = 4, updates: int = 2) -> Scenario:
    """A tiny policy: supervised steps, PPO batches, checkpoints, the finished model."""
    told = [word for setting in TRAINING for word in ("--set", setting)]
    words = ("train", str(data), "--out", "{out}", "--model", str(policy), "--set",
             f"sft.steps={steps}", "--set", f"ppo.updates={updates}", *told)  # fmt: skip
    timed = {
        "summary.json": _unsealed,
        "metrics.jsonl": _untimed_lines,
        "model/README.md": _untimed_card,
        "run.json": _nothing,
    }
    return Scenario("train", "cectrain", words, _steps, timed, ("metrics.jsonl",), "summary.json")


def sft(data: Path, policy: Path, steps: int = 8) -> Scenario:
    """Supervised steps alone."""
    whole = train(data, policy, steps, 0)
    settings = [name for name in TRAINING if not name.startswith(("ppo.", "diagnose_pairs"))]
    told = [word for setting in settings for word in ("--set", setting)]
    words = ("sft", *whole.arguments[1 : whole.arguments.index("ppo.updates=0") - 1], *told)
    return Scenario("sft", "cectrain", words, _steps, whole.canonical, whole.growing, whole.last)


# What two runs never have in common: the time of day and how long it took.

_TIMED = re.compile(r"seconds|_per_s$|gpu_memory_gb")


def _nothing(_data: bytes) -> bytes:
    return b""


def _untimed(value: object) -> object:
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if not _TIMED.search(k)}
    return value


def _untimed_object(data: bytes) -> bytes:
    return json.dumps(_untimed(json.loads(data)), ensure_ascii=False, sort_keys=True).encode()


def _unsealed(data: bytes) -> bytes:
    """Seals and sums cover times as well; `_predictions` and `_steps` prove them."""
    values = json.loads(_untimed_object(data))
    sums = ("seal", "predictions_sha256", "table_sha256")
    return json.dumps({name: values[name] for name in values if name not in sums}).encode()


def _untimed_lines(data: bytes) -> bytes:
    return b"\n".join(_untimed_line(line) for line in data.split(b"\n"))


def _untimed_line(line: bytes) -> bytes:
    """A line that a kill cut short stays as it is: it may stand in a file that grows alone."""
    try:
        return _untimed_object(line)
    except ValueError:
        return line


def _untimed_card(data: bytes) -> bytes:
    timed = (b"| seconds |", b"| cpu_seconds |", b"| gpu_seconds |")
    return b"\n".join(line for line in data.splitlines() if not line.startswith(timed))


# The rows of a finished output: each name must be there once.


def _pairs(out: Path) -> Counter[str]:
    import pyarrow.parquet as pq

    found: Counter[str] = Counter()
    for path in [*out.glob("data/*.parquet"), *out.glob("rejects/pairs-*.parquet")]:
        # `pq.read_table` may return before its threads close the file, and its disk stays busy
        with pq.ParquetFile(path) as file:
            table = file.read(["id", "copy"])
        found.update(f"{row['id']}-{row['copy']}" for row in table.to_pylist())
    return found


def _lines(out: Path) -> Counter[str]:
    rows = map(json.loads, (out / "train.jsonl").read_text("utf-8").splitlines())
    return Counter(f"{row['id']}-{row['copy']}" for row in rows)


def _predictions(out: Path) -> Counter[str]:
    from cecbench.results import read_run  # refuses a broken seal, or other predictions than named

    return Counter(row.id for row in read_run(out).rows)


def _steps(out: Path) -> Counter[str]:
    from cectrain.run.results import read_summary  # refuses a broken seal, or other weights

    assert read_summary(out) is not None
    lines = [json.loads(x) for x in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
    return Counter(f"{line['phase']}-{line['step']}" for line in lines)


def tiny_policy(folder: Path) -> None:
    """A random policy of one layer, as any folder that transformers loads."""
    from experiments.pretraining.model import character_tokenizer, small_qwen3

    model, tokenizer = small_qwen3(character_tokenizer(), 7, hidden=32, layers=1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
