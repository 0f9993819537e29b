//! Who can do the work: installed, allowed, and known to its model as far as files tell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Finding, Group, Mend};
use crate::agents::repository::{self, Unfit, Wanted};
use crate::rules::Rules;
use crate::runner::Runner;

/// An agent that has not said its version by then is told as one that does not say.
const VERSION_WITHIN: Duration = Duration::from_secs(5);
/// What is proposed to who has no agent at all.
const AN_AGENT: &str = "npm install -g @anthropic-ai/claude-code";

/// What shows that an agent may ask its model. Nobody is asked whether that is still so.
struct Login {
    agent: &'static str,
    /// Below the user's directory.
    files: &'static [&'static str],
    /// A variable that names the directory of its settings, and the file there.
    elsewhere: Option<(&'static str, &'static str)>,
    variables: &'static [&'static str],
    command: &'static str,
}

const LOGINS: [Login; 4] = [
    Login {
        agent: "claude",
        files: &[".claude/.credentials.json"],
        elsewhere: Some(("CLAUDE_CONFIG_DIR", ".credentials.json")),
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
        ],
        command: "claude auth login",
    },
    Login {
        agent: "codex",
        files: &[".codex/auth.json"],
        elsewhere: Some(("CODEX_HOME", "auth.json")),
        variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
        command: "codex login",
    },
    Login {
        agent: "gemini",
        files: &[".gemini/oauth_creds.json", ".gemini/.env"],
        elsewhere: Some(("GEMINI_CLI_HOME", ".gemini/oauth_creds.json")),
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
        command: "gemini",
    },
    Login {
        agent: "opencode",
        files: &[".local/share/opencode/auth.json"],
        elsewhere: Some(("XDG_DATA_HOME", "opencode/auth.json")),
        variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
        command: "opencode auth login",
    },
];

/// Looks at the agents, and asks those that can be started for their versions, all at once.
pub fn examine_agents(rules: &Rules, runner: &Runner) -> Vec<Finding> {
    let names = repository::present(rules, runner.ground());
    if names.is_empty() {
        let message = "none that hookloop knows is installed";
        return vec![Group::Agents.warning("agents", message).typed(AN_AGENT)];
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            names.iter().map(|name| scope.spawn(|| examine(name, rules, runner))).collect();
        asked.into_iter().flat_map(|asked| asked.join().unwrap_or_default()).collect()
    })
}

fn examine(name: &str, rules: &Rules, runner: &Runner) -> Vec<Finding> {
    let about = format!("agent {name}");
    let fit = match repository::fit(rules, name, &Wanted::default(), runner.ground()) {
        Ok(fit) => fit,
        Err(error) => {
            let finding = Group::Agents.error(&about, error.to_string());
            let hint = error.hint();
            return vec![match (hint, &error) {
                // It says which rule, and whom to ask.
                (Some(hint), Unfit::Forbidden(_)) => finding.mended_by(Mend::Do(hint)),
                (Some(command), _) => finding.typed(command),
                (None, _) => finding,
            }];
        }
    };
    let version = repository::version(&fit.settings, runner, VERSION_WITHIN);
    let version = version.unwrap_or_else(|| "it does not tell its version".to_owned());
    let message = format!("{version}; it may {}", fit.settings.powers());
    let mut findings = vec![match fit.ignored.as_slice() {
        [] => Group::Agents.ok(&about, message),
        files => {
            let message = format!("{message}; it is kept from {}", files.join(", "));
            let mend = Mend::Type("hookloop agents trust".to_owned());
            Group::Agents.warning(&about, message).mended_by(mend)
        }
    }];
    let known = fit.settings.known().map(|known| known.name);
    let login = LOGINS.iter().find(|login| Some(login.agent) == known);
    let configured = |name: &&&str| fit.settings.env.iter().any(|(own, _)| own == **name);
    if let Some(login) = login
        && !login.variables.iter().any(|name| configured(&name))
        && !is_logged_in(login, runner.environment())
    {
        let message =
            "nothing shows that it is logged in: neither its file nor a key in the environment";
        findings.push(Group::Agents.warning(&about, message).typed(login.command));
    }
    findings
}

fn is_logged_in(login: &Login, environment: &[(OsString, OsString)]) -> bool {
    let variable = |wanted: &str| {
        environment
            .iter()
            .find(|(name, value)| name == wanted && !value.is_empty())
            .map(|(_, value)| value)
    };
    let has = |directory: &Path, file: &str| directory.join(file).is_file();
    let home = variable("HOME").map(PathBuf::from);
    login.variables.iter().any(|name| variable(name).is_some())
        || login.files.iter().any(|file| home.as_deref().is_some_and(|home| has(home, file)))
        || login.elsewhere.is_some_and(|(name, file)| {
            variable(name).is_some_and(|directory| has(Path::new(directory), file))
        })
}
