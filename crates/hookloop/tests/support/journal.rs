//! Random commands, their results, and the events that the log must have because of them.

use std::collections::HashMap;

use serde_json::Value;

use hookloop_testkit::SeededRandom;

/// Commands are about one of this many newest tasks.
const RECENT: u64 = 24;

/// A command, with a unique mark if it has a text.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Add { id: String, labels: Vec<&'static str>, depends_on: Vec<String> },
    Start { id: String, mark: String },
    Complete { id: String, mark: String },
    Block { id: String, mark: String },
    Unblock { id: String },
    Delete { id: String },
    Depend { id: String, on: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Acknowledged,
    Refused,
    /// The process was killed before it printed a result.
    None,
}

#[derive(Default)]
pub(crate) struct Journal {
    entries: Vec<(Ask, Answer)>,
    /// Tasks that were acknowledged.
    tasks: Vec<String>,
}

impl Ask {
    pub(crate) fn any(random: &mut SeededRandom, journal: &Journal, cycle: u64) -> Ask {
        let mark = format!("mark-{cycle}");
        let dice = random.below(100);
        if dice < 40 || journal.tasks.len() < 4 {
            return Ask::add(random, journal, cycle);
        }
        let id = journal.recent(random);
        match dice {
            40..65 => Ask::Complete { id, mark },
            65..75 => Ask::Start { id, mark },
            75..82 => Ask::Block { id, mark },
            82..89 => Ask::Unblock { id },
            89..92 => Ask::Delete { id },
            _ => Ask::Depend { id, on: journal.recent(random) },
        }
    }

    fn add(random: &mut SeededRandom, journal: &Journal, cycle: u64) -> Ask {
        let labels = if random.below(2) == 0 { vec!["agent"] } else { vec![] };
        let wanted = random.below(4).min(journal.tasks.len() as u64);
        let mut depends_on: Vec<String> = (0..wanted).map(|_| journal.recent(random)).collect();
        depends_on.sort();
        depends_on.dedup();
        Ask::Add { id: format!("task-{cycle:07}"), labels, depends_on }
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        let words: Vec<&str> = match self {
            Ask::Add { id, labels, depends_on } => {
                let labels = labels.iter().flat_map(|label| ["--label", label]);
                let edges = depends_on.iter().flat_map(|on| ["--depends-on", on]);
                ["add", id, "--id", id].into_iter().chain(labels).chain(edges).collect()
            }
            Ask::Start { id, mark } => vec!["start", id, "--context", mark],
            Ask::Complete { id, mark } => vec!["complete", id, "--result", mark],
            Ask::Block { id, mark } => vec!["block", id, "--reason", mark],
            Ask::Unblock { id } => vec!["unblock", id],
            Ask::Delete { id } => vec!["delete", id],
            Ask::Depend { id, on } => vec!["dep", "add", id, "--on", on],
        };
        ["task"].into_iter().chain(words).map(str::to_owned).collect()
    }

    /// Returns the events of the command: either all or none are stored.
    fn traces(&self) -> Vec<Trace> {
        match self {
            Ask::Add { id, depends_on, .. } => {
                let edges = depends_on.iter().map(|on| Trace::new("dependency_added", id, on));
                [Trace::new("task_created", id, id)].into_iter().chain(edges).collect()
            }
            Ask::Start { id, mark } => vec![Trace::new("task_started", id, mark)],
            Ask::Complete { id, mark } => vec![Trace::new("task_completed", id, mark)],
            Ask::Block { id, mark } => vec![Trace::new("task_blocked", id, mark)],
            Ask::Unblock { id } => vec![Trace::new("task_unblocked", id, "")],
            Ask::Delete { id } => vec![Trace::new("task_deleted", id, "")],
            Ask::Depend { id, on } => vec![Trace::new("dependency_added", id, on)],
        }
    }
}

/// An event, identified by its type, its task and its mark.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Trace {
    kind: String,
    task: String,
    mark: String,
}

impl Trace {
    fn new(kind: &str, task: &str, mark: &str) -> Trace {
        Trace { kind: kind.to_owned(), task: task.to_owned(), mark: mark.to_owned() }
    }

    fn of(event: &Value) -> Trace {
        let kind = event["type"].as_str().unwrap();
        let mark = match kind {
            "task_created" => &event["data"]["goal"],
            "task_started" => &event["data"]["context"],
            "task_completed" => &event["data"]["result"],
            "task_blocked" => &event["data"]["reason"],
            "dependency_added" => &event["data"]["to_id"],
            _ => &Value::Null,
        };
        Trace::new(kind, event["node_id"].as_str().unwrap(), mark.as_str().unwrap_or_default())
    }
}

/// The number of acknowledged occurrences of an event, and of those without a result.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    sure: usize,
    possible: usize,
}

impl Journal {
    pub(crate) fn record(&mut self, ask: Ask, answer: Answer) {
        if let (Ask::Add { id, .. }, Answer::Acknowledged) = (&ask, answer) {
            self.tasks.push(id.clone());
        }
        self.entries.push((ask, answer));
    }

    fn recent(&self, random: &mut SeededRandom) -> String {
        let all = self.tasks.len() as u64;
        let back = random.below(RECENT.min(all)) + 1;
        self.tasks[(all - back) as usize].clone()
    }

    /// Checks that the log has all acknowledged events, and no others except those without a
    /// result.
    pub(crate) fn assert_kept(&self, events: &[Value]) {
        let mut found: HashMap<Trace, usize> = HashMap::new();
        for event in events {
            *found.entry(Trace::of(event)).or_default() += 1;
        }
        let times = |trace: &Trace| found.get(trace).copied().unwrap_or(0);
        for (trace, Expected { sure, possible }) in self.expected() {
            let found = times(&trace);
            let fits = (sure..=sure + possible).contains(&found);
            assert!(fits, "{trace:?}: {found} times, {sure} acknowledged, {possible} unanswered");
        }
        for (ask, _) in &self.entries {
            if let Ask::Add { .. } = ask {
                let counts: Vec<usize> = ask.traces().iter().map(times).collect();
                assert!(counts.iter().all(|count| *count == counts[0]), "{ask:?}: {counts:?}");
            }
        }
    }

    fn expected(&self) -> HashMap<Trace, Expected> {
        let mut expected: HashMap<Trace, Expected> = HashMap::new();
        for (ask, answer) in &self.entries {
            for trace in ask.traces() {
                let entry = expected.entry(trace).or_default();
                match answer {
                    Answer::Acknowledged => entry.sure += 1,
                    Answer::None => entry.possible += 1,
                    Answer::Refused => {}
                }
            }
        }
        expected
    }

    /// Checks that the test was meaningful: many processes were killed, and many were not.
    pub(crate) fn assert_varied(&self, cycles: u64) {
        let count = |answer| self.entries.iter().filter(|entry| entry.1 == answer).count() as u64;
        let (acknowledged, killed) = (count(Answer::Acknowledged), count(Answer::None));
        let enough = acknowledged >= cycles / 10 && killed >= cycles / 10;
        assert!(enough, "{acknowledged} acknowledged, {killed} killed");
    }
}
