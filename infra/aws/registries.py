"""ECR repositories, one for each image that the platform holds."""

import json
from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

# Manifests name images by digest, and an old run may be started again: many are kept, but not for ever.
_KEPT_IMAGES = 100
_LIFECYCLE = {
    "rules": [
        {
            "rulePriority": 1,
            "description": f"the newest {_KEPT_IMAGES}",
            "selection": {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": _KEPT_IMAGES},
            "action": {"type": "expire"},
        }
    ]
}


class Registries(pulumi.ComponentResource):
    def __init__(
        self, name: str, stack: str, images: Sequence[str], key_arn: pulumi.Input[str], *, protect: bool
    ) -> None:
        super().__init__("trainyard:aws:Registries", name)
        self.urls: dict[str, pulumi.Output[str]] = {}
        for image in images:
            repository = aws.ecr.Repository(
                f"{name}-{image}",
                # With the stack's name: two platforms of one account would otherwise claim the same repository.
                name=f"trainyard/{stack}/{image}",
                image_tag_mutability="IMMUTABLE",
                image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
                encryption_configurations=[
                    aws.ecr.RepositoryEncryptionConfigurationArgs(encryption_type="KMS", kms_key=key_arn)
                ],
                force_delete=not protect,
                opts=pulumi.ResourceOptions(parent=self, protect=protect),
            )
            aws.ecr.LifecyclePolicy(
                f"{name}-{image}-lifecycle",
                repository=repository.name,
                policy=json.dumps(_LIFECYCLE),
                opts=pulumi.ResourceOptions(parent=self),
            )
            self.urls[image] = repository.repository_url
        self.register_outputs({"urls": self.urls})
