"""The base of every configuration model: strict, closed, frozen, and made of plain values.

A model never holds a Pulumi Output: `bool(output)` is True and `output == "x"` is False, silently.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
ABSOLUTE_PATH = r"^/([^/\s:]+/?)*$"
CAPACITY_RESERVATION = r"^cr-[0-9a-f]+$"
ARGUMENT_NAME = r"^[A-Za-z][-_A-Za-z0-9]*$"
QUANTITY = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"
RULE_ID = r"^TY\d{3}$"
CIDR = r"^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$"
ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
S3_URL = r"^s3://[a-z0-9][-a-z0-9.]{1,61}[a-z0-9](/.*)?$"
STORE_PATH = r"^(/|s3://)\S+$"
VERSION = r"^v?\d+\.\d+(\.\d+)?$"

PATTERNS_IN_WORDS = {
    ARGUMENT_NAME: "letters, digits, `-` and `_`, starting with a letter",
    RULE_ID: "a rule's id, such as TY203 (`python -m workloads check --rules` lists them)",
    LABEL: "lower-case letters, digits and `-`, starting and ending with a letter or digit, at most 63",
    ABSOLUTE_PATH: "an absolute path without spaces, such as /shared",
    CAPACITY_RESERVATION: "the id of a capacity reservation, such as cr-0123456789abcdef0",
    CIDR: "an IPv4 range, such as 10.0.0.0/16",
    ENV_NAME: "letters, digits and `_`, not starting with a digit",
    S3_URL: "an S3 address, such as s3://bucket/prefix",
    STORE_PATH: "an absolute path such as /shared/ckpt, or s3://bucket/prefix",
    VERSION: 'a version in quotes, such as "1.33"',
}

Name = Annotated[str, Field(pattern=LABEL)]
Positive = Annotated[int, Field(gt=0)]
NotNegative = Annotated[int, Field(ge=0)]


class Model(BaseModel):
    """The text under a field is its documentation in the JSON Schema."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class SecretName(Model):
    """Names a secret: its value is set by `pulumi config set --secret trainyard:<name>` and stands in no stack file."""

    secret: Name


class Rejected(ValueError):
    """A value that a validator of ours refuses, with the remedy."""

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(message)
        self.fix = fix
