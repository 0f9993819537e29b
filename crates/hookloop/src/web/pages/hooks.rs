//! Hooks, their trust, and the results of their runs.

use hookloop_core::point::Point;
use hookloop_engine::store::HookRuns;
use hookloop_hooks::trust::HookStanding;
use minijinja::context;
use minijinja::value::Value;

use super::super::page::PagePart;
use super::super::topics::Topic;
use super::super::words::class;
use super::{PageTitle, PageVisit};
use crate::error::CliResult;
use crate::json_output::{handler_name, source_name};
use crate::present::duration;

const LIST: PagePart = PagePart::new("list", "Hooks", &[Topic::Hooks]);

pub(in super::super) fn hooks(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(LIST, "hooks.html", || list(visit))?;
    visit.finish(page, &PageTitle::new("Hooks", "hooks"))
}

fn list(visit: &PageVisit<'_>) -> CliResult<Value> {
    let project = visit.project();
    let registry = project.hooks()?;
    let runs = project.read(|view| view.hook_runs())?;
    let mut hooks: Vec<_> = registry.list().iter().collect();
    hooks.sort_by_key(|hook| hook.priority);
    let figures = |runs: &HookRuns| {
        let failed = runs.failures * 100 / runs.runs.max(1);
        context! {
            runs => runs.runs, failures => runs.failures, blocks => runs.blocks, failed,
            p50 => duration(runs.p50_ms), p95 => duration(runs.p95_ms),
        }
    };
    let rows: Vec<Value> = hooks
        .iter()
        .map(|hook| {
            let standing =
                project.runner().map_or(HookStanding::Own, |runner| runner.standing(hook));
            let state = match (hook.enabled, standing) {
                (false, _) => "off",
                (true, HookStanding::Own | HookStanding::Trusted) => "on",
                (true, standing) => standing.name(),
            };
            let known = runs.iter().find(|runs| runs.name == hook.name);
            context! {
                name => &hook.name, state, class => class(state),
                points => hook.points.iter().map(Point::name).collect::<Vec<_>>().join(", "),
                task_type => &hook.task_type, priority => hook.priority,
                handler => handler_name(&hook.handler), source => source_name(hook.source),
                description => &hook.metadata.description, figures => known.map(figures),
            }
        })
        .collect();
    // Those that were there once have figures still.
    let gone = runs.iter().filter(|runs| registry.get(&runs.name).is_none());
    let gone: Vec<Value> =
        gone.map(|runs| context! { name => &runs.name, figures => figures(runs) }).collect();
    Ok(context! { rows, gone })
}
