//! Tests of external sessions: the tools of an agent, the rules that apply to it, and that no state
//! is lost when the server ends.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use hookloop_config::paths::ProjectPaths;
use hookloop_core::command::Command;
use hookloop_core::id::TaskId;
use hookloop_core::promise::Promise;
use hookloop_core::session::{SessionOutcome, StopDecision};
use hookloop_core::task::{TaskSpec, TaskState};
use hookloop_engine::external::agent_tools::{
    AgentToolError, AgentTools, Checkpoint, IterationReport, LoopSignal, LoopStart,
    RequestedChange, StopPreset,
};
use hookloop_engine::external::native::{HookMoment, HookReply, HookVisit, visit};
use hookloop_engine::log_location::LaunchContext;
use hookloop_engine::project::Project;
use hookloop_engine::session::stop_switch::StopSwitch;
use hookloop_engine::session::{control, lookup};
use serde_json::Map;
use tempfile::TempDir;

const GATED: &str =
    "version: 1\nroom: here\nhooks:\n  stop:\n    - {name: answer, file: answer.txt}\n";
const COMPLETE: &str = "Done.\n<promise>COMPLETE</promise>";

struct Bed {
    dir: TempDir,
}

impl Bed {
    fn new(config: &str) -> Bed {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("project")).unwrap();
        fs::write(dir.path().join("project/hookloop.yaml"), config).unwrap();
        Bed { dir }
    }

    fn project(&self) -> Project {
        let root = self.dir.path().join("project").canonicalize().unwrap();
        let place = ProjectPaths::at(&root, &self.dir.path().join("state"));
        let environment = std::env::vars_os().collect();
        let around = LaunchContext { environment, ..LaunchContext::default() };
        Project::open(&place, "tester", &around).unwrap()
    }

    fn tools(&self) -> AgentTools {
        AgentTools::new(self.project(), None).unwrap()
    }

    /// Returns the tools of an agent that iterates on task `t1`, and the iteration's id.
    fn iterating(&self, preset: StopPreset) -> (AgentTools, String) {
        self.task("t1");
        let tools = self.tools();
        tools.register("t1", preset, Map::new()).unwrap();
        let id = tools.start(&start("t1")).unwrap().id.to_string();
        (tools, id)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.dir.path().join("project").join(name), text).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.dir.path().join("project").join(name)).unwrap();
    }

    fn task(&self, id: &str) {
        let spec = TaskSpec { goal: "write the answer".into(), ..TaskSpec::default() };
        let command = Command::AddTask { id: id.parse().unwrap(), spec, depends_on: vec![] };
        self.project().execute(&command).unwrap();
    }

    fn state(&self, id: &str) -> TaskState {
        let id: TaskId = id.parse().unwrap();
        self.project().read(|view| view.task(&id)).unwrap().unwrap().task.state
    }

    fn visit(&self, moment: HookMoment<'_>) -> HookReply {
        self.visit_with(moment, None)
    }

    fn visit_with(&self, moment: HookMoment<'_>, blocks_max: Option<u32>) -> HookReply {
        let visited = HookVisit { agent: "codex", blocks_max, conversation: "c1", moment };
        visit(&self.project(), &visited, &StopSwitch::new().unwrap()).unwrap()
    }

    /// Returns the outcome of the newest session.
    fn outcome(&self) -> Option<SessionOutcome> {
        let project = self.project();
        let row = project.read(|view| view.sessions(1)).unwrap().remove(0);
        lookup::session(&project, &row.id).unwrap().outcome
    }
}

fn start(task: &str) -> LoopStart {
    LoopStart { task: task.into(), ..LoopStart::default() }
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, AgentToolError>) -> &'static str {
    match result {
        Err(AgentToolError::Refused { code, next, .. }) => {
            assert!(!next.is_empty(), "{code} has no next step");
            code
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_loop_led_by_the_agent_completes_once_its_gate_passes() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let tools = bed.tools();
    tools.register("t1", StopPreset::Default, Map::new()).unwrap();
    let begun = tools.start(&start("t1")).unwrap();
    assert_eq!((begun.number, bed.state("t1")), (1, TaskState::Active));
    let id = begun.id.to_string();

    let judged = tools.validate(&id, "still at it").unwrap();
    assert_eq!((judged.signal, judged.number), (LoopSignal::Continue, 1));
    // A claim of completion is not proof.
    let judged = tools.validate(&id, COMPLETE).unwrap();
    assert_eq!(judged.signal, LoopSignal::Continue);
    assert!(judged.feedback.iter().any(|text| text.contains("answer.txt")), "{judged:?}");
    assert_eq!(code(tools.complete(&id, Promise::Complete)), "not_proven");

    let next = tools.next(&id).unwrap();
    assert_eq!(next.number, 3);
    assert!(next.prompt.unwrap().contains("answer.txt"));
    bed.write("answer.txt", "42");
    let judged = tools.validate(&id, COMPLETE).unwrap();
    assert_eq!((judged.signal, judged.passed), (LoopSignal::Complete, true));
    assert_eq!(bed.state("t1"), TaskState::Active, "only the agent ends the loop");

    let done = tools.complete(&id, Promise::Complete).unwrap();
    assert_eq!((done.iterations, bed.state("t1")), (3, TaskState::Completed));
    assert_eq!(tools.clear("t1").unwrap(), 1);
    assert_eq!(bed.outcome(), Some(SessionOutcome::Complete { unproven: false }));
    assert_eq!(tools.complete(&id, Promise::Complete).unwrap().iterations, 3, "said twice");
}

#[test]
fn a_loop_continues_across_server_restarts() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let hook = bed.tools().register("t1", StopPreset::Promise, Map::new()).unwrap();
    let id = bed.tools().start(&start("t1")).unwrap().id.to_string();
    let said = IterationReport { output: COMPLETE.into(), ..IterationReport::default() };
    let evaluated = bed.tools().evaluate(&id, &said).unwrap();
    assert_eq!((evaluated.action, &evaluated.hook), (StopDecision::Complete, &hook.id));
    assert_eq!(bed.tools().validate(&id, COMPLETE).unwrap().signal, LoopSignal::Continue);
    assert_eq!(bed.tools().next(&id).unwrap().number, 2);
    bed.write("answer.txt", "42");
    assert_eq!(bed.tools().validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    bed.tools().complete(&id, Promise::Complete).unwrap();
    assert_eq!(bed.state("t1"), TaskState::Completed);
}

#[test]
fn a_change_after_passed_gates_requires_another_validation() {
    let bed = Bed::new(GATED);
    let (tools, id) = bed.iterating(StopPreset::Promise);
    bed.write("answer.txt", "42");
    assert_eq!(tools.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    bed.remove("answer.txt");
    assert_eq!(code(tools.complete(&id, Promise::Complete)), "not_proven");
    assert_eq!(bed.state("t1"), TaskState::Active);
    bed.write("answer.txt", "42");
    assert_eq!(tools.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    tools.complete(&id, Promise::Complete).unwrap();
}

#[test]
fn without_registered_hooks_the_stop_when_of_the_project_decides() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let tools = bed.tools();
    let id = tools.start(&start("t1")).unwrap().id.to_string();
    let said = IterationReport { output: COMPLETE.into(), ..IterationReport::default() };
    let evaluated = tools.evaluate(&id, &said).unwrap();
    assert_eq!((evaluated.action, evaluated.hook.as_str()), (StopDecision::Continue, "default"));
    assert_eq!(evaluated.reason, "No hooks registered for this task");
    // The gate fails first, then passes.
    assert_eq!(tools.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Continue);
    tools.next(&id).unwrap();
    bed.write("answer.txt", "42");
    assert_eq!(tools.validate(&id, "still at it").unwrap().signal, LoopSignal::Continue);
    tools.next(&id).unwrap();
    assert_eq!(tools.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    tools.complete(&id, Promise::Complete).unwrap();
    assert_eq!(bed.state("t1"), TaskState::Completed);
}

#[test]
fn a_loop_completes_in_a_project_with_stop_when_tasks() {
    let bed = Bed::new(
        "version: 1\nroom: here\nloop: {stop_when: tasks}\nhooks:\n  stop:\n    - {name: answer, file: answer.txt}\n",
    );
    bed.task("t1");
    bed.write("answer.txt", "42");
    let tools = bed.tools();
    let id = tools.start(&start("t1")).unwrap().id.to_string();
    assert_eq!(tools.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
}

#[test]
fn a_loop_accepts_only_the_promises_given_at_its_start() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let tools = bed.tools();
    let promises = vec![Promise::Complete, Promise::Blocked];
    let started = tools.start(&LoopStart { promises: promises.clone(), ..start("t1") }).unwrap();
    assert_eq!(started.promises, promises);
    let id = started.id.to_string();
    let judged = tools.validate(&id, "Help.\n<promise>ESCALATE</promise>").unwrap();
    assert_eq!((judged.signal, judged.promises.len()), (LoopSignal::Continue, 0));
    let told = judged.feedback.join("\n");
    assert!(told.contains("ESCALATE does not end this loop"), "{told}");
    assert!(told.contains("COMPLETE, BLOCKED"), "{told}");
    // A restarted server knows the promises.
    drop(tools);
    let tools = bed.tools();
    assert_eq!(tools.next(&id).unwrap().promises, promises);
    assert_eq!(code(tools.complete(&id, Promise::Escalate)), "not_allowed");
    assert_eq!(bed.state("t1"), TaskState::Active);
    let judged = tools.validate(&id, "Stuck.\n<promise>BLOCKED</promise>").unwrap();
    assert_eq!(judged.signal, LoopSignal::Blocked);
    assert_eq!(bed.state("t1"), TaskState::Blocked);
}

#[test]
fn gates_that_never_pass_end_the_loop() {
    let bed = Bed::new(GATED);
    let (tools, id) = bed.iterating(StopPreset::Default);
    let mut signals = Vec::new();
    for round in 0..10 {
        bed.write("tried.txt", &round.to_string());
        let signal = tools.validate(&id, COMPLETE).unwrap().signal;
        signals.push(signal);
        if signal != LoopSignal::Continue {
            break;
        }
        tools.next(&id).unwrap();
    }
    assert_eq!(signals.len(), 6, "five retries: {signals:?}");
    assert_eq!(signals.last(), Some(&LoopSignal::Escalate));
    assert_eq!(bed.state("t1"), TaskState::Blocked);
    assert_eq!(code(tools.next(&id)), "over");
}

#[test]
fn limits_are_lowered_and_never_raised() {
    let bed = Bed::new("version: 1\nlimits: {max_iterations: 4, max_no_progress: 2}\n");
    bed.task("t1");
    bed.task("t2");
    let tools = bed.tools();
    let request = |task: &str, count| LoopStart {
        max_iterations: Some(count),
        circuit_breaker: Some(count),
        ..start(task)
    };
    let low = tools.start(&LoopStart { circuit_breaker: None, ..request("t1", 1) }).unwrap();
    assert_eq!((low.max_iterations, low.circuit_breaker), (1, 2));
    let high = tools.start(&request("t2", 1_000)).unwrap();
    assert_eq!((high.max_iterations, high.circuit_breaker), (4, 2));
    let id = low.id.to_string();
    let judged = tools.validate(&id, "still at it").unwrap();
    assert_eq!(judged.signal, LoopSignal::Escalate);
    assert_eq!(judged.feedback, ["a limit was reached: iterations"]);
    assert_eq!(code(tools.next(&id)), "over");
    // Otherwise the task would get the same limits again.
    assert_eq!(bed.state("t1"), TaskState::Blocked);
}

#[test]
fn agents_cannot_complete_tasks_by_an_update() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    bed.task("t2");
    let tools = bed.tools();
    let to = |state| RequestedChange { state: Some(state), ..RequestedChange::default() };
    assert_eq!(code(tools.update("t1", &to(TaskState::Completed))), "not_proven");
    assert_eq!(code(tools.update("t1", &to(TaskState::Active))), "not_allowed");
    tools.start(&start("t1")).unwrap();
    assert_eq!(code(tools.update("t1", &to(TaskState::Completed))), "not_proven");
    let block = RequestedChange { blocked_reason: Some("no key".into()), ..to(TaskState::Blocked) };
    let task = tools.update("t1", &block).unwrap();
    assert_eq!(task.state, TaskState::Blocked);
    assert!(task.obstacle.unwrap().reason.contains("no key"));
    assert_eq!(code(tools.update("t1", &to(TaskState::Ready))), "not_allowed");
    assert_eq!(bed.state("t2"), TaskState::Ready);
    let free = Bed::new("version: 1\n");
    free.task("t1");
    // Without a gate the task cannot be proven: only a person completes it.
    assert_eq!(code(free.tools().update("t1", &to(TaskState::Completed))), "not_proven");
    assert_eq!(free.state("t1"), TaskState::Ready);
}

#[test]
fn notes_and_checkpoints_are_kept() {
    let bed = Bed::new("version: 1\n");
    bed.task("t1");
    let note = RequestedChange { notes: Some("half way".into()), ..RequestedChange::default() };
    bed.tools().update("t1", &note).unwrap();
    let detail = bed.tools().task("t1").unwrap();
    assert_eq!(detail.notes[0].text, "half way");
    assert_eq!(code(bed.tools().recall("t1", None)), "no_checkpoint");
    let at = |step| Checkpoint { step: Some(step), ..Checkpoint::default() };
    let first = bed.tools().checkpoint("t1", at(1)).unwrap();
    let second = bed.tools().checkpoint("t1", at(2)).unwrap();
    assert_eq!((first.sequence, second.sequence), (1, 2));
    assert_eq!(bed.tools().recall("t1", None).unwrap(), second);
    assert_eq!(bed.tools().recall("t1", Some(&first.id)).unwrap(), first);
    assert_eq!(code(bed.tools().task("t9")), "no_such_task");
}

#[test]
fn a_task_claimed_by_another_session_cannot_be_changed() {
    let bed = Bed::new("version: 1\n");
    bed.task("t1");
    let (one, other) = (bed.tools(), bed.tools());
    one.start(&start("t1")).unwrap();
    assert_eq!(code(other.start(&start("t1"))), "not_ready");
    assert_eq!(code(other.register("t1", StopPreset::Promise, Map::new())), "claimed");
    let note = RequestedChange { notes: Some("mine".into()), ..RequestedChange::default() };
    assert_eq!(code(other.update("t1", &note)), "claimed");
    one.update("t1", &note).unwrap();
}

#[test]
fn native_hooks_block_the_stop_until_the_gates_pass() {
    let bed = Bed::new(GATED);
    assert_eq!(bed.visit(HookMoment::Start), HookReply::Nothing);
    assert_eq!(bed.visit(HookMoment::Prompt), HookReply::Nothing);
    let HookReply::Block { reason } = bed.visit(HookMoment::Stop { message: "Done" }) else {
        panic!()
    };
    assert!(reason.contains("answer.txt") && reason.contains("try 1 of 5"), "{reason}");
    assert_eq!(hookloop_core::promise::promises(&reason), [], "{reason}");
    bed.write("answer.txt", "42");
    let HookReply::Pass { note } = bed.visit(HookMoment::Stop { message: "Done" }) else {
        panic!()
    };
    assert_eq!(note.as_deref(), Some("hookloop: proven by answer"));
    assert_eq!(bed.outcome(), Some(SessionOutcome::Complete { unproven: false }));
    // The next prompt is the next session.
    bed.remove("answer.txt");
    assert!(matches!(bed.visit(HookMoment::Stop { message: "Done" }), HookReply::Block { .. }));
    assert_eq!(bed.visit(HookMoment::End), HookReply::Nothing);
    assert_eq!(bed.outcome(), Some(SessionOutcome::Cancelled));
}

/// Returns how often a native hook blocks an agent that never proves its work, and the final note.
fn blocks_until_pass(bed: &Bed, blocks_max: Option<u32>) -> (u32, String) {
    let mut blocks = 0;
    loop {
        bed.write("tried.txt", &blocks.to_string());
        match bed.visit_with(HookMoment::Stop { message: "Done" }, blocks_max) {
            HookReply::Block { .. } => blocks += 1,
            HookReply::Pass { note } => return (blocks, note.unwrap()),
            other => panic!("{other:?}"),
        }
        assert!(blocks < 20);
    }
}

#[test]
fn native_hooks_stop_blocking_before_the_agents_own_block_limit() {
    for (blocks_max, blocks) in [(3, 2), (6, 5), (20, 5)] {
        let bed = Bed::new(GATED);
        assert_eq!(blocks_until_pass(&bed, Some(blocks_max)).0, blocks, "{blocks_max}");
        assert!(matches!(bed.outcome(), Some(SessionOutcome::NeedsHuman { .. })));
    }
}

#[test]
fn native_hooks_stop_blocking_at_the_gate_retry_limit() {
    let bed = Bed::new(GATED);
    let (blocks, note) = blocks_until_pass(&bed, None);
    assert_eq!(blocks, 5);
    assert!(note.contains("a person must decide"), "{note}");
    assert!(matches!(bed.outcome(), Some(SessionOutcome::NeedsHuman { .. })));
}

#[test]
fn an_agent_that_is_blocked_may_stop() {
    let bed = Bed::new(GATED);
    let message = "I have no key.\n<promise>BLOCKED</promise>";
    let HookReply::Pass { note } = bed.visit(HookMoment::Stop { message }) else { panic!() };
    assert!(note.unwrap().contains("blocked"));
}

#[test]
fn replacing_the_gates_does_not_prove_completion() {
    let bed = Bed::new(GATED);
    bed.visit(HookMoment::Start);
    bed.write(
        "hookloop.yaml",
        "version: 1\nhooks:\n  stop:\n    - {name: other, file: hookloop.yaml}\n",
    );
    let HookReply::Pass { note } = bed.visit(HookMoment::Stop { message: "Done" }) else {
        panic!()
    };
    assert!(note.unwrap().contains("the hooks are not those"));
    assert!(matches!(bed.outcome(), Some(SessionOutcome::NeedsHuman { .. })));
}

#[test]
fn the_current_task_is_context_at_the_session_start() {
    let bed = Bed::new("version: 1\n");
    assert_eq!(bed.visit(HookMoment::Start), HookReply::Nothing);
    bed.task("t1");
    let command = Command::StartTask { id: "t1".parse().unwrap(), context: None };
    bed.project().execute(&command).unwrap();
    let HookReply::Context(text) = bed.visit(HookMoment::Start) else { panic!() };
    assert!(text.contains("t1") && text.contains("write the answer"), "{text}");
    assert_eq!(bed.visit(HookMoment::Stop { message: "" }), HookReply::Pass { note: None });
}

/// Removes all gates, not only one.
#[test]
fn removing_all_gates_does_not_prove_completion() {
    let bed = Bed::new(GATED);
    bed.visit(HookMoment::Start);
    bed.write("hookloop.yaml", "version: 1\n");
    let HookReply::Pass { note } = bed.visit(HookMoment::Stop { message: "Done" }) else {
        panic!()
    };
    assert!(note.unwrap().contains("the hooks are not those"));
}

#[test]
fn a_loop_with_changed_gates_is_escalated() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let tools = bed.tools();
    let id = tools.start(&start("t1")).unwrap().id.to_string();
    bed.write("hookloop.yaml", "version: 1\n");
    let after = tools.reopened(bed.project());
    assert_eq!(after.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Escalate);
    assert_eq!(bed.state("t1"), TaskState::Blocked);
    assert_eq!(code(after.start(&start("t1"))), "not_ready");
    bed.task("t2");
    let done = RequestedChange { state: Some(TaskState::Completed), ..RequestedChange::default() };
    assert_eq!(code(after.update("t2", &done)), "not_proven", "there were gates");
}

#[test]
fn a_cancelled_validation_can_be_repeated() {
    let bed = Bed::new(GATED);
    let (tools, id) = bed.iterating(StopPreset::Promise);
    let stop = StopSwitch::new().unwrap();
    stop.by_user();
    let _ = tools.for_call(stop).validate(&id, COMPLETE);
    assert_eq!(bed.state("t1"), TaskState::Active);
    bed.write("answer.txt", "42");
    assert_eq!(tools.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    tools.complete(&id, Promise::Complete).unwrap();
}

#[test]
fn a_pending_user_message_is_returned_with_the_completion() {
    let bed = Bed::new(GATED);
    let (tools, id) = bed.iterating(StopPreset::Promise);
    bed.write("answer.txt", "42");
    tools.validate(&id, COMPLETE).unwrap();
    control::message(&bed.project(), Some(&id), "and mind the gap").unwrap();
    let done = tools.complete(&id, Promise::Complete).unwrap();
    assert!(done.prompt.unwrap().contains("and mind the gap"));
}

#[test]
fn each_validation_with_rules_is_an_iteration() {
    let bed = Bed::new(
        "version: 1\nroom: here\nhooks:\n  validation:\n    - {name: answer, file: answer.txt}\n",
    );
    let (tools, id) = bed.iterating(StopPreset::Validation);
    let numbers: Vec<u32> = (0..3).map(|_| tools.validate(&id, "").unwrap().number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}
