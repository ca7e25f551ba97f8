"""Placeholders for personal data: precision and recall by type on the labelled sentences."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench_privacy import PRECISION, RECALL, REPORTED, rates, spans
from privacy_set import sentences

from cecdata.corpus.privacy import mask, mask_text
from cecdata.frames.texts import rows_of


def test_every_type_reaches_its_goal():
    """On other values than those of the benchmark; names and addresses are only reported."""
    assert sum(1 for _ in sentences()) >= 600
    for kind, (count, precision, recall) in rates(seed=11).items():
        assert count >= 40
        assert kind in REPORTED or (precision >= PRECISION and recall >= RECALL), kind


def test_a_column_is_masked_as_its_texts():
    """Every text that a rule matches has the rule's trace, whatever stands beside it."""
    texts = [text for text, _ in sentences()]
    draw = random.Random(5)
    halves = [text[: draw.randrange(len(text))] for text in texts]
    others = draw.sample(texts, len(texts))
    texts += [half + other for half, other in zip(halves, others, strict=True)]
    masked = mask(rows_of(pa.array(texts))).column("text").to_pylist()
    assert masked == [mask_text(text) for text in texts]


def test_what_is_masked_is_named_with_its_value():
    """The measure itself: type and value of every placeholder."""
    assert spans("我叫张伟，QQ是12345678。") == {("NAME", "张伟"), ("QQ", "12345678")}
    assert spans("没有。") == set()


def test_look_alikes_stay():
    """Times, ratios, versions, order numbers and common words are no personal data."""
    for text in (
        "时间12:30:45到12:31:00", "微信支付300元", "比例3:2:1", "周末对小姐姐说",
        "版本10.0.1.25已发布", "订单号13812345678", "京A级景区有12家", "用QQ登录3次",
    ):  # fmt: skip
        assert mask_text(text) == text
