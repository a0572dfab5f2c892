"""Log groups in CloudWatch: encrypted, and kept for as long as an incident takes to be noticed."""

import pulumi
import pulumi_aws as aws

_KEPT_DAYS = 365  # CKV_AWS_338: a year at least


def log_group(
    name: str, *, log_group_name: str, key_arn: pulumi.Input[str], parent: pulumi.Resource
) -> aws.cloudwatch.LogGroup:
    return aws.cloudwatch.LogGroup(
        name,
        name=log_group_name,
        retention_in_days=_KEPT_DAYS,
        kms_key_id=key_arn,
        opts=pulumi.ResourceOptions(parent=parent),
    )
