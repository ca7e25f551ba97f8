"""Placeholders for personal data: precision and recall by type on the labelled sentences."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench_privacy import PRECISION, RECALL, REPORTED, rates, spans
from privacy_set import sentences

from cecdata.corpus.privacy import mask_text


def test_every_type_reaches_its_goal():
    """On other values than those of the benchmark; names and addresses are only reported."""
    assert sum(1 for _ in sentences()) >= 600
    for kind, (count, precision, recall) in rates(seed=11).items():
        assert count >= 40
        assert kind in REPORTED or (precision >= PRECISION and recall >= RECALL), kind


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
