//! Strict parsing of JSON objects: no duplicate or unknown field, and no conversion of types.
//!
//! A visitor parses them, because `serde_json::Value` silently keeps the last of two equal fields.
//! The types bound the depth: a value is a text, a number, null, or a list of flat objects.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{NoVerdict, none};

/// Larger than the number of fields in any object of a verdict.
const FIELDS_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct StrictObject(BTreeMap<String, StrictField>);

#[derive(Debug)]
enum StrictField {
    Text(String),
    Number(u64),
    Nothing,
    Objects(Vec<StrictObject>),
}

impl StrictObject {
    /// Parses a text that is exactly one object.
    pub(super) fn read(text: &str) -> Result<StrictObject, NoVerdict> {
        if !text.starts_with('{') {
            return none("it is not one JSON object and nothing else");
        }
        let read = serde_json::from_str(text).map(|ObjectAt::<true>(object)| object);
        read.map_err(|error| NoVerdict { why: format!("it is not one JSON object: {error}") })
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, NoVerdict> {
        match self.0.remove(name) {
            Some(StrictField::Text(text)) => Ok(text),
            Some(_) => none(format!("`{name}` is not a text")),
            None => none(format!("`{name}` is missing")),
        }
    }

    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, NoVerdict> {
        match self.0.remove(name) {
            None | Some(StrictField::Nothing) => Ok(None),
            Some(StrictField::Text(text)) => Ok(Some(text)),
            Some(_) => none(format!("`{name}` is not a text")),
        }
    }

    pub(super) fn optional_number(&mut self, name: &str) -> Result<Option<u64>, NoVerdict> {
        match self.0.remove(name) {
            None | Some(StrictField::Nothing) => Ok(None),
            Some(StrictField::Number(number)) => Ok(Some(number)),
            Some(_) => none(format!("`{name}` is not a number")),
        }
    }

    pub(super) fn objects(
        &mut self,
        name: &str,
        max: usize,
    ) -> Result<Vec<StrictObject>, NoVerdict> {
        match self.0.remove(name) {
            Some(StrictField::Objects(all)) if all.len() <= max => Ok(all),
            Some(StrictField::Objects(_)) => none(format!("`{name}` has more than {max} entries")),
            Some(_) => none(format!("`{name}` is not a list")),
            None => none(format!("`{name}` is missing")),
        }
    }

    /// Checks that all fields have been read.
    pub(super) fn end(&self) -> Result<(), NoVerdict> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => none(format!("`{}` is no field of it", name.escape_debug())),
        }
    }
}

/// An object at a depth: at the top its fields may be lists of objects, below not.
struct ObjectAt<const IS_TOP: bool>(StrictObject);
struct FieldAt<const IS_TOP: bool>(StrictField);

impl<'de, const IS_TOP: bool> Deserialize<'de> for ObjectAt<IS_TOP> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor::<IS_TOP>).map(ObjectAt)
    }
}

impl<'de, const IS_TOP: bool> Deserialize<'de> for FieldAt<IS_TOP> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor::<IS_TOP>).map(FieldAt)
    }
}

struct ObjectVisitor<const IS_TOP: bool>;

impl<'de, const IS_TOP: bool> Visitor<'de> for ObjectVisitor<IS_TOP> {
    type Value = StrictObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StrictObject, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let FieldAt(field) = map.next_value::<FieldAt<IS_TOP>>()?;
            if fields.len() == FIELDS_MAX {
                return Err(A::Error::custom("it has too many fields"));
            }
            if fields.insert(name, field).is_some() {
                return Err(A::Error::custom("a field is there twice"));
            }
        }
        Ok(StrictObject(fields))
    }
}

struct FieldVisitor<const IS_TOP: bool>;

/// Other values are refused: booleans, fractions, negative numbers, objects.
impl<'de, const IS_TOP: bool> Visitor<'de> for FieldVisitor<IS_TOP> {
    type Value = StrictField;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match IS_TOP {
            true => f.write_str("a text, a whole number or a list of findings"),
            false => f.write_str("a text or a whole number"),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StrictField, E> {
        Ok(StrictField::Text(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<StrictField, E> {
        Ok(StrictField::Number(number))
    }

    fn visit_unit<E: Error>(self) -> Result<StrictField, E> {
        Ok(StrictField::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<StrictField, A::Error> {
        if !IS_TOP {
            return Err(A::Error::custom("a list is not what belongs here"));
        }
        let mut all = Vec::new();
        while let Some(ObjectAt(object)) = list.next_element::<ObjectAt<false>>()? {
            all.push(object);
        }
        Ok(StrictField::Objects(all))
    }
}
