//! `hookloop usage`

use clap::ValueEnum;
use hookloop_core::id::SessionId;
use hookloop_core::session::Usage;
use hookloop_core::session::plan::CompactCount;
use hookloop_core::shared_budget::{Amount, BudgetBounds, SharedBudget};
use hookloop_core::time::Day;
use hookloop_engine::project::Project;
use hookloop_engine::session::session_directory;
use hookloop_engine::store::{BudgetReservation, SpentAmount, UsageBy, UsageRow};
use serde_json::{Value, json};

use crate::cli::context::CommandContext;
use crate::error::CliResult;
use crate::output::{BOLD, DIM, TableCell};
use crate::sanitize::plain;

/// Show token and cost usage, and the budget
///
/// Days are days of the calendar in UTC. The figures are those that agents report.
#[derive(clap::Args)]
pub(crate) struct UsageArgs {
    /// Grouping of the usage
    #[arg(long, value_name = "GROUPING", default_value = "day")]
    by: UsageGrouping,

    /// First day, such as 2026-11-01
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<Day>,

    /// Usage of all workers that share the store, in all projects
    #[arg(long)]
    fleet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum UsageGrouping {
    Day,
    Session,
    Task,
    Agent,
}

impl From<UsageGrouping> for UsageBy {
    fn from(by: UsageGrouping) -> UsageBy {
        match by {
            UsageGrouping::Day => UsageBy::Day,
            UsageGrouping::Session => UsageBy::Session,
            UsageGrouping::Task => UsageBy::Task,
            UsageGrouping::Agent => UsageBy::Agent,
        }
    }
}

fn day(text: &str) -> std::result::Result<Day, String> {
    text.parse().map_err(|_| format!("`{text}` is not a day, such as 2026-11-01"))
}

/// The state of the budget at one moment.
struct BudgetReport {
    bounds: SharedBudget,
    today: Day,
    spent_today: SpentAmount,
    spent_total: SpentAmount,
    reservations: Vec<HeldReservation>,
}

struct HeldReservation {
    reservation: BudgetReservation,
    /// A process of this machine runs the session; processes of other machines are unknown here.
    is_running: bool,
}

impl UsageArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let (project, bounds) = if self.fleet {
            let fleet = super::fleet::open(context)?;
            (fleet.log().clone(), fleet.budget()?)
        } else {
            let project = context.project_to_read()?;
            let bounds = project.rules().limits.budget;
            (project, bounds)
        };
        let rows = project.read(|view| view.usage(self.by.into(), self.since))?;
        let standing = standing(&project, bounds)?;
        let total = total(&rows);
        let out = &mut context.out;
        if out.json {
            let list: Vec<Value> = rows.iter().map(|row| line_json(self.by, row)).collect();
            return out.json(&json!({
                "by": self.heading().to_lowercase(),
                "rows": list,
                "total": usage_json(&total),
                "budget": standing.json(),
            }));
        }
        if rows.is_empty() {
            out.line(match self.since {
                Some(day) => format!("No turn has ended since {day}."),
                None => "No turn has ended yet.".to_owned(),
            })?;
        } else {
            let mut cells: Vec<Vec<TableCell>> = rows.iter().map(cells).collect();
            cells.push(self::cells(&total));
            let headings = ["cost", "turns", "input", "cached", "output", self.heading()];
            out.table(&headings, &cells)?;
        }
        standing.lines().into_iter().try_for_each(|line| out.line(line))
    }

    fn heading(&self) -> &'static str {
        match self.by {
            UsageGrouping::Day => "day",
            UsageGrouping::Session => "session",
            UsageGrouping::Task => "task",
            UsageGrouping::Agent => "agent",
        }
    }
}

fn standing(project: &Project, bounds: SharedBudget) -> CliResult<BudgetReport> {
    let today = Day::from(project.now());
    let (spent_today, spent_total, held) = project
        .read(|view| Ok((view.spent(Some(today))?, view.spent(None)?, view.reservations()?)))?;
    let is_running = |session: &SessionId| {
        project.runner().is_some_and(|runner| session_directory::is_running(runner, session))
    };
    let held = held.into_iter().map(|reservation| HeldReservation {
        is_running: is_running(&reservation.session),
        reservation,
    });
    Ok(BudgetReport { bounds, today, spent_today, spent_total, reservations: held.collect() })
}

fn total(rows: &[UsageRow]) -> UsageRow {
    let key = "total".to_owned();
    let usage = Usage::default();
    let mut total = UsageRow { key, turns: 0, usage, unpriced_turns: 0 };
    rows.iter().for_each(|row| total.add(row));
    total
}

fn cells(row: &UsageRow) -> Vec<TableCell> {
    let key = match row.key.as_str() {
        "" => "no task",
        key => key,
    };
    let usage = &row.usage;
    vec![
        TableCell::new(row.cost()),
        TableCell::new(row.turns),
        TableCell::new(CompactCount(usage.input_tokens)),
        TableCell::new(CompactCount(usage.cached_tokens)),
        TableCell::new(CompactCount(usage.output_tokens)),
        TableCell::new(plain(key)),
    ]
}

fn line_json(by: UsageGrouping, row: &UsageRow) -> Value {
    let mut line = usage_json(row);
    let key = match by {
        UsageGrouping::Day => "day",
        UsageGrouping::Session => "session",
        UsageGrouping::Task => "task",
        UsageGrouping::Agent => "agent",
    };
    line[key] = match row.key.as_str() {
        "" => Value::Null,
        key => json!(key),
    };
    line
}

fn usage_json(row: &UsageRow) -> Value {
    let usage = &row.usage;
    json!({
        "turns": row.turns,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "cost_micros": row.cost().known_micros(),
        "unpriced_turns": row.unpriced_turns,
    })
}

impl BudgetReport {
    fn reserved(&self) -> Amount {
        let held = self.reservations.iter().map(|held| held.reservation.amount);
        held.fold(Amount::default(), Amount::plus)
    }

    /// Returns the bounds, each with the amount that was spent.
    fn periods(&self) -> Vec<(&'static str, BudgetBounds, SpentAmount)> {
        let all = [
            ("day", self.bounds.day, self.spent_today),
            ("total", self.bounds.total, self.spent_total),
        ];
        all.into_iter().filter(|(_, bounds, _)| !bounds.is_none()).collect()
    }

    fn json(&self) -> Value {
        let amount = |Amount { cost_micros, tokens, turns }: Amount| json!({ "cost_micros": cost_micros, "tokens": tokens, "turns": turns });
        let bounds = |BudgetBounds { cost_micros, tokens, turns }: BudgetBounds| json!({ "cost_micros": cost_micros, "tokens": tokens, "turns": turns });
        let period = |(period, limit, spent): (&str, BudgetBounds, SpentAmount)| {
            let left = left(limit, spent.total().plus(self.reserved()));
            json!({
                "period": period,
                "limit": bounds(limit),
                "used": amount(spent.used),
                "written_off": amount(spent.written_off),
                "left": bounds(left),
            })
        };
        let holder = |held: &HeldReservation| {
            json!({
                "session": held.reservation.session.as_str(),
                "since": held.reservation.since.to_string(),
                "cost_micros": held.reservation.amount.cost_micros,
                "tokens": held.reservation.amount.tokens,
                "running_here": held.is_running,
            })
        };
        json!({
            "day": self.today.to_string(),
            "limits": self.periods().into_iter().map(period).collect::<Vec<_>>(),
            "reserved": amount(self.reserved()),
            "reservations": self.reservations.iter().map(holder).collect::<Vec<_>>(),
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (period, limit, spent) in self.periods() {
            let when = match period {
                "day" => format!("{} (UTC)", self.today),
                _ => "in total".to_owned(),
            };
            let left = left(limit, spent.total().plus(self.reserved()));
            lines.push(format!("{BOLD}budget{BOLD:#} {when}: {limit}; left: {left}"));
            lines.push(format!("  spent       {}", spent.used));
            if !spent.written_off.is_nothing() {
                let why = "reserved for turns whose program died; their usage is unknown";
                lines.push(format!("  written off {}  {DIM}{why}{DIM:#}", spent.written_off));
            }
            lines.push(format!("  reserved    {}", self.reserved()));
        }
        for held in &self.reservations {
            let BudgetReservation { session, since, amount } = &held.reservation;
            let hint = if held.is_running {
                String::new()
            } else {
                let hint = format!("hookloop resume {session}, with --take-over from elsewhere");
                format!("  {DIM}not running here; if it died:{DIM:#} {hint}")
            };
            lines.push(format!("  {session} reserves {amount} since {since}{hint}"));
        }
        lines
    }
}

fn left(limit: BudgetBounds, gone: Amount) -> BudgetBounds {
    let left = |limit: Option<u64>, gone: u64| limit.map(|limit| limit.saturating_sub(gone));
    BudgetBounds {
        cost_micros: left(limit.cost_micros, gone.cost_micros),
        tokens: left(limit.tokens, gone.tokens),
        turns: left(limit.turns, gone.turns),
    }
}
