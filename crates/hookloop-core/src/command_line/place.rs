//! Places of `{{variable}}` in a text.

use super::error::{CommandLineError, Position, Unsafe};
use crate::excerpt::first_chars;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValuePlace {
    pub(super) name: &'static str,
    /// The argument that holds the place, in a list.
    pub(super) argument: Option<usize>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl ValuePlace {
    pub(super) fn position(&self) -> Position {
        Position { argument: self.argument, byte: self.start }
    }
}

/// Returns the places of `text`, in order.
pub(super) fn places(
    text: &str,
    known: &[&'static str],
    argument: Option<usize>,
) -> Result<Vec<ValuePlace>, CommandLineError> {
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|at| from + at) {
        let inside = &text[start + 2..];
        let position = Position { argument, byte: start };
        if inside.trim_start().starts_with('.') {
            from = start + 2;
            continue;
        }
        let length = inside.find("}}").ok_or(CommandLineError::Unclosed { at: position })?;
        let name = inside[..length].trim();
        let Some(name) = known.iter().copied().find(|known| *known == name) else {
            let name = first_chars(name, LONGEST_NAME_SHOWN);
            return Err(CommandLineError::Unknown { name, at: position, known: known.to_vec() });
        };
        from = start + 2 + length + 2;
        places.push(ValuePlace { name, argument, start, end: from });
    }
    Ok(places)
}

/// An unknown "name" can be half of the text.
const LONGEST_NAME_SHOWN: usize = 40;

/// Returns the refusal of a value at a place.
pub(super) fn refused(place: &ValuePlace, why: Unsafe) -> CommandLineError {
    CommandLineError::Refused { variable: place.name, at: place.position(), why }
}
