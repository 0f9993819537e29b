"""Plays published changes against hookloop, and reads the findings from the receipts."""

import hashlib
import json
import re
import shlex
import shutil
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from packages import Registry
from play import COMPLETE, ITERATIONS, PROMISE
from processes import Machine, Missed, Ran
from published_catalogue import JAVASCRIPT_TOOLS, PYTHON_TOOLS, PublishedPackage
from published_changes import PublishedChange, Versions, changed_files
from toolchains import GO_SETTINGS, NPM_OPTIONS, NPM_SETTINGS, CaseMachine, remove

OUTCOMES = ("accepted", "asked", "blocked", "red", "error", "unusable")
BLOCKING = ("gone", "unchanged_red", "test_literal", "runner_mention")
ASKING = ("expectation_changed", "surroundings_changed", "unread_source")
# A suite that takes longer is not played.
SUITE_SECONDS = 120
# Lines of an output that give the reason of a red suite.
TELLING = re.compile(
    r"^E  |^error|Error:|cannot find|--- FAIL|not ok|^FAILED|no required module|panicked")
GATE = "tests"
CONFIGURATION = f"""\
version: 1
hooks:
  stop:
    - name: {GATE}
      command: {{command}}
      timeout: 10m
      base_tests: true
"""


@dataclass
class SuiteResult:
    """The result of the suite of a version, run by hand."""

    is_green: bool
    seconds: float
    evidence: str = ""


@dataclass
class PlayedChange:
    """The outcome of a change."""

    key: str
    language: str
    package: str
    kind: str
    before: str
    after: str
    title: str
    outcome: str = "error"
    reason: str = ""
    # The findings, grouped by kind and cause.
    findings: list[dict] = field(default_factory=list)
    # The checks that passed on the work.
    checks: int = 0
    # Whether the tests of the base ran.
    is_compared: bool = False
    seconds: float = 0
    hookloop_seconds: float = 0
    hookloop: str = ""

    def has(self, kinds: tuple[str, ...]) -> bool:
        return any(finding["kind"] in kinds for finding in self.findings)


class Suites:
    """The results of the suites by hand. A file keeps them for the next run."""

    def __init__(self, path: Path):
        self.path = path
        self.lock = threading.Lock()
        self.known = {row["key"]: SuiteResult(**row["result"]) for row in read_lines(path)}

    def add(self, key: str, result: SuiteResult) -> None:
        with self.lock:
            self.known[key] = result
            append_line(self.path, {"key": key, "result": asdict(result)})


class ChangePlayer:
    """Plays changes with one hookloop. The changes of one package are played one after another."""

    def __init__(self, cache: Path, versions: Versions, hookloop: Path | None,
                 keep: bool):
        self.cache = cache
        self.versions = versions
        self.hookloop = hookloop
        self.keep = keep
        self.suites = Suites(cache / "published-suites.jsonl")
        self.lock = threading.Lock()
        self.fingerprint = ""
        if hookloop:
            stat = hookloop.stat()
            self.fingerprint = f"{stat.st_size} bytes of {int(stat.st_mtime)}"

    def play(self, change: PublishedChange) -> PlayedChange:
        """Returns the outcome of a change. Its files stay if the outcome needs a look."""
        package, began = change.package, time.monotonic()
        played = PlayedChange(
            change.key, package.language, package.name, change.kind, change.before, change.after,
            change.title, hookloop=self.fingerprint)
        slug = f"{short(change.before)}-{short(change.after)}"
        work = self.cache / "published" / package.language / package.name / slug
        try:
            remove(work)
            work.mkdir(parents=True)
            machine = self.machine(package, work)
            if self.is_usable(change, machine, work, played):
                if self.hookloop:
                    self.run(change, machine, work, played)
                else:
                    played.outcome = "usable"
        except Missed as missed:
            played.reason = str(missed)
        if not self.keep and played.outcome in ("accepted", "unusable", "usable"):
            remove(work)
        played.seconds = round(time.monotonic() - began, 1)
        return played

    def machine(self, package: PublishedPackage, work: Path) -> CaseMachine:
        """Returns a machine with the tools of the language, and a home for each package."""
        home = self.cache / "homes" / package.language / package.name
        home.mkdir(parents=True, exist_ok=True)
        settings: dict[str, str | None] = {"PYTHONDONTWRITEBYTECODE": "1"}
        with self.lock:
            if package.language == "python":
                path = [self._python_tools() / "bin"]
            elif package.language == "javascript":
                modules = self._javascript_tools()
                # Node looks for packages in the directories above, also for files in a room.
                (work / "node_modules").symlink_to(modules)
                path = [modules / ".bin"]
                settings |= NPM_SETTINGS | {"NODE_PATH": str(modules)}
            elif package.language == "go":
                path = [self._go_tools()]
                settings |= GO_SETTINGS | {"GOFLAGS": "-mod=mod"}
                self._share_go_cache(home)
            else:
                path = []
                settings |= {"CARGO_NET_OFFLINE": "true", "CARGO_PROFILE_DEV_DEBUG": "0",
                             "CARGO_INCREMENTAL": "0"}
        return CaseMachine(home, work / "state", path, settings)

    def is_usable(self, change: PublishedChange, machine: CaseMachine, work: Path,
                  played: PlayedChange) -> bool:
        """Returns whether the suites of both versions are green. Writes the files of both."""
        for side, version in (("before", change.before), ("after", change.after)):
            self.versions.write(change.package, change.kind, version, work / side)
            result = self.suite(change, version, machine, work / side)
            if not result.is_green:
                played.outcome = "unusable"
                played.reason = f"the suite of the version {side} is red: {result.evidence}"
                return False
        written, deleted = changed_files(work / "before", work / "after")
        if not written and not deleted:
            played.outcome, played.reason = "unusable", "no file changed"
        return bool(written or deleted)

    def suite(self, change: PublishedChange, version: str, machine: CaseMachine,
              source: Path) -> SuiteResult:
        """Returns the result of the suite of a version, run on a copy of its files."""
        package = change.package
        key = f"{package.key} {change.kind} {version} {package.command}"
        known = self.suites.known.get(key)
        if package.language == "rust" and not (known and not known.is_green):
            # The downloads have the packages of both versions. Gates build offline.
            online = CaseMachine(machine.home, machine.state, machine.path,
                                 machine.settings | {"CARGO_NET_OFFLINE": "false"})
            copy = source.with_name("fetch")
            shutil.copytree(source, copy, symlinks=True)
            online.run(["cargo", "fetch", "--quiet"], copy)
            remove(copy)
        if known:
            return known
        copy = source.with_name("suite")
        shutil.copytree(source, copy, symlinks=True)
        began = time.monotonic()
        ran = machine.run(["timeout", str(5 * SUITE_SECONDS), "sh", "-c", package.command], copy)
        seconds = round(time.monotonic() - began, 1)
        remove(copy)
        result = SuiteResult(ran.code == 0, seconds, "" if ran.code == 0 else why_red(ran))
        # A build does not count, so compiled languages have more time.
        limit = SUITE_SECONDS * (3 if package.language in ("rust", "go") else 1)
        if result.is_green and seconds > limit:
            result = SuiteResult(False, seconds, f"takes longer than {limit} s")
        self.suites.add(key, result)
        return result

    def run(self, change: PublishedChange, machine: CaseMachine, work: Path,
            played: PlayedChange) -> None:
        """Runs a session whose only turn replaces the files by those of the new version."""
        root = work / "project"
        shutil.copytree(work / "before", root, symlinks=True)
        command = json.dumps(change.package.command)
        (root / "hookloop.yaml").write_text(CONFIGURATION.format(command=command))
        for command in (["git", "init", "--quiet", "--initial-branch", "main"],
                        ["git", "config", "user.name", "A Developer"],
                        ["git", "config", "user.email", "developer@example.org"],
                        ["git", "add", "--force", "."],
                        ["git", "commit", "--quiet", "--message", "Start"],
                        [str(self.hookloop), "hooks", "trust", "--yes"]):
            machine.must(command, root)
        script = work / "turns.json"
        script.write_text(json.dumps([turn_of(work)]))
        time.sleep(1.1)  # Python compares sources with their byte code by the second.
        began = time.monotonic()
        ran = machine.run(
            [str(self.hookloop), "run", f"Make the changes of {short(change.after)}", "--agent",
             f"scripted:{script}", "--plain", "--name", "change", "--max-iterations",
             str(ITERATIONS)], root)
        played.hookloop_seconds = round(time.monotonic() - began, 1)
        shown = machine.run([str(self.hookloop), "sessions", "show", "--json", "change"], root)
        try:
            judge(json.loads(shown.stdout), ran, played)
        except json.JSONDecodeError:
            played.reason = ran.evidence()

    def _python_tools(self) -> Path:
        venv = self.cache / "tools" / f"published-python-{digest(PYTHON_TOOLS)}"
        if not (venv / "bin" / "pytest").exists():
            remove(venv)
            self._downloads().must([sys.executable, "-m", "venv", str(venv)], self.cache)
            self._downloads().must(
                [str(venv / "bin" / "pip"), "install", "--quiet", *PYTHON_TOOLS], self.cache)
        return venv

    def _javascript_tools(self) -> Path:
        directory = self.cache / "tools" / f"published-javascript-{digest(JAVASCRIPT_TOOLS)}"
        if not (directory / "node_modules" / ".bin").exists():
            remove(directory)
            directory.mkdir(parents=True)
            (directory / "package.json").write_text('{"private": true}\n')
            self._downloads().must(["npm", "install", *NPM_OPTIONS, *JAVASCRIPT_TOOLS], directory)
        return directory / "node_modules"

    def _go_tools(self) -> Path:
        return Registry(self._downloads(), self.cache, None).go_toolchain()

    def _share_go_cache(self, home: Path) -> None:
        """Gives a new home the built standard library of another one. Rooms read it there."""
        own = home / ".cache" / "go-build"
        others = sorted(home.parent.glob("*/.cache/go-build"))
        if not own.exists() and others:
            own.parent.mkdir(parents=True, exist_ok=True)
            # Links are enough: the cache names files by their content.
            self._downloads().run(["cp", "-al", str(others[0]), str(own)], self.cache)

    def _downloads(self) -> Machine:
        return Machine(Path.home(), self.cache / "state")


def turn_of(work: Path) -> dict:
    """Returns the turn of a scripted agent. It writes and deletes the files of the change."""
    written, deleted = changed_files(work / "before", work / "after")
    for name in written:
        target = work / "change" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(work / "after" / name, target, follow_symlinks=False)
    lines = ["set -e"]
    if deleted:
        lines.append(f"rm -f -- {' '.join(map(shlex.quote, deleted))}")
        lines.append("find . -name .git -prune -o -type d -empty -exec rmdir -p "
                     "--ignore-fail-on-non-empty {} + || true")
    if written:
        # New times, as an editor leaves them: builds notice each changed file.
        lines.append(f"cp -R --remove-destination {shlex.quote(str(work / 'change'))}/. .")
    return {"run": "\n".join(lines), "say": PROMISE}


def judge(shown: dict, ran: Ran, played: PlayedChange) -> None:
    """Fills the outcome from the record of the session."""
    receipts = [receipt for receipt in shown.get("receipts", []) if receipt["gate"] == GATE]
    compared = [receipt["base_tests"] for receipt in receipts if receipt.get("base_tests")]
    tests = compared[-1] if compared else {}
    played.reason = shown.get("reason") or ""
    played.is_compared = bool(tests.get("tree"))
    played.checks = max((receipt.get("checks", {}).get("passed", 0) for receipt in receipts),
                        default=0)
    played.findings = grouped(tests.get("findings", []))
    is_complete = ran.code == COMPLETE and shown.get("proven")
    if played.has(BLOCKING):
        played.outcome = "blocked"
    elif played.has(ASKING):
        played.outcome = "asked"
    elif is_complete:
        played.outcome = "accepted"
    elif any(receipt["status"] != "passed" for receipt in receipts):
        played.outcome = "red"
    if is_complete and played.outcome != "accepted":
        played.outcome, played.reason = "error", "complete in spite of its findings"
    if played.outcome in ("red", "error"):
        played.reason = f"{played.reason}\n{ran.evidence()}"
    if played.outcome == "accepted" and not played.checks:
        played.outcome, played.reason = "unusable", "the suite has no checks"


def grouped(findings: list[dict]) -> list[dict]:
    """Returns the findings by kind and cause. One failed import can have many findings."""
    groups: dict[tuple[str, str], dict] = {}
    for finding in findings:
        kind, cause = finding["kind"], finding["cause"]
        group = groups.setdefault((kind, cause), {"kind": kind, "cause": cause, "checks": []})
        group["checks"].append(finding["check"])
        if len(group["checks"]) == 1:
            group |= {name: finding[name] for name in ("path", "before", "after")
                      if finding.get(name)}
    return list(groups.values())


def why_red(ran: Ran) -> str:
    """Returns the line of an output that says most about a red suite."""
    lines = [line.strip() for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    telling = [line for line in lines if TELLING.search(line)]
    return (telling or lines or [f"exit code {ran.code}"])[0][:200]


def digest(words: tuple[str, ...]) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:8]


def short(version: str) -> str:
    return version[:10] if re.fullmatch(r"[0-9a-f]{40}", version) else version


def read_lines(path: Path) -> list[dict]:
    """Returns the rows of a file with one JSON object in a line."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def append_line(path: Path, row: dict) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
