//! Candidates for completions of a shell: tasks, sessions, hooks and agents of the project.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use hookloop_core::excerpt::first_chars;
use hookloop_engine::project::Project;
use hookloop_engine::store::TaskFilter;

use super::context::CommandContext;
use super::{Cli, GlobalArgs, agents};
use crate::error::CliResult;

/// The variable that a completion script sets to ask for candidates.
pub(crate) const VARIABLE: &str = "HOOKLOOP_COMPLETE";
/// The first argument of a completion script; the words of the command line follow.
const WORDS_FOLLOW: &str = "--";

/// Most candidates of one kind. A shell shows no more than a screen of them.
const CANDIDATES_MAX: usize = 200;
/// Longest description of a candidate.
const DESCRIPTION_MAX: usize = 60;

/// Answers a completion script that asks for candidates. Does nothing for any other call.
///
/// The variable alone is not enough: a gate that inherits it must run.
pub(crate) fn answer() {
    let is_asked = env::var_os(VARIABLE).is_some()
        && env::args_os().nth(1).is_some_and(|argument| argument == WORDS_FOLLOW);
    if !is_asked {
        return;
    }
    clap_complete::CompleteEnv::with_factory(parser).var(VARIABLE).complete();
}

fn parser() -> Command {
    let mut parser = Cli::command();
    // Arguments of commands are deferred until the parser is built.
    parser.build();
    with_candidates(parser)
}

/// Adds candidates to the arguments whose values are names of the project.
fn with_candidates(command: Command) -> Command {
    command.mut_args(with_names).mut_subcommands(with_candidates)
}

fn with_names(arg: Arg) -> Arg {
    let value = arg.get_value_names().and_then(|names| names.first()).map(|name| name.to_string());
    let candidates: fn() -> Vec<CompletionCandidate> = match value.as_deref() {
        Some("TASK") => tasks,
        Some("SESSION") => sessions,
        Some("HOOK" | "GATE") => hooks,
        Some("AGENT") => agent_names,
        _ => return arg,
    };
    arg.add(ArgValueCandidates::new(candidates))
}

/// Returns candidates from the project of the command line; none if it cannot be read.
///
/// A project without a log on this machine has none: completion creates no file and connects to no server.
fn in_project(
    find: impl FnOnce(&Project) -> CliResult<Vec<CompletionCandidate>>,
) -> Vec<CompletionCandidate> {
    let directory = directory_in(env::args_os().skip(1));
    let mut context = CommandContext::new(GlobalArgs { directory, ..GlobalArgs::default() });
    let has_local_log = context.place().is_ok_and(|place| place.database().is_file());
    if !has_local_log || env::var_os("HOOKLOOP_STORE").is_some() {
        return Vec::new();
    }
    // A shell that completes shows no errors.
    context.project_to_read().and_then(|project| find(&project)).unwrap_or_default()
}

/// Returns the directory that `-C` or `--directory` names in a command line.
fn directory_in(mut words: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    while let Some(word) = words.next() {
        if word == "-C" || word == "--directory" {
            return words.next().map(PathBuf::from);
        }
        let text = word.to_str().unwrap_or_default();
        if let Some(directory) = text.strip_prefix("--directory=") {
            return Some(PathBuf::from(directory));
        }
    }
    None
}

fn candidate(name: &str, description: &str) -> CompletionCandidate {
    let description = crate::sanitize::plain(description).to_string();
    let description = first_chars(&description, DESCRIPTION_MAX);
    CompletionCandidate::new(name).help(Some(description.into()))
}

fn tasks() -> Vec<CompletionCandidate> {
    in_project(|project| {
        let filter = TaskFilter { limit: Some(CANDIDATES_MAX), ..TaskFilter::default() };
        let rows = project.read(|view| view.list(&filter))?;
        let tasks = rows.iter().map(|row| candidate(row.task.id.as_str(), &row.task.spec.goal));
        Ok(tasks.collect())
    })
}

fn sessions() -> Vec<CompletionCandidate> {
    in_project(|project| {
        let rows = project.read(|view| view.sessions(CANDIDATES_MAX))?;
        Ok(rows.iter().map(|row| candidate(row.id.as_str(), &row.work)).collect())
    })
}

fn hooks() -> Vec<CompletionCandidate> {
    in_project(|project| {
        let registry = project.hooks()?;
        let hooks = registry.list().iter().take(CANDIDATES_MAX);
        Ok(hooks.map(|hook| candidate(&hook.name, "")).collect())
    })
}

fn agent_names() -> Vec<CompletionCandidate> {
    in_project(|project| {
        let names = agents::names(project.rules());
        Ok(names.into_iter().take(CANDIDATES_MAX).map(|name| candidate(name, "")).collect())
    })
}
