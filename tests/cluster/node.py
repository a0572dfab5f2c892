"""The node: a process in namespaces of its own, and everything of Kubernetes below it.

`start` makes PID, mount and network namespaces and runs this module as their first process. When that process ends,
the kernel ends every daemon and every pod with it and takes their mounts, bridges, routes and iptables rules away; only
cgroups and files are left to remove. A daemon that dies is started again.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster import certificates
from tests.cluster.paths import CACHE, KUBECONFIG, PROJECT, STATE
from tests.cluster.registry import PAUSE_IMAGE, REGISTRY_PORT, registry_command
from tests.cluster.toolchain import built

NODE = "trainyard"
HOST_ADDRESS = "10.88.0.1"
NODE_ADDRESS = "10.88.0.2"
_DEVICE = "trainyard0"
_PODS = "10.244.0.0/16"
_SERVICES = "10.96.0.0/16"
_SERVICE_ADDRESS = "10.96.0.1"
_API = f"https://{NODE_ADDRESS}:6443"
_ETCD = "http://127.0.0.1:2379"
_CHARTS_PORT = 8879  # Helm's own choice for a repository
_CONTAINERD = "/run/containerd/containerd.sock"
_CGROUP = "trainyard-cluster"
_CNI_LEASES = Path("/var/lib/cni")
_RESTART_AFTER_S = 1.0


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
    for root in [*Path("/sys/fs/cgroup").glob(_CGROUP), *Path("/sys/fs/cgroup").glob(f"*/{_CGROUP}")]:
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
    certificates.make(STATE / "pki", server_names=_server_names())
    _write_files()

    daemons = _Daemons()
    signal.signal(signal.SIGTERM, lambda *_: daemons.stop())
    daemons.start("etcd", _etcd())
    daemons.start("registry", registry_command(REGISTRY_PORT))
    daemons.start("containerd", ["containerd", "--config", str(STATE / "containerd.toml")])
    daemons.start("kube-apiserver", _api_server())
    _until(lambda: _kubectl("get", "--raw", "/readyz") == 0, "the API server")
    for name, command in _clients_of_the_api().items():
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


class _Daemons:
    def __init__(self) -> None:
        self._commands: dict[str, list[str]] = {}
        self._running: dict[int, str] = {}
        # A process that nothing refers to is reaped by the next `Popen`, and its end would pass unseen.
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stopping = False

    def start(self, name: str, command: list[str]) -> None:
        with (STATE / "logs" / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment())
        self._commands[name] = command
        self._processes[name] = process
        self._running[process.pid] = name

    def stop(self) -> None:
        self._stopping = True
        for pid in self._running:
            os.kill(pid, signal.SIGTERM)

    def watch(self) -> None:
        """Reaps whatever ends in here (orphans of pods come to process 1), and starts daemons again."""
        while not (self._stopping and not self._running):
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            name = self._running.pop(pid, None)
            if name is not None and not self._stopping:
                print(f"{name} ended with {os.waitstatus_to_exitcode(status)} and is started again", flush=True)
                time.sleep(_RESTART_AFTER_S)
                self.start(name, self._commands[name])


def _environment() -> dict[str, str]:
    # Plugins of containerd and the kubelet look for their helpers there.
    return {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what} does not answer after 120 s; see {STATE}/logs")
        time.sleep(0.2)


def _kubectl(*arguments: str) -> int:
    kubectl = str(built("kubernetes") / "bin" / "kubectl")
    return subprocess.run([kubectl, "--kubeconfig", str(KUBECONFIG), *arguments], capture_output=True).returncode


def _server_names() -> list[str]:
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", NODE]
    return [*(f"DNS:{name}" for name in names), *(f"IP:{ip}" for ip in ("127.0.0.1", NODE_ADDRESS, _SERVICE_ADDRESS))]


def _make_cgroups() -> None:
    """A folder of our own in every hierarchy, so that no other kubelet's pods are mistaken for ours."""
    root = Path("/sys/fs/cgroup")
    hierarchies = [root] if (root / "cgroup.controllers").exists() else [p for p in root.iterdir() if p.is_dir()]
    for hierarchy in hierarchies:
        (hierarchy / _CGROUP).mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # cgroup v1 makes them empty, and then no process may enter
            if (hierarchy / name).exists():
                (hierarchy / _CGROUP / name).write_text((hierarchy / name).read_text())


def _etcd() -> list[str]:
    return [
        "etcd",
        f"--data-dir={STATE / 'etcd'}",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        "--unsafe-no-fsync",  # a machine that loses power makes a new cluster
    ]


def _api_server() -> list[str]:
    pki = STATE / "pki"
    return [
        _kubernetes("kube-apiserver"),
        f"--etcd-servers={_ETCD}",
        f"--advertise-address={NODE_ADDRESS}",
        f"--service-cluster-ip-range={_SERVICES}",
        f"--tls-cert-file={pki / 'server.crt'}",
        f"--tls-private-key-file={pki / 'server.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--service-account-key-file={pki / 'service-accounts.key'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--kubelet-client-certificate={pki / 'admin.crt'}",
        f"--kubelet-client-key={pki / 'admin.key'}",
        # The node's name resolves nowhere.
        "--kubelet-preferred-address-types=InternalIP",
    ]


def _clients_of_the_api() -> dict[str, list[str]]:
    admin, pki = KUBECONFIG, STATE / "pki"
    return {
        "kube-controller-manager": [
            _kubernetes("kube-controller-manager"),
            f"--kubeconfig={admin}",
            f"--service-account-private-key-file={pki / 'service-accounts.key'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            "--use-service-account-credentials",
            "--allocate-node-cidrs",
            f"--cluster-cidr={_PODS}",
            f"--service-cluster-ip-range={_SERVICES}",
            "--leader-elect=false",
        ],
        "kube-scheduler": [_kubernetes("kube-scheduler"), f"--kubeconfig={admin}", "--leader-elect=false"],
        "kubelet": [
            _kubernetes("kubelet"),
            f"--config={STATE / 'kubelet.json'}",
            f"--kubeconfig={STATE / 'kubelet.kubeconfig'}",
            f"--root-dir={STATE / 'kubelet'}",
            f"--cert-dir={pki}",
            f"--hostname-override={NODE}",
            f"--node-ip={NODE_ADDRESS}",
            "--node-labels=trainyard.dev/node-group=cpu",
        ],
        "kube-proxy": [
            _kubernetes("kube-proxy"),
            f"--kubeconfig={admin}",
            f"--hostname-override={NODE}",
            f"--cluster-cidr={_PODS}",
            "--conntrack-max-per-core=0",
        ],
        "coredns": [str(built("coredns") / "bin" / "coredns"), "-conf", str(STATE / "Corefile")],
        "volumes": [sys.executable, "-m", "tests.cluster.volumes"],
        "charts": [
            *(sys.executable, "-m", "http.server", str(_CHARTS_PORT)),
            *("--bind", NODE_ADDRESS, "--directory", str(STATE / "charts")),
        ],
        "kwok": [
            str(built("kwok") / "bin" / "kwok"),
            f"--kubeconfig={admin}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--config={STATE / 'kwok.yaml'}",
            "--server-address=127.0.0.1:10247",
        ],
    }


def _write_files() -> None:
    """Configuration of the daemons; as JSON where YAML is read, which is a superset."""
    pki = STATE / "pki"
    certificates.write_kubeconfig(KUBECONFIG, pki, user="admin", server=_API, context="trainyard-local")
    certificates.write_kubeconfig(STATE / "kubelet.kubeconfig", pki, user="kubelet", server=_API, context="node")
    (STATE / "resolv.conf").write_text(f"nameserver {NODE_ADDRESS}\n")
    (STATE / "Corefile").write_text(_COREFILE)
    (STATE / "containerd.toml").write_text(_CONTAINERD_CONFIG)
    cni = STATE / "cni"
    cni.mkdir(exist_ok=True)
    (cni / "10-bridge.conflist").write_text(json.dumps(_network()))
    (STATE / "kubelet.json").write_text(json.dumps(_kubelet()))
    _write_stages()
    _package_charts()


def _write_stages() -> None:
    """How fake nodes and their pods go through life, as KWOK ships it."""
    stages = built("kwok") / "stages" / "stage"
    files = [path for kind in _STAGES for path in sorted((stages / kind).glob("*.yaml"))]
    texts = [path.read_text() for path in files if path.name != "kustomization.yaml"]
    (STATE / "kwok.yaml").write_text("\n---\n".join(texts))


_STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


def _package_charts() -> None:
    """A chart repository like any other, for `mirrors.charts`."""
    helm, charts = str(built("helm") / "bin" / "helm"), STATE / "charts"
    shutil.rmtree(charts, ignore_errors=True)
    volcano = built("volcano") / "charts" / "volcano"
    subprocess.run([helm, "package", str(volcano), "--destination", str(charts)], check=True, capture_output=True)
    subprocess.run([helm, "repo", "index", str(charts)], check=True, capture_output=True)


def _network() -> dict[str, object]:
    bridge = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def _kubelet() -> dict[str, object]:
    pki = STATE / "pki"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(pki / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{_CONTAINERD}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{_CGROUP}",
        "clusterDNS": [NODE_ADDRESS],
        "clusterDomain": "cluster.local",
        "volumePluginDir": str(STATE / "kubelet" / "plugins"),
        "resolvConf": str(STATE / "resolv.conf"),
        "failSwapOn": False,
        "failCgroupV1": False,
        "evictionHard": {"memory.available": "100Mi"},
        # Nothing can be pulled again once it was collected, but from the registry beside it.
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        "maxPods": 100,
    }


def _kubernetes(command: str) -> str:
    return str(built("kubernetes") / "bin" / command)


_COREFILE = f"""\
.:53 {{
  bind {NODE_ADDRESS}
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {KUBECONFIG}
    pods insecure
    ttl 1
  }}
  errors
}}
"""

# Images stay in the cache: five gigabytes need not be unpacked for every cluster.
_CONTAINERD_CONFIG = f"""\
version = 2
root = "{CACHE / "containerd"}"
state = "/run/containerd"

[grpc]
address = "{_CONTAINERD}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
# Some machines may not lower a process's oom_score_adj; without this no pod starts there.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd]
discard_unpacked_layers = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{STATE / "cni"}"
"""


if __name__ == "__main__":
    main()
