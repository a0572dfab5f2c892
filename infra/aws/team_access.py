"""What training pods may do at AWS: use the platform's buckets, and nothing else."""

from collections.abc import Sequence

import pulumi

from infra.aws.identity import Statement, pod_role
from infra.config.platform import Team

# Training pods name no service account, so they run under the one that every namespace has.
_SERVICE_ACCOUNT = "default"


class TeamAccess(pulumi.ComponentResource):
    def __init__(
        self,
        name: str,
        cluster_name: str,
        teams: Sequence[Team],
        statements: Sequence[Statement],
        depends_on: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:aws:TeamAccess", name)
        # By namespace, which teams may share: EKS takes one role for each service account.
        for namespace in dict.fromkeys(team.namespace for team in teams):
            pod_role(
                f"{name}-{namespace}-pods",
                cluster_name=cluster_name,
                namespace=namespace,
                service_account=_SERVICE_ACCOUNT,
                statements=statements,
                parent=self,
                depends_on=depends_on,
            )
        self.register_outputs({})
