//! `hookloop pause`

use hookloop_engine::session::control;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Pause a running session before its next iteration
#[derive(clap::Args)]
pub(crate) struct PauseArgs {
    /// Id, start of the id, or name of the session [default: the last session]
    session: Option<String>,
}

impl PauseArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = control::pause(&project, self.session.as_deref())?;
        let out = &mut context.out;
        if out.json {
            out.json(&json!({ "session": id, "requested": "pause" }))
        } else {
            out.line(format_args!("Session {id} pauses when its turn is over"))
        }
    }
}
