//! Sessions, the newest first.

use hookloop_core::session::SessionState;
use hookloop_engine::store::SessionFilter;
use minijinja::context;
use minijinja::value::Value;

use super::super::page::{PagePart, value_of};
use super::super::topics::Topic;
use super::overview::RunningLine;
use super::{PageTitle, PageVisit};
use crate::error::CliResult;

/// Sessions on a page, and pages that can be gone back.
const ON_A_PAGE: usize = 50;
const PAGES_MAX: usize = 100_000;

const LIST: PagePart = PagePart::new("list", "Sessions", &[Topic::Sessions]).every(10);

pub(in super::super) fn sessions(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(LIST, "sessions.html", || list(visit))?;
    visit.finish(page, &PageTitle::new("Sessions", "sessions"))
}

fn list(visit: &PageVisit<'_>) -> CliResult<Value> {
    let query = visit.query;
    let number = query.number::<usize>("page").unwrap_or(1).clamp(1, PAGES_MAX);
    let state: Option<SessionState> = query.get("state").and_then(|state| state.parse().ok());
    let filter = SessionFilter {
        state,
        text: query.get("q").map(str::to_owned),
        skip: (number - 1) * ON_A_PAGE,
        limit: ON_A_PAGE + 1,
    };
    let found = visit.project().read(|view| view.list_sessions(&filter))?;
    let rows: Vec<RunningLine> =
        found.iter().take(ON_A_PAGE).map(|row| RunningLine::new(visit, row)).collect();
    let page = |wanted: usize| query.with("page", &wanted.to_string());
    Ok(context! {
        rows => value_of(rows),
        site => visit.address(""),
        states => SessionState::ALL.map(SessionState::name).to_vec(),
        state => state.map_or("", SessionState::name),
        text => query.get("q").unwrap_or_default(),
        newer => (number > 1).then(|| page(number - 1)),
        older => (found.len() > ON_A_PAGE).then(|| page(number + 1)),
    })
}
