"""A fingerprint of a platform's configuration.

The platform exports the one it was deployed with; an experiment computes that of the stack file it was checked against,
and says so when the two differ.
"""

import hashlib

from infra.config.platform import PlatformConfig


def config_digest(config: PlatformConfig) -> str:
    """The same for the same values, however the file spells or orders them."""
    return hashlib.sha256(config.model_dump_json(by_alias=True).encode()).hexdigest()[:16]
