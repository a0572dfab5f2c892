"""What the machine itself must bring: root, and a dozen packages of Debian."""

import os
import shutil
import subprocess

from tests.cluster.toolchain import BuildFailed

# A command that each package brings, and the package.
_PACKAGES = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "socat": "socat",
    "openssl": "openssl",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "docker-registry": "docker-registry",
}


def require_packages() -> None:
    """Installs what is missing."""
    missing = sorted(package for command, package in _PACKAGES.items() if shutil.which(command) is None)
    if os.geteuid() != 0:
        raise BuildFailed("a node needs root: it mounts, makes network devices and cgroups; run this with sudo")
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise BuildFailed(f"install these first, or bring a kubeconfig of another cluster: {', '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        done = subprocess.run(["apt-get", *arguments], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise BuildFailed(f"apt-get {arguments[0]} fails:\n{(done.stdout + done.stderr)[-2000:]}")
