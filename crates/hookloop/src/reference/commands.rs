//! The page of commands, from the parser.

use clap::{Arg, Command};

use super::{cell, list};

const HEAD: &str = "# Commands

All commands with their arguments and options, as `--help` prints them. See also [JSON output](json.md) and
[exit codes](exit-codes.md).
";

pub(super) fn page(mut root: Command) -> String {
    root.build();
    let mut text = HEAD.to_owned();
    text.push_str("\n## Options of every command\n\n");
    let global: Vec<&Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).collect();
    text.push_str(&table(&global));
    for command in visible(&root) {
        section(&mut text, command, 2);
    }
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set())
}

/// A command and those below it.
fn section(text: &mut String, command: &Command, level: usize) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    text.push_str(&format!("\n{} {name}\n\n{}\n", "#".repeat(level), sentences(&about)));
    let example = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let example = example.lines().nth(1).map(str::trim);
    if command.has_subcommands() {
        let names: Vec<&str> = visible(command).map(Command::get_name).collect();
        text.push_str(&format!("\nHas {}.\n", list(names)));
        for below in visible(command) {
            section(text, below, level + 1);
        }
        return;
    }
    let usage = command.clone().render_usage().to_string();
    text.push_str(&format!("\n```text\n{}\n```\n", usage.trim_start_matches("Usage: ")));
    if let Some(example) = example {
        text.push_str(&format!("\nExample: `{example}`\n"));
    }
    let is_own = |arg: &&Arg| {
        let is_help = matches!(arg.get_id().as_str(), "help" | "version");
        !is_help && !arg.is_global_set() && !arg.is_hide_set()
    };
    let own: Vec<&Arg> = command.get_arguments().filter(is_own).collect();
    if !own.is_empty() {
        text.push_str(&format!("\n{}", table(&own)));
    }
}

/// Paragraphs, each with its full stop.
fn sentences(about: &str) -> String {
    about.split("\n\n").map(|text| stopped(text.trim())).collect::<Vec<_>>().join("\n\n")
}

/// Help has no full stop where it is one sentence; a page does.
fn stopped(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', ':', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

fn table(args: &[&Arg]) -> String {
    let mut text = "| | |\n|---|---|\n".to_owned();
    for arg in args {
        text.push_str(&format!("| `{}` | {} |\n", cell(&spelling(arg)), cell(&meaning(arg))));
    }
    text
}

/// How it is typed.
fn spelling(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let is_flag = !arg.get_action().takes_values();
    let mut values: Vec<String> =
        if is_flag { Vec::new() } else { names.iter().map(|name| format!("<{name}>")).collect() };
    let max = arg.get_num_args().map_or(1, |range| range.max_values());
    if let (true, Some(last)) = (max > 1 && values.len() < max, values.last_mut()) {
        last.push_str("...");
    }
    let switch = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => Some(format!("-{short}, --{long}")),
        (Some(short), None) => Some(format!("-{short}")),
        (None, Some(long)) => Some(format!("--{long}")),
        (None, None) => None,
    };
    switch.into_iter().chain(values).collect::<Vec<_>>().join(" ")
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut parts = vec![sentences(&help.map(ToString::to_string).unwrap_or_default())];
    let takes_values = arg.get_action().takes_values();
    let possible = arg.get_possible_values();
    if takes_values && !possible.is_empty() {
        let names =
            possible.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name());
        parts.push(format!("One of {}.", list(names)));
    }
    let defaults = arg.get_default_values().iter().filter_map(|value| value.to_str());
    let defaults: Vec<&str> = defaults.filter(|value| !value.is_empty()).collect();
    if takes_values && !defaults.is_empty() {
        parts.push(format!("Default: {}.", list(defaults)));
    }
    parts.join(" ").trim_start().to_owned()
}
