"""The JSON Schema of a stack file, of either kind, so that an editor completes it and underlines what is wrong."""

from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from infra.config.model import Model
from infra.config.platform import EksPlatform, ExistingPlatform
from infra.config.stackfile import PREFIX
from workloads.config import ExperimentConfig


def stack_schema() -> dict[str, Any]:
    """One schema for both kinds: which of the two keys a file holds decides."""
    models = (EksPlatform, ExistingPlatform, ExperimentConfig)
    inputs: list[tuple[type[Model], JsonSchemaMode]] = [(model, "validation") for model in models]
    references, definitions = models_json_schema(inputs, title="Trainyard stack file")
    # `if` rather than `oneOf`: an editor then underlines the key at fault, not the whole platform.
    platform = {
        "if": {"properties": {"target": {"const": "existing"}}},
        "then": references[(ExistingPlatform, "validation")],
        "else": references[(EksPlatform, "validation")],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": definitions["title"],
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "properties": {
                    "aws:region": {"type": "string", "description": "The region of an EKS platform."},
                    PREFIX + "platform": platform,
                    PREFIX + "experiment": references[(ExperimentConfig, "validation")],
                },
                "oneOf": [{"required": [PREFIX + "platform"]}, {"required": [PREFIX + "experiment"]}],
            }
        },
        "$defs": definitions["$defs"],
    }
