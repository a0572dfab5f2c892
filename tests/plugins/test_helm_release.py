"""helm.sh/v3:Release of the stand-in: a chart that is a folder of the project, by the real CLI and the real Helm."""

import subprocess

from tests.plugins.stack import NEEDS_CLUSTER, Stack

pytestmark = NEEDS_CLUSTER

_CHART = {
    "Chart.yaml": "apiVersion: v2\nname: tiny\nversion: 0.1.0\nappVersion: '7'\n",
    "values.yaml": "greeting: hello\n",
    "templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\n"
    "data: {text: {{ .Values.greeting | quote }}}\n",
}


def test_a_release_is_installed_upgraded_found_adrift_and_uninstalled(stack: Stack) -> None:
    for path, text in _CHART.items():
        file = stack.folder / "tiny" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def greeting() -> str | None:
        config = stack.cluster.get(stack.reference("ConfigMap", "greeting"))
        return None if config is None else str(config["data"]["text"])

    def plan(text: str) -> None:
        values = {"greeting": text, "count": 3}
        release = {"name": "tiny", "namespace": stack.namespace, "chart": "./tiny", "values": values, "atomic": True}
        stack.plan(releases={"tiny": {**release, "max_history": 2}})

    plan("good morning")
    stack.preview()
    stack.up()
    assert greeting() == "good morning"
    stack.up("--expect-no-changes")

    plan("good evening")
    assert "values.greeting" in stack.preview()["tiny"]["detailedDiff"]
    stack.up()
    assert greeting() == "good evening"

    template = stack.folder / "tiny/templates/config.yaml"
    template.write_text(template.read_text() + "# edited\nimmutable: false\n")
    assert list(stack.preview()["tiny"]["detailedDiff"]) == ["checksum"]

    _helm(stack, "upgrade", "tiny", str(stack.folder / "tiny"), "--set", "greeting=overheard")
    stack.run("refresh", "--yes", "--skip-preview")
    assert "values.greeting" in stack.preview()["tiny"]["detailedDiff"]

    _helm(stack, "uninstall", "tiny")
    stack.run("refresh", "--yes", "--skip-preview")
    assert stack.preview()["tiny"]["op"] == "create"
    stack.up()
    stack.plan()
    stack.up()
    assert greeting() is None


def _helm(stack: Stack, *arguments: str) -> None:
    command = ["helm", *arguments, "--namespace", stack.namespace]
    subprocess.run(command, env=stack.environment(), capture_output=True, check=True)
