//! The output of `hookloop init`: findings, results of gates, written files and next commands.

use std::io::{IsTerminal, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use hookloop_agents::CommandAccess;
use hookloop_config::agents::AgentSettings;
use hookloop_config::agents::profile::any_install_command;
use hookloop_config::paths::ProjectPaths;
use hookloop_engine::session::now::NowBoard;
use hookloop_fleet::survey::room_search::{RoomFinding, RoomNeeds};
use hookloop_fleet::survey::trial::{GateTrial, TRIED_WITHIN};
use hookloop_fleet::survey::{GateKind, GateProposal};
use serde_json::{Value, json};

use super::file::{in_directory, not_ready, program_missing, why_not};
use super::{CLAUDE, InitPlan, TriedGate, outer_project};
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult, FailureKind};
use crate::output::{BOLD, DIM, cut_to_terminal};
use crate::present::now;
use crate::sanitize::{plain, plain_output};

/// Lines of a gate's output that are shown when it does not pass.
const SHOWN_LINES: usize = 12;
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
/// Between two drawings of the line of a gate that is tried.
const TICK: Duration = Duration::from_millis(250);
/// Back to the start of the line, and empty it.
const CLEAR: &str = "\r\x1b[K";

/// The result of `init`.
pub(super) struct InitResult<'a> {
    pub(super) place: &'a ProjectPaths,
    pub(super) written: bool,
    pub(super) trusted: Option<String>,
}

/// Prints the proposed gates.
pub(super) fn found(context: &mut CommandContext, plan: &InitPlan) -> CliResult {
    let out = &mut context.out;
    if out.json {
        return Ok(());
    }
    for trouble in &plan.survey.troubles {
        out.line(format_args!("{DIM}note: {}{DIM:#}", plain(trouble)))?;
    }
    if plan.directories.len() > 1 {
        let paths = |is_chosen: bool| {
            let all = plan.directories.iter().filter(|found| found.is_chosen == is_chosen);
            all.map(|found| plain(&found.path).into_owned()).collect::<Vec<_>>()
        };
        let chosen = paths(true).join(", ");
        let others = paths(false).join(", ");
        let note = if others.is_empty() {
            "`--only DIR` chooses some of them".to_owned()
        } else {
            format!("without gates: {others}")
        };
        out.line(format_args!("Directories with gates: {chosen}  {DIM}{note}{DIM:#}"))?;
    }
    if plan.gates.is_empty() {
        return Ok(());
    }
    out.line("Proposed gates:")?;
    let width = plan.gates.iter().map(|tried| tried.gate.name.len()).max().unwrap_or(0);
    for TriedGate { gate, .. } in &plan.gates {
        let note = match &gate.missing {
            Some(missing) => program_missing(missing),
            None => gate.from.clone(),
        };
        let note = match &gate.cwd {
            Some(cwd) => format!("in {cwd}; {note}"),
            None => note,
        };
        let name = &gate.name;
        let command = plain(&gate.command);
        let note = plain(&note);
        out.line(format_args!("  {BOLD}{name:width$}{BOLD:#}  {command}  {DIM}{note}{DIM:#}"))?;
    }
    Ok(())
}

/// Prints the effects of the trial runs, before the user agrees to them.
pub(super) fn before_trials(context: &mut CommandContext) -> CliResult {
    if context.out.json {
        return Ok(());
    }
    context.out.line(format_args!(
        "{DIM}Each gate runs here and in a clean room: a checkout without the files that git ignores.{DIM:#}"
    ))?;
    context.out.line(format_args!(
        "{DIM}If a gate needs packages there, they are installed in the room, for example by npm ci.{DIM:#}"
    ))
}

/// Prints the heading of the trial runs.
pub(super) fn begun(context: &mut CommandContext) -> CliResult {
    if context.out.json { Ok(()) } else { context.out.line("Results of one run:") }
}

/// A line on a terminal while a gate runs: its time, and the last line that it printed.
pub(super) struct RunningGate {
    /// None where there is no terminal.
    over: Option<Arc<Mutex<bool>>>,
}

impl RunningGate {
    /// `place` follows the name of the gate.
    pub(super) fn new(gate: &GateProposal, board: &NowBoard, place: &str) -> RunningGate {
        if !std::io::stderr().is_terminal() || crate::quiet::is_set() {
            return RunningGate { over: None };
        }
        let over: Arc<Mutex<bool>> = Arc::default();
        let is_over = Arc::clone(&over);
        let board = board.clone();
        let began = Instant::now();
        let what = format!("running {}{}: {}", gate.name, plain(place), plain(&gate.command));
        // Without a thread there is no status line; the trial runs anyway.
        let _ = std::thread::Builder::new().name("status".to_owned()).spawn(move || {
            loop {
                let is_over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
                if *is_over {
                    return;
                }
                let record = board.record();
                let last = record
                    .hooks
                    .first()
                    .map(|hook| now::last_output(hook, crate::environment::now()));
                let took = began.elapsed().as_secs();
                let last = last.unwrap_or_default();
                let line = format!("  {what}  {took} s, ctrl-c skips  {last}");
                // A line that can't be drawn is no reason to stop the work.
                let _ = write!(std::io::stderr(), "{CLEAR}{}", cut_to_terminal(&line));
                drop(is_over);
                std::thread::sleep(TICK);
            }
        });
        RunningGate { over: Some(over) }
    }
}

impl Drop for RunningGate {
    fn drop(&mut self) {
        if let Some(over) = &self.over {
            *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
            // A terminal that is gone needs no clearing.
            let _ = write!(std::io::stderr(), "{CLEAR}");
        }
    }
}

/// Prints a gate whose trial the user skipped.
pub(super) fn skipped(context: &mut CommandContext, tried: &TriedGate) -> CliResult {
    let out = &mut context.out;
    if out.json {
        return Ok(());
    }
    let name = &tried.gate.name;
    out.line(format_args!(
        "  skipped  {BOLD}{name}{BOLD:#}  {DIM}not tried: you pressed ctrl-c{DIM:#}"
    ))?;
    out.flush()
}

/// Prints the result of a trial run.
pub(super) fn tried(context: &mut CommandContext, tried: &TriedGate) -> CliResult {
    let out = &mut context.out;
    if out.json {
        return Ok(());
    }
    let name = &tried.gate.name;
    let (style, word, note, output) = match &tried.trial {
        GateTrial::NotTried => return Ok(()),
        GateTrial::Passed { ms } => {
            (GOOD, "passed", with_room(tried, &seconds(*ms)), output_there(tried))
        }
        GateTrial::Failed { ms, why, output } => {
            let note = format!("{}, {why}: work for an agent", seconds(*ms));
            (BAD, "fails", with_room(tried, &note), output.as_str())
        }
        GateTrial::NotReady { gap, output } => {
            (BAD, "can't run", not_ready(gap, &tried.gate), output.as_str())
        }
        GateTrial::Absent { why, output } => (BAD, "nothing", why.clone(), output.as_str()),
        GateTrial::TimedOut { output } => (BAD, "slow", why_not(tried), output.as_str()),
    };
    let left_out = if tried.is_written() { "" } else { ": left out as a comment" };
    let note = plain(&note).into_owned();
    out.line(format_args!(
        "  {style}{word:7}{style:#}  {BOLD}{name}{BOLD:#}  {DIM}{note}{left_out}{DIM:#}"
    ))?;
    let lines: Vec<&str> = output.trim_matches(['\n', '\r']).lines().collect();
    for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
        out.line(format_args!("           {DIM}| {}{DIM:#}", plain_output(line)))?;
    }
    out.flush()
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms % 1000 / 100)
}

/// Adds the result in the clean room to the result here.
fn with_room(tried: &TriedGate, here: &str) -> String {
    match &tried.room {
        RoomFinding::NotTried => here.to_owned(),
        RoomFinding::Here { reason, .. } => {
            format!("{here} here; fails in the clean room ({reason}), so the file has `room: here`")
        }
        RoomFinding::Clean { trial, needs } => {
            let with = needs.described().map_or(String::new(), |needs| format!(" with {needs}"));
            match (&tried.trial, trial) {
                (GateTrial::Passed { .. }, GateTrial::Passed { ms }) => {
                    format!("{here} here, {} in the clean room{with}", seconds(*ms))
                }
                (_, GateTrial::Passed { ms }) => {
                    format!("{here}; passes in {} in the clean room{with}", seconds(*ms))
                }
                (_, GateTrial::Failed { .. }) => {
                    format!("{here}; the same in the clean room{with}")
                }
                (_, GateTrial::TimedOut { .. }) => format!(
                    "{here} here, more than {} minutes in the clean room",
                    TRIED_WITHIN.as_secs() / 60
                ),
                _ => format!("{here} here, not tried in the clean room"),
            }
        }
    }
}

/// Returns the output of a gate that passes here and fails in the clean room.
fn output_there(tried: &TriedGate) -> &str {
    match &tried.room {
        RoomFinding::Here { trial, .. } => trial.output(),
        RoomFinding::NotTried | RoomFinding::Clean { .. } => "",
    }
}

/// Prints the paths of an existing project.
pub(super) fn kept(context: &mut CommandContext, place: &ProjectPaths) -> CliResult {
    let out = &mut context.out;
    if out.json {
        let plan = InitPlan::none();
        return out.json(&value(&plan, &InitResult { place, written: false, trusted: None }));
    }
    out.line(format_args!("Kept {}", place.config().display()))?;
    out.line(format_args!("State is in {}", place.state.display()))?;
    out.line(format_args!("Next: hookloop doctor  {DIM}# check that everything works{DIM:#}"))
}

/// Reports that the user declined. The exit code is that of a refused command.
pub(super) fn declined(context: &mut CommandContext) -> CliResult {
    if context.out.json {
        return Err(CliError::refused("nothing was written"));
    }
    context.exit = FailureKind::Refused.exit_code();
    context.out.line("Nothing was written.")
}

pub(super) fn done(
    context: &mut CommandContext,
    plan: &InitPlan,
    done: &InitResult<'_>,
) -> CliResult {
    let out = &mut context.out;
    if out.json {
        return out.json(&value(plan, done));
    }
    let InitResult { place, written, trusted } = done;
    if let Some(outer) = outer_project(place) {
        out.line(format_args!("Separate project inside {}", outer.root.display()))?;
    }
    let verb = if *written { "Wrote" } else { "Kept" };
    let gates = plan.gates.iter().filter(|tried| tried.is_written());
    let gates: Vec<&str> = gates.map(|tried| tried.gate.name.as_str()).collect();
    let gates = match gates.as_slice() {
        [] => "no gate yet".to_owned(),
        [one] => format!("gate: {one}"),
        many => format!("gates: {}", many.join(", ")),
    };
    out.line(format_args!("{verb} {}  {DIM}{gates}{DIM:#}", place.config().display()))?;
    out.line(format_args!("State is in {}", place.state.display()))?;
    if trusted.is_some() {
        out.line("Trusted: sessions run these gates until they change")?;
    }
    if plan.gates.iter().any(|tried| tried.is_written() && plan.protects(tried)) {
        out.line("Protected: the tests as they were before the work also run, so an agent can't weaken them")?;
        out.line("If a test has to change, you allow the change: `hookloop inbox`. To switch it off, remove `base_tests`")?;
    }
    for (agent, access) in accesses(plan) {
        out.line(plain(&access.for_user(agent)))?;
    }
    for tool in plan.survey.tools.iter().filter(|tool| tool.command.is_some()) {
        let command = tool.command.as_deref().unwrap_or_default();
        out.line(format_args!("Found {}: {}", tool.what, plain(command)))?;
    }
    let mut word = "Next:";
    for step in next(plan, trusted.is_some()) {
        let (command, remark) = step.split_once("  #").unwrap_or((&step, ""));
        let remark = if remark.is_empty() { String::new() } else { format!("  #{remark}") };
        out.line(format_args!("{word} {command}{DIM}{remark}{DIM:#}"))?;
        word = "     ";
    }
    Ok(())
}

/// The commands that each installed agent may run in this project.
fn accesses(plan: &InitPlan) -> Vec<(&str, CommandAccess)> {
    let access = |agent: &String| {
        // The plan names known agents; an unknown one has no rules to show.
        let mut settings = AgentSettings::of_name(agent).ok()?;
        if agent == CLAUDE {
            settings.allowed_tools.clone_from(&plan.allowed);
        }
        CommandAccess::of(&settings)
    };
    plan.agents.iter().filter_map(|agent| Some((agent.as_str(), access(agent)?))).collect()
}

/// Prints the next commands, in order.
fn next(plan: &InitPlan, is_trusted: bool) -> Vec<String> {
    let mut steps = Vec::new();
    let mut written = plan.gates.iter().filter(|tried| tried.is_written());
    match (written.next().is_some(), is_trusted) {
        (_, false) if !setups(plan).is_empty() => {
            steps.extend(setups(plan));
            steps.push("hookloop hooks trust  # after the gates can run".to_owned());
        }
        (false, _) => {
            let trust = "hookloop hooks trust";
            steps.push(format!("{trust}  # after you added your tests to hookloop.yaml as a gate"));
        }
        (true, false) => steps.push("hookloop hooks trust".to_owned()),
        (true, true) => {}
    }
    if !plan.has_git {
        steps.push("git init  # so that receipts name the git tree".to_owned());
    }
    if plan.agents.is_empty() {
        let (install, others) = any_install_command();
        steps.push(format!("{install}  # no agent is installed; or another agent: {others}"));
    }
    if let Some(why) = &plan.unready {
        steps.push(format!("{}  # {why}", why.hint()));
    }
    let is_red = |tried: &TriedGate| {
        tried.gate.kind == GateKind::Tests && matches!(tried.trial, GateTrial::Failed { .. })
    };
    // No agent starts before its gates can run.
    if plan.gates.iter().any(|tried| tried.is_written() && tried.is_unready()) {
        return steps;
    }
    let prompt =
        if plan.gates.iter().any(is_red) { "Make the tests pass" } else { "Describe the work" };
    let agent = plan.agents.first().map_or("claude", String::as_str);
    steps.push(format!("hookloop run \"{prompt}\" --agent {agent}"));
    steps
}

/// The commands that prepare the environment of the gates in the file, each once.
fn setups(plan: &InitPlan) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for tried in plan.gates.iter().filter(|tried| tried.is_written()) {
        let GateTrial::NotReady { gap, .. } = &tried.trial else { continue };
        let step = match &gap.setup {
            Some(setup) => format!("{}  # {}", in_directory(setup, &tried.gate), gap.cause),
            None => format!("hookloop doctor  # {}: {}", tried.gate.name, gap.cause),
        };
        if !found.contains(&step) {
            found.push(step);
        }
    }
    found
}

fn value(plan: &InitPlan, done: &InitResult<'_>) -> Value {
    let gates: Vec<Value> = plan.gates.iter().map(|tried| gate(plan, tried)).collect();
    let ci = plan.survey.ci.iter();
    let ci: Vec<Value> = ci
        .map(|step| json!({ "file": step.file, "command": step.command, "cwd": step.cwd }))
        .collect();
    let directories = plan.directories.iter().map(
        |found| json!({ "path": found.path, "gates": found.gates, "chosen": found.is_chosen }),
    );
    let tools = plan
        .survey
        .tools
        .iter()
        .map(|tool| json!({ "file": tool.file, "what": tool.what, "command": tool.command }));
    let next = if done.written {
        next(plan, done.trusted.is_some())
    } else {
        vec!["hookloop doctor".to_owned()]
    };
    json!({
        "root": done.place.root,
        "config": done.place.config(),
        "state": done.place.state,
        "created": done.written,
        "directories": directories.collect::<Vec<_>>(),
        "gates": gates,
        "trusted": done.trusted,
        "agents": plan.agents,
        "allowed_commands": plan.allowed,
        "ci": ci,
        "tools": tools.collect::<Vec<_>>(),
        "warnings": plan.survey.troubles,
        "next": next,
    })
}

fn gate(plan: &InitPlan, tried: &TriedGate) -> Value {
    let TriedGate { gate, trial, room } = tried;
    let (ms, output) = match trial {
        GateTrial::Passed { ms } => (Some(ms), None),
        GateTrial::Failed { ms, output, .. } => (Some(ms), Some(output)),
        GateTrial::Absent { output, .. }
        | GateTrial::NotReady { output, .. }
        | GateTrial::TimedOut { output } => (None, Some(output)),
        GateTrial::NotTried => (None, None),
    };
    let kind = match gate.kind {
        GateKind::Tests => "tests",
        GateKind::Check => "check",
    };
    let setup = match (trial, &gate.missing) {
        (GateTrial::NotReady { gap, .. }, _) => gap.setup.as_ref(),
        (_, Some(missing)) => missing.setup.as_ref(),
        _ => None,
    };
    let reason = match trial {
        GateTrial::NotReady { gap, .. } => Some(not_ready(gap, gate)),
        _ => (!tried.is_written()).then(|| why_not(tried)),
    };
    json!({
        "name": gate.name,
        "type": kind,
        "command": gate.command,
        "cwd": gate.cwd,
        "setup": setup,
        "from": gate.from,
        "env": gate.env,
        "trial": trial.name(),
        "base_tests": tried.is_written() && plan.protects(tried),
        "duration_ms": ms,
        "output": output,
        "written": tried.is_written(),
        "reason": reason,
        "room": room_value(room),
    })
}

/// The room of a gate: `setup` has the commands that were added for this gate.
fn room_value(room: &RoomFinding) -> Value {
    let (kind, trial, reason) = match room {
        RoomFinding::NotTried => ("clean", &GateTrial::NotTried, None),
        RoomFinding::Clean { trial, .. } => ("clean", trial, None),
        RoomFinding::Here { trial, reason } => ("here", trial, Some(reason)),
    };
    let needs = match room {
        RoomFinding::Clean { needs, .. } => needs.clone(),
        RoomFinding::NotTried | RoomFinding::Here { .. } => RoomNeeds::default(),
    };
    let setup: Vec<&str> = needs.setups.iter().map(|setup| setup.command.as_str()).collect();
    json!({
        "kind": kind,
        "trial": trial.name(),
        "setup": setup,
        "copy": needs.copy,
        "reason": reason,
    })
}

impl InitPlan {
    /// An empty plan, for a project that exists.
    fn none() -> InitPlan {
        let name = String::new();
        let survey = Default::default();
        let gates = Vec::new();
        let agents = Vec::new();
        let allowed = Vec::new();
        let directories = Vec::new();
        let setups = Vec::new();
        let (unready, has_git) = (None, true);
        InitPlan { name, survey, directories, gates, setups, agents, unready, has_git, allowed }
    }
}
