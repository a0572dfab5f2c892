"""The order of the samples: every sample once per epoch, whatever the number of processes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.core.exits import ConfigurationError
from training.core.order import SampleOrder, plan_batches

sizes = st.integers(min_value=1, max_value=60)


@given(num_samples=sizes, seed=st.integers(-(2**40), 2**40), epoch=st.integers(0, 5))
def test_an_epoch_holds_every_sample_once(num_samples: int, seed: int, epoch: int) -> None:
    order = SampleOrder(num_samples, seed=seed)
    assert sorted(order.take(epoch * num_samples, num_samples).tolist()) == list(range(num_samples))


@given(num_samples=sizes, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_the_order_does_not_depend_on_how_it_is_taken(num_samples: int, cuts: list[int]) -> None:
    whole = SampleOrder(num_samples, seed=1).take(0, sum(cuts)).tolist()
    order, position, pieces = SampleOrder(num_samples, seed=1), 0, []
    for count in cuts:
        pieces += order.take(position, count).tolist()
        position += count
    assert pieces == whole


@given(position=st.integers(0, 200), local=st.integers(1, 6), world_size=st.integers(1, 6))
@settings(max_examples=50)
def test_the_ranks_shares_make_the_step_in_order(position: int, local: int, world_size: int) -> None:
    orders = [SampleOrder(17, seed=3) for _ in range(world_size)]
    shares = [order.take(position + rank * local, local).tolist() for rank, order in enumerate(orders)]
    assert [sample for share in shares for sample in share] == SampleOrder(17, seed=3).take(
        position, local * world_size
    ).tolist()


def test_epochs_and_seeds_differ() -> None:
    firsts = [tuple(SampleOrder(50, seed=seed).take(50 * epoch, 50).tolist()) for seed in (0, 1) for epoch in (0, 1)]
    assert len(set(firsts)) == 4


def test_a_step_is_divided_evenly() -> None:
    plan = plan_batches(global_batch=48, micro_batch=4, world_size=3)
    assert (plan.per_rank, plan.micro_batch, plan.num_micro_batches) == (16, 4, 4)
    assert plan_batches(global_batch=48, micro_batch=None, world_size=3).num_micro_batches == 1


@pytest.mark.parametrize(
    ("global_batch", "micro_batch", "world_size", "message"),
    [
        (10, None, 4, "--global-batch 10 cannot be shared equally by 4 processes: take a multiple of 4, such as 8"),
        (2, None, 4, "such as 4"),
        (16, 3, 2, "--micro-batch 3 does not divide the 8 samples"),
    ],
)
def test_a_step_that_does_not_divide_is_refused(
    global_batch: int, micro_batch: int | None, world_size: int, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        plan_batches(global_batch=global_batch, micro_batch=micro_batch, world_size=world_size)
