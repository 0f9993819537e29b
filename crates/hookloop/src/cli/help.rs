//! The overview of the commands: `hookloop help`, `hookloop help all`, `hookloop --help`.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Arg, Args as _, Command};

use super::GlobalArgs;

/// The command that prints help.
const HELP: &str = "help";
/// The argument of `help` that lists every command.
const ALL: &str = "all";

/// A group of the overview: its title, the commands that everybody needs, and the others.
type OverviewGroup = (&'static str, &'static [&'static str], &'static [&'static str]);

const OVERVIEW: &[OverviewGroup] = &[
    (
        "Work",
        &["init", "run", "resume", "watch", "status", "why", "inbox", "undo"],
        &["demo", "pause", "stop", "message", "restore", "sessions"],
    ),
    ("Tasks", &["task", "merge"], &["schedule", "worktrees", "dispatch"]),
    (
        "Hooks and gates",
        &["hooks", "checks", "install"],
        &["rooms", "agents", "uninstall", "import", "mcp", "hook"],
    ),
    ("Fleet", &["worker", "fleet"], &["nats", "policy"]),
    (
        "Administration",
        &["doctor", "usage", "log"],
        &["serve", "verify", "rebuild", "gc", "schema", "completions", "man"],
    ),
];

/// The command line that a call of `help` stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HelpRequest {
    /// `help all`.
    AllCommands,
    /// Any other line, with `help NAME` as `NAME --help`.
    Words(Vec<OsString>),
}

impl HelpRequest {
    /// Reads the words after the program's name.
    pub(crate) fn of(words: Vec<OsString>) -> HelpRequest {
        if !words.iter().any(|word| word == HELP) {
            return HelpRequest::Words(words);
        }
        let at = first_command(&words);
        if words.get(at).is_none_or(|word| word != HELP) {
            return HelpRequest::Words(words);
        }
        let (options, rest) = (&words[..at], &words[at + 1..]);
        match rest {
            [only] if only == ALL => HelpRequest::AllCommands,
            rest if rest.iter().all(|word| word == HELP) => {
                // The overview has short descriptions of the options.
                HelpRequest::Words([options, &["-h".into()]].concat())
            }
            rest => HelpRequest::Words([options, rest, &["--help".into()]].concat()),
        }
    }
}

fn is_option(word: &&str) -> bool {
    word.starts_with('-')
}

/// Returns the place of the first word that is neither a global option nor its value.
pub(super) fn first_command(words: &[OsString]) -> usize {
    let global = GlobalArgs::augment_args(Command::new(HELP));
    let takes_value = |word: &str| {
        let is_named = |option: &Arg| {
            let long = option.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
            let short = option.get_short().is_some_and(|short| word == format!("-{short}"));
            long || short
        };
        let mut with_values = global.get_arguments().filter(|o| o.get_action().takes_values());
        with_values.any(is_named)
    };
    let mut at = 0;
    while let Some(option) = words.get(at).and_then(|word| word.to_str()).filter(is_option) {
        at += if takes_value(option) { 2 } else { 1 };
    }
    at
}

/// Returns the parser with its commands in groups in its own help.
pub(crate) fn with_overview(mut parser: Command, all: bool) -> Command {
    // Descriptions of commands are deferred until the parser is built.
    parser.build();
    let template = template(&parser, all);
    parser.help_template(template)
}

fn template(parser: &Command, all: bool) -> String {
    let styles = parser.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    let listed = |group: &OverviewGroup| -> Vec<&'static str> {
        let others = if all { group.2 } else { &[] };
        group.1.iter().chain(others).copied().collect()
    };
    let width = OVERVIEW.iter().flat_map(&listed).map(str::len).max().unwrap_or(0);
    for group in OVERVIEW {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{header}{}:{header:#}", group.0);
        for name in listed(group) {
            let command = parser.find_subcommand(name);
            let about = command.and_then(Command::get_about).map(ToString::to_string);
            let about = about.unwrap_or_default();
            let _ = writeln!(text, "  {literal}{name:width$}{literal:#}  {about}");
        }
    }
    let _ = writeln!(text, "\n{header}Options:{header:#}\n{{options}}");
    let _ = writeln!(
        text,
        "\n`hookloop help COMMAND` describes a command{}.",
        if all { "" } else { "; `hookloop help all` lists every command" }
    );
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_command_help_is_read_as_the_option_help() {
        let of = |line| HelpRequest::of(words(line));
        assert_eq!(of("help"), HelpRequest::Words(words("-h")));
        assert_eq!(of("help task add"), HelpRequest::Words(words("task add --help")));
        assert_eq!(of("help all"), HelpRequest::AllCommands);
        assert_eq!(of("message help"), HelpRequest::Words(words("message help")));
        assert_eq!(of("-C help status"), HelpRequest::Words(words("-C help status")));
        assert_eq!(of("--json help run"), HelpRequest::Words(words("--json run --help")));
        assert_eq!(of("help help"), HelpRequest::Words(words("-h")));
    }

    #[test]
    fn the_overview_has_every_command_once() {
        let groups = OVERVIEW.iter().flat_map(|group| group.1.iter().chain(group.2));
        let listed: Vec<&str> = groups.copied().collect();
        let unique: BTreeSet<&str> = listed.iter().copied().collect();
        assert_eq!(listed.len(), unique.len());
        let parser = Cli::command();
        let visible = parser.get_subcommands().filter(|command| !command.is_hide_set());
        let known: BTreeSet<&str> = visible.map(Command::get_name).collect();
        assert_eq!(unique, known);
    }

    #[test]
    fn command_descriptions_fit_on_one_line() {
        let text = with_overview(Cli::command(), true).render_help().to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        assert!(text.contains("Hooks and gates:"), "{text}");
    }
}
