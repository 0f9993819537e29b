//! The world of a real session: processes, files, clocks.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hookloop_agents::agent_chain::AgentChain;
use hookloop_agents::{TurnReport, clipped};
use hookloop_core::checks::CheckCounts;
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::HookStatus;
use hookloop_core::id::SessionId;
use hookloop_core::options::BaseTestRules;
use hookloop_core::point::Point;
use hookloop_core::session::facts::{BuildState, ExpectationVerdict, TestFinding};
use hookloop_core::session::timeline::Timeline;
use hookloop_core::session::{LimitDecision, Session, SessionPhase};
use hookloop_core::task::Task;
use hookloop_core::trace::{SpanId, SpanNames};
use hookloop_git::files::{FilesLook, WatchedFiles};
use hookloop_git::repo::worktree::PlaceEntry;
use hookloop_git::repo::{Worktree, WorktreeLoss};
use hookloop_git::snapshot::{ChangedPath, Snapshot, Snapshots, TreeEdit};
use hookloop_git::step_error::{CommittedWork, StepError};
use hookloop_hooks::gate_room::has_room;
use hookloop_hooks::hook_context::{HookContext, SessionCall, SessionContext};
use hookloop_hooks::hook_run::HookRun;
use hookloop_hooks::hook_sequence;
use hookloop_hooks::runner::HookRunner;
use hookloop_process::find_program;

use super::base_plan::BaseRunPlan;
use super::deadline::SessionDeadline;
use super::hook_drift::HookDrift;
use super::live_guard::LiveGuard;
use super::now::{NowBoard, NowStep};
use super::observer::SessionObserver;
use super::place_damage::{CurrentPlace, DirectoryIdentity, PlaceDamage};
use super::proven::ProvenGate;
use super::room_entry::{RoomEntry, SessionRoom, tools_of};
use super::session_clock::SessionClock;
use super::session_room::{RoomContext, has_room_point};
use super::source_signs::BaseAssertions;
use super::stop_switch::{RestSwitch, StopSwitch};
use super::task_steps::LEASE;
use super::turn_files::{self, TurnMoment};
use super::world::{DueTurn, GateFacts, HookSink, SessionUpdate, SessionWorld};
use crate::delivery_context::{
    ChangedExpectations, DeliveryContext, DeliverySteps, DeliveryTools, StepsInContext, commit,
};
use crate::heartbeat::Heartbeater;
use crate::project::Project;
use crate::protected_files;
use crate::session_record::SessionTimeline;

/// Maximum length of a question to a person in the session's current step.
const QUESTION_MAX: usize = 500;

/// All processes, files and clocks that a session uses.
pub(crate) struct LiveWorld<'p, O> {
    /// Runs the built-in hooks of a delivery.
    pub(super) steps: &'p dyn DeliverySteps,
    pub(super) runner: &'p HookRunner,
    /// The runner at the working directory.
    pub(super) place: HookRunner,
    /// The project's directory as the session found it. None if it was missing.
    pub(super) root_identity: Option<DirectoryIdentity>,
    /// The delivery context, opened with the first task that needs it.
    pub(super) delivery_tools: Option<DeliveryTools<'p>>,
    /// The worktree of the task that was entered last.
    pub(super) worktree: Option<Worktree>,
    /// Whether the session has claimed the task of that worktree.
    pub(super) is_held: bool,
    pub(super) project: &'p Project,
    pub(super) agents: AgentChain,
    pub(super) template: String,
    pub(super) observer: O,
    pub(super) files: WatchedFiles,
    /// The snapshots of the working directory. The inner option is none if git is not installed.
    pub(super) snapshots: Option<Option<Snapshots>>,
    /// The file with the tree that the work began with.
    pub(super) base: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) transcript: PathBuf,
    pub(super) drift: HookDrift,
    pub(super) stop: StopSwitch,
    /// Ends running hooks and turns when the session's time is over.
    pub(super) deadline: SessionDeadline,
    pub(super) is_ending: bool,
    pub(super) started: Instant,
    pub(super) rest: RestSwitch,
    /// Milliseconds in which a rest prevented new steps. They do not count as run time.
    pub(super) rested_ms: Arc<AtomicU64>,
    pub(super) beats: Option<Heartbeater>,
    /// The timeline of the session for traces, if they are exported.
    pub(super) trace: Option<SessionTimeline>,
    /// The current step of the session, for display.
    pub(super) board: NowBoard,
    /// The room in which gates run.
    pub(super) session_room: SessionRoom,
    /// The room in which the tests of the base run.
    pub(super) base_room: SessionRoom,
    /// The assertions of the base's tests, once they are read.
    pub(super) assertions: Option<BaseAssertions>,
}

/// The parts from which [`LiveWorld`] is built.
#[derive(Debug)]
pub(crate) struct WorldParts<'p, O> {
    pub project: &'p Project,
    /// Runs the built-in hooks of a delivery.
    pub steps: &'p dyn DeliverySteps,
    pub runner: &'p HookRunner,
    /// The session's own directory.
    pub directory: PathBuf,
    pub template: String,
    pub observer: O,
    pub stop: StopSwitch,
    pub drift: HookDrift,
    /// The session's run time so far, and its limit.
    pub active_ms: u64,
    pub duration_ms: u64,
    pub rest: RestSwitch,
}

impl<'p, O: SessionObserver> LiveWorld<'p, O> {
    pub(crate) fn new(
        around: WorldParts<'p, O>,
        agents: AgentChain,
    ) -> std::io::Result<LiveWorld<'p, O>> {
        let WorldParts {
            project,
            steps,
            runner,
            directory,
            template,
            mut observer,
            stop,
            drift,
            active_ms,
            duration_ms,
            rest,
        } = around;
        let board = NowBoard::default();
        observer.watch(&board);
        let left = Duration::from_millis(duration_ms.saturating_sub(active_ms));
        let rested_ms: Arc<AtomicU64> = Arc::default();
        let clock = SessionClock::new(&directory, active_ms, Arc::clone(&rested_ms));
        let deadline = SessionDeadline::new(left, stop.cancel.clone(), clock);
        Ok(LiveWorld {
            runner,
            place: runner.clone(),
            root_identity: DirectoryIdentity::of(runner.root()).ok(),
            delivery_tools: None,
            worktree: None,
            is_held: false,
            project,
            steps,
            agents,
            template,
            observer,
            files: WatchedFiles::default(),
            snapshots: None,
            base: directory.join("base"),
            transcript: directory.join("transcript.jsonl"),
            directory,
            drift,
            stop,
            deadline,
            is_ending: false,
            started: Instant::now(),
            rest,
            rested_ms,
            beats: None,
            trace: None,
            board,
            session_room: SessionRoom::default(),
            base_room: SessionRoom::default(),
            assertions: None,
        })
    }

    /// Returns the files as they were last read.
    pub(crate) fn files(&mut self) -> &mut WatchedFiles {
        &mut self.files
    }

    pub(crate) fn board(&self) -> &NowBoard {
        &self.board
    }

    /// Returns the snapshots of the working directory.
    pub(super) fn snapshots(&mut self) -> Option<&Snapshots> {
        let (runner, directory, cancel) = (&self.place, &self.directory, &self.stop.cancel);
        let found = self.snapshots.get_or_insert_with(|| {
            let has_git = find_program("git", runner.path()).is_some();
            has_git.then(|| turn_files::snapshots_of(runner, &file_name(directory), cancel))
        });
        found.as_ref()
    }

    /// Returns the name of the session's snapshots: its id.
    pub(super) fn group(&self) -> String {
        file_name(&self.directory)
    }

    pub(super) fn take_snapshot(&mut self) -> Option<Snapshot> {
        known(self.snapshots()?.take(), "the tree of the files is unknown")
    }

    /// Returns the trace parent for a process. `place` finds its span in the current timeline.
    pub(super) fn trace_parent(
        &mut self,
        id: &SessionId,
        place: impl FnOnce(&Timeline, &SpanNames) -> Option<SpanId>,
    ) -> Option<String> {
        self.project.traces.as_ref()?;
        let trace = self.trace.get_or_insert_with(|| SessionTimeline::new(id.clone()));
        // Without it the process starts its own trace.
        known(trace.look(self.project), "the trace of the session is unknown")?;
        let names = trace.names()?;
        let span = place(trace.timeline()?, &names)?;
        Some(names.parent_for(span).to_string())
    }
}

impl<O: SessionObserver> LiveWorld<'_, O> {
    /// Returns to the project's directory after the worktree of a released task was removed.
    ///
    /// The worktree of a merged task is removed. The worktree of a claimed task stays the working
    /// directory in any case.
    fn leave_removed_worktree(&mut self) {
        if !self.is_held && self.worktree.is_some() && self.check_worktree().is_err() {
            (self.place, self.worktree) = (self.runner.clone(), None);
            (self.files, self.snapshots) = (WatchedFiles::default(), None);
        }
    }

    /// Prepares the active room, with the current files or with a tree.
    fn enter_room_with(&mut self, gates: &[Hook], tree: Option<&str>) -> RoomEntry {
        // Without git no tree is known, so receipts name none.
        if !gates.iter().any(has_room) || self.snapshots().is_none() {
            self.session_room.place = None;
            return RoomEntry::Here;
        }
        let (session, base) = (self.group(), self.base_commit());
        let Some(Some(snapshots)) = &self.snapshots else { return RoomEntry::Here };
        let context = RoomContext {
            runner: &self.place,
            snapshots,
            directory: &self.directory,
            session: &session,
            base: base.as_ref(),
            cancel: &self.stop.cancel,
        };
        self.session_room.enter(&context, gates, tree)
    }

    /// Returns the branch of the worktree, else the branch that the task was submitted with.
    fn branch_of(&self, task: Option<&Task>) -> String {
        if let Some(worktree) = &self.worktree {
            return worktree.branch.clone();
        }
        let Some(task) = task else { return String::new() };
        let found = self.project.read(|view| view.delivery(&task.id));
        let submitted =
            known(found, "the submission is unknown").and_then(|found| found.submission);
        submitted.map_or_else(String::new, |submission| submission.branch)
    }

    /// Returns the runner of a point's hooks: in the room, or in the working directory.
    fn place_of_hooks(&self, point: &Point) -> HookRunner {
        match has_room_point(point) {
            true => self.place.in_room(self.session_room.place.clone()),
            false => self.place.clone(),
        }
    }

    /// Checks the directory in which hooks are about to run.
    fn check_current_place(&self) -> Result<(), PlaceDamage> {
        self.current_place().check(self.is_held)
    }

    fn check_root(&self) -> Result<(), PlaceDamage> {
        self.current_place().check_root()
    }

    /// Checks the entered worktree, if there is one.
    fn check_worktree(&self) -> Result<(), PlaceDamage> {
        self.current_place().check_worktree()
    }

    fn current_place(&self) -> CurrentPlace<'_> {
        CurrentPlace {
            root: self.runner.root(),
            identity: self.root_identity.as_ref(),
            worktree: self.worktree.as_ref(),
            delivery_tools: self.delivery_tools.as_ref(),
        }
    }

    fn delivery_tools(&mut self) -> Result<&DeliveryTools<'_>, StepError> {
        if self.delivery_tools.is_none() {
            let nothing =
                || StepError::NeedsHuman { why: "this project delivers nothing".to_owned() };
            let rules = self.project.rules().delivery.as_ref().ok_or_else(nothing)?;
            self.delivery_tools = Some(DeliveryTools::open(self.runner, rules, &self.stop.cancel)?);
        }
        self.delivery_tools.as_ref().ok_or_else(|| StepError::NeedsHuman { why: String::new() })
    }
}

impl<O: SessionObserver> SessionWorld for LiveWorld<'_, O> {
    fn check_place(&self, task: Option<&Task>) -> Result<(), PlaceDamage> {
        self.check_root()?;
        match (task, &self.worktree) {
            (None, _) => Ok(()),
            (Some(task), Some(worktree)) if worktree.task == task.id => self.check_worktree(),
            (Some(task), _) => {
                let why = format!("the worktree of task `{}` was not entered", task.id);
                Err(PlaceDamage::Worktree { why })
            }
        }
    }

    fn loss_recorded(&mut self, task: &Task) {
        if let Some(delivery_tools) = &self.delivery_tools {
            // If the note stays, the loss is recorded a second time.
            if let Err(error) = delivery_tools.repo.forget_loss(&task.id) {
                tracing::warn!(task = %task.id, %error, "the note of a lost worktree stays");
            }
        }
    }

    fn enter(&mut self, task: &Task, entry: PlaceEntry) -> Result<Option<WorktreeLoss>, StepError> {
        // An error of the repository or forge affects every task.
        let of_all = |trouble: StepError| StepError::Retry { why: trouble.reason().to_owned() };
        let delivery = self.project.read(|view| view.delivery(&task.id));
        let delivery = delivery.map_err(|error| StepError::Retry { why: error.to_string() })?;
        let pushed = delivery.submission.and_then(|submission| submission.head.parse().ok());
        let is_known = self.worktree.as_ref().is_some_and(|worktree| worktree.task == task.id);
        let delivery_tools = self.delivery_tools().map_err(of_all)?;
        let worktree = if is_known && entry == PlaceEntry::Again {
            delivery_tools.repo.worktree_again(&task.id, None)?
        } else {
            delivery_tools.repo.newest_base().map_err(|error| of_all(error.into()))?;
            match entry {
                PlaceEntry::First => {
                    delivery_tools.repo.worktree_from(&task.id, pushed.as_ref())?
                }
                PlaceEntry::Again => {
                    delivery_tools.repo.worktree_again(&task.id, pushed.as_ref())?
                }
            }
        };
        let loss = worktree.loss.clone();
        self.place = self.runner.at(worktree.project.clone());
        self.worktree = Some(worktree);
        self.is_held = true;
        // The known files and repository belong to another directory.
        (self.files, self.snapshots) = (WatchedFiles::default(), None);
        self.base = self.directory.join(format!("base-{}", task.id));
        if let Ok(hooks) = self.project.hooks() {
            self.remember_base_for(&hooks);
        }
        Ok(loss)
    }

    fn wrap_up(&mut self, task: &Task) -> Result<CommittedWork, StepError> {
        let nowhere =
            || StepError::NeedsHuman { why: "the task has no place of its own".to_owned() };
        // The next attempt starts with a recreated worktree, in which the agent continues.
        let gone = |damage: PlaceDamage| StepError::Retry { why: damage.to_string() };
        self.check_place(Some(task)).map_err(gone)?;
        let worktree = self.worktree.clone().ok_or_else(nowhere)?;
        self.delivery_tools()?.wrap_up(&worktree, task)
    }

    fn why_consent(&mut self, head: &str) -> Option<String> {
        let hooks = self.project.hooks().ok()?;
        let (runner, head) = (self.runner, commit(head).ok()?);
        // The merge train checks again, and merges nothing that it cannot check.
        protected_files::why_consent(runner, &hooks, self.delivery_tools().ok()?, &head).ok()?
    }

    fn run_hooks(
        &mut self,
        hooks: &[Hook],
        call: &SessionCall<'_>,
        ended: HookSink<'_>,
    ) -> Vec<HookRun> {
        self.leave_removed_worktree();
        if let Err(damage) = self.check_current_place() {
            let why = format!("not started: {damage}");
            let unable =
                |hook| HookRun::unable(hook, call.point, HookStatus::NotStarted, why.clone());
            return hooks.iter().map(unable).collect();
        }
        // A process that resumes the session after the submission has not entered a worktree yet.
        // A hook that needs the delivery context reports that it is missing.
        if call.session.plan.delivers
            && matches!(call.point, Point::AfterSubmit)
            && let Err(error) = self.delivery_tools()
        {
            tracing::warn!(error = error.reason(), "hooks have no delivery context");
        }
        let trace_parent = self.trace_parent(call.id, |timeline, names| {
            Some(names.part(timeline.part_at(call.point)))
        });
        let needs_changes = hooks.iter().any(hookloop_hooks::hook_context::needs_changes);
        let changes = if needs_changes { self.changes() } else { None };
        let cancel = if self.is_ending { &self.stop.end } else { &self.stop.cancel };
        let transcript = Some(self.transcript.as_path()).filter(|path| path.exists());
        let root = self.place.root();
        let trace_parent = trace_parent.as_deref();
        let session = SessionContext { call, transcript, root, trace_parent };
        let (project, worktree) = (self.project, self.worktree.as_ref());
        let branch = self.branch_of(call.task);
        let delivery_tools = self.delivery_tools.as_ref();
        let delivery_context = delivery_tools.map(|delivery_tools| DeliveryContext {
            project,
            delivery_tools,
            worktree,
            branch: &branch,
            left: Some(call.session.left()),
        });
        let place = self.place_of_hooks(call.point);
        let builtins = StepsInContext { steps: self.steps, runner: &place, delivery_context };
        let hook_context = HookContext {
            task: call.task,
            session: Some(&session),
            cancel: Some(cancel),
            builtins: Some(&builtins),
            changes: changes.as_deref(),
            branches: delivery_context.map(|it| (it.branch, it.delivery_tools.base())),
            delivery: call.delivery,
            board: Some(&self.board),
            ..HookContext::at(call.point)
        };
        let (observer, board) = (RefCell::new(&mut self.observer), &self.board);
        let mut ended = |run: &HookRun| {
            board.count_ended_hook();
            let stored = ended(run);
            if !stored.is_empty() {
                observer.borrow_mut().notice(SessionUpdate::Stored(&stored));
            }
        };
        // A hook may run code of the agent, which may redirect the next hook, or change its files.
        let current = CurrentPlace {
            root: self.runner.root(),
            identity: self.root_identity.as_ref(),
            worktree: self.worktree.as_ref(),
            delivery_tools: self.delivery_tools.as_ref(),
        };
        let guard = LiveGuard {
            current: self.is_held.then_some(current),
            room: RefCell::new(&mut self.session_room),
            snapshots: self.snapshots.as_ref().and_then(Option::as_ref),
            point: call.point,
            notice: &|update| observer.borrow_mut().notice(update),
        };
        hook_sequence::run_guarded(&place, hooks, &hook_context, &guard, &mut ended)
    }

    fn enter_room(&mut self, gates: &[Hook]) -> RoomEntry {
        self.enter_room_with(gates, None)
    }

    fn leave_room(&mut self, was_refused: bool) {
        self.session_room.leave(was_refused);
    }

    fn take_setup_damage(&mut self) -> Option<String> {
        self.session_room.take_setup_damage()
    }

    fn discard_setup(&mut self) -> Result<(), String> {
        self.session_room.discard_setup()
    }

    fn make_cold(&mut self) -> Result<(), String> {
        let snapshots = self.snapshots.as_ref().and_then(Option::as_ref);
        self.session_room.make_cold(snapshots)
    }

    fn discard_setup_files(&mut self) -> Result<(), String> {
        self.session_room.discard_setup_files()
    }

    fn note_build(&mut self) -> Result<Option<BuildState>, String> {
        self.session_room.note_build()
    }

    fn setup_state(&mut self, setup: &[Hook]) -> Result<(String, bool), String> {
        self.session_room.setup_state(&self.place, setup)
    }

    fn note_setup(&mut self, digest: &str) -> Result<(), String> {
        let snapshots = self.snapshots.as_ref().and_then(Option::as_ref);
        self.session_room.note_setup(digest, snapshots)
    }

    fn proof_of(&self, gate: &Hook, must_be_cold: bool) -> Option<ProvenGate> {
        self.session_room.find_proof(&self.place, (gate, &self.group()), must_be_cold)
    }

    fn keep_proofs(&mut self, passed: &[(Hook, Option<CheckCounts>)]) {
        self.session_room.keep_proofs(&self.place, &self.group(), passed);
    }

    fn leak_of(&self, gate: &Hook, run: &HookRun) -> Option<String> {
        self.session_room.leak_of(gate, run)
    }

    fn gate_facts(&self, gate: &Hook) -> GateFacts {
        GateFacts { digest: self.place.digest_of(gate), tools: tools_of(&self.place, gate) }
    }

    fn plan_base_run(
        &mut self,
        rules: &BaseTestRules,
        tree: &str,
    ) -> Result<Option<BaseRunPlan>, String> {
        self.plan_tests_of_base(rules, tree)
    }

    fn baseline_tree(&mut self) -> Result<String, String> {
        self.tree_before_work()
    }

    fn changed_surroundings(&mut self) -> Result<Vec<TestFinding>, String> {
        self.surroundings_since_start()
    }

    fn review_expectations(
        &mut self,
        session: &Session,
        changed: &ChangedExpectations<'_>,
    ) -> Result<ExpectationVerdict, String> {
        self.ask_reviewer(session, changed)
    }

    fn edited_tree(&mut self, tree: &str, edits: &[(Vec<u8>, TreeEdit)]) -> Result<String, String> {
        let snapshots = self.snapshots().ok_or("git is not installed")?;
        snapshots.edited_tree(tree, edits).map_err(|error| error.to_string())
    }

    fn enter_base_room(&mut self, gates: &[Hook], tree: &str) -> RoomEntry {
        std::mem::swap(&mut self.session_room, &mut self.base_room);
        self.enter_room_with(gates, Some(tree))
    }

    fn leave_base_room(&mut self, was_refused: bool) {
        self.session_room.leave(was_refused);
        std::mem::swap(&mut self.session_room, &mut self.base_room);
    }

    fn note_proven_tests(&mut self) {
        self.forget_unproven_tests();
    }

    fn changes_between(&mut self, from: &str, to: &str) -> Option<Vec<ChangedPath>> {
        known(self.snapshots()?.changed_paths(from, to), "the changed files are unknown")
    }

    fn take_turn(&mut self, turn: &DueTurn<'_>) -> TurnReport {
        self.run_agent_turn(turn)
    }

    fn look_at_files(&mut self) -> Option<FilesLook> {
        self.check_current_place().ok()?;
        self.files.look(self.place.root())
    }

    fn tree(&mut self) -> Option<String> {
        self.check_current_place().ok()?;
        Some(self.take_snapshot()?.tree)
    }

    fn tree_of_commit(&mut self, head: &str) -> Option<String> {
        let head = commit(head).ok()?;
        let tree = self.delivery_tools().ok()?.repo.tree_of(&head);
        known(tree, "the tree of the submitted commit is unknown")
    }

    fn keep_files(&mut self, id: &SessionId, turn: u32, moment: TurnMoment) -> Option<String> {
        self.check_current_place().ok()?;
        let snapshot = self.take_snapshot();
        if moment == TurnMoment::After {
            self.note_unproven_tests(snapshot.as_ref());
        }
        let snapshot = snapshot?;
        self.remember_base_commit(&snapshot);
        let kept = turn_files::keep(self.snapshots()?, id, turn, moment, &snapshot);
        known(kept, "the snapshot of a turn is not kept")?;
        Some(snapshot.tree)
    }

    fn head(&mut self) -> Option<String> {
        let head = self.snapshots()?.head();
        Some(known(head, "the commit that is checked out is unknown")??.to_string())
    }

    fn drifted(&mut self) -> Vec<String> {
        let mut drifted = self.drift.look();
        drifted.extend(self.agents.news());
        drifted
    }

    fn elapsed_ms(&self) -> u64 {
        let all = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        all.saturating_sub(self.rested_ms.load(Ordering::SeqCst))
    }

    fn rest(&mut self) {
        if !self.rest.is_on() {
            return;
        }
        self.board.begin(NowStep::Rest, None);
        while self.rest.is_on() && !self.stop.cancel.is_triggered() {
            let began = Instant::now();
            self.stop.cancel.wait(RestSwitch::LOOK);
            let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.rested_ms.fetch_add(ms, Ordering::SeqCst);
        }
        self.board.begin(NowStep::Between, None);
    }

    fn now_ms(&self) -> u64 {
        hookloop_config::clock::now().0.cast_unsigned()
    }

    fn pause(&mut self, ms: u64) {
        self.stop.cancel.wait(Duration::from_millis(ms));
    }

    fn is_cancelled(&self) -> bool {
        self.stop.by_user.load(Ordering::SeqCst)
    }

    fn begin_end(&mut self) {
        self.is_ending = true;
        self.deadline.disarm();
    }

    fn can_ask(&self) -> bool {
        self.observer.can_ask()
    }

    fn ask(
        &mut self,
        session: &Session,
        is_answered: &mut dyn FnMut() -> bool,
    ) -> Option<LimitDecision> {
        debug_assert_eq!(session.phase, SessionPhase::AtRetryLimit);
        let failing: Vec<&str> = session.failing.iter().flatten().map(String::as_str).collect();
        let question =
            format!("the retry limit is reached, and these fail: {}", failing.join(", "));
        self.board.begin(NowStep::Person { question: clipped(&question, QUESTION_MAX) }, None);
        let answer = self.observer.ask(session, is_answered);
        self.board.begin(NowStep::Between, None);
        answer
    }

    fn hold(&mut self, task: Option<(&Task, u64)>) {
        self.board.hold(task.map(|(task, _)| task.id.to_string()));
        let entered = self.worktree.as_ref().map(|worktree| &worktree.task);
        self.is_held = task.is_some_and(|(task, _)| Some(&task.id) == entered);
        // If no agent runs in this process, the process that runs it sends the heartbeats.
        let task = task.filter(|_| !self.agents.is_empty());
        self.beats = task.map(|(task, epoch)| {
            let lease = task.claim.as_ref().map(|claim| Duration::from_millis(claim.lease_ms));
            Heartbeater::start(self.project, &task.id, (epoch, lease.unwrap_or(LEASE)), None)
        });
    }

    fn notice(&mut self, notice: SessionUpdate<'_>) {
        self.board.notice(&notice);
        self.observer.notice(notice);
    }
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the value, or reports why it is unknown. Callers treat an unknown value as not proven.
pub(super) fn known<T, E: std::fmt::Display>(result: Result<T, E>, message: &str) -> Option<T> {
    result.inspect_err(|error| tracing::warn!(%error, "{message}")).ok()
}
