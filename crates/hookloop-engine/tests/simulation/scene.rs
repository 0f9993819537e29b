//! The simulated world.

use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;

use hookloop_agents::TurnReport;
use hookloop_config::effective::EffectiveConfig;
use hookloop_config::project_file;
use hookloop_core::event::{EventBody, HookRan, NoData};
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::{HookOutcome, HookStatus, HookVerdict};
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::point::Point;
use hookloop_core::promise::Promise;
use hookloop_core::session::facts::DecisionMade;
use hookloop_core::session::{
    AgentFallback, AtRetryLimit, ConversationMode, LimitDecision, PipedOutput, Session,
    SessionLimits, SessionPlan, SessionWork, StopWhen, TurnResult, Usage,
};
use hookloop_core::shared_budget::{BudgetBounds, SharedBudget};
use hookloop_core::task::Task;
use hookloop_engine::session::world::{
    DueTurn, HookSink, PlaceDamage, SessionUpdate, SessionWorld, StrengthWorld, WorktreeLoss,
};
use hookloop_git::files::FilesLook;
use hookloop_git::repo::worktree::PlaceEntry;
use hookloop_git::step_error::{CommittedWork, StepError};
use hookloop_hooks::hook_context::SessionCall;
use hookloop_hooks::hook_run::HookRun;
use hookloop_store::memory::MemoryLog;
use hookloop_testkit::SeededRandom;

use crate::append;

/// Panic payload of a simulated crash.
pub(crate) struct Crash;

/// Parameters of a session.
#[derive(Clone, Debug)]
pub(crate) struct Nature {
    pub(crate) rules: EffectiveConfig,
    pub(crate) limits: SessionLimits,
    stop_when: Vec<StopWhen>,
    at_retry_limit: AtRetryLimit,
    /// Probability of a crash at each possible point, in percent.
    pub(crate) crashes: u64,
    errors: u64,
    /// Percentage of turns that are rate-limited.
    waits: u64,
    pub(crate) fallback: Option<AgentFallback>,
    conversation: ConversationMode,
    pub(crate) no_changes_ok: bool,
    hangs: u64,
    claims: u64,
    /// How the files change: by steps that never repeat, in circles, or not at all.
    moves: Moves,
    cancels: u64,
    pauses: u64,
    messages: u64,
}

#[derive(Clone, Copy, Debug)]
enum Moves {
    Ahead,
    Circles,
    Nowhere,
    Anyhow,
}

impl Nature {
    pub(crate) fn roll(dice: &mut SeededRandom) -> Nature {
        let limits = SessionLimits {
            max_iterations: dice.below(12) as u32,
            max_duration_ms: *dice.pick(&[5_000, 100_000, 10_000_000]),
            turn_timeout_ms: 10_000,
            max_errors: 1 + dice.below(4) as u32,
            gate_retries: dice.below(4) as u32,
            max_no_progress: 1 + dice.below(5) as u32,
            max_remediations: 3,
            max_continuations: 3,
            max_tokens: *dice.pick(&[60, 1_000_000, 1_000_000]),
            max_cost_micros: *dice.pick(&[50, 1_000_000, 1_000_000]),
            max_unpriced_turns: u32::MAX,
        };
        let ways = [
            vec![StopWhen::Default],
            vec![StopWhen::Promise],
            vec![StopWhen::Validation],
            vec![StopWhen::Turn],
            vec![StopWhen::Hook("decider".into()), StopWhen::Default],
            vec![],
        ];
        let often = [0, 0, 5, 30];
        let mut rules = rules(dice);
        rules.limits.budget = budget(dice);
        Nature {
            rules,
            limits,
            stop_when: dice.pick(&ways).clone(),
            at_retry_limit: *dice.pick(&[AtRetryLimit::NeedsHuman, AtRetryLimit::Accept]),
            crashes: *dice.pick(&[0, 0, 2, 8]),
            errors: *dice.pick(&[0, 0, 10, 60, 100]),
            waits: *dice.pick(&[0, 0, 0, 20, 100]),
            fallback: dice.pick(&[None, None, Some(1), Some(2)]).map(|after| AgentFallback {
                agents: vec!["second".into(), "third".into()],
                after,
            }),
            conversation: *dice.pick(&[ConversationMode::Fresh, ConversationMode::Continue]),
            no_changes_ok: *dice.pick(&[false, true]),
            hangs: *dice.pick(&[0, 0, 10]),
            claims: *dice.pick(&[0, 20, 60, 100]),
            moves: *dice.pick(&[Moves::Ahead, Moves::Circles, Moves::Nowhere, Moves::Anyhow]),
            cancels: *dice.pick(&[0, 0, 0, 2]),
            pauses: *dice.pick(&often),
            messages: *dice.pick(&often),
        }
    }

    pub(crate) fn plan(&self) -> SessionPlan {
        SessionPlan {
            name: "sim".into(),
            work: SessionWork::Prompt("x".into()),
            agent: "sim".into(),
            fallback: self.fallback.clone(),
            model: None,
            permissions: None,
            conversation: self.conversation,
            keeps_feedback: self.conversation == ConversationMode::Fresh,
            promises: Vec::new(),
            stop_when: self.stop_when.clone(),
            at_retry_limit: self.at_retry_limit,
            limits: self.limits,
            hooks: String::new(),
            scripts: None,
            fence: "fence".into(),
            machine: "sim".into(),
            delivers: false,
            worker: None,
            no_changes_ok: self.no_changes_ok,
            may_change: Vec::new(),
            wants_no_gates: false,
            trace_parent: None,
        }
    }
}

/// Returns no budget, or a budget for a few turns, each of which uses at most its reservation.
fn budget(dice: &mut SeededRandom) -> SharedBudget {
    let cost = |cost| BudgetBounds { cost_micros: Some(cost), ..BudgetBounds::default() };
    let (day, total) =
        *dice.pick(&[(None, None), (None, None), (Some(45), None), (None, Some(70))]);
    let bound = |amount: Option<u64>| amount.map_or_else(BudgetBounds::default, cost);
    SharedBudget {
        day: bound(day),
        total: bound(total),
        reserve_per_turn: cost(*dice.pick(&[10, 12])),
    }
}

/// Returns hooks at random points, whose output is piped to the agent or not.
fn rules(dice: &mut SeededRandom) -> EffectiveConfig {
    let mut yaml = "version: 1\nhooks:\n".to_owned();
    let points =
        ["session_start", "pre_iteration", "post_iteration", "on_error", "validation", "stop"];
    for point in points {
        let count = dice.below(3);
        if count > 0 {
            let _ = writeln!(yaml, "  {point}:");
        }
        for n in 0..count {
            let pipe = dice.pick(&["true", "false", "on_failure"]);
            let _ =
                writeln!(yaml, "    - {{name: {point}{n}, command: 'true', pipe_output: {pipe}}}");
        }
    }
    yaml.push_str("  stop_when:\n    - {name: decider, command: 'true'}\n");
    yaml.push_str("  session_end:\n    - {name: last, command: 'true'}\n");
    project_file::settings_from(Path::new("sim"), yaml.as_bytes()).unwrap().rules
}

/// Events outside the program, which survive its crashes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    /// The outputs in the prompt of each turn, by its number.
    pub(crate) turns: Vec<Vec<String>>,
    /// Running time of the session at the start of each turn.
    pub(crate) turns_began_ms: Vec<u64>,
    pub(crate) ends_begun: u32,
    /// Number of processes that crashed after session_end had begun.
    pub(crate) died_at_end: u32,
    pub(crate) files: u64,
    outputs: u64,
    pub(crate) was_cancelled: bool,
    pub(crate) crashes: u32,
    messages: u64,
}

pub(crate) struct Scene {
    nature: Nature,
    story: Rc<RefCell<Story>>,
    dice: Rc<RefCell<SeededRandom>>,
    log: MemoryLog,
    id: SessionId,
    elapsed_ms: u64,
    active_before_ms: u64,
    has_begun_end: bool,
    cancelled: bool,
    known: u64,
}

impl Scene {
    pub(crate) fn new(
        nature: &Nature,
        story: Rc<RefCell<Story>>,
        dice: Rc<RefCell<SeededRandom>>,
        log: MemoryLog,
        id: SessionId,
    ) -> Scene {
        let (nature, known) = (nature.clone(), story.borrow().files);
        Scene {
            nature,
            story,
            dice,
            log,
            id,
            elapsed_ms: 0,
            active_before_ms: 0,
            has_begun_end: false,
            cancelled: false,
            known,
        }
    }

    fn chance(&self, percent: u64) -> bool {
        self.dice.borrow_mut().chance(percent)
    }

    /// Crashes the process at random.
    fn may_crash(&self) {
        if self.chance(self.nature.crashes) {
            let mut story = self.story.borrow_mut();
            story.crashes += 1;
            story.died_at_end += u32::from(self.has_begun_end);
            drop(story);
            std::panic::resume_unwind(Box::new(Crash));
        }
    }

    /// Lets another user or process act on the session at random.
    fn may_be_disturbed(&mut self) {
        let subject = Subject::Session(self.id.clone());
        if self.chance(self.nature.messages) {
            self.story.borrow_mut().messages += 1;
            let text = format!("message-{}", self.story.borrow().messages);
            let piped = PipedOutput {
                from: "u".into(),
                point: "message".into(),
                text,
                ..PipedOutput::default()
            };
            append(&self.log, &subject, EventBody::OutputPiped(piped));
        }
        if self.chance(self.nature.pauses) {
            append(&self.log, &subject, EventBody::PauseRequested(NoData {}));
        }
        if self.chance(self.nature.cancels) {
            self.cancelled = true;
            self.story.borrow_mut().was_cancelled = true;
        }
    }

    fn hook(&mut self, hook: &Hook, point: &Point) -> HookRun {
        let files = self.story.borrow().files;
        let mut outcome = HookOutcome::of(HookStatus::Passed);
        let is_gate = point.kind() == hookloop_core::point::PointKind::Gate;
        match is_gate {
            true if !passes(&hook.name, files) => {
                outcome.status = HookStatus::Blocked;
                outcome.verdict = HookVerdict::Block { feedback: "no".into() };
            }
            true if self.chance(3) => {
                outcome.status = HookStatus::TimedOut;
                outcome.verdict = HookVerdict::Block { feedback: "it took too long".into() };
            }
            true if self.chance(1) => {
                outcome.status = HookStatus::Blocked;
                outcome.verdict = HookVerdict::Escalate { reason: "look at this".into() };
            }
            false if self.chance(20) => {
                let failures = [HookStatus::Failed, HookStatus::TimedOut, HookStatus::NotStarted];
                outcome.status = *self.dice.borrow_mut().pick(&failures);
            }
            _ => {}
        }
        self.elapsed_ms += self.dice.borrow_mut().below(300);
        self.story.borrow_mut().outputs += 1;
        let stdout = format!("out-{}", self.story.borrow().outputs);
        let ran = HookRan {
            message: None,
            hook_name: hook.name.clone(),
            point: point.name().into(),
            status: outcome.status.into(),
            exit_code: None,
            duration_ms: 1,
            ended_at: None,
            attempts: 1,
            reason: None,
            stdout_bytes: 0,
            stderr_bytes: 0,
            artifact: None,
            base_tests: false,
            output_tail: Vec::new(),
        };
        let stderr = String::new();
        let left_out = Vec::new();
        let printed = [stdout.as_str(), stderr.as_str()].concat();
        HookRun {
            hook: hook.name.clone(),
            outcome,
            ran: Some(ran),
            stdout,
            stderr,
            printed,
            left_out,
            gap: None,
            checks: None,
            in_room: false,
        }
    }

    fn agent(&mut self, number: usize) -> TurnReport {
        let report = TurnReport {
            result: TurnResult::Finished,
            message: format!("turn-{number}"),
            promises: Vec::new(),
            usage: Usage { input_tokens: 10, cached_tokens: 0, output_tokens: 5, cost_micros: 10 },
            is_partial: false,
            is_unpriced: false,
            stderr: None,
            fault: None,
            refused: Vec::new(),
            artifact: None,
            conversation: None,
        };
        if self.chance(self.nature.hangs) {
            self.elapsed_ms += 10_000;
            return TurnReport { usage: Usage::default(), ..TurnReport::failed("it hangs") };
        }
        self.elapsed_ms += 100 + self.dice.borrow_mut().below(3_000);
        if self.chance(self.nature.errors) {
            return TurnReport::failed("no network");
        }
        if self.chance(self.nature.waits) {
            let after = *self.dice.borrow_mut().pick(&[None, Some(0), Some(90_000)]);
            let until_ms = after.map(|ms: u64| self.now_ms() + ms);
            let result = TurnResult::RateLimited { error: "not now".into(), until_ms };
            return TurnReport { result, ..TurnReport::failed("") };
        }
        let mut story = self.story.borrow_mut();
        let anyhow = self.dice.borrow_mut().below(6);
        story.files = match self.nature.moves {
            Moves::Ahead => story.files + 1,
            Moves::Circles => (story.files + 1) % 3,
            Moves::Nowhere => story.files,
            Moves::Anyhow => anyhow,
        };
        drop(story);
        let mut promises = Vec::new();
        if self.chance(self.nature.claims) {
            promises.push(Promise::Complete);
        } else if self.chance(2) {
            promises.push(Promise::Blocked);
        }
        TurnReport { promises, ..report }
    }
}

/// Returns whether a gate passes, which depends only on the files.
pub(crate) fn passes(gate: &str, files: u64) -> bool {
    let mix = gate.bytes().fold(files, |mix, byte| mix.wrapping_mul(31).wrapping_add(byte.into()));
    mix % 3 != 0
}

impl StrengthWorld for Scene {}

impl SessionWorld for Scene {
    fn enter(&mut self, _: &Task, _: PlaceEntry) -> Result<Option<WorktreeLoss>, StepError> {
        self.may_crash();
        Ok(None)
    }

    fn check_place(&self, _: Option<&Task>) -> Result<(), PlaceDamage> {
        Ok(())
    }

    fn wrap_up(&mut self, task: &Task) -> Result<CommittedWork, StepError> {
        let (branch, base) = (format!("hookloop/{}", task.id), "main".to_owned());
        Ok(CommittedWork { branch, head: "a".repeat(40), base, commits: 1 })
    }

    fn run_hooks(
        &mut self,
        hooks: &[Hook],
        call: &SessionCall<'_>,
        ended: HookSink<'_>,
    ) -> Vec<HookRun> {
        self.active_before_ms = self.active_before_ms.max(call.session.active_ms);
        self.may_crash();
        if *call.point == Point::SessionEnd {
            self.story.borrow_mut().ends_begun += 1;
            self.has_begun_end = true;
        }
        let mut runs = Vec::new();
        for hook in hooks {
            let run = self.hook(hook, call.point);
            let stored = ended(&run);
            self.notice(SessionUpdate::Stored(&stored));
            self.may_crash();
            runs.push(run);
        }
        // Output that arrives while session_end runs is too late for any prompt.
        if *call.point != Point::SessionEnd {
            self.may_be_disturbed();
        }
        self.may_crash();
        runs
    }

    fn take_turn(&mut self, turn: &DueTurn<'_>) -> TurnReport {
        self.may_crash();
        let number = {
            let mut story = self.story.borrow_mut();
            let texts = turn.session.bound.iter().map(|piped| piped.text.clone()).collect();
            story.turns.push(texts);
            story.turns_began_ms.push(turn.session.active_ms);
            story.turns.len() - 1
        };
        assert!(turn.timeout_ms <= self.nature.limits.turn_timeout_ms);
        let report = self.agent(number);
        self.may_be_disturbed();
        self.may_crash();
        match &report.result {
            TurnResult::Failed { .. } | TurnResult::RateLimited { .. } => report,
            _ => TurnReport { message: format!("turn-{number}"), ..report },
        }
    }

    fn look_at_files(&mut self) -> Option<FilesLook> {
        let files = self.story.borrow().files;
        let changed = if files == self.known { vec![] } else { vec!["a".to_owned()] };
        self.known = files;
        Some(FilesLook { digest: files.to_string(), changed })
    }

    fn tree(&mut self) -> Option<String> {
        Some(format!("tree-{}", self.story.borrow().files))
    }

    fn drifted(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms
    }

    fn now_ms(&self) -> u64 {
        self.active_before_ms + self.elapsed_ms
    }

    fn pause(&mut self, ms: u64) {
        self.elapsed_ms += ms;
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    fn begin_end(&mut self) {}

    fn can_ask(&self) -> bool {
        true
    }

    fn ask(&mut self, _: &Session, is_answered: &mut dyn FnMut() -> bool) -> Option<LimitDecision> {
        let elsewhere = self.chance(30);
        let also_here = !elsewhere || self.chance(30);
        if elsewhere {
            let answer =
                *self.dice.borrow_mut().pick(&[LimitDecision::Continue, LimitDecision::Abort]);
            let answered = DecisionMade { answer, by: "u".into() };
            let subject = Subject::Session(self.id.clone());
            append(&self.log, &subject, EventBody::DecisionMade(answered));
            assert!(also_here || is_answered(), "the decision was not noticed");
        }
        let answers = [None, None, None, Some(LimitDecision::Continue), Some(LimitDecision::Abort)];
        self.dice.borrow_mut().pick(&answers).filter(|_| also_here)
    }

    fn hold(&mut self, _: Option<(&Task, u64)>) {}

    fn notice(&mut self, notice: SessionUpdate<'_>) {
        if let SessionUpdate::Stored(stored) = notice
            && !stored.is_empty()
        {
            self.may_crash();
        }
    }
}
