"""The program's command line: what the stack file says in typed keys, and its `args`, as flags."""

from collections.abc import Mapping

from infra.config.stackfile import KeyPath, value_at
from workloads.config import ExperimentConfig

# Key of the experiment → flag of the program. A program that lacks the flag cannot do what the key says.
_DERIVED: dict[KeyPath, str] = {
    ("batch", "global"): "global-batch",
    ("batch", "micro"): "micro-batch",
    ("checkpoint", "path"): "checkpoint-path",
    ("checkpoint", "every_steps"): "checkpoint-every-steps",
    ("checkpoint", "keep"): "checkpoint-keep",
    ("model", "layers"): "layers",
    ("model", "hidden"): "hidden",
    ("model", "heads"): "heads",
    ("model", "kv_heads"): "kv-heads",
    ("model", "vocab"): "vocab",
    ("model", "sequence"): "sequence",
    ("parallelism", "tensor"): "tensor",
    ("parallelism", "pipeline"): "pipeline",
    ("parallelism", "context"): "context",
    ("parallelism", "sharding"): "sharding",
    ("precision",): "precision",
}
# Degrees that every program has without a flag for it.
_IMPLIED = {"tensor": 1, "pipeline": 1, "context": 1, "sharding": "none"}


def derived_values(body: Mapping[str, object]) -> dict[str, tuple[KeyPath, object]]:
    """Flags that typed keys set: name → the key and its value."""
    found: dict[str, tuple[KeyPath, object]] = {}
    for keys, flag in _DERIVED.items():
        value = value_at(body, keys)
        if value is not None and value != _IMPLIED.get(flag):
            found[flag] = (keys, value)
    if value_at(body, ("checkpoint", "resume")) is False:
        found["no-resume"] = (("checkpoint", "resume"), True)
    return found


def derived_flags(body: Mapping[str, object]) -> dict[str, KeyPath]:
    return {flag: keys for flag, (keys, _) in derived_values(body).items()}


def program_flags(experiment: ExperimentConfig) -> dict[str, object]:
    """Every flag of the program: those of the typed keys, then the experiment's own."""
    derived = derived_values(experiment.model_dump(by_alias=True))
    own = {name.replace("_", "-"): value for name, value in experiment.args.items()}
    return {flag: value for flag, (_, value) in derived.items()} | own


def arguments(values: Mapping[str, object]) -> list[str]:
    """`{lr: 3e-4, bf16: true, path: [a, b]}` as --lr 0.0003 --bf16 --path a --path b; false and null are left out."""
    words: list[str] = []
    for name, value in values.items():
        flag = f"--{name}"
        for item in value if isinstance(value, list) else [value]:
            if item is True:
                words.append(flag)
            elif item is not None and item is not False:
                words += [flag, str(item)]
    return words
