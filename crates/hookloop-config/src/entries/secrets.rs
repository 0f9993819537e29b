//! `secrets:` of the user's file and of a policy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::values::is_name_of_variable;
use crate::located::FileLine;
use crate::patterns::glob;
use crate::secret_references::{self, EVERY, SECRETS_MAX, SecretBook, SecretReference};
use crate::variables::BASE;
use crate::yaml::ConfigComplaint;

/// Secrets by project, then by name.
pub(crate) type SecretEntries = BTreeMap<String, BTreeMap<String, Spanned<SecretEntry>>>;

/// Source of a secret: exactly one of `env`, `file` and `command`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretEntry {
    /// Name of an environment variable with the secret
    env: Option<String>,
    /// Path of a file with the secret. The file must not be readable or writable for all users.
    file: Option<PathBuf>,
    /// List of a program and its arguments. The program prints the secret.
    command: Option<Vec<String>>,
}

/// Reads the secrets of the file at `path`. Their files are relative to `base`.
pub(crate) fn book(
    entries: SecretEntries,
    path: &Path,
    base: &Path,
) -> Result<SecretBook, ConfigComplaint> {
    let mut book = Vec::new();
    for (project, secrets) in entries {
        for (name, entry) in secrets {
            let location = entry.referenced;
            let complain = |message: String| Err(ConfigComplaint::new(location, message));
            let is_pattern = project.contains('/') && glob(&project).is_ok();
            if project != EVERY
                && !is_pattern
                && project.parse::<hookloop_core::id::ProjectName>().is_err()
            {
                return complain(format!(
                    "`{project}` is neither a project's name, nor a pattern of its path, nor `*`"
                ));
            }
            let is_ours = name.starts_with("HOOKLOOP_")
                || name.starts_with("LD_")
                || name == "CLAUDE_PROJECT_DIR"
                || BASE.contains(&name.as_str());
            if !is_name_of_variable(&name) || is_ours {
                return complain(format!("`{name}` is not a name that a secret can have"));
            }
            if book.len() == SECRETS_MAX {
                return complain(format!("more than {SECRETS_MAX} secrets"));
            }
            let reference = match entry.value {
                SecretEntry { env: Some(other), file: None, command: None } => {
                    SecretReference::Env(other)
                }
                SecretEntry { env: None, file: Some(file), command: None } => {
                    SecretReference::File(base.join(file))
                }
                SecretEntry { env: None, file: None, command: Some(argv) } if !argv.is_empty() => {
                    SecretReference::Command(argv)
                }
                _ => {
                    return complain(
                        "a secret has exactly one of `env`, `file` and `command`".to_owned(),
                    );
                }
            };
            let at = FileLine { path: path.to_owned(), line: location.line() };
            book.push(secret_references::SecretBinding {
                project: project.clone(),
                name,
                reference,
                at,
            });
        }
    }
    Ok(SecretBook(book))
}
