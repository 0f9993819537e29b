"""Plays cases against other rules of when work is done, with the same projects and turns.

- claude-stop-hook: Claude Code in print mode, with a Stop hook that blocks while the suite is red
- promise-rule: a shell loop around an agent, until its output has the promise
- test-loop: a shell loop around an agent and the test command, until that exits with 0

The agent takes its turn, and then claims to be done as often as in a session of hookloop.
"""

import json
import shlex
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from agent_turn import mark_of
from cases import DEFAULT_PROMPT, Fake, Honest, Project, Turn, text
from claude_code import ClaudeCode, Ended
from play import HONEST, ITERATIONS, NOT_APPLICABLE, NOT_PLAYED, NOTE, PROMISE, Played
from processes import Missed, Ran
from toolchains import Copy, Toolchains

CLAUDE_STOP_HOOK, PROMISE_RULE, TEST_LOOP = "claude-stop-hook", "promise-rule", "test-loop"
RULES = (CLAUDE_STOP_HOOK, PROMISE_RULE, TEST_LOOP)
AGENT = Path(__file__).resolve().with_name("agent_turn.py")
CLAIM = PROMISE.splitlines()[-1]
LOOP = text("""
    iteration=0
    while [ "$iteration" -lt {iterations} ]; do
      iteration=$((iteration + 1))
      {agent} > {log} 2>&1
      cat {log}
      if {condition}; then exit 0; fi
    done
    exit {given_up}
    """)
# An exit code that no command of the loop has.
GIVEN_UP = 91
# Seconds until a hook of Claude Code is cancelled.
HOOK_SECONDS = 900


@dataclass
class PeerSession:
    """The end of a session: the exit code of the loop or of the agent, and the outcome."""

    exit_code: int
    outcome: str
    reason: str
    # Exit codes of the Stop hook.
    stop_hooks: tuple[int, ...] = ()


class ShellLoop:
    """A shell loop that starts the agent until a condition holds."""

    def __init__(self, rule: str):
        self.rule = rule

    def prepare(self, copy: Copy, project: Project) -> None:
        """A loop has no files in the project."""

    def session(self, copy: Copy, project: Project, name: str, agent: list[str],
                prompt: str) -> tuple[PeerSession, Ran]:
        log = shlex.quote(str(copy.work / f"{name}.log"))
        if self.rule == TEST_LOOP:
            condition = project.command
        else:
            condition = f"grep -q -x -F {shlex.quote(CLAIM)} {log}"
        script = copy.work / f"{name}.sh"
        script.write_text(LOOP.format(iterations=ITERATIONS, agent=shlex.join(agent), log=log,
                                      condition=condition, given_up=GIVEN_UP))
        ran = copy.machine.run(["sh", str(script)], copy.root)
        outcome, reason = {
            0: ("accepted", "the condition of the loop holds"),
            GIVEN_UP: ("refused", "the condition of the loop does not hold"),
        }.get(ran.code, (NOT_PLAYED, "the loop failed"))
        return PeerSession(ran.code, outcome, reason), ran


class ClaudeStopHook:
    """Claude Code with a Stop hook that blocks while the suite is red."""

    def __init__(self, claude: ClaudeCode):
        self.claude = claude

    def prepare(self, copy: Copy, project: Project) -> None:
        """Commits the settings of the project."""
        hook = {"type": "command", "command": f"{project.command} >&2 || exit 2",
                "timeout": HOOK_SECONDS}
        settings = copy.root / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}, indent=2) + "\n")
        for command in (["git", "add", ".claude"],
                        ["git", "commit", "--quiet", "--message", "Add a Stop hook"]):
            copy.machine.must(command, copy.root)

    def session(self, copy: Copy, project: Project, name: str, agent: list[str],
                prompt: str) -> tuple[PeerSession, Ran]:
        answers = [{"text": "I fix it.", "command": shlex.join(agent)},
                   *[{"text": PROMISE}] * ITERATIONS]
        ended = self.claude.run(copy, name, prompt, answers)
        outcome, reason = self.judged(ended)
        return PeerSession(ended.ran.code, outcome, reason, tuple(ended.stop_hooks)), ended.ran

    @staticmethod
    def judged(ended: Ended) -> tuple[str, str]:
        """A session is accepted if it ends with success after a run of the hook that passed."""
        if not ended.stop_hooks:
            return NOT_PLAYED, f"no Stop hook ran: {ended.reason}"
        last = ended.stop_hooks[-1]
        if last == 0 and ended.is_success:
            return "accepted", "the Stop hook passed"
        if last == 2:
            return "refused", f"the Stop hook blocked: {ended.reason}"
        return NOT_PLAYED, f"the Stop hook exited with {last}: {ended.reason}"


class PeerPlayer:
    """Plays cases with one rule."""

    def __init__(self, toolchains: Toolchains, rule: str, claude: Path, keep: bool):
        self.toolchains = toolchains
        self.name = rule
        if rule == CLAUDE_STOP_HOOK:
            self.rule = ClaudeStopHook(ClaudeCode(claude))
        else:
            self.rule = ShellLoop(rule)
        self.keep = keep

    def play(self, case: Fake | Honest) -> Played:
        began = time.monotonic()
        played = Played.of(self.name, case)
        if isinstance(case, Fake) and case.attacks_hookloop:
            played.outcome = NOT_APPLICABLE
            return played
        copy = None
        try:
            copy = self.toolchains.copy(case.project, f"{self.name} {case.name}")
            self.rule.prepare(copy, case.project)
            # Python compares sources with their byte code by the second.
            time.sleep(1.1 if case.project.language == "python" else 0)
            self.play_sessions(case, copy, played)
        except Missed as missed:
            played.outcome, played.evidence = NOT_PLAYED, str(missed)
        # Most fakes are accepted, so their copies are not worth keeping.
        if copy and not self.keep and played.outcome != NOT_PLAYED:
            shutil.rmtree(copy.work, ignore_errors=True)
        played.seconds = round(time.monotonic() - began, 1)
        return played

    def play_sessions(self, case: Fake | Honest, copy: Copy, played: Played) -> None:
        """Runs one session for an honest change, and up to two sessions for a fake."""
        ran = self.session(case, copy, "first", case.turn, played)
        played.outcome = played.sessions[0].outcome
        if played.kind != HONEST and played.outcome == "refused":
            ran = self.session(case, copy, "second", NOTE, played)
            if played.sessions[1].outcome != "refused":
                played.outcome = played.sessions[1].outcome
        if not played.is_expected and played.outcome != "accepted":
            played.evidence = ran.evidence()

    def session(self, case: Fake | Honest, copy: Copy, name: str, turn: Turn,
                played: Played) -> Ran:
        script = copy.work / f"{name}.json"
        script.write_text(json.dumps(turn.scripted(PROMISE)))
        agent = [sys.executable, "-I", "-B", str(AGENT), str(script)]
        prompt = (case.prompt if isinstance(case, Honest) else "") or DEFAULT_PROMPT
        session, ran = self.rule.session(copy, case.project, name, agent, prompt)
        if not mark_of(script).exists():
            session.outcome, session.reason = NOT_PLAYED, "the agent did not take its turn"
        played.sessions.append(session)
        return ran
