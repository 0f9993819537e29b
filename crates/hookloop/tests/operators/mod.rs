//! What operators see of the program: traces at a collector, figures for Prometheus, lines of a log.

mod collector;
mod diagnostics;
mod failing;
mod figures;
mod lines;
mod traces;

use std::process::Command;

use crate::cli::Project;

/// Two turns: the first says that it is done and is not, the second is.
pub(crate) const TURNS: &str = r#"[
  {"say": "Done.\n<promise>COMPLETE</promise>", "write": {"answer.txt": "41\n"},
   "usage": {"inputTokens": 1200, "cachedTokens": 1000, "outputTokens": 80, "costMicros": 4200}},
  {"say": "Fixed.\n<promise>COMPLETE</promise>", "write": {"answer.txt": "42\n"},
   "usage": {"inputTokens": 900, "outputTokens": 40, "costMicros": 2100}}
]"#;

/// Hooks around both, and a gate that wants the right answer.
pub(crate) const HOOKS: &str = "hooks:
  session_start: [{name: hello, command: 'echo hello'}]
  pre_iteration: [{name: note, command: 'echo \"$TRACEPARENT\" >> parents', pipe_output: true}]
  stop: [{name: answer, command: 'grep -q 42 answer.txt'}]
  session_end: [{name: bye, command: 'echo \"$TRACEPARENT\" >> parents'}]
";

/// A trusted project with [`HOOKS`] and [`TURNS`].
pub(crate) fn project() -> Project {
    let project = Project::with_config(HOOKS);
    project.write("turns.json", TURNS);
    project.trust();
    project
}

pub(crate) const RUN: [&str; 4] = ["run", "make it 42", "--agent", "scripted:turns.json"];

/// The program with a collector, as a user has one.
pub(crate) fn to(project: &Project, endpoint: &str, args: &[&str]) -> Command {
    let mut command = project.hookloop(args);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    command
}
