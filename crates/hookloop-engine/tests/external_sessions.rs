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
    AgentTools, Checkpoint, DeskError, IterationReport, LoopSignal, LoopStart, RequestedChange,
    StopPreset,
};
use hookloop_engine::external::native::{HookMoment, HookReply, HookVisit, visit};
use hookloop_engine::log_location::LaunchContext;
use hookloop_engine::project::Project;
use hookloop_engine::session::stop_switch::StopSwitch;
use hookloop_engine::session::{control, lookup};
use serde_json::Map;
use tempfile::TempDir;

const GATED: &str = "version: 1\nhooks:\n  stop:\n    - {name: answer, file: answer.txt}\n";
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

    fn desk(&self) -> AgentTools {
        AgentTools::new(self.project(), None).unwrap()
    }

    /// Returns the tools of an agent that iterates on task `t1`, and the iteration's id.
    fn iterating(&self, preset: StopPreset) -> (AgentTools, String) {
        self.task("t1");
        let desk = self.desk();
        desk.register("t1", preset, Map::new()).unwrap();
        let id = desk.start(&start("t1")).unwrap().id.to_string();
        (desk, id)
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
fn code<T: std::fmt::Debug>(result: Result<T, DeskError>) -> &'static str {
    match result {
        Err(DeskError::Refused { code, next, .. }) => {
            assert!(!next.is_empty(), "{code} has no next step");
            code
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn the_flow_of_an_agent_that_leads_its_own_loop() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let desk = bed.desk();
    desk.register("t1", StopPreset::Default, Map::new()).unwrap();
    let begun = desk.start(&start("t1")).unwrap();
    assert_eq!((begun.number, bed.state("t1")), (1, TaskState::Active));
    let id = begun.id.to_string();

    let judged = desk.validate(&id, "still at it").unwrap();
    assert_eq!((judged.signal, judged.number), (LoopSignal::Continue, 1));
    // A claim of completion is not proof.
    let judged = desk.validate(&id, COMPLETE).unwrap();
    assert_eq!(judged.signal, LoopSignal::Continue);
    assert!(judged.feedback.iter().any(|text| text.contains("answer.txt")), "{judged:?}");
    assert_eq!(code(desk.complete(&id, Promise::Complete)), "not_proven");

    let next = desk.next(&id).unwrap();
    assert_eq!(next.number, 3);
    assert!(next.prompt.unwrap().contains("answer.txt"));
    bed.write("answer.txt", "42");
    let judged = desk.validate(&id, COMPLETE).unwrap();
    assert_eq!((judged.signal, judged.passed), (LoopSignal::Complete, true));
    assert_eq!(bed.state("t1"), TaskState::Active, "only the agent ends the loop");

    let done = desk.complete(&id, Promise::Complete).unwrap();
    assert_eq!((done.iterations, bed.state("t1")), (3, TaskState::Completed));
    assert_eq!(desk.clear("t1").unwrap(), 1);
    assert_eq!(bed.outcome(), Some(SessionOutcome::Complete { unproven: false }));
    assert_eq!(desk.complete(&id, Promise::Complete).unwrap().iterations, 3, "said twice");
}

#[test]
fn nothing_is_lost_when_the_server_ends() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let hook = bed.desk().register("t1", StopPreset::Promise, Map::new()).unwrap();
    let id = bed.desk().start(&start("t1")).unwrap().id.to_string();
    let said = IterationReport { output: COMPLETE.into(), ..IterationReport::default() };
    let evaluated = bed.desk().evaluate(&id, &said).unwrap();
    assert_eq!((evaluated.action, &evaluated.hook), (StopDecision::Complete, &hook.id));
    assert_eq!(bed.desk().validate(&id, COMPLETE).unwrap().signal, LoopSignal::Continue);
    assert_eq!(bed.desk().next(&id).unwrap().number, 2);
    bed.write("answer.txt", "42");
    assert_eq!(bed.desk().validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    bed.desk().complete(&id, Promise::Complete).unwrap();
    assert_eq!(bed.state("t1"), TaskState::Completed);
}

#[test]
fn a_change_after_green_has_to_be_proven_again() {
    let bed = Bed::new(GATED);
    let (desk, id) = bed.iterating(StopPreset::Promise);
    bed.write("answer.txt", "42");
    assert_eq!(desk.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    bed.remove("answer.txt");
    assert_eq!(code(desk.complete(&id, Promise::Complete)), "not_proven");
    assert_eq!(bed.state("t1"), TaskState::Active);
    bed.write("answer.txt", "42");
    assert_eq!(desk.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    desk.complete(&id, Promise::Complete).unwrap();
}

#[test]
fn without_registered_hooks_the_stop_when_of_the_project_decides() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let desk = bed.desk();
    let id = desk.start(&start("t1")).unwrap().id.to_string();
    let said = IterationReport { output: COMPLETE.into(), ..IterationReport::default() };
    let evaluated = desk.evaluate(&id, &said).unwrap();
    assert_eq!((evaluated.action, evaluated.hook.as_str()), (StopDecision::Continue, "default"));
    assert_eq!(evaluated.reason, "No hooks registered for this task");
    // The gate fails first, then passes.
    assert_eq!(desk.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Continue);
    desk.next(&id).unwrap();
    bed.write("answer.txt", "42");
    assert_eq!(desk.validate(&id, "still at it").unwrap().signal, LoopSignal::Continue);
    desk.next(&id).unwrap();
    assert_eq!(desk.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    desk.complete(&id, Promise::Complete).unwrap();
    assert_eq!(bed.state("t1"), TaskState::Completed);
}

#[test]
fn a_loop_in_a_project_that_stops_by_tasks_can_end() {
    let bed = Bed::new(
        "version: 1\nloop: {stop_when: tasks}\nhooks:\n  stop:\n    - {name: answer, file: answer.txt}\n",
    );
    bed.task("t1");
    bed.write("answer.txt", "42");
    let desk = bed.desk();
    let id = desk.start(&start("t1")).unwrap().id.to_string();
    assert_eq!(desk.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
}

#[test]
fn a_loop_ends_only_with_the_promises_that_it_was_started_with() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let desk = bed.desk();
    let promises = vec![Promise::Complete, Promise::Blocked];
    let started = desk.start(&LoopStart { promises: promises.clone(), ..start("t1") }).unwrap();
    assert_eq!(started.promises, promises);
    let id = started.id.to_string();
    let judged = desk.validate(&id, "Help.\n<promise>ESCALATE</promise>").unwrap();
    assert_eq!((judged.signal, judged.promises.len()), (LoopSignal::Continue, 0));
    let told = judged.feedback.join("\n");
    assert!(told.contains("ESCALATE does not end this loop"), "{told}");
    assert!(told.contains("COMPLETE, BLOCKED"), "{told}");
    // A restarted server knows the promises.
    drop(desk);
    let desk = bed.desk();
    assert_eq!(desk.next(&id).unwrap().promises, promises);
    assert_eq!(code(desk.complete(&id, Promise::Escalate)), "not_allowed");
    assert_eq!(bed.state("t1"), TaskState::Active);
    let judged = desk.validate(&id, "Stuck.\n<promise>BLOCKED</promise>").unwrap();
    assert_eq!(judged.signal, LoopSignal::Blocked);
    assert_eq!(bed.state("t1"), TaskState::Blocked);
}

#[test]
fn gates_that_never_pass_end_the_loop() {
    let bed = Bed::new(GATED);
    let (desk, id) = bed.iterating(StopPreset::Default);
    let mut signals = Vec::new();
    for round in 0..10 {
        bed.write("tried.txt", &round.to_string());
        let signal = desk.validate(&id, COMPLETE).unwrap().signal;
        signals.push(signal);
        if signal != LoopSignal::Continue {
            break;
        }
        desk.next(&id).unwrap();
    }
    assert_eq!(signals.len(), 6, "five retries: {signals:?}");
    assert_eq!(signals.last(), Some(&LoopSignal::Escalate));
    assert_eq!(bed.state("t1"), TaskState::Blocked);
    assert_eq!(code(desk.next(&id)), "over");
}

#[test]
fn limits_are_lowered_and_never_raised() {
    let bed = Bed::new("version: 1\nlimits: {max_iterations: 4, max_no_progress: 2}\n");
    bed.task("t1");
    bed.task("t2");
    let desk = bed.desk();
    let wish = |task: &str, count| LoopStart {
        max_iterations: Some(count),
        circuit_breaker: Some(count),
        ..start(task)
    };
    let low = desk.start(&LoopStart { circuit_breaker: None, ..wish("t1", 1) }).unwrap();
    assert_eq!((low.max_iterations, low.circuit_breaker), (1, 2));
    let high = desk.start(&wish("t2", 1_000)).unwrap();
    assert_eq!((high.max_iterations, high.circuit_breaker), (4, 2));
    let id = low.id.to_string();
    let judged = desk.validate(&id, "still at it").unwrap();
    assert_eq!(judged.signal, LoopSignal::Escalate);
    assert_eq!(judged.feedback, ["a limit was reached: iterations"]);
    assert_eq!(code(desk.next(&id)), "over");
    // Otherwise the task would get the same limits again.
    assert_eq!(bed.state("t1"), TaskState::Blocked);
}

#[test]
fn tasks_with_gates_are_not_completed_by_a_word() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    bed.task("t2");
    let desk = bed.desk();
    let to = |state| RequestedChange { state: Some(state), ..RequestedChange::default() };
    assert_eq!(code(desk.update("t1", &to(TaskState::Completed))), "not_proven");
    assert_eq!(code(desk.update("t1", &to(TaskState::Active))), "not_allowed");
    desk.start(&start("t1")).unwrap();
    assert_eq!(code(desk.update("t1", &to(TaskState::Completed))), "not_proven");
    let block = RequestedChange { blocked_reason: Some("no key".into()), ..to(TaskState::Blocked) };
    let task = desk.update("t1", &block).unwrap();
    assert_eq!(task.state, TaskState::Blocked);
    assert!(task.obstacle.unwrap().reason.contains("no key"));
    assert_eq!(code(desk.update("t1", &to(TaskState::Ready))), "not_allowed");
    assert_eq!(bed.state("t2"), TaskState::Ready);
    let free = Bed::new("version: 1\n");
    free.task("t1");
    // Without a gate the task cannot be proven: only a person completes it.
    assert_eq!(code(free.desk().update("t1", &to(TaskState::Completed))), "not_proven");
    assert_eq!(free.state("t1"), TaskState::Ready);
}

#[test]
fn notes_and_checkpoints_are_kept() {
    let bed = Bed::new("version: 1\n");
    bed.task("t1");
    let note = RequestedChange { notes: Some("half way".into()), ..RequestedChange::default() };
    bed.desk().update("t1", &note).unwrap();
    let detail = bed.desk().task("t1").unwrap();
    assert_eq!(detail.notes[0].text, "half way");
    assert_eq!(code(bed.desk().recall("t1", None)), "no_checkpoint");
    let at = |step| Checkpoint { step: Some(step), ..Checkpoint::default() };
    let first = bed.desk().checkpoint("t1", at(1)).unwrap();
    let second = bed.desk().checkpoint("t1", at(2)).unwrap();
    assert_eq!((first.sequence, second.sequence), (1, 2));
    assert_eq!(bed.desk().recall("t1", None).unwrap(), second);
    assert_eq!(bed.desk().recall("t1", Some(&first.id)).unwrap(), first);
    assert_eq!(code(bed.desk().task("t9")), "no_such_task");
}

#[test]
fn a_task_that_others_hold_is_left_alone() {
    let bed = Bed::new("version: 1\n");
    bed.task("t1");
    let (one, other) = (bed.desk(), bed.desk());
    one.start(&start("t1")).unwrap();
    assert_eq!(code(other.start(&start("t1"))), "not_ready");
    assert_eq!(code(other.register("t1", StopPreset::Promise, Map::new())), "claimed");
    let note = RequestedChange { notes: Some("mine".into()), ..RequestedChange::default() };
    assert_eq!(code(other.update("t1", &note)), "claimed");
    one.update("t1", &note).unwrap();
}

#[test]
fn native_hooks_send_back_until_it_is_proven() {
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
fn native_hooks_stop_blocking_before_the_limit_of_the_agent() {
    for (blocks_max, blocks) in [(3, 2), (6, 5), (20, 5)] {
        let bed = Bed::new(GATED);
        assert_eq!(blocks_until_pass(&bed, Some(blocks_max)).0, blocks, "{blocks_max}");
        assert!(matches!(bed.outcome(), Some(SessionOutcome::NeedsHuman { .. })));
    }
}

#[test]
fn native_hooks_end_at_our_limit() {
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
fn gates_that_are_taken_away_prove_nothing() {
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
fn the_current_task_is_told_at_the_start() {
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
fn gates_that_are_all_taken_away_prove_nothing() {
    let bed = Bed::new(GATED);
    bed.visit(HookMoment::Start);
    bed.write("hookloop.yaml", "version: 1\n");
    let HookReply::Pass { note } = bed.visit(HookMoment::Stop { message: "Done" }) else {
        panic!()
    };
    assert!(note.unwrap().contains("the hooks are not those"));
}

#[test]
fn a_loop_whose_gates_change_is_for_a_person_to_look_at() {
    let bed = Bed::new(GATED);
    bed.task("t1");
    let desk = bed.desk();
    let id = desk.start(&start("t1")).unwrap().id.to_string();
    bed.write("hookloop.yaml", "version: 1\n");
    let after = desk.reopened(bed.project());
    assert_eq!(after.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Escalate);
    assert_eq!(bed.state("t1"), TaskState::Blocked);
    assert_eq!(code(after.start(&start("t1"))), "not_ready");
    bed.task("t2");
    let done = RequestedChange { state: Some(TaskState::Completed), ..RequestedChange::default() };
    assert_eq!(code(after.update("t2", &done)), "not_proven", "there were gates");
}

#[test]
fn what_is_called_off_can_be_asked_for_again() {
    let bed = Bed::new(GATED);
    let (desk, id) = bed.iterating(StopPreset::Promise);
    let stop = StopSwitch::new().unwrap();
    stop.by_user();
    let _ = desk.for_call(stop).validate(&id, COMPLETE);
    assert_eq!(bed.state("t1"), TaskState::Active);
    bed.write("answer.txt", "42");
    assert_eq!(desk.validate(&id, COMPLETE).unwrap().signal, LoopSignal::Complete);
    desk.complete(&id, Promise::Complete).unwrap();
}

#[test]
fn what_is_left_to_say_is_said_with_the_end() {
    let bed = Bed::new(GATED);
    let (desk, id) = bed.iterating(StopPreset::Promise);
    bed.write("answer.txt", "42");
    desk.validate(&id, COMPLETE).unwrap();
    control::message(&bed.project(), Some(&id), "and mind the gap").unwrap();
    let done = desk.complete(&id, Promise::Complete).unwrap();
    assert!(done.prompt.unwrap().contains("and mind the gap"));
}

#[test]
fn rules_that_run_cost_an_iteration_each_time() {
    let bed =
        Bed::new("version: 1\nhooks:\n  validation:\n    - {name: answer, file: answer.txt}\n");
    let (desk, id) = bed.iterating(StopPreset::Validation);
    let numbers: Vec<u32> = (0..3).map(|_| desk.validate(&id, "").unwrap().number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}
