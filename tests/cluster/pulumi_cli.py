"""The real Pulumi CLI on a copy of the project, with a file as its backend."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.paths import PROJECT

_UP_TO_S = 600


@dataclass(frozen=True)
class Checkout:
    """A copy of the project, as another person's clone."""

    folder: Path
    backend: Path

    @classmethod
    def make(cls, folder: Path, backend: Path) -> "Checkout":
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listed, cwd=PROJECT, check=True, capture_output=True, text=True).stdout.splitlines()
        for name in files:
            if (PROJECT / name).exists():  # deleted, and not committed yet
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / name, folder / name)
        backend.mkdir(parents=True, exist_ok=True)
        return cls(folder, backend)

    def pulumi(
        self, *arguments: str, check: bool = True, timeout_s: float = _UP_TO_S
    ) -> subprocess.CompletedProcess[str]:
        """Runs the CLI; when it must succeed and does not, shows everything that it said."""
        command = ["pulumi", *arguments, "--non-interactive"]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=_UP_TO_S
        )
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PULUMI_BACKEND_URL": f"file://{self.backend}",
            "PULUMI_CONFIG_PASSPHRASE": "a passphrase of the tests",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def up(self, stack: str, *options: str) -> subprocess.CompletedProcess[str]:
        self.select(stack)
        return self.pulumi("up", "--yes", "--skip-preview", "--stack", stack, *options)

    def destroy(self, stack: str) -> None:
        """Destroys the stack and forgets it; nothing happens when that has been done."""
        if not self.pulumi("stack", "select", stack, check=False).returncode:
            self._destroy(stack)

    def _destroy(self, stack: str) -> None:
        self.pulumi("destroy", "--yes", "--skip-preview", "--stack", stack)
        self.pulumi("stack", "rm", "--yes", "--preserve-config", stack)

    def select(self, stack: str) -> None:
        self.pulumi("stack", "select", "--create", stack)

    def restore(self, stack: str) -> None:
        """The stack file as it is in the project, without what a test has set."""
        shutil.copy2(PROJECT / f"Pulumi.{stack}.yaml", self.folder)

    def outputs(self, stack: str) -> dict[str, Any]:
        outputs: dict[str, Any] = json.loads(self.pulumi("stack", "output", "--json", "--stack", stack).stdout)
        return outputs

    def changes(self, stack: str, *options: str) -> dict[str, int]:
        """What `up` would do, by operation, but for what stays the same."""
        preview = self.pulumi("preview", "--json", "--stack", stack, *options)
        summary: dict[str, int] = json.loads(preview.stdout)["changeSummary"]
        return {operation: count for operation, count in summary.items() if operation != "same"}
