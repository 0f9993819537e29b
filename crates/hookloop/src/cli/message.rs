//! `hookloop message`

use hookloop_engine::session::open;
use serde_json::json;

use super::Context;
use crate::output::Result;

/// Tell the agent of a session something: its next prompt has it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to tell it
    text: String,

    /// The session's id, the start of it, or its name; the last one if it is not given
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

impl Args {
    pub(crate) fn run(self, context: &mut Context) -> Result {
        let project = context.project()?;
        let id = open::message(&project, self.session.as_deref(), &self.text)?;
        let out = &mut context.out;
        match out.json {
            true => out.json(&json!({ "session": id, "sent": true })),
            false => out.line(format_args!("The next prompt of session {id} has it")),
        }
    }
}
