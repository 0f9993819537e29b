//! The token for GitHub: kept in memory only, and never shown.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use hookloop_core::redact::SHORTEST_SECRET;
use hookloop_process::{ExitReason, Job, KeeperPool, find_program};

use super::super::ForgeError;

/// Meant for hookloop, so it goes to any host that the user configures.
const OWN: &str = "HOOKLOOP_GITHUB_TOKEN";
/// Meant for github.com and shown to no other host.
const USUAL: [&str; 2] = ["GH_TOKEN", "GITHUB_TOKEN"];
const GITHUB: &str = "github.com";
/// Tokens of GitHub have 40 to 255 characters; those of its apps may become longer.
const LENGTH_MAX: usize = 4096;
/// How long `gh` may take. It reads a file or asks the user's key ring.
const GH_WITHIN: Duration = Duration::from_secs(10);

/// A token.
#[derive(Clone, PartialEq, Eq)]
pub struct ForgeToken(String);

impl fmt::Debug for ForgeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl ForgeToken {
    /// Returns `None` if the text can't be a token: it would break a header, or could not be removed from messages.
    pub fn new(text: &str) -> Option<ForgeToken> {
        let is_sound = (SHORTEST_SECRET..=LENGTH_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_sound.then(|| ForgeToken(text.to_owned()))
    }

    /// Returns the user's token for a host: from the environment, else from GitHub's own program.
    pub fn of_user(asked: &TokenSearch<'_>) -> Result<ForgeToken, ForgeError> {
        let host = asked.host;
        let usual = USUAL.into_iter().filter(|_| host == GITHUB);
        for name in [OWN].into_iter().chain(usual) {
            let Some(value) = asked.variable(name).filter(|value| !value.is_empty()) else {
                continue;
            };
            let token = value.to_str().map(str::trim).and_then(ForgeToken::new);
            return token.ok_or_else(|| ForgeError::NeedsHuman {
                why: format!("the value of {name} is not a token"),
                hint: format!("set {name} to a token of {host}"),
            });
        }
        asked.of_gh().ok_or_else(|| ForgeError::NeedsHuman {
            why: format!("there is no token for {host}"),
            hint: format!("run `gh auth login --hostname {host}`, or set {OWN}"),
        })
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

/// The parameters of a search for a token.
#[derive(Clone, Copy, Debug)]
pub struct TokenSearch<'a> {
    /// The user's environment.
    pub environment: &'a [(OsString, OsString)],
    pub cwd: &'a Path,
    pub keepers: &'a KeeperPool,
    pub host: &'a str,
}

impl TokenSearch<'_> {
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    /// Returns the token that GitHub's own program has for this host, if the program is installed.
    fn of_gh(&self) -> Option<ForgeToken> {
        find_program("gh", self.variable("PATH")?)?;
        let argv = ["gh", "auth", "token", "--hostname", self.host].map(OsString::from).to_vec();
        let mut env = self.environment.to_vec();
        env.push(("GH_PROMPT_DISABLED".into(), "1".into()));
        let job = Job { env, ..Job::new(argv, self.cwd.to_owned(), GH_WITHIN) };
        let ran = self.keepers.run(job);
        let ran = ran.inspect_err(|error| tracing::warn!(%error, "`gh auth token` does not run"));
        let ran = ran.ok()?;
        if ran.exit != ExitReason::Exited(0) {
            tracing::debug!(host = self.host, exit = ?ran.exit, "`gh auth token` has no token");
            return None;
        }
        let said = ran.output.stdout.whole()?;
        ForgeToken::new(std::str::from_utf8(&said).ok()?.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_hidden_in_debug_output_and_invalid_ones_are_refused() {
        let token = ForgeToken::new("ghp_0123456789").unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
        for text in ["", "short", "a token", "line\nfeed123", "tökentöken", &"x".repeat(5000)] {
            assert_eq!(ForgeToken::new(text), None, "{text}");
        }
    }
}
