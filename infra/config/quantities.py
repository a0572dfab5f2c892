"""Amounts as Kubernetes writes them, as numbers."""

_UNITS = {
    "": 1.0,
    "m": 1e-3,
    **{unit: 1e3**power for power, unit in enumerate(("k", "M", "G", "T"), start=1)},
    **{unit: 1024.0**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti"), start=1)},
}


def amount(quantity: str | float) -> float:
    """`64Gi` → 68719476736.0; what no unit follows is as it stands."""
    if not isinstance(quantity, str):
        return float(quantity)
    number = quantity.rstrip("mkMGTi")
    return float(number) * _UNITS[quantity.removeprefix(number)]
