"""Runs Claude Code in print mode against a scripted model, without a network."""

import functools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from processes import NETWORK, Ran
from toolchains import Copy

AGENTS = Path(os.environ.get("HOOKLOOP_AGENTS", Path.home() / ".cache" / "hookloop-agents"))
DEFAULT_PROGRAM = AGENTS / "node_modules" / ".bin" / "claude"
MODEL = Path(__file__).resolve().with_name("scripted_model.py")
SETTINGS = {
    "ANTHROPIC_API_KEY": "scripted", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
}
# A network namespace with only the loopback device.
OFFLINE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


@dataclass
class Ended:
    """The end of a session of Claude Code."""

    ran: Ran
    # Exit codes of the Stop hook, one for each run.
    stop_hooks: list[int]
    is_success: bool
    reason: str


@dataclass(frozen=True)
class ClaudeCode:
    """A Claude Code that may run commands and edit files."""

    program: Path

    def run(self, copy: Copy, name: str, prompt: str, answers: list[dict]) -> Ended:
        """Runs one session, in which the model gives the answers and no more."""
        script, log = copy.work / f"{name}-model.json", copy.work / f"{name}-model.log"
        script.write_text(json.dumps(answers))
        machine = replace(copy.machine, settings=copy.machine.settings | SETTINGS | {
            "CLAUDE_CONFIG_DIR": str(copy.work / "claude"), **dict.fromkeys(PROXIES)})
        ran = machine.run([
            *offline(), sys.executable, "-I", "-B", str(MODEL), str(script), str(log),
            str(self.program), "--print", prompt, "--output-format", "stream-json", "--verbose",
            "--include-hook-events", "--allowedTools", "Bash,Write,Edit",
            "--max-turns", str(len(answers))], copy.root)
        return ended(ran)


# The model is on loopback.
PROXIES = [name for name in NETWORK if name.lower().endswith("_proxy")]


@functools.cache
def offline() -> list[str]:
    """Returns the command that takes the network away, if the user may do that."""
    program = shutil.which(OFFLINE[0])
    if not program or subprocess.run([*OFFLINE, "true"], capture_output=True).returncode != 0:
        print("Claude Code keeps the network: `unshare --net` fails", file=sys.stderr)
        return []
    return [program, *OFFLINE[1:]]


def ended(ran: Ran) -> Ended:
    """Reads the end of a session from the events of Claude Code."""
    events = []
    for line in ran.stdout.splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    hooks = [event.get("exit_code") for event in events
             if event.get("subtype") == "hook_response" and event.get("hook_event") == "Stop"]
    last = events[-1] if events else {}
    is_success = (ran.code == 0 and last.get("type") == "result"
                  and last.get("subtype") == "success" and not last.get("is_error"))
    reason = last.get("terminal_reason") or last.get("subtype") or "no result"
    return Ended(ran, hooks, is_success, reason)
