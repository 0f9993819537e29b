//! All projects of the user.

use hookloop_config::paths::ProjectPaths;
use hookloop_core::session::plan::Dollars;
use hookloop_core::task::TaskState;
use hookloop_core::time::Day;
use minijinja::context;
use serde::Serialize;

use super::super::page::{PagePart, Templates, WebPage, value_of};
use super::super::query::PageQuery;
use super::super::sites::{ProjectSites, key};
use crate::error::{CliError, CliResult};

/// Sessions that are counted.
const RUNNING_MAX: usize = 1_000;
/// They are in logs of their own: looking now and then costs less than to follow all of them.
const LIST: PagePart = PagePart::new("list", "All projects", &[]).every(5);

#[derive(Clone, Debug, Serialize)]
struct ProjectRow {
    key: String,
    name: String,
    root: String,
    is_here: bool,
    /// None if the project is on other machines, or can't be read.
    figures: Option<ProjectFigures>,
}

#[derive(Clone, Debug, Serialize)]
struct ProjectFigures {
    problems: u64,
    running: usize,
    ready: u64,
    active: u64,
    spent: String,
}

pub(in super::super) fn projects(
    templates: &Templates,
    sites: &ProjectSites,
    query: &PageQuery,
) -> CliResult<String> {
    let here = sites.here();
    let mut page = WebPage::new(templates, query.parts());
    page.part(LIST, "projects.html", || -> CliResult<_> {
        let rows: Vec<ProjectRow> =
            sites.list().iter().map(|place| row(sites, place, &here)).collect();
        Ok(context! { rows => value_of(rows) })
    })?;
    Ok(page.plain("Projects")?)
}

fn row(sites: &ProjectSites, place: &ProjectPaths, here: &str) -> ProjectRow {
    let key = key(place);
    // A project that can't be opened is listed without figures; its own page says why.
    let unopened = |error: &CliError| {
        let root = place.root.display();
        tracing::warn!(%root, error = error.message(), "a project can't be opened");
    };
    let near = sites.is_near(place).then(|| sites.at(place).inspect_err(unopened));
    let site = near.and_then(CliResult::ok);
    let directory = || place.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = site.as_ref().map(|site| site.project.name().to_owned());
    ProjectRow {
        name: name.filter(|name| !name.is_empty()).unwrap_or_else(directory),
        root: place.root.display().to_string(),
        is_here: key == here,
        figures: site.and_then(|site| figures(&site.project).inspect_err(unopened).ok()),
        key,
    }
}

fn figures(project: &hookloop_engine::project::Project) -> CliResult<ProjectFigures> {
    let today = Day::from(project.now());
    Ok(project.read(|view| {
        let counts = view.counts()?;
        let count =
            |wanted| counts.iter().find(|(state, _)| *state == wanted).map_or(0, |(_, n)| *n);
        Ok(ProjectFigures {
            problems: view.count_problems()?,
            running: view.open_sessions(RUNNING_MAX)?.len(),
            ready: count(TaskState::Ready),
            active: count(TaskState::Active),
            spent: Dollars(view.spent(Some(today))?.total().cost_micros).to_string(),
        })
    })?)
}
