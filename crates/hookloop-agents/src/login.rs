//! Detects whether an agent is logged in, by its files, by the environment and by the agent itself.
//!
//! A login may exist without a visible sign: in a keychain, or with a provider of the agent's own configuration. So
//! only the agent's own report that it is logged out prevents its start.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hookloop_config::agents::AgentSettings;
use hookloop_config::agents::profile::AgentProfile;
use hookloop_git::excerpt;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_process::{ExitReason, Job};

/// How long an agent may take to report its login. After that, the login is unknown.
const STATUS_WITHIN: Duration = Duration::from_secs(5);
/// The most of an agent's configuration that is read.
const CONFIG_MAX: u64 = 1024 * 1024;

/// Signs of a login.
struct LoginSigns {
    agent: &'static str,
    /// Files below the user's home directory.
    files: &'static [&'static str],
    /// A variable that names the directory of the agent's settings, and the file in it.
    elsewhere: Option<(&'static str, &'static str)>,
    variables: &'static [&'static str],
    command: &'static str,
    /// The command that reports the login by its exit code, 0 or 1, and a part of its text for 1.
    status: Option<(&'static [&'static str], &'static str)>,
}

const LOGINS: [LoginSigns; 4] = [
    LoginSigns {
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
        status: Some((&["auth", "status"], "\"loggedIn\": false")),
    },
    LoginSigns {
        agent: "codex",
        files: &[".codex/auth.json"],
        elsewhere: Some(("CODEX_HOME", "auth.json")),
        variables: &["OPENAI_API_KEY", "CODEX_API_KEY"],
        command: "codex login",
        status: Some((&["login", "status"], "Not logged in")),
    },
    LoginSigns {
        agent: "gemini",
        files: &[".gemini/oauth_creds.json", ".gemini/.env"],
        elsewhere: Some(("GEMINI_CLI_HOME", ".gemini/oauth_creds.json")),
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"],
        command: "gemini",
        status: None,
    },
    LoginSigns {
        agent: "opencode",
        files: &[".local/share/opencode/auth.json"],
        elsewhere: Some(("XDG_DATA_HOME", "opencode/auth.json")),
        variables: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"],
        command: "opencode auth login",
        status: None,
    },
];

/// Whether an agent is logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginState {
    /// A file or a variable shows a login. Its validity is unknown.
    Shown,
    /// Nothing shows a login, and the agent does not report one.
    Unknown { command: &'static str },
    /// The agent reports that it is logged out.
    LoggedOut { command: &'static str },
}

/// Looks for a login of the agent. If nothing shows one, asks the agent.
pub fn login_state(settings: &AgentSettings, runner: &ExecContext) -> LoginState {
    let Some(signs) = settings.known().and_then(signs_of) else { return LoginState::Shown };
    let command = signs.command;
    let is_configured = |name: &&str| {
        settings.env.iter().any(|(own, _)| own == *name)
            || settings.named.iter().any(|own| own == *name)
    };
    if signs.variables.iter().any(is_configured) || is_shown(signs, runner.environment()) {
        LoginState::Shown
    } else if says_logged_out(signs, settings, runner) {
        LoginState::LoggedOut { command }
    } else {
        LoginState::Unknown { command }
    }
}

/// Returns how a person logs a known agent in.
pub(super) fn remedy(known: &AgentProfile) -> String {
    match signs_of(known) {
        Some(LoginSigns { command, variables: [variable, ..], .. }) => {
            format!("Run `{command}`, or set a valid {variable}")
        }
        _ => format!("Log {} in, or give it a valid key", known.name),
    }
}

fn signs_of(known: &AgentProfile) -> Option<&'static LoginSigns> {
    // The adapters for ACP use the login of the agent that they adapt.
    let name = match known.name {
        "codex-acp" => "codex",
        "claude-agent-acp" => "claude",
        name => name,
    };
    LOGINS.iter().find(|signs| signs.agent == name)
}

fn variable<'e>(environment: &'e [(OsString, OsString)], wanted: &str) -> Option<&'e OsStr> {
    let found = environment.iter().find(|(name, value)| name == wanted && !value.is_empty());
    found.map(|(_, value)| value.as_os_str())
}

fn is_shown(signs: &LoginSigns, environment: &[(OsString, OsString)]) -> bool {
    let has = |directory: &Path, file: &str| directory.join(file).is_file();
    let home = variable(environment, "HOME").map(PathBuf::from);
    signs.variables.iter().any(|name| variable(environment, name).is_some())
        || signs.files.iter().any(|file| home.as_deref().is_some_and(|home| has(home, file)))
        || signs.elsewhere.is_some_and(|(name, file)| {
            variable(environment, name).is_some_and(|directory| has(Path::new(directory), file))
        })
}

/// Returns whether the agent reports that it is logged out and needs a login.
fn says_logged_out(signs: &LoginSigns, settings: &AgentSettings, runner: &ExecContext) -> bool {
    let Some((arguments, answer)) = signs.status else { return false };
    // Another program may not understand the question.
    let is_itself = |known: &&'static AgentProfile| {
        known.name == signs.agent && settings.word() == Some(known.program[0])
    };
    let Some(known) = settings.known().filter(is_itself) else { return false };
    if signs.agent == "codex" && has_own_provider(settings, runner.environment()) {
        return false;
    }
    let words = std::iter::once(&known.program[0]).chain(arguments);
    let argv = words.map(|word| OsString::from(*word)).collect();
    let mut env = crate::without_diagnostics(runner);
    for (name, value) in &settings.env {
        env.retain(|(known, _)| known.to_str() != Some(name));
        env.push((name.into(), value.into()));
    }
    let job = Job { env, ..Job::new(argv, runner.root().to_owned(), STATUS_WITHIN) };
    runner.keepers().run(job).is_ok_and(|ran| {
        let said = format!(
            "{}{}",
            excerpt::of_output(&ran.output.stdout),
            excerpt::of_output(&ran.output.stderr)
        );
        ran.exit == ExitReason::Exited(1) && said.contains(answer)
    })
}

/// Returns whether Codex is configured for a provider of the user's own, which needs no login at OpenAI.
fn has_own_provider(settings: &AgentSettings, environment: &[(OsString, OsString)]) -> bool {
    let names_one = |text: &str| text.contains("model_provider") || text.contains("--oss");
    if settings.args.iter().any(|argument| names_one(argument)) {
        return true;
    }
    let home = variable(environment, "HOME").map(|home| Path::new(home).join(".codex"));
    let own = variable(environment, "CODEX_HOME").map(PathBuf::from);
    let Some(directory) = own.or(home) else { return true };
    let config = directory.join("config.toml");
    match fs::metadata(&config) {
        Ok(file) if file.len() <= CONFIG_MAX => {
            fs::read_to_string(&config).map_or(true, |text| names_one(&text))
        }
        Ok(_) => true,
        Err(_) => false,
    }
}
