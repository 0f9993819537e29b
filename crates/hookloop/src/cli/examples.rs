//! An example for the long help of every command. A test parses each.

use clap::Command;

/// Commands without the program's name, and an example of each.
const EXAMPLES: &[(&str, &str)] = &[
    ("init", "hookloop init --only backend"),
    ("demo", "hookloop demo --keep"),
    ("run", "hookloop run \"Make the tests pass\" --agent claude --max-cost 5"),
    ("resume", "hookloop resume --max-iterations +20"),
    ("watch", "hookloop watch"),
    ("pause", "hookloop pause nightly"),
    ("undo", "hookloop undo 3 --dry-run"),
    ("restore", "hookloop restore 2 -- src/lib.rs"),
    ("gc", "hookloop gc --dry-run"),
    ("stop", "hookloop stop nightly"),
    ("message", "hookloop message \"Use the v2 API\""),
    ("sessions", "hookloop sessions list"),
    ("sessions list", "hookloop sessions list --limit 5"),
    ("sessions show", "hookloop sessions show nightly"),
    ("sessions trace", "hookloop sessions trace nightly"),
    ("merge", "hookloop merge --wait 30m"),
    ("worker", "hookloop worker --agent claude --jobs 4"),
    ("fleet", "hookloop fleet status"),
    ("fleet status", "hookloop fleet status --json"),
    ("fleet pause", "hookloop fleet pause --reason \"deploying\""),
    ("fleet stop", "hookloop fleet stop --reason \"wrong branch\""),
    ("fleet resume", "hookloop fleet resume"),
    ("fleet drain", "hookloop fleet drain build-1"),
    ("fleet budget", "hookloop fleet budget --cost 20"),
    ("worktrees", "hookloop worktrees list"),
    ("worktrees list", "hookloop worktrees list --json"),
    ("worktrees clean", "hookloop worktrees clean"),
    ("rooms", "hookloop rooms list"),
    ("rooms list", "hookloop rooms list --json"),
    ("rooms clean", "hookloop rooms clean --dry-run"),
    ("rooms shell", "hookloop rooms shell tests"),
    ("inbox", "hookloop inbox"),
    ("inbox list", "hookloop inbox list --json"),
    ("inbox show", "hookloop inbox show parser"),
    ("inbox answer", "hookloop inbox answer parser \"They are latin-1\""),
    ("inbox approve", "hookloop inbox approve parser"),
    ("inbox abort", "hookloop inbox abort nightly"),
    ("inbox dismiss", "hookloop inbox dismiss parser"),
    ("inbox notify", "hookloop inbox notify"),
    ("inbox test", "hookloop inbox test phone"),
    ("why", "hookloop why parser"),
    ("checks", "hookloop checks tests --failing"),
    ("usage", "hookloop usage --by agent"),
    ("task", "hookloop task list"),
    ("task add", "hookloop task add \"Write the parser\" --id parser --depends-on grammar"),
    ("task show", "hookloop task show parser"),
    ("task list", "hookloop task list --state blocked"),
    ("task ready", "hookloop task ready --limit 5"),
    ("task start", "hookloop task start parser"),
    ("task claim", "hookloop task claim --agent ada --lease 10m"),
    ("task heartbeat", "hookloop task heartbeat parser --epoch 2"),
    ("task release", "hookloop task release parser --epoch 2"),
    ("task requeue", "hookloop task requeue parser --force"),
    ("task take-over", "hookloop task take-over parser"),
    ("task complete", "hookloop task complete parser --result \"Merged\""),
    ("task block", "hookloop task block parser --reason \"No access\""),
    ("task unblock", "hookloop task unblock parser"),
    ("task delete", "hookloop task delete parser"),
    ("task note", "hookloop task note parser \"See the old grammar\""),
    ("task dep", "hookloop task dep add parser --on grammar"),
    ("task dep add", "hookloop task dep add parser --on grammar"),
    ("task dep remove", "hookloop task dep remove parser --on grammar"),
    ("task import", "hookloop task import tasks.jsonl"),
    ("task export", "hookloop task export"),
    ("task graph", "hookloop task graph parser --all"),
    ("schedule", "hookloop schedule list"),
    (
        "schedule add",
        "hookloop schedule add nightly --cron \"0 3 * * *\" --goal \"Update packages\"",
    ),
    ("schedule list", "hookloop schedule list"),
    ("schedule show", "hookloop schedule show nightly"),
    ("schedule pause", "hookloop schedule pause nightly"),
    ("schedule resume", "hookloop schedule resume nightly"),
    ("schedule remove", "hookloop schedule remove nightly"),
    ("schedule run", "hookloop schedule run nightly"),
    ("hooks", "hookloop hooks list"),
    ("hooks list", "hookloop hooks list --json"),
    ("hooks show", "hookloop hooks show tests"),
    ("hooks explain", "hookloop hooks explain stop"),
    ("hooks trust", "hookloop hooks trust --show"),
    ("hooks run", "hookloop hooks run tests"),
    ("hooks enable", "hookloop hooks enable tests"),
    ("hooks disable", "hookloop hooks disable tests"),
    ("agents", "hookloop agents list"),
    ("agents list", "hookloop agents list --json"),
    ("agents trust", "hookloop agents trust"),
    ("install", "hookloop install claude --project"),
    ("uninstall", "hookloop uninstall claude --project"),
    ("hook", "hookloop hook Stop --agent claude"),
    ("mcp", "hookloop mcp"),
    ("serve", "hookloop serve --port 7411"),
    ("log", "hookloop log --type gates_evaluated --limit 20"),
    ("dispatch", "hookloop dispatch --daemon"),
    ("nats", "hookloop nats up"),
    ("nats up", "hookloop nats up"),
    ("nats down", "hookloop nats down"),
    ("nats key", "hookloop nats key ada.nk"),
    ("nats permissions", "hookloop nats permissions shop"),
    ("status", "hookloop status --json"),
    ("import", "hookloop import claude"),
    ("import claude", "hookloop import claude --write"),
    ("import codemie", "hookloop import codemie --write"),
    ("import iteratr", "hookloop import iteratr --write"),
    ("import lefthook", "hookloop import lefthook --write"),
    ("import octopoid", "hookloop import octopoid --write"),
    ("import ralph", "hookloop import ralph --write"),
    ("import beads", "hookloop import beads --write"),
    ("import vibe-kanban", "hookloop import vibe-kanban --write"),
    ("import task-copilot", "hookloop import task-copilot --write"),
    ("import automation-hooks", "hookloop import automation-hooks --write"),
    ("policy", "hookloop policy"),
    ("doctor", "hookloop doctor"),
    ("verify", "hookloop verify"),
    ("rebuild", "hookloop rebuild"),
    ("schema", "hookloop schema --user"),
    (
        "completions",
        "hookloop completions bash > ~/.local/share/bash-completion/completions/hookloop",
    ),
    ("man", "hookloop man task add"),
];

/// Returns the parser with an example in the long help of each command.
pub(crate) fn with_examples(mut parser: Command) -> Command {
    // Commands below commands are deferred until the parser is built.
    parser.build();
    below(parser, "")
}

fn below(command: Command, path: &str) -> Command {
    command.mut_subcommands(|command| {
        let separator = if path.is_empty() { "" } else { " " };
        let path = format!("{path}{separator}{}", command.get_name());
        let example = example(&path);
        let command = below(command, &path);
        match example {
            Some(example) => {
                let header = command.get_styles().get_header().to_owned();
                command.after_long_help(format!("{header}Example:{header:#}\n  {example}"))
            }
            None => command,
        }
    })
}

/// Returns the example of a command.
pub(crate) fn example(path: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(name, _)| *name == path).map(|(_, example)| *example)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// Splits a line as a shell would, without the redirection of its output.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" > ").next().unwrap_or_default();
        let mut parts = Vec::new();
        for (n, part) in line.split('"').enumerate() {
            if n % 2 == 1 {
                parts.push(part.to_owned());
            } else {
                parts.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        parts
    }

    fn paths(command: &Command, path: &str, found: &mut Vec<String>) {
        for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
            let separator = if path.is_empty() { "" } else { " " };
            let path = format!("{path}{separator}{}", command.get_name());
            paths(command, &path, found);
            found.push(path);
        }
    }

    #[test]
    fn every_command_has_an_example_that_it_accepts() {
        let mut parser = Cli::command();
        parser.build();
        let mut all = Vec::new();
        paths(&parser, "", &mut all);
        assert!(all.len() > 90, "{}", all.len());
        for path in &all {
            let example = example(path).unwrap_or_else(|| panic!("{path} has no example"));
            let is_own = example.starts_with(&format!("hookloop {path}"))
                || parser.find_subcommand(path).is_some_and(|group| group.has_subcommands());
            assert!(is_own, "{path}: {example}");
            let parsed = Cli::command().try_get_matches_from(words(example));
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
        for (name, _) in EXAMPLES {
            assert!(all.iter().any(|path| path == name), "there is no command `{name}`");
        }
    }
}
