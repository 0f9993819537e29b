//! Runs gates: in a room or in the working directory, once for each state of the files.

use std::collections::HashMap;

use hookloop_core::builtin::Builtin;
use hookloop_core::digest::sha256_hex;
use hookloop_core::event::EventBody;
use hookloop_core::excerpt::first_chars;
use hookloop_core::hook::{Hook, HookHandler};
use hookloop_core::hook_protocol::{HookOutcome, HookStatus};
use hookloop_core::options::{ConfirmAt, RoomChoice};
use hookloop_core::point::Point;
use hookloop_core::session::facts::BuildState;
use hookloop_core::session::{JointVerdict, Receipt};
use hookloop_git::files::FilesLook;
use hookloop_hooks::gate_room::has_room;
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::trust;

use super::check_records;
use super::drive::SessionDriver;
use super::gate_results::{FilesState, GateResults, SETUP_FAILED, named_files};
use super::gates::verdict;
use super::session_room::uses_files_of_gates;
use super::world::{GateFacts, ProvenGate, RoomEntry, SessionUpdate, SessionWorld};
use crate::error::EngineError;

/// Maximum runs of the gates if files change while they run.
const ROUNDS_MAX: u32 = 3;
/// Maximum runs of the setup before one gate, if the gates before it change its result.
const SETUPS_OF_GATE_MAX: usize = 3;
/// Maximum files that gates wrote into the working directory and that a session remembers.
const WRITTEN_MAX: usize = 10_000;
/// Maximum characters of a failed setup's output in a reason.
const SETUP_OUTPUT_MAX: usize = 600;

/// Gates at their points.
pub(super) type GateLists = [(Point, Vec<Hook>)];

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Runs gates until they have judged the current files, at most `ROUNDS_MAX` times.
    ///
    /// If a gate refuses the work, the gates do not run again: its verdict holds for the files that it saw.
    pub(super) fn run_gates(&mut self, lists: &GateLists) -> Result<GateResults, EngineError> {
        self.commit()?;
        let all: Vec<Hook> = lists.iter().flat_map(|(_, hooks)| hooks).cloned().collect();
        let is_here = all.iter().any(is_in_working_directory);
        let mut before = if is_here { self.state_of_files().0 } else { (None, None) };
        let mut round = 0;
        loop {
            round += 1;
            let mut results = self.run_round(lists, &all)?;
            results.is_here = is_here;
            if results.room.is_some() {
                before.0.clone_from(&results.tree);
            }
            let (after, changed) = self.state_of_files();
            self.compare_files(&mut results, &before, &after, changed);
            let is_over = results.is_stable || round >= ROUNDS_MAX || self.is_stopping();
            if is_over || verdict(&all, &results.runs).verdict != JointVerdict::Pass {
                return Ok(results);
            }
            let files = named_files(&results.changed);
            self.world.notice(SessionUpdate::GatesRepeat { files: &files });
            before = after;
        }
    }

    /// Runs the gates once, on the files as they are now.
    pub(super) fn run_round(
        &mut self,
        lists: &GateLists,
        all: &[Hook],
    ) -> Result<GateResults, EngineError> {
        let mut results = GateResults::default();
        let problem = match self.world.enter_room(all) {
            RoomEntry::Here => None,
            RoomEntry::Unable { reason } => Some(reason),
            RoomEntry::Ready(entered) => {
                results.tree = Some(entered.tree);
                results.room = Some(entered.record);
                self.set_up(&mut results)?.err()
            }
        };
        self.tell_uncommitted(&results);
        let must_be_cold = self.must_confirm(lists);
        let is_warm = |results: &GateResults| {
            results.room.as_ref().is_some_and(|room| room.build != Some(BuildState::Cold))
        };
        let was_warm = is_warm(&results);
        self.run_lists(lists, &mut results, problem.as_deref(), Some(must_be_cold))?;
        let has_passed =
            |results: &GateResults| verdict(all, &results.runs).verdict == JointVerdict::Pass;
        if must_be_cold && was_warm && has_passed(&results) && !self.is_stopping() {
            // The result of a setup that is damaged, or that ran on another tree, is removed with the files of other runs.
            let problem = match self.world.make_cold() {
                Ok(()) => self.set_up(&mut results)?.err(),
                Err(why) => Some(why),
            };
            results.runs.clear();
            results.reused.clear();
            self.run_lists(lists, &mut results, problem.as_deref(), None)?;
        }
        self.replace_leaks(all, &mut results);
        let passed: Vec<_> = all
            .iter()
            .filter_map(|gate| {
                let run = results.runs.iter().find(|run| run.hook == gate.name)?;
                let is_new = run.in_room && run.outcome.status == HookStatus::Passed;
                let counts = run.checks.as_ref().map(|checks| checks.counts);
                is_new.then(|| (gate.clone(), counts))
            })
            .collect();
        self.world.keep_proofs(&passed);
        self.world.leave_room(!has_passed(&results));
        Ok(results)
    }

    /// Runs the gates of each list. `reuse` allows earlier proofs, and tells whether they must be cold.
    fn run_lists(
        &mut self,
        lists: &GateLists,
        results: &mut GateResults,
        problem: Option<&str>,
        reuse: Option<bool>,
    ) -> Result<(), EngineError> {
        let mut proofs = match (reuse, problem) {
            (Some(must_be_cold), None) => self.reusable(lists, must_be_cold),
            _ => HashMap::new(),
        };
        for (point, hooks) in lists {
            let mut ready: Vec<HookRun> = Vec::new();
            let mut due: Vec<Hook> = Vec::new();
            for hook in hooks {
                if let (true, Some(reason)) = (has_room(hook), problem) {
                    let status = HookStatus::NotStarted;
                    ready.push(HookRun::unable(hook, point, status, reason.to_owned()));
                } else if let Some(proof) = proofs.remove(&hook.name) {
                    ready.push(proven_run(hook));
                    results.reused.insert(hook.name.clone(), proof);
                } else {
                    due.push(hook.clone());
                }
            }
            let mut ran = self.run_due(&due, point, results)?;
            ran.extend(ready);
            let place = |run: &HookRun| hooks.iter().position(|hook| hook.name == run.hook);
            ran.sort_by_key(place);
            results.runs.extend(ran);
        }
        Ok(())
    }

    /// Returns the earlier proofs of gates that need not run.
    ///
    /// If a gate with files runs, so do all of them: each may leave files for the next, and needs those of the others.
    fn reusable(&self, lists: &GateLists, must_be_cold: bool) -> HashMap<String, ProvenGate> {
        let mut proofs = HashMap::new();
        let mut must_run = false;
        for gate in lists.iter().flat_map(|(_, gates)| gates) {
            match self.world.proof_of(gate, must_be_cold) {
                Some(proof) => drop(proofs.insert(gate.name.clone(), proof)),
                None => must_run |= uses_files_of_gates(gate),
            }
        }
        if must_run {
            let gates = lists.iter().flat_map(|(_, gates)| gates);
            for gate in gates.filter(|gate| uses_files_of_gates(gate)) {
                proofs.remove(&gate.name);
            }
        }
        proofs
    }

    /// Runs gates of one list. If one changes the result of the setup, the setup runs again before the next.
    ///
    /// The gates that are left run one by one, because parallel gates could change it again at any time.
    fn run_due(
        &mut self,
        due: &[Hook],
        point: &Point,
        results: &mut GateResults,
    ) -> Result<Vec<HookRun>, EngineError> {
        let mut ran = self.run_hooks(due, point)?;
        let Some(damage) = self.world.take_setup_damage() else { return Ok(ran) };
        let left: Vec<&Hook> =
            due.iter().filter(|hook| ran.iter().any(|run| is_left(run, hook, &damage))).collect();
        ran.retain(|run| !left.iter().any(|hook| hook.name == run.hook));
        let mut damage = Some(damage);
        for hook in left {
            let mut last = None;
            for _ in 0..SETUPS_OF_GATE_MAX {
                let problem = match damage.take() {
                    Some(damage) => self.repeat_setup(&damage, results)?,
                    None => None,
                };
                let run = self.run_left(hook, (point, &ran), problem)?;
                damage = self.world.take_setup_damage();
                let is_over = !damage.as_ref().is_some_and(|damage| is_left(&run, hook, damage));
                last = Some(run);
                if is_over || self.is_stopping() {
                    break;
                }
            }
            ran.extend(last);
        }
        Ok(ran)
    }

    /// Runs the setup again, whose result a gate changed. Returns why it failed.
    fn repeat_setup(
        &mut self,
        damage: &str,
        results: &mut GateResults,
    ) -> Result<Option<String>, EngineError> {
        self.world.notice(SessionUpdate::SetupRepeats { reason: damage });
        self.set_up_with(results, true).map(Result::err)
    }

    /// Runs one gate after those that ran, unless it needs one that did not pass. `problem` is why the setup failed.
    fn run_left(
        &mut self,
        hook: &Hook,
        (point, ran): (&Point, &[HookRun]),
        problem: Option<String>,
    ) -> Result<HookRun, EngineError> {
        if let (true, Some(why)) = (has_room(hook), problem) {
            return Ok(HookRun::unable(hook, point, HookStatus::NotStarted, why));
        }
        if let Some(need) = failed_need(hook, ran) {
            return Ok(HookRun::skipped(hook, format!("it needs `{need}`, which did not pass")));
        }
        let run = self.run_hooks(std::slice::from_ref(hook), point)?.into_iter().next();
        let not_run = || {
            let reason = "it did not run".to_owned();
            HookRun::unable(hook, point, HookStatus::NotStarted, reason)
        };
        Ok(run.unwrap_or_else(not_run))
    }

    /// Tells the user once of submodules whose changes gates can't see.
    fn tell_uncommitted(&mut self, results: &GateResults) {
        let Some(room) = &results.room else { return };
        if room.uncommitted.is_empty() || self.told_uncommitted == room.uncommitted {
            return;
        }
        let paths = named_files(&room.uncommitted);
        self.world.notice(SessionUpdate::UncommittedSubmodules { paths: &paths });
        self.told_uncommitted.clone_from(&room.uncommitted);
    }

    /// Runs the setup in the room, if its result is not there. The inner error is for a person.
    pub(super) fn set_up(
        &mut self,
        results: &mut GateResults,
    ) -> Result<Result<(), String>, EngineError> {
        self.set_up_with(results, false)
    }

    /// Runs the setup. `is_repeat` tells whether gates ran before, whose files stay.
    fn set_up_with(
        &mut self,
        results: &mut GateResults,
        is_repeat: bool,
    ) -> Result<Result<(), String>, EngineError> {
        if let Err(why) = self.run_setup(results, is_repeat)? {
            return Ok(Err(why));
        }
        let build = match self.world.note_build() {
            Ok(build) => build,
            Err(why) => return Ok(Err(format!("{SETUP_FAILED}{why}"))),
        };
        if let Some(room) = &mut results.room {
            room.build = build;
        }
        Ok(Ok(()))
    }

    fn run_setup(
        &mut self,
        results: &mut GateResults,
        is_repeat: bool,
    ) -> Result<Result<(), String>, EngineError> {
        let setup = self.hooks_at(&Point::Setup);
        if setup.is_empty() {
            return Ok(self.world.discard_setup());
        }
        let (digest, is_ready) = match self.world.setup_state(&setup) {
            Ok(state) => state,
            Err(why) => return Ok(Err(format!("{SETUP_FAILED}{why}"))),
        };
        if let Some(room) = &mut results.room {
            room.setup = Some(digest.clone());
        }
        if is_ready {
            return Ok(Ok(()));
        }
        let cleared = match is_repeat {
            true => self.world.discard_setup_files(),
            // The result of the setup must not depend on files of earlier runs.
            false => self.world.discard_setup().and_then(|()| self.world.make_cold()),
        };
        if let Err(why) = cleared {
            return Ok(Err(format!("{SETUP_FAILED}{why}")));
        }
        let runs = self.run_hooks(&setup, &Point::Setup)?;
        let has_failed = |run: &&HookRun| {
            !matches!(run.outcome.status, HookStatus::Passed | HookStatus::Skipped)
        };
        if let Some(run) = runs.iter().find(has_failed) {
            return Ok(Err(setup_failed(run)));
        }
        Ok(self.world.note_setup(&digest).map_err(|why| format!("{SETUP_FAILED}{why}")))
    }

    /// Whether passing gates must have run without build files of refused work.
    fn must_confirm(&self, lists: &GateLists) -> bool {
        lists.iter().any(|(point, hooks)| {
            hooks.iter().filter(|hook| has_room(hook)).any(|hook| match hook.options.room.confirm {
                ConfirmAt::Stop => true,
                ConfirmAt::Submit => {
                    *point == Point::BeforeSubmit || self.journal.session.plan.delivers
                }
                ConfirmAt::Never => false,
            })
        })
    }

    /// Compares the files before and after the gates.
    ///
    /// New files that a gate wrote into the working directory are not part of the work.
    fn compare_files(
        &mut self,
        results: &mut GateResults,
        before: &FilesState,
        after: &FilesState,
        changed: Vec<String>,
    ) {
        results.files.clone_from(&after.1);
        let is_same = match results.room.is_some() && !results.is_here {
            true => before.0 == after.0,
            false => before == after,
        };
        (results.is_stable, results.changed) = (is_same, changed);
        if results.room.is_none() {
            results.tree.clone_from(&after.0);
        }
        let (Some(from), Some(to), true) = (&before.0, &after.0, results.is_here && !is_same)
        else {
            return;
        };
        let Some(paths) = self.world.changes_between(from, to) else { return };
        let is_own = |path: &str| self.gate_files.contains(path);
        let (own, others): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|path| path.is_new || is_own(&path.path));
        let own: Vec<String> = own.into_iter().map(|path| path.path).collect();
        if own.iter().any(|path| !is_own(path)) && self.gate_files.len() < WRITTEN_MAX {
            let files = named_files(&own);
            self.world.notice(SessionUpdate::GatesWrote { files: &files });
            self.gate_files.extend(own.iter().cloned());
        }
        results.wrote = own;
        if others.is_empty() {
            results.is_stable = true;
            results.tree.clone_from(&before.0);
        } else {
            results.changed = others.into_iter().map(|path| path.path).collect();
        }
    }

    /// Returns the git tree and the digest of the files, and the files that changed since the last
    /// look.
    ///
    /// Without git there is only the digest.
    fn state_of_files(&mut self) -> (FilesState, Vec<String>) {
        let tree = self.world.tree();
        match self.world.look_at_files() {
            Some(FilesLook { digest, changed }) => ((tree, Some(digest)), changed),
            None => ((tree, None), Vec::new()),
        }
    }

    pub(super) fn note_receipts(&mut self, gates: &[Hook], point: &Point, proof: &GateResults) {
        for gate in gates {
            let Some(run) = proof.runs.iter().find(|run| run.hook == gate.name) else { continue };
            let tree = proof.tree.clone().filter(|_| run.in_room || proof.is_stable);
            self.note_receipt(gate, point, run, tree, proof);
        }
    }

    /// Records the receipt of a gate's run on the files with this tree, and its checks.
    pub(super) fn note_receipt(
        &mut self,
        gate: &Hook,
        point: &Point,
        run: &HookRun,
        tree: Option<String>,
        results: &GateResults,
    ) {
        // A gate that used files outside of its room proves nothing about a tree.
        if results.leaks.contains_key(&gate.name) {
            return;
        }
        let ran = run.ran.as_ref();
        let output = [run.stdout.as_bytes(), run.stderr.as_bytes()].concat();
        let GateFacts { digest, tools } = self.world.gate_facts(gate);
        let reused = results.reused.get(&gate.name);
        let has_files = matches!(
            gate.handler,
            HookHandler::Command(_)
                | HookHandler::Rule(_)
                | HookHandler::Builtin(Builtin::RunTests)
        );
        let receipt = Receipt {
            gate: gate.name.clone(),
            point: point.name().to_owned(),
            definition: trust::what(&gate.handler),
            status: run.outcome.status.into(),
            exit_code: ran.and_then(|ran| ran.exit_code),
            tree,
            output_sha256: sha256_hex(&output),
            duration_ms: ran.map_or(0, |ran| ran.duration_ms),
            context: run.outcome.values.clone(),
            digest,
            room: results.room_of(run).filter(|_| has_files),
            attempts: ran.map_or(0, |ran| ran.attempts),
            checks: match reused {
                Some(proof) => proof.checks,
                None => run.checks.as_ref().map(|checks| checks.counts),
            },
            base_tests: results.base_tests.get(&gate.name).cloned().map(Box::new),
            strength: results.strength.get(&gate.name).cloned().map(Box::new),
            tools,
            reused_from: reused.map(|proof: &ProvenGate| proof.session.clone()),
        };
        if let Some(records) = &run.checks {
            let known = self.known_checks.get(&gate.name);
            let events = check_records::events(records, &receipt, known);
            self.known_checks.insert(gate.name.clone(), check_records::outcomes(records));
            for event in events {
                self.journal.note(EventBody::ChecksRecorded(event));
            }
        }
        self.journal.note(EventBody::ReceiptRecorded(receipt));
    }
}

/// Whether a gate runs in the agent's working directory.
fn is_in_working_directory(gate: &Hook) -> bool {
    gate.options.room.choice == RoomChoice::Here
        || !(has_room(gate) || matches!(gate.handler, HookHandler::Http { .. }))
}

/// Whether a gate must run once the setup has run again: it did not start because of the damage, or has attempts left.
fn is_left(run: &HookRun, hook: &Hook, damage: &str) -> bool {
    let reason = run.outcome.reason.as_deref().unwrap_or_default();
    let is_stopped = run.outcome.status == HookStatus::NotStarted && reason.ends_with(damage);
    let attempts = run.ran.as_ref().map_or(0, |ran| ran.attempts);
    let has_attempts = run.has_failed() && attempts < hook.options.retry.attempts;
    run.hook == hook.name && (is_stopped || has_attempts)
}

/// Returns the gate that a gate needs, and that did not pass.
fn failed_need<'h>(hook: &'h Hook, ran: &[HookRun]) -> Option<&'h String> {
    let has_failed = |need: &&String| {
        ran.iter().any(|run| run.hook == **need && run.outcome.status != HookStatus::Passed)
    };
    hook.options.needs.iter().find(has_failed)
}

/// Returns the run of a gate that was proven before on the same tree.
fn proven_run(gate: &Hook) -> HookRun {
    let outcome = HookOutcome {
        reason: Some("it passed on this tree before".to_owned()),
        ..HookOutcome::of(HookStatus::Passed)
    };
    HookRun::without_process(gate, outcome)
}

/// Describes a failed setup to a person.
pub(super) fn setup_failed(run: &HookRun) -> String {
    let reason = run.outcome.reason.as_deref().unwrap_or(run.outcome.status.name());
    let printed: Vec<&str> = run.printed.trim().lines().rev().take(4).collect();
    let printed: Vec<&str> = printed.into_iter().rev().collect();
    let printed = first_chars(&printed.join(" | "), SETUP_OUTPUT_MAX);
    format!("{SETUP_FAILED}`{}`: {reason}: {printed}", run.hook)
}
