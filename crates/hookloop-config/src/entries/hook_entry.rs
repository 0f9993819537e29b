//! Hooks in their written form, for serde and the schema.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor, value};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::base_tests::BaseTestsForm;
use super::room::RoomForm;
use super::strength::StrengthEntry;
use super::values::{EnvEntries, FormsVisitor, Located, OneOrMany, TimeText, pairs, schema};

/// Hooks under the points where they run, in the order of the file.
#[derive(Default)]
pub(crate) struct HooksByPoint(pub(crate) Vec<(Spanned<String>, Spanned<Vec<HookForm>>)>);

/// A hook under its point. A bare string is a built-in by name.
pub(crate) struct HookForm(pub(crate) Spanned<HookEntry>);

/// Hook: exactly one of `command`, `use`, `actions`, `http`, `gatekeeper` and the rules (`file`, `changed`, `pattern`,
/// `coverage`, `diff`), and options
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookEntry {
    /// Name of the hook [default: derived from the command]
    pub(crate) name: Option<String>,
    /// Command of the hook: a shell command, or a list of a program and its arguments
    pub(crate) command: Option<Located<OneOrMany>>,
    /// Name of a built-in hook
    #[serde(rename = "use")]
    pub(crate) builtin: Option<String>,
    /// Actions of the hook, which need no process
    #[schemars(with = "Option<Vec<ActionEntry>>")]
    pub(crate) actions: Option<Vec<Spanned<ActionEntry>>>,
    /// URL of a webhook
    pub(crate) http: Option<Located<String>>,
    /// Gatekeepers that review the work and return a verdict, one or a list
    pub(crate) gatekeeper: Option<OneOrMany>,
    /// Approvals that several gatekeepers need: `all` or `any` [default: `all`]
    pub(crate) quorum: Option<Located<String>>,
    /// Rule: path of a file that must exist
    pub(crate) file: Option<String>,
    /// Rule: path or pattern of files, one of which must have changed since the start of the session
    pub(crate) changed: Option<String>,
    /// Rule: text that files must contain, or must not contain
    pub(crate) pattern: Option<PatternEntry>,
    /// Rule: test coverage that lines must have
    pub(crate) coverage: Option<CoverageEntry>,
    /// Rule: limits of the changes since the start of the session
    pub(crate) diff: Option<DiffEntry>,
    /// Order among the hooks of a point, lowest first [default: 100]
    pub(crate) priority: Option<i32>,
    /// Whether the hook runs [default: true]
    pub(crate) enabled: Option<bool>,
    /// CEL expression that must be true for the hook to run [default: true]
    pub(crate) when: Option<Located<String>>,
    /// Timeout of one run, in seconds or with a unit: `500ms`, `30s`, `5m`, `1h` [default: 10m for gates, 1m for
    /// reactions]
    pub(crate) timeout: Option<Located<TimeText>>,
    /// Whether the agent gets the hook's output: `true`, `false` or `on_failure` [default: false]
    pub(crate) pipe_output: Option<Located<PipeEntry>>,
    /// Result of a gate that fails (an exit code other than 0 and 2, a timeout, a crash): blocked (`closed`) or passed
    /// with a warning (`open`) [default: `closed`]
    pub(crate) on_failure: Option<Located<FailureEntry>>,
    /// Permission for the JSON of a gate: with `json` it may act [default: it can only make the gate stricter]
    pub(crate) answers: Option<Located<AnswersEntry>>,
    /// Environment variables: a list of names to inherit, or names with values [default: none]
    pub(crate) env: Option<Located<EnvEntries>>,
    /// Working directory, from the project's root and inside the project [default: the root]
    pub(crate) cwd: Option<Located<String>>,
    /// Hooks of the same point that must have passed before, one or a list [default: none]
    pub(crate) needs: Option<Located<OneOrMany>>,
    /// Group of gates, of which one must pass [default: no group]
    pub(crate) any_of: Option<String>,
    /// Whether the hook may run concurrently with neighbours that have this option [default: false]
    pub(crate) parallel: Option<bool>,
    /// Retries of a failed run [default: none]
    pub(crate) retry: Option<Located<RetryEntry>>,
    /// Restrictions of the hook's processes [default: none]
    pub(crate) sandbox: Option<Located<SandboxEntry>>,
    /// Limits of the resources that the hook's processes use together
    pub(crate) limits: Option<Located<LimitsEntry>>,
    /// Path or pattern of the report files that the gate writes (JUnit XML, CTRF, TAP, SARIF, `go test -json`, libtest
    /// JSON), one or a list, from the gate's working directory [default: the file or directory `$HOOKLOOP_REPORT`]
    pub(crate) report: Option<Located<OneOrMany>>,
    /// Directory in which the gate runs: `here` (the agent's working directory), `clean` (a clean room), or the settings
    /// of a clean room [default: the project's `room`]
    pub(crate) room: Option<Located<RoomForm>>,
    /// Paths or patterns of the files whose change makes a setup run again, one or a list [default: lock files and
    /// manifests of packages]
    pub(crate) inputs: Option<Located<OneOrMany>>,
    /// Whether the tests of the base run against the work, beside the work's own tests: `true`, `false`, or settings
    /// [default: false]
    pub(crate) base_tests: Option<Located<BaseTestsForm>>,
    /// Strength that the tests of the gate must have, measured with mutants of the changed functions [default: not
    /// measured]
    pub(crate) strength: Option<Located<StrengthEntry>>,
    /// Name of a resource: gates with the same name do not run at the same time [default: none]
    pub(crate) exclusive: Option<Located<String>>,
    /// Description of the hook, for lists
    pub(crate) description: Option<String>,
    /// Author of the hook, for lists
    pub(crate) author: Option<String>,
    /// Version of the hook, for lists
    pub(crate) version: Option<String>,
}

/// Retries of a failed run
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryEntry {
    /// Maximum runs in total, 1 to 10
    pub(crate) attempts: u32,
    /// Pause before the second run, in seconds or with a unit [default: 1s]. The pause doubles with each run.
    pub(crate) backoff: Option<TimeText>,
    /// Whether each pause is shortened by a random part [default: true]
    pub(crate) jitter: Option<bool>,
}

/// Restrictions of a hook's processes
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SandboxEntry {
    /// Network access: `none` forbids all connections, also on this machine [default: not restricted]
    pub(crate) network: Option<NetworkForm>,
    /// Places that the hook may write to: `worktree` (the project's directory), `tmp` (a directory of its own, deleted
    /// after the run), or paths [default: not restricted]
    pub(crate) write: Option<Vec<String>>,
}

/// Limits of the resources that a hook's processes use together
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HookLimitsEntry")]
pub(crate) struct LimitsEntry {
    /// Maximum concurrent processes [default: 1024]
    pub(crate) processes: Option<u64>,
    /// Maximum memory, such as `512MB` or `2GB` [default: three quarters of the machine's memory]
    pub(crate) memory: Option<String>,
    /// Maximum bytes written to disks, such as `10GB` [default: three quarters of the free space]
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

/// Action: exactly one of the keys
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionEntry {
    /// Task to create: `goal`, and optionally `description`, `deliverables`, `labels`, `priority`, `type`, `parent_task_id`,
    /// `depends_on`
    pub(crate) create_task: Option<Value>,
    /// Change of a task: `task_id`, `action` and its `payload`
    pub(crate) update_task: Option<Value>,
    /// Workflow to run: its name, or `{workflow_id: NAME}`
    pub(crate) execute_workflow: Option<Value>,
    /// Event to log: `type` and `data`, stored as `hook.<hook>.<type>`
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

/// Text that files must contain, or must not contain
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternEntry {
    /// Path or pattern of the files, such as `src/**/*.rs`
    pub(crate) path: String,
    /// Regular expression of the text
    pub(crate) text: String,
    /// Whether the text must be absent [default: false]
    #[serde(default)]
    pub(crate) absent: bool,
}

/// Test coverage that lines must have
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CoverageEntry {
    /// Path of the coverage report of the tests: lcov, Cobertura XML, or Istanbul's `coverage-summary.json`
    pub(crate) report: String,
    /// Minimum coverage in percent of lines, 0 to 100
    pub(crate) at_least: f64,
}

/// Limits of the changes since the start of the session
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DiffEntry {
    /// Minimum changed files [default: no limit]
    pub(crate) min_files: Option<u64>,
    /// Maximum changed files [default: no limit]
    pub(crate) max_files: Option<u64>,
    /// Maximum added and deleted lines together [default: no limit]
    pub(crate) max_lines: Option<u64>,
    /// Patterns of the only files that may change [default: all files]
    #[serde(default)]
    pub(crate) only: Vec<String>,
}
