//! Parsers of option values that several commands share.

use hookloop_config::agents::AgentPermissions;
use hookloop_core::options::Length;

/// Parses a length of time such as `90s` or `8h` into milliseconds.
pub(super) fn length(text: &str) -> std::result::Result<u64, String> {
    let length: std::result::Result<Length, _> = text.parse();
    length.map(|length| length.ms).map_err(|error| error.to_string())
}

/// Parses a pattern of paths.
pub(super) fn pattern(text: &str) -> std::result::Result<String, String> {
    hookloop_config::patterns::glob(text).map(|_| text.to_owned())
}

/// Parses the permissions of an agent, and returns their name.
pub(super) fn permissions(text: &str) -> std::result::Result<String, String> {
    text.parse::<AgentPermissions>().map(|permissions| permissions.name().to_owned())
}
