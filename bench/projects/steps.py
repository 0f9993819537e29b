"""The steps of the campaign for one project, and the bar of each step."""

import json
import re
import shutil
import statistics
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from configuration import CLAIM_FILE, HookCommand, hook_commands, with_last_claim_gate
from packages import Project, Registry, commit, install, make_repository, programs
from processes import Machine, Missed, Ran

PROMISE = "Done.\n<promise>COMPLETE</promise>"
NEEDS_HUMAN = 3
RATIO_MAX = 1.2
# A claim has costs that do not depend on the gate. They have a bar from this time of a gate on.
CLAIM_BAR_FROM_MS = 1000
CLAIMS_MAX = 50
# Characters of the output of a gate that are shown.
OUTPUT_MAX = 3000


@dataclass
class Cell:
    """A result in the table. `ok` is None for a step that did not run."""

    ok: bool | None
    text: str
    evidence: str = ""


@dataclass
class Sampling:
    """The number of claims to measure for each kind of room."""

    sessions: int
    claims: int
    has_bar: bool


@dataclass
class Costs:
    """Times of the second and later claims of sessions, by kind of room."""

    gate_ms: dict[str, list[int]] = field(default_factory=lambda: {"clean": [], "here": []})
    claim_ms: dict[str, list[int]] = field(default_factory=lambda: {"clean": [], "here": []})


class Campaign:
    """One project with its own home, state and checkouts."""

    def __init__(self, project: Project, registry: Registry, hookloop: Path, work: Path):
        self.project = project
        self.registry = registry
        self.hookloop = hookloop
        self.work = work
        self.root = work / project.name
        self.copy = work / "clone"
        self.machine = Machine(work / "home", work / "state")
        self.gates: list[HookCommand] = []
        # Names of the gates that run tests. Others format and lint.
        self.tests: list[str] = []
        self.setups: list[HookCommand] = []
        self.notes: list[str] = []

    # Commands of hookloop.

    def ask(self, *arguments: str) -> Ran:
        return self.machine.run([str(self.hookloop), *arguments], self.root)

    def tell(self, *arguments: str) -> str:
        return self.machine.must([str(self.hookloop), *arguments], self.root)

    def session(self, name: str, turns: list[dict], *options: str) -> Ran:
        """Runs a session whose agent plays the turns. Their file is outside of the project."""
        script = self.work / f"{name}.json"
        script.write_text(json.dumps(turns))
        return self.ask("run", "Improve the project", "--agent", f"scripted:{script}", "--plain",
                        "--name", name, *options)

    def shown(self, name: str) -> dict:
        return json.loads(self.tell("sessions", "show", "--json", name))

    def events(self, name: str, *types: str) -> list[dict]:
        wanted = [word for kind in types for word in ("--type", kind)]
        return [json.loads(line) for line in
                self.tell("log", "--json", "--session", name, *wanted).splitlines()]

    # Step 1: a repository, as a developer has it.

    def prepare(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        for directory in (self.root, self.machine.home, self.machine.state):
            directory.mkdir(parents=True)
        make_repository(self.project, self.registry, self.machine, self.root)
        venv = self.machine.home / "venvs" / self.project.name
        install(self.project, self.machine, self.root, venv)
        self.machine.path = programs(self.project, self.registry, self.root, venv)
        self.must_be_unchanged("the installation of packages")

    def must_be_unchanged(self, cause: str) -> None:
        status = self.machine.must(["git", "status", "--porcelain"], self.root)
        if status:
            raise Missed(f"{cause} changed files of the project:\n{status}")

    # Step 2: `hookloop init`.

    def init(self) -> tuple[Cell, Cell, Cell]:
        """Returns the cells of the gates, the setup and the room."""
        report = json.loads(self.tell("init", "--yes", "--json"))
        tests = [gate for gate in report["gates"] if gate["type"] == "tests" and gate["written"]]
        self.tests = [gate["name"] for gate in tests]
        trials = ", ".join(f"`{gate['command']}` {gate['trial']}" for gate in report["gates"])
        text = (self.root / "hookloop.yaml").read_text()
        self.gates = hook_commands(text, "stop")
        self.setups = hook_commands(text, "setup")
        left = self.machine.must(["git", "status", "--porcelain"], self.root).splitlines()
        self.notes += [f"left by init: {line[3:]}" for line in left if line[3:] != "hookloop.yaml"]
        self.notes += [f"warning of init: {warning}" for warning in report["warnings"]]
        wanted = len(self.project.packages)
        is_ready = len(tests) == wanted and all(gate["trial"] == "passed" for gate in tests)
        evidence = "" if is_ready else f"{json.dumps(report, indent=1)}\n{text}"
        rooms = re.findall(r"^ *(?:- )?room: *(.+)$", text, re.MULTILINE) or ["default"]
        setup = ", ".join(f"`{hook.command}`" for hook in self.setups) or "–"
        if not is_ready:
            return Cell(False, trials or "no gate", evidence), Cell(True, setup), Cell(None, "–")
        commit(self.machine, self.root, "Add gates", "hookloop.yaml")
        return Cell(True, trials), Cell(True, setup), Cell("here" not in rooms, ", ".join(rooms))

    # Step 3: the first session with gates.

    def first_run(self) -> Cell:
        directory, package = self.project.edited
        document = self.root / directory / package.document
        turn = {"write": {self.relative(document): document.read_text() + "\nA new line.\n"},
                "say": PROMISE}
        ran = self.session("first", [turn], "--gate-retries", "0")
        if ran.code != 0:
            raise Missed(self.why(ran, "first"))
        texts, wrong = [], []
        for gate, receipt in self.receipts("first").items():
            room, passed = receipt["room"], receipt.get("checks", {}).get("passed", 0)
            if room["kind"] != "clean":
                wrong.append(f"the receipt of {gate} is not of a clean room: {json.dumps(room)}")
            if gate in self.tests:
                texts.append(f"{passed} checks" + ("" if room["boxed"] else ", no box"))
                wrong += [] if passed else [f"no checks are counted: {json.dumps(receipt)}"]
        return Cell(not wrong, " + ".join(texts), "\n".join(wrong))

    def receipts(self, name: str) -> dict[str, dict]:
        """Returns the latest receipt of each gate, all of which have to be green."""
        found = {receipt["gate"]: receipt for receipt in self.shown(name)["receipts"]
                 if receipt["point"] == "stop" and receipt["status"] == "passed"}
        lacking = [gate.name for gate in self.gates if gate.name not in found]
        if lacking:
            raise Missed(f"no green receipt of {', '.join(lacking)}")
        return found

    def relative(self, path: Path) -> str:
        return str(path.relative_to(self.root))

    def why(self, ran: Ran, name: str) -> str:
        """Returns the output of a session, and the output of its gates."""
        outputs = []
        for event in self.events(name, "hook_ran"):
            data = event["data"]
            kept = Path(data["artifact"]) if data.get("artifact") else None
            files = [] if kept is None else sorted(kept.glob("*")) if kept.is_dir() else [kept]
            text = "\n".join(path.read_text(errors="replace") for path in files if path.is_file())
            title = f"-- {data['point']} {data['hook_name']}: {data['status']}"
            outputs.append(f"{title}\n{text[-OUTPUT_MAX:]}")
        return "\n".join([ran.evidence(), *outputs])

    # Step 4: the receipts hold in a fresh clone.

    def clone_agrees(self) -> Cell:
        made = commit(self.machine, self.root, "Take the work")
        tree = self.machine.must(["git", "rev-parse", f"{made}^{{tree}}"], self.root).strip()
        for gate, receipt in self.receipts("first").items():
            if receipt["tree"] != tree:
                changed = self.machine.run(["git", "show", "--stat", "HEAD"], self.root)
                raise Missed(f"the receipt of {gate} is about tree {receipt['tree']}, and the "
                             f"working directory has tree {tree}\n{changed.evidence()}")
        failed = self.by_hand(made)
        if failed:
            raise Missed(f"passes in the room, and fails in a clone:\n{failed.evidence()}")
        return Cell(True, "yes")

    def by_hand(self, made: str) -> Ran | None:
        """Runs setup and gates in a fresh clone. Returns the first gate that fails there."""
        shutil.rmtree(self.copy, ignore_errors=True)
        plain = Machine(self.machine.home, self.machine.state)
        plain.must(["git", "clone", "--quiet", str(self.root), str(self.copy)], self.work)
        plain.must(["git", "checkout", "--quiet", "--detach", made], self.copy)
        # Packages in the checkout come from the setup, or without one from a developer.
        venv = self.machine.home / "venvs" / "clone"
        if self.project.outside or not self.setups:
            install(self.project, plain, self.copy, venv)
        plain.path = programs(self.project, self.registry, self.copy, venv)
        for hook in self.setups:
            plain.must(["sh", "-c", hook.command], self.copy / hook.cwd)
        for gate in self.gates:
            ran = plain.run(["sh", "-c", gate.command], self.copy / gate.cwd)
            if ran.code != 0:
                return ran
        return None

    # Step 5: a broken change is refused.

    def broken_refused(self) -> Cell:
        good = self.machine.must(["git", "rev-parse", "HEAD"], self.root).strip()
        directory, package = self.project.edited
        source = self.root / directory / package.source
        text = source.read_text()
        if package.right not in text:
            raise Missed(f"{package.source} does not have the text {package.right!r}")
        turn = {"write": {self.relative(source): text.replace(package.right, package.wrong)},
                "say": PROMISE}
        ran = self.session("broken", [turn], "--gate-retries", "0")
        shown = self.shown("broken")
        if ran.code != NEEDS_HUMAN or shown["proven"]:
            raise Missed(f"a broken change was not refused:\n{self.why(ran, 'broken')}")
        if not (shown["reason"] or "").startswith("gates still fail"):
            raise Missed(f"refused for another reason than its tests:\n{self.why(ran, 'broken')}")
        green = {receipt["gate"] for receipt in shown["receipts"] if receipt["status"] == "passed"}
        if all(gate.name in green for gate in self.gates):
            raise Missed(f"a broken change has a green receipt of each gate: {sorted(green)}")
        made = commit(self.machine, self.root, "Break")
        self.machine.must(["git", "branch", "--force", "broken"], self.root)
        self.machine.must(["git", "reset", "--quiet", "--hard", good], self.root)
        failed = self.by_hand(made)
        if not failed:
            raise Missed("a broken change fails in the room, and passes in a clone")
        return Cell(True, "yes")

    # Step 6: the cost of a room.

    def costs(self, sampling: Sampling) -> tuple[Cell, Cell, Costs]:
        """Measures sessions in a room and in the working directory in turn.

        Each session has several claims. A further gate refuses all of them but the last one, so
        that the room of the session is used again. The first claim of a session builds and installs
        and does not count. Each claim changes a comment in a source file, so no result is reused.
        """
        config = self.root / "hookloop.yaml"
        original = config.read_text()
        costs = Costs()
        for number in range(1, sampling.sessions + 1):
            for kind in ("clean", "here"):
                self.measure(f"{kind}-{number}", kind, original, sampling.claims, costs)
        config.write_text(original)
        gate, claim = (
            (statistics.median(times["clean"]), statistics.median(times["here"]))
            for times in (costs.gate_ms, costs.claim_ms))
        has_claim_bar = sampling.has_bar and gate[1] >= CLAIM_BAR_FROM_MS
        return ratio_cell(*gate, sampling.has_bar), ratio_cell(*claim, has_claim_bar), costs

    def measure(self, name: str, kind: str, config: str, claims: int, costs: Costs) -> None:
        directory, package = self.project.edited
        source = self.root / directory / package.source
        path = self.relative(source)
        text = source.read_text().split(f"\n{package.comment} claim:")[0]
        (self.root / "hookloop.yaml").write_text(with_last_claim_gate(config, kind))
        self.tell("hooks", "trust", "--yes")
        numbers = [*range(claims), "last"]
        turns = [{"write": {path: f"{text}\n{package.comment} claim: {number} of {name}\n",
                            CLAIM_FILE: f"{number} of {name}\n"},
                  "say": PROMISE} for number in numbers]
        limit = str(CLAIMS_MAX)
        ran = self.session(name, turns, "--gate-retries", limit, "--max-no-progress", limit)
        # Without a room, no receipt can be about files that each run of the gates changes.
        is_refused = self.project.writes and kind == "here"
        if ran.code != (NEEDS_HUMAN if is_refused else 0):
            raise Missed(self.why(ran, name))
        measured = claim_times(self.events(name), set(self.tests))
        if len(measured) != len(turns):
            raise Missed(f"{len(turns)} claims, {len(measured)} measured in session {name}")
        for receipt in self.receipts(name).values():
            if receipt["room"]["kind"] != kind or receipt.get("reused_from"):
                raise Missed(f"not measured in a room of kind {kind}: {json.dumps(receipt)}")
        # The last claim runs the gates again if they changed files.
        counted = measured[1:-1] if self.project.writes else measured[1:]
        costs.gate_ms[kind] += [gate for gate, _ in counted]
        costs.claim_ms[kind] += [claim for _, claim in counted]


def claim_times(events: list[dict], tests: set[str]) -> list[tuple[int, int]]:
    """Returns for each claim the time of its tests, and the time until all gates are evaluated."""
    found: list[tuple[int, int]] = []
    began, gate_ms, ran = None, 0, set()
    for event in events:
        data = event["data"]
        if event["type"] == "turn_ended":
            began, gate_ms, ran = timestamp(event), 0, set()
        elif event["type"] == "hook_ran" and data["point"] == "stop" and data["hook_name"] in tests:
            gate_ms += data["duration_ms"]
            ran.add(data["hook_name"])
        elif event["type"] == "gates_evaluated" and began is not None and ran == tests:
            found.append((gate_ms, timestamp(event) - began))
            began = None
    return found


def timestamp(event: dict) -> int:
    """Returns the time of an event in milliseconds."""
    return round(datetime.fromisoformat(event["timestamp"]).timestamp() * 1000)


def ratio_cell(room: float, here: float, has_bar: bool) -> Cell:
    ratio = room / max(here, 1)
    text = f"{ratio:.2f} ({room / 1000:.2f} s / {here / 1000:.2f} s)"
    return Cell(not has_bar or ratio <= RATIO_MAX, text if has_bar else f"{text}, no bar")
