"""Finds the versions of a package, and writes the files of a version to a directory.

A version is a commit of a local git repository, or a release of a registry. A change consists of
two versions that follow each other.
"""

import json
import os
import re
import shutil
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from packages import Package, Registry, left_out
from processes import Machine, Missed
from published_catalogue import PublishedPackage

SOURCES = {"python": (".py",), "javascript": (".js", ".mjs", ".cjs", ".ts", ".mts"),
           "rust": (".rs",), "go": (".go",)}
# A path with such a part is not a source: tests, their helpers, examples, benchmarks and settings.
NO_SOURCES = re.compile(
    r"(^|/)(tests?|testdata|__tests__|spec|docs?|benches|bench|benchmarks?|examples?|fuzz|ci|"
    r"vendor|\.github|scripts)/"
    r"|_test\.go$|(^|/)(test[^/]*|[^/]*_test|conftest|setup|noxfile|bench|example|conf)\.[a-z]+$"
    r"|\.(test|spec|config)\.[a-z]+$|\.d\.ts$", re.IGNORECASE)
SECONDS = 60
REGISTRIES = {
    "pypi": "https://pypi.org/pypi/{name}/json",
    "npm": "https://registry.npmjs.org/{name}",
    "crates": "https://index.crates.io/{path}",
}


@dataclass(frozen=True)
class PublishedChange:
    """Two consecutive versions of a package."""

    package: PublishedPackage
    kind: str
    before: str
    after: str
    title: str = ""

    @property
    def key(self) -> str:
        return f"{self.package.key} {self.kind} {self.before}..{self.after}"


class Versions:
    """The versions in local repositories and in the registries."""

    def __init__(self, machine: Machine, cache: Path, repositories: dict[str, Path]):
        self.machine = machine
        self.registry = Registry(machine, cache, None)
        self.repositories = repositories
        # Downloads share a directory.
        self.lock = threading.Lock()

    def commits(self, package: PublishedPackage, most: int) -> list[PublishedChange]:
        """Returns the newest commits that change sources, and their parents."""
        repository = self.repositories.get(package.repository)
        if not repository:
            return []
        log = self.git(repository, "log", "--no-merges", "--no-renames", "--name-only",
                       "--diff-filter=AMD", "--format=%x00%H %P%n%s", "HEAD")
        found: list[PublishedChange] = []
        for entry in log.split("\0")[1:]:
            head, title, *paths = entry.splitlines()
            commit, *parents = head.split()
            if len(parents) == 1 and any(is_source(package.language, path) for path in paths):
                found.append(PublishedChange(package, "commit", parents[0], commit, title))
            if len(found) == most:
                break
        return found

    def releases(self, package: PublishedPackage, most: int) -> list[PublishedChange]:
        """Returns the newest pairs of consecutive releases, without pre-releases."""
        if not package.registry:
            return []
        names = {name for name in self._published(package) if re.fullmatch(r"\d+(\.\d+)+", name)}
        ordered = sorted(names, key=lambda name: [int(part) for part in name.split(".")])
        pairs = list(zip(ordered, ordered[1:], strict=False))[-most:]
        return [PublishedChange(package, "release", *pair) for pair in reversed(pairs)]

    def write(self, package: PublishedPackage, kind: str, version: str, target: Path) -> None:
        """Writes the files of a version to a new directory."""
        target.mkdir(parents=True)
        if kind == "commit":
            repository = self.repositories[package.repository]
            index = target.with_suffix(".index")
            # Unlike an archive, a checkout has files that the attributes exclude from exports.
            for command in (("read-tree", version), ("checkout-index", "--all", "--force")):
                self.git(repository, *command, tree=target, index=index)
            index.unlink()
        else:
            with self.lock:
                source = self.registry.source(
                    Package(package.registry, package.name, version, "", "", ""))
            shutil.copytree(source, target, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        manifest = target / "Cargo.toml"
        if package.language == "rust" and "[workspace" not in manifest.read_text():
            # The crate stays on its own, also below another workspace.
            manifest.write_text(manifest.read_text() + "\n[workspace]\n")

    def git(self, repository: Path, *arguments: str, tree: Path | None = None,
            index: Path | None = None) -> str:
        command = ["env", "GIT_CONFIG_NOSYSTEM=1"]
        command += [f"GIT_INDEX_FILE={index}"] if index else []
        command += ["git", "-c", "safe.directory=*", "-c", "core.autocrlf=false",
                    "-c", "core.hooksPath=/dev/null", f"--git-dir={repository}"]
        command += [f"--work-tree={tree}"] if tree else []
        return self.machine.must([*command, *arguments], tree or repository)

    def _published(self, package: PublishedPackage) -> list[str]:
        name = package.name
        prefix = {1: "1", 2: "2", 3: f"3/{name[:1]}"}.get(len(name), f"{name[:2]}/{name[2:4]}")
        url = REGISTRIES[package.registry].format(name=name, path=f"{prefix}/{name}")
        request = urllib.request.Request(url, headers={
            "Accept": "application/json, */*;q=0.1", "User-Agent": "hookloop-redteam"})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                text = answer.read().decode()
        except OSError as error:
            raise Missed(f"no versions of {package.key}: {error}") from error
        if package.registry == "crates":
            lines = [json.loads(line) for line in text.splitlines()]
            return [line["vers"] for line in lines if not line["yanked"]]
        if package.registry == "pypi":
            return [name for name, files in json.loads(text)["releases"].items()
                    if any(file["packagetype"] == "sdist" for file in files if not file["yanked"])]
        return list(json.loads(text)["versions"])


def is_source(language: str, path: str) -> bool:
    """Returns whether a path is a source of the language, and no test."""
    return path.endswith(SOURCES[language]) and not NO_SOURCES.search(path)


def git_directory(path: Path) -> Path:
    """Returns the git directory of a checkout or of a bare repository."""
    return path / ".git" if (path / ".git").exists() else path


def changed_files(before: Path, after: Path) -> tuple[list[str], list[str]]:
    """Returns the files that a change writes, and those that it deletes."""
    old, new = files_below(before), files_below(after)
    written = [name for name in new if name not in old or old[name] != new[name]]
    return written, [name for name in old if name not in new]


def files_below(root: Path) -> dict[str, tuple]:
    """Returns the content and the kind of each file."""
    found = {}
    for directory, directories, names in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        for name in [*names, *directories]:
            path = Path(directory, name)
            relative = str(path.relative_to(root))
            if path.is_symlink():
                found[relative] = ("link", os.readlink(path))
            elif path.is_file():
                found[relative] = (bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found
