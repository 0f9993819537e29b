//! The error that a user sees: the failure, and the next command to type.

mod engine;
mod session;
mod store;

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use hookloop_fleet::doctor::restore_hint;
use hookloop_git::repo::RepoError;
use serde_json::json;

/// The result of everything that can fail in front of the user.
pub(crate) type CliResult<T = ()> = std::result::Result<T, CliError>;

/// The kinds of failure; each has its exit code, which scripts may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The command is valid and was refused.
    Refused,
    /// The command line, the configuration or the input is wrong.
    Usage,
    /// The repository wants to run something that is not trusted.
    Untrusted,
    /// The system failed: files, disk, damage.
    System,
}

impl FailureKind {
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            FailureKind::Refused => 1,
            FailureKind::Usage => 2,
            FailureKind::Untrusted => 3,
            FailureKind::System => 70,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            FailureKind::Refused => "refused",
            FailureKind::Usage => "usage",
            FailureKind::Untrusted => "untrusted",
            FailureKind::System => "system",
        }
    }
}

/// The next step of a user after an error.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UserHint {
    /// A command to type.
    Command(String),
    /// A sentence.
    Advice(String),
}

impl UserHint {
    fn text(&self) -> &str {
        let (UserHint::Command(text) | UserHint::Advice(text)) = self;
        text
    }
}

impl fmt::Display for UserHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserHint::Command(command) => write!(f, "run `{}`", crate::sanitize::plain(command)),
            UserHint::Advice(advice) => write!(f, "{}", crate::sanitize::plain(advice)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct CliError {
    kind: FailureKind,
    message: String,
    hint: Option<UserHint>,
    /// Whether the file of the project's log is damaged or lost.
    is_log_damage: bool,
}

impl CliError {
    pub(crate) fn new(kind: FailureKind, message: impl ToString) -> CliError {
        CliError { kind, message: message.to_string(), hint: None, is_log_damage: false }
    }

    pub(crate) fn refused(message: impl ToString) -> CliError {
        CliError::new(FailureKind::Refused, message)
    }

    pub(crate) fn usage(message: impl ToString) -> CliError {
        CliError::new(FailureKind::Usage, message)
    }

    pub(crate) fn untrusted(message: impl ToString) -> CliError {
        CliError::new(FailureKind::Untrusted, message)
    }

    pub(crate) fn system(message: impl ToString) -> CliError {
        CliError::new(FailureKind::System, message)
    }

    /// An error of a repository, with its hint if a person has to act.
    pub(crate) fn of_repository(message: impl ToString, error: RepoError) -> CliError {
        match error {
            RepoError::NeedsHuman { hint, .. } => CliError::refused(message).advice(hint),
            _ => CliError::system(message),
        }
    }

    /// Adds the command that the user types next.
    pub(crate) fn hint(self, command: impl Into<String>) -> CliError {
        self.maybe_hint(Some(command.into()))
    }

    /// Adds the command that the user types next, if there is one.
    pub(crate) fn maybe_hint(self, command: Option<String>) -> CliError {
        CliError { hint: command.map(UserHint::Command), ..self }
    }

    /// Adds a sentence about the next step.
    pub(crate) fn advice(self, sentence: impl Into<String>) -> CliError {
        CliError { hint: Some(UserHint::Advice(sentence.into())), ..self }
    }

    /// An error about damage or loss of the log's file.
    fn log_damage(message: impl ToString) -> CliError {
        CliError { is_log_damage: true, ..CliError::system(message) }
    }

    /// Marks the error as one about damage of the log's file.
    pub(crate) fn about_damage(self) -> CliError {
        CliError { is_log_damage: true, ..self }
    }

    pub(crate) fn is_log_damage(&self) -> bool {
        self.is_log_damage
    }

    /// Returns the error as the result of a check that ran.
    pub(crate) fn into_refused(self) -> CliError {
        CliError { kind: FailureKind::Refused, ..self }
    }

    /// Adds the log's path, and a hint if there is none yet.
    pub(crate) fn about_log_file(self, file: &Path) -> CliError {
        let path = file.display().to_string();
        let message = if self.message.contains(&path) {
            self.message
        } else {
            format!("{path}: {}", self.message)
        };
        let hint = self.hint.unwrap_or_else(|| UserHint::Advice(restore_hint(file)));
        CliError { message, hint: Some(hint), ..self }
    }

    /// Returns the message and the hint in one line.
    pub(crate) fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn kind(&self) -> FailureKind {
        self.kind
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the next command to type, or the advice.
    pub(crate) fn tip(&self) -> Option<&str> {
        self.hint.as_ref().map(UserHint::text)
    }

    /// Whether the hint is a command, and not a sentence.
    pub(crate) fn has_command(&self) -> bool {
        matches!(self.hint, Some(UserHint::Command(_)))
    }

    /// Whether the reader has closed the output, which is no failure.
    fn is_broken_pipe(&self) -> bool {
        self.message == BROKEN_PIPE
    }

    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        if self.is_broken_pipe() {
            return ExitCode::SUCCESS;
        }
        let mut stderr = anstream::stderr().lock();
        let written = if as_json {
            let error =
                json!({"type": self.kind.name(), "message": self.message, "hint": self.tip()});
            writeln!(stderr, "{}", json!({ "error": error }))
        } else {
            let red = anstyle::AnsiColor::Red.on_default().bold();
            let cyan = anstyle::AnsiColor::Cyan.on_default();
            let message = crate::sanitize::plain_lines(&self.message, 4);
            let hint = match &self.hint {
                Some(hint) => format!("\n{cyan}hint:{cyan:#} {hint}"),
                None => String::new(),
            };
            writeln!(stderr, "{red}error:{red:#} {message}{hint}")
        };
        match written {
            Ok(()) => ExitCode::from(self.kind.exit_code()),
            Err(_) => ExitCode::FAILURE,
        }
    }
}

const BROKEN_PIPE: &str = "broken pipe";

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> CliError {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => CliError::system(BROKEN_PIPE),
            _ => CliError::system(error),
        }
    }
}

impl From<serde_json::Error> for CliError {
    fn from(error: serde_json::Error) -> CliError {
        match error.io_error_kind() {
            Some(kind) => std::io::Error::from(kind).into(),
            None => CliError::system(error),
        }
    }
}
