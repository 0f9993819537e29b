//! `hookloop message`

use hookloop_engine::session::{control, lookup};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Tell the agent of a session something: its next prompt has it
#[derive(clap::Args)]
pub(crate) struct MessageArgs {
    /// What to tell it
    text: String,

    /// The session's id, the start of it, or its name; the last one if it is not given
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl MessageArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project()?;
        let id = control::message(&project, self.session.as_deref(), &self.text)?;
        let is_running = lookup::is_performed(&project, &lookup::find(&project, id.as_str())?);
        let out = &mut context.out;
        if out.json {
            return out.json(&json!({ "session": id, "sent": true, "running": is_running }));
        }
        if is_running {
            out.line(format_args!("The next prompt of session {id} has it"))
        } else {
            out.line(format_args!(
                "Session {id} does not run. Its next prompt has the message: hookloop resume {id}"
            ))
        }
    }
}
