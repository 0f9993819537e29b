//! Failures of an agent that no further turn removes: no login, a rejected key, a rejected command line.
//!
//! Agents repeat the messages of their provider and of their argument parser, so the words decide. Only text that
//! the agent itself reports as an error is read, never text of its model.

use std::sync::LazyLock;

use hookloop_config::agents::profile::known;
use hookloop_core::excerpt::first_chars;
use hookloop_core::session::{AgentFault, FaultCause};
use regex::Regex;

use super::login;

/// The longest line of stderr that a report keeps.
const STDERR_LINE_MAX: usize = 300;

// The patterns are constants, and the tests compile each of them: none is absent.

/// The provider rejects the key, or there is no key.
static LOGIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?ix)
        \b401\b | unauthori[sz]ed\b | unauthenticated\b | not\ (?:logged|signed)\ in
        | please\ (?:run\ /login | log\ ?in | sign\ in | set\ an\ auth)
        | (?:invalid|incorrect|missing|no)\ (?:x-)?api.?key | provide\ (?:an?|your)\ api.?key | api.?key\ (?:is\ )?(?:not\ (?:valid|found|set)|invalid|missing|required)
        | api_key_invalid | invalid_api_key | _API_KEY\b[^\n]{0,60}(?:not\ set|not\ found|missing|required|environment\ variable)
        | no\ auth\ credentials | authentication[_\ ](?:required|failed|error) | auth_required | invalid\ authentication
        | (?:oauth|access|refresh|bearer)\ token\b[^\n]{0,40}(?:expired|revoked|invalid|missing)
        | missing\ (?:bearer|authorization|credentials)";
    Regex::new(words).ok()
});
/// The agent's argument parser rejects an option or a value: commander, clap and yargs.
static USAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?imx)
        ^\s*error:\ (?: unknown\ (?:option|command) | option\ .*\ argument\ .*\ is\ invalid | unexpected\ argument
            | invalid\ value | unrecognized\ subcommand | the\ argument\ | a\ value\ is\ required
            | the\ following\ required | missing\ required\ argument | too\ many\ arguments ).*$
        | ^\s*(?: unknown\ arguments?: | invalid\ values: | not\ enough\ (?:non-option\ )?arguments
            | missing\ required\ arguments?: ).*$";
    Regex::new(words).ok()
});
/// The requested model is not available to this user.
static MODEL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = r"(?ix)
        issue\ with\ the\ selected\ model | model_not_found
        | \bmodel\b[^\n]{0,80}(?:does\ not\ exist|not\ found|is\ not\ supported)";
    Regex::new(words).ok()
});
/// A line that states an error, among others.
static TELLING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\s*(?:(?:fatal|panic|\w*error)\b.*[^{,]|thread '.*' panicked.*)$").ok()
});

/// The texts of a failed turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedTurn<'a> {
    /// The known agent that ran, if it is one.
    pub(super) base: Option<&'static str>,
    /// The agent's own error; empty if its process ended without one.
    pub(super) error: &'a str,
    pub(super) stderr: &'a str,
}

impl FailedTurn<'_> {
    /// Returns the fault of the agent, if another turn would fail for the same cause.
    pub(super) fn fault(&self) -> Option<AgentFault> {
        // If the agent reports an error itself, stderr is ignored.
        let said = if self.error.is_empty() { self.stderr } else { self.error };
        let is = |words: &LazyLock<Option<Regex>>, text: &str| {
            words.as_ref().is_some_and(|words| words.is_match(text))
        };
        let cause = if self.error.is_empty() && is(&USAGE, self.stderr) {
            FaultCause::Usage
        } else if is(&LOGIN, said) {
            FaultCause::Login
        } else if is(&MODEL, said) {
            return Some(AgentFault { cause: FaultCause::Usage, remedy: other_model() });
        } else {
            return None;
        };
        Some(AgentFault { cause, remedy: remedy(cause, self.base) })
    }
}

/// Returns the next step for a person.
pub(super) fn remedy(cause: FaultCause, base: Option<&'static str>) -> String {
    let of_base = base.and_then(known);
    match (cause, of_base) {
        (FaultCause::Login, Some(known)) => login::remedy(known),
        (FaultCause::Login, None) => "Log the agent in, or give it a valid key".to_owned(),
        (FaultCause::Version | FaultCause::Missing, Some(known)) => {
            format!("Run `{}`", known.install_command())
        }
        (FaultCause::Usage, Some(known)) => format!(
            "Upgrade it with `{}`, or check `args:` and `model:` of the agent in your configuration",
            known.install_command()
        ),
        (_, _) => "Check the agent's command in your configuration".to_owned(),
    }
}

fn other_model() -> String {
    "Name another model with `--model`, or in `agents:` of your configuration".to_owned()
}

/// Returns the line of stderr that says most about a failure: the last that states an error, else the last.
pub(super) fn telling_line(stderr: &str) -> Option<String> {
    let last = || stderr.lines().rev().find(|line| !line.trim().is_empty()).map(cut);
    error_line(stderr).or_else(last)
}

/// Returns the last line of stderr that states an error.
pub(super) fn error_line(stderr: &str) -> Option<String> {
    let usage = USAGE.as_ref().and_then(|usage| usage.find(stderr)).map(|found| found.as_str());
    let is_error = |line: &&str| TELLING.as_ref().is_some_and(|telling| telling.is_match(line));
    usage.or_else(|| stderr.lines().rev().find(is_error)).map(cut)
}

fn cut(line: &str) -> String {
    first_chars(line.trim(), STDERR_LINE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(error: &str, stderr: &str) -> Option<FaultCause> {
        FailedTurn { base: Some("claude"), error, stderr }.fault().map(|fault| fault.cause)
    }

    #[test]
    fn a_rejected_key_is_a_login_fault() {
        for error in [
            "api_error: Not logged in · Please run /login",
            "api_error 401: Invalid API key · Fix external API key",
            "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header",
            "Authentication required",
            "the agent can't do `session/new`: Authentication required (Gemini API key is missing or not configured.)",
            "[API Error: API key not valid. Please pass a valid API key.]",
            "Incorrect API key provided: sk-…",
            "OAuth token has expired",
            "Internal error: You didn't provide an API key. ({\"errorName\":\"APIError\"})",
        ] {
            assert_eq!(cause(error, ""), Some(FaultCause::Login), "{error}");
        }
    }

    #[test]
    fn a_rejected_command_line_is_a_usage_fault() {
        for stderr in [
            "error: unknown option '--permission-prompts'\n(Did you mean --permission-mode?)",
            "error: option '--permission-mode <mode>' argument 'manual' is invalid. Allowed choices are plan.",
            "error: unexpected argument '--nope' found\n\nUsage: codex exec\n\nFor more information, try '--help'.",
            "Unknown argument: nope\n\ngemini [options]\n  --help  Show help",
        ] {
            assert_eq!(cause("", stderr), Some(FaultCause::Usage), "{stderr}");
            let line = telling_line(stderr).unwrap();
            assert_eq!(Some(line.as_str()), stderr.lines().next(), "{stderr}");
        }
    }

    #[test]
    fn other_failures_are_no_fault_of_the_agent() {
        for (error, stderr) in [
            ("api_error 500: the model is down", ""),
            ("API Error: 529 Overloaded", ""),
            ("line 1401 of main.rs", ""),
            ("stream disconnected before completion", ""),
            ("", "Killed"),
            ("", "thread 'main' panicked at src/main.rs:1:1"),
            // If the agent reports another error, the output of a tool is ignored.
            ("api_error 500: down", "error: unexpected argument '--nope' found"),
        ] {
            assert_eq!(cause(error, stderr), None, "{error} {stderr}");
        }
    }

    #[test]
    fn the_reported_line_of_stderr_is_the_error_line() {
        let check = |stderr: &str, expected: Option<&str>| {
            assert_eq!(telling_line(stderr).as_deref(), expected, "{stderr}");
        };
        check("", None);
        check("one\ntwo\n\n", Some("two"));
        check("Error: no such file\n    at main\n", Some("Error: no such file"));
        let long = "x".repeat(STDERR_LINE_MAX * 2);
        assert_eq!(telling_line(&long).map(|line| line.len()), Some(STDERR_LINE_MAX));
    }

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&*LOGIN, &*USAGE, &*MODEL, &*TELLING] {
            assert!(pattern.is_some());
        }
    }
}
