//! Converts a session's timeline to spans: those that have ended, each once.
//!
//! The session is the root. Its parts are below it, and turns and hooks below those. A step without
//! a duration is an event of its part.

use std::collections::BTreeSet;

use hookloop_core::hook_status::HookStatus;
use hookloop_core::session::facts::{SubmitVerdict, TurnEnded};
use hookloop_core::session::plan::CostFigure;
use hookloop_core::session::timeline::{
    PartKind, StepContent, Timeline, TimelinePart, TimelineStep,
};
use hookloop_core::session::{
    JointVerdict, SessionOutcome, SessionWork, TurnKind, TurnResult, Usage,
};
use hookloop_core::time::Timestamp;
use hookloop_core::trace::{SpanId, SpanNames};
use hookloop_engine::project::Project;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use serde_json::json;

use super::attributes::{SpanAttributes, clean};

const NANOS_PER_MS: u64 = 1_000_000;
/// The `sampled` flag of W3C Trace Context.
const SAMPLED: u32 = 1;

/// A session to convert to spans.
pub(super) struct TracedSession<'a> {
    pub(super) project: &'a Project,
    pub(super) names: SpanNames,
    pub(super) timeline: &'a Timeline,
    /// Whether prompts, messages and reasons are included.
    pub(super) content: bool,
}

/// The position up to which the spans of a session were returned.
#[derive(Debug, Default)]
pub(super) struct ExportedPart {
    /// The first part that has not ended, or was not returned completely.
    part: usize,
    /// Returned steps of that part.
    steps: BTreeSet<usize>,
    /// The session's task when that part began.
    task: Option<String>,
    is_over: bool,
}

impl ExportedPart {
    /// Whether all spans of the session were returned.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }
}

impl TracedSession<'_> {
    /// Returns the next ended spans, at most `room`.
    pub(super) fn take(&self, given: &mut ExportedPart, room: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        let Timeline { parts, parts_dropped, .. } = self.timeline;
        // Skips parts that the timeline has dropped.
        if given.part < *parts_dropped {
            (given.part, given.steps) = (*parts_dropped, BTreeSet::new());
        }
        for (index, part) in parts.iter().enumerate().skip(given.part - parts_dropped) {
            let place = parts_dropped + index;
            let (task, task_after) = tasks(part, given.task.clone());
            for (step_index, step) in part.steps.iter().enumerate() {
                let number = part.steps_dropped + step_index;
                if spans.len() == room {
                    return spans;
                }
                if step.ended.is_some() && !given.steps.contains(&number) {
                    given.steps.insert(number);
                    spans.extend(self.step((part, place), (step, number), task.as_deref()));
                }
            }
            let Some(ended) = part.ended else { return spans };
            if spans.len() == room {
                return spans;
            }
            spans.push(self.part((part, place), ended, task.as_deref()));
            (given.part, given.steps, given.task) = (place + 1, BTreeSet::new(), task_after);
        }
        if let (Some(ended), false, true) = (self.timeline.ended, given.is_over, spans.len() < room)
        {
            given.is_over = true;
            spans.push(self.root(ended));
        }
        spans
    }

    fn root(&self, ended: Timestamp) -> Span {
        let plan = &self.timeline.plan;
        let mut says = self.says();
        says.text("hookloop.session.name", &plan.name);
        says.text("hookloop.machine", &plan.machine);
        says.maybe("hookloop.worker", plan.worker.as_deref());
        says.text("gen_ai.agent.name", &plan.agent);
        says.maybe("gen_ai.request.model", self.model(&plan.agent).as_deref());
        says.text("hookloop.work", work_kind(&plan.work));
        if let SessionWork::Task(task) = &plan.work {
            says.text("hookloop.task", task.as_str());
        }
        if let (true, SessionWork::Prompt(text) | SessionWork::Review(text)) =
            (self.content, &plan.work)
            && let Some(text) = clean(self.project.exec(), text)
        {
            let parts = json!([{"type": "text", "content": text}]);
            let messages = json!([{"role": "user", "parts": parts}]);
            says.text("gen_ai.input.messages", &messages.to_string());
        }
        let (mut usage, mut turns, mut iterations) = (Usage::default(), 0, 0);
        let mut unpriced_turns = 0;
        for part in &self.timeline.parts {
            for turn in part.turns() {
                usage.add(turn.usage);
                turns += 1;
                unpriced_turns += u64::from(turn.has_unknown_cost());
            }
            if let PartKind::Iteration { number, has_begun: true } = part.kind {
                iterations = iterations.max(number);
            }
        }
        says.count("hookloop.iterations", iterations);
        says.count("hookloop.turns", turns);
        used(&mut says, &usage, CostFigure { micros: usage.cost_micros, unpriced_turns });
        let mut status = None;
        if let Some(outcome) = &self.timeline.outcome {
            says.text("hookloop.outcome", outcome.name());
            says.maybe("hookloop.reason", self.reason(outcome).as_deref());
            status = outcome_status(outcome);
        }
        let above = self.names.above();
        let times = (self.timeline.began, ended);
        self.span("session", (self.names.root(), above), times, (says, status))
    }

    fn part(
        &self,
        (part, place): (&TimelinePart, usize),
        ended: Timestamp,
        task: Option<&str>,
    ) -> Span {
        let mut says = self.says();
        says.maybe("hookloop.task", task);
        let name = match part.kind {
            PartKind::Start => "start",
            PartKind::End => "end",
            PartKind::Iteration { number, .. } => {
                says.count("hookloop.iteration", number);
                "iteration"
            }
        };
        let ids = (self.names.part(place), Some(self.names.root()));
        let span = self.span(name, ids, (part.began, ended), (says, None));
        let events = part.steps.iter().filter_map(|step| self.event(step)).collect();
        let dropped = u32::try_from(part.steps_dropped).unwrap_or(u32::MAX);
        Span { events, dropped_events_count: dropped, ..span }
    }

    fn step(
        &self,
        (part, place): (&TimelinePart, usize),
        (step, number): (&TimelineStep, usize),
        task: Option<&str>,
    ) -> Option<Span> {
        let mut says = self.says();
        says.maybe("hookloop.task", task);
        if let PartKind::Iteration { number, .. } = part.kind {
            says.count("hookloop.iteration", number);
        }
        let (name, kind, status) = match &step.what {
            StepContent::Hook(ran) => {
                says.text("hookloop.hook.name", &ran.hook_name);
                says.text("hookloop.hook.point", &ran.point);
                says.text("hookloop.hook.status", ran.status.name());
                says.count("hookloop.hook.attempts", ran.attempts);
                if let Some(code) = ran.exit_code {
                    says.count("process.exit.code", code);
                }
                let is_failure = !matches!(
                    ran.status.known(),
                    Some(HookStatus::Passed | HookStatus::Blocked | HookStatus::Skipped)
                );
                if is_failure {
                    says.text("error.type", ran.status.name());
                }
                let reason = ran.reason.as_deref().filter(|_| self.content);
                says.maybe("hookloop.reason", reason);
                (format!("hook {}", ran.hook_name), SpanKind::Internal, is_failure)
            }
            StepContent::Turn { kind, attempt, ended } => {
                let agent = ended.as_deref().map(|ended| ended.agent.as_str());
                let agent = agent.filter(|agent| !agent.is_empty());
                let agent = agent.unwrap_or(&self.timeline.plan.agent);
                says.text("hookloop.turn", turn_kind(*kind));
                says.count("hookloop.attempt", *attempt);
                self.agent(&mut says, agent);
                let is_failure = self.turn(&mut says, ended.as_deref());
                (format!("invoke_agent {agent}"), SpanKind::Client, is_failure)
            }
            _ => return None,
        };
        let name = clean(self.project.exec(), &name).unwrap_or_default();
        let ids = (self.names.step(place, number), Some(self.names.part(place)));
        // If the clock was set back, the step must not begin before its part.
        let times = (step.began.max(part.began), step.ended.unwrap_or(step.began));
        let status = status.then_some((StatusCode::Error, String::new()));
        Some(Span { kind: kind.into(), ..self.span(&name, ids, times, (says, status)) })
    }

    /// Adds the agent of a turn, by OpenTelemetry's conventions for generative AI.
    fn agent(&self, says: &mut SpanAttributes<'_>, agent: &str) {
        says.text("gen_ai.operation.name", "invoke_agent");
        says.text("gen_ai.agent.name", agent);
        let settings = self.project.rules().agent(agent).ok();
        let known = settings.as_ref().and_then(|settings| settings.known());
        says.maybe("gen_ai.provider.name", known.and_then(|known| known.provider));
        says.maybe("gen_ai.request.model", self.model(agent).as_deref());
    }

    /// Adds the result of a turn. Returns whether the turn failed.
    fn turn(&self, says: &mut SpanAttributes<'_>, ended: Option<&TurnEnded>) -> bool {
        let Some(ended) = ended else {
            says.text("error.type", "program_died");
            return true;
        };
        used(says, &ended.usage, ended.cost());
        if ended.is_partial {
            says.flag("hookloop.usage.is_partial", true);
        }
        says.maybe("gen_ai.conversation.id", ended.conversation.as_deref());
        says.count("hookloop.files_changed", ended.changed.len());
        says.maybe("hookloop.tree", ended.tree.as_deref());
        let error = match &ended.result {
            TurnResult::Finished | TurnResult::Cancelled => None,
            TurnResult::Failed { error } | TurnResult::RateLimited { error, .. } => Some(error),
        };
        let result = ended.result.name();
        says.text("hookloop.turn.result", result);
        if let Some(error) = error {
            says.text("error.type", result);
            says.maybe("hookloop.reason", self.content.then_some(error.as_str()));
        }
        if let Some(text) = clean(self.project.exec(), &ended.message)
            && self.content
            && !text.is_empty()
        {
            let parts = json!([{"type": "text", "content": text}]);
            let messages = json!([{"role": "assistant", "parts": parts}]);
            says.text("gen_ai.output.messages", &messages.to_string());
        }
        error.is_some()
    }

    /// Returns the span event of a step without a duration.
    fn event(&self, step: &TimelineStep) -> Option<Event> {
        let mut says = SpanAttributes::new(self.project.exec());
        let name = match &step.what {
            StepContent::Hook(_) | StepContent::Turn { .. } => return None,
            StepContent::Piped(piped) => {
                says.text("hookloop.from", &piped.from);
                says.count("hookloop.bytes", piped.text.len());
                "output_piped"
            }
            StepContent::ReactionFailed(failed) => {
                says.text("hookloop.hook.name", &failed.hook_name);
                says.text("hookloop.hook.point", &failed.point);
                "reaction_failed"
            }
            StepContent::Decided(decided) => {
                says.text("hookloop.decision", &word(&decided.decision));
                says.text("hookloop.by", &decided.by);
                "stop_evaluated"
            }
            StepContent::Receipt(receipt) => {
                says.text("hookloop.gate", &receipt.gate);
                says.text("hookloop.gate.status", receipt.status.name());
                says.maybe("hookloop.tree", receipt.tree.as_deref());
                "receipt_recorded"
            }
            StepContent::Judged(judged) => {
                says.text("hookloop.verdict", verdict(&judged.verdict));
                says.count("hookloop.gates", judged.gates);
                says.count("hookloop.failing", judged.failing.len());
                says.maybe("hookloop.tree", judged.tree.as_deref());
                "gates_evaluated"
            }
            StepContent::SubmissionEvaluated(judged) => {
                says.text("hookloop.verdict", submit_verdict(&judged.verdict));
                says.maybe("hookloop.hook.name", judged.hook.as_deref());
                "submission_evaluated"
            }
            StepContent::Answered(answered) => {
                says.text("hookloop.answer", &word(&answered.answer));
                "decision_made"
            }
            StepContent::Taken(taken) => {
                says.text("hookloop.task", taken.task.as_str());
                "session_task_claimed"
            }
            StepContent::Left(left) => {
                says.text("hookloop.task", left.task.as_str());
                says.text("hookloop.result", &word(&left.result));
                "session_task_released"
            }
            StepContent::Short(_) => "budget_exhausted",
            StepContent::PauseRequested => "pause_requested",
            StepContent::StopRequested => "stop_requested",
            StepContent::Paused => "session_paused",
            StepContent::Reopened(_) => "session_reopened",
            StepContent::Resumed(resumed) => {
                says.count("hookloop.run", resumed.run);
                says.text("hookloop.machine", &resumed.machine);
                "session_resumed"
            }
        };
        Some(Event {
            time_unix_nano: nanos(step.began),
            name: name.to_owned(),
            attributes: says.into_list(),
            dropped_attributes_count: 0,
        })
    }

    /// Returns the attributes that every span has.
    fn says(&self) -> SpanAttributes<'_> {
        let mut says = SpanAttributes::new(self.project.exec());
        says.text("hookloop.project", self.project.name());
        says.text("hookloop.session", self.names.session().as_str());
        says
    }

    fn span(
        &self,
        name: &str,
        (id, above): (SpanId, Option<SpanId>),
        (began, ended): (Timestamp, Timestamp),
        (says, status): (SpanAttributes<'_>, Option<(StatusCode, String)>),
    ) -> Span {
        Span {
            trace_id: self.names.trace().0.to_vec(),
            span_id: id.0.to_vec(),
            parent_span_id: above.map_or_else(Vec::new, |above| above.0.to_vec()),
            flags: SAMPLED,
            name: name.to_owned(),
            kind: SpanKind::Internal.into(),
            start_time_unix_nano: nanos(began),
            end_time_unix_nano: nanos(ended.max(began)),
            attributes: says.into_list(),
            status: status.map(|(code, message)| Status { code: code.into(), message }),
            ..Span::default()
        }
    }

    /// Returns the model that an agent was asked to use, if it is known.
    fn model(&self, agent: &str) -> Option<String> {
        let plan = &self.timeline.plan;
        let wanted = plan.model.clone().filter(|_| agent == plan.agent);
        wanted.or_else(|| self.project.rules().agent(agent).ok()?.model)
    }

    fn reason(&self, outcome: &SessionOutcome) -> Option<String> {
        match outcome {
            SessionOutcome::NeedsHuman { reason } => self.content.then(|| reason.clone()),
            SessionOutcome::Limit { limit } => Some(limit.name().to_owned()),
            _ => None,
        }
    }
}

/// Adds the usage, if the agent reported any.
fn used(says: &mut SpanAttributes<'_>, usage: &Usage, cost: CostFigure) {
    if usage.is_none() {
        return;
    }
    says.count("gen_ai.usage.input_tokens", usage.input_tokens);
    says.count("gen_ai.usage.output_tokens", usage.output_tokens);
    if usage.cached_tokens > 0 {
        says.count("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens);
    }
    if let Some(micros) = cost.known_micros() {
        says.cost("hookloop.cost_usd", micros);
    }
}

/// Returns the task of a part, and the session's task after the part.
fn tasks(part: &TimelinePart, before: Option<String>) -> (Option<String>, Option<String>) {
    let (mut during, mut after) = (before.clone(), before);
    for step in &part.steps {
        match &step.what {
            StepContent::Taken(taken) => {
                during = Some(taken.task.to_string());
                after.clone_from(&during);
            }
            StepContent::Left(_) => after = None,
            _ => {}
        }
    }
    (during, after)
}

fn outcome_status(outcome: &SessionOutcome) -> Option<(StatusCode, String)> {
    match outcome {
        SessionOutcome::Complete { .. } => Some((StatusCode::Ok, String::new())),
        SessionOutcome::NeedsHuman { .. }
        | SessionOutcome::Limit { .. }
        | SessionOutcome::Interrupted => Some((StatusCode::Error, outcome.name().to_owned())),
        SessionOutcome::Cancelled => None,
    }
}

fn work_kind(work: &SessionWork) -> &'static str {
    match work {
        SessionWork::Prompt(_) => "prompt",
        SessionWork::Spec(_) => "spec",
        SessionWork::Tasks => "tasks",
        SessionWork::Task(_) => "task",
        SessionWork::Own => "own",
        SessionWork::Review(_) => "review",
    }
}

fn turn_kind(kind: TurnKind) -> &'static str {
    match kind {
        TurnKind::Work => "work",
        TurnKind::Recovery => "recovery",
        TurnKind::Delivery => "delivery",
    }
}

fn verdict(verdict: &JointVerdict) -> &'static str {
    match verdict {
        JointVerdict::Pass => "pass",
        JointVerdict::Block => "block",
        JointVerdict::Escalate { .. } => "escalate",
    }
}

fn submit_verdict(verdict: &SubmitVerdict) -> &'static str {
    match verdict {
        SubmitVerdict::Pass { .. } => "pass",
        SubmitVerdict::Block => "block",
        SubmitVerdict::Regate => "regate",
        SubmitVerdict::Retry { .. } => "retry",
        SubmitVerdict::Escalate { .. } => "escalate",
    }
}

/// Returns a value without data, spelled as in the log.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.0).unwrap_or(0).saturating_mul(NANOS_PER_MS)
}
