//! Problems that need a person, and the decisions about them.
//!
//! A decision names the problem by its key, and is stored only while that problem exists. So if two
//! people decide, only the first decision counts. Only a person decides:
//! [`hookloop_core::authority`] refuses every other actor.

pub mod decision_record;

use decision_record::{DecisionRecord, flag_of};
use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::authority::ControlledAction;
use hookloop_core::claim::Fence;
use hookloop_core::command::Command;
use hookloop_core::delivery::TaskReturned;
use hookloop_core::event::EventBody;
use hookloop_core::id::{NoticeId, SessionId, Subject, TaskId};
use hookloop_core::inbox::{Problem, ProblemDismissed, ProblemKey, ProblemKind, ProblemSubject};
use hookloop_core::refusal::Refusal;
use hookloop_core::remark::{TESTS_ALLOWED, TaskRemark};
use hookloop_core::session::facts::{AllowedFindings, DecisionMade};
use hookloop_core::session::{LimitDecision, SessionOutcome, stop};

use crate::batch::{Batch, EventOrigin};
use crate::command_outcome::CommandOutcome;
use crate::error::EngineError;
use crate::project::Project;
use crate::session::resume::{self, ReopenAnswer, ResumeChanges};
use crate::session::{StartError, control, lookup};

/// Problems that are searched for a key.
const LOOKED_AT_MAX: usize = 10_000;
/// Keys that an error about an ambiguous key lists.
const CANDIDATES: usize = 5;
/// Notes and failed checks that are shown with a problem.
const SHOWN_MAX: usize = 10;
/// Maximum length of an answer, as of a note.
pub(crate) const ANSWER_MAX_BYTES: usize = hookloop_core::remark::NOTE_MAX_BYTES;

#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("nothing that needs a human is called `{0}`")]
    NoSuchProblem(String),
    #[error("`{text}` could be {}", keys.join(", "))]
    Ambiguous { text: String, keys: Vec<String> },
    /// The problem cannot be decided like that. `instead` is a command that works.
    #[error("{why}")]
    Unfit { why: String, instead: String },
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("several tasks of session {session} need an answer: {}", keys.join(", "))]
    SeveralQuestions { session: SessionId, keys: Vec<String> },
    #[error("an answer has 1 to {ANSWER_MAX_BYTES} bytes, not {0}")]
    Length(usize),
}

/// The facts about a problem, and the commands that decide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemEvidence {
    pub title: String,
    pub details: Vec<String>,
    /// The session that reported the problem.
    pub session: Option<SessionId>,
    /// Commands that decide the problem.
    pub next: Vec<String>,
    /// The effect of each command in `next`, in the same order.
    pub effects: Vec<&'static str>,
    /// Whether changes of tests can be allowed by an approval.
    pub can_allow: bool,
    /// The facts as they were when the item was raised.
    pub record: DecisionRecord,
}

/// A command that decides an item, and its effect.
type ItemChoice = (String, &'static str);

const ANSWER_EFFECT: &str = "the task is ready again, and the next prompt has your answer";
const RETURN_EFFECT: &str = "the work goes back to an agent with your words";
const APPROVE_EFFECT: &str = "the submission is merged without another review; tests still run";
const MERGE_EFFECT: &str = "the merge is tried again";
const COMPLETE_EFFECT: &str = "the work counts as done without proof";
const DISMISS_EFFECT: &str = "the item is hidden, and nothing else changes";
const RESUME_EFFECT: &str = "the session continues";
const RESUME_ANSWER_EFFECT: &str = "the session continues, and its next prompt has your answer";
const RAISE_EFFECT: &str = "the session continues with a higher limit";
const RETRY_EFFECT: &str = "the gates may fail as often again, and the next prompt has your words";
const ACCEPT_EFFECT: &str = "the work is taken as it is, without proof";
const ALLOW_EFFECT: &str = "these changes of tests are allowed, and the gates judge the work again";
const ALLOW_FOR_TASK_EFFECT: &str =
    "these changes of tests are allowed, and the task is ready again with the work so far";
const ABORT_EFFECT: &str = "the session ends";

/// Lists the problems that need a person, the newest last.
pub fn list(project: &Project, limit: usize) -> Result<Vec<Problem>, EngineError> {
    project.read(|view| view.problems(limit))
}

/// Finds the problem that `text` names.
///
/// `text` is a key, a prefix of a key, or a prefix of the id of the task or session.
pub fn find(project: &Project, text: &str) -> Result<Problem, InboxError> {
    if let Ok(key) = text.parse::<ProblemKey>() {
        let known = project.read(|view| view.problem_of(&key.about))?;
        if let Some(problem) = known.filter(|problem| problem.key == key) {
            return Ok(problem);
        }
    }
    let id = |key: &str| key.split_once(':').map_or(key, |(_, id)| id).to_owned();
    let is_meant = |problem: &Problem| {
        let key = problem.key.to_string();
        key.starts_with(text) || id(&key).starts_with(text)
    };
    let mut found = list(project, LOOKED_AT_MAX)?;
    // An exact id takes precedence over ids that it is a prefix of.
    let is_exact = |problem: &Problem| {
        let about = problem.key.about.to_string();
        about == text || id(&about) == text
    };
    match found.iter().filter(|problem| is_exact(problem)).count() {
        1 => found.retain(is_exact),
        _ => found.retain(is_meant),
    }
    match found.len() {
        0 => Err(InboxError::NoSuchProblem(text.to_owned())),
        1 => Ok(found.remove(0)),
        _ => {
            let keys = found.iter().take(CANDIDATES).map(|problem| problem.key.to_string());
            Err(InboxError::Ambiguous { text: text.to_owned(), keys: keys.collect() })
        }
    }
}

/// Returns the problem if no person has decided or dismissed it.
pub fn standing(project: &Project, key: &ProblemKey) -> Result<Option<Problem>, EngineError> {
    let found = project.read(|view| view.problem_of(&key.about))?;
    Ok(found.filter(|problem| problem.key == *key && !problem.is_dismissed))
}

/// Returns the subject and the kind of a problem in one line.
pub fn title(project: &Project, problem: &Problem) -> Result<String, EngineError> {
    let words = problem.kind.words();
    project.read(|view| {
        Ok(match &problem.key.about {
            ProblemSubject::Task(id) => {
                let goal = view.task(id)?.map(|row| row.task.spec.goal).unwrap_or_default();
                format!("task {id} {words}: {goal}")
            }
            ProblemSubject::Session(id) => {
                let work = view.session(id)?.map(|row| row.work).unwrap_or_default();
                format!("session {id} {words}: {work}")
            }
            ProblemSubject::Budget => format!("the budget of all sessions {words}"),
        })
    })
}

/// Returns the facts when the problem was raised, and the commands that decide it.
pub fn evidence(project: &Project, problem: &Problem) -> Result<ItemEvidence, InboxError> {
    let key = &problem.key;
    let record = decision_record::read(project, problem)?;
    let mut details = Vec::new();
    let answer = format!("hookloop inbox answer {key} \"…\"");
    let dismiss = (format!("hookloop inbox dismiss {key}"), DISMISS_EFFECT);
    let (session, choices) = match &key.about {
        ProblemSubject::Task(id) => {
            let can_approve = task_details(project, id, &mut details)?;
            let is_held = problem.kind == ProblemKind::MergeBlocked;
            let effect = if is_held { RETURN_EFFECT } else { ANSWER_EFFECT };
            let mut choices = vec![(answer, effect)];
            if can_approve {
                choices.push((format!("hookloop inbox approve {key}"), APPROVE_EFFECT));
            } else if can_allow(problem, &record) {
                let approve = format!("hookloop inbox approve {key}");
                choices.insert(0, (approve, ALLOW_FOR_TASK_EFFECT));
            }
            if is_held {
                choices.push(("hookloop merge".to_owned(), MERGE_EFFECT));
            } else if record.difference.is_some() && !can_approve {
                let complete = format!("hookloop task unblock {id} && hookloop task complete {id}");
                choices.push((complete, COMPLETE_EFFECT));
            }
            choices.push(dismiss);
            (SessionId::of_actor(&problem.by), choices)
        }
        ProblemSubject::Session(id) => {
            (Some(id.clone()), session_choices(problem, id, &record, dismiss))
        }
        ProblemSubject::Budget => {
            details.push("a daily budget starts again at 00:00 UTC".to_owned());
            let usage = ("hookloop usage".to_owned(), "shows the usage and the budget");
            (SessionId::of_actor(&problem.by), vec![usage, dismiss])
        }
    };
    details.splice(0..0, record.lines());
    let (next, effects) = choices.into_iter().unzip();
    let title = title(project, problem)?;
    let can_allow = can_allow(problem, &record);
    Ok(ItemEvidence { title, details, session, next, effects, can_allow, record })
}

/// Returns the commands that decide about a session.
fn session_choices(
    problem: &Problem,
    id: &SessionId,
    record: &DecisionRecord,
    dismiss: ItemChoice,
) -> Vec<ItemChoice> {
    let key = &problem.key;
    let answer = format!("hookloop inbox answer {key} \"…\"");
    let resume = format!("hookloop resume {id}");
    let mut choices = match (problem.kind, record.outcome_limit.map(flag_of)) {
        (ProblemKind::SessionPaused, _) => {
            vec![(answer, RESUME_ANSWER_EFFECT), (resume, RESUME_EFFECT)]
        }
        (ProblemKind::SessionAsks, _) => vec![
            (answer, RETRY_EFFECT),
            (format!("hookloop inbox approve {key}"), ACCEPT_EFFECT),
            (format!("hookloop inbox abort {key}"), ABORT_EFFECT),
        ],
        (_, Some(Some(flag))) => vec![(format!("{resume} {flag}"), RAISE_EFFECT)],
        (_, Some(None)) => vec![(resume, RESUME_EFFECT)],
        _ => vec![(format!("{resume} --answer \"…\""), RESUME_ANSWER_EFFECT)],
    };
    if can_allow(problem, record) {
        choices.insert(0, (format!("hookloop inbox approve {key}"), ALLOW_EFFECT));
    }
    choices.push(dismiss);
    choices
}

/// Whether the problem has changes of tests that a person can allow.
///
/// The changes of a task's work are allowed at the task: it can be claimed by another session.
fn can_allow(problem: &Problem, record: &DecisionRecord) -> bool {
    let is_allowed_here = match problem.kind {
        ProblemKind::SessionEnded => record.worked_on.is_none(),
        ProblemKind::TaskBlocked => true,
        _ => false,
    };
    is_allowed_here && record.allowable.is_some()
}

/// Adds the facts about a task, and returns whether it has a submission to approve.
fn task_details(
    project: &Project,
    id: &TaskId,
    details: &mut Vec<String>,
) -> Result<bool, EngineError> {
    let (task, delivery, notes) =
        project.read(|view| Ok((view.task(id)?, view.delivery(id)?, view.notes(id)?)))?;
    let obstacle = task.and_then(|row| row.task.obstacle);
    let knowledge = obstacle.and_then(|obstacle| obstacle.required_knowledge);
    details.extend(knowledge.map(|text| format!("needs to know: {text}")));
    if let Some(submission) = &delivery.submission {
        details.push(format!("submitted: {} at {}", submission.branch, submission.head));
        details.extend(submission.url.clone());
    }
    for review in &delivery.reviews {
        let word = if review.passed { "approved" } else { "rejected" };
        let reason = review.reason.as_deref().map_or(String::new(), |why| format!(": {why}"));
        details.push(format!("{} {word}{reason}", review.gate));
    }
    details.extend(delivery.reason.as_ref().map(|reason| format!("it went back: {reason}")));
    let skipped = notes.len().saturating_sub(SHOWN_MAX);
    let said = notes.iter().skip(skipped);
    details.extend(said.map(|note| format!("{} noted: {}", note.by, note.what.text)));
    Ok(delivery.standing().is_some())
}

/// Fails if the text of an answer is empty or too long.
pub fn check_answer(text: &str) -> Result<(), InboxError> {
    if text.trim().is_empty() || text.len() > ANSWER_MAX_BYTES {
        return Err(InboxError::Length(text.len()));
    }
    Ok(())
}

/// Passes an answer to the next agent, unblocks the work, and returns the next command to type.
pub fn answer(
    project: &Project,
    key: &ProblemKey,
    text: &str,
) -> Result<DecisionResult, InboxError> {
    project.authorize(ControlledAction::AnswerQuestion)?;
    check_answer(text)?;
    let problem = of_key(project, key)?;
    match (&key.about, problem.kind) {
        (ProblemSubject::Task(id), ProblemKind::MergeBlocked) => {
            let delivery = project.read(|view| view.delivery(id))?;
            let head = delivery.submission.map(|submission| submission.head).unwrap_or_default();
            let (by, reason) = (project.actor().to_owned(), text.to_owned());
            let returned = TaskReturned { head, by, reason, is_by_person: true };
            let command = Command::ReturnTask { id: id.clone(), returned };
            let done = decide(project, key, &[command])?;
            Ok(DecisionResult { done, next: None })
        }
        (ProblemSubject::Task(id), _) => {
            let question = stop::question_in(&problem.reason).to_owned();
            let text = text.to_owned();
            let remark = if question.trim().is_empty() {
                TaskRemark::Note(text)
            } else {
                TaskRemark::Answer { question, text }
            };
            let (id, fence) = (id.clone(), Fence::Override);
            let note = Command::RemarkTask { id: id.clone(), remark, fence };
            let done = decide(project, key, &[note, Command::UnblockTask { id }])?;
            let next = next_for_task(project, &problem)?;
            Ok(DecisionResult { done, next })
        }
        (ProblemSubject::Session(id), ProblemKind::SessionPaused) => {
            tell_paused(project, key, id, text)?;
            let next = Some(format!("hookloop resume {id}"));
            Ok(DecisionResult { done: CommandOutcome::default(), next })
        }
        (ProblemSubject::Session(_), ProblemKind::SessionAsks) => {
            store_answer(project, key, (LimitDecision::Continue, Some(text)))
        }
        (ProblemSubject::Session(id), _) => {
            let question = stop::question_in(&problem.reason);
            let answer = ReopenAnswer { question: Some(question), text };
            resume::reopen(project, id, &ResumeChanges::default(), Some(&answer))?;
            let next = Some(format!("hookloop resume {id}"));
            Ok(DecisionResult { done: CommandOutcome::default(), next })
        }
        (ProblemSubject::Budget, _) => Err(InboxError::Unfit {
            why: "an exhausted budget takes no answer: wait for the next day (UTC) or raise `limits.budget`"
                .to_owned(),
            instead: "hookloop usage".to_owned(),
        }),
    }
}

/// Returns the command that continues the work after a blocked task was answered.
///
/// That is `resume` of the session that blocked the task, if it is over. A running session and a
/// worker claim the task without a command.
fn next_for_task(project: &Project, problem: &Problem) -> Result<Option<String>, InboxError> {
    let usual = || Some("hookloop run --tasks --agent …".to_owned());
    let Some(id) = SessionId::of_actor(&problem.by) else { return Ok(usual()) };
    let Ok(session) = lookup::session(project, &id) else { return Ok(usual()) };
    Ok(match () {
        () if !session.is_over() => None,
        () if session.plan.worker.is_some() => Some("hookloop worker --until-idle".to_owned()),
        () if session.plan.work.is_of_tasks() => Some(match session.outcome {
            Some(SessionOutcome::Limit { limit }) => match flag_of(limit) {
                Some(flag) => format!("hookloop resume {id} {flag}"),
                None => format!("hookloop resume {id}"),
            },
            _ => format!("hookloop resume {id}"),
        }),
        () => return Ok(usual()),
    })
}

/// Returns the blocked task of a session's question, or none if the session itself asked.
pub fn question_of_session(
    project: &Project,
    session: &SessionId,
) -> Result<Option<ProblemKey>, InboxError> {
    let is_asked = |problem: &Problem| {
        problem.kind == ProblemKind::TaskBlocked
            && SessionId::of_actor(&problem.by).as_ref() == Some(session)
    };
    let found = list(project, LOOKED_AT_MAX)?;
    let mut keys: Vec<ProblemKey> =
        found.into_iter().filter(is_asked).map(|problem| problem.key).collect();
    match keys.len() {
        0 => Ok(None),
        1 => Ok(keys.pop()),
        _ => {
            let keys = keys.iter().take(CANDIDATES).map(ToString::to_string).collect();
            Err(InboxError::SeveralQuestions { session: session.clone(), keys })
        }
    }
}

/// Approves the submission of a task: reviewers are not asked again, but tests run.
///
/// If a session asked about failing gates, its work is accepted without proof. If a session ended because tests
/// changed, these changes are allowed, and the gates judge its work again.
pub fn approve(project: &Project, key: &ProblemKey) -> Result<DecisionResult, InboxError> {
    project.authorize(ControlledAction::ApproveWork)?;
    let problem = of_key(project, key)?;
    if problem.kind == ProblemKind::SessionAsks {
        return store_answer(project, key, (LimitDecision::Accept, None));
    }
    let record = decision_record::read(project, &problem)?;
    if can_allow(&problem, &record) {
        return allow_tests(project, &problem, record);
    }
    let answer = || match key.about {
        ProblemSubject::Session(_) | ProblemSubject::Budget => {
            format!("hookloop inbox dismiss {key}")
        }
        ProblemSubject::Task(_) => format!("hookloop inbox answer {key} \"…\""),
    };
    let unfit = |why: &str| InboxError::Unfit { why: why.to_owned(), instead: answer() };
    let ProblemSubject::Task(id) = &key.about else {
        return Err(unfit("there is nothing to approve: only what a task has submitted is"));
    };
    let delivery = project.read(|view| view.delivery(id))?;
    let Some(submission) = delivery.standing() else {
        return Err(unfit("there is nothing to approve: nothing is submitted as it is now"));
    };
    let command = Command::ApproveTask { id: id.clone(), head: submission.head.clone() };
    let done = decide(project, key, &[command])?;
    Ok(DecisionResult { done, next: Some("hookloop merge".to_owned()) })
}

/// Allows the changes of tests in the work of a session or a task, which then continues.
fn allow_tests(
    project: &Project,
    problem: &Problem,
    record: DecisionRecord,
) -> Result<DecisionResult, InboxError> {
    let digests = record.allowable.unwrap_or_default();
    let id = match &problem.key.about {
        ProblemSubject::Task(id) => id.clone(),
        ProblemSubject::Session(id) => {
            let changes = ResumeChanges { allowed_findings: digests, ..ResumeChanges::default() };
            resume::reopen(project, id, &changes, None)?;
            let next = Some(format!("hookloop resume {id}"));
            return Ok(DecisionResult { done: CommandOutcome::default(), next });
        }
        ProblemSubject::Budget => return Err(InboxError::NoSuchProblem(problem.key.to_string())),
    };
    let fence = Fence::Override;
    let remark = |remark| Command::RemarkTask { id: id.clone(), remark, fence };
    let commands = [
        remark(TaskRemark::AllowTests(AllowedFindings { by: project.actor().to_owned(), digests })),
        remark(TaskRemark::Answer {
            question: stop::question_in(&problem.reason).to_owned(),
            text: TESTS_ALLOWED.to_owned(),
        }),
        Command::UnblockTask { id: id.clone() },
    ];
    let done = decide(project, &problem.key, &commands)?;
    Ok(DecisionResult { done, next: next_for_task(project, problem)? })
}

/// Passes a decision to a session that is waiting for one.
pub fn settle(
    project: &Project,
    key: &ProblemKey,
    answer: LimitDecision,
) -> Result<DecisionResult, InboxError> {
    project.authorize(ControlledAction::AnswerQuestion)?;
    match of_key(project, key)?.kind {
        ProblemKind::SessionAsks => store_answer(project, key, (answer, None)),
        _ => Err(InboxError::Unfit {
            why: "only a session that needs a decision takes this answer".to_owned(),
            instead: format!("hookloop inbox show {key}"),
        }),
    }
}

/// Dismisses a problem: nothing else changes, and no further notification is sent.
pub fn dismiss(project: &Project, key: &ProblemKey) -> Result<(), InboxError> {
    project.authorize(ControlledAction::DismissItem)?;
    of_key(project, key)?;
    let id = fresh_id();
    project.store.transact(|unit| -> Result<_, EngineError> {
        let mut work = Batch::new(unit, &project.rules, now())?;
        check_standing(&work, key)?;
        stage_dismissal(&mut work, EventOrigin::command(id, project.actor()), key)
    })?;
    Ok(())
}

/// The result of a decision.
#[derive(Clone, Debug)]
pub struct DecisionResult {
    pub done: CommandOutcome,
    /// The next command to type.
    pub next: Option<String>,
}

fn of_key(project: &Project, key: &ProblemKey) -> Result<Problem, InboxError> {
    let found = project.read(|view| view.problem_of(&key.about))?;
    let gone = || EngineError::from(Refusal::NoSuchProblem(key.to_string()));
    Ok(found.filter(|problem| problem.key == *key).ok_or_else(gone)?)
}

fn check_standing(work: &Batch<'_, '_, '_>, key: &ProblemKey) -> Result<(), EngineError> {
    let found = work.unit.view()?.problem_of(&key.about)?;
    match found.is_some_and(|problem| problem.key == *key) {
        true => Ok(()),
        false => Err(Refusal::NoSuchProblem(key.to_string()).into()),
    }
}

/// Performs commands about one task, all or none, if the problem still exists.
fn decide(
    project: &Project,
    key: &ProblemKey,
    commands: &[Command],
) -> Result<CommandOutcome, EngineError> {
    let origin = EventOrigin::command(fresh_id(), project.actor());
    project.store.transact(|unit| -> Result<_, EngineError> {
        let mut work = Batch::new(unit, &project.rules, now())?;
        check_standing(&work, key)?;
        for (i, command) in commands.iter().enumerate() {
            work.perform(command, &origin.part(i))??;
        }
        work.react()?;
        let last = commands.last().map(|command| work.summary(command)).transpose()?;
        Ok(last.map(|(done, _)| done).unwrap_or_default())
    })
}

/// Stores the answer to a waiting session, with a text for its next prompt.
fn store_answer(
    project: &Project,
    key: &ProblemKey,
    (answer, text): (LimitDecision, Option<&str>),
) -> Result<DecisionResult, InboxError> {
    let by = project.actor().to_owned();
    let answered = EventBody::DecisionMade(DecisionMade { answer, by });
    let said = text.map(|text| control::said(project, text));
    let origin = EventOrigin::command(fresh_id(), project.actor());
    project.store.transact(|unit| -> Result<_, EngineError> {
        let mut work = Batch::new(unit, &project.rules, now())?;
        check_standing(&work, key)?;
        for (place, body) in said.iter().chain([&answered]).enumerate() {
            work.stage_quietly(origin.part(place), key.about.subject(), body.clone())?;
        }
        Ok(())
    })?;
    Ok(DecisionResult { done: CommandOutcome::default(), next: None })
}

/// Stores a message for the next prompt of a paused session, and dismisses the problem.
///
/// A person resumes the session.
fn tell_paused(
    project: &Project,
    key: &ProblemKey,
    session: &SessionId,
    text: &str,
) -> Result<(), EngineError> {
    let said = control::said(project, text);
    let origin = EventOrigin::command(fresh_id(), project.actor());
    project.store.transact(|unit| -> Result<_, EngineError> {
        let mut work = Batch::new(unit, &project.rules, now())?;
        check_standing(&work, key)?;
        let subject = Subject::Session(session.clone());
        work.stage_quietly(origin.clone(), subject, said.clone())?;
        stage_dismissal(&mut work, origin.part(1), key)
    })
}

/// Stages the dismissal on its own subject.
///
/// A session with the problem may be running, and need not see this event.
fn stage_dismissal(
    work: &mut Batch<'_, '_, '_>,
    origin: EventOrigin,
    key: &ProblemKey,
) -> Result<(), EngineError> {
    let problem = key.to_string();
    let subject = Subject::Notice(NoticeId::of(&["dismissed", &problem]));
    work.stage_quietly(origin, subject, EventBody::ProblemDismissed(ProblemDismissed { problem }))?;
    Ok(())
}
