//! `hookloop policy`

use hookloop_config::located::PolicyLine;
use serde_json::{Value, json};

use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::{BOLD, DIM, TableCell};
use crate::sanitize::plain;

/// Show the policy of this machine with files and line numbers
///
/// Policies take precedence over your own configuration and over projects: /etc/hookloop/policy.yaml, if it exists, and
/// the file that HOOKLOOP_POLICY names. The command also shows the sources of your own secrets, and never their values.
#[derive(clap::Args)]
pub(crate) struct PolicyArgs {}

impl PolicyArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let user = context.user()?;
        let own = user.secrets.lines();
        let out = &mut context.out;
        if out.json {
            let files: Vec<String> =
                user.policy.list().iter().map(|policy| policy.path.display().to_string()).collect();
            let rules: Vec<Value> = user.policy.lines().iter().map(to_json).collect();
            let own: Vec<Value> = own.iter().map(to_json).collect();
            return out.json(&json!({ "files": files, "rules": rules, "own_secrets": own }));
        }
        if user.policy.is_none() {
            out.line("No policy applies.")?;
        }
        let lines = user.policy.lines().into_iter().chain(own);
        let row = |line: PolicyLine| {
            vec![
                TableCell::new(plain(&line.rule)).style(BOLD),
                TableCell::new(plain(&line.value)),
                TableCell::new(plain(&line.at.to_string())).style(DIM),
            ]
        };
        let rows: Vec<_> = lines.map(row).collect();
        out.table(&["rule", "", "from"], &rows)
    }
}

fn to_json(line: &PolicyLine) -> Value {
    json!({
        "rule": line.rule,
        "value": line.value,
        "file": line.at.path.display().to_string(),
        "line": line.at.line,
    })
}
