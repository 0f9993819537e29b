use hookloop_config::project_file;
use hookloop_core::id::ProjectName;
use hookloop_engine::error::EngineError;
use hookloop_engine::store::{JetStreamLog, NatsPermissions, NatsRole};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};

/// Print the permissions of a user for a NATS server
///
/// These are the fewest permissions that work: the user reads and writes the named projects only. The command contacts
/// no server.
#[derive(clap::Args)]
pub(crate) struct NatsPermissionsArgs {
    /// Names of projects [default: the project of this directory]
    projects: Vec<ProjectName>,

    /// Role: `worker`, `dispatcher` (adds snapshots) or `admin` (adds streams)
    #[arg(long, default_value = "worker")]
    role: NatsRole,

    /// Prefix of the subjects of the user's answers
    ///
    /// The value of `inbox_prefix` in the user's configuration. With a prefix of its own, no other user can read the
    /// answers.
    #[arg(long, value_name = "PREFIX", default_value = "_INBOX", value_parser = inbox_prefix)]
    inbox_prefix: String,
}

fn inbox_prefix(text: &str) -> std::result::Result<String, String> {
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
        let permissions = NatsPermissions::new(&self.projects, self.role, &self.inbox_prefix);
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
