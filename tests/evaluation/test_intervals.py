import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.evaluation.intervals import bootstrap, paired

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(VALUES)
def test_an_interval_holds_its_mean_and_is_the_same_each_time(values):
    found = bootstrap(values, resamples=300)
    assert found == bootstrap(values, resamples=300)
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.mean == pytest.approx(np.mean(values))


def test_the_interval_of_a_share_is_the_binomial_one():
    values = [1.0] * 60 + [0.0] * 40
    found = bootstrap(values)
    error = 1.96 * (0.6 * 0.4 / 100) ** 0.5
    assert found.low == pytest.approx(0.6 - error, abs=0.02)
    assert found.high == pytest.approx(0.6 + error, abs=0.02)


def test_a_paired_difference_sees_what_two_intervals_do_not():
    rng = np.random.default_rng(0)
    hard = rng.random(200)
    a, b = np.clip(hard + 0.02, 0, 2).tolist(), hard.tolist()
    found = paired(a, b)
    assert found.interval.low > 0
    assert found.p < 0.001
    assert paired(b, a).interval.mean == pytest.approx(-found.interval.mean)
    assert paired(a, a).p == 1.0
    assert bootstrap(a).low < bootstrap(b).high


@pytest.mark.parametrize(("differ", "least"), [(1, 1.0), (2, 0.5), (5, 0.0625), (6, 0.03125)])
def test_few_questions_that_differ_are_no_proof(differ, least):
    a = [1.0] * differ + [0.5] * 20
    b = [0.0] * differ + [0.5] * 20
    assert paired(a, b).p >= least
    assert paired(a[:differ], b[:differ]).p == least


def test_large_sets_are_resampled_in_blocks():
    values = (np.arange(5000) % 2).astype(float).tolist()
    assert bootstrap(values, resamples=1000).mean == 0.5


def test_nothing_measured():
    assert np.isnan(bootstrap([]).mean)
