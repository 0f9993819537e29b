//! The tests of the base that run beside a gate.

use std::borrow::Cow;
use std::fmt;

use hookloop_core::options::{
    BaseTestRules, ExpectationPolicy, ExpectationReviewer, KnownFailures,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor, value};

use super::values::{Located, OneOrMany, patterns_inside, schema};
use crate::effective::{GatekeeperRules, terms_of};
use crate::yaml::ConfigComplaint;

/// `true`, `false`, or the settings of the base's tests.
pub(crate) enum BaseTestsForm {
    Switch(bool),
    Rules(Box<BaseTestsEntry>),
}

/// Settings of the base's tests, which run against the work at a claim
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BaseTestsEntry {
    /// Paths or patterns of further files that belong to the tests, one or a list, from the top of the repository
    /// [default: none]
    protect: Option<Located<OneOrMany>>,
    /// Result if the work changed a test that fails as it was before: a person is asked (`ask`), a gatekeeper is asked
    /// before a person (`review`), or the change is only recorded (`allow`) [default: `ask`]
    expectations: Option<ExpectationsEntry>,
    /// Gatekeeper or agent that reviews changed expectations [default: the agent of the session]
    reviewer: Option<Located<String>>,
    /// Result if all failing checks of the gate failed before the work began, too: the gate fails (`block`), or it passes
    /// and the receipt counts them (`allow`) [default: `block`]
    known_failures: Option<KnownFailuresEntry>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "KnownFailures")]
enum KnownFailuresEntry {
    Block,
    Allow,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Expectations")]
enum ExpectationsEntry {
    Ask,
    Review,
    Allow,
}

impl<'de> Deserialize<'de> for BaseTestsForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SwitchOrMap;
        impl<'de> Visitor<'de> for SwitchOrMap {
            type Value = BaseTestsForm;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false`, or settings: `{protect: ['golden/**']}`")
            }

            fn visit_bool<E: de::Error>(self, is_on: bool) -> Result<BaseTestsForm, E> {
                Ok(BaseTestsForm::Switch(is_on))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BaseTestsForm, A::Error> {
                let entry = BaseTestsEntry::deserialize(value::MapAccessDeserializer::new(map))?;
                Ok(BaseTestsForm::Rules(Box::new(entry)))
            }
        }
        deserializer.deserialize_any(SwitchOrMap)
    }
}

schema!(BaseTestsForm, generator => {
    let rules = generator.subschema_for::<BaseTestsEntry>();
    json_schema!({ "oneOf": [{ "type": "boolean" }, rules] })
});

impl BaseTestsForm {
    pub(crate) fn read(
        self,
        gatekeepers: &[GatekeeperRules],
    ) -> Result<Option<BaseTestRules>, ConfigComplaint> {
        let entry = match self {
            BaseTestsForm::Switch(false) => return Ok(None),
            BaseTestsForm::Switch(true) => return Ok(Some(BaseTestRules::default())),
            BaseTestsForm::Rules(entry) => *entry,
        };
        let is_reviewed = matches!(entry.expectations, Some(ExpectationsEntry::Review));
        if let Some(Located { at, .. }) = entry.reviewer.as_ref().filter(|_| !is_reviewed) {
            let message = "`reviewer` is for `expectations: review`";
            return Err(ConfigComplaint::new(*at, message));
        }
        let is_empty = |name: &&Located<String>| name.value.trim().is_empty();
        if let Some(Located { at, .. }) = entry.reviewer.as_ref().filter(is_empty) {
            return Err(ConfigComplaint::new(
                *at,
                "`reviewer` is the name of a gatekeeper or agent",
            ));
        }
        let name = entry.reviewer.map(|reviewer| reviewer.value);
        let terms = name.as_deref().map(|name| terms_of(gatekeepers, name)).unwrap_or_default();
        Ok(Some(BaseTestRules {
            protect: entry.protect.map(patterns_inside).transpose()?.unwrap_or_default(),
            expectations: match entry.expectations {
                None | Some(ExpectationsEntry::Ask) => ExpectationPolicy::Ask,
                Some(ExpectationsEntry::Review) => {
                    ExpectationPolicy::Review(ExpectationReviewer { name, terms })
                }
                Some(ExpectationsEntry::Allow) => ExpectationPolicy::Allow,
            },
            known_failures: match entry.known_failures {
                None | Some(KnownFailuresEntry::Block) => KnownFailures::Block,
                Some(KnownFailuresEntry::Allow) => KnownFailures::Allow,
            },
        }))
    }
}
