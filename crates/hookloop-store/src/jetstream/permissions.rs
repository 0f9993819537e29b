//! The least permissions that a user of the servers needs for some projects.

use std::str::FromStr;

use hookloop_core::id::ProjectName;

use super::layout::StreamLayout;

/// The role of a user. Each role has the permissions of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NatsRole {
    /// Reads, follows, and adds, claims and completes tasks.
    Worker,
    /// Also stores snapshots of long logs, and lists all workers.
    Dispatcher,
    /// Also creates missing streams, and changes those of earlier versions.
    Admin,
}

impl FromStr for NatsRole {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "worker" => Ok(NatsRole::Worker),
            "dispatcher" => Ok(NatsRole::Dispatcher),
            "admin" => Ok(NatsRole::Admin),
            _ => Err(format!("`{text}` is not a role: `worker`, `dispatcher` or `admin`")),
        }
    }
}

/// The subjects that a user may publish and subscribe to. All others are denied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsPermissions {
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
}

impl NatsPermissions {
    /// Returns the permissions of a user whose answers arrive on subjects that start with `inbox`.
    pub fn new(projects: &[ProjectName], role: NatsRole, inbox: &str) -> NatsPermissions {
        let mut publish: Vec<String> = Vec::new();
        // A user of any project reads the fleet's directives.
        let fleet = ProjectName::of_fleet();
        for project in projects.iter().chain([&fleet]) {
            for subject in of_project(&StreamLayout::new(project), role) {
                if !publish.contains(&subject) {
                    publish.push(subject);
                }
            }
        }
        NatsPermissions { publish, subscribe: vec![format!("{inbox}.>")] }
    }
}

fn of_project(layout: &StreamLayout, role: NatsRole) -> Vec<String> {
    let (stream, events) = (layout.stream(), layout.all());
    let (pulse, beats) = (layout.pulse_stream(), layout.pulses());
    let (snapshot, views) = (layout.snapshot_stream(), layout.snapshots());
    let streams = [stream.as_str(), pulse, snapshot];
    let mut subjects = vec![events.clone(), beats.clone()];
    for (stream, subject) in [(streams[0], &events), (pulse, &beats), (snapshot, &views)] {
        subjects.push(format!("$JS.API.DIRECT.GET.{stream}.{subject}"));
    }
    subjects.push(format!("$JS.API.CONSUMER.CREATE.{stream}.*.{events}"));
    subjects.push(format!("$JS.FC.{stream}.>"));
    subjects.extend(streams.map(|stream| format!("$JS.API.STREAM.INFO.{stream}")));
    if role >= NatsRole::Dispatcher {
        subjects.extend([views, format!("$JS.API.STREAM.PURGE.{snapshot}")]);
        // One request lists all workers.
        subjects.push(format!("$JS.API.DIRECT.GET.{pulse}"));
    }
    if role >= NatsRole::Admin {
        subjects.extend(streams.map(|stream| format!("$JS.API.STREAM.CREATE.{stream}")));
        // Streams of earlier versions are changed so that they cannot be purged.
        subjects.push(format!("$JS.API.STREAM.UPDATE.{stream}"));
    }
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(projects: &[&str], role: NatsRole) -> Vec<String> {
        let projects: Vec<ProjectName> =
            projects.iter().map(|name| name.parse().unwrap()).collect();
        NatsPermissions::new(&projects, role, "_INBOX_w").publish
    }

    #[test]
    fn worker_permissions_are_limited_to_the_project() {
        for subject in publish(&["demo"], NatsRole::Worker) {
            let is_about_a_stream =
                subject.starts_with("$JS.API.STREAM.INFO.") || subject.starts_with("$JS.FC.");
            let is_named = [".demo.>", "._fleet.>"].iter().any(|end| subject.ends_with(end));
            assert!(is_named || is_about_a_stream, "{subject}");
        }
    }

    #[test]
    fn each_role_includes_the_permissions_of_the_lower_role() {
        let [worker, dispatcher, admin] = [NatsRole::Worker, NatsRole::Dispatcher, NatsRole::Admin]
            .map(|role| publish(&["demo"], role));
        assert!(worker.iter().all(|subject| dispatcher.contains(subject)));
        assert!(dispatcher.iter().all(|subject| admin.contains(subject)));
        assert_eq!((worker.len(), dispatcher.len(), admin.len()), (18, 22, 28));
    }

    #[test]
    fn permissions_shared_by_projects_are_listed_once() {
        assert_eq!(publish(&["a", "b"], NatsRole::Worker).len(), 10 + 8 + 8);
    }
}
