"""What runs on the node: the command of each daemon, and the files that it reads."""

import json
import shutil
import subprocess
import sys

from tests.cluster import certificates
from tests.cluster.paths import CACHE, KUBECONFIG, STATE
from tests.cluster.registry import PAUSE_IMAGE, REGISTRY_PORT, registry_command
from tests.cluster.toolchain import built

NODE = "trainyard"
HOST_ADDRESS = "10.88.0.1"
NODE_ADDRESS = "10.88.0.2"
_PODS = "10.244.0.0/16"
_SERVICES = "10.96.0.0/16"
_API_SERVICE_ADDRESS = "10.96.0.1"
_API = f"https://{NODE_ADDRESS}:6443"
_ETCD = "http://127.0.0.1:2379"
_CHARTS_PORT = 8879  # Helm's own choice for a repository
_CONTAINERD = "/run/containerd/containerd.sock"
CGROUP = "trainyard-cluster"


def before_the_api() -> dict[str, list[str]]:
    """Daemons that need no API server, in their order; the last is the API server itself."""
    return {
        "etcd": _etcd(),
        "registry": registry_command(REGISTRY_PORT),
        "containerd": ["containerd", "--config", str(STATE / "containerd.toml")],
        "kube-apiserver": _api_server(),
    }


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


def clients_of_the_api() -> dict[str, list[str]]:
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


def write_files() -> None:
    """Configuration of the daemons; as JSON where YAML is read, which is a superset."""
    pki = STATE / "pki"
    certificates.make(pki, server_names=_server_names())
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
        "cgroupRoot": f"/{CGROUP}",
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
        # Until a mounted Secret follows its object; operators that make their own certificates wait for that.
        "syncFrequency": "5s",
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


def _server_names() -> list[str]:
    names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", NODE]
    return [
        *(f"DNS:{name}" for name in names),
        *(f"IP:{ip}" for ip in ("127.0.0.1", NODE_ADDRESS, _API_SERVICE_ADDRESS)),
    ]
