//! Texts that must stay secret: their sources, and a type that does not print them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use hookloop_core::redact::SHORTEST_SECRET;

use crate::known_secrets;

/// The longest text that is read.
const LENGTH_MAX: usize = 4096;

/// A text that grants access.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn is_url(&self) -> bool {
        let rest = self.0.strip_prefix("https://").or_else(|| self.0.strip_prefix("http://"));
        let is_sound = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_graphic());
        self.0.len() <= LENGTH_MAX && rest.is_some_and(is_sound)
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> SecretText {
        SecretText(text)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The source of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    Text(SecretText),
    Variable(String),
    File(PathBuf),
}

impl SecretSource {
    /// Returns the text, or the reason why there is none.
    pub fn find(&self, environment: &[(OsString, OsString)]) -> Result<SecretText, String> {
        let (text, place) = match self {
            SecretSource::Text(text) => {
                known_secrets::remember([("secret", OsStr::new(text.reveal()))]);
                return Ok(text.clone());
            }
            SecretSource::Variable(name) => {
                let found = environment.iter().find(|(known, _)| known == name.as_str());
                let text = found.map(|(_, value)| value.to_string_lossy().into_owned());
                (text.ok_or_else(|| format!("{name} is not set"))?, name.clone())
            }
            SecretSource::File(path) => {
                let failed = |error: std::io::Error| format!("{}: {error}", path.display());
                let mut bytes = Vec::new();
                let file = File::open(path).map_err(failed)?;
                file.take(LENGTH_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
                (String::from_utf8_lossy(&bytes).into_owned(), path.display().to_string())
            }
        };
        let text = text.trim();
        // A shorter text would occur everywhere, so it could not be removed from messages.
        match (SHORTEST_SECRET..=LENGTH_MAX).contains(&text.len()) {
            true => {
                known_secrets::remember([(place.as_str(), OsStr::new(text))]);
                Ok(SecretText(text.to_owned()))
            }
            false => Err(format!("{place} has none of {SHORTEST_SECRET} to {LENGTH_MAX} bytes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_from_its_source_and_hidden_in_debug_output() {
        let environment = [("A".into(), " hunter2-long \n".into()), ("B".into(), "abc".into())];
        let find = |given: SecretSource| given.find(&environment);
        let found = find(SecretSource::Variable("A".into())).unwrap();
        assert_eq!(
            (found.reveal(), format!("{found:?}")),
            ("hunter2-long", "Secret(…)".to_owned())
        );
        assert!(find(SecretSource::Variable("B".into())).unwrap_err().starts_with("B has none of"));
        assert_eq!(find(SecretSource::Variable("C".into())).unwrap_err(), "C is not set");
        assert!(
            find(SecretSource::File("/nowhere/at-all".into()))
                .unwrap_err()
                .contains("/nowhere/at-all")
        );
    }
}
