//! Checks of a night, based on the log, the forge and the repository only.
//!
//! - each task is completed once and merged once, by one request and one commit, after its
//!   dependencies
//! - each event of a session on a task comes from the holder at that position in the log
//! - each claim that expired belonged to a worker that was down
//! - each claim of a worker that was down is continued or reclaimed soon
//! - each session ended, and no event of it follows its end

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::claims::{ACTOR, Claim, End, Told};
use super::strike::{Absence, Kind};
use super::yard::Task;
use crate::stream::Stored;

/// Time beyond the lease that an orphaned task may wait, in 99 of 100 cases.
pub(crate) const PICKED_UP_MS: u64 = 5_000;
/// The same limit for a quick night. Its few orphaned tasks have a maximum instead of a percentile,
/// and any machine must meet it: this only checks that their work continues.
pub(crate) const PICKED_UP_QUICK_MS: u64 = 30_000;
/// Time by which writes that were in flight when a worker was struck have arrived.
const IN_FLIGHT_MS: u64 = 1_000;

/// Input of the checks.
pub(crate) struct Evidence<'e> {
    /// Events of the project only.
    pub(crate) log: &'e [Stored],
    pub(crate) tasks: &'e [Task],
    pub(crate) absences: &'e [Absence],
    pub(crate) lease_ms: u64,
    /// Time beyond a lease until a task is continued, for 99 of 100 tasks.
    pub(crate) picked_up_ms: u64,
    /// The worker of each session, as reported by the workers: a session may have died before it
    /// was in the log.
    pub(crate) begun: HashMap<String, String>,
    /// Returns the time of the last heartbeat of a claim before a given time.
    pub(crate) last_beat: &'e dyn Fn(&Claim, u64) -> Option<u64>,
}

/// Counts of the checks, and one line for each violation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) violations: Vec<(&'static str, String)>,
    pub(crate) completed: usize,
    pub(crate) claims: usize,
    pub(crate) expired: usize,
    /// Number of events of sessions on tasks, each of which could have been stale.
    pub(crate) by_holders: usize,
    pub(crate) orphans: Vec<Orphan>,
}

/// A task whose worker was down, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Orphan {
    pub(crate) task: String,
    pub(crate) worker: String,
    pub(crate) kind: Kind,
    pub(crate) fate: Fate,
    /// Time from the fault until the claim expired, if it did.
    pub(crate) freed_ms: Option<u64>,
    /// Time from the fault until a worker continued the task.
    pub(crate) waited_ms: u64,
    /// Time from the last received heartbeat until a worker continued the task.
    pub(crate) silent_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Claimed again.
    Taken,
    /// Continued by the same worker.
    Resumed,
}

impl Found {
    pub(crate) fn add(&mut self, kind: &'static str, line: String) {
        self.violations.push((kind, line));
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.violations.iter().filter(|(of, _)| *of == kind).count()
    }
}

pub(crate) fn judge(evidence: &Evidence<'_>) -> Found {
    let told = Told::of(evidence.log);
    let mut found =
        Found { completed: told.completed, claims: told.claims.len(), ..Found::default() };
    check_tasks(evidence, &mut found);
    check_writes(evidence.log, &mut found);
    check_expired(evidence, &told, &mut found);
    check_orphans(evidence, &told, &mut found);
    check_sessions(evidence.log, &told, &mut found);
    found
}

/// Checks that each task is completed and merged once, and is not reopened.
fn check_tasks(evidence: &Evidence<'_>, found: &mut Found) {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let mut last: HashMap<&str, &str> = HashMap::new();
    for stored in evidence.log {
        *counts.entry((&stored.subject, &stored.kind)).or_default() += 1;
        if stored.kind.starts_with("task_") {
            last.insert(&stored.subject, &stored.kind);
        }
    }
    for Task { id, .. } in evidence.tasks {
        for kind in ["task_completed", "task_merged"] {
            match counts.get(&(id.as_str(), kind)).copied().unwrap_or(0) {
                0 => found.add("undone", format!("{id}: no {kind}")),
                1 => {}
                n => found.add("doubled", format!("{id}: {n} times {kind}")),
            }
        }
        let end = last.get(id.as_str()).copied().unwrap_or_default();
        if counts.contains_key(&(id.as_str(), "task_completed")) && end != "task_completed" {
            found.add("doubled", format!("{id}: {end} after it was completed"));
        }
    }
}

/// Checks that a session writes events of a task only while it holds it.
fn check_writes(log: &[Stored], found: &mut Found) {
    let mut holders: HashMap<&str, (&str, u64)> = HashMap::new();
    for stored in log.iter().filter(|stored| !stored.subject.starts_with('_')) {
        let (task, at) = (stored.subject.as_str(), stored.seq);
        let claim = &stored.data["claim"];
        if let (Some(agent), Some(epoch)) = (claim["agent"].as_str(), claim["epoch"].as_u64()) {
            if let Some((holder, _)) = holders.insert(task, (agent, epoch)) {
                found.add("stale", format!("{task}: claimed at {at}, while {holder} had it"));
            }
            continue;
        }
        let holder = holders.get(task).copied();
        if stored.actor.starts_with(ACTOR) {
            found.by_holders += 1;
            let epoch = stored.data["epoch"].as_u64();
            let is_its = holder.is_some_and(|(agent, of)| {
                agent == stored.actor && epoch.is_none_or(|epoch| epoch == of)
            });
            if !is_its {
                let (kind, actor) = (&stored.kind, &stored.actor);
                let line = format!("{task}: {kind} at {at} by {actor}, held by {holder:?}");
                found.add("stale", line);
            }
        }
        let ends = ["task_released", "task_submitted", "task_completed", "task_blocked"];
        if ends.contains(&stored.kind.as_str()) {
            holders.remove(task);
        }
    }
}

/// Checks that no claim expired whose worker was up for the whole lease.
fn check_expired(evidence: &Evidence<'_>, told: &Told, found: &mut Found) {
    for claim in &told.claims {
        let Some((at_ms, End::Expired)) = claim.end else { continue };
        found.expired += 1;
        let worker = evidence.worker(told, claim);
        let since = at_ms.saturating_sub(evidence.lease_ms);
        let was_away = evidence.absences.iter().any(|absence| {
            matches!(absence.kind, Kind::Killed | Kind::Stopped)
                && Some(absence.worker.as_str()) == worker
                && absence.from_ms <= at_ms
                && absence.until_ms.is_none_or(|until| until >= since)
        });
        if !was_away {
            let beat = (evidence.last_beat)(claim, at_ms).map(|beat| at_ms - beat);
            let Claim { task, epoch, .. } = claim;
            let line = format!(
                "{task}: claim {epoch} of {worker:?} ended at {at_ms}, last beat {beat:?} ms before"
            );
            found.add("false reclaim", line);
        }
    }
}

fn check_orphans(evidence: &Evidence<'_>, told: &Told, found: &mut Found) {
    for absence in evidence.absences {
        if !matches!(absence.kind, Kind::Killed | Kind::Stopped) {
            continue;
        }
        let struck = absence.from_ms;
        for claim in &told.claims {
            let is_its = evidence.worker(told, claim) == Some(absence.worker.as_str())
                && claim.from_ms <= struck;
            let is_open = match claim.end {
                None => true,
                Some((at_ms, End::Expired)) => at_ms > struck,
                Some((at_ms, _)) => at_ms > struck + IN_FLIGHT_MS,
            };
            if !is_its || !is_open {
                continue;
            }
            match orphan(evidence, told, absence, claim) {
                Some(orphan) => found.orphans.push(orphan),
                None => {
                    let line = format!("{}: no worker continued it", claim.task);
                    found.add("forsaken", line);
                }
            }
        }
    }
    let bar = evidence.lease_ms + evidence.picked_up_ms;
    let waits = found.orphans.iter().map(|orphan| orphan.waited_ms).collect();
    if Spread::of(waits).is_some_and(|spread| spread.p99 > bar) {
        let slow: Vec<Orphan> =
            found.orphans.iter().filter(|orphan| orphan.waited_ms > bar).cloned().collect();
        slow.iter().for_each(|orphan| found.add("slow", format!("{orphan:?}")));
    }
}

/// Returns the result of a claim whose worker was struck, or `None` if no worker continued it.
fn orphan(
    evidence: &Evidence<'_>,
    told: &Told,
    absence: &Absence,
    claim: &Claim,
) -> Option<Orphan> {
    let struck = absence.from_ms;
    let next =
        told.claims.iter().filter(|next| next.task == claim.task && next.epoch > claim.epoch);
    let taken = next.map(|next| next.from_ms).min();
    let resumed = told.session(&claim.agent).and_then(|session| {
        let by_itself =
            session.resumed.iter().filter(|(at, by)| *at > struck && *by == absence.worker);
        by_itself.map(|(at, _)| *at).min()
    });
    // A stopped worker whose lease did not expire continues without an event, at the end of the
    // stop.
    let is_missed = claim.end.is_some_and(|(_, end)| end == End::Expired);
    let went_on = absence.until_ms.filter(|_| absence.kind == Kind::Stopped && !is_missed);
    let resumed = resumed.into_iter().chain(went_on).min();
    let (at, fate) = match (taken, resumed) {
        (Some(taken), Some(resumed)) if resumed < taken => (resumed, Fate::Resumed),
        (Some(taken), _) => (taken, Fate::Taken),
        (None, Some(resumed)) => (resumed, Fate::Resumed),
        (None, None) => return None,
    };
    let freed = claim.end.filter(|(_, end)| *end == End::Expired);
    Some(Orphan {
        task: claim.task.clone(),
        worker: absence.worker.clone(),
        kind: absence.kind,
        fate,
        freed_ms: freed.map(|(at_ms, _)| at_ms - struck),
        waited_ms: at.saturating_sub(struck),
        silent_ms: (evidence.last_beat)(claim, struck).map(|beat| at.saturating_sub(beat)),
    })
}

/// Checks that each session has an end, and that no event follows it.
fn check_sessions(log: &[Stored], told: &Told, found: &mut Found) {
    for (id, session) in &told.sessions {
        if !session.is_ended {
            found.add("open session", format!("{id} of {}", session.worker));
        }
    }
    let mut ended = HashSet::new();
    for stored in log.iter().filter(|stored| stored.subject.starts_with("_s-")) {
        if ended.contains(&stored.subject) {
            let (subject, kind) = (&stored.subject, &stored.kind);
            found.add("stale", format!("{subject}: {kind} at {} after its end", stored.seq));
        }
        if stored.kind == "session_ended" {
            ended.insert(stored.subject.clone());
        }
    }
}

impl Evidence<'_> {
    /// Returns the worker of a claim.
    fn worker<'s>(&'s self, told: &'s Told, claim: &Claim) -> Option<&'s str> {
        let known = told.session(&claim.agent).map(|session| session.worker.as_str());
        let id = claim.agent.strip_prefix(ACTOR)?;
        known.filter(|worker| !worker.is_empty()).or_else(|| Some(self.begun.get(id)?.as_str()))
    }
}

/// Commits and requests of the base branch.
pub(crate) struct Base {
    /// Its first-parent commits, oldest first, with their messages.
    pub(crate) commits: Vec<(String, String)>,
    /// The branch of each request, and its merge commit.
    pub(crate) requests: Vec<(String, Option<String>)>,
    /// Commits that fail the gate.
    pub(crate) red: Vec<String>,
}

/// Checks that each task has one request and one commit, after those of its dependencies.
pub(crate) fn check_base(evidence: &Evidence<'_>, base: &Base, found: &mut Found) {
    let place = |commit: &str| base.commits.iter().position(|(of, _)| of == commit);
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for stored in evidence.log.iter().filter(|stored| stored.kind == "task_merged") {
        match stored.data["commit"].as_str().and_then(place) {
            Some(place) => _ = places.insert(&stored.subject, place),
            None => found.add("delivery", format!("{}: merged as nothing", stored.subject)),
        }
    }
    for task in evidence.tasks {
        let id = task.id.as_str();
        let of_it: Vec<_> = base
            .requests
            .iter()
            .filter(|(branch, _)| branch.ends_with(&format!("/{id}")))
            .collect();
        match of_it[..] {
            [(_, Some(_))] => {}
            ref others => found.add("delivery", format!("{id}: requests: {others:?}")),
        }
        for earlier in &task.depends_on {
            if places.get(earlier.as_str()) >= places.get(id) && places.contains_key(id) {
                found.add("delivery", format!("{id} was merged before {earlier}"));
            }
        }
    }
    let distinct: HashSet<&usize> = places.values().collect();
    if distinct.len() != places.len() {
        found.add("delivery", "two tasks were merged as one commit".to_owned());
    }
    // The first commit is the initial one.
    let (commits, tasks) = (base.commits.len() - 1, evidence.tasks.len());
    if commits != tasks {
        found.add("delivery", format!("{commits} commits for {tasks} tasks"));
    }
    base.red.iter().for_each(|commit| found.add("red", commit.clone()));
}

/// Median, 99th percentile and maximum of some durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl Spread {
    pub(crate) fn of(mut times: Vec<u64>) -> Option<Spread> {
        times.sort_unstable();
        let max = *times.last()?;
        let at = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1];
        Some(Spread { p50: at(50), p99: at(99), max })
    }
}
