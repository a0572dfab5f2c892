"""How to reach a cluster: the provider's `kubeconfig` (text or path) and `context`, or what kubectl would use.

Neither a kubeconfig that is a secret of the stack nor a key out of it is left on disk: the CLI ends plugins with a
signal after which nothing can be tidied. They live in files without a name; who needs a path gets the descriptor's.
"""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.config.config_exception import ConfigException


class Unusable(Exception):
    """A kubeconfig that leads to no cluster."""


@dataclass(frozen=True, kw_only=True)
class Kubeconfig:
    path: str
    context: str | None

    def api_client(self) -> Any:
        configuration = client.Configuration()
        try:
            with tempfile.TemporaryDirectory() as folder:
                load: Any = config.load_kube_config
                load(
                    self.path,
                    context=self.context,
                    client_configuration=configuration,
                    persist_config=False,
                    temp_file_path=folder,
                )
                for name in ("ssl_ca_cert", "cert_file", "key_file"):
                    file = getattr(configuration, name)
                    if file:
                        setattr(configuration, name, _nameless_file(Path(file).read_bytes()))
        except (ConfigException, OSError, yaml.YAMLError) as error:
            raise Unusable(str(error)) from None
        # One more for a connection that was closed while it was idle; a cluster that is away is found out at once.
        configuration.retries = 1
        return client.ApiClient(configuration)


def kubeconfig_of(text_or_path: str | None, context: str | None) -> Kubeconfig:
    given = text_or_path or os.environ.get("KUBECONFIG") or "~/.kube/config"
    is_text = "\n" in given or given.startswith("{")
    path = _nameless_file(given.encode()) if is_text else str(Path(given).expanduser())
    return Kubeconfig(path=path, context=context or None)


def _nameless_file(content: bytes) -> str:
    descriptor = os.memfd_create("kubeconfig")
    os.write(descriptor, content)
    # Helm is another process: to it, `self` would be Helm.
    return f"/proc/{os.getpid()}/fd/{descriptor}"
