//! What is known of an agent before it is started: which program, with what, and what it may do.

use std::ffi::OsString;
use std::fmt;

use hookloop_core::hook::HookSource;

use super::profile::{CostReport, Dialect, KNOWN, Known, known};

/// What an agent may do without being asked, since nobody is there to ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permissions {
    /// Read files.
    Read,
    /// Change the project's files too.
    #[default]
    Edit,
    /// Everything that the user can.
    Full,
}

impl Permissions {
    pub const ALL: [(Permissions, &'static str); 3] =
        [(Permissions::Read, "read"), (Permissions::Edit, "edit"), (Permissions::Full, "full")];

    pub fn name(self) -> &'static str {
        let named = Permissions::ALL.iter().find(|(permissions, _)| *permissions == self);
        named.map_or("", |(_, name)| name)
    }
}

impl std::str::FromStr for Permissions {
    type Err = String;

    fn from_str(text: &str) -> Result<Permissions, String> {
        let found = Permissions::ALL.into_iter().find(|(_, name)| *name == text);
        found.map(|(permissions, _)| permissions).ok_or("`read`, `edit` or `full`".to_owned())
    }
}

/// The program of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A line for the shell.
    Line(String),
    /// A program and its first arguments.
    Words(Vec<String>),
}

/// An agent as the configuration, or its name alone, describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub name: String,
    pub dialect: Dialect,
    /// The one of the known agents that it is.
    pub base: Option<&'static str>,
    pub program: Program,
    pub model: Option<String>,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Secrets that it is started with.
    pub named: Vec<String>,
    pub permissions: Permissions,
    /// What it may do beside: rules for tools in the agent's own words, or kinds of tools with ACP.
    pub allow: Vec<String>,
    pub source: HookSource,
    /// The user agreed to what the repository brings for this agent.
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
    KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

impl Settings {
    /// An agent of which nothing is configured.
    pub fn of_name(name: &str) -> Result<Settings, NoSuchAgent> {
        if let Some(known) = known(name) {
            return Ok(Settings::of_known(known));
        }
        let of_line = |dialect, line: &str| Settings {
            name: name.to_owned(),
            dialect,
            base: None,
            program: Program::Line(line.to_owned()),
            model: None,
            args: Vec::new(),
            env: Vec::new(),
            named: Vec::new(),
            permissions: Permissions::default(),
            allow: Vec::new(),
            source: HookSource::User,
            takes_repository: false,
        };
        match name.split_once(':') {
            Some((_, rest)) if rest.trim().is_empty() => {}
            Some(("command", line)) => return Ok(of_line(Dialect::Command, line)),
            Some(("acp", line)) => return Ok(of_line(Dialect::Acp, line)),
            Some(("scripted", file)) => return Ok(of_line(Dialect::Scripted, file)),
            _ => {}
        }
        Err(NoSuchAgent { name: name.to_owned() })
    }

    pub fn of_known(known: &'static Known) -> Settings {
        Settings {
            name: known.name.to_owned(),
            dialect: known.dialect,
            base: Some(known.name),
            program: Program::Words(known.program.iter().map(ToString::to_string).collect()),
            model: None,
            args: Vec::new(),
            env: Vec::new(),
            named: Vec::new(),
            permissions: Permissions::default(),
            allow: Vec::new(),
            source: HookSource::Builtin,
            takes_repository: false,
        }
    }

    pub fn known(&self) -> Option<&'static Known> {
        self.base.and_then(known)
    }

    /// What is started, with arguments of ours and the configured ones after them.
    pub fn argv(&self, ours: Vec<OsString>, last: &[&str]) -> Vec<OsString> {
        let configured = self.args.iter().map(OsString::from);
        let last = last.iter().map(OsString::from);
        let args: Vec<OsString> = ours.into_iter().chain(configured).chain(last).collect();
        let mut argv: Vec<OsString> = match &self.program {
            Program::Line(line) if args.is_empty() => {
                ["/bin/sh", "-c", line].map(Into::into).to_vec()
            }
            // Arguments are the line's last command's.
            Program::Line(line) => {
                let line = format!("{line} \"$@\"");
                ["/bin/sh", "-c", &line, "sh"].map(Into::into).to_vec()
            }
            Program::Words(words) => words.iter().map(OsString::from).collect(),
        };
        argv.extend(args);
        argv
    }

    /// The word that has to be a program for it to start.
    pub fn word(&self) -> Option<&str> {
        match (&self.program, self.dialect) {
            (_, Dialect::Scripted) => None,
            (Program::Words(words), _) => words.first().map(String::as_str),
            (Program::Line(line), _) => first_program(line),
        }
    }

    /// Whether it reports what a turn cost.
    pub fn cost_report(&self) -> CostReport {
        match (self.known(), self.dialect) {
            (Some(known), _) => known.cost,
            // No model is asked.
            (None, Dialect::Scripted) => CostReport::Always,
            (None, Dialect::Acp) => CostReport::SomeModels,
            (None, _) => CostReport::Never,
        }
    }

    /// What it may do, for who starts it.
    pub fn powers(&self) -> Powers<'_> {
        Powers(self)
    }
}

/// Words with a meaning of their own at the beginning of a line for `sh`.
const SHELL_WORDS: &[&str] = &[
    "alias", "bg", "case", "cd", "command", "do", "done", "echo", "elif", "else", "esac", "eval",
    "exec", "exit", "export", "false", "fg", "fi", "for", "function", "getopts", "hash", "if",
    "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift",
    "source", "test", "then", "time", "times", "trap", "true", "type", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
];

/// The program that a line for `sh` starts first, if that is plain from its first word. The shell finds every other one.
fn first_program(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/+-@%".contains(&byte);
    let is_program = word.bytes().all(is_plain) && word != "." && !SHELL_WORDS.contains(&word);
    is_program.then_some(word)
}

/// What an agent may do, in words.
#[derive(Debug)]
pub struct Powers<'s>(&'s Settings);

impl fmt::Display for Powers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.0;
        let has_sandbox = matches!(settings.base, Some("codex" | "codex-acp"));
        let text = match (settings.dialect, settings.permissions) {
            (Dialect::Command, _) => "do what the program does: hookloop keeps nothing from it",
            (Dialect::Scripted, _) => "play the turns in its file",
            (_, Permissions::Full) => "do EVERYTHING that you can, without being asked",
            (_, Permissions::Read) if has_sandbox => {
                "read files and run commands that change nothing, in its sandbox"
            }
            (_, Permissions::Edit) if has_sandbox => {
                "change files here and run commands, in its sandbox without network"
            }
            // Nobody knows what it asks for.
            (_, Permissions::Read) if settings.base.is_none() => {
                "do what it does not ask for, and read files"
            }
            (_, Permissions::Edit) if settings.base.is_none() => {
                "do what it does not ask for, and read and change files here"
            }
            (_, Permissions::Read) => "read files; it may not change any or run commands",
            (_, Permissions::Edit) => "read and change files here; it may not run commands",
        };
        f.write_str(text)?;
        match settings.allow.as_slice() {
            [] => Ok(()),
            allow => write!(f, "; beside that {}", allow.join(", ")),
        }
    }
}
