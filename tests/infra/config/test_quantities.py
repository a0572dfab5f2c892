"""Amounts of Kubernetes as numbers."""

import pytest

from infra.config.quantities import amount


@pytest.mark.parametrize(
    ("quantity", "number"),
    [
        (16, 16),
        (0.5, 0.5),
        ("16", 16),
        ("500m", 0.5),
        ("2k", 2000),
        ("1.5Gi", 1.5 * 2**30),
        ("1T", 1e12),
        ("3Ti", 3 * 2**40),
    ],
)
def test_an_amount_is_the_number_that_kubernetes_takes_it_for(quantity: str | float, number: float) -> None:
    assert amount(quantity) == number
