"""The helm command, on one cluster."""

import json
import os
import signal
import subprocess
from typing import Any

import yaml

from tests.plugins.kubernetes.kubeconfig import Kubeconfig
from tests.plugins.provider import Refused
from tests.plugins.values import Properties


class HelmFailed(Refused):
    """In Helm's own words."""


class Helm:
    def __init__(self, kubeconfig: Kubeconfig) -> None:
        self._environment = {**os.environ, "KUBECONFIG": kubeconfig.path}
        self._context = ["--kube-context", kubeconfig.context] if kubeconfig.context else []
        self._running: set[subprocess.Popen[str]] = set()

    def cancel(self) -> None:
        """What runs is interrupted, as by Ctrl-C: Helm then notes the release as failed, or takes it back if atomic."""
        for process in [*self._running]:
            process.send_signal(signal.SIGINT)

    def template(self, release: Properties) -> str:
        """The manifest that the chart makes of the values; asks no cluster."""
        crds = [] if release.get("skipCrds") else ["--include-crds"]
        return self._run(["template", release["name"], *_chart(release), *crds], release)

    def install(self, release: Properties) -> None:
        flags = _flags(release, {"createNamespace": "--create-namespace"})
        self._run(["install", release["name"], *_chart(release), *flags, *_waiting(release)], release)

    def upgrade(self, release: Properties) -> None:
        flags = [f"--history-max={release['maxHistory']}"] if "maxHistory" in release else []
        self._run(["upgrade", release["name"], *_chart(release), *flags, *_waiting(release)], release)

    def uninstall(self, release: Properties) -> None:
        wait = [] if release.get("skipAwait") and not release.get("atomic") else ["--wait", *_timeout(release)]
        self._run(["uninstall", release["name"], "--ignore-not-found", *wait], release)

    def status(self, release: Properties) -> dict[str, Any] | None:
        """The release as the cluster holds it, its values and manifest included; None when there is none."""
        try:
            metadata = json.loads(self._run(["get", "metadata", release["name"], "-o", "json"], release))
            status = json.loads(self._run(["status", release["name"], "-o", "json"], release))
        except HelmFailed as error:
            if "release: not found" in str(error):
                return None
            raise
        return {**metadata, "values": status.get("config") or {}, "manifest": status.get("manifest", "")}

    def _run(self, arguments: list[str], release: Properties) -> str:
        command = ["helm", *arguments, "--namespace", release["namespace"], *self._context]
        try:
            process = subprocess.Popen(
                command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except FileNotFoundError:
            raise Refused("helm is not on PATH; releases are installed with it") from None
        self._running.add(process)
        # Helm reads values from it for `--values -`: on stdin they show in no list of processes.
        printed, complaint = process.communicate(yaml.safe_dump(release.get("values") or {}))
        self._running.discard(process)
        if process.returncode:
            raise HelmFailed(complaint.strip().removeprefix("Error: "))
        return printed


def _chart(release: Properties) -> list[str]:
    arguments = [release["chart"]]
    for asset in release.get("valueYamlFiles") or []:
        if "path" not in asset:
            raise Refused("valueYamlFiles: the stand-in takes FileAsset alone")
        arguments += ["--values", asset["path"]]
    arguments += ["--values", "-"]  # last: they win over the files
    if "version" in release:
        arguments += ["--version", release["version"]]
    if release.get("repositoryOpts"):
        arguments += ["--repo", release["repositoryOpts"]["repo"]]
    return arguments


def _waiting(release: Properties) -> list[str]:
    wait = [] if release.get("skipAwait") else ["--wait"]
    return [*wait, *_flags(release, {"atomic": "--atomic", "skipCrds": "--skip-crds"}), *_timeout(release)]


def _timeout(release: Properties) -> list[str]:
    return ["--timeout", f"{release['timeout']}s"] if "timeout" in release else []


def _flags(release: Properties, flags: dict[str, str]) -> list[str]:
    return [flag for key, flag in flags.items() if release.get(key)]
