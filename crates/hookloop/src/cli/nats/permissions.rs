use hookloop_config::project_file;
use hookloop_core::id::ProjectName;
use hookloop_engine::error::EngineError;
use hookloop_engine::store::{JetStreamLog, NatsPermissions, NatsRole};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};

/// Print what a NATS server must allow a user, for its configuration
///
/// The least that works: a user with these permissions reads and writes the projects that are named
/// and no others. Asks no server.
#[derive(clap::Args)]
pub(crate) struct NatsPermissionsArgs {
    /// The names of projects; that of this directory's if none is given
    projects: Vec<ProjectName>,

    /// What the user does: `worker`, `dispatcher` (also keeps snapshots) or `admin` (also makes the
    /// streams that are missing)
    #[arg(long, default_value = "worker")]
    role: NatsRole,

    /// The start of the subjects that the user's answers come on: `inbox` in its configuration. One
    /// of its own keeps others from reading them
    #[arg(long, default_value = "_INBOX", value_parser = inbox)]
    inbox: String,
}

fn inbox(text: &str) -> std::result::Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_subject = text.chars().all(fits) && text.split('.').all(|word| !word.is_empty());
    if is_subject {
        Ok(text.to_owned())
    } else {
        Err("letters, digits, `_`, `-` and single dots".to_owned())
    }
}

impl NatsPermissionsArgs {
    pub(crate) fn run(mut self, context: &mut CommandContext) -> CliResult {
        if self.projects.is_empty() {
            self.projects.push(this_project(context)?);
        }
        let permissions = NatsPermissions::new(&self.projects, self.role, &self.inbox);
        let out = &mut context.out;
        if out.json {
            let streams = self.projects.iter().map(JetStreamLog::stream_of).collect::<Vec<_>>();
            return out.json(&json!({
                "projects": self.projects.iter().map(ProjectName::as_str).collect::<Vec<_>>(),
                "streams": streams,
                "publish": { "allow": permissions.publish },
                "subscribe": { "allow": permissions.subscribe },
            }));
        }
        out.line("permissions: {")?;
        for (verb, subjects) in
            [("publish", &permissions.publish), ("subscribe", &permissions.subscribe)]
        {
            out.line(format_args!("  {verb}: {{ allow: ["))?;
            for subject in subjects {
                out.line(format_args!("    \"{subject}\""))?;
            }
            out.line("  ] }")?;
        }
        out.line("}")
    }
}

fn this_project(context: &CommandContext) -> CliResult<ProjectName> {
    let path = context.place()?.config();
    let settings = project_file::settings(&path, &context.user()?).map_err(EngineError::from)?;
    settings.project.ok_or_else(|| CliError::from(EngineError::NoProjectName { path }))
}
