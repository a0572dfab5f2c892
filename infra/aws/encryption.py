"""The key that encrypts what a platform stores: Kubernetes secrets, file systems, buckets, images and logs."""

import pulumi
import pulumi_aws as aws

from infra.aws.identity import Account, Statement, policy_document


class EncryptionKey(pulumi.ComponentResource):
    """One key per platform; deleting it makes all of that unreadable, hence the protection."""

    def __init__(self, name: str, account: Account, *, lustre_reads_buckets: bool, protect: bool) -> None:
        super().__init__("trainyard:aws:EncryptionKey", name)
        statements = [_account_statement(account), _logs_statement(account)]
        if lustre_reads_buckets:
            statements.append(_lustre_statement(account))
        key = aws.kms.Key(
            f"{name}-key",
            description=f"Everything that the platform {name} stores",
            enable_key_rotation=True,
            policy=policy_document(*statements),
            opts=pulumi.ResourceOptions(parent=self, protect=protect),
        )
        self.arn: pulumi.Output[str] = key.arn
        self.register_outputs({"arn": self.arn})


def _account_statement(account: Account) -> Statement:
    """IAM policies decide who uses the key: without this statement nobody could, not even to delete it."""
    root = pulumi.Output.concat("arn:", account.partition, ":iam::", account.id, ":root")
    return {"Effect": "Allow", "Principal": {"AWS": root}, "Action": "kms:*", "Resource": "*"}


def _logs_statement(account: Account) -> Statement:
    """CloudWatch Logs encrypts with a service principal, which no IAM policy of the account can admit."""
    log_groups = pulumi.Output.concat("arn:", account.partition, f":logs:{account.region}:", account.id, ":*")
    return {
        "Effect": "Allow",
        "Principal": {"Service": f"logs.{account.region}.amazonaws.com"},
        "Action": ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
        "Resource": "*",
        "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_groups}},
    }


def _lustre_statement(account: Account) -> Statement:
    """FSx reads a linked bucket as a role that it makes for each file system, so only its pattern can be named."""
    roles = pulumi.Output.concat(
        "arn:",
        account.partition,
        ":iam::",
        account.id,
        ":role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_*",
    )
    return {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey*", "kms:DescribeKey"],
        "Resource": "*",
        "Condition": {"StringEquals": {"aws:PrincipalAccount": account.id}, "ArnLike": {"aws:PrincipalArn": roles}},
    }
