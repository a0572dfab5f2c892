"""What each launcher promises, asserted on its manifests."""

import json
import re
from collections.abc import Callable, Iterator
from itertools import dropwhile
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.schemas import validate_manifest
from tests.workloads.conftest import EXPERIMENT, OWN_COMMAND, write_stack
from workloads.config import Launcher
from workloads.image_sources import dockerfile_of
from workloads.launchers.registry import LAUNCHERS, manifests_of, run_name
from workloads.pod import Manifest
from workloads.programs import TRAINING
from workloads.resolve import Run
from workloads.stacks import load_experiment

Resolved = Callable[..., Run]

REPLICAS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
}
"""Where the kinds of the Training Operator keep their pods."""
STARTERS = {"torchrun": ["training.launch"], "mpirun": ["training.mpi", "launch"], "itself": ["training.solo"]}


def by_kind(run: Run) -> dict[str, Manifest]:
    return {manifest["kind"]: manifest for manifest in manifests_of(run)}


def pod_specs(run: Run) -> list[Manifest]:
    """The pod template of every replica, whatever the kind; of an MPIJob, the workers' comes first."""
    objects = by_kind(run)
    if "MPIJob" in objects:
        replicas = objects["MPIJob"]["spec"]["mpiReplicaSpecs"]
        return [replicas[role]["template"]["spec"] for role in ("Worker", "Launcher")]
    for kind in REPLICAS.keys() & objects.keys():
        return [replica["template"]["spec"] for replica in objects[kind]["spec"][REPLICAS[kind]].values()]
    if "TrainJob" in objects:
        return [indexed_job_of(objects)["template"]["spec"]]
    job = objects["Job"]["spec"]
    return [replica["template"]["spec"] for replica in job.get("tasks", [job])]


def indexed_job_of(train_job: dict[str, Manifest]) -> Manifest:
    """The Job that a TrainJob comes to, as its runtime has it."""
    (replicated,) = train_job["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    job: Manifest = replicated["template"]["spec"]
    return job


def pod_templates(node: Any) -> Iterator[Manifest]:
    """Every pod template below a node, whatever the kind."""
    if isinstance(node, dict) and "containers" in node.get("spec", {}):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from pod_templates(child)


def program_spec(run: Run) -> Manifest:
    """The pod that the program is started in."""
    return pod_specs(run)[-1 if run.experiment.launcher == "mpi-job" else 0]


def command(spec: Manifest) -> list[str]:
    """What the container runs, without the variables that `env` sets before it."""
    words: list[str] = spec["containers"][0]["command"]
    return list(dropwhile(lambda word: "=" in word, words[1:])) if words[0] == "env" else words


def environment(spec: Manifest) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in spec["containers"][0]["env"]}


def test_every_launcher_that_a_stack_file_may_name_exists_and_no_other() -> None:
    assert set(get_args(Launcher)) == set(LAUNCHERS)
    assert all(kind.name == name for name, kind in LAUNCHERS.items())


@pytest.fixture(params=get_args(Launcher))
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_same_file_is_the_same_run_and_an_edit_is_another(resolved: Resolved, launcher: str) -> None:
    name = run_name(resolved(launcher=launcher))
    assert name == run_name(resolved(launcher=launcher))
    assert name != run_name(resolved(launcher=launcher, args={"steps": 11}))
    assert name.startswith("trial-")
    assert len(name) == len("trial-") + 8


def test_every_object_of_a_run_can_be_found_by_its_labels(resolved: Resolved, launcher: str) -> None:
    run = resolved(launcher=launcher)
    for manifest in manifests_of(run):
        assert manifest["metadata"]["labels"]["app.kubernetes.io/name"] == "trial"
        assert manifest["metadata"]["namespace"] == "training"
        if manifest["kind"] != "ServiceAccount":  # the experiment's
            assert manifest["metadata"]["labels"]["app.kubernetes.io/instance"] == run_name(run)


def test_every_pod_has_the_account_of_its_experiment_which_an_edit_leaves_as_it_is(
    resolved: Resolved, launcher: str
) -> None:
    run, edited = resolved(launcher=launcher), resolved(launcher=launcher, args={"steps": 11}, nodes=3)
    account = manifests_of(run)[0]
    assert account["kind"] == "ServiceAccount"
    assert account["automountServiceAccountToken"] is False
    assert account == manifests_of(edited)[0]
    for spec in pod_specs(run):
        assert spec["serviceAccountName"] == account["metadata"]["name"]
        assert spec["automountServiceAccountToken"] is False


def test_the_account_of_a_stack_called_default_is_not_the_namespaces_own(lab: Path) -> None:
    run = load_experiment(write_stack(lab, "default", "experiment", EXPERIMENT)).run
    assert manifests_of(run)[0]["metadata"]["name"] == "experiment-default"


def test_the_pods_of_a_run_may_talk_to_each_other_and_its_policy_lets_nobody_else_in(
    resolved: Resolved, launcher: str
) -> None:
    run = resolved(launcher=launcher)
    policy, peers = by_kind(run)["NetworkPolicy"]["spec"], {"app.kubernetes.io/instance": run_name(run)}
    assert policy["podSelector"] == {"matchLabels": peers}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == [{"from": [{"podSelector": {"matchLabels": peers}}]}]
    assert policy["egress"] == [{"to": [{"podSelector": {"matchLabels": peers}}]}]
    templates = list(pod_templates(manifests_of(run)))
    assert templates
    assert all(peers.items() <= template["metadata"]["labels"].items() for template in templates)


def test_no_launcher_makes_a_policy_beside_the_runs_own(resolved: Resolved, launcher: str) -> None:
    objects = manifests_of(resolved(launcher=launcher))
    assert [manifest["kind"] for manifest in objects].count("NetworkPolicy") == 1
    plugins = [manifest["spec"].get("plugins", {}) for manifest in objects if "batch.volcano" in manifest["apiVersion"]]
    assert all("--disable-network-policy=true" in plugin["svc"] for plugin in plugins)


def test_pods_meet_the_restricted_pod_security_standard(resolved: Resolved, launcher: str) -> None:
    for spec in pod_specs(resolved(launcher=launcher, node_group="a100")):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert "hostNetwork" not in spec
        for container in spec["containers"] + spec.get("initContainers", []):
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert all("hostPath" not in volume for volume in spec["volumes"])


def test_accelerated_pods_take_the_whole_node_by_default(resolved: Resolved, launcher: str) -> None:
    (spec, *_) = pod_specs(resolved(launcher=launcher, node_group="h100"))
    limits = spec["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "8"
    assert limits["vpc.amazonaws.com/efa"] == "32"
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "190000m"
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    assert spec["nodeSelector"] == {"eks.amazonaws.com/nodegroup": "h100"}
    assert {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "131072Mi"}} in spec["volumes"]


def test_cpu_pods_ask_for_little_and_have_no_cpu_limit(resolved: Resolved, launcher: str) -> None:
    (spec, *_) = pod_specs(resolved(launcher=launcher))
    assert spec["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "2048Mi"},
        "limits": {"memory": "2048Mi"},
    }


def test_a_pool_selects_its_own_nodes(resolved: Resolved, launcher: str) -> None:
    run = resolved(launcher=launcher, node_group="gpu-pool")
    assert run.shape.name == "g4dn.xlarge"  # the cheapest of the pool
    (spec, *_) = pod_specs(run)
    assert spec["nodeSelector"] == {"karpenter.sh/nodepool": "gpu-pool"}


def test_the_program_gets_the_typed_keys_and_its_own_flags(resolved: Resolved, launcher: str) -> None:
    run = resolved(launcher=launcher, args={"steps": 10, "seed": 3}, batch={"global": 64, "micro": 8})
    words = command(program_spec(run))
    starter, flags_from = words[: words.index("training.mnist")], words.index("training.mnist") + 1
    assert starter == ["python", "-m", *STARTERS[LAUNCHERS[run.experiment.launcher].starts]]
    flags = dict(zip(words[flags_from::2], words[flags_from + 1 :: 2], strict=True))
    assert flags["--global-batch"] == "64"
    assert flags["--micro-batch"] == "8"
    assert flags["--checkpoint-path"] == "/shared/ckpt"
    assert flags["--seed"] == "3"


def test_a_command_of_the_users_own_is_left_as_it_is(resolved: Resolved, launcher: str) -> None:
    spec = program_spec(resolved(launcher=launcher, **OWN_COMMAND))
    assert command(spec) == ["python", "train.py"]


def test_the_experiments_own_environment_wins(resolved: Resolved, launcher: str) -> None:
    (spec, *_) = pod_specs(resolved(launcher=launcher, env={"OMP_NUM_THREADS": 7, "MINE": "x"}))
    assert environment(spec)["OMP_NUM_THREADS"] == "7"
    assert environment(spec)["MINE"] == "x"


def test_gpu_pods_with_efa_get_the_fabric_and_none_of_the_harmful_variables(resolved: Resolved, launcher: str) -> None:
    (spec, *_) = pod_specs(resolved(launcher=launcher, node_group="a100"))
    variables = environment(spec)
    assert variables["FI_PROVIDER"] == "efa"
    assert "pod-id-link" in variables["NCCL_SOCKET_IFNAME"]
    harmful = {"NCCL_PROTO", "NCCL_ALGO", "NCCL_P2P_DISABLE", "FI_EFA_USE_DEVICE_RDMA", "FI_EFA_FORK_SAFE"}
    assert not harmful & set(variables)
    (spec, *_) = pod_specs(resolved(launcher=launcher, node_group="a100", fabric="tcp"))
    assert "FI_PROVIDER" not in environment(spec)
    assert "vpc.amazonaws.com/efa" not in spec["containers"][0]["resources"]["limits"]


def test_a_run_ends_at_its_time_limit(resolved: Resolved, launcher: str) -> None:
    run = resolved(launcher=launcher, max_hours=1.5)
    objects = by_kind(run)
    if launcher in ("volcano-job", "torchx"):
        for spec in pod_specs(run):
            assert command(spec)[:2] == ["timeout", "--foreground"]
            assert command(spec)[3] == "5400"
        assert {"exitCode": 124, "action": "TerminateJob"} in objects["Job"]["spec"]["policies"]
    elif launcher == "train-job":
        assert indexed_job_of(objects)["activeDeadlineSeconds"] == 5400
    else:
        (spec,) = [objects[kind]["spec"] for kind in ("Job", "MPIJob", *REPLICAS) if kind in objects]
        assert spec.get("runPolicy", spec)["activeDeadlineSeconds"] == 5400


def test_a_pytorch_job_has_one_master_and_the_rest_workers_as_one_gang(resolved: Resolved) -> None:
    job = by_kind(resolved(nodes=3, priority="normal"))["PyTorchJob"]["spec"]
    assert {kind: replica["replicas"] for kind, replica in job["pytorchReplicaSpecs"].items()} == {
        "Master": 1,
        "Worker": 2,
    }
    assert {replica["restartPolicy"] for replica in job["pytorchReplicaSpecs"].values()} == {"ExitCode"}
    assert job["runPolicy"]["schedulingPolicy"] == {
        "minAvailable": 3,
        "queue": "research",
        "priorityClass": "normal",
    }


def test_a_pytorch_job_leaves_ranks_to_the_operator(resolved: Resolved) -> None:
    for spec in pod_specs(resolved()):
        assert not [name for name in environment(spec) if name.startswith(("PET_", "MASTER_", "RANK", "WORLD"))]


def test_a_single_pod_is_a_master_without_workers(resolved: Resolved) -> None:
    assert list(by_kind(resolved(nodes=1))["PyTorchJob"]["spec"]["pytorchReplicaSpecs"]) == ["Master"]


def test_an_indexed_job_finds_its_master_by_a_name_that_resolves_before_it_is_ready(resolved: Resolved) -> None:
    run = resolved(launcher="indexed-job")
    name, objects = run_name(run), by_kind(run)
    spec = objects["Job"]["spec"]["template"]["spec"]
    assert objects["Service"]["metadata"]["name"] == name == spec["subdomain"]
    assert objects["Service"]["spec"]["clusterIP"] == "None"
    assert objects["Service"]["spec"]["publishNotReadyAddresses"] is True
    assert environment(spec)["PET_MASTER_ADDR"] == f"{name}-0.{name}"
    assert f"{name}-0.{name}" in spec["initContainers"][0]["command"][-1]
    assert environment(spec)["PET_NODE_RANK"] == {
        "fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}
    }


def test_an_indexed_job_fails_at_once_on_a_wrong_configuration_and_forgives_evictions(resolved: Resolved) -> None:
    job = by_kind(resolved(launcher="indexed-job", nodes=4, restarts=2))["Job"]["spec"]
    assert job["completions"] == job["parallelism"] == 4
    assert job["backoffLimit"] == 8
    fail, evicted, stopped = job["podFailurePolicy"]["rules"]
    assert (fail["action"], fail["onExitCodes"]["values"]) == ("FailJob", [2])
    assert (evicted["action"], evicted["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert (stopped["action"], stopped["onExitCodes"]["values"]) == ("Ignore", [143])


def test_an_indexed_job_is_one_gang_of_the_teams_queue(resolved: Resolved) -> None:
    run = resolved(launcher="indexed-job", nodes=4)
    objects = by_kind(run)
    assert list(objects)[-3:] == ["PodGroup", "Service", "Job"]
    assert objects["PodGroup"]["spec"] == {"minMember": 4, "queue": "research"}
    template = objects["Job"]["spec"]["template"]
    assert template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == run_name(run)
    assert template["spec"]["schedulerName"] == "volcano"


def test_a_volcano_job_is_one_gang_of_a_master_and_workers(resolved: Resolved) -> None:
    job = by_kind(resolved(launcher="volcano-job", nodes=4, priority="normal"))["Job"]["spec"]
    assert [(task["name"], task["replicas"], task["minAvailable"]) for task in job["tasks"]] == [
        ("master", 1, 1),
        ("worker", 3, 3),
    ]
    assert (job["minAvailable"], job["queue"], job["priorityClassName"]) == (4, "research", "normal")
    assert job["schedulerName"] == "volcano"
    assert [task["name"] for task in by_kind(resolved(launcher="volcano-job", nodes=1))["Job"]["spec"]["tasks"]] == [
        "master"
    ]


def test_a_volcano_job_hands_the_plugins_ranks_to_torchrun(resolved: Resolved) -> None:
    run = resolved(launcher="volcano-job", processes_per_node=3)
    name, job = run_name(run), by_kind(run)["Job"]["spec"]
    assert set(job["plugins"]) == {"svc", "env", "pytorch"}
    assert "--publish-not-ready-addresses=true" in job["plugins"]["svc"]
    for spec in pod_specs(run):
        (trainer,) = spec["containers"]
        assert trainer["command"][: 1 + 4] == [
            "env",
            "PET_NNODES=$(WORLD_SIZE)",
            "PET_NODE_RANK=$(RANK)",
            "PET_MASTER_ADDR=$(MASTER_ADDR)",
            "PET_MASTER_PORT=$(MASTER_PORT)",
        ]
        assert environment(spec)["PET_NPROC_PER_NODE"] == "3"
        assert f"{name}-master-0.{name}" in spec["initContainers"][0]["command"][-1]


@pytest.mark.parametrize("restarts", [0, 3])
def test_a_volcano_job_restarts_as_a_whole_but_not_on_a_wrong_configuration(resolved: Resolved, restarts: int) -> None:
    run = resolved(launcher="volcano-job", restarts=restarts)
    job = by_kind(run)["Job"]["spec"]
    assert job["maxRetry"] == restarts + 1  # Volcano counts starts; 0 would mean its default, 3
    # The first policy that fits decides, and an exit code is a failed pod as well.
    assert job["policies"] == [
        {"exitCode": 2, "action": "TerminateJob"},
        {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"},
    ]
    assert job["tasks"][0]["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
    assert "policies" not in job["tasks"][1]
    assert {spec["restartPolicy"] for spec in pod_specs(run)} == {"Never"}


def test_an_mpi_job_waits_for_its_workers_which_are_the_gang(resolved: Resolved) -> None:
    job = by_kind(resolved(launcher="mpi-job", nodes=3, processes_per_node=2, priority="normal"))["MPIJob"]["spec"]
    assert {role: replica["replicas"] for role, replica in job["mpiReplicaSpecs"].items()} == {
        "Launcher": 1,
        "Worker": 3,
    }
    assert (job["slotsPerWorker"], job["launcherCreationPolicy"]) == (2, "WaitForWorkersReady")
    # With the launcher in it, which is made after the workers, the gang would never be complete.
    assert job["runPolicy"]["schedulingPolicy"] == {
        "minAvailable": 3,
        "queue": "research",
        "priorityClass": "normal",
    }
    assert job["runPolicy"]["cleanPodPolicy"] == "Running"


def test_an_elastic_run_has_workers_alone_and_starts_with_the_fewest(resolved: Resolved) -> None:
    run = resolved(nodes=3, elastic={"min": 2, "max": 4}, restarts=5, node_group="a100")
    job = by_kind(run)["PyTorchJob"]["spec"]
    assert job["elasticPolicy"] == {
        "minReplicas": 2,
        "maxReplicas": 4,
        "rdzvBackend": "c10d",
        "rdzvId": run_name(run),
        "maxRestarts": 5,
    }
    assert {role: spec["replicas"] for role, spec in job["pytorchReplicaSpecs"].items()} == {"Worker": 3}
    assert job["runPolicy"]["schedulingPolicy"]["minAvailable"] == 2
    (wait,) = pod_specs(run)[0]["initContainers"]
    assert f"{run_name(run)}-worker-0" in wait["command"][-1]


def test_an_mpi_job_is_restarted_by_its_launchers_job_alone(resolved: Resolved) -> None:
    job = by_kind(resolved(launcher="mpi-job", restarts=5))["MPIJob"]["spec"]
    assert job["runPolicy"]["backoffLimit"] == 5
    policies = {role: replica["restartPolicy"] for role, replica in job["mpiReplicaSpecs"].items()}
    assert policies == {"Launcher": "Never", "Worker": "OnFailure"}


def test_an_mpi_jobs_launcher_takes_nothing_that_its_workers_could_use(resolved: Resolved) -> None:
    worker, launcher = pod_specs(resolved(launcher="mpi-job", node_group="h100"))
    assert worker["nodeSelector"]
    assert worker["tolerations"]
    assert not {"nodeSelector", "tolerations"} & set(launcher)
    assert launcher["containers"][0]["resources"]["requests"] == {"cpu": "10m", "memory": "128Mi"}
    assert set(launcher["containers"][0]["resources"]["limits"]) == {"memory"}


def test_the_ranks_of_an_mpi_job_meet_at_its_first_worker(resolved: Resolved) -> None:
    run = resolved(launcher="mpi-job")
    for spec in pod_specs(run):
        assert environment(spec)["MASTER_ADDR"] == f"{run_name(run)}-worker-0.{run_name(run)}"


def test_an_mpi_job_and_the_image_agree_on_ssh(resolved: Resolved) -> None:
    run = resolved(launcher="mpi-job")
    (worker,) = pod_specs(run)[0]["containers"]
    keys, port = by_kind(run)["MPIJob"]["spec"]["sshAuthMountPath"], worker["startupProbe"]["tcpSocket"]["port"]
    dockerfile = dockerfile_of("mpi").read_text()
    assert dockerfile.count(f"'Port {port}'") == 2  # the client's and the server's
    assert f"'IdentityFile {keys}/id_rsa'" in dockerfile
    assert f"'AuthorizedKeysFile {keys}/authorized_keys'" in dockerfile
    assert f"_SSH_PORT = {port}\n" in (TRAINING / "core" / "mpi_launcher.py").read_text()
    host_key = "/tmp/ssh_host_key"
    assert f"'HostKey {host_key}'" in dockerfile
    assert f'_HOST_KEY = Path("{host_key}")' in (TRAINING / "core" / "mpi_worker.py").read_text()


def test_a_tf_job_is_one_gang_of_workers_which_all_have_to_succeed(resolved: Resolved) -> None:
    job = by_kind(resolved(launcher="tf-job", nodes=3, priority="normal"))["TFJob"]["spec"]
    (worker,) = job["tfReplicaSpecs"].values()
    assert list(job["tfReplicaSpecs"]) == ["Worker"]
    assert (worker["replicas"], worker["restartPolicy"]) == (3, "ExitCode")
    assert job["successPolicy"] == "AllWorkers"
    assert job["runPolicy"]["schedulingPolicy"] == {
        "minAvailable": 3,
        "queue": "research",
        "priorityClass": "normal",
    }


def test_a_tf_job_leaves_its_variable_to_the_operator(resolved: Resolved) -> None:
    (spec,) = pod_specs(resolved(launcher="tf-job"))
    (container,) = spec["containers"]
    assert container["name"] == "tensorflow"  # the one that the operator looks for
    assert "TF_CONFIG" not in environment(spec)


def test_on_one_machine_tf_job_gives_each_process_its_place_among_all() -> None:
    local_variables = LAUNCHERS["tf-job"].local_variables
    assert local_variables
    configs = [json.loads(variables["TF_CONFIG"]) for variables in local_variables([5001, 5002, 5003])]
    assert [config["task"] for config in configs] == [{"type": "worker", "index": rank} for rank in range(3)]
    for config in configs:
        assert config["cluster"] == {"worker": ["localhost:5001", "localhost:5002", "localhost:5003"]}


def test_a_train_job_says_how_many_and_its_own_runtime_all_else(resolved: Resolved) -> None:
    run = resolved(launcher="train-job", nodes=3, processes_per_node=2)
    runtime, job = manifests_of(run)[-2:]  # in this order: a TrainJob without its runtime is refused
    assert job["spec"]["runtimeRef"] == {"kind": "TrainingRuntime", "name": runtime["metadata"]["name"]}
    assert job["spec"]["trainer"] == {"numNodes": 3, "numProcPerNode": 2}
    # Without it Trainer injects nothing, whatever the image.
    assert runtime["spec"]["mlPolicy"] == {"torch": {}}


def test_a_train_job_leaves_ranks_to_the_operator_which_knows_the_container_by_name(resolved: Resolved) -> None:
    run = resolved(launcher="train-job")
    (replicated,) = by_kind(run)["TrainingRuntime"]["spec"]["template"]["spec"]["replicatedJobs"]
    assert replicated["template"]["metadata"]["labels"]["trainer.kubeflow.org/trainjob-ancestor-step"] == "trainer"
    (spec,) = pod_specs(run)
    assert replicated["name"] == spec["containers"][0]["name"] == "node"
    assert not [name for name in environment(spec) if name.startswith(("PET_", "MASTER_", "RANK", "WORLD"))]
    assert f"{run_name(run)}-node-0-0.{run_name(run)}" in spec["initContainers"][0]["command"][-1]


def test_a_train_job_is_one_gang_of_the_teams_queue(resolved: Resolved) -> None:
    run = resolved(launcher="train-job", priority="normal")
    runtime = by_kind(run)["TrainingRuntime"]["spec"]
    assert runtime["podGroupPolicy"] == {"volcano": {}}
    assert runtime["template"]["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": "research"}
    (spec,) = pod_specs(run)
    assert (spec["schedulerName"], spec["priorityClassName"]) == ("volcano", "normal")


def test_a_train_job_restarts_as_a_whole_but_not_on_a_wrong_configuration(resolved: Resolved) -> None:
    objects = by_kind(resolved(launcher="train-job", restarts=5))
    job, policy = indexed_job_of(objects), objects["TrainingRuntime"]["spec"]["template"]["spec"]["failurePolicy"]
    assert policy["maxRestarts"] == 5
    assert (job["backoffLimit"], job["template"]["spec"]["restartPolicy"]) == (0, "Never")  # JobSet alone restarts
    rules = job["podFailurePolicy"]["rules"]
    assert {rule["action"] for rule in rules} == {"FailJob"}
    assert [rule["onExitCodes"] for rule in rules[:2]] == [
        {"containerName": "node", "operator": "In", "values": [code]} for code in (2, 143)
    ]
    assert rules[2]["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


def test_jobset_tells_a_stopped_train_job_from_a_wrong_one_by_the_message_of_its_job(resolved: Resolved) -> None:
    policy = by_kind(resolved(launcher="train-job"))["TrainingRuntime"]["spec"]["template"]["spec"]["failurePolicy"]
    stopped, final = policy["rules"]  # the first that fits decides
    assert stopped["action"] == "RestartJobSetAndIgnoreMaxRestarts"

    def is_stopped(message: str) -> bool:
        return any(re.search(pattern, message) for pattern in stopped["onJobFailureMessagePatterns"])

    # As Kubernetes 1.33 words them.
    exited = "Container node for pod training/x-node-0-0-abc failed with exit code {} matching FailJob rule at index 0"
    assert is_stopped("Pod training/x-node-0-0-abc has condition DisruptionTarget matching FailJob rule at index 2")
    assert is_stopped(exited.format(143))
    assert not is_stopped(exited.format(2))
    assert (final["action"], final["onJobFailureReasons"]) == ("FailJobSet", ["PodFailurePolicy", "DeadlineExceeded"])


def test_every_launcher_renders_what_its_schema_allows(resolved: Resolved, launcher: str) -> None:
    run = resolved(launcher=launcher, node_group="a100", nodes=3, priority="normal", max_hours=1)
    for manifest in manifests_of(run):
        assert validate_manifest(manifest) == []
