"""Names in a stack file that must exist elsewhere: on the platform, in training/, in the same file.

These work on the values as read, before validation, so that one report holds the misspelled key and the misspelled
node group alike.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from infra.config.platform import PlatformConfig
from infra.config.stackfile import KeyPath, StackFile, dotted, value_at
from infra.config.validation import shown
from infra.findings import Finding, Where, listed, nearest
from infra.nodes import nodes_of
from workloads.flags import arguments, derived_flags
from workloads.image_sources import image_names
from workloads.images import is_reference
from workloads.programs import flags_of, program_modules

DEFAULT_QUEUE = "default"  # Volcano makes it by itself

# Lists of the platform that share a space of names.
_NAMESPACES: dict[str, list[KeyPath]] = {
    "node group or pool": [("node_groups",), ("node_pools",)],
    "volume": [("storage", "efs"), ("storage", "fsx"), ("storage", "buckets")],
    "priority": [("priorities",)],
    "team": [("teams",)],
    "queue": [("operators", "volcano", "queues")],
}


def experiment_references(stack_file: StackFile, platform: PlatformConfig) -> Iterator[Finding]:
    """Everything that an experiment names and its platform or training/ lacks."""
    body = stack_file.body
    if not isinstance(body, Mapping):
        return
    for key, (what, names) in _names_of(platform).items():
        yield from _unknown(stack_file, (key,), body.get(key), what, names)
    for index, volume in enumerate(_maps(body.get("volumes"))):
        keys = ("volumes", index, "name")
        yield from _unknown(stack_file, keys, volume.get("name"), "volume of the platform", platform.storage.names)
    yield from _image(stack_file, body.get("image"), platform)
    yield from _program(stack_file, body)


def platform_references(stack_file: StackFile) -> Iterator[Finding]:
    """Names that a platform gives twice, or uses without declaring them."""
    for what, lists in _NAMESPACES.items():
        seen: set[str] = set()
        for keys, name in _named(stack_file, lists):
            if name in seen:
                yield _finding(stack_file, keys, f'"{name}" is the name of another {what} already', "rename one")
            seen.add(name)
    queues = [name for _, name in _named(stack_file, _NAMESPACES["queue"])] + [DEFAULT_QUEUE]
    for index, team in enumerate(_maps(value_at(stack_file.body, ("teams",)))):
        yield from _unknown(stack_file, ("teams", index, "queue"), team.get("queue"), "Volcano queue", queues)
    for index, image in enumerate(_list(value_at(stack_file.body, ("images", "build")))):
        yield from _unknown(stack_file, ("images", "build", index), image, "image of training/images/", image_names())


def _names_of(platform: PlatformConfig) -> dict[str, tuple[str, list[str]]]:
    """Key of an experiment → what it names, and the names there are."""
    volcano = platform.operators.volcano
    return {
        "node_group": ("node group or pool of the platform", sorted(nodes_of(platform))),
        "team": ("team of the platform", [team.name for team in platform.teams]),
        "priority": ("priority of the platform", [priority.name for priority in platform.priorities]),
        "queue": (
            "Volcano queue of the platform",
            sorted({DEFAULT_QUEUE, *(queue.name for queue in volcano.queues)} if volcano else []),
        ),
    }


def _image(stack_file: StackFile, image: object, platform: PlatformConfig) -> Iterator[Finding]:
    """A bare word names an image that the platform builds; anything with a slash, colon or @ is a full reference."""
    if isinstance(image, str) and not is_reference(image):
        yield from _unknown(stack_file, ("image",), image, "image that the platform builds", platform.images.build)


def _program(stack_file: StackFile, body: Mapping[str, Any]) -> Iterator[Finding]:
    program = body.get("program")
    if isinstance(program, Mapping):
        if body.get("args"):
            message = "`args` beside `command`, which is the entire command"
            yield _finding(stack_file, ("args",), message, "move the arguments into `program.command`", "TY007")
        return
    yield from _unknown(stack_file, ("program",), program, "program of training/", program_modules())
    if program not in program_modules():
        return
    derived = derived_flags(body)
    try:
        flags = flags_of(str(program))
    except SyntaxError as error:
        where = Where(file=error.filename or str(program), line=error.lineno)
        yield Finding(rule="TY015", severity="error", where=where, message=error.msg, fix="correct the program")
        return
    for name, keys in derived.items():
        if name not in flags:
            fix = f"drop `{dotted(keys)}`, or use a program that has the flag"
            yield _finding(stack_file, keys, f"{program} has no --{name}", fix, "TY007")
    args = body.get("args")
    for raw_name, value in args.items() if isinstance(args, Mapping) else ():
        name, keys = str(raw_name).replace("_", "-"), ("args", str(raw_name))
        if name in derived:
            message = f"--{name} is set by `{dotted(derived[name])}` already"
            yield _finding(stack_file, keys, message, "keep one of the two", "TY007")
        elif name not in flags:
            fix = f"its flags: {', '.join(sorted(flags))}.{nearest(name, flags)}"
            yield _finding(stack_file, keys, f"{program} has no flag --{name}", fix, "TY007")
        elif arguments({name: value}) and not flags[name].accepts(value):
            message = f"{shown(value)} is no value of {program}'s --{name}"
            yield _finding(stack_file, keys, message, f"allowed: {flags[name].allowed}", "TY007")
    for name, flag in flags.items():
        if flag.required and name not in derived and name not in {str(key).replace("_", "-") for key in args or ()}:
            yield _finding(stack_file, ("args",), f"{program} needs --{name}", f"add `args.{name}`", "TY007")


def _unknown(stack_file: StackFile, keys: KeyPath, given: object, what: str, names: Iterable[str]) -> Iterator[Finding]:
    names = list(names)
    if isinstance(given, str) and given not in names:
        message = f"{shown(given)} is no {what}"
        yield _finding(stack_file, keys, message, f"allowed: {listed(names)}.{nearest(given, names)}")


def _finding(stack_file: StackFile, keys: KeyPath, message: str, fix: str, rule: str = "TY006") -> Finding:
    return Finding(rule=rule, severity="error", where=stack_file.where(keys), message=message, fix=fix)


def _named(stack_file: StackFile, lists: Iterable[KeyPath]) -> Iterator[tuple[KeyPath, str]]:
    for path in lists:
        for index, item in enumerate(_maps(value_at(stack_file.body, path))):
            if isinstance(item.get("name"), str):
                yield (*path, index, "name"), item["name"]


def _maps(value: object) -> list[Mapping[str, Any]]:
    return [item if isinstance(item, Mapping) else {} for item in _list(value)]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
