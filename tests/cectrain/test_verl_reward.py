"""verl's reward: the same numbers as the terms of ours, on the rows that cecdata exports for it."""

import numpy as np
import pytest
from click.testing import CliRunner

from cecdata.cli import cli
from cecdata.common.errors import InputError
from cectrain.reward.batch import Batch
from cectrain.reward.config import RewardConfig
from cectrain.reward.terms import total_reward
from cectrain.verl_reward import compute_score


@pytest.fixture(scope="module")
def rows(dataset_path, tmp_path_factory):
    """Rows of the dataset as verl reads them."""
    import pyarrow.parquet as pq

    out = tmp_path_factory.mktemp("verl") / "train.parquet"
    words = ["export", str(dataset_path), str(out), "--format", "verl"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    return pq.read_table(out).to_pylist()[:12]


def scored(row, answer, **weights):
    """What verl gets for an answer to a row."""
    truth = row["reward_model"]["ground_truth"]
    return compute_score(row["data_source"], answer, truth, row["extra_info"], **weights)


def answers_to(row):
    """The right answer, the source, a near miss and nothing."""
    target = row["reward_model"]["ground_truth"]
    return [target, row["extra_info"]["source"], f"{target[:-1]}了", ""]


def test_the_numbers_are_those_of_our_reward(rows, encoder):
    """The pair and edit terms are `total_reward` with α = 1 and the same weights."""
    config = RewardConfig(alpha=1.0, tau=0.7, edit_weight=0.4)
    for row in rows:
        source, target = row["extra_info"]["source"], row["reward_model"]["ground_truth"]
        group = answers_to(row)
        vectors = np.asarray(encoder.encode([*group, target]))
        batch = Batch(config, [source], [target], [group], vectors[None, :-1], vectors[-1:])
        ours = total_reward(batch).total_P_L[0]
        theirs = [scored(row, text, pair_weight=0.6, edit_weight=0.4)["score"] for text in group]
        assert theirs == pytest.approx(ours.tolist(), abs=1e-6)


def test_without_weights_it_is_exact_match_and_a_change_has_its_price(rows):
    """An answer that leaves its source as it is pays nothing."""
    for row in rows:
        source, target = row["extra_info"]["source"], row["reward_model"]["ground_truth"]
        for answer in answers_to(row):
            found = scored(row, f" {answer}\n", edit_price=0.1)
            assert found["exact"] == (answer == target)
            assert found["score"] == pytest.approx((answer == target) - 0.1 * (answer != source))


def test_a_row_without_its_source_is_refused(rows):
    """The message says which command writes it."""
    with pytest.raises(InputError, match="--format verl"):
        compute_score("cec-zero", "好", "好", {"index": 1})
