//! Options of gates: rooms, reports and shared resources.

use hookloop_core::point::Point;

use super::hook_entry::HookEntry;
use super::room::has_room;
use super::values::{Located, OneOrMany, inside};
use crate::yaml::{ConfigComplaint, check_name};

/// Checks that each option of a room or a report has an effect at the point.
pub(super) fn check_room_options(point: &Point, entry: &HookEntry) -> Result<(), ConfigComplaint> {
    let places = [
        ("room", entry.room.as_ref().map(|room| room.at), has_room(point)),
        ("report", entry.report.as_ref().map(|report| report.at), has_room(point)),
        ("exclusive", entry.exclusive.as_ref().map(|name| name.at), has_room(point)),
        ("inputs", entry.inputs.as_ref().map(|inputs| inputs.at), *point == Point::Setup),
    ];
    for (name, at, has_effect) in places {
        if let (Some(at), false) = (at, has_effect) {
            let message = match name {
                "inputs" => "`inputs` is for hooks at `setup`".to_owned(),
                _ => format!("`{name}` is for gates; it has no effect at `{point}`"),
            };
            return Err(ConfigComplaint::new(at, message));
        }
    }
    Ok(())
}

/// Reads patterns of files inside the project.
pub(super) fn patterns_inside(entry: Located<OneOrMany>) -> Result<Vec<String>, ConfigComplaint> {
    let Located { value, at } = entry;
    let patterns = value.into_list().into_iter().map(|pattern| {
        let path = inside(Located { value: pattern, at })?;
        match globset::Glob::new(&path) {
            Ok(_) => Ok(path),
            Err(error) => Err(ConfigComplaint::new(at, format!("`{path}`: {error}"))),
        }
    });
    patterns.collect()
}

pub(super) fn resource_name(entry: Located<String>) -> Result<String, ConfigComplaint> {
    check_name(&entry.value, entry.at)?;
    Ok(entry.value)
}
