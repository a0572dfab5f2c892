"""MPIJob has two owners: v1 is the Training Operator's, v2beta1 the MPI operator's, and both call their CRD the same.

The API server keeps one of the two. On a cluster that has v1 already, the platform would fail halfway, so it looks
first. It never takes v1 away by itself: jobs that somebody else is running would go with it.
"""

from typing import Any

import pulumi
import yaml

from infra.config.platform import ExistingCluster

CRD = "mpijobs.kubeflow.org"
_OURS = "v2beta1"
_TIMEOUT_S = 30


def foreign_versions(definition: dict[str, Any]) -> list[str]:
    """Versions of MPIJob that a definition serves, or of which the cluster may hold jobs, and that are not ours."""
    declared = [version["name"] for version in definition["spec"]["versions"]]
    stored = definition.get("status", {}).get("storedVersions") or []
    return sorted({*declared, *stored} - {_OURS})


def migration(stack_name: str, versions: list[str]) -> str:
    """What to do about it."""
    found = ", ".join(versions)
    return f"""this cluster defines {CRD} in version {found}, as the Training Operator does; the MPI operator
needs {_OURS}, and a cluster holds one of the two. Nothing has been changed.
Either leave MPI out, by `operators.mpi: {{enabled: false}}`, or migrate:
    1. keep what there is, for no job is converted:
           kubectl get {CRD} -A -o yaml > mpijobs.yaml
    2. when these jobs have ended, uninstall the Training Operator that serves them: this stack brings one without
       MPIJob, if it has `operators.training`
    3. remove the definition, and with it every MPIJob of the cluster:
           kubectl delete crd {CRD}
    4. pulumi up -s {stack_name}"""


def refuse_foreign_mpi_jobs(stack_name: str, cluster: ExistingCluster) -> None:
    """Raises with the way out. A cluster that does not answer is left to Pulumi's provider, which says why."""
    definition = _definition(cluster)
    if definition and (versions := foreign_versions(definition)):
        raise pulumi.RunError(migration(stack_name, versions))


def _definition(cluster: ExistingCluster) -> dict[str, Any] | None:
    # Half a second, which no preview and no check should pay.
    from kubernetes import client, config
    from kubernetes.client.exceptions import ApiException
    from kubernetes.config import ConfigException
    from urllib3.exceptions import HTTPError

    try:
        if cluster.kubeconfig:
            text = pulumi.Config("trainyard").require(cluster.kubeconfig.secret)
            connection = config.new_client_from_config_dict(yaml.safe_load(text))
        else:
            connection = config.new_client_from_config(context=cluster.context)
        api = client.ApiextensionsV1Api(connection)
        found = api.read_custom_resource_definition(CRD, _request_timeout=_TIMEOUT_S)
    except (ApiException, ConfigException, HTTPError):
        return None
    plain: dict[str, Any] = connection.sanitize_for_serialization(found)
    return plain
