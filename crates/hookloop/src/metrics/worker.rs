//! The metrics of a worker since its start.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hookloop_engine::project::Project;
use hookloop_fleet::fleet::WorkerState;
use hookloop_fleet::telemetry::TraceExporter;
use hookloop_fleet::worker::{TaskRunEnd, WorkerUpdate};

use super::{MetricsPage, add_project, table as of};

/// A worker and the projects that it works on.
#[derive(Debug)]
pub(crate) struct WorkerTally {
    pub(crate) projects: Vec<(String, Project)>,
    pub(crate) slots: u32,
    pub(crate) exporter: Option<TraceExporter>,
    heard: Mutex<WorkerEvents>,
}

#[derive(Debug, Default)]
struct WorkerEvents {
    state: Option<WorkerState>,
    /// By project.
    taken: BTreeMap<String, u64>,
    /// By project and outcome.
    ended: BTreeMap<(String, &'static str), u64>,
    expired: BTreeMap<String, u64>,
    errors: u64,
    ineligible: BTreeMap<String, bool>,
}

const STATES: [WorkerState; 4] =
    [WorkerState::Working, WorkerState::Draining, WorkerState::Paused, WorkerState::Stopped];

impl WorkerTally {
    pub(crate) fn new(
        projects: Vec<(String, Project)>,
        slots: u32,
        exporter: Option<TraceExporter>,
    ) -> WorkerTally {
        WorkerTally { projects, slots, exporter, heard: Mutex::default() }
    }

    pub(crate) fn hear(&self, told: &WorkerUpdate<'_>) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let one_more = |counts: &mut BTreeMap<String, u64>, project: &str| {
            *counts.entry(project.to_owned()).or_default() += 1;
        };
        match told {
            WorkerUpdate::Claimed { project, .. } => one_more(&mut heard.taken, project),
            WorkerUpdate::Ended { project, end, .. } => {
                let outcome = match end {
                    TaskRunEnd::Outcome(outcome) => outcome.name(),
                    TaskRunEnd::TakenOver => "taken_over",
                    TaskRunEnd::Error(_) => "error",
                };
                *heard.ended.entry(((*project).to_owned(), outcome)).or_default() += 1;
            }
            WorkerUpdate::Expired { project, .. } => one_more(&mut heard.expired, project),
            WorkerUpdate::State(state) => heard.state = Some(*state),
            WorkerUpdate::Ineligible { project, why } => {
                heard.ineligible.insert((*project).to_owned(), why.is_some());
            }
            WorkerUpdate::Error { .. } => heard.errors += 1,
            WorkerUpdate::MergeResult { .. } => {}
        }
    }

    /// Returns the page of metrics.
    pub(crate) fn page(&self) -> String {
        let mut page = MetricsPage::default();
        for (name, project) in &self.projects {
            // A project that can't be read now has no metrics in this answer.
            if let Err(error) = add_project(&mut page, name, project) {
                tracing::warn!(project = name, %error, "the metrics of a project can't be read");
            }
        }
        self.add(&mut page);
        page.render()
    }

    fn add(&self, page: &mut MetricsPage) {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = heard.taken.values().sum::<u64>();
        let ended = heard.ended.values().sum();
        page.count(&of::SLOTS, &[], u64::from(self.slots));
        page.count(&of::BUSY, &[], taken.saturating_sub(ended));
        let now = heard.state.unwrap_or(WorkerState::Working);
        for state in STATES {
            page.count(&of::STATE, &[("state", state.name())], u64::from(state == now));
        }
        for (project, _) in &self.projects {
            let project_label = ("project", project.as_str());
            let count = |counts: &BTreeMap<String, u64>| counts.get(project).copied().unwrap_or(0);
            page.count(&of::TASKS_CLAIMED, &[project_label], count(&heard.taken));
            page.count(&of::EXPIRED, &[project_label], count(&heard.expired));
            let is_ineligible = heard.ineligible.get(project).copied().unwrap_or(false);
            page.count(&of::INELIGIBLE, &[project_label], u64::from(is_ineligible));
        }
        for ((project, outcome), count) in &heard.ended {
            page.count(&of::ENDED, &[("project", project), ("outcome", outcome)], *count);
        }
        page.count(&of::ERRORS, &[], heard.errors);
        if let Some(exporter) = &self.exporter {
            let figures = exporter.figures();
            page.count(&of::SPANS_SENT, &[], figures.sent);
            page.count(&of::SPANS_DROPPED, &[], figures.lost);
            page.count(&of::EXPORT_FAILURES, &[], figures.failures);
        }
    }
}
