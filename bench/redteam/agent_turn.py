"""An agent as a process: it applies its turn when it is first started, and claims to be done.

    agent_turn.py TURN

TURN is a JSON file in the form of `Turn.scripted`. Further calls only repeat the claim. The file
`TURN.played` shows that the turn was applied completely.
"""

import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    source = Path(sys.argv[1])
    turn = json.loads(source.read_text())
    played = mark_of(source)
    if not played.exists():
        apply(turn)
        played.touch()
    print(turn["say"], flush=True)


def apply(turn: dict) -> None:
    """Writes and deletes files in the current directory, then runs the commands."""
    for name, content in turn["write"].items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for name in turn["delete"]:
        Path(name).unlink()
    if "run" in turn:
        subprocess.run(["sh", "-c", turn["run"]], check=True, stdin=subprocess.DEVNULL)


def mark_of(source: Path) -> Path:
    return source.with_name(source.name + ".played")


if __name__ == "__main__":
    main()
