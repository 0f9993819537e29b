//! Secrets by reference: the source of each value, and the projects that may use it.

use std::fmt;
use std::path::{Path, PathBuf};

use hookloop_core::id::ProjectName;

use crate::located::{FileLine, PolicyLine};
use crate::patterns::is_project;

/// The most secrets that one file may name.
pub(crate) const SECRETS_MAX: usize = 1_024;

/// The name that stands for all projects.
pub(crate) const EVERY: &str = "*";

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretReference {
    /// A variable of the environment in which the program was started.
    Env(String),
    File(PathBuf),
    /// The output of a program, started without a shell.
    Command(Vec<String>),
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretReference::Env(name) => write!(f, "variable {name}"),
            SecretReference::File(path) => write!(f, "file {}", path.display()),
            // Arguments may be confidential, so they are not shown.
            SecretReference::Command(argv) => {
                write!(f, "command {}", argv.first().map_or("", |a| a))
            }
        }
    }
}

/// A secret of one project, or of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretBinding {
    /// A project's name, a pattern of paths or URLs, or `*`.
    pub project: String,
    pub name: String,
    pub reference: SecretReference,
    pub at: FileLine,
}

/// The secrets of one file.
#[derive(Clone, Debug, Default)]
pub struct SecretBook(pub Vec<SecretBinding>);

impl SecretBook {
    pub fn lines(&self) -> Vec<PolicyLine> {
        let line = |entry: &SecretBinding| PolicyLine {
            rule: format!("secrets.{}", entry.name),
            value: format!("from {}, for {}", entry.reference, entry.project),
            at: entry.at.clone(),
        };
        self.0.iter().map(line).collect()
    }

    /// Returns the secrets of a project, the most specific first.
    pub fn of_project<'a>(
        &'a self,
        whose: &SecretOwner<'a>,
    ) -> impl Iterator<Item = &'a SecretBinding> {
        let is_close = |entry: &&SecretBinding| entry.project != EVERY && whose.is(&entry.project);
        let close = self.0.iter().filter(is_close).collect::<Vec<_>>();
        close.into_iter().chain(self.0.iter().filter(|entry| entry.project == EVERY))
    }
}

/// The project whose secrets are looked up.
#[derive(Clone, Copy, Debug)]
pub struct SecretOwner<'a> {
    pub name: Option<&'a ProjectName>,
    pub root: &'a Path,
    pub cloned_from: Option<&'a str>,
}

impl SecretOwner<'_> {
    fn is(&self, project: &str) -> bool {
        match project.contains('/') {
            true => is_project(project, self.root, self.cloned_from),
            false => self.name.is_some_and(|name| name.to_string() == project),
        }
    }
}
