//! Candidates for completions of a shell: tasks, sessions, hooks and agents of the project.

use std::collections::BTreeSet;

use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use hookloop_config::agents::profile::AGENT_PROFILES;
use hookloop_engine::project::Project;
use hookloop_engine::store::TaskFilter;

use super::context::CommandContext;
use super::{Cli, GlobalArgs};
use crate::error::CliResult;

/// The variable that a shell sets to ask for candidates.
pub(crate) const VARIABLE: &str = "COMPLETE";

/// Most candidates of one kind. A shell shows no more than a screen of them.
const CANDIDATES_MAX: usize = 200;
/// Longest description of a candidate.
const DESCRIPTION_MAX: usize = 60;

/// Answers a shell that asks for candidates or for its completion script.
pub(crate) fn answer() {
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
        Some("HOOK") => hooks,
        Some("AGENT") => agents,
        _ => return arg,
    };
    arg.add(ArgValueCandidates::new(candidates))
}

/// Returns candidates from the project of the current directory; none if it cannot be read.
fn in_project(
    find: impl FnOnce(&Project) -> CliResult<Vec<CompletionCandidate>>,
) -> Vec<CompletionCandidate> {
    let mut context = CommandContext::new(GlobalArgs::default());
    // A shell that completes shows no errors.
    context.project_to_read().and_then(|project| find(&project)).unwrap_or_default()
}

fn candidate(name: &str, description: &str) -> CompletionCandidate {
    let description = crate::sanitize::plain(description).to_string();
    let description: String = description.chars().take(DESCRIPTION_MAX).collect();
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

fn agents() -> Vec<CompletionCandidate> {
    in_project(|project| {
        let own = project.rules().agents.iter().map(|settings| settings.name.as_str());
        let known = AGENT_PROFILES.iter().map(|known| known.name);
        let names: BTreeSet<&str> = own.chain(known).collect();
        Ok(names.into_iter().take(CANDIDATES_MAX).map(|name| candidate(name, "")).collect())
    })
}
