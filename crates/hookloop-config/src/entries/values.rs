//! The forms of values in a configuration file, each with its schema for editors.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use hookloop_core::options::{EnvEntry, Length, is_dangerous_variable};
use hookloop_core::session::plan::Dollars;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, de};
use serde_saphyr::{Location, Spanned};

use crate::secret_text::SecretSource;
use crate::yaml::ConfigComplaint;

/// An amount of dollars that is not negative.
#[derive(Clone, Copy)]
pub(crate) struct DollarAmount(pub(crate) Dollars);

impl<'de> Deserialize<'de> for DollarAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        Dollars::new(amount).map(DollarAmount).map_err(de::Error::custom)
    }
}

/// A value and its position in the file.
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: Location,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Located { value, at: referenced })
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<T>()
    }
}

/// A duration in its written form.
#[derive(Clone, Debug)]
pub(crate) enum TimeText {
    Seconds(u64),
    WithUnit(String),
}

/// Environment variables: only names, or names with values.
pub(crate) enum EnvEntries {
    Names(Vec<String>),
    Values(PairsVisitor),
}

/// A text, or a reference to its source.
pub(crate) enum GivenEntry {
    Text(String),
    Named(PairsVisitor),
}

/// A string or a list of them.
#[derive(Clone)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn into_list(self) -> Vec<String> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

pub(crate) type PairsVisitor = Vec<(String, String)>;

/// Reads a value that may have several forms.
pub(crate) struct FormsVisitor<T> {
    pub(crate) expecting: &'static str,
    pub(crate) from_str: Option<fn(&str) -> Option<T>>,
    pub(crate) from_u64: Option<fn(u64) -> T>,
    pub(crate) from_bool: Option<fn(bool) -> T>,
    pub(crate) from_list: Option<fn(Vec<String>) -> T>,
    pub(crate) from_map: Option<fn(PairsVisitor) -> T>,
    pub(crate) of: PhantomData<T>,
}

impl<T> FormsVisitor<T> {
    pub(crate) fn new(expecting: &'static str) -> FormsVisitor<T> {
        FormsVisitor {
            expecting,
            from_str: None,
            from_u64: None,
            from_bool: None,
            from_list: None,
            from_map: None,
            of: PhantomData,
        }
    }
}

impl<'de, T> Visitor<'de> for FormsVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        let read = self.from_str.and_then(|read| read(text));
        read.ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let read = self.from_u64.map(|read| read(number));
        read.ok_or_else(|| E::invalid_type(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_type(de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<T, E> {
        let read = self.from_bool.map(|read| read(flag));
        read.ok_or_else(|| E::invalid_type(de::Unexpected::Bool(flag), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<T, A::Error> {
        let Some(read) = self.from_list else {
            return Err(de::Error::invalid_type(de::Unexpected::Seq, &self));
        };
        Vec::deserialize(value::SeqAccessDeserializer::new(seq)).map(read)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let Some(read) = self.from_map else {
            return Err(de::Error::invalid_type(de::Unexpected::Map, &self));
        };
        Ok(read(pairs(map)?))
    }
}

/// A key of a map, with or without its place.
pub(crate) trait MapKey {
    fn text(&self) -> &str;
}

impl MapKey for String {
    fn text(&self) -> &str {
        self
    }
}

impl MapKey for Spanned<String> {
    fn text(&self) -> &str {
        &self.value
    }
}

/// Reads the entries of a map, in the order of the file.
pub(crate) fn pairs<'de, K: MapKey + Deserialize<'de>, V: Deserialize<'de>, A: MapAccess<'de>>(
    mut map: A,
) -> Result<Vec<(K, V)>, A::Error> {
    let mut pairs: Vec<(K, V)> = Vec::new();
    let mut names = BTreeSet::new();
    while let Some((key, value)) = map.next_entry::<K, V>()? {
        if !names.insert(key.text().to_owned()) {
            return Err(de::Error::custom(format!("`{}` is there twice", key.text())));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

impl<'de> Deserialize<'de> for TimeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormsVisitor {
            from_str: Some(|text| Some(TimeText::WithUnit(text.to_owned()))),
            from_u64: Some(TimeText::Seconds),
            ..FormsVisitor::new(
                "a number of seconds, or a number with a unit (`500ms`, `30s`, `5m`, `1h`)",
            )
        })
    }
}

impl<'de> Deserialize<'de> for GivenEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormsVisitor {
            from_str: Some(|text| Some(GivenEntry::Text(text.to_owned()))),
            from_map: Some(GivenEntry::Named),
            ..FormsVisitor::new("a text, `{env: NAME}` or `{file: PATH}`")
        })
    }
}

impl<'de> Deserialize<'de> for EnvEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormsVisitor {
            from_list: Some(EnvEntries::Names),
            from_map: Some(EnvEntries::Values),
            ..FormsVisitor::new("a list of variables to let through, or variables with values")
        })
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormsVisitor {
            from_str: Some(|text| Some(OneOrMany::One(text.to_owned()))),
            from_list: Some(OneOrMany::Many),
            ..FormsVisitor::new("a string or a list of strings")
        })
    }
}

/// Declares the schema of a hand-written reader.
macro_rules! schema {
    ($type:ty, $generator:ident => $schema:expr) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}
pub(crate) use schema;

schema!(GivenEntry, _generator => json_schema!({
    "oneOf": [
        { "type": "string" },
        { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
          "properties": { "env": { "type": "string" }, "file": { "type": "string" } } },
    ],
}));

schema!(TimeText, _generator => json_schema!({
    "oneOf": [
        { "type": "integer", "minimum": 1, "maximum": 86400 },
        { "type": "string", "pattern": "^[0-9]+ ?(ms|s|m|h)?$" }
    ]
}));

schema!(DollarAmount, _generator => json_schema!({ "type": "number", "minimum": 0 }));

schema!(EnvEntries, _generator => json_schema!({
    "oneOf": [
        { "type": "array", "items": { "type": "string" } },
        { "type": "object", "additionalProperties": { "type": "string" } }
    ]
}));

schema!(OneOrMany, _generator => json_schema!({
    "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
}));

const ENV_MAX: usize = 64;

pub(crate) fn length(time: TimeText, at: Location) -> Result<u64, ConfigComplaint> {
    let length = match time {
        TimeText::Seconds(seconds) => Length::seconds(seconds),
        TimeText::WithUnit(text) => text.parse(),
    };
    length.map(|length| length.ms).map_err(|error| ConfigComplaint::new(at, error))
}

pub(crate) fn environment(env: Located<EnvEntries>) -> Result<Vec<EnvEntry>, ConfigComplaint> {
    let at = env.at;
    let entries = variables(env)?;
    let is_dangerous = |entry: &&EnvEntry| matches!(entry, EnvEntry::Set { name, .. } if is_dangerous_variable(name));
    match entries.iter().find(is_dangerous) {
        Some(entry) => {
            let name = entry.name();
            let message =
                format!("`{name}` decides what programs do: a configuration does not set it");
            Err(ConfigComplaint::new(at, message))
        }
        None => Ok(entries),
    }
}

/// Reads variables of any purpose.
pub(crate) fn variables(env: Located<EnvEntries>) -> Result<Vec<EnvEntry>, ConfigComplaint> {
    let entries: Vec<EnvEntry> = match env.value {
        EnvEntries::Names(names) => names.into_iter().map(EnvEntry::Inherited).collect(),
        EnvEntries::Values(values) => {
            values.into_iter().map(|(name, value)| EnvEntry::Set { name, value }).collect()
        }
    };
    let complain = |message: String| Err(ConfigComplaint::new(env.at, message));
    if entries.len() > ENV_MAX {
        return complain(format!("more than {ENV_MAX} variables"));
    }
    for entry in &entries {
        let name = entry.name();
        if !is_name_of_variable(name) {
            return complain(format!("`{name}` is not the name of a variable"));
        }
        match entry {
            EnvEntry::Set { value, .. } if value.contains('\0') => {
                return complain(format!("`{name}` has a NUL in its value"));
            }
            _ => {}
        }
    }
    Ok(entries)
}

pub(crate) fn is_name_of_variable(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| !c.is_ascii_digit())
}

/// Returns whether a path stays in the project.
pub(crate) fn is_inside(path: &str) -> bool {
    let stays =
        |part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir);
    std::path::Path::new(path).components().all(stays)
}

/// Reads a path that stays in the project.
pub(crate) fn inside(path: Located<String>) -> Result<String, ConfigComplaint> {
    match is_inside(&path.value) {
        true => Ok(path.value),
        false => {
            let message = format!("`{}` leads out of the project", path.value);
            Err(ConfigComplaint::new(path.at, message))
        }
    }
}

/// Reads patterns of files inside the project.
pub(crate) fn patterns_inside(entry: Located<OneOrMany>) -> Result<Vec<String>, ConfigComplaint> {
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

/// Reads the source of a text. Paths are relative to the user's file.
pub(crate) fn given(
    entry: Located<GivenEntry>,
    base: &Path,
) -> Result<SecretSource, ConfigComplaint> {
    let Located { value, at } = entry;
    let pairs = match value {
        GivenEntry::Text(text) => return Ok(SecretSource::Text(text.into())),
        GivenEntry::Named(pairs) => pairs,
    };
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    match pairs.as_slice() {
        [("env", name)] if !name.is_empty() => Ok(SecretSource::Variable((*name).to_owned())),
        [("file", path)] if !path.is_empty() => Ok(SecretSource::File(base.join(path))),
        _ => Err(ConfigComplaint::new(at, "a text, `{env: NAME}` or `{file: PATH}` belongs here")),
    }
}
