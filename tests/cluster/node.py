"""The node: a process in namespaces of its own, and everything of Kubernetes below it.

`start` makes PID, mount and network namespaces and runs this module as their first process. When that process ends,
the kernel ends every daemon and every pod with it and takes their mounts, bridges, routes and iptables rules away; only
cgroups and files are left to remove. A daemon that dies is started again.
"""

import contextlib
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.components import CGROUP, HOST_ADDRESS, NODE_ADDRESS, before_the_api, clients_of_the_api, write_files
from tests.cluster.daemons import Daemons
from tests.cluster.paths import KUBECONFIG, PROJECT, STATE
from tests.cluster.toolchain import built

_DEVICE = "trainyard0"
_CNI_LEASES = Path("/var/lib/cni")
_API_WITHIN_S = 120


def start() -> subprocess.Popen[bytes]:
    """Starts the node and gives its first process, as the host sees it."""
    (STATE / "logs").mkdir(parents=True, exist_ok=True)
    _remove_cable()  # of a node that was killed
    namespaces = ["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
    with (STATE / "logs" / "node.log").open("ab") as log:
        process = subprocess.Popen(
            [*namespaces, sys.executable, "-m", "tests.cluster.node"],
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (STATE / "pid").write_text(str(process.pid))
    _connect(process)
    return process


def remove_traces() -> None:
    """What the kernel does not take away by itself: cgroups outlive their processes. The innermost go first."""
    _remove_cable()
    with contextlib.suppress(OSError):  # not there, or another's
        _CNI_LEASES.rmdir()
    for root in [*Path("/sys/fs/cgroup").glob(CGROUP), *Path("/sys/fs/cgroup").glob(f"*/{CGROUP}")]:
        for folder in sorted([root, *(path for path in root.rglob("*") if path.is_dir())], reverse=True):
            folder.rmdir()


def _connect(process: subprocess.Popen[bytes]) -> None:
    """A cable between the host and the node's network namespace, then the word to go on."""
    child = first_process(process.pid)
    _ip("link", "add", _DEVICE, "type", "veth", "peer", "name", "eth0", "netns", str(child))
    _ip("address", "add", f"{HOST_ADDRESS}/24", "dev", _DEVICE)
    _ip("link", "set", _DEVICE, "up")
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.close()


def first_process(unshare: int) -> int:
    """`unshare --fork` waits outside the namespaces; its child is inside."""
    children = Path(f"/proc/{unshare}/task/{unshare}/children")
    while not (pids := children.read_text().split()):
        time.sleep(0.01)
    return int(pids[0])


def _remove_cable() -> None:
    subprocess.run(["ip", "link", "delete", _DEVICE], capture_output=True)  # there is none, as a rule


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def main() -> None:
    """Runs inside the namespaces, as their process 1."""
    sys.stdin.readline()
    _mount_folders()
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{NODE_ADDRESS}/24", "dev", "eth0")
    _ip("link", "set", "eth0", "up")
    _ip("route", "add", "default", "via", HOST_ADDRESS)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    _make_cgroups()
    write_files()

    daemons = Daemons(STATE / "logs")
    signal.signal(signal.SIGTERM, lambda *_: daemons.stop())
    for name, command in before_the_api().items():
        daemons.start(name, command)
    _wait_for_the_api()
    for name, command in clients_of_the_api().items():
        daemons.start(name, command)
    daemons.watch()


def _mount_folders() -> None:
    """Folders at fixed places, which the node's daemons write to and the host's must not see."""
    # Mounts of volumes must reach the containers; outside of here nothing sees them.
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "run", "/run"], check=True)
    for place in (_CNI_LEASES, Path("/var/log")):
        folder = STATE / "node" / place.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place.mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", str(folder), str(place)], check=True)


def _make_cgroups() -> None:
    """A folder of our own in every hierarchy, so that no other kubelet's pods are mistaken for ours."""
    root = Path("/sys/fs/cgroup")
    hierarchies = [root] if (root / "cgroup.controllers").exists() else [p for p in root.iterdir() if p.is_dir()]
    for hierarchy in hierarchies:
        (hierarchy / CGROUP).mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # cgroup v1 makes them empty, and then no process may enter
            if (hierarchy / name).exists():
                (hierarchy / CGROUP / name).write_text((hierarchy / name).read_text())


def _wait_for_the_api() -> None:
    kubectl = str(built("kubernetes") / "bin" / "kubectl")
    command = [kubectl, "--kubeconfig", str(KUBECONFIG), "get", "--raw", "/readyz"]
    deadline = time.monotonic() + _API_WITHIN_S
    while subprocess.run(command, capture_output=True).returncode:
        if time.monotonic() > deadline:
            sys.exit(f"the API server does not answer after {_API_WITHIN_S} s; see {STATE}/logs")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
