"""A certificate authority for one cluster, and kubeconfigs that carry its certificates."""

import base64
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

# User and groups by certificate: what the API server takes a client for.
_SUBJECTS = {
    "server": "/CN=kube-apiserver",
    "admin": "/O=system:masters/CN=admin",
    "kubelet": "/O=system:nodes/CN=system:node:trainyard",
}
_DAYS = "365"


def make(folder: Path, *, server_names: Sequence[str]) -> None:
    """Keys and certificates, unless they are there: clients of a restarted cluster go on."""
    if (folder / "complete").exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _openssl(
        folder,
        "req -x509 -newkey rsa:2048 -nodes -subj /CN=trainyard-cluster -days",
        _DAYS,
        "-keyout",
        "ca.key",
        "-out",
        "ca.crt",
    )
    (folder / "names").write_text(f"subjectAltName={','.join(server_names)}\n")
    for name, subject in _SUBJECTS.items():
        _openssl(
            folder, "req -new -newkey rsa:2048 -nodes -subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr"
        )
        _openssl(
            folder,
            "x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -extfile names -days",
            _DAYS,
            "-in",
            f"{name}.csr",
            "-out",
            f"{name}.crt",
        )
    _openssl(folder, "genrsa -out service-accounts.key 2048")
    (folder / "complete").touch()


def write_kubeconfig(path: Path, pki: Path, *, user: str, server: str, context: str) -> None:
    """Everything inside one file that only its owner may read."""

    def encoded(name: str) -> str:
        return base64.b64encode((pki / name).read_bytes()).decode()

    cluster = {"server": server, "certificate-authority-data": encoded("ca.crt")}
    credentials = {
        "client-certificate-data": encoded(f"{user}.crt"),
        "client-key-data": encoded(f"{user}.key"),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": context, "user": credentials}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
        "current-context": context,
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2))


def _openssl(folder: Path, options: str, *arguments: str) -> None:
    subprocess.run(["openssl", *options.split(), *arguments], cwd=folder, check=True, capture_output=True)
