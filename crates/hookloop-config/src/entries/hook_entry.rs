//! Hooks in their written form, for serde and the schema.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor, value};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::values::{EnvEntries, FormsVisitor, Located, OneOrMany, TimeText, pairs, schema};

/// Hooks under the points where they run, in the order of the file.
#[derive(Default)]
pub(crate) struct HooksByPoint(pub(crate) Vec<(Spanned<String>, Spanned<Vec<HookForm>>)>);

/// A hook under its point. A bare string is a built-in by name.
pub(crate) struct HookForm(pub(crate) Spanned<HookEntry>);

/// A hook: exactly one of `command`, `use`, `actions`, `http`, `gatekeeper` and the rules, and options.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookEntry {
    /// What it is called; made from the command if it is not given.
    pub(crate) name: Option<String>,
    /// A line for `sh`, or a program and its arguments as a list.
    pub(crate) command: Option<Located<OneOrMany>>,
    /// A built-in hook by name.
    #[serde(rename = "use")]
    pub(crate) builtin: Option<String>,
    /// What to do, without a process.
    #[schemars(with = "Option<Vec<ActionEntry>>")]
    pub(crate) actions: Option<Vec<Spanned<ActionEntry>>>,
    /// A webhook: its URL.
    pub(crate) http: Option<Located<String>>,
    /// Agents that review and give a verdict.
    pub(crate) gatekeeper: Option<OneOrMany>,
    /// With several gatekeepers: whether `all` have to approve or `any` of them; `all` if it is not given.
    pub(crate) quorum: Option<Located<String>>,
    /// A rule: this file is there.
    pub(crate) file: Option<String>,
    /// A rule: a file that this path or pattern names has changed since the session began.
    pub(crate) changed: Option<String>,
    /// A rule: files have a text, or do not.
    pub(crate) pattern: Option<PatternEntry>,
    /// A rule: tests cover so many lines.
    pub(crate) coverage: Option<CoverageEntry>,
    /// A rule: so much has changed since the session began, and no more.
    pub(crate) diff: Option<DiffEntry>,
    /// Low runs first; 100 if it is not given.
    pub(crate) priority: Option<i32>,
    pub(crate) enabled: Option<bool>,
    /// A CEL expression that must be true for the hook to run.
    pub(crate) when: Option<Located<String>>,
    /// Seconds, or a number with a unit: `500ms`, `30s`, `5m`, `1h`.
    pub(crate) timeout: Option<Located<TimeText>>,
    /// Whether the agent is shown what the hook prints: true, false, or `on_failure`.
    pub(crate) pipe_output: Option<Located<PipeEntry>>,
    /// Whether a gate that fails blocks (`closed`) or passes with a warning (`open`).
    pub(crate) on_failure: Option<Located<FailureEntry>>,
    /// Permission for the JSON that a gate prints: with `json` it may act, without it only make the gate stricter.
    pub(crate) answers: Option<Located<AnswersEntry>>,
    /// Names of variables to let through, or names with values.
    pub(crate) env: Option<Located<EnvEntries>>,
    /// The directory that it runs in, from the project's root. One that leads out of the project is refused.
    pub(crate) cwd: Option<Located<String>>,
    /// Hooks of the same point that must have passed before.
    pub(crate) needs: Option<Located<OneOrMany>>,
    /// At a gate: of the hooks that name the same group, one has to pass.
    pub(crate) any_of: Option<String>,
    /// It may run beside neighbours that say the same.
    pub(crate) parallel: Option<bool>,
    /// How often a failed run is tried again.
    pub(crate) retry: Option<Located<RetryEntry>>,
    /// What its processes may not do.
    pub(crate) sandbox: Option<Located<SandboxEntry>>,
    /// What its processes may use of the machine together.
    pub(crate) limits: Option<Located<LimitsEntry>>,
    pub(crate) description: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) version: Option<String>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryEntry {
    /// Runs in all, at most 10.
    pub(crate) attempts: u32,
    /// The pause before the second run; it doubles each time.
    pub(crate) backoff: Option<TimeText>,
    /// Whether a random part of each pause is left out; true if it is not given.
    pub(crate) jitter: Option<bool>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxEntry {
    /// `none`: no connection to anywhere, not even on this machine.
    pub(crate) network: Option<NetworkForm>,
    /// The only places it may write to: `worktree` (the project's directory), `tmp` (a directory of its
    /// own, deleted after the run), or paths.
    pub(crate) write: Option<Vec<String>>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HookLimitsEntry")]
pub(crate) struct LimitsEntry {
    /// Processes at the same time; 1024 if it is not given.
    pub(crate) processes: Option<u64>,
    /// Memory, such as `512MB` or `2GB`; three quarters of the machine's if it is not given.
    pub(crate) memory: Option<String>,
    /// What is written to disks, such as `10GB`; three quarters of what is free if it is not given.
    pub(crate) disk: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Network")]
pub(crate) enum NetworkForm {
    None,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Failure")]
pub(crate) enum FailureEntry {
    Open,
    Closed,
}

/// Permission for the JSON that a gate prints.
#[derive(Clone, Copy)]
pub(crate) enum AnswersEntry {
    /// It may act.
    Json,
}

/// Exactly one action.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionEntry {
    /// A new task: `goal`, and perhaps `description`, `deliverables`, `labels`, `priority`, `type`, `parent_task_id`, `depends_on`.
    pub(crate) create_task: Option<Value>,
    /// `task_id`, `action` and its `payload`.
    pub(crate) update_task: Option<Value>,
    /// `{workflowId: name}`, or the name alone.
    pub(crate) execute_workflow: Option<Value>,
    /// `type` and `data`; stored as `hook.<hook>.<type>`.
    pub(crate) log: Option<Value>,
}

/// `true`, `false` or `on_failure`.
pub(crate) enum PipeEntry {
    Bool(bool),
    OnFailure,
}

impl<'de> Deserialize<'de> for HooksByPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = HooksByPoint;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("hook points with lists of hooks")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HooksByPoint, A::Error> {
                pairs(map).map(HooksByPoint)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl<'de> Deserialize<'de> for AnswersEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormsVisitor {
            from_str: Some(|text| (text == "json").then_some(AnswersEntry::Json)),
            ..FormsVisitor::new("`json`")
        })
    }
}

impl<'de> Deserialize<'de> for PipeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FormsVisitor {
            from_str: Some(|text| (text == "on_failure").then_some(PipeEntry::OnFailure)),
            from_bool: Some(PipeEntry::Bool),
            ..FormsVisitor::new("`true`, `false` or `on_failure`")
        })
    }
}

impl<'de> Deserialize<'de> for HookForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: NameOrHook(value), referenced, defined } =
            Spanned::deserialize(deserializer)?;
        Ok(HookForm(Spanned { value, referenced, defined }))
    }
}

struct NameOrHook(HookEntry);

impl<'de> Deserialize<'de> for NameOrHook {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrMap;
        impl<'de> Visitor<'de> for StringOrMap {
            type Value = NameOrHook;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a built-in hook, or a hook with its options")
            }

            fn visit_str<E>(self, name: &str) -> Result<NameOrHook, E> {
                let builtin = Some(name.to_owned());
                Ok(NameOrHook(HookEntry { builtin, ..HookEntry::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NameOrHook, A::Error> {
                HookEntry::deserialize(value::MapAccessDeserializer::new(map)).map(NameOrHook)
            }
        }
        deserializer.deserialize_any(StringOrMap)
    }
}

schema!(AnswersEntry, _generator => json_schema!({ "enum": ["json"] }));
schema!(PipeEntry, _generator => json_schema!({ "enum": [true, false, "on_failure"] }));
schema!(HookForm, generator => {
    let names: Vec<&str> =
        hookloop_core::builtin::Builtin::ALL.into_iter().map(|builtin| builtin.name()).collect();
    let hook = generator.subschema_for::<HookEntry>();
    json_schema!({ "oneOf": [{ "enum": names }, hook] })
});
schema!(HooksByPoint, generator => {
    let list = generator.subschema_for::<Vec<HookForm>>();
    let points: serde_json::Map<String, Value> = hookloop_core::point::Point::names()
        .into_iter()
        .map(|name| (name.to_owned(), list.clone().to_value()))
        .collect();
    json_schema!({
        "type": "object",
        "properties": points,
        "patternProperties": { "^hook\\.": list },
        "additionalProperties": false
    })
});

/// A text that files must have, or must not have.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternEntry {
    /// Which files: a path, or a pattern such as `src/**/*.rs`.
    pub(crate) path: String,
    /// A regular expression.
    pub(crate) text: String,
    /// It must not be there.
    #[serde(default)]
    pub(crate) absent: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CoverageEntry {
    /// The file that the tests leave: lcov, Cobertura XML, or Istanbul's `coverage-summary.json`.
    pub(crate) report: String,
    /// Percent of lines.
    pub(crate) at_least: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffEntry {
    pub(crate) min_files: Option<u64>,
    pub(crate) max_files: Option<u64>,
    /// Added and deleted.
    pub(crate) max_lines: Option<u64>,
    /// Patterns of the only files that may change.
    #[serde(default)]
    pub(crate) only: Vec<String>,
}
