//! Workers that the fleet knows: present, ended, and never seen.

use hookloop_config::effective::EffectiveConfig;
use hookloop_core::fleet::{FleetDirective, FleetDirectiveSet, FleetScope, WorkerName};
use hookloop_core::time::Timestamp;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_fleet::fleet::{Fleet, WorkerPresence, WorkerState};
use hookloop_store::heartbeat::HeartbeatStore;
use hookloop_store::store::Store;

/// Notes of workers that have ended, as many as are kept.
const KEPT: usize = 100;

fn presence(name: &WorkerName) -> WorkerPresence {
    WorkerPresence {
        name: name.clone(),
        machine: "box".to_owned(),
        pid: 1,
        version: "1".to_owned(),
        format: 1,
        state: WorkerState::Working,
        slots: 1,
        agent: "claude".to_owned(),
        projects: Vec::new(),
        running: Vec::new(),
        started: Timestamp(0),
        seen: Timestamp(0),
    }
}

fn drain(fleet: &Fleet, name: &str) -> Result<(), EngineError> {
    let scope = FleetScope::Worker(name.to_owned());
    fleet.order(FleetDirectiveSet { scope, directive: FleetDirective::Drain, reason: None })
}

#[test]
fn an_ended_worker_is_not_listed_but_can_still_be_drained() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("fleet.db")).unwrap();
    let fleet = Fleet::over(Project::new(store, EffectiveConfig::default(), "someone"));
    let refused = |name: &str| drain(&fleet, name).unwrap_err().to_string();
    let unseen = "there is no worker `w`: the fleet has not seen any worker yet";
    assert_eq!(refused("w"), unseen);
    let name: WorkerName = "w".parse().unwrap();
    fleet.show(&presence(&name)).unwrap();
    assert_eq!(refused("v"), "there is no worker `v`: known workers are w");
    drain(&fleet, "w").unwrap();
    fleet.leave(&name).unwrap();
    assert_eq!(fleet.workers().unwrap(), []);
    drain(&fleet, "w").unwrap();
    // It comes back, as itself.
    fleet.show(&presence(&name)).unwrap();
    assert_eq!(fleet.workers().unwrap(), [presence(&name)]);
    // Names of many workers are neither kept nor told without end.
    for number in 0..KEPT + 50 {
        fleet.leave(&format!("old-{number}").parse().unwrap()).unwrap();
    }
    assert_eq!(fleet.log().store().workers().unwrap().len(), KEPT + 1);
    let told = refused("v");
    assert_eq!(told.matches(", ").count(), 19, "{told}");
}
