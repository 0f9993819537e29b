//! Commands that people write, and that must not be refused.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use hookloop_core::command_line::CommandLine;
use tempfile::TempDir;

#[test]
fn ordinary_commands_are_accepted() {
    for text in COMMANDS {
        if let Err(error) = CommandLine::shell(text, &["x", "y"]) {
            panic!("{text}: {error}");
        }
    }
}

#[test]
fn ordinary_argument_lists_are_accepted() {
    for args in LISTS {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        if let Err(error) = CommandLine::exec(&args, &["x", "y"]) {
            panic!("{args:?}: {error}");
        }
    }
}

/// Programs that are available to the commands; others do not exist.
const PROGRAMS: [&str; 20] = [
    "bash", "sh", "env", "nice", "nohup", "timeout", "xargs", "find", "cat", "tee", "sed", "awk",
    "grep", "sort", "diff", "date", "ls", "touch", "python3", "tail",
];

const VALUES: [&str; 8] = [
    "$(touch canary)",
    "`touch canary`",
    "'; touch canary; '",
    "\"; touch canary; \"",
    "a[$(touch canary)]",
    "-va[$(touch canary)]",
    "\ntouch canary\n",
    "-c",
];

#[test]
fn accepted_commands_never_execute_a_value() {
    let (bin, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    for program in PROGRAMS {
        let places = ["/usr/bin", "/bin"].map(|dir| Path::new(dir).join(program));
        if let Some(found) = places.iter().find(|path| path.exists()) {
            symlink(found, bin.path().join(program)).unwrap();
        }
    }
    for text in COMMANDS {
        let line = CommandLine::shell(text, &["x", "y"]).unwrap();
        for value in VALUES {
            let invocation = line.invocation(&|_| Some(value.into())).unwrap();
            for shell in ["/bin/sh", "bash"] {
                let mut command = Command::new(shell);
                command.args(invocation.argv[1..].iter().map(|arg| str::from_utf8(arg).unwrap()));
                command.env_clear().env("PATH", bin.path()).env("HOME", dir.path());
                let env = invocation.env.iter();
                command.envs(env.map(|(name, value)| (name, str::from_utf8(value).unwrap())));
                command.stdin(Stdio::null()).current_dir(dir.path()).output().unwrap();
                let has_canary = dir.path().join("canary").exists();
                assert!(!has_canary, "{shell}: {text} ran {value}");
            }
        }
    }
}

const COMMANDS: &[&str] = &[
    "echo {{x}}",
    "echo \"task {{x}} failed: {{y}}\" >> log.txt",
    "echo '{{x}}' | tee -a log",
    "printf '%s\\n' {{x}} | mail -s 'hook' me@example.com",
    "printf '%s' {{x}} | sed 's/a/b/' | awk '{ print $1 }'",
    "printf '%s' {{x}} | python3 -c 'import sys; print(len(sys.stdin.read()))'",
    "git commit -m {{x}}",
    "git commit -m \"{{x}}: {{y}}\"",
    "git push origin HEAD:refs/heads/{{x}}",
    "./scripts/notify.sh {{x}} {{y}}",
    "\"$HOME/bin/notify\" --title={{x}} --body \"{{y}}\"",
    "bash scripts/notify.sh {{x}}",
    "bash -eu scripts/notify.sh -c {{x}}",
    "sh \"$DIR/notify.sh\" {{x}}",
    "python3 tool.py -c config {{x}}",
    "python3 -u tool.py {{x}}",
    "python3 -m tool {{x}}",
    "python3.12 tool.py {{x}}",
    "node tool.js {{x}}",
    "ruby -w tool.rb {{x}}",
    "perl tool.pl {{x}}",
    "A={{x}} ./run.sh",
    "A={{x}} B=\"{{y}}\" ./run.sh && echo ok",
    "export A={{x}}; ./run.sh",
    "env A={{x}} ./run.sh {{y}}",
    "sudo -u ada A={{x}} notify {{y}}",
    "timeout 5 ./run.sh {{x}}",
    "timeout -k 1 5s ./run.sh {{x}}",
    "nohup ./run.sh {{x}} > /dev/null 2>&1 &",
    "nice -n 5 ./run.sh {{x}}",
    "exec ./run.sh {{x}}",
    "time ./run.sh {{x}}",
    "command -v notify && notify {{x}}",
    "if [ {{x}} = bug ]; then notify {{y}}; else echo {{y}}; fi",
    "if ! ./check {{x}}; then exit 2; fi",
    "[ -n \"{{x}}\" ] || exit 0",
    "test -f {{x}} && cat -- {{x}}",
    "while sleep 1; do ./check {{x}} && break; done",
    "for a in {{x}} {{y}}; do echo \"$a\"; done",
    "(cd web && npm test -- {{x}})",
    "{ echo {{x}}; echo {{y}}; } > out",
    "./run.sh {{x}} || true",
    "./run.sh {{x}} &> log",
    "./run.sh < {{x}} > {{y}}",
    "cat <<'END' > f\nit's text\nEND\n./run.sh {{x}}",
    "set -e\n./run.sh {{x}}",
    "set -- {{x}} && ./run.sh \"$@\"",
    "cargo test --workspace 2>&1 | tail -n 50 # no values\n./run.sh {{x}}",
    "curl -fsS -d \"text={{x}}\" https://example.com/hook",
    "curl --data-urlencode text={{x}} \"$URL\"",
    "jq -n --arg title {{x}} '{ title: $title }' | curl -d @- \"$URL\"",
    "docker ps --format '{{.Names}}' | grep -- {{x}}",
    "docker run --rm -e TITLE={{x}} image ./run.sh",
    "notify-send \"$(date)\" {{x}}",
    "echo $((1 + 2)) ${A:-b} $A $1 $? $$ {{x}}",
    "echo `date` {{x}}",
    "echo \\$HOME {{x}}",
    "find . -name {{x}} -exec cat {} +",
    "ls | xargs -n 1 grep -- {{x}}",
    "diff <(sort a) <(sort b) > {{x}}",
    "hookloop task add --goal={{x}}",
    "FILE=out-{{x}}.txt; ./run.sh > \"$FILE\"",
    "echo ünïcödé {{x}} — “quotes”",
    "echo a \\\n  {{x}}",
    "echo \"a\\\nb\" {{x}}",
    ": {{x}}",
    "[ {{x}} -nt {{y}} ] && [ a != {{x}} ]",
    "printf '%-10s %s%%\\n' {{x}} {{y}}",
    "sudo -u\"$OWNER\" true; notify {{x}}",
    "uv run tool.py {{x}}",
    "deno run tool.ts {{x}}",
    "npm run notify -- {{x}}",
    "gh pr create --title {{x}} --body \"{{y}}\"",
    "true && ./a {{x}} || ./b '{{y}}' ; ./c",
];

const LISTS: &[&[&str]] = &[
    &["notify", "{{x}}"],
    &["./run.sh", "a `{{x}}` $({{y}})"],
    &["bash", "run.sh", "{{x}}"],
    &["env", "A={{x}}", "run.sh", "{{y}}"],
    &["git", "commit", "-m", "{{x}}: {{y}}"],
    &["printf", "%s\n", "{{x}}"],
];
