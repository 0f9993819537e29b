//! The fleet: workers and their tasks, directives, and the budget.

use hookloop_config::paths::ProjectPaths;
use hookloop_core::id::TaskId;
use hookloop_core::session::plan::Dollars;
use hookloop_engine::log_location::LogLocation;
use hookloop_fleet::fleet::{Fleet, GONE_AFTER_MS, WorkerPresence};
use minijinja::context;
use minijinja::value::Value;

use super::super::page::PagePart;
use super::super::records::lock;
use super::super::words::{PageTime, class};
use super::{PageTitle, PageVisit};
use crate::error::CliResult;

/// Workers that are shown.
const WORKERS_MAX: usize = 500;

/// Updates by time: the log does not have the heartbeats of workers.
const STATUS: PagePart = PagePart::new("status", "Fleet", &[]).every(5);

pub(in super::super) fn fleet(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(STATUS, "fleet.html", || match open(visit)? {
        Some(fleet) => status(visit, &fleet),
        None => Ok(context! { is_there => false }),
    })?;
    visit.finish(page, &PageTitle::new("Fleet", "fleet"))
}

/// Returns the fleet, if it exists: reading creates none.
fn open(visit: &PageVisit<'_>) -> CliResult<Option<Fleet>> {
    let project = visit.project();
    let home = visit.sites.home();
    if matches!(project.kept(), LogLocation::Here)
        && !ProjectPaths::of_fleet(home, "sqlite").database().is_file()
    {
        return Ok(None);
    }
    let mut known = lock(&visit.site.fleet);
    if known.is_none() {
        let fleet = Fleet::beside(project, home, visit.sites.surroundings())?;
        fleet.go_live()?;
        *known = Some(fleet);
    }
    Ok(known.clone())
}

fn status(visit: &PageVisit<'_>, fleet: &Fleet) -> CliResult<Value> {
    let workers = fleet.workers()?;
    let directives = fleet.orders()?.0;
    let budget = fleet.budget()?;
    let standing = fleet.log().read(|view| view.budget_standing(visit.now.into()))?;
    let rate_limited = fleet.slowed()?;
    let count = workers.len();
    Ok(context! {
        is_there => true,
        workers => workers.iter().take(WORKERS_MAX).map(|worker| worker_line(visit, worker)).collect::<Vec<_>>(),
        more => count.saturating_sub(WORKERS_MAX),
        directives => directives.iter().map(|standing| context! {
            directive => standing.set.directive.name(), scope => standing.set.scope.to_string(),
            reason => &standing.set.reason, by => &standing.by, at => PageTime::new(standing.at, visit.now),
        }).collect::<Vec<_>>(),
        rate_limited => rate_limited.iter().map(|limit| context! {
            source => &limit.source, until => PageTime::new(limit.until, visit.now),
        }).collect::<Vec<_>>(),
        budget => (!budget.is_none()).then(|| budget.to_string()),
        today => Dollars(standing.day.cost_micros).to_string(),
        total => Dollars(standing.total.cost_micros).to_string(),
        reserved => Dollars(standing.open.cost_micros).to_string(),
    })
}

fn worker_line(visit: &PageVisit<'_>, worker: &WorkerPresence) -> Value {
    let is_lost = visit.now.millis_since(worker.seen) > GONE_AFTER_MS;
    let state = if is_lost { "lost" } else { worker.state.name() };
    let running: Vec<Value> = worker
        .running
        .iter()
        .map(|running| {
            let is_here = running.project == visit.project().name();
            let link = |page: &str, id: &str| {
                (is_here && TaskId::is_valid(id)).then(|| visit.address(&format!("{page}/{id}")))
            };
            context! {
                project => &running.project, task => &running.task, session => &running.session,
                task_link => link("tasks", &running.task), session_link => link("sessions", &running.session),
                since => PageTime::new(running.since, visit.now),
            }
        })
        .collect();
    let ineligible: Vec<Value> = worker
        .projects
        .iter()
        .filter_map(|served| {
            Some(context! { project => &served.project, why => served.ineligible.as_ref()? })
        })
        .collect();
    context! {
        name => worker.name.to_string(), machine => &worker.machine, pid => worker.pid,
        version => &worker.version, state, class => class(state), busy => worker.running.len(),
        slots => worker.slots, agent => &worker.agent, seen => PageTime::new(worker.seen, visit.now), running, ineligible,
    }
}
