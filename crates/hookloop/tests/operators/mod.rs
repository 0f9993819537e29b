//! Observability of the program: traces for a collector, metrics for Prometheus, logs.

mod collector;
mod diagnostics;
mod failing;
mod figures;
mod lines;
mod traces;

use std::process::Command;

use crate::cli::Project;

/// Two turns: both claim to be complete, the first wrongly.
pub(crate) const TURNS: &str = r#"[
  {"say": "Done.\n<promise>COMPLETE</promise>", "write": {"answer.txt": "41\n"},
   "usage": {"input_tokens": 1200, "cached_tokens": 1000, "output_tokens": 80, "cost_micros": 4200}},
  {"say": "Fixed.\n<promise>COMPLETE</promise>", "write": {"answer.txt": "42\n"},
   "usage": {"input_tokens": 900, "output_tokens": 40, "cost_micros": 2100}}
]"#;

/// Hooks around both turns, and a gate that requires the right answer.
pub(crate) const HOOKS: &str = "hooks:
  session_start: [{name: hello, command: 'echo hello'}]
  pre_iteration: [{name: note, command: 'echo \"$TRACEPARENT\" >> parents', pipe_output: true}]
  stop: [{name: answer, command: 'grep -q 42 answer.txt'}]
  session_end: [{name: bye, command: 'echo \"$TRACEPARENT\" >> parents'}]
";

/// Returns a trusted project with [`HOOKS`] and [`TURNS`].
pub(crate) fn project() -> Project {
    let project = Project::with_config(HOOKS);
    project.write("turns.json", TURNS);
    project.trust();
    project
}

pub(crate) const RUN: [&str; 4] = ["run", "make it 42", "--agent", "scripted:turns.json"];

/// Returns the program with a collector, configured by the environment.
pub(crate) fn to(project: &Project, endpoint: &str, args: &[&str]) -> Command {
    let mut command = project.hookloop(args);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    command
}
