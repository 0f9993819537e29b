//! The meaning of GitHub's errors.
//!
//! Status, headers and structured fields decide it. Messages are for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;
use ureq::http::HeaderMap;

use super::super::ForgeError;

/// The longest wait that is accepted. GitHub counts requests by the hour.
const WAIT_MAX: Duration = Duration::from_secs(60 * 60);
/// The most complaints of one answer that are passed on.
const COMPLAINTS_MAX: usize = 5;

/// A request that failed.
#[derive(Debug)]
pub(super) struct GithubRefusal {
    /// `None` without a readable answer.
    pub(super) status: Option<u16>,
    /// Fields of the request that GitHub reports as wrong.
    pub(super) fields: Vec<String>,
    /// The error, unless the caller knows more.
    pub(super) error: ForgeError,
}

impl From<GithubRefusal> for ForgeError {
    fn from(refusal: GithubRefusal) -> ForgeError {
        refusal.error
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RefusalBody {
    message: Option<String>,
    documentation_url: Option<String>,
    /// A list of objects or texts, sometimes a single text.
    errors: Value,
}

impl GithubRefusal {
    pub(super) fn plain(error: ForgeError) -> GithubRefusal {
        GithubRefusal { status: None, fields: Vec::new(), error }
    }

    pub(super) fn of_answer(
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
        words: impl Fn(&str) -> String,
    ) -> GithubRefusal {
        let told: RefusalBody = serde_json::from_slice(body).unwrap_or_default();
        let why = words(&told.text(status));
        let is_limited = told.is_about_limits() || is_spent(headers);
        let error = match status {
            429 => ForgeError::Retry { why, after: wait(headers) },
            403 if is_limited => ForgeError::Retry { why, after: wait(headers) },
            408 | 500.. => ForgeError::Retry { why, after: wait(headers) },
            401 => ForgeError::NeedsHuman {
                why,
                hint: "the token is not valid any more: run `gh auth login`, or set \
                       HOOKLOOP_GITHUB_TOKEN"
                    .to_owned(),
            },
            403 => ForgeError::NeedsHuman {
                why,
                hint: "give the token what it lacks: write access to contents and pull requests, \
                       read access to checks and commit statuses"
                    .to_owned(),
            },
            409 => ForgeError::Stale { why },
            301..=308 => ForgeError::Permanent {
                why: format!(
                    "{why}; the repository has moved: git remote set-url origin <its address>"
                ),
            },
            404 => ForgeError::Permanent {
                why: format!("{why}; it is not there, or the token does not let us see it"),
            },
            _ => ForgeError::Permanent { why },
        };
        let field = |error: &Value| error["field"].as_str().map(str::to_owned);
        let fields = told.errors().filter_map(field).collect();
        GithubRefusal { status: Some(status), fields, error }
    }

    /// Reads an error of GraphQL, whose HTTP status is always success.
    pub(super) fn of_graphql(error: &Value, words: impl Fn(&str) -> String) -> GithubRefusal {
        let message = error["message"].as_str().unwrap_or("it does not say why");
        let why = words(&format!("GitHub refused: {message}"));
        let error = match error["type"].as_str() {
            Some("RATE_LIMITED") => ForgeError::Retry { why, after: None },
            Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => ForgeError::NeedsHuman {
                why,
                hint: "give the token write access to pull requests".to_owned(),
            },
            _ => ForgeError::Permanent { why },
        };
        GithubRefusal::plain(error)
    }
}

impl RefusalBody {
    fn errors(&self) -> impl Iterator<Item = &Value> {
        let one = Some(&self.errors).filter(|errors| errors.is_string());
        self.errors.as_array().into_iter().flatten().chain(one)
    }

    fn text(&self, status: u16) -> String {
        let mut text = format!("GitHub answered {status}");
        let complaint = |error: &Value| {
            let word = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
            match (error.as_str(), error["message"].as_str()) {
                (Some(text), _) | (None, Some(text)) => text.to_owned(),
                (None, None) => format!("{} is {}", word("field"), word("code")),
            }
        };
        let complaints = self.errors().take(COMPLAINTS_MAX).map(complaint);
        for part in self.message.iter().cloned().chain(complaints) {
            text.push_str(": ");
            text.push_str(&part);
        }
        text
    }

    /// Returns whether the linked documentation is about rate limits. Some answers have no header for them.
    fn is_about_limits(&self) -> bool {
        self.documentation_url.as_ref().is_some_and(|page| page.contains("rate-limit"))
    }
}

fn is_spent(headers: &HeaderMap) -> bool {
    number(headers, "x-ratelimit-remaining") == Some(0) || headers.contains_key("retry-after")
}

/// Returns the time that the server asks to wait.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let asked = number(headers, "retry-after").map(Duration::from_secs);
    let reset = || {
        number(headers, "x-ratelimit-remaining").filter(|left| *left == 0)?;
        let at = UNIX_EPOCH
            + Duration::from_secs(number(headers, "x-ratelimit-reset")?.min(u64::from(u32::MAX)));
        Some(at.duration_since(SystemTime::now()).unwrap_or_default())
    };
    asked.or_else(reset).map(|wait| wait.min(WAIT_MAX))
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
