//! `hookloop checks`

use std::collections::{BTreeSet, VecDeque};

use hookloop_core::checks::CheckOutcome;
use hookloop_core::excerpt::first_names;
use hookloop_core::hook::Hook;
use hookloop_core::nearest::did_you_mean;
use hookloop_core::point::Point;
use hookloop_core::time::Timestamp;
use hookloop_engine::check_history::{self, CheckTrend, GateChecks, ReadChecks, RecordedRun};
use hookloop_engine::project::Project;
use hookloop_engine::session::lookup;
use serde::Serialize;

use super::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::output::{BOLD, CommandOutput, DIM};
use crate::present;
use crate::sanitize::plain;

/// Checks of a list that are printed. JSON has all.
const LISTED_MAX: usize = 50;
/// Slowest checks of a gate that are printed.
const SLOWEST_SHOWN: usize = 5;
/// Gates that an error names.
const GATES_NAMED: usize = 20;
/// Columns of a duration.
const DURATION_WIDTH: usize = 8;

/// Show the results of single tests and other checks of gates
///
/// Each check has its newest outcome, the tree that it ran on, and its history over all sessions. The command prints
/// failing checks, newly skipped checks and the slowest checks of each gate. With --json, it prints all checks.
#[derive(clap::Args)]
pub(crate) struct ChecksArgs {
    /// Name of the gate [default: all gates]
    #[arg(value_name = "GATE")]
    gate: Option<String>,

    /// Session of the checks: id, start of the id, or name [default: all sessions]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,

    /// Only checks that fail
    #[arg(long)]
    failing: bool,
}

/// A check in the output of `--json`.
#[derive(Serialize)]
struct CheckJson<'a> {
    gate: &'a str,
    id: &'a str,
    outcome: CheckOutcome,
    /// The last known duration; none if no report has it.
    ms: Option<u64>,
    /// The tree of the newest run with the check; none if it is unknown.
    tree: Option<&'a str>,
    session: &'a str,
    at: Timestamp,
    since: Timestamp,
    runs: u32,
    failures: u32,
    flips: u32,
    /// The last outcomes, oldest first.
    history: &'a VecDeque<CheckOutcome>,
    gone: bool,
}

impl ChecksArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let project = context.project_to_read()?;
        let session = self.session.as_deref().map(|wanted| lookup::find(&project, wanted));
        let session = session.transpose()?.map(|row| row.id);
        let read = check_history::read(&project, session.as_ref())?;
        if let Some(gate) = &self.gate {
            check_gate(&project, &read, gate)?;
        }
        let gates: Vec<&GateChecks> =
            read.history.gates().filter(|gate| self.is_of(gate)).collect();
        let out = &mut context.out;
        if out.json {
            return out.json(&self.json(&gates));
        }
        if gates.is_empty() {
            return self.print_reason(&project, out);
        }
        for gate in &gates {
            self.print_gate(gate, project.now(), out)?;
        }
        if read.has_older {
            out.line(format_args!("{DIM}older sessions are left out{DIM:#}"))?;
        }
        Ok(())
    }

    fn is_of(&self, gate: &GateChecks) -> bool {
        self.gate.as_ref().is_none_or(|wanted| *wanted == gate.name)
    }

    fn json<'a>(&self, gates: &[&'a GateChecks]) -> Vec<CheckJson<'a>> {
        let mut found: Vec<(&'a str, &'a CheckTrend)> = Vec::new();
        for gate in gates {
            let checks = gate.checks().into_iter().filter(|check| self.admits(check));
            found.extend(checks.map(|check| (gate.name.as_str(), check)));
        }
        // The order within a gate is right already.
        if gates.len() > 1 {
            found.sort_by(|a, b| a.1.compare(b.1).then_with(|| a.0.cmp(b.0)));
        }
        found.into_iter().map(|(gate, check)| json_of(gate, check)).collect()
    }

    fn admits(&self, check: &CheckTrend) -> bool {
        !self.failing || check.is_failing()
    }

    /// Prints why there are no records, and the next step.
    fn print_reason(&self, project: &Project, out: &mut CommandOutput) -> CliResult {
        if project.read(|view| view.sessions(1))?.is_empty() {
            return out.line("No sessions yet. Start one: hookloop run \"…\" --agent claude");
        }
        let gate = self.gate.as_deref();
        let gate = gate.map_or_else(String::new, |gate| format!(" of the gate {}", plain(gate)));
        let session = if self.session.is_some() { " in this session" } else { "" };
        out.line(format_args!("No checks{gate} are recorded{session}."))?;
        out.line(
            "A gate's checks are known if it writes a report, or if it runs a known test runner.",
        )?;
        out.line(
            "Name the report in hookloop.yaml with `report: PATH`, or let the gate write it to \
             `$HOOKLOOP_REPORT`.",
        )?;
        out.line(format_args!("  {DIM}gates:{DIM:#} hookloop hooks explain stop"))
    }

    fn print_gate(&self, gate: &GateChecks, now: Timestamp, out: &mut CommandOutput) -> CliResult {
        let Some(run) = gate.newest() else { return Ok(()) };
        out.line(headline(&gate.name, run, now))?;
        let checks = gate.checks();
        let failing: Vec<&CheckTrend> =
            checks.iter().copied().filter(|check| check.is_failing()).collect();
        print_checks(&failing, out)?;
        if self.failing {
            return Ok(());
        }
        let skipped: Vec<&CheckTrend> =
            checks.iter().copied().filter(|check| check.is_newly_skipped()).collect();
        print_checks(&skipped, out)?;
        let slowest = gate.slowest(SLOWEST_SHOWN);
        if !slowest.is_empty() {
            out.line(format_args!("  {DIM}slowest{DIM:#}"))?;
        }
        for (id, ms) in slowest {
            let took = present::duration(ms);
            let id = out.fitting(&plain(id), DURATION_WIDTH + 4);
            out.line(format_args!("  {took:>DURATION_WIDTH$}  {id}"))?;
        }
        if !run.complete {
            let note = "the output of the runner does not name all checks";
            out.line(format_args!("  {DIM}{note}{DIM:#}"))?;
        }
        let gone = checks.iter().filter(|check| check.gone).count();
        if gone > 0 {
            let gone = present::counted_items(gone, "check", "checks");
            out.line(format_args!("  {DIM}{gone} of earlier runs did not run{DIM:#}"))?;
        }
        let name = plain(&gate.name);
        out.line(format_args!("  {DIM}all checks:{DIM:#} hookloop checks {name} --json"))
    }
}

/// Fails if neither the configuration nor a record has the gate.
fn check_gate(project: &Project, read: &ReadChecks, wanted: &str) -> CliResult {
    let registry = project.hooks()?;
    let is_gate = |hook: &&Hook| hook.points.iter().any(has_checks);
    let configured = registry.list().iter().filter(is_gate).map(|hook| hook.name.as_str());
    let recorded = read.history.gates().map(|gate| gate.name.as_str());
    let known: BTreeSet<&str> = configured.chain(recorded).collect();
    if known.contains(wanted) {
        return Ok(());
    }
    let nearest = did_you_mean(wanted, known.iter().copied());
    let error = CliError::refused(format!("there is no gate `{wanted}`{nearest}"));
    if known.is_empty() {
        return Err(error.hint("hookloop hooks explain stop"));
    }
    let known: Vec<&str> = known.into_iter().collect();
    Err(error.advice(format!("the gates are {}", first_names(&known, GATES_NAMED))))
}

/// Whether the gates of a point can report checks.
fn has_checks(point: &Point) -> bool {
    matches!(point, Point::Validation | Point::Stop | Point::BeforeSubmit | Point::BeforeMerge)
}

fn json_of<'a>(gate: &'a str, check: &'a CheckTrend) -> CheckJson<'a> {
    CheckJson {
        gate,
        id: &check.id,
        outcome: check.outcome,
        ms: check.ms,
        tree: check.run.tree.as_deref(),
        session: check.run.session.as_str(),
        at: check.run.at,
        since: check.since,
        runs: check.runs,
        failures: check.failures,
        flips: check.flips,
        history: &check.history,
        gone: check.gone,
    }
}

/// Returns the counts of a gate's newest run, with its tree, its room and its age.
fn headline(gate: &str, run: &RecordedRun, now: Timestamp) -> String {
    let tree = run.tree.as_deref().map(|tree| format!("tree {}", present::short_hash(tree)));
    let tree = present::on_tree(tree.as_deref());
    let room = run.room.as_ref().map(present::room);
    let room = room.map_or_else(String::new, |room| format!(" ({room})"));
    let counts = present::check_counts(run.counts);
    let age = present::ago(now.millis_since(run.at));
    format!("{BOLD}{}{BOLD:#}: {counts}, {tree}{room}, {age}", plain(gate))
}

/// Prints checks with their history, and counts those beyond the limit.
fn print_checks(checks: &[&CheckTrend], out: &mut CommandOutput) -> CliResult {
    for check in checks.iter().take(LISTED_MAX) {
        let sign = mark(check.outcome);
        let marks: String = check.history.iter().copied().map(mark).collect();
        let runs = present::counted(check.runs, "run", "runs");
        let facts = format!(
            "{marks}  since {}, failed in {} of {runs}",
            minute(check.since),
            check.failures
        );
        let id = out.fitting(&plain(&check.id), facts.chars().count() + 6);
        out.line(format_args!("  {sign} {id}  {DIM}{facts}{DIM:#}"))?;
    }
    let more = checks.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        out.line(format_args!("  {DIM}and {more} more{DIM:#}"))?;
    }
    Ok(())
}

/// Returns a time without its seconds: `2026-11-18 10:13 UTC`.
fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} UTC", text.get(..16).unwrap_or(&text).replace('T', " "))
}

/// Returns the sign of an outcome.
fn mark(outcome: CheckOutcome) -> char {
    match outcome {
        CheckOutcome::Passed => '✓',
        CheckOutcome::Failed => '✗',
        CheckOutcome::Skipped => '-',
    }
}
