//! The engine of a log that is on servers.

use crate::heartbeat::HeartbeatStore;
use crate::log::EventLog;
use crate::snapshot::SnapshotStore;

/// The engine of a log on servers: events, heartbeats and snapshots.
pub trait LogEngine: EventLog + HeartbeatStore + SnapshotStore {}

impl<T: EventLog + HeartbeatStore + SnapshotStore> LogEngine for T {}
