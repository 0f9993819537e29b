"""Reads and changes `hookloop.yaml` in the form in which `hookloop init` writes it."""

import json
import re
from dataclasses import dataclass

from processes import Missed

LAST_CLAIM_GATE = "last-claim"
# The file that names the claim.
CLAIM_FILE = "claim.txt"


@dataclass(frozen=True)
class HookCommand:
    """A command of `hookloop.yaml`, and the directory in which it runs."""

    name: str
    command: str
    cwd: str = "."


def hook_commands(text: str, point: str) -> list[HookCommand]:
    """Returns the hooks of a point, in the order of the file."""
    section = re.search(rf"^  {point}:\n((?:(?:    .*)?\n)*)", text, re.MULTILINE)
    hooks = []
    for item in re.split(r"^    - ", section.group(1) if section else "", flags=re.MULTILINE)[1:]:
        found = dict(re.findall(r"^ *(name|command|cwd): *(.+?) *$", item, re.MULTILINE))
        if "name" not in found or "command" not in found:
            raise Missed(f"hookloop.yaml has a hook at {point} in an unknown form:\n{item}")
        hooks.append(HookCommand(**{key: scalar(value) for key, value in found.items()}))
    return hooks


def scalar(value: str) -> str:
    if value[0] in "|>[{":
        raise Missed(f"hookloop.yaml has a value in an unknown form: {value}")
    if value[0] == '"':
        return json.loads(value)
    if value[0] == "'":
        return value[1:-1].replace("''", "'")
    return value


def with_last_claim_gate(text: str, kind: str) -> str:
    """Returns the configuration with all gates in this kind of room, and with a further gate.

    The gate runs after the others and passes if the file names the last claim.
    """
    gate = (f"    - name: {LAST_CLAIM_GATE}\n      command: grep -q last {CLAIM_FILE}\n"
            "      timeout: 1m\n      priority: 200\n")
    text = re.sub(r"^room: .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^version: 1$", f"version: 1\nroom: {kind}", text, count=1, flags=re.MULTILINE)
    changed = re.sub(r"^  stop:\n", lambda found: found.group(0) + gate, text, count=1,
                     flags=re.MULTILINE)
    if gate not in changed or f"\nroom: {kind}\n" not in changed:
        raise Missed(f"hookloop.yaml is in an unknown form:\n{text}")
    return changed
