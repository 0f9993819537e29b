//! Secrets by reference: where the value of each is found, and for which projects.

use std::fmt;
use std::path::{Path, PathBuf};

use hookloop_core::id::ProjectName;

use crate::located::{At, Line};
use crate::patterns::is_project;

/// Secrets that one file may name.
pub(crate) const SECRETS_MAX: usize = 1_024;

/// The project that stands for all.
pub(crate) const EVERY: &str = "*";

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// In a variable of the environment that the program was started with.
    Env(String),
    File(PathBuf),
    /// What a program prints. No shell is between.
    Command(Vec<String>),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Env(name) => write!(f, "variable {name}"),
            Reference::File(path) => write!(f, "file {}", path.display()),
            // Arguments are nobody's business.
            Reference::Command(argv) => write!(f, "command {}", argv.first().map_or("", |a| a)),
        }
    }
}

/// A secret of one project, or of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A project's name, a pattern of paths or URLs, or `*`.
    pub project: String,
    pub name: String,
    pub reference: Reference,
    pub at: At,
}

/// The secrets of one file.
#[derive(Clone, Debug, Default)]
pub struct Book(pub Vec<Entry>);

impl Book {
    pub fn lines(&self) -> Vec<Line> {
        let line = |entry: &Entry| Line {
            rule: format!("secrets.{}", entry.name),
            value: format!("from {}, for {}", entry.reference, entry.project),
            at: entry.at.clone(),
        };
        self.0.iter().map(line).collect()
    }

    /// What is there for a project, the closest first.
    pub fn of_project<'a>(&'a self, whose: &Whose<'a>) -> impl Iterator<Item = &'a Entry> {
        let is_close = |entry: &&Entry| entry.project != EVERY && whose.is(&entry.project);
        let close = self.0.iter().filter(is_close).collect::<Vec<_>>();
        close.into_iter().chain(self.0.iter().filter(|entry| entry.project == EVERY))
    }
}

/// Whose secrets are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    pub name: Option<&'a ProjectName>,
    pub root: &'a Path,
    pub cloned_from: Option<&'a str>,
}

impl Whose<'_> {
    fn is(&self, project: &str) -> bool {
        match project.contains('/') {
            true => is_project(project, self.root, self.cloned_from),
            false => self.name.is_some_and(|name| name.to_string() == project),
        }
    }
}
