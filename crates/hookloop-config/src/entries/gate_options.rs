//! Options of gates: rooms, reports and shared resources.

use hookloop_core::point::Point;

use super::hook_entry::HookEntry;
use super::room::has_room;
use super::values::Located;
use crate::yaml::{ConfigComplaint, check_name};

/// Checks that each option of a room or a report has an effect at the point.
pub(super) fn check_room_options(point: &Point, entry: &HookEntry) -> Result<(), ConfigComplaint> {
    let places = [
        ("room", entry.room.as_ref().map(|room| room.at), has_room(point)),
        ("report", entry.report.as_ref().map(|report| report.at), has_room(point)),
        ("base_tests", entry.base_tests.as_ref().map(|tests| tests.at), *point == Point::Stop),
        ("strength", entry.strength.as_ref().map(|strength| strength.at), *point == Point::Stop),
        ("exclusive", entry.exclusive.as_ref().map(|name| name.at), has_room(point)),
        ("inputs", entry.inputs.as_ref().map(|inputs| inputs.at), *point == Point::Setup),
    ];
    for (name, at, has_effect) in places {
        if let (Some(at), false) = (at, has_effect) {
            let message = match name {
                "inputs" => "`inputs` is for hooks at `setup`".to_owned(),
                "base_tests" | "strength" => format!("`{name}` is for gates at `stop`"),
                _ => format!("`{name}` is for gates; it has no effect at `{point}`"),
            };
            return Err(ConfigComplaint::new(at, message));
        }
    }
    Ok(())
}

pub(super) fn resource_name(entry: Located<String>) -> Result<String, ConfigComplaint> {
    check_name(&entry.value, entry.at)?;
    Ok(entry.value)
}
