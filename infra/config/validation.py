"""One report of all that is wrong with a stack file: key path, line, value, what is allowed, nearest spelling."""

import re
from collections.abc import Iterator
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from infra.config.model import PATTERNS_IN_WORDS, Model, Rejected, SecretName
from infra.config.scalars import plain_scalar
from infra.config.stackfile import KeyPath, StackFile, dotted
from infra.findings import Finding, InvalidStack, nearest

M = TypeVar("M", bound=Model)

_TYPES_IN_WORDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a map",
    "model_type": "a map",
    "finite_number": "a finite number",
}
_BOUNDS_IN_WORDS = {
    "greater_than": ("gt", "more than {}"),
    "greater_than_equal": ("ge", "at least {}"),
    "less_than": ("lt", "less than {}"),
    "less_than_equal": ("le", "at most {}"),
    "too_short": ("min_length", "at least {} entries"),
    "string_too_short": ("min_length", "at least {} characters"),
    "string_too_long": ("max_length", "at most {} characters"),
}


def validate(model: type[M], stack_file: StackFile, body: object) -> M:
    """The typed configuration; raises InvalidStack with every problem at once."""
    try:
        return TypeAdapter(model).validate_python(body)
    except ValidationError as error:
        raise InvalidStack([_finding(details, model, stack_file) for details in error.errors()]) from None


def _finding(details: ErrorDetails, model: type[Model], stack_file: StackFile) -> Finding:
    keys = _key_path(details["loc"])

    def finding(rule: str, message: str, fix: str) -> Finding:
        return Finding(rule=rule, severity="error", where=stack_file.where(keys), message=message, fix=fix)

    if details["type"] == "extra_forbidden":
        allowed = sorted(_fields_at(model, keys[:-1]))
        return finding(
            "TY003", f"unknown key `{keys[-1]}`", f"allowed here: {', '.join(allowed)}.{nearest(keys[-1], allowed)}"
        )
    if details["type"] == "missing":
        return finding("TY004", f"`{dotted(keys)}` is missing", f"add `{keys[-1]}:`{_meaning(model, keys)}")
    if SecretName in _models_at(model, keys):
        # Whatever stands there may be the secret itself, so it is not repeated.
        fix = "write `{secret: NAME}`, then `pulumi config set --secret trainyard:NAME`"
        return finding("TY005", "holds a value where the name of a secret belongs", fix)
    return finding("TY005", *_message_and_fix(details))


def _message_and_fix(details: ErrorDetails) -> tuple[str, str]:
    kind, given, context = details["type"], details["input"], details.get("ctx", {})
    error = context.get("error")
    if isinstance(error, Rejected):
        return str(error), error.fix
    message = f"{shown(given)} is not allowed"
    if kind == "literal_error":
        choices = re.findall(r"'([^']*)'", context["expected"])
        return message, f"allowed: {', '.join(choices)}.{nearest(given, choices)}"
    if kind == "string_pattern_mismatch":
        return message, f"allowed: {PATTERNS_IN_WORDS.get(context['pattern'], context['pattern'])}"
    if kind in _BOUNDS_IN_WORDS:
        bound, words = _BOUNDS_IN_WORDS[kind]
        return message, f"allowed: {words.format(context[bound])}"
    if kind in _TYPES_IN_WORDS:
        hint = ""
        if isinstance(given, str) and kind != "string_type" and plain_scalar(given) != given:
            hint = " (remove the quotes)"
        elif isinstance(given, bool | int | float) and kind == "string_type":
            hint = " (put it in quotes)"
        return message, f"allowed: {_TYPES_IN_WORDS[kind]}{hint}"
    return message, details["msg"]


def shown(given: object) -> str:
    """A value as the reader wrote it, cut to a readable length."""
    if given is None:
        return "an empty value"
    if isinstance(given, bool):
        return str(given).lower()
    text = f'"{given}"' if isinstance(given, str) else str(given)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _key_path(loc: KeyPath) -> KeyPath:
    """Pydantic's location less what it adds: `<tag>` of a union's member and `[key]` of a map's key."""
    return tuple(part for part in loc if not (isinstance(part, str) and part[:1] in ("<", "[")))


def _models_at(model: type[Model], keys: KeyPath) -> list[type[Model]]:
    """The models that can stand at a key path; those of the last key that led to any, below free-form maps."""
    candidates = [model]
    for key in keys:
        if isinstance(key, str):
            fields = [candidate.model_fields[key] for candidate in candidates if key in candidate.model_fields]
            candidates = [found for field in fields for found in models_in(field.annotation)] or candidates
    return candidates


def _fields_at(model: type[Model], keys: KeyPath) -> dict[str, str | None]:
    """The fields that can stand below a key path, with their documentation."""
    return {
        field.alias or name: field.description
        for candidate in _models_at(model, keys)
        for name, field in candidate.model_fields.items()
    }


def models_in(annotation: Any) -> Iterator[type[Model]]:
    """Every model that a field's type mentions."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def _meaning(model: type[Model], keys: KeyPath) -> str:
    meaning = _fields_at(model, keys[:-1]).get(str(keys[-1]))
    return f" ({meaning.splitlines()[0].rstrip('.')})" if meaning else ""
