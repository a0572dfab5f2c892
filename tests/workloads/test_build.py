"""`build`, with stand-ins for buildah, docker, pulumi and the registry that keep what they were asked."""

import json
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.workloads.conftest import EXPERIMENT, PLATFORM, merged, write_stack
from workloads import build, images, repositories
from workloads.checks import security
from workloads.checks.check import check
from workloads.cli import app
from workloads.image_lock import LockedImage, record
from workloads.image_sources import source_digest
from workloads.images import image_reference
from workloads.stacks import _read_platform, load_experiment

SOURCE = source_digest("training")
DIGEST = "sha256:" + "7" * 64
OLD = LockedImage(reference=f"ghcr.io/corp/trainyard/training@sha256:{'1' * 64}", source="0" * 12)

# Every stand-in keeps its arguments; buildah and docker tell a digest, pulumi the outputs of a stack.
TOOL = f"""\
#!{sys.executable}
import json, os, pathlib, sys
name, words = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps([name, *words]) + "\\n")
if words[0] == os.environ.get("FAILS"):
    sys.exit("no space left on device")
if "--digestfile" in words:
    pathlib.Path(words[words.index("--digestfile") + 1]).write_text("{DIGEST}\\n")
elif "inspect" in words:
    print(json.dumps(["elsewhere/training@sha256:0", words[-1].rpartition(":")[0] + "@{DIGEST}"]))
elif name == "pulumi":
    print(os.environ["OUTPUTS"])
else:
    print("STEP 1: chatter")
"""


@dataclass(kw_only=True)
class Machine:
    """A PATH of our own, and a folder of stacks."""

    folder: Path
    calls_file: Path
    monkeypatch: pytest.MonkeyPatch

    def install(self, *names: str) -> None:
        for name in names:
            tool = self.folder / "bin" / name
            tool.write_text(TOOL)
            tool.chmod(0o755)

    def platform(self, **images: Any) -> str:
        """A platform with these images; gives its file."""
        body = merged(PLATFORM, {"images": images, "mirrors": {"images": {"docker.io": "localhost:5000/docker.io"}}})
        _read_platform.cache_clear()  # one process, several platforms in the same file
        return str(write_stack(self.folder, "lab", "platform", body))

    def build(self, *words: str) -> int:
        """The exit code of the verb."""
        with pytest.raises(SystemExit) as ended:
            app(["build", *words])
        return int(ended.value.code or 0)

    @property
    def calls(self) -> list[list[str]]:
        lines = self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
        return [json.loads(line) for line in lines]

    def call(self, verb: str) -> list[str]:
        (found,) = [call for call in self.calls if call[1] == verb]
        return found

    @property
    def lock(self) -> Path:
        return self.folder / "images.lock.json"

    def reference(self) -> str:
        """The image in the manifests of an experiment on the platform."""
        return image_reference(load_experiment(write_stack(self.folder, "trial", "experiment", EXPERIMENT)).run)

    def findings(self) -> dict[str, str]:
        """The rules about images that have something to say of the experiment, with their fix."""
        report = check(write_stack(self.folder, "trial", "experiment", EXPERIMENT))
        return {finding.rule: finding.fix for finding in report.findings if finding.where.key in ("image", None)}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setattr("workloads.image_lock.LOCK", tmp_path / "images.lock.json")
    repositories._deployed_repositories.cache_clear()
    return Machine(folder=tmp_path, calls_file=tmp_path / "calls", monkeypatch=monkeypatch)


@dataclass(kw_only=True)
class Registry:
    address: str
    tags: set[str] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A registry on this machine that answers HEAD."""
    found = Registry(address="")

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            found.asked.append((self.path, self.headers["Accept"]))
            self.send_response(200 if self.path in found.tags else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on stderr, which tests read."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    found.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def edit_training(monkeypatch: pytest.MonkeyPatch) -> str:
    """As if a file of the image had been edited; gives the digest from then on."""
    for module in (build, images, security):
        monkeypatch.setattr(module, "source_digest", lambda image: "e" * 12)
    return "e" * 12


def test_a_registry_on_this_machine_gets_what_manifests_name(
    machine: Machine, registry: Registry, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.install("buildah")
    platform = machine.platform(registry=registry.address)
    assert machine.build("--platform", platform) == 0
    reference = f"{registry.address}/trainyard/training:{SOURCE}"
    assert machine.reference() == reference
    made, pushed = machine.call("build"), machine.call("push")
    assert made[made.index("--tag") + 1] == reference
    assert made[made.index("--build-arg") + 1] == "BASE=localhost:5000/docker.io/library/python:3.11-slim"
    assert made[made.index("--label") + 1] == f"org.opencontainers.image.version={SOURCE}"
    assert {"--layers", "--tls-verify=false"} <= set(made)  # the base comes from this machine too
    assert pushed[-2:] == [reference, f"docker://{reference}"]
    assert "--tls-verify=false" in pushed
    assert pushed[pushed.index("--compression-format") + 1] == "zstd"
    shown = capfd.readouterr()
    assert reference in shown.out
    assert "chatter" not in shown.out + shown.err
    assert not machine.lock.exists()
    assert not {"TY802", "TY803", "TY804"} & set(machine.findings())


def test_a_tag_that_the_registry_has_is_not_built_again_unless_forced(machine: Machine, registry: Registry) -> None:
    machine.install("buildah")
    platform = machine.platform(registry=registry.address)
    registry.tags.add(f"/v2/trainyard/training/manifests/{SOURCE}")
    assert machine.build("--platform", platform) == 0
    assert machine.calls == []
    ((path, accepted),) = registry.asked
    assert path in registry.tags
    assert "application/vnd.oci.image.manifest.v1+json" in accepted
    assert machine.build("--platform", platform, "--force") == 0
    assert {"--pull", "--no-cache"} <= set(machine.call("build"))


def test_an_edit_of_training_is_another_image_and_another_run(
    machine: Machine, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.install("buildah")
    platform = machine.platform(registry=registry.address)
    registry.tags.add(f"/v2/trainyard/training/manifests/{SOURCE}")
    edited = edit_training(monkeypatch)
    assert machine.reference().endswith(f":{edited}")
    assert machine.build("--platform", platform) == 0
    assert machine.call("push")[-1].endswith(f":{edited}")


def test_another_registry_gets_a_new_tag_and_the_lock_its_digest(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.install("buildah")
    platform = machine.platform(registry="ghcr.io/corp")
    record("training", "other", OLD)
    assert machine.reference() == "ghcr.io/corp/trainyard/training:unbuilt"
    assert machine.findings() == {
        "TY803": "`python -m workloads build training --platform lab`, and commit images.lock.json"
    }
    assert machine.build("training", "--platform", platform) == 0
    pushed = machine.call("push")
    assert re.fullmatch(rf"docker://ghcr\.io/corp/trainyard/training:{SOURCE}-\d{{14}}", pushed[-1])
    assert not {"--tls-verify=false", "--compression-format"} & set(pushed)
    reference = f"ghcr.io/corp/trainyard/training@{DIGEST}"
    assert json.loads(machine.lock.read_text()) == {
        "images": {"training": {"lab": {"reference": reference, "source": SOURCE}, "other": OLD.model_dump()}}
    }
    assert machine.lock.read_text().index('"lab"') < machine.lock.read_text().index('"other"')
    assert machine.reference() == reference
    assert machine.findings() == {}
    assert "commit it" in capfd.readouterr().out


def test_a_lock_of_the_same_sources_needs_no_build_and_asks_nobody(machine: Machine) -> None:
    platform = machine.platform(registry="ghcr.io/corp")
    record("training", "lab", LockedImage(reference=OLD.reference, source=SOURCE))
    assert machine.build("--platform", platform) == 0
    assert machine.calls == []


def test_an_image_of_other_sources_is_a_warning_until_it_is_built(machine: Machine) -> None:
    machine.install("buildah")
    platform = machine.platform(registry="ghcr.io/corp")
    record("training", "lab", OLD)
    assert machine.reference() == OLD.reference
    assert "python -m workloads build training --platform lab" in machine.findings()["TY804"]
    assert machine.build("--platform", platform) == 0
    assert machine.reference().endswith(DIGEST)
    assert machine.findings() == {}


def test_a_lock_of_a_registry_that_the_platform_has_left_counts_for_nothing(machine: Machine) -> None:
    record("training", "lab", OLD)
    for registry in ("registry.corp", "io/corp", "ecr"):
        machine.platform(registry=registry)
        assert set(machine.findings()) == {"TY803"}


def test_a_lock_that_cannot_be_read_is_an_error_of_its_own(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    platform = machine.platform(registry="ghcr.io/corp")
    for text in ("<<<<<<< HEAD\n", '{"images": {"training": {"lab": "ghcr.io/corp/x@sha256:1"}}}'):
        machine.lock.write_text(text)
        report = check(write_stack(machine.folder, "trial", "experiment", EXPERIMENT))
        assert [(finding.rule, finding.where.file) for finding in report.findings] == [("TY014", "images.lock.json")]
        assert report.exit_code == 2
        assert machine.build("--platform", platform) == 2
        assert "images.lock.json" in capfd.readouterr().err


def test_the_tool_is_heard_only_when_it_fails_or_is_asked_for(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.install("buildah")
    platform = machine.platform(registry="ghcr.io/corp")
    assert machine.build("--platform", platform, "--verbose") == 0
    assert "chatter" in capfd.readouterr().err
    before = machine.lock.read_text()
    for step, words in (("build", "cannot build training/images"), ("push", "buildah login ghcr.io")):
        machine.monkeypatch.setenv("FAILS", step)
        assert machine.build("--platform", platform, "--force") == 1
        said = capfd.readouterr().err
        assert "no space left on device" in said
        assert words in said
        assert "Traceback" not in said
    assert machine.lock.read_text() == before


def test_the_tool_can_be_chosen_and_is_missed(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    platform = machine.platform(registry="ghcr.io/corp")
    assert machine.build("--platform", platform) == 2
    assert "buildah and docker are not on PATH" in capfd.readouterr().err
    machine.install("buildah")
    assert machine.build("--platform", platform, "--tool", "docker") == 2
    assert "docker is not on PATH" in capfd.readouterr().err
    machine.install("docker")
    assert machine.build("--platform", platform, "--tool", "docker") == 0
    assert [call[:2] for call in machine.calls] == [["docker", "build"], ["docker", "push"], ["docker", "image"]]
    assert "--layers" not in machine.call("build")
    assert machine.reference() == f"ghcr.io/corp/trainyard/training@{DIGEST}"


def test_what_follows_two_dashes_goes_to_the_tools_build_command(machine: Machine) -> None:
    machine.install("buildah")
    platform = machine.platform(registry="ghcr.io/corp")
    extra = ["-v", "/etc/ssl/certs:/etc/ssl/certs:ro", "--isolation", "chroot"]
    assert machine.build("training", "--platform", platform, "--", *extra) == 0
    assert machine.call("build")[-5:] == [*extra, "."]
    assert "chroot" not in machine.call("push")


def test_the_repository_on_ecr_is_that_of_the_deployed_platform(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    machine.install("buildah")
    platform = machine.platform(registry="ecr")
    assert machine.build("--platform", platform) == 2
    assert "pulumi is not on PATH" in capfd.readouterr().err
    machine.install("pulumi")
    machine.monkeypatch.setenv("FAILS", "stack")
    assert machine.build("--platform", platform) == 2
    assert "fix: first `pulumi up -s lab`" in capfd.readouterr().err
    machine.monkeypatch.delenv("FAILS")
    repositories._deployed_repositories.cache_clear()
    address = "123456789012.dkr.ecr.us-east-1.amazonaws.com/trainyard/lab/training"
    machine.monkeypatch.setenv("OUTPUTS", json.dumps({"repositories": {"training": address}}))
    assert machine.build("--platform", platform) == 0
    assert machine.call("push")[-1].startswith(f"docker://{address}:{SOURCE}-")
    assert machine.reference() == f"{address}@{DIGEST}"


def test_an_image_that_the_platform_does_not_hold_is_refused(
    machine: Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    platform = machine.platform(registry="ghcr.io/corp")
    assert machine.build("trainin", "--platform", platform) == 2
    assert 'Did you mean "training"?' in capfd.readouterr().err
    experiment = write_stack(machine.folder, "trial", "experiment", EXPERIMENT)
    assert machine.build("--platform", str(experiment)) == 2
    assert "is an experiment, not a platform" in capfd.readouterr().err


def test_a_platform_that_builds_an_image_without_a_dockerfile_is_invalid(machine: Machine) -> None:
    report = check(Path(machine.platform(registry="ghcr.io/corp", build=["training", "trainnig"])))
    (finding,) = [finding for finding in report.findings if finding.severity == "error"]
    assert (finding.rule, finding.where.key) == ("TY006", "images.build[1]")
    assert 'Did you mean "training"?' in finding.fix


def test_a_registry_that_does_not_answer_is_named(
    machine: Machine, registry: Registry, capfd: pytest.CaptureFixture[str]
) -> None:
    platform = machine.platform(registry="127.0.0.1:1")
    assert machine.build("--platform", platform) == 2
    assert "no registry answers at 127.0.0.1:1" in capfd.readouterr().err


def test_the_json_of_build_is_all_that_stdout_holds(machine: Machine, capfd: pytest.CaptureFixture[str]) -> None:
    machine.install("buildah")
    platform = machine.platform(registry="ghcr.io/corp")
    reference = f"ghcr.io/corp/trainyard/training@{DIGEST}"
    for built in (True, False):
        assert machine.build("--platform", platform, "--json") == 0
        expected = {"image": "training", "reference": reference, "source": SOURCE, "built": built}
        assert json.loads(capfd.readouterr().out) == {"images": [expected]}


def test_a_full_reference_without_a_digest_is_worth_knowing(machine: Machine) -> None:
    machine.platform(registry="ghcr.io/corp")
    for image, expected in (("ghcr.io/me/mine:1", {"TY802"}), (f"ghcr.io/me/mine@{DIGEST}", set())):
        changes = {"image": image, "max_hours": 1}
        path = write_stack(machine.folder, "own", "experiment", merged(EXPERIMENT, changes))
        assert {finding.rule for finding in check(path).findings} == expected
        assert image_reference(load_experiment(path).run) == image


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("localhost", True),
        ("localhost:5000/trainyard", True),
        ("127.0.0.1:5000", True),
        ("ecr", False),
        ("localhost.corp:5000", False),
        ("registry.corp/localhost", False),
    ],
)
def test_only_a_registry_of_this_machine_needs_no_lock(registry: str, expected: bool) -> None:
    assert images.is_on_this_machine(registry) is expected
