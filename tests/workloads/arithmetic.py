"""Runs the arithmetic rules on an experiment made in memory: thousands of them a second."""

from infra.config.platform import EksPlatform
from tests.workloads.conftest import EXPERIMENT, OWN_COMMAND, PLATFORM, merged
from workloads.checks import parallelism  # noqa: F401 (declares the rules)
from workloads.checks.registry import RULES
from workloads.config import ExperimentConfig
from workloads.resolve import resolve

_PLATFORM = EksPlatform.model_validate(PLATFORM)


def failing_rules(*, tensor: int, pipeline: int, batch: int, micro: int) -> set[str]:
    """TY3xx rules that fire on 2x8 processes with these degrees."""
    changes = {
        **OWN_COMMAND,
        "node_group": "a100",
        "nodes": 2,
        "parallelism": {"tensor": tensor, "pipeline": pipeline},
        "batch": {"global": batch, "micro": micro},
    }
    run = resolve("trial", ExperimentConfig.model_validate(merged(EXPERIMENT, changes)), _PLATFORM)
    return {
        rule.id for rule in RULES.values() if rule.id.startswith("TY3") and rule.check_run and list(rule.check_run(run))
    }
