//! Invariants of every session, checked against its log and the simulated world.

use std::collections::HashMap;

use hookloop_core::event::EventBody;
use hookloop_core::session::{
    RATE_LIMITED_TURNS_MAX, Receipt, Session, SessionLimit, SessionOutcome, TurnKind, TurnResult,
};

use crate::Ended;
use crate::scene::passes;

pub(crate) fn all(ended: &Ended) {
    outputs_reach_one_prompt_in_order(ended);
    limits_hold(ended);
    the_budget_holds(ended);
    it_ends_once(ended);
    every_hook_runs_at_every_point(ended);
    what_is_complete_is_proven(ended);
    what_is_complete_has_changed_something(ended);
    no_turn_follows_a_decision_or_a_give_up(ended);
    every_turn_that_changed_files_is_judged(ended);
    the_log_says_whether_it_is_proven(ended);
}

fn bodies(ended: &Ended) -> impl Iterator<Item = &EventBody> {
    ended.events.iter().map(|stored| &stored.event.body)
}

/// Returns the outputs in the prompts of finished turns, in order.
fn delivered(ended: &Ended) -> Vec<&String> {
    let committed = bodies(ended).filter_map(|body| match body {
        EventBody::TurnEnded(turn) if turn.result == TurnResult::Finished => {
            turn.message.strip_prefix("turn-")?.parse::<usize>().ok()
        }
        _ => None,
    });
    committed.flat_map(|number| &ended.story.turns[number]).collect()
}

fn outputs_reach_one_prompt_in_order(ended: &Ended) {
    let piped: Vec<_> = bodies(ended)
        .filter_map(|body| match body {
            EventBody::OutputPiped(piped) => Some(piped),
            _ => None,
        })
        .collect();
    let delivered = delivered(ended);
    let mut times: HashMap<&str, usize> = HashMap::new();
    for text in &delivered {
        *times.entry(text).or_default() += 1;
    }
    // Gates may give the same feedback twice; hooks and people never repeat a text.
    let is_unique = |text: &str| piped.iter().filter(|other| other.text == text).count() == 1;
    let mut missing = 0;
    for item in piped.iter().filter(|item| is_unique(&item.text)) {
        match times.get(item.text.as_str()) {
            None => missing += 1,
            Some(1) => {}
            Some(times) => panic!("{} is in {times} prompts", item.text),
        }
    }
    let Session { undelivered, replaced_outputs, .. } = &ended.session;
    let expected = undelivered + replaced_outputs;
    assert!(missing <= expected, "{missing} of {undelivered} and {replaced_outputs} replaced");
    if ended.session.undelivered > 0 {
        let may_leave = match ended.session.outcome.as_ref().unwrap() {
            // The final turn did not reach the agent, or produced further output each time.
            SessionOutcome::Complete { unproven: false } => {
                ended.session.deliveries > 0 || is_spent(ended) || was_dropped(ended)
            }
            // No turn follows a person's decision or a give-up.
            SessionOutcome::Complete { unproven: true } | SessionOutcome::NeedsHuman { .. } => true,
            SessionOutcome::Limit { .. }
            | SessionOutcome::Cancelled
            | SessionOutcome::Interrupted => true,
        };
        assert!(may_leave, "{:?}: {} left", ended.session.outcome, ended.session.undelivered);
    }
    // Outputs arrive in order, except those of on_error, which are due at once.
    let places: Vec<usize> = delivered
        .iter()
        .filter(|text| is_unique(text))
        .filter_map(|text| {
            let place = piped.iter().position(|item| item.text == **text)?;
            (piped[place].point != "on_error").then_some(place)
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

/// Returns whether a decision at the retry limit dropped the pending outputs.
fn was_dropped(ended: &Ended) -> bool {
    bodies(ended).any(|body| matches!(body, EventBody::DecisionMade(_)))
}

/// Returns whether no time or money is left for a final turn.
fn is_spent(ended: &Ended) -> bool {
    let (limits, session) = (&ended.nature.limits, &ended.session);
    session.usage.cost_micros >= limits.max_cost_micros
        || session.usage.tokens() >= limits.max_tokens
        || session.errors >= limits.max_errors
        || session.shortage.is_some()
        || session.active_ms + 20_000 >= limits.max_duration_ms
}

fn limits_hold(ended: &Ended) {
    let limits = &ended.nature.limits;
    let numbers = bodies(ended).filter_map(|body| match body {
        EventBody::IterationStarted(started) => Some(started.number),
        _ => None,
    });
    assert!(numbers.max().unwrap_or(0) <= limits.max_iterations);
    let fallback = ended.nature.fallback.as_ref();
    let (mut cost, mut tokens, mut errors, mut given_up) = (0, 0, 0, 0);
    let mut rate_limited = 0;
    for body in bodies(ended) {
        match body {
            EventBody::IterationStarted(_) | EventBody::TurnStarted(_) => {
                assert!(cost < limits.max_cost_micros && tokens < limits.max_tokens);
                assert!(errors < limits.max_errors, "a turn after {errors} errors");
            }
            EventBody::TurnEnded(turn) => {
                cost += turn.usage.cost_micros;
                tokens += turn.usage.tokens();
                let names = ["sim", "second", "third"];
                assert_eq!(turn.agent, names[given_up]);
                let is_over = rate_limited >= RATE_LIMITED_TURNS_MAX;
                (errors, rate_limited) = match (&turn.result, turn.turn) {
                    (TurnResult::Finished, TurnKind::Work) => (0, 0),
                    (TurnResult::Failed { .. }, TurnKind::Work | TurnKind::Recovery) => {
                        (errors + 1, 0)
                    }
                    (TurnResult::RateLimited { .. }, TurnKind::Work) if is_over => (errors + 1, 0),
                    (TurnResult::RateLimited { .. }, TurnKind::Work | TurnKind::Recovery) => {
                        (errors, rate_limited + 1)
                    }
                    _ => (errors, rate_limited),
                };
                if fallback.is_some_and(|other| {
                    errors >= other.after.min(limits.max_errors) && given_up < 2
                }) {
                    (given_up, errors) = (given_up + 1, 0);
                }
            }
            _ => {}
        }
    }
    for began in &ended.story.turns_began_ms {
        assert!(*began < limits.max_duration_ms, "a turn began after {began} ms");
    }
}

/// Checks that spent, written-off and reserved amounts never exceed the budget, and that the view
/// agrees at the end.
fn the_budget_holds(ended: &Ended) {
    let budget = &ended.nature.rules.limits.budget;
    let limit = [budget.day.cost_micros, budget.total.cost_micros].into_iter().flatten().min();
    let (mut used, mut lost, mut open) = (0, 0, 0);
    for stored in &ended.all {
        match &stored.event.body {
            EventBody::BudgetReserved(reserved) => open += reserved.amount.cost_micros,
            EventBody::IterationStarted(_) | EventBody::TurnStarted(_) => {
                assert!(open > 0 || limit.is_none(), "a turn without a reservation");
            }
            EventBody::TurnEnded(turn) => {
                used += turn.usage.cost_micros;
                open = 0;
            }
            EventBody::SessionResumed(_) => {
                lost += open;
                open = 0;
            }
            EventBody::SessionEnding(_) => open = 0,
            _ => {}
        }
        assert!(limit.is_none_or(|limit| used + lost + open <= limit), "{used} {lost} {open}");
    }
    let (spent, reservations) = &ended.books;
    assert_eq!((spent.used.cost_micros, spent.written_off.cost_micros), (used, lost));
    assert!(reservations.is_empty(), "{reservations:?}");
}

fn it_ends_once(ended: &Ended) {
    let count = |of: fn(&EventBody) -> bool| bodies(ended).filter(|body| of(body)).count();
    assert_eq!(count(|body| matches!(body, EventBody::SessionEnded(_))), 1);
    assert!(
        matches!(bodies(ended).last(), Some(EventBody::SessionEnded(_))),
        "nothing comes after"
    );
    let (begun, died) = (ended.story.ends_begun, ended.story.died_at_end);
    assert!(begun >= 1 && begun <= 1 + died, "session_end ran {begun} times, {died} died in it");
}

/// Checks that each of a point's hooks ran and was recorded each time that the point completed.
fn every_hook_runs_at_every_point(ended: &Ended) {
    let passed = |point: &str| {
        bodies(ended)
            .filter(|body| match body {
                EventBody::HookPointCompleted(passed) => passed.point == point,
                EventBody::IterationStarted(started) => {
                    point == "pre_iteration" && started.attempt == 1
                }
                EventBody::SessionEnded(_) => point == "session_end",
                _ => false,
            })
            .count()
    };
    for point in ["session_start", "pre_iteration", "post_iteration", "on_error", "session_end"] {
        for hook in ended.nature.rules.hooks.resolve(point, None) {
            let is_its = |body: &&EventBody| matches!(body, EventBody::HookRan(ran) if ran.hook_name == hook.name);
            let ran = bodies(ended).filter(is_its).count();
            assert!(
                ran >= passed(point),
                "{}: {ran} runs in {} completions",
                hook.name,
                passed(point)
            );
        }
    }
}

fn what_is_complete_is_proven(ended: &Ended) {
    if ended.session.outcome != Some(SessionOutcome::Complete { unproven: false }) {
        return;
    }
    let gates = ended.nature.rules.hooks.list().iter().filter(|hook| {
        hook.points.iter().any(|point| ["stop", "validation"].contains(&point.name()))
    });
    for gate in gates {
        let files = ended.story.files;
        assert!(passes(&gate.name, files), "complete, but `{}` fails on {files}", gate.name);
        let receipt = ended.session.receipts.iter().find(|receipt| receipt.gate == gate.name);
        let tree = receipt.and_then(|receipt| receipt.tree.clone());
        assert_eq!(tree, Some(format!("tree-{files}")), "{:?}", ended.session.receipts);
    }
}

fn what_is_complete_has_changed_something(ended: &Ended) {
    let is_complete = ended.session.outcome == Some(SessionOutcome::Complete { unproven: false });
    if !is_complete || ended.nature.no_changes_ok {
        return;
    }
    let start = ended.session.start.as_ref().unwrap();
    assert_ne!(start.files, ended.story.files.to_string(), "complete without any change");
}

/// Folds the session event by event, and checks each turn that begins.
fn no_turn_follows_a_decision_or_a_give_up(ended: &Ended) {
    let mut session: Option<Session> = None;
    for body in bodies(ended) {
        let begins = matches!(body, EventBody::IterationStarted(_) | EventBody::TurnStarted(_));
        let outcome = session.as_ref().and_then(|session| session.outcome.as_ref());
        if begins && let Some(outcome) = outcome {
            let may_speak = matches!(
                outcome,
                SessionOutcome::Complete { unproven: false }
                    | SessionOutcome::Limit { limit: SessionLimit::Iterations }
            );
            assert!(may_speak, "a turn begins after {outcome:?}");
        }
        match (&mut session, body) {
            (None, EventBody::SessionStarted(plan)) => session = Some(Session::new(plan.clone())),
            (Some(session), body) => session.apply(body),
            (None, _) => {}
        }
    }
}

fn every_turn_that_changed_files_is_judged(ended: &Ended) {
    let must_be_judged = match ended.session.outcome.as_ref().unwrap() {
        SessionOutcome::Complete { unproven } => !unproven,
        SessionOutcome::Limit { limit: SessionLimit::Iterations } => {
            ended.session.deliveries > 0 && !is_spent(ended)
        }
        _ => false,
    };
    assert!(!must_be_judged || !ended.session.is_unjudged, "{:?}", ended.session.outcome);
}

fn the_log_says_whether_it_is_proven(ended: &Ended) {
    let said = bodies(ended).find_map(|body| match body {
        EventBody::SessionEnded(ended) => Some(ended.proven),
        _ => None,
    });
    assert_eq!(said, Some(ended.session.is_proven()));
    if ended.session.is_proven() {
        let is_green = |receipt: &Receipt| receipt.is_green();
        assert!(ended.session.receipts.iter().any(is_green), "proven without a passing gate");
    }
}

/// Counts of the situations that occurred: a situation with count 0 is not tested.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    complete: u64,
    accepted: u64,
    needs_human: u64,
    limits: HashMap<&'static str, u64>,
    cancelled: u64,
    crashes: u64,
    turns: u64,
    deliveries: u64,
    recoveries: u64,
    sent_back: u64,
    undelivered: u64,
    died_at_end: u64,
    programs: u64,
    proven: u64,
    asked_for_changes: u64,
    no_changes: u64,
}

impl Seen {
    pub(crate) fn note(&mut self, ended: &Ended) {
        match ended.session.outcome.as_ref().unwrap() {
            SessionOutcome::Complete { unproven: false } => self.complete += 1,
            SessionOutcome::Complete { unproven: true } => self.accepted += 1,
            SessionOutcome::NeedsHuman { .. } => self.needs_human += 1,
            SessionOutcome::Limit { limit } => *self.limits.entry(limit.name()).or_default() += 1,
            SessionOutcome::Cancelled => self.cancelled += 1,
            SessionOutcome::Interrupted => {}
        }
        let turns = |kind| {
            let is_kind = |body: &&EventBody| matches!(body, EventBody::TurnStarted(started) if started.turn == kind);
            bodies(ended).filter(is_kind).count() as u64
        };
        self.deliveries += turns(TurnKind::Delivery);
        self.recoveries += turns(TurnKind::Recovery);
        self.crashes += u64::from(ended.story.crashes);
        self.turns += ended.story.turns.len() as u64;
        self.sent_back += u64::from(ended.session.was_sent_back);
        self.undelivered += ended.session.undelivered as u64;
        self.died_at_end += u64::from(ended.story.died_at_end);
        self.programs += u64::from(ended.programs);
        self.proven += u64::from(ended.session.is_proven());
        let found = |was_asked: bool| {
            let is_it = |body: &EventBody| matches!(body, EventBody::EmptyDifferenceFound(found) if found.was_asked == was_asked);
            u64::from(bodies(ended).any(is_it))
        };
        self.asked_for_changes += found(false);
        self.no_changes += found(true);
    }

    pub(crate) fn add(&mut self, other: Seen) {
        self.complete += other.complete;
        self.accepted += other.accepted;
        self.needs_human += other.needs_human;
        for (limit, count) in other.limits {
            *self.limits.entry(limit).or_default() += count;
        }
        self.cancelled += other.cancelled;
        self.crashes += other.crashes;
        self.turns += other.turns;
        self.deliveries += other.deliveries;
        self.recoveries += other.recoveries;
        self.sent_back += other.sent_back;
        self.undelivered += other.undelivered;
        self.died_at_end += other.died_at_end;
        self.programs += other.programs;
        self.proven += other.proven;
        self.asked_for_changes += other.asked_for_changes;
        self.no_changes += other.no_changes;
    }

    /// Checks that many sessions together cover every situation.
    pub(crate) fn check(&self, seeds: u64) {
        if seeds < 1_000 {
            return;
        }
        let all = [
            self.complete,
            self.accepted,
            self.needs_human,
            self.cancelled,
            self.crashes,
            self.deliveries,
            self.recoveries,
            self.sent_back,
            self.undelivered,
            self.died_at_end,
            self.proven,
            self.asked_for_changes,
            self.no_changes,
        ];
        assert!(all.iter().all(|count| *count > 0), "{self:?}");
        assert_eq!(self.limits.len(), 6, "{self:?}");
    }
}
