//! The results of single checks over time: the newest outcome of each check, and its history.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use hookloop_core::checks::{CheckCounts, CheckOutcome};
use hookloop_core::event::EventBody;
use hookloop_core::id::{SessionId, Subject};
use hookloop_core::session::facts::{ChecksRecorded, GateRoom, RecordedCheck};
use hookloop_core::time::Timestamp;
use hookloop_store::log::Seq;

use crate::error::EngineError;
use crate::project::Project;

/// Maximum sessions that are read, the newest.
const SESSIONS_MAX: usize = 1_000;
/// Maximum events of sessions that are read, the newest sessions first.
const EVENTS_MAX: usize = 100_000;
/// Results of checks after which no older session is read.
const RESULTS_MAX: u64 = 20_000_000;
/// Maximum outcomes in the history of a check, the newest.
const HISTORY_MAX: usize = 20;
/// Maximum checks of a gate. Further ones are left out.
const CHECKS_KEPT_MAX: usize = 200_000;

/// The checks of a project's sessions.
#[derive(Debug)]
pub struct ReadChecks {
    pub history: CheckHistory,
    /// Whether older records were left out.
    pub has_older: bool,
}

/// Reads the checks of one session, or of all sessions of a project, the newest sessions first.
pub fn read(project: &Project, session: Option<&SessionId>) -> Result<ReadChecks, EngineError> {
    let sessions: Vec<SessionId> = match session {
        Some(id) => vec![id.clone()],
        None => {
            let rows = project.read(|view| view.sessions(SESSIONS_MAX + 1))?;
            rows.into_iter().map(|row| row.id).collect()
        }
    };
    let mut has_older = sessions.len() > SESSIONS_MAX;
    let mut found: Vec<(Seq, Timestamp, &SessionId, ChecksRecorded)> = Vec::new();
    let mut events_left = EVENTS_MAX;
    let mut results = 0_u64;
    for id in sessions.iter().take(SESSIONS_MAX) {
        if events_left == 0 || results >= RESULTS_MAX {
            has_older = true;
            break;
        }
        let events = project.log().history(&Subject::Session(id.clone()), events_left)?;
        has_older |= events.len() >= events_left;
        events_left = events_left.saturating_sub(events.len());
        for stored in events {
            let EventBody::ChecksRecorded(recorded) = stored.event.body else { continue };
            if recorded.more == 0 {
                results = results.saturating_add(recorded.counts.total());
            }
            found.push((stored.seq, stored.event.at, id, recorded));
        }
    }
    // Sessions may run at the same time.
    found.sort_by_key(|(seq, ..)| *seq);
    let mut history = CheckHistory::default();
    for (_, at, id, recorded) in &found {
        history.apply(id, *at, recorded);
    }
    Ok(ReadChecks { history, has_older })
}

/// The checks of gates, folded from their records in the order of the log.
#[derive(Clone, Debug, Default)]
pub struct CheckHistory {
    gates: BTreeMap<String, GateChecks>,
}

impl CheckHistory {
    /// Applies the next record.
    pub fn apply(&mut self, session: &SessionId, at: Timestamp, recorded: &ChecksRecorded) {
        let name = &recorded.gate;
        let gate = self.gates.entry(name.clone()).or_insert_with(|| GateChecks::new(name));
        gate.add(session, at, recorded);
    }

    /// Returns the gates with at least one whole record, by name.
    pub fn gates(&self) -> impl Iterator<Item = &GateChecks> {
        self.gates.values().filter(|gate| gate.newest.is_some())
    }

    pub fn gate(&self, name: &str) -> Option<&GateChecks> {
        self.gates.get(name).filter(|gate| gate.newest.is_some())
    }
}

/// A run of a gate whose checks were recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRun {
    pub session: SessionId,
    pub at: Timestamp,
    pub tree: Option<String>,
    pub room: Option<GateRoom>,
    pub counts: CheckCounts,
    /// Whether all checks of the run are known by name.
    pub complete: bool,
}

/// The checks of one gate.
#[derive(Clone, Debug)]
pub struct GateChecks {
    pub name: String,
    newest: Option<Arc<RecordedRun>>,
    checks: Vec<CheckTrend>,
    /// The place of each check in `checks`, by its id.
    places: HashMap<String, usize>,
    sessions: HashMap<SessionId, SessionChecks>,
}

/// The checks of a gate in one session. Records of a session build on each other.
#[derive(Clone, Debug, Default)]
struct SessionChecks {
    /// The outcomes in the newest run, by the place of the check.
    known: Vec<Option<CheckOutcome>>,
    /// The first parts of a run that is divided into several events.
    open: Option<RunParts>,
}

/// The lists of a run that is divided into several events.
#[derive(Clone, Debug, Default)]
struct RunParts {
    checks: Vec<RecordedCheck>,
    gone: Vec<String>,
    tree: Option<String>,
    counts: CheckCounts,
    /// The number of events that follow.
    more: u32,
}

impl RunParts {
    /// Whether a record is the next part of the same run.
    fn is_before(&self, recorded: &ChecksRecorded) -> bool {
        self.more.checked_sub(1) == Some(recorded.more)
            && self.tree == recorded.tree
            && self.counts == recorded.counts
    }
}

impl GateChecks {
    fn new(name: &str) -> GateChecks {
        GateChecks {
            name: name.to_owned(),
            newest: None,
            checks: Vec::new(),
            places: HashMap::new(),
            sessions: HashMap::new(),
        }
    }

    pub fn newest(&self) -> Option<&RecordedRun> {
        self.newest.as_deref()
    }

    /// Returns the checks in the order of [`CheckTrend::compare`].
    pub fn checks(&self) -> Vec<&CheckTrend> {
        let mut checks: Vec<&CheckTrend> = self.checks.iter().collect();
        checks.sort_by(|a, b| a.compare(b));
        checks
    }

    /// Returns the slowest checks of the newest run, with their durations in milliseconds.
    pub fn slowest(&self, max: usize) -> Vec<(&str, u64)> {
        let ran = |check: &&CheckTrend| !check.gone && check.outcome != CheckOutcome::Skipped;
        let timed = self.checks.iter().filter(ran);
        let mut timed: Vec<(&str, u64)> =
            timed.filter_map(|check| Some((check.id.as_str(), check.ms?))).collect();
        timed.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        timed.truncate(max);
        timed
    }

    /// Adds a part of a run. A run whose other parts are missing is left out.
    fn add(&mut self, session: &SessionId, at: Timestamp, recorded: &ChecksRecorded) {
        let of_session = self.sessions.entry(session.clone()).or_default();
        let open = of_session.open.take().filter(|open| open.is_before(recorded));
        let mut parts = open.unwrap_or_default();
        parts.checks.extend(recorded.checks.iter().cloned());
        parts.gone.extend(recorded.gone.iter().cloned());
        parts.tree.clone_from(&recorded.tree);
        parts.counts = recorded.counts;
        parts.more = recorded.more;
        if parts.more > 0 {
            of_session.open = Some(parts);
        } else {
            self.finish(session, at, recorded, &parts);
        }
    }

    /// Adds a run with all of its parts.
    fn finish(
        &mut self,
        session: &SessionId,
        at: Timestamp,
        last: &ChecksRecorded,
        parts: &RunParts,
    ) {
        let listed = parts.checks.len() as u64;
        let is_listed = !last.whole || listed >= last.counts.total();
        let run = Arc::new(RecordedRun {
            session: session.clone(),
            at,
            tree: last.tree.clone(),
            room: last.room.clone(),
            counts: last.counts,
            complete: last.complete && is_listed,
        });
        let known = &mut self.sessions.entry(session.clone()).or_default().known;
        if last.whole {
            known.clear();
        }
        for listed in &parts.checks {
            let Some(place) = place_of(listed, &run, &mut self.places, &mut self.checks) else {
                continue;
            };
            if known.len() <= place {
                known.resize(place + 1, None);
            }
            known[place] = Some(listed.outcome);
            let check = &mut self.checks[place];
            check.ms = listed.ms.or(check.ms);
        }
        for id in &parts.gone {
            let outcome = self.places.get(id).and_then(|place| known.get_mut(*place));
            if let Some(outcome) = outcome {
                *outcome = None;
            }
        }
        let failed = known.iter().filter(|outcome| **outcome == Some(CheckOutcome::Failed)).count();
        let names_all_failures = failed as u64 >= last.counts.failed;
        for (place, check) in self.checks.iter_mut().enumerate() {
            match known.get(place).copied().flatten() {
                Some(outcome) => check.add(outcome, &run),
                None if run.complete => check.gone = true,
                // Output that names only failures does not name a check that was fixed or removed.
                None if names_all_failures && check.outcome == CheckOutcome::Failed => {
                    check.gone = true;
                }
                None => {}
            }
        }
        self.newest = Some(run);
    }
}

/// Returns the place of a check, which may be new; none if the gate has too many checks.
fn place_of(
    listed: &RecordedCheck,
    run: &Arc<RecordedRun>,
    places: &mut HashMap<String, usize>,
    checks: &mut Vec<CheckTrend>,
) -> Option<usize> {
    if let Some(place) = places.get(&listed.id) {
        return Some(*place);
    }
    let place = checks.len();
    if place >= CHECKS_KEPT_MAX {
        return None;
    }
    places.insert(listed.id.clone(), place);
    checks.push(CheckTrend::new(listed, run));
    Some(place)
}

/// One check of a gate over time.
#[derive(Clone, Debug)]
pub struct CheckTrend {
    pub id: String,
    pub outcome: CheckOutcome,
    /// The last known duration in milliseconds.
    pub ms: Option<u64>,
    /// The newest run with the check.
    pub run: Arc<RecordedRun>,
    /// The time at which this outcome began.
    pub since: Timestamp,
    /// The number of runs with the check.
    pub runs: u32,
    pub failures: u32,
    /// The number of changes between `passed` and `failed`.
    pub flips: u32,
    /// The last outcomes, oldest first, at most [`HISTORY_MAX`].
    pub history: VecDeque<CheckOutcome>,
    /// Whether the newest run of the gate did not have the check.
    pub gone: bool,
    /// The last outcome that was not `skipped`.
    decided: Option<CheckOutcome>,
}

impl CheckTrend {
    fn new(listed: &RecordedCheck, run: &Arc<RecordedRun>) -> CheckTrend {
        CheckTrend {
            id: listed.id.clone(),
            outcome: listed.outcome,
            ms: None,
            run: Arc::clone(run),
            since: run.at,
            runs: 0,
            failures: 0,
            flips: 0,
            history: VecDeque::new(),
            gone: false,
            decided: None,
        }
    }

    fn add(&mut self, outcome: CheckOutcome, run: &Arc<RecordedRun>) {
        if self.outcome != outcome {
            self.since = run.at;
        }
        self.outcome = outcome;
        self.run = Arc::clone(run);
        self.gone = false;
        self.runs = self.runs.saturating_add(1);
        if outcome == CheckOutcome::Failed {
            self.failures = self.failures.saturating_add(1);
        }
        if outcome != CheckOutcome::Skipped {
            let is_flip = self.decided.is_some_and(|decided| decided != outcome);
            self.flips = self.flips.saturating_add(u32::from(is_flip));
            self.decided = Some(outcome);
        }
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(outcome);
    }

    pub fn is_failing(&self) -> bool {
        self.outcome == CheckOutcome::Failed && !self.gone
    }

    /// Whether the check is skipped, and was not skipped in one of its last runs.
    pub fn is_newly_skipped(&self) -> bool {
        let is_skipped = self.outcome == CheckOutcome::Skipped && !self.gone;
        is_skipped && self.history.iter().any(|outcome| *outcome != CheckOutcome::Skipped)
    }

    /// Compares checks for a list: failed, skipped, passed, and then those that are gone, each by id.
    pub fn compare(&self, other: &CheckTrend) -> Ordering {
        let key = |check: &CheckTrend| {
            let rank = match check.outcome {
                CheckOutcome::Failed => 0_u8,
                CheckOutcome::Skipped => 1,
                CheckOutcome::Passed => 2,
            };
            (check.gone, rank)
        };
        key(self).cmp(&key(other)).then_with(|| self.id.cmp(&other.id))
    }
}

#[cfg(test)]
mod tests;
