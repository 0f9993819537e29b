//! The settings of an agent: its program, its environment and its permissions.

use std::ffi::OsString;

use hookloop_core::hook::HookSource;

use super::profile::{AGENT_PROFILES, AgentDialect, AgentProfile, CostReport, known};

/// The permissions of an agent. No user is present during a turn to grant more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentPermissions {
    /// Read files.
    Read,
    /// Change the project's files too.
    #[default]
    Edit,
    /// Do everything that the user can.
    Full,
}

impl AgentPermissions {
    pub const ALL: [(AgentPermissions, &'static str); 3] = [
        (AgentPermissions::Read, "read"),
        (AgentPermissions::Edit, "edit"),
        (AgentPermissions::Full, "full"),
    ];

    pub fn name(self) -> &'static str {
        let named = AgentPermissions::ALL.iter().find(|(permissions, _)| *permissions == self);
        named.map_or("", |(_, name)| name)
    }
}

impl std::str::FromStr for AgentPermissions {
    type Err = String;

    fn from_str(text: &str) -> Result<AgentPermissions, String> {
        let found = AgentPermissions::ALL.into_iter().find(|(_, name)| *name == text);
        found.map(|(permissions, _)| permissions).ok_or("`read`, `edit` or `full`".to_owned())
    }
}

/// The program of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentProgram {
    /// A shell command.
    Line(String),
    /// A program and its first arguments.
    Words(Vec<String>),
}

/// An agent as the configuration, or only its name, describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    pub name: String,
    pub dialect: AgentDialect,
    /// The known agent that it is based on, if any.
    pub base: Option<&'static str>,
    pub program: AgentProgram,
    pub model: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Secrets in its environment.
    pub named: Vec<String>,
    pub permissions: AgentPermissions,
    /// Further permissions: rules for tools in the agent's own syntax, or kinds of tools with ACP.
    pub allowed_tools: Vec<String>,
    pub source: HookSource,
    /// The user trusts the repository's settings for this agent.
    pub takes_repository: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no agent `{name}`: {}, one of `agents:` in the configuration, `command:PROGRAM`, `acp:PROGRAM` or `scripted:FILE`",
    known_names()
)]
pub struct NoSuchAgent {
    pub name: String,
}

fn known_names() -> String {
    AGENT_PROFILES.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

impl AgentSettings {
    /// Returns an agent without configuration.
    pub fn of_name(name: &str) -> Result<AgentSettings, NoSuchAgent> {
        if let Some(known) = known(name) {
            return Ok(AgentSettings::of_known(known));
        }
        let of_line = |dialect, line: &str| AgentSettings {
            name: name.to_owned(),
            dialect,
            base: None,
            program: AgentProgram::Line(line.to_owned()),
            model: None,
            args: Vec::new(),
            env: Vec::new(),
            named: Vec::new(),
            permissions: AgentPermissions::default(),
            allowed_tools: Vec::new(),
            source: HookSource::User,
            takes_repository: false,
        };
        match name.split_once(':') {
            Some((_, rest)) if rest.trim().is_empty() => {}
            Some(("command", line)) => return Ok(of_line(AgentDialect::Command, line)),
            Some(("acp", line)) => return Ok(of_line(AgentDialect::Acp, line)),
            Some(("scripted", file)) => return Ok(of_line(AgentDialect::Scripted, file)),
            _ => {}
        }
        Err(NoSuchAgent { name: name.to_owned() })
    }

    pub fn of_known(known: &'static AgentProfile) -> AgentSettings {
        AgentSettings {
            name: known.name.to_owned(),
            dialect: known.dialect,
            base: Some(known.name),
            program: AgentProgram::Words(known.program.iter().map(ToString::to_string).collect()),
            model: None,
            args: Vec::new(),
            env: Vec::new(),
            named: Vec::new(),
            permissions: AgentPermissions::default(),
            allowed_tools: Vec::new(),
            source: HookSource::Builtin,
            takes_repository: false,
        }
    }

    pub fn known(&self) -> Option<&'static AgentProfile> {
        self.base.and_then(known)
    }

    /// Returns the command with the adapter's arguments, then the configured ones, then `last`.
    pub fn argv(&self, ours: Vec<OsString>, last: &[&str]) -> Vec<OsString> {
        let configured = self.args.iter().map(OsString::from);
        let last = last.iter().map(OsString::from);
        let args: Vec<OsString> = ours.into_iter().chain(configured).chain(last).collect();
        let mut argv: Vec<OsString> = match &self.program {
            AgentProgram::Line(line) if args.is_empty() => {
                ["/bin/sh", "-c", line].map(Into::into).to_vec()
            }
            // The arguments go to the last command of the line.
            AgentProgram::Line(line) => {
                let line = format!("{line} \"$@\"");
                ["/bin/sh", "-c", &line, "sh"].map(Into::into).to_vec()
            }
            AgentProgram::Words(words) => words.iter().map(OsString::from).collect(),
        };
        argv.extend(args);
        argv
    }

    /// Returns the word that must be an installed program.
    pub fn word(&self) -> Option<&str> {
        match (&self.program, self.dialect) {
            (_, AgentDialect::Scripted) => None,
            (AgentProgram::Words(words), _) => words.first().map(String::as_str),
            (AgentProgram::Line(line), _) => first_program(line),
        }
    }

    /// Returns whether the agent reports the cost of a turn.
    pub fn cost_report(&self) -> CostReport {
        match (self.known(), self.dialect) {
            (Some(known), _) => known.cost,
            // A scripted agent uses no model.
            (None, AgentDialect::Scripted) => CostReport::Always,
            (None, AgentDialect::Acp) => CostReport::SomeModels,
            (None, _) => CostReport::Never,
        }
    }
}

/// Words with a special meaning at the beginning of a shell command.
const SHELL_WORDS: &[&str] = &[
    "alias", "bg", "case", "cd", "command", "do", "done", "echo", "elif", "else", "esac", "eval",
    "exec", "exit", "export", "false", "fg", "fi", "for", "function", "getopts", "hash", "if",
    "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
];

/// Returns the program that a shell command starts first, if its first word is plain. The shell finds every other
/// one.
fn first_program(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-@%".contains(&byte);
    let is_program = word.bytes().all(is_plain) && word != "." && !SHELL_WORDS.contains(&word);
    is_program.then_some(word)
}
