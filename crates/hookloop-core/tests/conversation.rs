//! Effects of a blocked gate: the conversation of the next turn, and the events that reset the
//! number of retries.

use hookloop_core::event::EventBody;
use hookloop_core::session::facts::HookPointCompleted;
use hookloop_core::session::state::MESSAGE;
use hookloop_core::session::{
    AtRetryLimit, ConversationPolicy, GatesEvaluated, IterationStarted, JointVerdict, PipedOutput,
    Session, SessionLimits, SessionPlan, SessionWork, StopDecision, StopEvaluated, StopWhen,
    TurnEnded, TurnKind, TurnResult, Usage,
};

fn session(policy: ConversationPolicy) -> Session {
    let mut session = Session::new(SessionPlan {
        name: "run".into(),
        work: SessionWork::Prompt("x".into()),
        fallback: None,
        model: None,
        permissions: None,
        conversation: policy.of_iterations(),
        keeps_feedback: policy == ConversationPolicy::Feedback,
        promises: Vec::new(),
        agent: "a".into(),
        stop_when: vec![StopWhen::Default],
        at_retry_limit: AtRetryLimit::NeedsHuman,
        limits: SessionLimits::default(),
        hooks: String::new(),
        scripts: None,
        fence: "f".into(),
        machine: "m".into(),
        delivers: false,
        worker: None,
        no_changes_ok: false,
        may_change: Vec::new(),
        wants_no_gates: false,
        trace_parent: None,
    });
    session.apply(&EventBody::HookPointCompleted(HookPointCompleted {
        point: "session_start".into(),
    }));
    session
}

fn start(session: &mut Session) {
    let (number, items) = (session.iteration + 1, session.pending.len() as u32);
    session.apply(&EventBody::IterationStarted(IterationStarted { number, attempt: 1, items }));
}

fn end(session: &mut Session, result: TurnResult, conversation: &str) {
    session.apply(&EventBody::TurnEnded(TurnEnded {
        turn: TurnKind::Work,
        result,
        agent: "a".into(),
        duration_ms: 1,
        active_ms: 1,
        usage: Usage::default(),
        message: String::new(),
        promises: vec![],
        files: None,
        tree: None,
        head: None,
        changed: vec![],
        near_misses: vec![],
        is_partial: false,
        is_unpriced: false,
        stderr: None,
        fault: None,
        refused: vec![],
        artifact: None,
        conversation: Some(conversation.into()),
    }));
}

fn decide(session: &mut Session, decision: StopDecision) {
    session.apply(&EventBody::HookPointCompleted(HookPointCompleted {
        point: "post_iteration".into(),
    }));
    let (reason, by) = ("r".to_owned(), "default".to_owned());
    session.apply(&EventBody::StopEvaluated(StopEvaluated {
        decision,
        reason,
        by,
        failing: None,
        contradicting: Vec::new(),
    }));
}

/// Records a blocking gate with feedback to the agent.
fn block(session: &mut Session) {
    session.apply(&EventBody::OutputPiped(PipedOutput {
        from: "tests".into(),
        point: "stop".into(),
        text: "3 tests fail".into(),
        ..PipedOutput::default()
    }));
    session.apply(&EventBody::GatesEvaluated(GatesEvaluated {
        verdict: JointVerdict::Block,
        gates: 1,
        tree: None,
        files: None,
        passed: vec![],
        skipped: vec![],
        failed: vec![],
        failing: vec!["tests".into()],
    }));
}

fn goes_on(session: &Session) -> bool {
    session.conversation(TurnKind::Work).is_some()
}

#[test]
fn gate_feedback_continues_the_conversation_unless_it_is_fresh() {
    let policies = [
        (ConversationPolicy::Fresh, false),
        (ConversationPolicy::Feedback, true),
        (ConversationPolicy::Continue, true),
    ];
    for (policy, expected) in policies {
        let mut session = session(policy);
        start(&mut session);
        end(&mut session, TurnResult::Finished, "c1");
        decide(&mut session, StopDecision::Complete);
        block(&mut session);
        start(&mut session);
        assert_eq!(goes_on(&session), expected, "{policy:?}");
    }
}

#[test]
fn an_iteration_without_gate_feedback_begins_a_new_conversation_by_default() {
    for (policy, expected) in
        [(ConversationPolicy::default(), false), (ConversationPolicy::Continue, true)]
    {
        let mut session = session(policy);
        start(&mut session);
        end(&mut session, TurnResult::Finished, "c1");
        decide(&mut session, StopDecision::Continue);
        start(&mut session);
        assert_eq!(goes_on(&session), expected, "{policy:?}");
    }
}

#[test]
fn feedback_of_a_failed_turn_is_sent_again_in_a_new_conversation() {
    let mut session = session(ConversationPolicy::Feedback);
    start(&mut session);
    end(&mut session, TurnResult::Finished, "c1");
    decide(&mut session, StopDecision::Complete);
    block(&mut session);
    start(&mut session);
    let error = "no conversation found".to_owned();
    end(&mut session, TurnResult::Failed { error }, "c1");
    session.apply(&EventBody::HookPointCompleted(HookPointCompleted { point: "on_error".into() }));
    start(&mut session);
    assert_eq!(session.bound.len(), 1, "the feedback is in the prompt again");
    assert!(!goes_on(&session));
}

#[test]
fn a_message_of_a_person_starts_the_count_of_gate_retries_again() {
    let mut session = session(ConversationPolicy::Feedback);
    start(&mut session);
    end(&mut session, TurnResult::Finished, "c1");
    decide(&mut session, StopDecision::Complete);
    block(&mut session);
    assert_eq!(session.retries, 1);
    session.apply(&EventBody::OutputPiped(PipedOutput {
        from: "ada".into(),
        point: MESSAGE.into(),
        text: "try the other way".into(),
        ..PipedOutput::default()
    }));
    assert_eq!(session.retries, 0);
}
