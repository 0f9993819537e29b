"""Makes copies of the projects, each with a home of its own and the tools of its language.

An agent may write to all of a copy: the project, its packages, the home and the programs on PATH
there. Downloads stay in the cache directory, and no case changes them.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

from cases import Project, Turn
from packages import RUNNER, Registry
from processes import Machine, Missed, base_path

GO_SETTINGS = {"GOPROXY": "off", "GOTOOLCHAIN": "local"}
NPM_SETTINGS = {"npm_config_update_notifier": "false", "npm_config_fund": "false",
                "npm_config_audit": "false", "NO_COLOR": "1"}
SETTINGS = {"go": GO_SETTINGS, "javascript": NPM_SETTINGS}
NPM_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund")
TOOLS = {"python": ("git",), "javascript": ("git", "node", "npm"),
         "rust": ("git", "cargo", "rustc", "cargo-nextest"), "go": ("git",)}
LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
START = '''\
#!{python}
import sys
from pytest import console_main
sys.exit(console_main())
'''


@dataclass
class CaseMachine(Machine):
    """A machine with the settings of a language."""

    settings: dict[str, str | None] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Returns the variables. Settings that are None remove one."""
        merged = super().environment() | self.settings
        return {name: value for name, value in merged.items() if value is not None}


@dataclass
class Copy:
    """A copy of a project, and the machine on which its agent and its gates run."""

    work: Path
    root: Path
    machine: CaseMachine

    def play(self, turn: Turn) -> None:
        """Does by hand the actions of a turn, in the order of a scripted agent."""
        for name, content in turn.write.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for name in turn.delete:
            (self.root / name).unlink()
        if turn.run:
            self.machine.must(["sh", "-c", turn.run], self.root)


class Toolchains:
    """Prepares each project once in the cache directory, and copies it for each case."""

    def __init__(self, cache: Path):
        self.cache = cache
        self.downloads = Machine(Path.home(), cache / "state")
        self.lock = threading.Lock()

    def copy(self, project: Project, name: str) -> Copy:
        """Returns a new copy of the committed project, below `runs` in the cache directory."""
        with self.lock:
            prepared = self._prepared(project)
            programs = self._programs(project.language)
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        work = self.cache / "runs" / project.language / slug
        remove(work)
        machine = CaseMachine(work / "home", work / "state", settings=dict(
            SETTINGS.get(project.language, {})))
        shutil.copytree(prepared, work, symlinks=True)
        machine.state.mkdir()
        machine.path = [machine.home / ".local" / "bin", work / "bin", *programs]
        machine.path[0].mkdir(parents=True, exist_ok=True)
        (work / "bin").mkdir()
        if project.language == "python":
            venv = machine.home / "venv"
            make_venv(venv, self._pytest())
            machine.path.insert(2, venv / "bin")
        return Copy(work, work / project.name, machine)

    def probe(self, project: Project, copy: Copy) -> str:
        """Runs the probe of the project without its test runner. Returns the output."""
        probe = copy.work / "probe"
        probe.mkdir(exist_ok=True)
        plain = CaseMachine(copy.work / "probe-home", copy.work / "probe-state",
                            self._programs(project.language),
                            copy.machine.settings | {"CI": None})
        plain.home.mkdir(exist_ok=True)
        ran = getattr(self, f"_probe_{project.language}")(project, plain, copy.root, probe)
        return ran.evidence()

    def _prepared(self, project: Project) -> Path:
        """Returns a directory with the committed project and its home, made once."""
        content = json.dumps([project.files, project.executable, project.gates, project.language])
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        target = self.cache / "prepared" / f"{project.language}-{project.name}-{digest}"
        if target.exists():
            return target
        work = self.cache / "preparing"
        remove(work)
        root = work / project.name
        (work / "home").mkdir(parents=True)
        for name, content in project.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            path.chmod(0o755 if name in project.executable else 0o644)
        machine = CaseMachine(work / "home", work / "state", self._programs(project.language),
                              SETTINGS.get(project.language, {}))
        if project.language == "javascript":
            machine.must(["npm", "install", *NPM_OPTIONS], root)
        if project.language == "rust":
            machine.must(["cargo", "generate-lockfile", "--quiet"], root)
        if project.language == "go":
            # The standard library is built once, into the home.
            machine.run(["go", "test", "./..."], root)
        for command in (["git", "init", "--quiet", "--initial-branch", "main"],
                        ["git", "config", "user.name", "A Developer"],
                        ["git", "config", "user.email", "developer@example.org"],
                        ["git", "add", "."], ["git", "commit", "--quiet", "--message", "Start"]):
            machine.must(command, root)
        shutil.rmtree(work / "state", ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        work.rename(target)
        return target

    def _programs(self, language: str) -> list[Path]:
        if language == "go":
            return [Registry(self.downloads, self.cache, None).go_toolchain()]
        if language == "rust" and (nextest := shutil.which("cargo-nextest")):
            return [Path(nextest).resolve().parent]
        return []

    def _pytest(self) -> Path:
        """Returns the directory of pytest and the packages that it needs, installed once."""
        target = self.cache / "tools" / RUNNER
        with self.lock:
            if not target.exists():
                self.downloads.must(
                    [sys.executable, "-m", "pip", "install", "--quiet", "--target",
                     str(target.with_suffix(".new")), RUNNER], self.cache)
                target.with_suffix(".new").rename(target)
        return target

    def _probe_python(self, project: Project, machine: Machine, root: Path, probe: Path):
        """Runs the sources without their byte code."""
        sources = probe / "sources"
        shutil.copytree(root, sources, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".git"))
        (probe / "probe.py").write_text(project.probe)
        return machine.run([sys.executable, "-I", "-B", "probe.py", str(sources)], probe)

    def _probe_javascript(self, project: Project, machine: Machine, root: Path, probe: Path):
        (probe / "probe.mjs").write_text(project.probe)
        return machine.run(["node", str(probe / "probe.mjs"), str(root)], probe)

    def _probe_rust(self, project: Project, machine: Machine, root: Path, probe: Path):
        """The first line of the probe names the sources of its crates."""
        (probe / "probe.rs").write_text(project.probe)
        compiler, libraries = ["rustc", "--edition", "2021"], []
        for number, source in enumerate(project.probe.splitlines()[0].split()[1:], 1):
            name = "tested" if number == 1 else f"tested{number}"
            build = machine.run([*compiler, "--crate-type", "rlib", "--crate-name", name,
                                 "--cap-lints", "allow", str(root / source)], probe)
            if build.code != 0:
                return build
            libraries += ["--extern", f"{name}=lib{name}.rlib"]
        build = machine.run([*compiler, *libraries, "probe.rs"], probe)
        return build if build.code != 0 else machine.run(["./probe"], probe)

    def _probe_go(self, project: Project, machine: Machine, root: Path, probe: Path):
        """The probe is a command of the module, because its packages may be internal."""
        directory = root / "probe_of_the_work"
        directory.mkdir(exist_ok=True)
        (directory / "main.go").write_text(project.probe)
        caches = self._prepared(project) / "home" / ".cache"
        machine.settings = machine.settings | {"GOCACHE": str(caches / "go-build"),
                                               "GOENV": "off", "GOWORK": "off"}
        ran = machine.run(["go", "run", "./probe_of_the_work"], root)
        shutil.rmtree(directory)
        return ran


def make_venv(venv: Path, tools: Path) -> None:
    """Makes a virtual environment that has pytest, and that an agent can change."""
    programs, library = venv / "bin", venv / LIBRARY
    programs.mkdir(parents=True)
    library.mkdir(parents=True)
    base = Path(os.path.realpath(sys.executable))
    (venv / "pyvenv.cfg").write_text(
        f"home = {base.parent}\ninclude-system-site-packages = false\n"
        f"version = {platform.python_version()}\n")
    for name in ("python", "python3"):
        (programs / name).symlink_to(base)
    (library / "tools.pth").write_text(f"{tools}\n")
    (programs / "pytest").write_text(START.format(python=programs / "python"))
    (programs / "pytest").chmod(0o755)


def missing_tools(language: str) -> list[str]:
    """Names the programs that the language needs and this machine lacks."""
    path = os.pathsep.join(map(str, [*base_path(), os.environ["PATH"]]))
    return [name for name in TOOLS[language] if not shutil.which(name, path=path)]


def remove(directory: Path) -> None:
    """Removes a directory, also if an agent made parts of it read-only."""
    if directory.exists():
        subprocess.run(["chmod", "-R", "u+rwX", str(directory)], capture_output=True)
        shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        raise Missed(f"cannot remove {directory}")
