"""Commands of the campaign, with an environment that does not depend on that of the caller."""

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

COMMAND_SECONDS = 1800
OUTPUT_LINES = 25

# Variables of the caller that lead to the registries.
NETWORK = (
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "PIP_INDEX_URL",
)


class Missed(Exception):
    """A bar that the project misses, with the evidence."""


@dataclass
class Ran:
    """The result of a command."""

    command: list[str]
    code: int
    stdout: str
    stderr: str

    def evidence(self) -> str:
        lines = (self.stdout + self.stderr).rstrip().splitlines()[-OUTPUT_LINES:]
        return "\n".join([f"$ {' '.join(self.command)}", *lines, f"exit code {self.code}"])


@dataclass
class Machine:
    """A home directory and a PATH, in which commands run."""

    home: Path
    state: Path
    path: list[Path] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in NETWORK if name in os.environ}
        path = os.pathsep.join(map(str, [*self.path, *base_path()]))
        return kept | {
            "HOME": str(self.home), "XDG_STATE_HOME": str(self.state), "PATH": path,
            "LANG": "C.UTF-8", "CI": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def run(self, command: list[str], directory: Path) -> Ran:
        try:
            done = subprocess.run(
                command, cwd=directory, env=self.environment(), capture_output=True, text=True,
                stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS, errors="replace")
        except subprocess.TimeoutExpired:
            return Ran(command, -1, "", f"did not end within {COMMAND_SECONDS} s")
        except OSError as error:
            return Ran(command, -1, "", str(error))
        return Ran(command, done.returncode, done.stdout, done.stderr)

    def must(self, command: list[str], directory: Path) -> str:
        """Returns the standard output of a command that has to succeed."""
        ran = self.run(command, directory)
        if ran.code != 0:
            raise Missed(ran.evidence())
        return ran.stdout


@functools.cache
def base_path() -> list[Path]:
    """Returns the directories of the toolchains themselves.

    Wrappers such as those of rustup and pyenv look for toolchains below HOME, which is a new one
    for each project.
    """
    found = [Path(os.path.realpath(sys.executable)).parent]
    if shutil.which("rustc"):
        sysroot = subprocess.run(
            ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        found.append(Path(sysroot.stdout.strip()) / "bin")
    for name in ("node", "npm", "git"):
        if program := shutil.which(name):
            found.append(Path(program).parent)
    return [*dict.fromkeys([*found, *map(Path, ("/usr/local/bin", "/usr/bin", "/bin"))])]
