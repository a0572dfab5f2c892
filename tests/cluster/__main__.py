"""The local cluster: `python -m tests.cluster prepare | up | down | env`.

`prepare` builds what no registry here has and needs Python alone, so it can run while the project's environment is
being installed; `up` builds the project's own images too and starts the node.
"""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.cluster import control, images, machine, registry, toolchain
from tests.cluster.paths import CACHE, KUBECONFIG, PROJECT


def prepare() -> None:
    machine.require_packages()
    toolchain.build()
    registry.start_registry()
    images.make_images()


def up() -> None:
    prepare()
    control.build_own_images()
    control.start_node()
    print(f"the cluster is ready; its kubeconfig is {KUBECONFIG}", file=sys.stderr)


def down() -> None:
    control.stop_node()
    registry.stop_registry()


def env() -> None:
    """Prints what a shell needs to use the cluster: eval "$(make -s cluster-env)"."""
    if not all(folder.exists() for folder in toolchain.command_folders()):
        raise toolchain.BuildFailed("there is no cluster yet; first: make cluster")
    print(f"export KUBECONFIG={KUBECONFIG}")
    folders = [PROJECT / ".venv" / "bin"]
    if shutil.which("pulumi") is None:
        folders += [PROJECT / "tests" / "plugins" / "bin"]
        print("export PULUMI_SKIP_UPDATE_CHECK=true PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true")
    folders += [folder for folder in toolchain.command_folders() if shutil.which(_a_command_of(folder)) is None]
    print(f"export PATH={':'.join(map(str, folders))}:$PATH")
    # So that `python -m workloads build` finds the layers of `make cluster`, and torch is not installed again.
    for name, value in images.buildah_settings().items():
        print(f"export {name}={value}")


def _a_command_of(folder: Path) -> str:
    return next(path.name for path in sorted(folder.iterdir()))


@contextmanager
def _alone() -> Iterator[None]:
    """One at a time on a machine: the next finds made what it would make."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another `make cluster` on this machine", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


_VERBS: dict[str, Callable[[], None]] = {"prepare": prepare, "up": up, "down": down, "env": env}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in _VERBS:
        sys.exit(f"usage: python -m tests.cluster {' | '.join(_VERBS)}")
    try:
        with _alone() if sys.argv[1] != "env" else nullcontext():
            _VERBS[sys.argv[1]]()
    except (toolchain.BuildFailed, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
