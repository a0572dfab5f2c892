"""An experiment's stack as Pulumi sees it, and the checks inside the program."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks

from tests.workloads.conftest import EXPERIMENT, PLATFORM, merged, write_stack
from workloads import experiment as experiment_module
from workloads import preview
from workloads.experiment import deploy_experiment
from workloads.launchers.registry import manifests_of
from workloads.programs import PROJECT
from workloads.stacks import load_experiment, stack_files


class Recorder(mocks.Mocks):
    def __init__(self) -> None:
        self.registered: list[mocks.MockResourceArgs] = []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        self.registered.append(args)
        outputs = {"kubeconfig": "of-the-platform", "config_digest": "of-another-time"}
        return args.name, {**args.inputs, "outputs": outputs, "secretOutputNames": ["kubeconfig"]}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return {}, []

    def of(self, kind: str) -> list[mocks.MockResourceArgs]:
        return [args for args in self.registered if args.typ.endswith(kind)]


@pytest.fixture
def deployed(lab: Path) -> Callable[..., Recorder]:
    """Deploys the experiment under mocks, as a preview or an update."""

    def deploy(*, is_preview: bool = True, **changes: Any) -> Recorder:
        asyncio.set_event_loop(asyncio.new_event_loop())
        recorder = Recorder()
        mocks.set_mocks(recorder, project="trainyard", stack="trial", preview=is_preview)
        stack = load_experiment(write_stack(lab, "trial", "experiment", merged(EXPERIMENT, changes)))
        mocks.test(lambda: deploy_experiment(stack))()  # type: ignore[no-untyped-call]
        return recorder

    return deploy


def test_the_registered_objects_are_the_rendered_ones(deployed: Callable[..., Recorder], lab: Path) -> None:
    recorder = deployed(launcher="indexed-job")
    run = load_experiment(lab / "Pulumi.trial.yaml").run
    by_kind = {manifest["kind"]: manifest for manifest in manifests_of(run)}
    types = [args.typ for args in recorder.registered if args.typ.startswith("kubernetes:")]
    assert types == [
        "kubernetes:core/v1:ServiceAccount",
        "kubernetes:networking.k8s.io/v1:NetworkPolicy",
        "kubernetes:scheduling.volcano.sh/v1beta1:PodGroup",
        "kubernetes:core/v1:Service",
        "kubernetes:batch/v1:Job",
    ]
    for kind, manifest in by_kind.items():
        (args,) = recorder.of(f":{kind}")
        assert {key: args.inputs[key] for key in manifest} == manifest
        assert args.inputs["metadata"]["name"] == manifest["metadata"]["name"]


def test_an_edit_ends_the_old_run_first_and_takes_its_network_away_last(
    deployed: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, deleted_first = experiment_module._kubernetes_object, {}

    def recorded(name: str, manifest: dict[str, Any], options: pulumi.ResourceOptions) -> pulumi.CustomResource:
        deleted_first[manifest["kind"]] = options.delete_before_replace
        return make(name, manifest, options)

    monkeypatch.setattr(experiment_module, "_kubernetes_object", recorded)
    deployed()
    assert deleted_first == {"ServiceAccount": True, "NetworkPolicy": False, "PyTorchJob": True}


def test_every_object_uses_the_platforms_cluster_and_no_default_one(deployed: Callable[..., Recorder]) -> None:
    recorder = deployed(launcher="indexed-job")
    assert [args.name for args in recorder.of("providers:kubernetes")] == ["cluster"]
    for args in recorder.registered:
        if args.typ.startswith("kubernetes:"):
            assert args.provider is not None
            assert "::cluster::" in args.provider


def test_a_preview_before_the_platform_exists_makes_no_reference_to_it(
    deployed: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_module, "_is_deployed", lambda platform: False)
    recorder = deployed()
    assert recorder.of("StackReference") == []
    assert len(recorder.of(":PyTorchJob")) == 1


def test_an_update_before_the_platform_exists_names_the_command_that_creates_it(
    deployed: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_module, "_is_deployed", lambda platform: False)
    with pytest.raises(pulumi.RunError, match="pulumi up -s lab"):
        deployed(is_preview=False)


def test_a_deployed_platform_supplies_the_kubeconfig_and_a_differing_digest_is_a_warning(
    deployed: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(experiment_module, "_is_deployed", lambda platform: True)
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *rest, **options: warnings.append(message))
    recorder = deployed(is_preview=False, image=f"example.com/training@sha256:{'0' * 64}")
    (reference,) = recorder.of("StackReference")
    assert reference.inputs["name"].endswith("/trainyard/lab")
    (provider,) = recorder.of("providers:kubernetes")
    assert "of-the-platform" in str(provider.inputs["kubeconfig"])
    assert any("another version" in warning for warning in warnings)


def test_an_update_after_an_edit_of_the_program_needs_the_image_of_it_in_this_machines_registry(
    deployed: Callable[..., Recorder], lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = merged(PLATFORM, {"images": {"registry": "localhost:5000", "build": ["training"]}})
    write_stack(lab, "lab", "platform", registry)
    monkeypatch.setattr(experiment_module, "_is_deployed", lambda platform: True)
    monkeypatch.setattr(experiment_module, "is_pushed", lambda tag: False)
    with pytest.raises(pulumi.RunError, match="workloads build training --platform lab"):
        deployed(is_preview=False)
    monkeypatch.setattr(experiment_module, "is_pushed", lambda tag: True)
    assert len(deployed(is_preview=False).of(":PyTorchJob")) == 1


def test_errors_of_the_checks_stop_a_preview_with_one_report(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = merged(EXPERIMENT, {"node_group": "a100", "nodes": 9, "batch": {"global": 7}})
    path = write_stack(lab, "trial", "experiment", broken)
    monkeypatch.setattr(preview, "stack_path", lambda stack: path)
    with pytest.raises(pulumi.RunError) as raised:
        preview.checked_stack()
    assert "TY106" in str(raised.value)
    assert "TY302" in str(raised.value)
    assert "fix:" in str(raised.value)


def test_a_waived_finding_is_shown_with_its_reason(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    waived = merged(EXPERIMENT, {"node_group": "a100", "nodes": 9, "waive": {"TY106": "more are on their way"}})
    path = write_stack(lab, "trial", "experiment", waived)
    monkeypatch.setattr(preview, "stack_path", lambda stack: path)
    monkeypatch.setattr(pulumi.log, "warn", lambda message, *rest, **options: shown.append(message))
    monkeypatch.setattr(pulumi.log, "info", lambda message, *rest, **options: shown.append(message))
    assert preview.checked_stack().file.stack == "trial"
    assert any("more are on their way" in message for message in shown)
    assert any("per hour" in message for message in shown)


@pytest.mark.parametrize("stack", [path.name.split(".")[1] for path in stack_files()])
def test_every_stack_can_be_planned_without_a_cli_a_cluster_or_credentials(stack: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "workloads", "plan", stack, "--json"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["stack"] == stack
    kinds = {resource["type"] for resource in plan["resources"]}
    assert "pulumi:providers:kubernetes" in kinds
    assert any(kind.startswith("trainyard:") for kind in kinds)


def test_the_laboratory_itself_has_no_errors(lab: Path) -> None:
    from workloads.checks.check import check

    assert check(write_stack(lab, "lab", "platform", PLATFORM)).exit_code == 0


def test_an_update_whose_image_was_never_built_is_refused_with_the_command_that_builds_it(
    deployed: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment_module, "_is_deployed", lambda platform: True)
    with pytest.raises(pulumi.RunError, match="python -m workloads build training --platform lab"):
        deployed(is_preview=False, image="training")
    assert deployed(image="training").of(":PyTorchJob")
