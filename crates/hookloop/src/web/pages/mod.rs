//! The content of each page.
//!
//! - [`projects`]: all projects of the user
//! - [`overview`]: problems, running sessions, tasks by state, today's usage
//! - [`sessions`], [`session`]: the list of sessions; one session with its steps, drawn to scale by [`scale`]
//! - [`undo`]: the files that the undo of a session would change
//! - [`tasks`], [`task`]: the list of tasks; one task with its neighbours and history
//! - [`graph`]: tasks and their dependencies, placed by [`layers`]
//! - [`usage`], [`hooks`], [`fleet`]: usage, hook runs and workers; [`log`]: the events

mod fleet;
mod graph;
mod hooks;
mod layers;
mod log;
mod overview;
mod projects;
mod scale;
mod session;
mod sessions;
mod steps;
mod task;
mod tasks;
mod undo;
mod usage;

use hookloop_core::time::Timestamp;
use hookloop_engine::project::Project;

use super::page::{Frame, PageHeading, Templates, WebPage};
use super::query::PageQuery;
use super::sites::{ProjectSite, ProjectSites};
use crate::error::CliResult;

pub(super) use fleet::fleet;
pub(super) use graph::graph;
pub(super) use hooks::hooks;
pub(super) use log::log;
pub(super) use overview::overview;
pub(super) use projects::projects;
pub(super) use session::session;
pub(super) use sessions::sessions;
pub(super) use task::task;
pub(super) use tasks::tasks;
pub(super) use undo::undo;
pub(super) use usage::usage;

/// A request for a page of a project.
pub(super) struct PageVisit<'v> {
    pub(super) templates: &'v Templates,
    pub(super) sites: &'v ProjectSites,
    pub(super) site: &'v ProjectSite,
    /// The id of the subject, if the page has one.
    pub(super) id: &'v str,
    pub(super) query: &'v PageQuery,
    pub(super) now: Timestamp,
}

/// Makes a page.
pub(super) type Make = fn(&PageVisit<'_>) -> CliResult<String>;

impl<'v> PageVisit<'v> {
    fn project(&self) -> &'v Project {
        &self.site.project
    }

    fn page(&self) -> WebPage<'v> {
        WebPage::new(self.templates, self.query.parts())
    }

    /// Where something of the project is.
    fn address(&self, rest: &str) -> String {
        format!("/p/{}/{rest}", self.site.key)
    }

    /// Puts the parts together under a title.
    fn finish(&self, page: WebPage<'_>, titled: &PageTitle<'_>) -> CliResult<String> {
        let (problems, seq) =
            self.project().read(|view| Ok((view.count_problems()?, view.totals()?.head)))?;
        let ProjectSite { key, place, trouble, .. } = self.site;
        let name = match self.project().name() {
            "" => place.root.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            name => name.to_owned(),
        };
        let heading = PageHeading {
            key: key.clone(),
            name,
            root: place.root.display().to_string(),
            trouble: trouble.clone(),
            problems,
        };
        let PageTitle { title, section, subject } = titled;
        let frame = Frame { title, section, heading: &heading, seq, subject: subject.as_ref() };
        Ok(page.html(&frame)?)
    }
}

/// The title of a page, and its address in the project.
struct PageTitle<'t> {
    title: &'t str,
    section: &'t str,
    subject: Option<hookloop_core::id::Subject>,
}

impl<'t> PageTitle<'t> {
    fn new(title: &'t str, section: &'t str) -> PageTitle<'t> {
        PageTitle { title, section, subject: None }
    }
}
