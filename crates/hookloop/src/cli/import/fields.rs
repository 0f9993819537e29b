//! The fields of an object in another tool's file.

use serde_json::{Map, Value};

use super::import_report::ImportReport;

/// The fields of an object, each read once: fields that nothing read are unknown.
pub(super) struct SourceFields {
    place: String,
    fields: Map<String, Value>,
    /// Fields whose value has another type than the reader expects, with the reason. `finish` reports them.
    refused: Vec<(String, &'static str)>,
}

impl SourceFields {
    /// The fields of `value`; `place` is its name in rows.
    pub(super) fn of(place: impl Into<String>, value: Value) -> Result<SourceFields, String> {
        let place = place.into();
        match value {
            Value::Object(fields) => Ok(SourceFields { place, fields, refused: Vec::new() }),
            Value::Null => Ok(SourceFields { place, fields: Map::new(), refused: Vec::new() }),
            _ if place.is_empty() => Err("this is not an object with fields".to_owned()),
            _ => Err(format!("`{place}` is not an object with fields")),
        }
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.fields.shift_remove(key).filter(|value| !value.is_null())
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn keys(&self) -> Vec<String> {
        self.fields.keys().cloned().collect()
    }

    /// The keys whose values can have fields.
    pub(super) fn keys_of_objects(&self) -> Vec<String> {
        let fields = self.fields.iter();
        let objects = fields.filter(|(_, value)| value.is_object() || value.is_null());
        objects.map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn put(&mut self, key: &str, value: Value) {
        self.fields.insert(key.to_owned(), value);
    }

    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text).filter(|text| !text.trim().is_empty()),
            Value::Array(_) | Value::Object(_) => {
                self.refuse(key, "left out: it is not a text");
                None
            }
            other => Some(other.to_string()),
        }
    }

    pub(super) fn list(&mut self, key: &str) -> Vec<Value> {
        match self.take(key) {
            Some(Value::Array(items)) => items,
            Some(one) => vec![one],
            None => Vec::new(),
        }
    }

    /// The texts of a list; a number counts as its digits.
    pub(super) fn texts(&mut self, key: &str) -> Vec<String> {
        let items = self.list(key);
        let count = items.len();
        let texts: Vec<String> = items
            .into_iter()
            .filter_map(|item| match item {
                Value::String(text) => Some(text),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            })
            .collect();
        if texts.len() < count {
            self.refuse(key, "an entry that is not a text is left out");
        }
        texts
    }

    pub(super) fn number(&mut self, key: &str) -> Option<u64> {
        let value = self.take(key)?;
        let number = value.as_u64();
        if number.is_none() {
            self.refuse(key, "left out: it is not a whole number from 0 on");
        }
        number
    }

    pub(super) fn decimal(&mut self, key: &str) -> Option<f64> {
        let value = self.take(key)?;
        let number = value.as_f64().filter(|number| *number >= 0.0);
        if number.is_none() {
            self.refuse(key, "left out: it is not a number from 0 on");
        }
        number
    }

    /// Whether the field is `true`; a field that is missing is not.
    pub(super) fn is_true(&mut self, key: &str) -> bool {
        self.flag(key) == Some(true)
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.take(key)?;
        let flag = value.as_bool();
        if flag.is_none() {
            self.refuse(key, "left out: it is neither true nor false");
        }
        flag
    }

    /// The variables of an environment: names with texts.
    pub(super) fn variables(&mut self, key: &str) -> Option<Map<String, Value>> {
        let Value::Object(variables) = self.take(key)? else {
            self.refuse(key, "left out: it is not a list of names with values");
            return None;
        };
        let mut texts = Map::new();
        for (name, value) in variables {
            let text = match value {
                Value::String(text) => text,
                Value::Null => String::new(),
                Value::Bool(_) | Value::Number(_) => value.to_string(),
                Value::Array(_) | Value::Object(_) => {
                    self.refuse(key, "a value that is not a text is left out");
                    continue;
                }
            };
            texts.insert(name, Value::from(text));
        }
        Some(texts).filter(|texts| !texts.is_empty())
    }

    fn refuse(&mut self, key: &str, why: &'static str) {
        self.refused.push((key.to_owned(), why));
    }

    pub(super) fn object(&mut self, key: &str) -> Result<SourceFields, String> {
        let place = self.place_of(key);
        SourceFields::of(place, self.take(key).unwrap_or(Value::Null))
    }

    /// Returns the remaining fields with their names.
    pub(super) fn each(self) -> impl Iterator<Item = (String, Value)> {
        self.fields.into_iter()
    }

    pub(super) fn place_of(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    /// SourceReports fields that have no equivalent, each with its reason.
    pub(super) fn lose(&mut self, report: &mut ImportReport, known: &[(&str, &str)]) {
        for (key, why) in known {
            if self.take(key).is_some() {
                report.lose(self.place_of(key), *why);
            }
        }
    }

    /// Reports keys that no importer reads and values of a wrong type. Values are left out: they may be secret.
    pub(super) fn finish(self, report: &mut ImportReport) {
        for (key, why) in &self.refused {
            report.lose(self.place_of(key), *why);
        }
        let left: Vec<String> = self.fields.keys().map(|key| self.place_of(key)).collect();
        left.iter().for_each(|key| report.unknown(key));
    }
}
