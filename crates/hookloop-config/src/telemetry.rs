//! Settings for the export of traces.

use std::fmt;
use std::path::PathBuf;

use crate::secret_text::SecretSource;

/// The settings of the user's own file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryConfig {
    pub is_off: bool,
    pub endpoint: Option<String>,
    pub headers: Vec<(String, SecretSource)>,
    pub service_name: Option<String>,
    /// Certificates to trust instead of the default ones.
    pub ca: Option<PathBuf>,
    pub content: bool,
}

/// The settings of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TelemetryPolicy {
    pub is_off: bool,
    /// The only allowed endpoint.
    pub endpoint: Option<String>,
    pub no_content: bool,
}

impl fmt::Display for TelemetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = self.endpoint.as_ref().map(|endpoint| format!("to {endpoint}"));
        let to = if self.is_off { Some("off".to_owned()) } else { to };
        let content = self.no_content.then(|| "without content".to_owned());
        let words: Vec<String> = to.into_iter().chain(content).collect();
        f.write_str(&words.join(", "))
    }
}

/// Checks whether a URL can be an endpoint.
pub fn check_endpoint(url: &str) -> Result<(), String> {
    let wrong = "this is not a URL such as http://127.0.0.1:4318".to_owned();
    let Ok(uri) = url.parse::<http::Uri>() else { return Err(wrong) };
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    match uri.authority() {
        // The error does not repeat the URL, which may grant access.
        Some(authority) if authority.as_str().contains('@') => {
            Err("a URL has no password here: use headers".to_owned())
        }
        Some(_) if is_http => Ok(()),
        _ => Err(wrong),
    }
}
