//! Checks the workers' histories against the log.
//!
//! - an acknowledged operation is in the log exactly once
//! - an operation without a response is in the log at most once
//! - a refused operation is not in the log
//! - each task: epochs increase by one, and only the holder's epoch ends or completes a claim
//! - each reaction happens exactly once
//! - each subject has an unbroken chain of versions; each batch is complete; no id occurs twice

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::history::{Op, Operation, Outcome};
use crate::stream::Stored;

/// Counts of a check, and one line for each violation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) acknowledged: usize,
    pub(crate) refused: usize,
    pub(crate) unknown: usize,
    /// Refused attempts with an expired epoch.
    pub(crate) stale_refused: usize,
    /// Acknowledged, but not in the log.
    pub(crate) lost: Vec<String>,
    /// In the log more than once, or although it was refused.
    pub(crate) doubled: Vec<String>,
    /// Accepted from a worker that did not hold the task.
    pub(crate) stale: Vec<String>,
    pub(crate) effects_missing: Vec<String>,
    pub(crate) effects_doubled: Vec<String>,
    /// Violations of chains, batches, replicas, views and recovery.
    pub(crate) broken: Vec<String>,
}

impl Findings {
    pub(crate) fn violations(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let named = |name: &'static str, list| (name, list);
        let lists: [(&'static str, &Vec<String>); 6] = [
            named("lost", &self.lost),
            named("doubled", &self.doubled),
            named("stale accepted", &self.stale),
            named("effect missing", &self.effects_missing),
            named("effect doubled", &self.effects_doubled),
            named("broken", &self.broken),
        ];
        lists.into_iter().flat_map(|(name, list)| list.iter().map(move |line| (name, line)))
    }
}

pub(crate) fn check(operations: &[Operation], log: &[Stored]) -> Findings {
    let mut findings = Findings::default();
    count(operations, &mut findings);
    check_chains(log, &mut findings);
    check_answers(operations, log, &mut findings);
    check_claims(operations, log, &mut findings);
    check_effects(log, &mut findings);
    findings
}

fn count(operations: &[Operation], findings: &mut Findings) {
    for operation in operations {
        match &operation.outcome {
            Outcome::Unknown { .. } => findings.unknown += 1,
            Outcome::Refused { .. } => {
                findings.refused += 1;
                findings.stale_refused +=
                    usize::from(matches!(operation.op, Op::CompleteStale { .. }));
            }
            _ => findings.acknowledged += usize::from(operation.is_acknowledged_write()),
        }
    }
}

/// Checks that versions are consecutive, batches are complete, and ids are unique.
pub(crate) fn check_chains(log: &[Stored], findings: &mut Findings) {
    let (mut ids, mut last) = (HashSet::new(), HashMap::<&str, &Stored>::new());
    for (place, stored) in log.iter().enumerate() {
        let at = stored.seq;
        if at != place as u64 + 1 {
            findings.broken.push(format!("event {at} is in place {}", place + 1));
        }
        if !ids.insert(&stored.id) {
            findings.doubled.push(format!("event id {} at {at} occurs twice", stored.id));
        }
        let before = last.insert(&stored.subject, stored);
        let follows = match stored.after {
            Some(after) => after == before.map_or(0, |before| before.seq),
            // Only the first event of a batch on a subject names its version.
            None => before.is_some_and(|before| {
                batch_of(before).is_some() && batch_of(before) == batch_of(stored)
            }),
        };
        if !follows {
            let (subject, after) = (&stored.subject, stored.after);
            let before = before.map(|before| before.seq);
            findings
                .broken
                .push(format!("{subject}: event {at} follows {after:?}, not {before:?}"));
        }
    }
    check_batches(log, findings);
}

fn batch_of(stored: &Stored) -> Option<&str> {
    stored.batch.as_ref().map(|(batch, _)| batch.as_str())
}

/// Checks that each batch is stored contiguously, from its first message on.
fn check_batches(log: &[Stored], findings: &mut Findings) {
    let mut seen: HashMap<&str, (u64, u64)> = HashMap::new();
    for stored in log {
        let Some((batch, number)) = &stored.batch else { continue };
        let expected = match seen.get(batch.as_str()) {
            Some((seq, before)) if seq + 1 == stored.seq => before + 1,
            Some(_) => 0,
            None => 1,
        };
        if *number != expected {
            findings.broken.push(format!("batch {batch} is torn at event {}", stored.seq));
        }
        seen.insert(batch, (stored.seq, *number));
    }
}

/// Returns the key that relates an event to its operation.
fn word_of(stored: &Stored) -> Option<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match stored.kind.as_str() {
        "task_created" => Some(format!("add {}", stored.subject)),
        "task_started" => Some(format!("claim {}", text(&stored.data["claim"]["agent"])?)),
        "task_completed" => Some(format!("complete {}", text(&stored.data["result"])?)),
        "task_released" => match text(&stored.data["note"]) {
            Some(note) => Some(format!("release {note}")),
            None => Some(ended(&stored.subject, stored.data["epoch"].as_u64()?)),
        },
        "note" => Some(format!("append {}", stored.id)),
        _ => None,
    }
}

fn ended(task: &str, epoch: u64) -> String {
    format!("end {task} {epoch}")
}

fn word_for(op: &Op) -> Option<String> {
    match op {
        Op::Add { task, .. } => Some(format!("add {task}")),
        Op::Claim { agent, .. } | Op::TakeOver { agent, .. } => Some(format!("claim {agent}")),
        Op::Complete { token, .. } | Op::CompleteStale { token, .. } => {
            Some(format!("complete {token}"))
        }
        Op::Release { token, .. } => Some(format!("release {token}")),
        Op::Append { event } => Some(format!("append {event}")),
        Op::Beat { .. } | Op::Sweep | Op::Dispatch | Op::Reopen => None,
    }
}

fn check_answers(operations: &[Operation], log: &[Stored], findings: &mut Findings) {
    let mut found: HashMap<String, Vec<&Stored>> = HashMap::new();
    for stored in log {
        if let Some(word) = word_of(stored) {
            found.entry(word).or_default().push(stored);
        }
    }
    let find = |word: &str| found.get(word).map_or(&[][..], Vec::as_slice);
    // An append without a response is retried unchanged: the last response counts.
    let answered: HashSet<&Op> =
        operations.iter().filter(|one| one.outcome.is_acknowledged()).map(|one| &one.op).collect();
    for operation in operations {
        let who = &operation.worker;
        if let Outcome::Swept { ended: claims } = &operation.outcome {
            for (task, epoch) in claims {
                note(
                    findings,
                    &format!("{who}: {}", ended(task, *epoch)),
                    find(&ended(task, *epoch)).len(),
                    1..2,
                );
            }
        }
        let Some(word) = word_for(&operation.op) else { continue };
        let stored = find(&word);
        let label = format!("{who}: {word} ({:?})", operation.outcome);
        match &operation.outcome {
            Outcome::Claimed { task, epoch } => {
                note(findings, &label, stored.len(), 1..2);
                let as_told =
                    |one: &&Stored| one.subject == *task && one.data["claim"]["epoch"] == *epoch;
                if !stored.is_empty() && !stored.iter().any(as_told) {
                    findings.lost.push(format!("{label}: the log has another task or epoch"));
                }
            }
            Outcome::Done | Outcome::Swept { .. } => note(findings, &label, stored.len(), 1..2),
            Outcome::Unknown { .. } => note(findings, &label, stored.len(), 0..2),
            Outcome::Refused { .. } | Outcome::Nothing => {
                if !answered.contains(&operation.op) {
                    note(findings, &label, stored.len(), 0..1);
                }
                if matches!(operation.op, Op::Append { .. }) {
                    findings.broken.push(format!("{label}: another writer used this subject"));
                }
            }
        }
    }
}

fn note(findings: &mut Findings, label: &str, found: usize, allowed: std::ops::Range<usize>) {
    if found < allowed.start {
        findings.lost.push(label.to_owned());
    } else if found >= allowed.end {
        findings.doubled.push(format!("{label}: {found} times in the log"));
    }
}

/// Checks the claims of each task in the log, and against the epochs that the operations named.
fn check_claims(operations: &[Operation], log: &[Stored], findings: &mut Findings) {
    struct Task {
        epoch: u64,
        holder: Option<u64>,
        is_completed: bool,
    }
    let mut named: HashMap<&str, u64> = HashMap::new();
    for operation in operations {
        if let Op::Complete { token, epoch, .. } | Op::CompleteStale { token, epoch, .. } =
            &operation.op
        {
            named.insert(token, *epoch);
        }
        if let (Op::CompleteStale { .. }, true) =
            (&operation.op, operation.outcome.is_acknowledged())
        {
            findings
                .stale
                .push(format!("{}: {:?} was acknowledged", operation.worker, operation.op));
        }
    }
    let mut tasks: HashMap<&str, Task> = HashMap::new();
    for stored in log {
        let at = format!("event {} ({} {})", stored.seq, stored.subject, stored.kind);
        if stored.kind == "task_created" {
            let task = Task { epoch: 0, holder: None, is_completed: false };
            if tasks.insert(&stored.subject, task).is_some() {
                findings.doubled.push(format!("{at}: the task was there"));
            }
        }
        let Some(task) = tasks.get_mut(stored.subject.as_str()) else { continue };
        match stored.kind.as_str() {
            "task_started" => {
                let epoch = stored.data["claim"]["epoch"].as_u64().unwrap_or(0);
                let takes_over = !stored.data["took_over"].is_null();
                if epoch != task.epoch + 1
                    || task.holder.is_some() != takes_over
                    || task.is_completed
                {
                    let (was, holder) = (task.epoch, task.holder);
                    findings
                        .stale
                        .push(format!("{at}: epoch {epoch} after {was}, held by {holder:?}"));
                }
                (task.epoch, task.holder) = (epoch, Some(epoch));
            }
            "task_released" => {
                let epoch = stored.data["epoch"].as_u64();
                if task.holder != epoch {
                    findings
                        .stale
                        .push(format!("{at}: of epoch {epoch:?}, held by {:?}", task.holder));
                }
                task.holder = None;
            }
            "task_completed" => {
                let token = stored.data["result"].as_str().unwrap_or_default();
                let epoch = named.get(token).copied();
                if task.is_completed {
                    findings.doubled.push(format!("{at}: completed before"));
                }
                if epoch.is_none() || task.holder != epoch {
                    let holder = task.holder;
                    findings.stale.push(format!("{at}: by epoch {epoch:?}, held by {holder:?}"));
                }
                (task.holder, task.is_completed) = (None, true);
            }
            _ => {}
        }
    }
}

/// Checks that every completed task of an agent has one review and one metric, and each dependent
/// one announcement.
fn check_effects(log: &[Stored], findings: &mut Findings) {
    let mut labels: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut completed: HashMap<&str, u64> = HashMap::new();
    let mut waits: HashMap<&str, (u64, Vec<&str>)> = HashMap::new();
    let (mut reviews, mut metrics, mut told) = (
        HashMap::<&str, usize>::new(),
        HashMap::<&str, usize>::new(),
        HashMap::<&str, usize>::new(),
    );
    for stored in log {
        let task = stored.subject.as_str();
        match stored.kind.as_str() {
            "task_created" => {
                let all = stored.data["labels"].as_array().into_iter().flatten();
                labels.insert(task, all.filter_map(Value::as_str).collect());
                if let Some(parent) = stored.data["parent_task_id"].as_str() {
                    *reviews.entry(parent).or_default() += 1;
                }
            }
            "dependency_added" => {
                let (place, on) = waits.entry(task).or_default();
                *place = stored.seq;
                on.extend(stored.data["to_id"].as_str());
            }
            "task_completed" => _ = completed.insert(task, stored.seq),
            "agent_metrics" => *metrics.entry(task).or_default() += 1,
            "dependency_satisfied" => *told.entry(task).or_default() += 1,
            "hook_error" | "action_error" | "cascade_limit_reached" | "workflow_failed" => {
                findings
                    .broken
                    .push(format!("event {}: {} {}", stored.seq, stored.kind, stored.data));
            }
            _ => {}
        }
    }
    let mut expect = |what: &str, task: &str, found: Option<&usize>, least: usize, most: usize| {
        let found = found.copied().unwrap_or(0);
        let line = format!("{what} of {task}: {found}");
        match found {
            _ if found < least => findings.effects_missing.push(line),
            _ if found > most => findings.effects_doubled.push(line),
            _ => {}
        }
    };
    for (task, labels) in &labels {
        let of_agent = usize::from(completed.contains_key(task) && labels.contains("agent"));
        let reviewed = of_agent * usize::from(!labels.contains("review"));
        expect("reviews", task, reviews.get(task), reviewed, reviewed);
        expect("metrics", task, metrics.get(task), of_agent, of_agent);
        let (place, on) = waits.get(task).cloned().unwrap_or_default();
        let is_released = on.iter().all(|on| completed.contains_key(on));
        // A dependency that was already completed when the task was added never blocked it.
        let waited = on.iter().any(|on| completed.get(on).is_none_or(|seq| *seq > place));
        let (least, most) =
            (usize::from(waited && is_released), usize::from(!on.is_empty() && is_released));
        expect("announcements", task, told.get(task), least, most);
    }
}

/// Returns claims of a type that the claimant does not serve, and claims that skipped a more urgent
/// task of a served type. A task counts as skipped if it had been ready for longer than `slack_ms`
/// and stayed unclaimed for as long afterwards, because another claim in flight may reach the log
/// later.
pub(crate) fn check_urgency(
    operations: &[Operation],
    log: &[Stored],
    slack_ms: i64,
) -> Vec<String> {
    let mut types: HashMap<&str, &[String]> = HashMap::new();
    for operation in operations {
        if let Op::Claim { agent, types: served } = &operation.op {
            types.insert(agent, served);
        }
    }
    let mut claimed: HashMap<&str, i64> = HashMap::new();
    for stored in log.iter().filter(|stored| stored.kind == "task_started") {
        claimed.entry(stored.subject.as_str()).or_insert(stored.at_ms);
    }
    let mut specs: HashMap<&str, (&str, u64, i64)> = HashMap::new();
    let mut ready: HashMap<(&str, u64), BTreeSet<(i64, &str)>> = HashMap::new();
    let mut wrong = Vec::new();
    for stored in log {
        let task = stored.subject.as_str();
        match stored.kind.as_str() {
            "task_created" => {
                let kind = stored.data["type"].as_str().unwrap_or_default();
                let priority = stored.data["priority"].as_u64().unwrap_or_default();
                specs.insert(task, (kind, priority, stored.at_ms));
                ready.entry((kind, priority)).or_default().insert((stored.at_ms, task));
            }
            "task_started" => {
                let Some((kind, priority, since)) = specs.get(task).copied() else { continue };
                ready.entry((kind, priority)).or_default().remove(&(since, task));
                let agent = stored.data["claim"]["agent"].as_str().unwrap_or_default();
                let served = types.get(agent).copied().unwrap_or_default();
                let serves = |kind: &str| served.is_empty() || served.iter().any(|one| one == kind);
                if !serves(kind) {
                    wrong.push(format!("{agent} serves {served:?} and has {task} of type {kind}"));
                }
                let passed =
                    ready.iter().filter(|((kind, urgency), _)| serves(kind) && *urgency < priority);
                let passed = passed.filter_map(|(_, tasks)| tasks.first());
                let is_left =
                    |other: &str| claimed.get(other).is_none_or(|at| at - stored.at_ms > slack_ms);
                let passed = passed
                    .filter(|(since, other)| stored.at_ms - since > slack_ms && is_left(other));
                for (since, other) in passed {
                    let late = stored.at_ms - since;
                    wrong.push(format!(
                        "{agent} took {task}, and {other} was more urgent for {late} ms"
                    ));
                }
            }
            _ => {}
        }
    }
    wrong
}

#[cfg(test)]
mod tests;
