"""The built-in policy's model card: everything in it is derived from the run and from scoring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cectrain.pretraining.config import PretrainConfig, Stage

Row = Sequence[object]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the card tells. Rates are fractions, benchmark scores per cent as published."""

    parameters: int
    bytes: int
    sha256: str
    config: PretrainConfig
    corpus: Mapping[str, str]  # file → SHA-256
    benchmarks: Mapping[str, str]  # file that the corpus was cleared of → SHA-256
    kept: Mapping[str, int]  # origin → sentences
    left_out: Mapping[str, int]  # reason → sentences
    curve: Sequence[Mapping[str, float]]  # lines of metrics.jsonl with held-out scores
    machine: str
    held_out: Mapping[str, object]  # scores on the validation split
    same_answers: str  # what storing in half the bits changed
    scores: Sequence[tuple[str, int, float]]  # benchmark, rows, S_C_f1
    note: str = ""  # what whoever ships it has to say of how it came about


def card(facts: Facts) -> str:
    """The page as Markdown."""
    config = facts.config
    return f"""---
language: zh
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
tags: [chinese-spelling-correction]
---
# The built-in policy

A character-level causal language model of Qwen3's architecture that writes a Chinese sentence again
without its spelling errors. It is the start from which `cectrain train` improves by PPO, small
enough to learn on a CPU; it is not a good corrector by itself.

{
        _table(
            ("", ""),
            [
                ("parameters", f"{facts.parameters:,}"),
                ("width × layers", f"{config.hidden} × {config.layers}"),
                (
                    "vocabulary",
                    "8,105 standard characters, ASCII, punctuation, bytes, placeholders",
                ),
                ("stored as", f"fp16, {facts.bytes:,} bytes; {facts.same_answers}"),
                ("SHA-256 of model.safetensors", f"`{facts.sha256}`"),
            ],
        )
    }

It is asked through its chat template and sees the sentence alone; it answers with the corrected
sentence. Decode greedily, in fp32.

    cectrain correct --policy builtin 他己经来了。

## Data
No label of any benchmark. Clean sentences, corrupted anew each time they are seen by the operators
of `cecdata`. Sentences are not part of this repository. Files: {_files(facts.corpus)}.

{
        _table(
            ("origin", "licence", "sentences"),
            [
                (name, config.origins[name].licence, f"{count:,}")
                for name, count in facts.kept.items()
            ],
        )
    }

{sum(facts.kept.values()):,} sentences, of which {config.held_out:,} were held out. Left out: {
        ", ".join(f"{reason} {count:,}" for reason, count in facts.left_out.items())
    }. `contaminated`
are sentences that equal one of a benchmark or share 13 characters with one; looked at were
{_files(facts.benchmarks)}.

## Recipe
Steps on the answers' tokens, Muon ({config.matrix_rate:g}) for the layers' matrices and AdamW
({config.rate:g}) for embeddings and norms, both falling to nothing in one line; seed {config.seed};
embeddings start from sums of random vectors that characters of one sound or one component share.

{
        _table(
            ("stage", "steps", "tokens a step", "characters", "recipe"),
            [_stage(stage) for stage in config.stages],
        )
    }

    {_command(facts)}

{facts.machine}

## Curve
Exact corrections of the held-out sentences by greedy decoding, corrupted by the last stage's recipe
(fractions), and clean ones among them that it changed.

{
        _table(
            ("step", "exact", "over-correction"),
            [
                (
                    f"{line['step']:,.0f}",
                    f"{line['heldout_exact']:.3f}",
                    f"{line['heldout_over_correction']:.3f}",
                )
                for line in facts.curve
            ],
        )
    }

## Scores
The validation split of the dataset that `make data` builds of the shipped sample (recipe `paper`),
which was never trained on. {facts.note}

{_table(("", "fraction"), [(name, _number(value)) for name, value in facts.held_out.items()])}

Real errors (CSCD-NS sentence-level correction F1, per cent; answers of other length count as no
change):

{
        _table(
            ("benchmark", "rows", "S_C_f1"),
            [(name, f"{rows:,}", f"{score:.2f}") for name, rows, score in facts.scores],
        )
    }

## Limits
Simplified Chinese, sentences of at most {config.max_chars} characters; longer ones were never seen.
It has read little: names, jargon and idioms that are rare in the table above are often changed or
left wrong, and it may drop or repeat characters of a long sentence. It knows the errors that the
operators make; what people mistype differs. Most of its sentences are technical or legal prose.
"""


def _stage(stage: Stage) -> Row:
    span = f"{stage.shortest}–{stage.longest}"
    if stage.kind == "copy":
        return ("copying", stage.steps, stage.tokens, span, "characters drawn evenly")
    more = [stage.recipe]
    if stage.density != 1:
        more.append(f"rates × {stage.density:g}")
    if stage.mixed:
        more.append(f"{stage.mixed:.0%} of several operators")
    if stage.prior:
        more.append("operators " + " ".join(f"{n} {p:g}" for n, p in stage.prior.items()))
    more.append(f"{stage.clean:.0%} clean")
    if stage.words:
        more.append(f"{stage.words:.0%} rows of words of the lexicon")
    if stage.scattered:
        more.append(f"{stage.scattered:.0%} rows of any signs, to be copied")
    return ("pairs", stage.steps, stage.tokens, span, ", ".join(more))


def _command(facts: Facts) -> str:
    flags = [f"--decontaminate {name}" for name in facts.benchmarks]
    return " ".join(["cectrain pretrain", *facts.corpus, "--out out/pretrain", *flags])


def _files(files: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` ({sha256[:12]}…)" for name, sha256 in files.items()) or "none"


def _table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _number(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
