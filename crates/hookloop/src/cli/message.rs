//! `hookloop message`

use hookloop_engine::session::{control, lookup};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::CliResult;

/// Send a message to a session's agent with its next prompt
#[derive(clap::Args)]
pub(crate) struct MessageArgs {
    /// Text of the message
    text: String,

    /// Id, start of the id, or name of the session [default: the last session]
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
            out.line(format_args!("The next prompt of session {id} contains the message"))
        } else {
            out.line(format_args!(
                "Session {id} is not running. The message is in its next prompt. Continue: hookloop resume {id}"
            ))
        }
    }
}
