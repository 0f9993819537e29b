//! The directory in which gates run: a clean room, or the working directory.

use std::borrow::Cow;
use std::fmt;

use hookloop_core::options::{ConfirmAt, RoomChoice, RoomRules};
use hookloop_core::point::Point;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor, value};

use super::values::{Located, inside, schema};
use crate::yaml::ConfigComplaint;

/// Maximum files that are copied into a room.
const COPIES_MAX: usize = 64;

/// `here`, `clean`, or the settings of a clean room.
#[derive(Clone)]
pub(crate) enum RoomForm {
    Here,
    Clean(CleanRoom),
}

/// Settings of the clean room in which gates run
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CleanRoom {
    /// Paths of files that git ignores and gates need, from the project's root [default: none]. The files are copied
    /// when a session begins.
    #[serde(default)]
    copy: Vec<String>,
    /// Moment at which passing gates run again without build files of refused work: `stop`, `submit` or `never`
    /// [default: `submit`]
    confirm: Option<ConfirmEntry>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Confirm")]
enum ConfirmEntry {
    Stop,
    Submit,
    Never,
}

impl<'de> Deserialize<'de> for RoomForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrMap;
        impl<'de> Visitor<'de> for WordOrMap {
            type Value = RoomForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`here`, `clean`, or the settings of a clean room: `{copy: [.env.test]}`",
                )
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<RoomForm, E> {
                match word {
                    "here" => Ok(RoomForm::Here),
                    "clean" => Ok(RoomForm::Clean(CleanRoom::default())),
                    _ => Err(E::invalid_value(de::Unexpected::Str(word), &self)),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RoomForm, A::Error> {
                CleanRoom::deserialize(value::MapAccessDeserializer::new(map)).map(RoomForm::Clean)
            }
        }
        deserializer.deserialize_any(WordOrMap)
    }
}

schema!(RoomForm, generator => {
    let room = generator.subschema_for::<CleanRoom>();
    json_schema!({ "oneOf": [{ "enum": ["here", "clean"] }, room] })
});

impl RoomForm {
    pub(crate) fn read(entry: Located<RoomForm>) -> Result<RoomRules, ConfigComplaint> {
        let Located { value, at } = entry;
        let CleanRoom { copy, confirm } = match value {
            RoomForm::Here => {
                return Ok(RoomRules { choice: RoomChoice::Here, ..RoomRules::default() });
            }
            RoomForm::Clean(room) => room,
        };
        if copy.len() > COPIES_MAX {
            let message = format!("a room gets at most {COPIES_MAX} copied files");
            return Err(ConfigComplaint::new(at, message));
        }
        let copy = copy.into_iter().map(|path| inside(Located { value: path, at }));
        Ok(RoomRules {
            choice: RoomChoice::Clean,
            copy: copy.collect::<Result<_, _>>()?,
            confirm: match confirm {
                Some(ConfirmEntry::Stop) => ConfirmAt::Stop,
                Some(ConfirmEntry::Never) => ConfirmAt::Never,
                Some(ConfirmEntry::Submit) | None => ConfirmAt::Submit,
            },
        })
    }
}

/// Whether hooks of a point run in a room.
pub(crate) fn has_room(point: &Point) -> bool {
    matches!(
        point,
        Point::Setup | Point::Validation | Point::Stop | Point::BeforeSubmit | Point::BeforeMerge
    )
}
