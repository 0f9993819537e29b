//! A JSON object that keeps the order of its keys and the text of its values.
//!
//! Node.js reads conditions of `exports` in their order.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::EvidenceError;

/// Maximum keys of an object.
const KEYS_MAX: usize = 5_000;

/// A JSON object with its keys in order. A later value of a key replaces an earlier one.
#[derive(Clone, Debug, Default)]
pub(super) struct OrderedObject {
    entries: Vec<(String, Box<RawValue>)>,
}

impl OrderedObject {
    pub(super) fn parse(text: &str) -> Result<OrderedObject, EvidenceError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let object: OrderedObject =
            serde_json::from_str(text).map_err(|_| malformed("it is not a JSON object"))?;
        // A raw value is not checked in depth until it is read.
        for (_, value) in &object.entries {
            serde_json::from_str::<Value>(value.get())
                .map_err(|_| malformed("it is nested too deeply"))?;
        }
        Ok(object)
    }

    pub(super) fn get(&self, key: &str) -> Option<&RawValue> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// Returns the object that is the value of a key.
    pub(super) fn object(&self, key: &str) -> Result<Option<OrderedObject>, EvidenceError> {
        self.get(key).map(|value| OrderedObject::parse(value.get())).transpose()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Box<RawValue>)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Sets or removes the value of a key. Returns whether the object differs afterwards.
    pub(super) fn set(&mut self, key: &str, value: Option<Box<RawValue>>) -> bool {
        let index = self.entries.iter().position(|(name, _)| name == key);
        match (index, value) {
            (Some(index), Some(value)) => {
                let before = std::mem::replace(&mut self.entries[index].1, value);
                !is_same(&before, &self.entries[index].1)
            }
            (None, Some(value)) => {
                self.entries.push((key.to_owned(), value));
                true
            }
            (Some(index), None) => {
                self.entries.remove(index);
                true
            }
            (None, None) => false,
        }
    }

    pub(super) fn text(&self) -> String {
        let lines = self
            .entries
            .iter()
            .map(|(key, value)| format!("  {}: {}", Value::String(key.clone()), value.get()));
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n}}", lines.join(",\n")) }
    }

    pub(super) fn to_raw(&self) -> Result<Box<RawValue>, EvidenceError> {
        RawValue::from_string(self.text()).map_err(|_| malformed("it is not a JSON object"))
    }
}

fn is_same(left: &RawValue, right: &RawValue) -> bool {
    let value = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    left.get() == right.get() || value(left) == value(right)
}

fn malformed(reason: &'static str) -> EvidenceError {
    EvidenceError::Manifest { format: "package.json", reason }
}

impl<'de> Deserialize<'de> for OrderedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OrderedObject, D::Error> {
        deserializer.deserialize_map(OrderedObjectVisitor)
    }
}

struct OrderedObjectVisitor;

impl<'de> Visitor<'de> for OrderedObjectVisitor {
    type Value = OrderedObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedObject, A::Error> {
        let mut object = OrderedObject::default();
        while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if object.entries.len() == KEYS_MAX {
                return Err(serde::de::Error::custom("too many keys"));
            }
            object.set(&key, Some(value));
        }
        Ok(object)
    }
}
