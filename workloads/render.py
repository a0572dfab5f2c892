"""The manifests of a run as YAML."""

from pathlib import Path

import yaml

from workloads.launchers.registry import manifests_of
from workloads.resolve import Run


class _Plain(yaml.SafeDumper):
    """Writes shared parts out: Kubernetes tools take anchors, people do not."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def as_yaml(run: Run) -> str:
    """Every object of the run, in the order in which they are created."""
    return yaml.dump_all(manifests_of(run), Dumper=_Plain, sort_keys=False, explicit_start=True, width=120)


def write_files(run: Run, folder: Path) -> list[Path]:
    """One file per object, numbered in that order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, manifest in enumerate(manifests_of(run)):
        path = folder / f"{number:02}-{manifest['kind'].lower()}.yaml"
        path.write_text(yaml.dump(manifest, Dumper=_Plain, sort_keys=False, width=120))
        written.append(path)
    return written
