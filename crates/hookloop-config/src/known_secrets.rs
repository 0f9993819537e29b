//! The secrets that this process has met, for texts that are not about one project: the diagnostics.
//!
//! Nothing is remembered while no diagnostics are written, so that other commands do not pay for it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::{Mutex, PoisonError};

use hookloop_core::redact::{Redactor, SHORTEST_SECRET};
use hookloop_http::proxy_passwords;
use tracing::level_filters::LevelFilter;

/// Secrets that are remembered. With more of them, no text is returned.
const SECRETS_MAX: usize = 10_000;

/// Parts of the names of variables whose values are secret.
const SECRET_NAMES: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "PRIVATE_KEY"];

static KNOWN: Mutex<KnownSecrets> = Mutex::new(KnownSecrets::new());

struct KnownSecrets {
    secrets: BTreeSet<(String, Vec<u8>)>,
    /// Made when a text is redacted after the set has grown.
    redactor: Option<Redactor>,
}

impl KnownSecrets {
    const fn new() -> KnownSecrets {
        KnownSecrets { secrets: BTreeSet::new(), redactor: None }
    }

    fn add(&mut self, name: &str, value: &[u8]) {
        let is_useful = value.len() >= SHORTEST_SECRET && self.secrets.len() <= SECRETS_MAX;
        if is_useful && self.secrets.insert((name.to_owned(), value.to_owned())) {
            self.redactor = None;
        }
    }

    fn redacted(&mut self, text: &str) -> Option<String> {
        if self.secrets.len() > SECRETS_MAX {
            return None;
        }
        if self.redactor.is_none() {
            let secrets = self.secrets.iter().map(|(name, value)| (name, value));
            self.redactor = Redactor::new(secrets).ok();
        }
        Some(self.redactor.as_ref()?.text(text))
    }
}

/// Whether the value of a variable with this name is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Keeps these secrets out of the diagnostics from now on.
pub fn remember<'s>(secrets: impl IntoIterator<Item = (&'s str, &'s OsStr)>) {
    if LevelFilter::current() == LevelFilter::OFF {
        return;
    }
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, value) in secrets {
        known.add(name, value.as_encoded_bytes());
    }
}

/// Keeps the secret variables of an environment out of the diagnostics from now on.
pub fn remember_environment(environment: &[(OsString, OsString)]) {
    if LevelFilter::current() == LevelFilter::OFF {
        return;
    }
    let named = environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value)));
    let secret = named.filter(|(name, _)| is_secret_name(name));
    remember(secret.map(|(name, value)| (name, value.as_os_str())));
    let passwords = proxy_passwords(environment);
    remember(passwords.iter().map(|password| ("proxy password", OsStr::new(password))));
}

/// Returns a text without the remembered secrets and without tokens of known shapes; none if the secrets are too many.
pub fn redacted(text: &str) -> Option<String> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).redacted(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_redacted_once_they_are_added() {
        let mut known = KnownSecrets::new();
        let text = "denied: hush-hush, ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let before = known.redacted(text).unwrap();
        assert_eq!(before, "denied: hush-hush, [redacted:github-token]");
        known.add("MY_TOKEN", b"hush-hush");
        let after = known.redacted(text).unwrap();
        assert_eq!(after, "denied: [redacted:MY_TOKEN], [redacted:github-token]");
    }

    #[test]
    fn no_text_is_returned_when_there_are_too_many_secrets() {
        let mut known = KnownSecrets::new();
        for number in 0..=SECRETS_MAX {
            known.add("S", format!("secret-{number}").as_bytes());
        }
        assert_eq!(known.redacted("text"), None);
    }
}
