//! `hookloop fleet`

use hookloop_core::fleet::{
    FleetDirective, FleetDirectiveSet, FleetScope, REASON_MAX, StandingDirective,
};
use hookloop_core::session::plan::Dollars;
use hookloop_core::shared_budget::{BudgetBounds, BudgetPeriod, SharedBudget};
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

/// Show workers, directives, rate limits and the budget
///
/// The fleet is all workers that share the store of this project.
#[derive(clap::Args)]
pub(crate) struct FleetStatusArgs {}

/// Start no new task, turn or hook; running ones finish
#[derive(clap::Args)]
pub(crate) struct FleetPauseArgs {
    #[command(flatten)]
    directive: DirectiveArgs,
}

/// Kill running agents and hooks, release their tasks, start nothing new
#[derive(clap::Args)]
pub(crate) struct FleetStopArgs {
    #[command(flatten)]
    directive: DirectiveArgs,
}

#[derive(clap::Args)]
struct DirectiveArgs {
    /// Scope: `all`, `project:NAME` or `worker:NAME`
    #[arg(default_value = "all")]
    scope: FleetScope,

    /// Reason that `hookloop fleet status` shows
    #[arg(long)]
    reason: Option<String>,
}

/// Clear the directive of a scope
#[derive(clap::Args)]
pub(crate) struct FleetResumeArgs {
    /// Scope: `all`, `project:NAME` or `worker:NAME`
    #[arg(default_value = "all")]
    scope: FleetScope,
}

/// Let a worker finish its tasks, and end it
///
/// If the worker has ended already, the next worker of that name ends at once. A name that the fleet has never seen is
/// refused.
#[derive(clap::Args)]
pub(crate) struct DrainArgs {
    /// Name of the worker
    worker: hookloop_core::fleet::WorkerName,

    /// Reason that `hookloop fleet status` shows
    #[arg(long)]
    reason: Option<String>,
}

/// Show or set the budget of all workers
#[derive(clap::Args)]
pub(crate) struct BudgetArgs {
    /// Maximum cost in dollars
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    cost: Option<Dollars>,

    /// Maximum tokens
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,

    /// Maximum turns of agents
    #[arg(long, value_name = "N")]
    turns: Option<u64>,

    /// Period of the budget: day (UTC) or total
    #[arg(long, value_name = "PERIOD", default_value = "day", value_parser = period)]
    period: BudgetPeriod,

    /// Cost in dollars that is reserved before each turn [default: 1]
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    reserve_cost: Option<Dollars>,

    /// Tokens that are reserved before each turn [default: 2000000]
    #[arg(long, value_name = "N")]
    reserve_tokens: Option<u64>,

    /// Remove the budget
    #[arg(long, conflicts_with_all = ["cost", "tokens", "turns", "reserve_cost", "reserve_tokens"])]
    none: bool,
}

fn period(text: &str) -> std::result::Result<BudgetPeriod, String> {
    [BudgetPeriod::Day, BudgetPeriod::Total]
        .into_iter()
        .find(|period| period.name() == text)
        .ok_or_else(|| "`day` or `total`".to_owned())
}

impl FleetCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let fleet = open(context)?;
        match self {
            FleetCommand::Status(_) => status(context, &fleet),
            FleetCommand::Pause(args) => {
                direct(context, &fleet, FleetDirective::Pause, args.directive)
            }
            FleetCommand::Stop(args) => {
                direct(context, &fleet, FleetDirective::Stop, args.directive)
            }
            FleetCommand::Resume(args) => resume(context, &fleet, args.scope),
            FleetCommand::Drain(DrainArgs { worker, reason }) => {
                let scope = FleetScope::Worker(worker.to_string());
                direct(context, &fleet, FleetDirective::Drain, DirectiveArgs { scope, reason })
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

fn direct(
    context: &mut CommandContext,
    fleet: &Fleet,
    directive: FleetDirective,
    args: DirectiveArgs,
) -> CliResult {
    let DirectiveArgs { scope, reason } = args;
    if let Some(reason) = &reason
        && reason.len() > REASON_MAX
    {
        return Err(CliError::usage(format!("a reason has at most {REASON_MAX} bytes")));
    }
    fleet.order(FleetDirectiveSet { scope: scope.clone(), directive, reason })?;
    if context.out.json {
        let directive = directive.name();
        return context.out.json(&json!({ "directive": directive, "scope": scope.to_string() }));
    }
    let word = match directive {
        FleetDirective::Drain => "finishes its tasks, then ends",
        FleetDirective::Pause => "starts nothing new",
        FleetDirective::Stop => "stops",
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
        context.out.line(format_args!("{scope} continues."))?
    } else {
        context.out.line(format_args!("{scope} has no directive."))?
    }
    for standing in left {
        let scope = &standing.set.scope;
        let directive = standing.set.directive.name();
        context.out.line(format_args!("{DIM}still: {directive} {scope}{DIM:#}"))?;
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
            let reserve_per_turn = BudgetBounds {
                cost_micros: micros(self.reserve_cost)?,
                tokens: self.reserve_tokens,
                turns: None,
            };
            let budget = match (self.none, self.period) {
                (true, _) => SharedBudget::default(),
                (false, BudgetPeriod::Day) => {
                    SharedBudget { day: bounds, reserve_per_turn, ..SharedBudget::default() }
                }
                (false, BudgetPeriod::Total) => {
                    SharedBudget { total: bounds, reserve_per_turn, ..SharedBudget::default() }
                }
            };
            fleet.set_budget(budget)?;
        }
        let budget = fleet.budget()?;
        match context.out.json {
            true => context.out.json(&json!({ "budget": budget_json(&budget) })),
            false if budget.is_none() => context.out.line("The fleet has no budget."),
            false => context.out.line(format_args!("The fleet may spend {budget}")),
        }
    }
}

fn budget_json(budget: &SharedBudget) -> serde_json::Value {
    let bounds = |bounds: BudgetBounds| json!({ "cost_micros": bounds.cost_micros, "tokens": bounds.tokens, "turns": bounds.turns });
    json!({ "day": bounds(budget.day), "total": bounds(budget.total), "reserve_per_turn": bounds(budget.reserve_per_turn) })
}

/// Returns the start of an agent's name that fits into a line. The name may be a whole command.
fn brief(agent: &str) -> String {
    if agent.chars().count() > AGENT_MAX {
        agent.chars().take(AGENT_MAX - 1).chain(['…']).collect()
    } else {
        agent.to_owned()
    }
}

fn micros(amount: Option<Dollars>) -> CliResult<Option<u64>> {
    match amount {
        Some(Dollars(0)) => Err(CliError::usage("an amount must be greater than 0")),
        amount => Ok(amount.map(|Dollars(micros)| micros)),
    }
}

#[derive(Serialize)]
struct StatusJson {
    workers: Vec<WorkerJson>,
    directives: Vec<DirectiveJson>,
    rate_limited: Vec<RateLimitJson>,
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
    /// `working`, `draining`, `paused`, `stopped`, `lost`, or `other` for a state that only a newer version knows.
    state: &'static str,
    slots: u32,
    agent: String,
    projects: Vec<ServedProject>,
    running: Vec<ServedSession>,
    started: String,
    seen: String,
}

#[derive(Serialize)]
struct DirectiveJson {
    directive: &'static str,
    scope: String,
    reason: Option<String>,
    by: String,
    at: String,
}

#[derive(Serialize)]
struct RateLimitJson {
    /// The provider or forge that returned the rate limit.
    source: String,
    until: String,
}

fn state_of(worker: &WorkerPresence, now: Timestamp) -> &'static str {
    if now.millis_since(worker.seen) > GONE_AFTER_MS { "lost" } else { worker.state.name() }
}

fn status(context: &mut CommandContext, fleet: &Fleet) -> CliResult {
    let now = fleet.log().now();
    let workers = fleet.workers()?;
    let directives = fleet.orders()?.0;
    let rate_limited = fleet.slowed()?;
    let budget = fleet.budget()?;
    let standing = fleet.log().read(|view| view.budget_standing(now.into()))?;
    let day = standing.day.cost_micros;
    let total = standing.total.cost_micros;
    let open = standing.open.cost_micros;
    let out = &mut context.out;
    if out.json {
        let rate_limited = rate_limited
            .into_iter()
            .map(|limit| RateLimitJson { source: limit.source, until: limit.until.to_string() });
        return out.json(&StatusJson {
            workers: workers.into_iter().map(|worker| WorkerJson::new(worker, now)).collect(),
            directives: directives.into_iter().map(DirectiveJson::from).collect(),
            rate_limited: rate_limited.collect(),
            budget: budget_json(&budget),
            spent_today_micros: day,
            spent_micros: total,
            reserved_micros: open,
        });
    }
    for standing in &directives {
        let scope = &standing.set.scope;
        let directive = standing.set.directive.name();
        let reason = standing.set.reason.as_deref().unwrap_or("no reason given");
        out.line(format_args!("{BOLD}{directive} {scope}{BOLD:#}: {} {DIM}by {}, {}; hookloop fleet resume {scope}{DIM:#}", plain(reason), plain(&standing.by), standing.at))?;
    }
    for limit in &rate_limited {
        out.line(format_args!("{}: rate limit until {}", plain(&limit.source), limit.until))?;
    }
    if workers.is_empty() {
        let start = "hookloop worker --agent claude";
        out.line(format_args!("No workers. Start one: {DIM}{start}{DIM:#}"))?;
    }
    let newest = workers.iter().map(|worker| worker.version.clone()).max();
    for worker in &workers {
        print_worker(out, worker, newest.as_deref(), now)?;
    }
    let bound = if budget.is_none() { "no budget".to_owned() } else { format!("budget {budget}") };
    out.line(format_args!(
        "spent {} today, {} in total, {} reserved; {bound}",
        Dollars(day),
        Dollars(total),
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

impl From<StandingDirective> for DirectiveJson {
    fn from(standing: StandingDirective) -> DirectiveJson {
        DirectiveJson {
            directive: standing.set.directive.name(),
            scope: standing.set.scope.to_string(),
            reason: standing.set.reason,
            by: standing.by,
            at: standing.at.to_string(),
        }
    }
}

/// Prints a worker, its sessions, and its ineligible projects.
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
    for served in worker.projects.iter().filter(|served| served.ineligible.is_some()) {
        let why = served.ineligible.as_deref().unwrap_or_default();
        out.line(format_args!("  {}: ineligible: {}", plain(&served.project), plain(why)))?;
    }
    Ok(())
}
