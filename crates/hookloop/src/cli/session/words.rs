//! The events of a session in the words of someone who watches.

use hookloop_core::delivery::Submission;
use hookloop_core::event::{EventBody, HookRan, ReactionFailed};
use hookloop_core::excerpt::first_names;
use hookloop_core::hook_status::HookStatus;
use hookloop_core::inbox::one_line;
use hookloop_core::options::Length;
use hookloop_core::promise::Promise;
use hookloop_core::session::SessionState;
use hookloop_core::session::facts::{GatesJudged, TaskExit};
pub(crate) use hookloop_core::session::plan::counted;
use hookloop_core::session::plan::{Dollars, GUEST};
use hookloop_core::session::{
    JointVerdict, LimitDecision, Session, SessionLimit, SessionLimits, SessionOutcome, SessionPlan,
    SessionReopened, SessionWork, StopDecided, StopDecision, StopWhen, SubmitVerdict, TurnEnded,
    TurnKind, TurnResult, stop,
};
use hookloop_core::time::Timestamp;
use hookloop_engine::project::Project;
use hookloop_engine::session::open;
use hookloop_engine::store::SessionRow;

use crate::output::{plain, plain_output};

/// Characters of a tree's or a commit's name that are shown.
const HASH_SHOWN: usize = 10;
/// Characters of an agent's last words that are shown.
const SAID_SHOWN: usize = 100;
/// Characters of a hook's message to the user that are shown.
const MESSAGE_SHOWN: usize = 200;
/// The next step after a session that no gate could prove.
const ADD_GATE: &str = "add a `stop` hook to hookloop.yaml, such as your tests";
/// Checks and files that a line names.
const NAMES_SHOWN: usize = 4;

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Something new begins.
    Heading,
    Good,
    Bad,
    Plain,
}

/// An event as a line; none for what only keeps the books. Nothing in it acts on a terminal.
pub(crate) fn line(body: &EventBody, limits: &SessionLimits) -> Option<(Weight, String)> {
    let (weight, text) = words(body, limits)?;
    Some((weight, plain(&text).into_owned()))
}

/// The lines below an event's own: the last output of a hook that failed, or that blocks.
pub(crate) fn details(body: &EventBody) -> Vec<String> {
    let tail = match body {
        EventBody::HookRan(ran) => &ran.output_tail,
        EventBody::ReactionFailed(failed) => &failed.output_tail,
        _ => return Vec::new(),
    };
    tail.iter().map(|line| format!("  | {}", plain_output(line))).collect()
}

fn words(body: &EventBody, limits: &SessionLimits) -> Option<(Weight, String)> {
    let text = match body {
        EventBody::IterationStarted(started) => {
            let again = match started.attempt {
                1 => String::new(),
                attempt => format!(", attempt {attempt}"),
            };
            let (number, most) = (started.number, limits.iterations);
            return Some((Weight::Heading, format!("iteration {number} of {most}{again}")));
        }
        EventBody::TurnStarted(started) => {
            let what = match started.turn {
                TurnKind::Recovery => "recovery after the error",
                _ => "final delivery of what was not said yet",
            };
            return Some((Weight::Heading, what.to_owned()));
        }
        EventBody::HookRan(ran) => {
            let reason = ran.reason.as_deref().and_then(|reason| reason.lines().next());
            let reason = reason.map_or_else(String::new, |reason| format!("  {}", plain(reason)));
            let message = ran.message.as_deref().map_or_else(String::new, |message| {
                format!("  ({})", plain(&one_line(message, MESSAGE_SHOWN)))
            });
            let took = duration(ran.duration_ms);
            let HookRan { point, hook_name, status, .. } = ran;
            let text = format!("{point:<14} {hook_name:<24} {status} {took}{reason}{message}");
            let weight = match ran.status.known() {
                Some(HookStatus::Passed | HookStatus::Skipped) => Weight::Plain,
                _ => Weight::Bad,
            };
            return Some((weight, text));
        }
        EventBody::ReactionFailed(failed) => {
            let ReactionFailed { point, hook_name, error, .. } = failed;
            let what = match &failed.action_type {
                Some(action) => format!("could not {action}"),
                None => "failed".to_owned(),
            };
            let error = one_line(error, MESSAGE_SHOWN);
            let text = format!("{point:<14} {hook_name:<24} {what}  {error}");
            return Some((Weight::Bad, text));
        }
        EventBody::TurnClaimed(claimed) => match (claimed.claim, &claimed.reason) {
            (Promise::Complete, _) => "says by a tool that it is done".to_owned(),
            (_, None) => "says by a tool that it can't go on".to_owned(),
            (_, Some(why)) => format!("says by a tool that it can't go on: {}", plain(why)),
        },
        EventBody::TurnEnded(ended) => return Some(turn(ended)),
        EventBody::StopDecided(decided) if !decided.contradicting.is_empty() => {
            return Some((Weight::Bad, contradicted(decided)));
        }
        EventBody::StopDecided(decided) => match decided.decision {
            StopDecision::Complete => format!("claims to be done: {}", decided.reason),
            StopDecision::Continue => format!("goes on: {}", decided.reason),
            StopDecision::Escalate => {
                return Some((Weight::Bad, format!("needs a human: {}", decided.reason)));
            }
        },
        EventBody::GatesJudged(judged) => match &judged.verdict {
            JointVerdict::Pass if judged.gates == 0 => "no gates to pass".to_owned(),
            JointVerdict::Pass => {
                let tree = judged
                    .tree
                    .as_deref()
                    .map_or_else(String::new, |tree| format!(" on tree {}", short_hash(tree)));
                let gates = gates_line(judged);
                let weight = if judged.is_proof() { Weight::Good } else { Weight::Bad };
                return Some((weight, format!("{gates}{tree}")));
            }
            JointVerdict::Block => {
                return Some((Weight::Bad, sent_back(&judged.failing)));
            }
            JointVerdict::Escalate { reason } => {
                return Some((Weight::Bad, format!("a gate asks for a human: {reason}")));
            }
        },
        EventBody::EmptyDifferenceFound(found) => {
            let what = if found.was_asked { "a human is needed" } else { "the agent is asked why" };
            return Some((Weight::Bad, format!("no file changed: {what}")));
        }
        EventBody::UnclaimedWorkChecked(checked) => {
            return Some((Weight::Bad, format!("no progress: {checked}")));
        }
        EventBody::SubmitJudged(judged) => {
            let hook = judged.hook.as_deref().unwrap_or("the submission");
            match &judged.verdict {
                SubmitVerdict::Pass { submission: None } => "there is nothing to submit".to_owned(),
                SubmitVerdict::Pass { submission: Some(submission) } => {
                    let Submission { branch, url, .. } = submission;
                    let place = url.as_ref().unwrap_or(branch);
                    return Some((Weight::Good, format!("may be submitted: {place}")));
                }
                SubmitVerdict::Block => {
                    let why = match &judged.obstacle {
                        Some(obstacle) => obstacle.clone(),
                        None => format!("{hook} failed"),
                    };
                    return Some((Weight::Bad, format!("not submitted: {why}")));
                }
                SubmitVerdict::Regate => {
                    format!("{hook} changed files: the gates are asked again")
                }
                SubmitVerdict::Retry { reason } | SubmitVerdict::Escalate { reason } => {
                    return Some((Weight::Bad, format!("not submitted: {reason}")));
                }
            }
        }
        EventBody::RetryLimitAnswered(answered) => {
            let what = match answered.answer {
                LimitDecision::Continue => "as often again",
                LimitDecision::Accept => "the work is accepted as it is",
                LimitDecision::Abort => "a human is needed",
            };
            let text = format!(
                "gates said no after {}: {what} ({})",
                counted(limits.hook_retries, "retry", "retries"),
                answered.by
            );
            return Some((Weight::Bad, text));
        }
        EventBody::TaskTaken(taken) => {
            return Some((Weight::Heading, format!("task {}", taken.task)));
        }
        EventBody::TaskLeft(left) => {
            let reason = left.reason.as_deref().map_or_else(String::new, |why| format!(": {why}"));
            let (weight, how) = match left.how {
                TaskExit::Completed => (Weight::Good, "completed"),
                TaskExit::Submitted => (Weight::Good, "submitted"),
                TaskExit::Returned => (Weight::Bad, "goes back"),
                TaskExit::Blocked => (Weight::Bad, "needs a human"),
                TaskExit::Released => (Weight::Plain, "given back"),
                TaskExit::Lost => (Weight::Bad, "is not ours any more"),
            };
            return Some((weight, format!("task {} {how}{reason}", left.task)));
        }
        EventBody::CheckpointMade(made) => format!("checkpoint by {}: {}", made.by, made.data),
        EventBody::TrustDrifted(drift) => {
            let text =
                format!("changed since the session began, and not used: {}", drift.what.join(", "));
            return Some((Weight::Bad, text));
        }
        EventBody::WorktreeRecreated(recreated) => {
            let lost = match &recreated.saved {
                Some(name) => format!("its files are in {name}"),
                None => format!("work since commit {} is lost", short_hash(&recreated.commit)),
            };
            let text = format!(
                "the worktree of task {} was gone or damaged, and was made anew; {lost} ({})",
                recreated.task, recreated.reason
            );
            return Some((Weight::Bad, text));
        }
        EventBody::PurseExhausted(shortage) => {
            return Some((
                Weight::Bad,
                format!("the purse does not have another turn: {shortage}"),
            ));
        }
        EventBody::PauseRequested(_) => "a pause is asked for".to_owned(),
        EventBody::StopRequested(_) => "a person asked for a stop".to_owned(),
        EventBody::SessionReopened(reopened) => format!("reopened: {}", reopened_words(reopened)),
        EventBody::SessionResumed(resumed) => format!("resumed, run {}", resumed.run),
        EventBody::OutputPiped(piped) if piped.point == "message" => {
            format!(
                "message from {}: {}",
                piped.from,
                plain(piped.text.lines().next().unwrap_or_default())
            )
        }
        _ => return None,
    };
    Some((Weight::Plain, text))
}

/// The limits that a reopened session has from now on.
pub(crate) fn reopened_words(reopened: &SessionReopened) -> String {
    match &reopened.limits {
        Some(limits) => format!("its limits are now {limits}"),
        None => "its limits stay as they are".to_owned(),
    }
}

/// A decision about a turn whose promises contradict each other.
fn contradicted(decided: &StopDecided) -> String {
    let both = stop::contradiction(&decided.contradicting).unwrap_or_default();
    let (what, reason) = match decided.decision {
        StopDecision::Complete => ("claims to be done", &decided.reason),
        StopDecision::Continue => ("goes on", &decided.reason),
        StopDecision::Escalate => ("needs a human", &decided.reason),
    };
    match reason.contains(&both) {
        true => format!("warning: {what}: {reason}"),
        false => format!("warning: {both}; {what}: {reason}"),
    }
}

fn turn(ended: &TurnEnded) -> (Weight, String) {
    let took = duration(ended.duration_ms);
    match &ended.result {
        TurnResult::Finished => {
            let changed = changed_files(ended);
            let changed = changed.map_or_else(String::new, |changed| format!(", {changed}"));
            let usage = match ended.usage.is_none() {
                true => String::new(),
                false => {
                    format!(", {} tokens, {}", ended.usage.tokens(), turn_cost(ended))
                }
            };
            let refused = match ended.refused.as_slice() {
                [] => String::new(),
                refused => format!(", was refused {}", some(refused)),
            };
            let said = last_words(&ended.message);
            let said = said.map_or_else(String::new, |said| format!("; says: {said}"));
            (Weight::Plain, format!("agent took {took}{changed}{usage}{refused}{said}"))
        }
        TurnResult::Failed { .. } => {
            let why = ended.failure_line().unwrap_or_default();
            (Weight::Bad, format!("agent failed after {took}: {why}"))
        }
        TurnResult::RateLimited { until_ms, .. } => {
            let why = ended.failure_line().unwrap_or_default();
            (Weight::Bad, format!("rate limit, {}: {why}", waits_until(*until_ms)))
        }
        TurnResult::Cancelled => (Weight::Bad, format!("agent stopped after {took}")),
    }
}

/// The files that a turn changed; none if that is not known.
pub(crate) fn changed_files(ended: &TurnEnded) -> Option<String> {
    match ended.changed.len() {
        // A guest's turn may begin before hookloop looks at the files.
        0 if ended.agent.starts_with(GUEST) => None,
        0 => Some("changed no file".to_owned()),
        count => {
            let files = counted(u32::try_from(count).unwrap_or(u32::MAX), "file", "files");
            Some(format!("changed {files}: {}", some(&ended.changed)))
        }
    }
}

/// What a turn cost, in words.
pub(crate) fn turn_cost(ended: &TurnEnded) -> String {
    match ended.cost().known_micros() {
        Some(micros) => Dollars(micros).to_string(),
        None => "cost unknown".to_owned(),
    }
}

/// How long a session waits that met a rate limit.
fn waits_until(until_ms: Option<u64>) -> String {
    let until = until_ms.and_then(|ms| i64::try_from(ms).ok());
    match until {
        Some(ms) => format!("the next turn begins after {}", Timestamp(ms)),
        None => "the provider does not say until when; the next turn begins in a minute or more"
            .to_owned(),
    }
}

/// What fails, with the gate named once if it is one.
fn sent_back(failing: &[String]) -> String {
    let gate = failing.first().and_then(|first| first.split_once(": ")).map(|(gate, _)| gate);
    let of_gate = |check: &String| {
        let check = check.split_once(": ").filter(|(of, _)| Some(*of) == gate);
        check.map(|(_, check)| check.to_owned())
    };
    match (failing, failing.iter().map(of_gate).collect::<Option<Vec<_>>>(), gate) {
        ([one], _, None) => format!("sent back: gate {} failed", plain(one)),
        (_, Some(checks), Some(gate)) => {
            let verb = if checks.len() == 1 { "fails" } else { "fail" };
            format!("sent back by {}: {} {verb}", plain(gate), some(&checks))
        }
        (many, ..) => format!("sent back: {} checks fail: {}", many.len(), some(many)),
    }
}

/// The last thing that an agent said to people, in a line.
fn last_words(message: &str) -> Option<String> {
    let is_said = |line: &&str| !line.trim().is_empty() && !line.contains("<promise>");
    let line = message.lines().rev().find(is_said)?;
    Some(one_line(line, SAID_SHOWN))
}

/// What a session takes for the end of its work, in words.
pub(crate) fn stop_when(plan: &SessionPlan) -> String {
    let way = |way: &StopWhen| match way {
        StopWhen::Default | StopWhen::Promise => "it says so and the gates pass".to_owned(),
        StopWhen::Validation => "the gates pass, whatever it says".to_owned(),
        StopWhen::Turn => "a turn ends and the gates pass".to_owned(),
        StopWhen::Tasks => "no task is open and the gates pass".to_owned(),
        StopWhen::Hook(name) => format!("{} says so and the gates pass", plain(name)),
    };
    plan.stop_when.iter().map(way).collect::<Vec<_>>().join(", ")
}

/// The start of a tree's or a commit's name, or all of what is none.
pub(crate) fn short_hash(hash: &str) -> &str {
    hash.get(..HASH_SHOWN).unwrap_or(hash)
}

pub(crate) fn some(names: &[String]) -> String {
    let names: Vec<_> = names.iter().map(|name| plain(name)).collect();
    first_names(&names, NAMES_SHOWN)
}

/// How the gates of a verdict that does not block ended, each kind apart.
fn gates_line(judged: &GatesJudged) -> String {
    let others = judged.skipped.len() + judged.failed.len();
    match (judged.passed.len(), others) {
        (1, 0) => "the gate passes".to_owned(),
        (count, 0) if count > 0 => format!("all {count} gates pass"),
        _ => {
            let named = [&judged.skipped, &judged.failed];
            let named: Vec<String> = named.into_iter().flatten().cloned().collect();
            let named =
                if named.is_empty() { String::new() } else { format!(" ({})", some(&named)) };
            format!("gates: {judged}{named}")
        }
    }
}

/// A length of time for people.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => Length { ms: ms / 1_000 * 1_000 }.to_string(),
    }
}

/// How long ago something was, or how far ahead it is.
pub(crate) fn ago(ms: i64) -> String {
    match rough(ms.unsigned_abs()) {
        Some(length) if ms > 0 => format!("{length} ago"),
        Some(length) => format!("in {length}"),
        None => "now".to_owned(),
    }
}

/// A length of time as nobody would say it who has to be exact.
fn rough(ms: u64) -> Option<String> {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    Some(match ms / 1_000 {
        0..5 => return None,
        seconds @ 5..MINUTE => format!("{seconds} s"),
        seconds @ MINUTE..HOUR => format!("{} min", seconds / MINUTE),
        seconds @ HOUR..DAY => format!("{} h", seconds / HOUR),
        seconds => format!("{} d", seconds / DAY),
    })
}

/// What a session came to, in a line, and what to type next.
pub(crate) fn conclusion(id: &str, session: &Session) -> (Weight, String, Option<String>) {
    let iterations = counted(session.iteration, "iteration", "iterations");
    let count = format!("{iterations}, {}", duration(session.active_ms));
    let resume = Some(format!("hookloop resume {id}"));
    let why = Some(format!("hookloop why {id}"));
    let log = Some(format!("hookloop sessions show {id}"));
    match &session.outcome {
        Some(SessionOutcome::Complete { unproven: true }) => {
            (Weight::Bad, format!("accepted without proof after {count}"), why)
        }
        Some(SessionOutcome::Complete { .. }) if session.had_nothing_to_do() => {
            (Weight::Plain, "complete: there was nothing to do".to_owned(), None)
        }
        Some(SessionOutcome::Complete { .. }) if !session.is_proven() => {
            let text = format!("complete after {count}, not proven: {}", why_unproven(session));
            if session.plan.wants_no_gates {
                return (Weight::Plain, text, None);
            }
            if session.has_gates() {
                return (Weight::Bad, text, why);
            }
            (Weight::Bad, text, Some(ADD_GATE.to_owned()))
        }
        Some(SessionOutcome::Complete { .. }) => {
            let next = (!session.tasks_submitted.is_empty()).then(|| "hookloop merge".to_owned());
            (Weight::Good, format!("complete after {count}"), next)
        }
        Some(SessionOutcome::NeedsHuman { reason }) => {
            (Weight::Bad, format!("needs a human after {count}: {}", plain(reason)), why)
        }
        Some(SessionOutcome::Limit { limit: SessionLimit::Purse }) => {
            let why = session.shortage.map_or_else(String::new, |shortage| format!(": {shortage}"));
            let text = format!("stopped at the purse of all sessions after {count}{why}");
            (Weight::Bad, text, Some("hookloop usage".to_owned()))
        }
        Some(SessionOutcome::Limit { limit: SessionLimit::Errors }) => {
            let last = session.last.as_ref().and_then(TurnEnded::failure_line);
            let last = last.map_or_else(String::new, |why| format!("; last: {}", plain(&why)));
            (Weight::Bad, format!("stopped at its limit of errors after {count}{last}"), why)
        }
        Some(SessionOutcome::Limit { limit: SessionLimit::Cost }) if is_unpriced_limit(session) => {
            let turns = counted(session.unpriced_turns, "turn", "turns");
            let text = format!(
                "stopped at its limit of cost after {count}: the cost of {turns} is unknown"
            );
            (Weight::Bad, text, why)
        }
        Some(SessionOutcome::Limit { limit }) => {
            (Weight::Bad, format!("stopped at its limit of {} after {count}", limit.name()), why)
        }
        Some(SessionOutcome::Cancelled) if session.plan.worker.is_none() => {
            (Weight::Bad, format!("cancelled after {count}"), resume)
        }
        Some(SessionOutcome::Cancelled) => (Weight::Bad, format!("cancelled after {count}"), log),
        Some(SessionOutcome::Interrupted) => {
            (Weight::Bad, format!("interrupted after {count}"), log)
        }
        None => (Weight::Plain, format!("paused after {count}"), resume),
    }
}

/// Describes the outputs and messages that no prompt had when the session ended; none if no later turn needs them.
///
/// A session that can be resumed keeps them. A session that is complete needs them no more, unless its final turn failed.
pub(crate) fn outputs_left(session: &Session) -> Option<String> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    if session.lost_outputs > 0 {
        let lost = counted(number(session.lost_outputs), "output of a hook", "outputs of hooks");
        return Some(format!("{lost} did not reach the agent: its final turn failed"));
    }
    let can_resume = session.plan.worker.is_none()
        && !session.plan.has_guest()
        && !matches!(session.outcome, Some(SessionOutcome::Complete { .. }));
    (can_resume && !session.pending.is_empty()).then(|| {
        let (one, many) = ("output or message waits", "outputs and messages wait");
        format!("{} for the next prompt", counted(number(session.pending.len()), one, many))
    })
}

/// Whether turns of unknown cost ended a session at its limit of cost.
pub(crate) fn is_unpriced_limit(session: &Session) -> bool {
    let limits = &session.plan.limits;
    session.usage.cost_micros < limits.cost_micros
        && session.unpriced_turns >= limits.unpriced_turns
}

/// Why a complete session is not proven.
pub(crate) fn why_unproven(session: &Session) -> String {
    if !session.tasks_unproven.is_empty() {
        let names: Vec<String> = session.tasks_unproven.iter().map(ToString::to_string).collect();
        format!("no gate passed for {}", some(&names))
    } else {
        match session.judged.as_ref().filter(|judged| judged.gates > 0) {
            None => "no gate ran".to_owned(),
            Some(judged) if judged.is_proof() => "files changed after the gates passed".to_owned(),
            Some(judged) => format!("no gate passed{}", results_of_gates(judged)),
        }
    }
}

/// The gates that were skipped or failed without blocking, by name.
fn results_of_gates(judged: &GatesJudged) -> String {
    let kinds = [(&judged.skipped, "skipped"), (&judged.failed, "failed without blocking")];
    let named = kinds.into_iter().filter(|(names, _)| !names.is_empty());
    let named: Vec<String> =
        named.map(|(names, result)| format!("{} {result}", some(names))).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join("; ")) }
}

/// What a session ended as, in a few words.
pub(crate) fn outcome(outcome: &SessionOutcome) -> String {
    match outcome {
        SessionOutcome::Complete { unproven: false } => "complete".to_owned(),
        SessionOutcome::Complete { unproven: true } => "accepted without proof".to_owned(),
        SessionOutcome::NeedsHuman { reason } => format!("needs a human: {reason}"),
        SessionOutcome::Limit { limit } => format!("stopped at its limit of {}", limit.name()),
        SessionOutcome::Cancelled => "cancelled".to_owned(),
        SessionOutcome::Interrupted => "interrupted".to_owned(),
    }
}

/// What a session is for.
pub(crate) fn work(work: &SessionWork) -> String {
    match work {
        SessionWork::Prompt(prompt) => {
            plain(prompt.lines().next().unwrap_or_default()).into_owned()
        }
        SessionWork::Spec(path) => format!("spec {}", plain(path)),
        SessionWork::Tasks => "tasks".to_owned(),
        SessionWork::Task(id) => format!("task {id}"),
        SessionWork::Own => "what its user asks".to_owned(),
        SessionWork::Review(_) => "a review".to_owned(),
    }
}

/// The state of a session as a list shows it: one of this machine that nobody performs is not running.
pub(crate) fn state(row: &SessionRow, is_running: bool, machine: &str) -> SessionState {
    let is_there = is_running || row.machine != machine || open::is_of_guest(row);
    match (row.state, is_there) {
        (SessionState::Running, false) => SessionState::Interrupted,
        (state, _) => state,
    }
}

/// Whether a session has not ended and its program died.
pub(crate) fn is_interrupted(project: &Project, row: &SessionRow) -> bool {
    row.state == SessionState::Running && !open::is_performed(project, row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_said_roughly() {
        for (ms, expected) in [
            (0, "now"),
            (4_999, "now"),
            (59_000, "59 s ago"),
            (3_600_000, "1 h ago"),
            (200_000_000, "2 d ago"),
            (-120_000, "in 2 min"),
        ] {
            assert_eq!(ago(ms), expected, "{ms}");
        }
    }

    #[test]
    fn what_fails_is_said_with_its_gate_once() {
        let check = |failing: &[&str], expected: &str| {
            let failing: Vec<String> = failing.iter().map(|check| (*check).to_owned()).collect();
            assert_eq!(sent_back(&failing), expected);
        };
        check(&["tests"], "sent back: gate tests failed");
        check(&["tests: latin1"], "sent back by tests: latin1 fails");
        check(&["tests: a", "tests: b"], "sent back by tests: a, b fail");
        check(&["tests: a", "lint"], "sent back: 2 checks fail: tests: a, lint");
    }

    #[test]
    fn an_agents_last_words_are_for_people() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(last_words(message).as_deref(), expected, "{message}");
        };
        check("I looked.\nAll pass.\n\n<promise>COMPLETE</promise>\n", Some("All pass."));
        check("<promise>COMPLETE</promise>", None);
        check("\u{1b}[31mred", Some("[31mred"));
    }
}
