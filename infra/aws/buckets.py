"""S3 buckets for checkpoints and data sets."""

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from infra.aws.identity import Account, Statement, policy_document
from infra.aws.limits import bucket_name
from infra.config.storage import Bucket

# How long a deleted or overwritten object can be had back. Old checkpoints are deleted all the time and are most of the
# bytes; a data set that was spoiled may be noticed only in the next month's run.
_NONCURRENT_DAYS = {"checkpoints": 7, "datasets": 90}
# Parts of an upload that a killed process never finished are charged for and shown nowhere.
_UNFINISHED_UPLOAD_DAYS = 7


class Buckets(pulumi.ComponentResource):
    """Private, versioned, encrypted with the platform's key, and reached over TLS alone."""

    def __init__(
        self,
        name: str,
        stack: str,
        buckets: Sequence[Bucket],
        account: Account,
        key_arn: pulumi.Input[str],
        *,
        protect: bool,
    ) -> None:
        super().__init__("trainyard:aws:Buckets", name)
        self._prefix = name
        self._stack = stack
        self._account = account
        self._key_arn = key_arn
        self._deletion_protected = protect
        self._child = pulumi.ResourceOptions(parent=self)
        created = {bucket.name: self._create_bucket(bucket) for bucket in buckets}
        self.names: dict[str, pulumi.Output[str]] = {name: bucket.bucket for name, bucket in created.items()}
        self._arns = [bucket.arn for bucket in created.values()]
        self.register_outputs({"names": self.names})

    def read_and_write(self) -> list[Statement]:
        """What a pod needs to use the buckets; nothing when there are none."""
        if not self._arns:
            return []
        objects = [pulumi.Output.concat(arn, "/*") for arn in self._arns]
        actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
        key_actions = ["kms:Decrypt", "kms:GenerateDataKey"]
        return [
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": self._arns},
            {"Effect": "Allow", "Action": actions, "Resource": objects},
            {"Effect": "Allow", "Action": key_actions, "Resource": self._key_arn},
        ]

    def _create_bucket(self, bucket: Bucket) -> aws.s3.Bucket:
        name = f"{self._prefix}-{bucket.name}"
        created = aws.s3.Bucket(
            name,
            bucket=self._account.id.apply(
                lambda account_id: bucket_name(
                    account_id=account_id, region=self._account.region, stack=self._stack, name=bucket.name
                )
            ),
            # A platform that may be deleted takes its objects along; otherwise `pulumi destroy` would stop half-way.
            force_destroy=not self._deletion_protected,
            opts=pulumi.ResourceOptions(parent=self, protect=self._deletion_protected),
        )
        aws.s3.BucketPublicAccessBlock(
            f"{name}-private",
            bucket=created.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self._child,
        )
        aws.s3.BucketServerSideEncryptionConfiguration(
            f"{name}-encryption", bucket=created.bucket, rules=[self._encryption_rule()], opts=self._child
        )
        versioning = aws.s3.BucketVersioning(
            f"{name}-versioning",
            bucket=created.bucket,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
            opts=self._child,
        )
        aws.s3.BucketLifecycleConfiguration(
            f"{name}-lifecycle",
            bucket=created.bucket,
            rules=_lifecycle_rules(_NONCURRENT_DAYS[bucket.purpose]),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[versioning]),
        )
        aws.s3.BucketPolicy(
            f"{name}-tls", bucket=created.bucket, policy=policy_document(_tls_only(created.arn)), opts=self._child
        )
        return created

    def _encryption_rule(self) -> aws.s3.BucketServerSideEncryptionConfigurationRuleArgs:
        return aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
            # One call to KMS for many objects: a sharded checkpoint is thousands of them at once.
            bucket_key_enabled=True,
            apply_server_side_encryption_by_default=(
                aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
                    sse_algorithm="aws:kms", kms_master_key_id=self._key_arn
                )
            ),
        )


def _lifecycle_rules(noncurrent_days: int) -> list[aws.s3.BucketLifecycleConfigurationRuleArgs]:
    return [
        aws.s3.BucketLifecycleConfigurationRuleArgs(
            id="leftovers",
            status="Enabled",
            filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
            abort_incomplete_multipart_upload=aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(
                days_after_initiation=_UNFINISHED_UPLOAD_DAYS
            ),
            noncurrent_version_expiration=aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                noncurrent_days=noncurrent_days
            ),
            expiration=aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(expired_object_delete_marker=True),
        )
    ]


def _tls_only(arn: pulumi.Input[str]) -> Statement:
    return {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, pulumi.Output.concat(arn, "/*")],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
