//! Looks after the directory in which the hooks of a session run.

use std::cell::RefCell;

use hookloop_core::hook::Hook;
use hookloop_core::point::Point;
use hookloop_git::snapshot::Snapshots;
use hookloop_hooks::gate_room::has_room;
use hookloop_hooks::hook_sequence::PlaceGuard;

use super::gate_results::named_files;
use super::place_damage::CurrentPlace;
use super::room_entry::SessionRoom;
use super::world::SessionUpdate;

/// Checks the working directory and restores the room. A hook may run code of the agent, which changes both.
pub(super) struct LiveGuard<'g> {
    /// The working directory of a session with a claim.
    pub(super) current: Option<CurrentPlace<'g>>,
    pub(super) room: RefCell<&'g mut SessionRoom>,
    pub(super) snapshots: Option<&'g Snapshots>,
    pub(super) point: &'g Point,
    pub(super) notice: &'g dyn Fn(SessionUpdate<'_>),
}

impl PlaceGuard for LiveGuard<'_> {
    fn prepare(&self) -> Result<(), String> {
        if let Some(current) = &self.current {
            current.check(true).map_err(|damage| damage.to_string())?;
        }
        self.room.borrow_mut().before_hook(self.point, self.snapshots)
    }

    fn restore(&self, hooks: &[Hook]) -> Result<usize, String> {
        // The result of a setup is recorded before files are restored.
        let Some(snapshots) = self.snapshots.filter(|_| *self.point != Point::Setup) else {
            return Ok(0);
        };
        let in_room: Vec<String> =
            hooks.iter().filter(|hook| has_room(hook)).map(|hook| hook.name.clone()).collect();
        let count = self.room.borrow_mut().restore(snapshots)?;
        if count > 0 {
            (self.notice)(SessionUpdate::ParallelRepeats { gates: &named_files(&in_room), count });
        }
        Ok(count)
    }
}
