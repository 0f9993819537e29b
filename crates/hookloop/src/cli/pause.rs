//! `hookloop pause`

use hookloop_engine::session::control;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Have a running session rest before its next iteration
#[derive(clap::Args)]
pub(crate) struct PauseArgs {
    /// Its id, the start of it, or its name; the last one if it is not given
    session: Option<String>,
}

impl PauseArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = control::pause(&project, self.session.as_deref())?;
        let out = &mut context.out;
        if out.json {
            out.json(&json!({ "session": id, "asked": "pause" }))
        } else {
            out.line(format_args!("Session {id} pauses when its turn is over"))
        }
    }
}
