//! What a hook may be told beside what it does.

use std::fmt;
use std::str::FromStr;

use crate::limits::Limits;
use crate::point::Kind;

/// How long a hook may take if it does not say: a gate runs tests, a reaction says something.
const GATE_TIMEOUT_MS: u64 = 600_000;
const REACTION_TIMEOUT_MS: u64 = 60_000;
pub const TIMEOUT_MAX_MS: u64 = 24 * 60 * 60 * 1_000;
pub const ATTEMPTS_MAX: u32 = 10;
const BACKOFF_MS: u64 = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A CEL expression that must be true for the hook to run.
    pub when: Option<String>,
    pub timeout_ms: Option<u64>,
    pub pipe_output: PipeOutput,
    pub on_failure: OnFailure,
    pub env: Vec<EnvEntry>,
    /// Where it runs, from the project's directory.
    pub cwd: Option<String>,
    /// Hooks of the same point that must have passed before.
    pub needs: Vec<String>,
    /// It may run beside its neighbours that say the same.
    pub parallel: bool,
    pub retry: Retry,
    pub sandbox: Option<Sandbox>,
    pub limits: Limits,
}

impl Options {
    /// How long it may take at a point of this kind.
    pub fn timeout_at(&self, kind: Kind) -> u64 {
        self.timeout_ms.unwrap_or(match kind {
            Kind::Gate => GATE_TIMEOUT_MS,
            Kind::Reaction => REACTION_TIMEOUT_MS,
        })
    }
}

/// Whether what a hook prints is for the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipeOutput {
    #[default]
    Never,
    Always,
    OnFailure,
}

/// What a gate's failure means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// It blocks.
    #[default]
    Closed,
    /// It passes, with a warning.
    Open,
}

/// A variable of a hook's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvEntry {
    /// Let through as the user has it.
    Inherited(String),
    Set {
        name: String,
        value: String,
    },
}

impl EnvEntry {
    pub fn name(&self) -> &str {
        match self {
            EnvEntry::Inherited(name) | EnvEntry::Set { name, .. } => name,
        }
    }
}

/// How often a hook that failed is tried again. A hook that blocked has answered: it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Runs in all.
    pub attempts: u32,
    /// The pause before the second one; each further one is twice as long.
    pub backoff_ms: u64,
    /// A random part of each pause is left out.
    pub jitter: bool,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry { attempts: 1, backoff_ms: BACKOFF_MS, jitter: true }
    }
}

/// What a hook's processes may not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    pub no_network: bool,
    /// The only places it may write to; none for anywhere.
    pub write: Option<Vec<String>>,
}

/// A length of time as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLength {
    #[error(
        "`{0}` is not a length of time: write seconds, or a number with a unit: `500ms`, `30s`, `5m`, `1h`"
    )]
    Unreadable(String),
    #[error("{0} is longer than a day")]
    TooLong(Length),
    #[error("a length of time of 0 would end before it begins")]
    Zero,
}

impl Length {
    pub fn seconds(seconds: u64) -> Result<Length, BadLength> {
        Length { ms: seconds.saturating_mul(1_000) }.checked()
    }

    fn checked(self) -> Result<Length, BadLength> {
        match self.ms {
            0 => Err(BadLength::Zero),
            ms if ms > TIMEOUT_MAX_MS => Err(BadLength::TooLong(self)),
            _ => Ok(self),
        }
    }
}

impl FromStr for Length {
    type Err = BadLength;

    fn from_str(text: &str) -> Result<Length, BadLength> {
        let unreadable = || BadLength::Unreadable(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(unreadable)?;
        let (number, unit) = text.split_at(digits);
        let unit_ms = match unit.trim() {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(unreadable()),
        };
        let number: u64 = number.parse().map_err(|_| unreadable())?;
        Length { ms: number.saturating_mul(unit_ms) }.checked()
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ms {
            ms if ms % 3_600_000 == 0 => write!(f, "{}h", ms / 3_600_000),
            ms if ms % 60_000 == 0 => write!(f, "{}m", ms / 60_000),
            ms if ms % 1_000 == 0 => write!(f, "{}s", ms / 1_000),
            ms => write!(f, "{ms}ms"),
        }
    }
}

/// Variables that change what programs are run, or where they talk to: a repository does not set them.
pub fn is_dangerous_variable(name: &str) -> bool {
    const STARTS: [&str; 9] =
        ["LD_", "DYLD_", "HOOKLOOP_", "GIT_", "BASH_", "PYTHON", "PERL5", "RUBY", "NODE_"];
    const ENDS: [&str; 5] = ["_PROXY", "_BASE_URL", "_ENDPOINT", "_API_KEY", "_HOME"];
    const WHOLE: [&str; 16] = [
        "PATH",
        "HOME",
        "SHELL",
        "ENV",
        "IFS",
        "PS4",
        "SHELLOPTS",
        "CDPATH",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "BROWSER",
        "USER",
        "TMPDIR",
        "CLAUDE_PROJECT_DIR",
        "PROMPT_COMMAND",
    ];
    let name = name.to_ascii_uppercase();
    STARTS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| name.ends_with(end))
        || WHOLE.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_with_their_unit() {
        let check = |text: &str, ms: u64, shown: &str| {
            let length: Length = text.parse().unwrap();
            assert_eq!((length.ms, length.to_string().as_str()), (ms, shown), "{text}");
        };
        check("500ms", 500, "500ms");
        check("30s", 30_000, "30s");
        check("90s", 90_000, "90s");
        check("5m", 300_000, "5m");
        check("1h", 3_600_000, "1h");
        check("2 m", 120_000, "2m");
        for bad in ["", "30", "s", "5 minutes", "-1s", "1.5s", "1d", "99999999999999999999s"] {
            let error = bad.parse::<Length>().unwrap_err();
            assert!(matches!(error, BadLength::Unreadable(_)), "{bad}: {error}");
        }
        assert_eq!("0s".parse::<Length>(), Err(BadLength::Zero));
        assert!(matches!("25h".parse::<Length>(), Err(BadLength::TooLong(_))));
        assert!(matches!(Length::seconds(60_000_000), Err(BadLength::TooLong(_))));
    }

    #[test]
    fn a_repository_does_not_redirect_programs() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "HTTPS_PROXY",
            "https_proxy",
            "ANTHROPIC_BASE_URL",
            "CODEX_HOME",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
            "NODE_OPTIONS",
            "PYTHONPATH",
            "HOOKLOOP_STORE",
            "ENV",
        ] {
            assert!(is_dangerous_variable(name), "{name}");
        }
        for name in ["RUST_LOG", "CI", "SLACK_WEBHOOK", "GOFLAGS"] {
            assert!(!is_dangerous_variable(name), "{name}");
        }
    }
}
