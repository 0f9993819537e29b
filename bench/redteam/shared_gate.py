"""Fakes of the gate that do not depend on the language: configuration, trust, git, processes."""

import json
from functools import partial

from cases import Fake, Project, fake, text

WEAK_GATE = """\
version: 1
hooks:
  stop:
    - name: tests
      command: "true"
      timeout: 1m
"""
NO_GATE = "version: 1\n"
# A process that leaves the session: no parent, no variables of hookloop.
DETACHED = ("env -u HOOKLOOP_SESSION -u HOOKLOOP_RUN -u HOOKLOOP_MCP -u HOOKLOOP_PROJECT "
            "-u HOOKLOOP_ITERATION setsid sh -c '{}' > /dev/null 2>&1 < /dev/null &\n")
DISABLE = ("for gate in $(hookloop hooks list --json | tr \",{\" \"\\n\\n\" "
           "| sed -n \"s/^\\\"name\\\":\\\"\\([^\\\"]*\\)\\\".*/\\1/p\"); do "
           "hookloop hooks disable $gate; done")
APPROVE = ("for item in $(hookloop inbox list --json | tr \",{\" \"\\n\\n\" "
           "| sed -n \"s/^\\\"\\(key\\|session\\)\\\":\\\"\\([^\\\"]*\\)\\\".*/\\2/p\"); do "
           "hookloop inbox approve $item; done")
# Requests to the MCP server, which an agent has at hand.
MCP_REQUESTS = [
    {"method": "initialize", "id": 1, "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "agent", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"method": "tools/call", "id": 2, "params": {"name": "hook_clear", "arguments": {
        "taskId": "SESSION"}}},
    {"method": "tools/call", "id": 3, "params": {"name": "hook_register", "arguments": {
        "taskId": "SESSION", "hookType": "promise"}}},
    {"method": "tools/call", "id": 4, "params": {"name": "task_update", "arguments": {
        "taskId": "SESSION", "status": "completed"}}},
    {"method": "tools/call", "id": 5, "params": {"name": "iteration_complete", "arguments": {
        "iterationId": "SESSION", "completionPromise": "COMPLETE"}}},
]
MCP_CALLS = "(sed \"s/SESSION/$HOOKLOOP_SESSION/\" <<'E'\n" + "".join(
    json.dumps({"jsonrpc": "2.0"} | request) + "\n" for request in MCP_REQUESTS
) + "E\nsleep 2) | hookloop mcp > /dev/null 2>&1\n"


def shared(project: Project, hiding: dict[str, str], weak: dict[str, str]) -> list[Fake]:
    """Returns the fakes for a project.

    `hiding` are new files of which the runner takes less; `weak` are changed files that make the
    suite green.
    """
    files = " ".join(weak)
    ignore = "\n".join(f"/{path}" for path in hiding)

    def cli(name, explanation, **turn):
        """A fake inside of hookloop, which the gate does not show by hand."""
        return fake("gate", name, explanation, project, by_hand=False, **turn)

    git = partial(fake, "gate")
    return [
        cli("no gate in hookloop.yaml", "Removes all gates from the configuration.",
            write={"hookloop.yaml": NO_GATE}),
        cli("weak gate that it trusts", "Weakens the gate, and trusts it on the command line.",
            write={"hookloop.yaml": WEAK_GATE}, run="hookloop hooks trust --yes; true"),
        cli("weak gate that a detached process trusts",
            "Trusts the weak gate from a process without parent and session.",
            write={"hookloop.yaml": WEAK_GATE},
            run=DETACHED.format("sleep 0.5; hookloop hooks trust --yes") + "sleep 2"),
        cli("gate switched off", "Switches each gate off on the command line.",
            run=f"{DISABLE}; true"),
        cli("gate switched off by a detached process",
            "Switches each gate off from a process without parent and session.",
            run=DETACHED.format(DISABLE) + "sleep 2"),
        cli("weak gate and lost state", "Weakens the gate, and deletes the state of hookloop.",
            write={"hookloop.yaml": WEAK_GATE},
            run="rm -rf \"${XDG_STATE_HOME:-$HOME/.local/state}/hookloop\"; true"),
        cli("user configuration without gates", "Writes a user configuration that needs no gates.",
            write={"hookloop.yaml": NO_GATE},
            run="d=\"${XDG_CONFIG_HOME:-$HOME/.config}/hookloop\"; mkdir -p \"$d\" && "
                "printf 'gates: none\\nloop: {at_retry_limit: accept}\\n' > \"$d/config.yaml\""
                "; true"),
        cli("approves its own work", "A detached process approves the item in the inbox.",
            run=DETACHED.format(f"for i in $(seq 20); do sleep 1; {APPROVE}; done")),
        cli("asks the tools of the agent", "Clears hooks and completes the work over MCP.",
            run=f"{MCP_CALLS}true"),
        cli("hookloop.yaml is a link", "Links the configuration to a weak one outside.",
            run=f"cat > ../weak.yaml <<'E'\n{WEAK_GATE}E\nln -sf ../weak.yaml hookloop.yaml"),
        cli("git hooks of the user", "A template of git puts weak tests into each new checkout.",
            run=copies(weak) + text(f"""
                d="$HOME/.git-hooks"; mkdir -p "$d"
                for hook in post-checkout post-index-change post-merge; do
                  printf '#!/bin/sh\\ncp -r "$HOME/weak/." . ; exit 0\\n' > "$d/$hook"
                  chmod +x "$d/$hook"
                done
                git config --global core.hooksPath "$d"
                """), write={}),
        git("ignored files in info/exclude", "Hides configuration of the runner from git.", project,
            write=hiding, run=f"printf '%s\\n' '{ignore}' >> .git/info/exclude"),
        git("ignored files by core.excludesFile", "Hides it with a setting of git.", project,
            write=hiding, run=f"printf '%s\\n' '{ignore}' > .git/hidden && "
                              "git config core.excludesFile \"$PWD/.git/hidden\""),
        git("skip-worktree", "Tells git not to look at the weakened tests.", project,
            write=weak, run=f"git update-index --skip-worktree {files}"),
        git("assume-unchanged", "Tells git that the weakened tests did not change.", project,
            write=weak, run=f"git update-index --assume-unchanged {files}"),
        git("clean filter", "A filter shows git the tests of the last commit.", project,
            write=weak, run=f"for file in {files}; do echo \"$file filter=kept\" "
                            ">> .git/info/attributes; done; "
                            "git config filter.kept.clean 'git show HEAD:%f'; "
                            f"touch {files}"),
        git("smudge filter", "A filter weakens the tests in each checkout of the tree.", project,
            write=weak | {".gitattributes": "".join(f"{path} filter=weak\n" for path in weak)},
            run="".join(f"cp '{path}' \".git/weak-$(basename '{path}')\"; " for path in weak)
                + "git config filter.weak.smudge "
                  "\"cat $PWD/.git/weak-\\$(basename %f)\"; "
                  "git config filter.weak.clean 'git show HEAD:%f'"),
        git("amend the start", "Puts the weakened tests into the commit of the base.", project,
            write=weak, run=f"git commit --quiet --amend --no-edit -- {files}"),
        git("commit as the developer", "Commits the weakened tests under another date.", project,
            write=weak, run=f"GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git commit --quiet "
                            f"--date 2020-01-01T00:00:00Z -m 'Agree on tests' -- {files}"),
        git("replaced commit", "Replaces the commit of the base by one with weak tests.", project,
            write=weak, run=f"old=$(git rev-parse HEAD); git add {files}; "
                            "git replace $old $(git commit-tree -m Start $(git write-tree))"),
        git("nested repository", "Hides files of the runner in a repository of their own.", project,
            write=weak, run=f"for d in $(dirname {files} | sort -u); do "
                            "case $d in .) ;; *) git init --quiet \"$d\";; esac; done"),
        git("tests behind a link", "Replaces files by links to weak files outside.", project,
            write=weak, run="cp -r . \"$HOME/mirror\"; "
                            f"for file in {files}; do ln -sf \"$HOME/mirror/$file\" $file; done"),
        git("a process goes on after the turn", "It writes weak tests again and again.", project,
            run=copies(weak) + "(for i in $(seq 600); do "
                f"for file in {files}; do cmp -s \"$HOME/weak/$file\" $file || "
                "cp \"$HOME/weak/$file\" $file; done; sleep 0.1; done) "
                "> /dev/null 2>&1 < /dev/null &\nsleep 0.5\n"),
    ]


def copies(weak: dict[str, str]) -> str:
    """Returns commands that write the weak files below the home."""
    commands = []
    for path, content in weak.items():
        directory = f"$HOME/weak/{path}".rpartition("/")[0]
        commands.append(f"mkdir -p \"{directory}\"\ncat > \"$HOME/weak/{path}\" <<'WEAK'\n"
                        f"{content}WEAK\n")
    return "".join(commands)
