"""The verbs as a user types them: what is printed, where, and the exit code."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from infra.config.stackfile import parse_yaml
from tests.workloads.conftest import EXPERIMENT, PLATFORM, merged, write_stack
from workloads.programs import PROJECT
from workloads.stacks import stack_files


def workloads(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workloads", *words], cwd=PROJECT, capture_output=True, text=True, check=False, **options
    )


def test_every_stack_of_the_repository_checks_clean() -> None:
    done = workloads("check")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "error" not in done.stdout
    for path in stack_files():
        assert path.name.split(".")[1] in done.stdout


def test_checking_every_stack_takes_no_longer_than_a_few_bare_interpreters() -> None:
    """The promise is two seconds; a ratio of processor time holds on a machine of any speed and load."""

    def seconds(*command: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=PROJECT, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    bare = min(seconds(sys.executable, "-c", "import pydantic, typer, rich.table, yaml") for _ in range(3))
    check = min(seconds(sys.executable, "-m", "workloads", "check") for _ in range(3))
    assert check < 5 * bare


def test_the_json_of_check_has_exactly_the_documented_shape() -> None:
    done = workloads("check", "--json")
    stacks = json.loads(done.stdout)["stacks"]
    assert len(stacks) == len(stack_files())
    for stack in stacks:
        assert set(stack) == {"stack", "kind", "findings", "cost", "memory"}
        assert set(stack["cost"]) >= {"usd_per_hour", "usd_per_run", "priced_at"}
        assert set(stack["memory"]) == {"per_device_gib", "device_gib", "verdict"}
        for finding in stack["findings"]:
            assert set(finding) == {"rule", "severity", "where", "message", "fix", "waived"}
            assert set(finding["where"]) == {"file", "line", "key"}


def test_the_highest_exit_code_of_several_stacks_wins(lab: Path) -> None:
    good = write_stack(lab, "good", "experiment", EXPERIMENT)
    failing = write_stack(lab, "failing", "experiment", merged(EXPERIMENT, {"node_group": "a100", "nodes": 9}))
    invalid = write_stack(lab, "invalid", "experiment", merged(EXPERIMENT, {"nodes": 0}))
    for paths, code in (([good], 0), ([good, failing], 1), ([good, failing, invalid], 2), ([invalid, good], 2)):
        assert workloads("check", *map(str, paths)).returncode == code


def test_an_unknown_stack_names_the_ones_there_are() -> None:
    for words in (["check"], ["render"], ["run"], ["plan"], ["build", "--platform"]):
        done = workloads(*words, "mnits")
        assert done.returncode == 2
        assert 'Did you mean "mnist"?' in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_set_changes_a_key_for_one_call(lab: Path) -> None:
    good = str(write_stack(lab, "good", "experiment", EXPERIMENT))
    assert workloads("check", good, "--set", "nodes=500").returncode == 1
    assert workloads("check", good, "--set", "nodes=0").returncode == 2
    assert workloads("check", good, "--set", "checkpoint.every_steps=7").returncode == 0
    assert workloads("check", good, "--set", "volumes.0.name=nowhere").returncode == 2
    rendered = workloads("render", good, "--set", "args.seed=9")
    assert "--seed" in rendered.stdout


@pytest.mark.parametrize("override", ["nodes", "=3", "nodes=[", "platform.x=1", "volumes.9.name=x", "volumes.x=1"])
def test_a_malformed_set_is_explained(lab: Path, override: str) -> None:
    good = str(write_stack(lab, "good", "experiment", EXPERIMENT))
    done = workloads("check", good, "--set", override)
    assert done.returncode == 2
    assert "--set" in done.stdout
    assert "Traceback" not in done.stderr


def test_render_prints_yaml_that_reads_back_as_the_manifests(lab: Path, tmp_path: Path) -> None:
    path = str(write_stack(lab, "good", "experiment", merged(EXPERIMENT, {"launcher": "indexed-job"})))
    done = workloads("render", path)
    kinds = [document["kind"] for document in yaml.safe_load_all(done.stdout)]
    assert kinds == ["ServiceAccount", "NetworkPolicy", "PodGroup", "Service", "Job"]
    assert "&id" not in done.stdout
    written = workloads("render", path, "-o", str(tmp_path / "out")).stdout.split()
    assert [Path(name).name for name in written] == [
        f"{index:02}-{kind.lower()}.yaml" for index, kind in enumerate(kinds)
    ]


def test_render_refuses_what_check_refuses_and_prints_no_manifest(lab: Path) -> None:
    path = str(write_stack(lab, "bad", "experiment", merged(EXPERIMENT, {"node_group": "a100", "nodes": 9})))
    done = workloads("render", path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "TY106" in done.stderr


def test_render_and_run_refuse_a_platform(lab: Path) -> None:
    path = str(write_stack(lab, "lab2", "platform", PLATFORM))
    for verb in ("render", "run"):
        done = workloads(verb, path)
        assert done.returncode == 2
        assert "is a platform" in done.stderr


def test_the_rules_are_listed_with_their_families() -> None:
    done = workloads("check", "--rules")
    assert "TY1xx  fit to the node group" in done.stdout
    assert "TY302" in done.stdout
    listed = json.loads(workloads("check", "--rules", "--json").stdout)
    assert [rule["id"] for rule in listed] == sorted(rule["id"] for rule in listed)
    assert all(rule["text"] for rule in listed)


def test_the_schema_accepts_every_shipped_stack_and_refuses_a_misspelled_key() -> None:
    schema = json.loads(workloads("schema").stdout)
    validator = jsonschema.Draft202012Validator(schema)
    for path in stack_files():
        document, _ = parse_yaml(path.read_text())
        assert list(validator.iter_errors(document)) == [], path.name
    document, _ = parse_yaml((PROJECT / "Pulumi.mnist.yaml").read_text())
    assert isinstance(document, dict)
    document["config"]["trainyard:experiment"]["nodez"] = 3
    assert list(validator.iter_errors(document))


def test_no_output_is_coloured_when_it_is_no_terminal() -> None:
    assert "\x1b" not in workloads("check").stdout + workloads("check", "nowhere").stdout
