//! `hookloop fleet`

use hookloop_core::fleet::{FleetOrder, FleetOrdered, FleetScope, REASON_MAX, StandingOrder};
use hookloop_core::purse::{BudgetBounds, BudgetPeriod, Purse};
use hookloop_core::session::plan::Dollars;
use hookloop_core::time::Timestamp;
use hookloop_fleet::fleet::{Fleet, GONE_AFTER_MS, ServedProject, ServedSession, WorkerPresence};
use serde::Serialize;
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, CommandOutput, DIM};
use crate::sanitize::plain;

/// Characters of an agent in a line of the status.
const AGENT_MAX: usize = 32;

#[derive(clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum FleetCommand {
    Status(FleetStatusArgs),
    Pause(FleetPauseArgs),
    Stop(FleetStopArgs),
    Resume(FleetResumeArgs),
    Drain(DrainArgs),
    Budget(BudgetArgs),
}

/// Who works on what, what was ordered, and what was spent
///
/// The fleet is all workers that share the store of this project.
#[derive(clap::Args)]
pub(crate) struct FleetStatusArgs {}

/// Let nothing new begin: no task, no turn, no hook; what is under way goes on
#[derive(clap::Args)]
pub(crate) struct FleetPauseArgs {
    #[command(flatten)]
    order: OrderArgs,
}

/// End what runs: agents and hooks are killed, tasks go back, and nothing new begins
#[derive(clap::Args)]
pub(crate) struct FleetStopArgs {
    #[command(flatten)]
    order: OrderArgs,
}

#[derive(clap::Args)]
struct OrderArgs {
    /// `all`, `project:NAME` or `worker:NAME`
    #[arg(default_value = "all")]
    scope: FleetScope,

    /// Why, for those who look at the status
    #[arg(long)]
    reason: Option<String>,
}

/// Take back what was ordered
#[derive(clap::Args)]
pub(crate) struct FleetResumeArgs {
    /// `all`, `project:NAME` or `worker:NAME`
    #[arg(default_value = "all")]
    scope: FleetScope,
}

/// Have a worker finish what it has, and end
///
/// The worker may have ended already: then the next worker of that name ends at once. A name that the fleet has never seen
/// is refused.
#[derive(clap::Args)]
pub(crate) struct DrainArgs {
    worker: hookloop_core::fleet::WorkerName,

    #[arg(long)]
    reason: Option<String>,
}

/// Show or set what all sessions of all workers together may spend
#[derive(clap::Args)]
pub(crate) struct BudgetArgs {
    /// In dollars
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    cost: Option<Dollars>,

    #[arg(long, value_name = "N")]
    tokens: Option<u64>,

    /// Turns of agents
    #[arg(long, value_name = "N")]
    turns: Option<u64>,

    /// For how long: day (UTC) or ever
    #[arg(long, value_name = "PERIOD", default_value = "day", value_parser = period)]
    per: BudgetPeriod,

    /// Dollars that are set aside for each turn before it begins
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    turn_cost: Option<Dollars>,

    /// Tokens that are set aside for each turn before it begins
    #[arg(long, value_name = "N")]
    turn_tokens: Option<u64>,

    /// No bound any more
    #[arg(long, conflicts_with_all = ["cost", "tokens", "turns", "turn_cost", "turn_tokens"])]
    none: bool,
}

fn period(text: &str) -> std::result::Result<BudgetPeriod, String> {
    [BudgetPeriod::Day, BudgetPeriod::Ever]
        .into_iter()
        .find(|period| period.name() == text)
        .ok_or_else(|| "`day` or `ever`".to_owned())
}

impl FleetCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let fleet = open(context)?;
        match self {
            FleetCommand::Status(_) => status(context, &fleet),
            FleetCommand::Pause(args) => order(context, &fleet, FleetOrder::Pause, args.order),
            FleetCommand::Stop(args) => order(context, &fleet, FleetOrder::Stop, args.order),
            FleetCommand::Resume(args) => resume(context, &fleet, args.scope),
            FleetCommand::Drain(DrainArgs { worker, reason }) => {
                let scope = FleetScope::Worker(worker.to_string());
                order(context, &fleet, FleetOrder::Drain, OrderArgs { scope, reason })
            }
            FleetCommand::Budget(args) => args.run(context, &fleet),
        }
    }
}

pub(super) fn open(context: &mut CommandContext) -> CliResult<Fleet> {
    let project = context.project_to_read()?;
    let fleet = Fleet::beside(&project, &state_home()?, &context.surroundings()?)?;
    fleet.log().store().hold_still()?;
    Ok(fleet)
}

fn order(
    context: &mut CommandContext,
    fleet: &Fleet,
    order: FleetOrder,
    args: OrderArgs,
) -> CliResult {
    let OrderArgs { scope, reason } = args;
    if let Some(reason) = &reason
        && reason.len() > REASON_MAX
    {
        return Err(CliError::usage(format!("a reason has at most {REASON_MAX} bytes")));
    }
    fleet.order(FleetOrdered { scope: scope.clone(), order, reason })?;
    if context.out.json {
        return context.out.json(&json!({ "order": order.name(), "scope": scope.to_string() }));
    }
    let word = match order {
        FleetOrder::Drain => "is to finish what it has, and end",
        FleetOrder::Pause => "begins nothing new",
        FleetOrder::Stop => "stops",
    };
    context.out.line(format_args!("{scope} {word}. {DIM}hookloop fleet resume {scope}{DIM:#}"))
}

fn resume(context: &mut CommandContext, fleet: &Fleet, scope: FleetScope) -> CliResult {
    let was_there = fleet.lift(scope.clone())?;
    let left = fleet.orders()?.0;
    if context.out.json {
        return context.out.json(&json!({ "resumed": was_there, "scope": scope.to_string() }));
    }
    if was_there {
        context.out.line(format_args!("{scope} goes on."))?
    } else {
        context.out.line(format_args!("Nothing was ordered of {scope}."))?
    }
    for standing in left {
        let scope = &standing.ordered.scope;
        let order = standing.ordered.order.name();
        context.out.line(format_args!("{DIM}still: {order} {scope}{DIM:#}"))?;
    }
    Ok(())
}

impl BudgetArgs {
    /// Whether it changes the budget.
    pub(super) fn sets(&self) -> bool {
        self.none || self.cost.is_some() || self.tokens.is_some() || self.turns.is_some()
    }

    fn run(self, context: &mut CommandContext, fleet: &Fleet) -> CliResult {
        let bounds = BudgetBounds {
            cost_micros: micros(self.cost)?,
            tokens: self.tokens,
            turns: self.turns,
        };
        if self.sets() {
            let turn = BudgetBounds {
                cost_micros: micros(self.turn_cost)?,
                tokens: self.turn_tokens,
                turns: None,
            };
            let purse = match (self.none, self.per) {
                (true, _) => Purse::default(),
                (false, BudgetPeriod::Day) => Purse { day: bounds, turn, ..Purse::default() },
                (false, BudgetPeriod::Ever) => Purse { ever: bounds, turn, ..Purse::default() },
            };
            fleet.set_budget(purse)?;
        }
        let purse = fleet.budget()?;
        match context.out.json {
            true => context.out.json(&json!({ "budget": budget_json(&purse) })),
            false if purse.is_none() => context.out.line("The fleet has no budget."),
            false => context.out.line(format_args!("The fleet may spend {purse}")),
        }
    }
}

fn budget_json(purse: &Purse) -> serde_json::Value {
    let bounds = |bounds: BudgetBounds| json!({ "cost_micros": bounds.cost_micros, "tokens": bounds.tokens, "turns": bounds.turns });
    json!({ "day": bounds(purse.day), "ever": bounds(purse.ever), "turn": bounds(purse.turn) })
}

/// An agent, as far as a line has room for it: one may be a whole command.
fn brief(agent: &str) -> String {
    if agent.chars().count() > AGENT_MAX {
        agent.chars().take(AGENT_MAX - 1).chain(['…']).collect()
    } else {
        agent.to_owned()
    }
}

fn micros(amount: Option<Dollars>) -> CliResult<Option<u64>> {
    match amount {
        Some(Dollars(0)) => Err(CliError::usage("an amount is more than nothing")),
        amount => Ok(amount.map(|Dollars(micros)| micros)),
    }
}

#[derive(Serialize)]
struct StatusJson {
    workers: Vec<WorkerJson>,
    orders: Vec<OrderJson>,
    slowed: Vec<SlowedJson>,
    budget: serde_json::Value,
    spent_today_micros: u64,
    spent_micros: u64,
    reserved_micros: u64,
}

#[derive(Serialize)]
struct WorkerJson {
    name: String,
    machine: String,
    pid: u32,
    version: String,
    format: u32,
    /// `working`, `draining`, `paused`, `stopped`, `gone`, or `other` for one that only a newer version has.
    state: &'static str,
    slots: u32,
    agent: String,
    projects: Vec<ServedProject>,
    running: Vec<ServedSession>,
    started: String,
    seen: String,
}

#[derive(Serialize)]
struct OrderJson {
    order: &'static str,
    scope: String,
    reason: Option<String>,
    by: String,
    at: String,
}

#[derive(Serialize)]
struct SlowedJson {
    what: String,
    until: String,
}

fn state_of(worker: &WorkerPresence, now: Timestamp) -> &'static str {
    if now.millis_since(worker.seen) > GONE_AFTER_MS { "gone" } else { worker.state.name() }
}

fn status(context: &mut CommandContext, fleet: &Fleet) -> CliResult {
    let now = fleet.log().now();
    let workers = fleet.workers()?;
    let orders = fleet.orders()?.0;
    let slowed = fleet.slowed()?;
    let budget = fleet.budget()?;
    let standing = fleet.log().read(|view| view.purse(now.into()))?;
    let day = standing.day.cost_micros;
    let ever = standing.ever.cost_micros;
    let open = standing.open.cost_micros;
    let out = &mut context.out;
    if out.json {
        let slowed = slowed
            .into_iter()
            .map(|slowed| SlowedJson { what: slowed.what, until: slowed.until.to_string() });
        return out.json(&StatusJson {
            workers: workers.into_iter().map(|worker| WorkerJson::new(worker, now)).collect(),
            orders: orders.into_iter().map(OrderJson::from).collect(),
            slowed: slowed.collect(),
            budget: budget_json(&budget),
            spent_today_micros: day,
            spent_micros: ever,
            reserved_micros: open,
        });
    }
    for standing in &orders {
        let scope = &standing.ordered.scope;
        let order = standing.ordered.order.name();
        let reason = standing.ordered.reason.as_deref().unwrap_or("no reason given");
        out.line(format_args!("{BOLD}{order} {scope}{BOLD:#}: {} {DIM}by {}, {}; hookloop fleet resume {scope}{DIM:#}", plain(reason), plain(&standing.by), standing.at))?;
    }
    for slowed in &slowed {
        let what = plain(&slowed.what);
        out.line(format_args!("{what} wants to be left alone until {}", slowed.until))?;
    }
    if workers.is_empty() {
        out.line(format_args!("No worker is there. {DIM}hookloop worker --agent claude{DIM:#}"))?;
    }
    let newest = workers.iter().map(|worker| worker.version.clone()).max();
    for worker in &workers {
        print_worker(out, worker, newest.as_deref(), now)?;
    }
    let bound = if budget.is_none() { "no budget".to_owned() } else { format!("budget {budget}") };
    out.line(format_args!(
        "spent {} today, {} in all, {} set aside; {bound}",
        Dollars(day),
        Dollars(ever),
        Dollars(open)
    ))
}

impl WorkerJson {
    fn new(worker: WorkerPresence, now: Timestamp) -> WorkerJson {
        WorkerJson {
            state: state_of(&worker, now),
            name: worker.name.to_string(),
            machine: worker.machine,
            pid: worker.pid,
            version: worker.version,
            format: worker.format,
            slots: worker.slots,
            agent: worker.agent,
            projects: worker.projects,
            running: worker.running,
            started: worker.started.to_string(),
            seen: worker.seen.to_string(),
        }
    }
}

impl From<StandingOrder> for OrderJson {
    fn from(standing: StandingOrder) -> OrderJson {
        OrderJson {
            order: standing.ordered.order.name(),
            scope: standing.ordered.scope.to_string(),
            reason: standing.ordered.reason,
            by: standing.by,
            at: standing.at.to_string(),
        }
    }
}

/// Prints a worker, its sessions, and the projects that it can't serve.
fn print_worker(
    out: &mut CommandOutput,
    worker: &WorkerPresence,
    newest: Option<&str>,
    now: Timestamp,
) -> CliResult {
    let state = state_of(worker, now);
    let busy = format!("{}/{}", worker.running.len(), worker.slots);
    let old = match newest {
        Some(newest) if *newest != worker.version => format!(" (version {})", worker.version),
        _ => String::new(),
    };
    out.line(format_args!(
        "{BOLD}{}{BOLD:#}  {state}  {busy} by {}{}  {DIM}{} pid {}{DIM:#}",
        worker.name,
        plain(&brief(&worker.agent)),
        plain(&old),
        plain(&worker.machine),
        worker.pid
    ))?;
    for running in &worker.running {
        let minutes = now.millis_since(running.since) / 60_000;
        out.line(format_args!(
            "  {}: {}  {DIM}{minutes} min, session {}{DIM:#}",
            plain(&running.project),
            plain(&running.task),
            plain(&running.session)
        ))?;
    }
    for served in worker.projects.iter().filter(|served| served.unfit.is_some()) {
        let why = served.unfit.as_deref().unwrap_or_default();
        out.line(format_args!("  {}: takes nothing: {}", plain(&served.project), plain(why)))?;
    }
    Ok(())
}
