//! Names of streams and subjects, and the configuration of the streams.
//!
//! A project's events are in one of [`SHARDS`] streams, by the hash of its name. The order of a
//! project needs one stream, and a stream for each project would cost the server a Raft group each.
//! Every read and write names the project in its subject. So a worker's permissions can be limited
//! to its projects.

use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use hookloop_core::id::{EventId, ProjectName, Subject};
use sha2::{Digest, Sha256};

use crate::heartbeat::{HeldResource, WORKERS};

/// Number of streams that share all projects of an account.
pub(crate) const SHARDS: u16 = 256;
/// Time for which the server remembers an event's id and reports duplicates itself.
///
/// The expected versions make appending idempotent without any time limit.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Age at which the server deletes a heartbeat: longer than the longest lease.
///
/// Without a limit, every claimed task would keep one in memory. An observer sees a deleted
/// heartbeat as a change, so at worst the lease lasts once more.
const PULSE_AGE: Duration = Duration::from_secs(48 * 60 * 60);
/// Largest number of followers of a stream, over all its projects and workers.
///
/// All workers follow the fleet's log. Servers from 2.15 on default to a thousand.
const FOLLOWERS_MAX: i32 = 100_000;
/// Number of words in the subject of an event: `hl.ev.<shard>.<project>.<subject>`.
pub(super) const SUBJECT_WORDS: usize = 5;
/// Number of copies in a cluster.
pub(super) const REPLICAS: usize = 3;
/// The streams of heartbeats and snapshots of all projects.
const PULSE_STREAM: &str = "HL_PULSE";
const SNAPSHOT_STREAM: &str = "HL_SNAPSHOT";

/// The location of one project's events.
#[derive(Clone, Debug)]
pub(crate) struct StreamLayout {
    project: ProjectName,
    shard: String,
}

impl StreamLayout {
    pub(crate) fn new(project: &ProjectName) -> StreamLayout {
        let hash = Sha256::digest(project.as_str());
        let shard = u16::from_be_bytes([hash[0], hash[1]]) % SHARDS;
        StreamLayout { project: project.clone(), shard: format!("{shard:03}") }
    }

    pub(crate) fn stream(&self) -> String {
        format!("HL_EV_{}", self.shard)
    }

    /// Returns the subjects of all events of the project.
    pub(crate) fn all(&self) -> String {
        format!("hl.ev.{}.{}.>", self.shard, self.project)
    }

    pub(crate) fn subject(&self, subject: &Subject) -> String {
        format!("hl.ev.{}.{}.{subject}", self.shard, self.project)
    }

    /// Returns the id by which the server deduplicates an event.
    ///
    /// It contains the project, because a stream may have several copies of one log.
    pub(crate) fn message_id(&self, event: EventId) -> String {
        format!("{}.{event}", self.project)
    }

    pub(crate) fn pulse_stream(&self) -> &'static str {
        PULSE_STREAM
    }

    pub(crate) fn pulse(&self, held: &HeldResource) -> String {
        format!("hl.pulse.{}.{held}", self.project)
    }

    /// Returns the subjects of the heartbeats of workers.
    pub(crate) fn pulses_of_workers(&self) -> String {
        format!("hl.pulse.{}.{WORKERS}*", self.project)
    }

    /// Returns the subjects of all heartbeats in the project.
    pub(crate) fn pulses(&self) -> String {
        format!("hl.pulse.{}.>", self.project)
    }

    pub(crate) fn snapshot_stream(&self) -> &'static str {
        SNAPSHOT_STREAM
    }

    /// Returns the subjects of all snapshots of the project.
    pub(crate) fn snapshots(&self) -> String {
        format!("hl.snap.{}.>", self.project)
    }

    /// Returns the subject of the manifest, which names the last complete snapshot.
    pub(crate) fn snapshot_manifest(&self) -> String {
        format!("hl.snap.{}.manifest", self.project)
    }

    pub(crate) fn snapshot_chunk(&self, snapshot: &str, chunk: usize) -> String {
        format!("hl.snap.{}.{snapshot}.{chunk}", self.project)
    }

    pub(crate) fn snapshot_chunks(&self, snapshot: &str) -> String {
        format!("hl.snap.{}.{snapshot}.*", self.project)
    }

    /// Returns the streams that the project needs, with `replicas` copies each.
    pub(crate) fn streams(&self, replicas: usize) -> [Config; 3] {
        let events = Config {
            name: self.stream(),
            subjects: vec![format!("hl.ev.{}.>", self.shard)],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: replicas,
            max_messages_per_subject: -1,
            max_consumers: FOLLOWERS_MAX,
            duplicate_window: DUPLICATE_WINDOW,
            deny_delete: true,
            deny_purge: true,
            allow_direct: true,
            allow_atomic_publish: true,
            ..Config::default()
        };
        // Only the last heartbeat counts, and none needs to be on disk.
        let pulse = Config {
            name: PULSE_STREAM.to_owned(),
            subjects: vec!["hl.pulse.>".to_owned()],
            storage: StorageType::Memory,
            num_replicas: replicas,
            max_messages_per_subject: 1,
            max_age: PULSE_AGE,
            allow_direct: true,
            ..Config::default()
        };
        let snapshots = Config {
            name: SNAPSHOT_STREAM.to_owned(),
            subjects: vec!["hl.snap.>".to_owned()],
            storage: StorageType::File,
            num_replicas: replicas,
            max_messages_per_subject: 1,
            allow_direct: true,
            ..Config::default()
        };
        [events, pulse, snapshots]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_of_a_project_is_fixed_and_all_shards_are_used() {
        let layout = |name: &str| StreamLayout::new(&name.parse().unwrap());
        assert_eq!(layout("demo").all(), "hl.ev.151.demo.>");
        assert_eq!(layout("demo").subject(&Subject::Cursor), "hl.ev.151.demo._cur");
        let shards: std::collections::HashSet<String> =
            (0..5_000).map(|n| layout(&format!("p{n}")).shard).collect();
        assert_eq!(shards.len(), usize::from(SHARDS));
    }
}
