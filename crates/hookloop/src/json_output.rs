//! The JSON that commands print. Field names are stable: add fields, never rename them.

mod session_detail;

use std::time::Duration;

use hookloop_core::delivery::{Delivery, QueuePlace};
use hookloop_core::event::Event;
use hookloop_core::hook::{Hook, HookHandler, HookSource};
use hookloop_core::id::{SessionId, TaskId};
use hookloop_core::point::Point;
use hookloop_core::remark::TaskNoted;
use hookloop_core::task::{Task, TaskState};
use hookloop_core::time::Timestamp;
use hookloop_engine::claim::ClaimedTask;
use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::store::{HookRuns, SessionRow, StoredEvent, TaskAnnotation};
use hookloop_hooks::trust::HookStanding;
use serde::Serialize;
use serde_json::Value;

pub(crate) use self::session_detail::SessionDetailJson;

#[derive(Serialize)]
pub(crate) struct TaskJson<'a> {
    id: &'a TaskId,
    goal: &'a str,
    description: &'a str,
    state: TaskState,
    priority: u8,
    r#type: Option<&'a str>,
    labels: &'a [String],
    deliverables: &'a [String],
    /// Patterns of tests that the work may change.
    may_change: &'a [String],
    parent: Option<&'a TaskId>,
    open_dependencies: u32,
    not_before: Option<Timestamp>,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    blocked: Option<BlockedJson<'a>>,
    result: Option<&'a str>,
    artifacts: &'a [String],
    /// Whether gates passed on the work of a completed task.
    proven: bool,
    epoch: u64,
    claim: Option<ClaimJson<'a>>,
}

#[derive(Serialize)]
pub(crate) struct SessionJson<'a> {
    id: &'a str,
    name: &'a str,
    /// `running`, `paused`, `interrupted` (no process runs it), `complete`, `needs_human`, `limit`, `cancelled`.
    state: String,
    reason: Option<&'a str>,
    work: &'a str,
    agent: &'a str,
    machine: &'a str,
    iteration: u32,
    task: Option<&'a str>,
    tokens: u64,
    /// None if no turn's cost is known.
    cost_micros: Option<u64>,
    /// Turns whose cost is unknown.
    unpriced_turns: u64,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// Whether gates passed on the files as they were at the end.
    proven: bool,
}

impl<'a> SessionJson<'a> {
    pub(crate) fn new(row: &'a SessionRow, state: String) -> SessionJson<'a> {
        SessionJson {
            id: row.id.as_str(),
            name: &row.name,
            state,
            reason: row.reason.as_deref(),
            work: &row.work,
            agent: &row.agent,
            machine: &row.machine,
            iteration: row.iteration,
            task: row.task.as_deref(),
            tokens: row.tokens,
            cost_micros: row.cost().known_micros(),
            unpriced_turns: row.unpriced_turns,
            started_at: row.started_at,
            ended_at: row.ended_at,
            proven: row.proven,
        }
    }
}

#[derive(Serialize)]
struct ClaimJson<'a> {
    agent: &'a str,
    epoch: u64,
    lease_ms: u64,
}

#[derive(Serialize)]
struct BlockedJson<'a> {
    reason: &'a str,
    required_knowledge: Option<&'a str>,
}

impl<'a> From<&'a Task> for TaskJson<'a> {
    fn from(task: &'a Task) -> TaskJson<'a> {
        TaskJson {
            id: &task.id,
            goal: &task.spec.goal,
            description: &task.spec.description,
            state: task.state,
            priority: task.spec.priority.get(),
            r#type: task.spec.kind.as_deref(),
            labels: &task.spec.labels,
            deliverables: &task.spec.deliverables,
            may_change: &task.spec.may_change,
            parent: task.spec.parent_task_id.as_ref(),
            open_dependencies: task.open_dependencies,
            not_before: task.spec.not_before,
            created_at: task.created_at,
            started_at: task.started_at,
            completed_at: task.completed_at,
            blocked: task.obstacle.as_ref().map(|obstacle| BlockedJson {
                reason: &obstacle.reason,
                required_knowledge: obstacle.required_knowledge.as_deref(),
            }),
            result: task.outcome.as_ref().and_then(|outcome| outcome.result.as_deref()),
            artifacts: task.outcome.as_ref().map_or(&[], |outcome| &outcome.artifacts),
            proven: task.outcome.as_ref().is_some_and(|outcome| outcome.proven),
            epoch: task.epoch,
            claim: task.claim.as_ref().map(|claim| ClaimJson {
                agent: &claim.agent,
                epoch: claim.epoch,
                lease_ms: claim.lease_ms,
            }),
        }
    }
}

/// The result of a command on a task: the task, and the reactions to the command.
#[derive(Serialize)]
pub(crate) struct DoneJson<'a> {
    #[serde(flatten)]
    task: Option<TaskJson<'a>>,
    /// Tasks that became ready.
    unblocked: &'a [TaskId],
    added: &'a [TaskId],
    blocked_dependents: &'a [TaskId],
    hook_failures: &'a [String],
    /// Why reactions are not done yet, if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reactions_left: Option<String>,
}

impl<'a> From<&'a CommandOutcome> for DoneJson<'a> {
    fn from(done: &'a CommandOutcome) -> DoneJson<'a> {
        DoneJson {
            task: done.task.as_ref().map(TaskJson::from),
            unblocked: &done.readied,
            added: &done.added,
            blocked_dependents: &done.blocked,
            hook_failures: &done.failures,
            reactions_left: done.left.as_ref().map(ToString::to_string),
        }
    }
}

/// The output of `task claim` and `task take-over`: the task with its epoch, and the length of the lease.
#[derive(Serialize)]
pub(crate) struct ClaimedJson<'a> {
    #[serde(flatten)]
    done: DoneJson<'a>,
    lease_ms: u64,
}

impl<'a> ClaimedJson<'a> {
    pub(crate) fn new(claimed: &'a ClaimedTask, lease: Duration) -> ClaimedJson<'a> {
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        ClaimedJson { done: DoneJson::from(&claimed.done), lease_ms }
    }
}

/// `task show`: the task and its neighbours.
#[derive(Serialize)]
pub(crate) struct TaskDetailJson<'a> {
    #[serde(flatten)]
    pub(crate) task: TaskJson<'a>,
    pub(crate) depends_on: Vec<NeighbourJson<'a>>,
    pub(crate) dependents: Vec<NeighbourJson<'a>>,
    pub(crate) spawned: Vec<NeighbourJson<'a>>,
    pub(crate) notes: Vec<NoteJson<'a>>,
    pub(crate) delivery: DeliveryJson<'a>,
}

/// The delivery of a task's work; a value that does not exist yet is null.
#[derive(Serialize)]
pub(crate) struct DeliveryJson<'a> {
    branch: Option<&'a str>,
    head: Option<&'a str>,
    url: Option<&'a str>,
    number: Option<u64>,
    merged: Option<&'a str>,
    returns: u32,
    reason: Option<&'a str>,
    /// The requirement that the forge waits for before it merges the work.
    waits_for: Option<&'a str>,
    /// The place in the merge queue of the forge.
    queue: Option<&'a QueuePlace>,
}

impl<'a> From<&'a Delivery> for DeliveryJson<'a> {
    fn from(delivery: &'a Delivery) -> DeliveryJson<'a> {
        let submission = delivery.submission.as_ref();
        DeliveryJson {
            branch: submission.map(|submission| submission.branch.as_str()),
            head: submission.map(|submission| submission.head.as_str()),
            url: submission.and_then(|submission| submission.url.as_deref()),
            number: submission.and_then(|submission| submission.number),
            merged: delivery.merged.as_ref().map(|merged| merged.commit.as_str()),
            returns: delivery.returns,
            reason: delivery.reason.as_deref(),
            waits_for: delivery.awaited.as_ref().and_then(|awaited| awaited.reason.as_deref()),
            queue: delivery.awaited.as_ref().and_then(|awaited| awaited.queue.as_ref()),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct NoteJson<'a> {
    at: Timestamp,
    by: &'a str,
    text: &'a str,
}

impl<'a> From<&'a TaskAnnotation<TaskNoted>> for NoteJson<'a> {
    fn from(note: &'a TaskAnnotation<TaskNoted>) -> NoteJson<'a> {
        NoteJson { at: note.at, by: &note.by, text: &note.what.text }
    }
}

#[derive(Serialize)]
pub(crate) struct NeighbourJson<'a> {
    id: &'a TaskId,
    state: TaskState,
    goal: &'a str,
}

impl<'a> From<&'a Task> for NeighbourJson<'a> {
    fn from(task: &'a Task) -> NeighbourJson<'a> {
        NeighbourJson { id: &task.id, state: task.state, goal: &task.spec.goal }
    }
}

/// An event as `log --json` prints it, one a line.
#[derive(Serialize)]
pub(crate) struct EventJson<'a> {
    seq: u64,
    id: String,
    timestamp: Timestamp,
    r#type: &'a str,
    node_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    data: Value,
    metadata: MetadataJson<'a>,
}

#[derive(Serialize)]
struct MetadataJson<'a> {
    triggered_by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caused_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
}

impl<'a> From<&'a StoredEvent> for EventJson<'a> {
    fn from(stored: &'a StoredEvent) -> EventJson<'a> {
        let event: &Event = &stored.event;
        let cause = event.cause.as_ref();
        EventJson {
            seq: stored.seq,
            id: event.id.to_string(),
            timestamp: event.at,
            r#type: event.body.kind(),
            node_id: event.node_id(),
            session: event.subject.session().map(SessionId::as_str),
            data: event.body.data(),
            metadata: MetadataJson {
                triggered_by: &event.actor,
                hook: cause.map(|cause| cause.hook.as_str()),
                caused_by: cause.map(|cause| cause.event.to_string()),
                depth: cause.map(|cause| cause.depth),
            },
        }
    }
}

/// A hook with its trust state and the results of its runs.
pub(crate) struct HookLine<'a> {
    pub(crate) hook: &'a Hook,
    pub(crate) standing: HookStanding,
    pub(crate) runs: HookRuns,
}

#[derive(Serialize)]
pub(crate) struct HookJson<'a> {
    name: &'a str,
    point: &'a str,
    events: Vec<&'a str>,
    task_type: Option<&'a str>,
    source: &'static str,
    priority: i32,
    enabled: bool,
    handler: &'static str,
    trusted: bool,
    trust: &'static str,
    runs: u64,
    failures: u64,
    blocks: u64,
    p50_ms: u64,
    p95_ms: u64,
    description: Option<&'a str>,
    author: Option<&'a str>,
    version: Option<&'a str>,
}

impl<'a> From<&HookLine<'a>> for HookJson<'a> {
    fn from(line: &HookLine<'a>) -> HookJson<'a> {
        let HookLine { hook, standing, runs } = line;
        HookJson {
            name: &hook.name,
            point: hook.points.first().map_or("", Point::name),
            events: hook.points.iter().map(Point::name).collect(),
            task_type: hook.task_type.as_deref(),
            source: source_name(hook.source),
            priority: hook.priority,
            enabled: hook.enabled,
            handler: handler_name(&hook.handler),
            trusted: standing.may_run(),
            trust: standing.name(),
            runs: runs.runs,
            failures: runs.failures,
            blocks: runs.blocks,
            p50_ms: runs.p50_ms,
            p95_ms: runs.p95_ms,
            description: hook.metadata.description.as_deref(),
            author: hook.metadata.author.as_deref(),
            version: hook.metadata.version.as_deref(),
        }
    }
}

pub(crate) fn handler_name(handler: &HookHandler) -> &'static str {
    match handler {
        HookHandler::Builtin(_) => "built-in",
        HookHandler::Declared(_) => "actions",
        HookHandler::Command(_) => "command",
        HookHandler::Http { .. } => "http",
        HookHandler::Gatekeepers { .. } => "gatekeeper",
        HookHandler::Rule(_) => "rule",
    }
}

pub(crate) fn source_name(source: HookSource) -> &'static str {
    match source {
        HookSource::Builtin => "built-in",
        HookSource::Operator => "operator",
        HookSource::User => "user",
        HookSource::Project => "project",
    }
}
