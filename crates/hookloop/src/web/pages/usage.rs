//! Usage by day and agent as bars, by agent, task and session as numbers, and the state of the budget.

use std::collections::{BTreeMap, HashMap};

use hookloop_core::session::Usage;
use hookloop_core::session::plan::{CompactCount, Dollars};
use hookloop_core::shared_budget::{Amount, BudgetBounds};
use hookloop_core::time::Day;
use hookloop_engine::store::{SpentAmount, UsageBy, UsageOfDay, UsageRow};
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::super::page::{PagePart, value_of};
use super::super::topics::Topic;
use super::{PageTitle, PageVisit};
use crate::error::CliResult;

/// Days of the bars: the default, and the maximum.
const DAYS: i64 = 30;
const DAYS_MAX: i64 = 90;
/// Agents that have a colour of their own.
const COLOURS: usize = 6;
/// Rows of a table.
const ROWS_MAX: usize = 20;
/// The picture in its own units.
const WIDTH: u64 = 1_000;
const HEIGHT: u64 = 160;
const TOP: u64 = 14;

const BARS: PagePart = PagePart::new("bars", "By day", &[Topic::Usage]);
const BUDGET: PagePart = PagePart::new("budget", "Budget", &[Topic::Usage]).every(30);

pub(in super::super) fn usage(visit: &PageVisit<'_>) -> CliResult<String> {
    let mut page = visit.page();
    page.part(BARS, "usage.html", || bars(visit))?;
    page.part(BUDGET, "budget.html", || budget(visit))?;
    visit.finish(page, &PageTitle::new("Usage", "usage"))
}

#[derive(Clone, Debug, Serialize)]
struct UsageBar {
    x: u64,
    y: u64,
    width: u64,
    height: u64,
    colour: usize,
    title: String,
}

fn bars(visit: &PageVisit<'_>) -> CliResult<Value> {
    let days = visit.query.number::<i64>("days").unwrap_or(DAYS).clamp(7, DAYS_MAX);
    let since = Day(Day::from(visit.now).0 - days + 1);
    let (of_days, by_agent, by_task, by_session) = visit.project().read(|view| {
        let by = |by| view.usage(by, Some(since));
        Ok((
            view.usage_of_days(since)?,
            by(UsageBy::Agent)?,
            by(UsageBy::Task)?,
            by(UsageBy::Session)?,
        ))
    })?;
    let colours = colours(&by_agent);
    let total = total(&by_agent);
    let agents: Vec<Value> = table(by_agent, |key| {
        context! { colour => colours.get(key).copied().unwrap_or(COLOURS), name => key }
    });
    let link = |page: &'static str| {
        move |key: &str| {
            let link = (!key.is_empty()).then(|| visit.address(&format!("{page}/{key}")));
            context! { name => if key.is_empty() { "no task" } else { key }, link }
        }
    };
    Ok(context! {
        picture => picture(&of_days, since, days, &colours),
        agents, tasks => table(by_task, link("tasks")), sessions => table(by_session, link("sessions")),
        total => figures(&total), days, since => since.to_string(),
        choices => [7, 30, 90].map(|days: i64| context! { days, link => visit.query.with("days", &days.to_string()) }).to_vec(),
    })
}

/// The agents with the highest cost get the first colours.
fn colours(agents: &[UsageRow]) -> HashMap<String, usize> {
    let mut order: Vec<&UsageRow> = agents.iter().collect();
    order.sort_by_key(|row| std::cmp::Reverse((row.usage.cost_micros, row.usage.tokens())));
    order.into_iter().enumerate().map(|(i, row)| (row.key.clone(), i.min(COLOURS))).collect()
}

fn total(rows: &[UsageRow]) -> UsageRow {
    let key = String::new();
    let usage = Usage::default();
    let mut total = UsageRow { key, turns: 0, usage, unpriced_turns: 0 };
    rows.iter().for_each(|row| total.add(row));
    total
}

/// The rows that cost most.
fn table(mut rows: Vec<UsageRow>, of_key: impl Fn(&str) -> Value) -> Vec<Value> {
    rows.sort_by_key(|row| std::cmp::Reverse((row.usage.cost_micros, row.usage.tokens())));
    rows.truncate(ROWS_MAX);
    let row = |row: &UsageRow| {
        context! { key => of_key(&row.key), figures => figures(row) }
    };
    rows.iter().map(row).collect()
}

fn figures(row: &UsageRow) -> Value {
    let usage = &row.usage;
    context! {
        turns => row.turns,
        cost => row.cost().to_string(),
        input => CompactCount(usage.input_tokens).to_string(),
        cached => CompactCount(usage.cached_tokens).to_string(),
        output => CompactCount(usage.output_tokens).to_string(),
    }
}

/// Draws one bar a day: cost, or tokens if the cost is unknown.
fn picture(rows: &[UsageOfDay], since: Day, days: i64, colours: &HashMap<String, usize>) -> Value {
    let has_cost = rows.iter().any(|row| row.usage.cost_micros > 0);
    let size = |usage: &Usage| if has_cost { usage.cost_micros } else { usage.tokens() };
    let said = |size: u64| {
        if has_cost { Dollars(size).to_string() } else { format!("{} tokens", CompactCount(size)) }
    };
    let mut sums: BTreeMap<i64, u64> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(row.day.0).or_default();
        *sum = sum.saturating_add(size(&row.usage));
    }
    let most = sums.values().copied().max().unwrap_or(0).max(1);
    let step = WIDTH / days.unsigned_abs().max(1);
    let mut filled: HashMap<i64, u64> = HashMap::new();
    let mut bars = Vec::new();
    for row in rows.iter().filter(|row| size(&row.usage) > 0) {
        let Ok(place) = u64::try_from(row.day.0 - since.0) else { continue };
        let below = filled.entry(row.day.0).or_default();
        let from = scaled(*below, most);
        let to = scaled(*below + size(&row.usage), most);
        *below += size(&row.usage);
        bars.push(UsageBar {
            x: place * step + 1,
            y: TOP + HEIGHT - to,
            width: step.saturating_sub(2).max(1),
            height: (to - from).max(1),
            colour: colours.get(&row.agent).copied().unwrap_or(COLOURS),
            title: format!(
                "{}, {}: {}, {} turns",
                row.day,
                row.agent,
                said(size(&row.usage)),
                row.turns
            ),
        });
    }
    let labels: Vec<Value> = (0..days)
        .filter(|place| place % (days / 6).max(1) == 0)
        .map(|place| {
            let day = Day(since.0 + place).to_string();
            context! { x => place.unsigned_abs() * step + step / 2, text => day.get(5..).unwrap_or_default() }
        })
        .collect();
    let unit = if has_cost { "cost" } else { "tokens" };
    context! { bars => value_of(bars), labels, unit, most => said(most), is_empty => sums.is_empty(),
    width => WIDTH, height => HEIGHT, top => TOP }
}

/// How high `size` is if `most` is as high as the picture.
fn scaled(size: u64, most: u64) -> u64 {
    u64::try_from(u128::from(size) * u128::from(HEIGHT) / u128::from(most)).unwrap_or(HEIGHT)
}

/// Returns the state of the budget.
pub(super) fn budget(visit: &PageVisit<'_>) -> CliResult<Value> {
    let bounds = visit.project().rules().limits.budget;
    let today = Day::from(visit.now);
    let (day, total, held) = visit
        .project()
        .read(|view| Ok((view.spent(Some(today))?, view.spent(None)?, view.reservations()?)))?;
    let reserved = held.iter().fold(Amount::default(), |sum, held| sum.plus(held.amount));
    let period = |(name, bounds, spent): (&'static str, BudgetBounds, SpentAmount)| {
        let gone = spent.total().plus(reserved);
        context! {
            name, limit => bounds.to_string(), spent => spent.used.to_string(),
            written_off => (!spent.written_off.is_nothing()).then(|| spent.written_off.to_string()),
            share => share(bounds, gone),
        }
    };
    let periods = [("today (UTC)", bounds.day, day), ("in total", bounds.total, total)];
    let periods: Vec<Value> =
        periods.into_iter().filter(|(_, bounds, _)| !bounds.is_none()).map(period).collect();
    let holders: Vec<Value> = held
        .iter()
        .map(|held| {
            let session = held.session.as_str();
            let link = visit.address(&format!("sessions/{session}"));
            context! { session, link, amount => held.amount.to_string(), since => held.since.to_string() }
        })
        .collect();
    Ok(context! { periods, holders, reserved => reserved.to_string() })
}

/// Returns the used percentage of the bound with the least left.
fn share(bounds: BudgetBounds, gone: Amount) -> u64 {
    let share = |bound: Option<u64>, gone: u64| {
        let bound = u128::from(bound?.max(1));
        u64::try_from((u128::from(gone) * 100 / bound).min(100)).ok()
    };
    let shares = [
        share(bounds.cost_micros, gone.cost_micros),
        share(bounds.tokens, gone.tokens),
        share(bounds.turns, gone.turns),
    ];
    shares.into_iter().flatten().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_bars_stay_within_the_chart_at_any_cost() {
        let row = |day, agent: &str, cost_micros| UsageOfDay {
            day: Day(day),
            agent: agent.to_owned(),
            turns: 1,
            usage: Usage { cost_micros, ..Usage::default() },
            unpriced_turns: 0,
        };
        let most = 1_000_000_000_000_000;
        let rows = [row(10, "a", most), row(10, "b", most), row(11, "a", 1)];
        let picture = picture(&rows, Day(9), 7, &HashMap::new());
        let bars = picture.get_attr("bars").unwrap();
        let mut lowest = 0;
        for bar in bars.try_iter().unwrap() {
            let get = |name: &str| u64::try_from(bar.get_attr(name).unwrap()).unwrap();
            assert!(get("y") >= TOP && get("y") + get("height") <= TOP + HEIGHT + 1, "{bar}");
            assert!(get("x") + get("width") <= WIDTH, "{bar}");
            lowest = lowest.max(get("y") + get("height"));
        }
        assert!(lowest >= TOP + HEIGHT);
    }

    #[test]
    fn the_shown_share_is_that_of_the_most_used_budget_limit() {
        let bounds = BudgetBounds { cost_micros: Some(100), tokens: Some(10), turns: None };
        assert_eq!(share(bounds, Amount { cost_micros: 20, tokens: 9, turns: 7 }), 90);
        assert_eq!(share(bounds, Amount::ALL), 100);
        assert_eq!(share(BudgetBounds::default(), Amount::ALL), 0);
    }
}
