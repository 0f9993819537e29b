//! The configuration as it is written: what serde reads, and what the schema for editors is made from.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;

use hookloop_core::cascade::CascadeLimits;
use hookloop_core::purse::{BudgetBounds, Purse};
use hookloop_core::session::SessionLimits;
use hookloop_core::session::plan::{Dollars, UNPRICED_TURNS};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, de};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use super::Complaint;
use super::looping::{CoverageEntry, DiffEntry, LoopEntry, PatternEntry};
use crate::rules::Limits as RuleLimits;

/// `hookloop.yaml`: what hookloop does in this project.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "hookloop.yaml", inline)]
pub(super) struct File {
    /// The version of this format: 1.
    #[schemars(with = "u64", range(min = 1, max = 1))]
    pub(super) version: Spanned<u64>,
    /// The project's name among those who share a store.
    #[schemars(with = "Option<String>")]
    pub(super) project: Option<Spanned<String>>,
    /// Where the log is: `sqlite`, or `nats://host:port`.
    #[schemars(with = "Option<String>")]
    pub(super) store: Option<Spanned<String>>,
    /// Hooks under the points where they run.
    #[serde(default)]
    pub(super) hooks: Points,
    /// What is different for tasks of a type.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, TaskType>")]
    pub(super) task_types: BTreeMap<String, Spanned<TaskType>>,
    /// Named lists of actions.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Vec<ActionEntry>>")]
    pub(super) workflows: BTreeMap<String, Spanned<Vec<Spanned<ActionEntry>>>>,
    #[serde(default)]
    pub(super) limits: Limits,
    /// Agents by name, with their settings.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, super::agents::AgentEntry>")]
    pub(super) agents: super::agents::Entries,
    /// Agents that review, by name, with what they look for.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, super::delivery::GatekeeperEntry>")]
    pub(super) gatekeepers: super::delivery::GatekeeperEntries,
    /// How the work of tasks is delivered: in worktrees and branches of their own, submitted and merged.
    pub(super) delivery: Option<super::delivery::DeliveryEntry>,
    /// Which tasks are taken, and how many at once.
    #[serde(default)]
    pub(super) scheduling: super::scheduling::SchedulingEntry,
    /// How sessions go.
    #[serde(default, rename = "loop")]
    pub(super) session: LoopEntry,
}

/// Hooks under the points where they run, in the order of the file.
#[derive(Default)]
pub(crate) struct Points(pub(super) Vec<(Spanned<String>, Spanned<Vec<Entry>>)>);

/// Hooks and agents for tasks of one type.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskType {
    /// A point that is listed here has these hooks alone.
    #[serde(default)]
    pub(super) hooks: Points,
    /// Which agents may work on tasks of this type, by role.
    #[serde(default)]
    pub(super) agents: BTreeMap<String, Vec<String>>,
    /// A task of this type may be complete without any change of files; `false` if it is not given.
    #[serde(default)]
    pub(super) no_changes_ok: bool,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    #[serde(default)]
    pub(super) cascade: Cascade,
    /// How often gates may send the agent back before a human is asked; 5 if it is not given.
    pub(super) hook_retries: Option<u32>,
    /// Of one session; 100 if it is not given.
    pub(super) iterations: Option<u32>,
    /// For how long a session may run, in seconds or with a unit such as `90m`; 8 hours if it is not given.
    pub(super) duration: Option<Located<Time>>,
    /// How long one turn of the agent may take, in seconds or with a unit such as `20m`; 1 hour if it is not given.
    pub(super) turn: Option<Located<Time>>,
    /// Failed turns in a row; 5 if it is not given.
    pub(super) errors: Option<u32>,
    /// Iterations in a row that get nowhere; 5 if it is not given.
    pub(super) no_progress: Option<u32>,
    /// Turns in which agents may fix what hooks of a delivery or a merge found, for each task; 3 if it is not given.
    pub(super) remediations: Option<u32>,
    /// How often a task may go back unfinished until a human is asked; 3 if it is not given.
    pub(super) continuations: Option<u32>,
    /// Tokens of one session, where the agent tells; 50 million if it is not given.
    pub(super) tokens: Option<u64>,
    /// Dollars that one session may cost, where the agent tells; 50 if it is not given.
    pub(super) cost: Option<DollarAmount>,
    /// Turns of one session whose cost is unknown; 20 if `cost` is given and this is not, else no bound.
    pub(super) unpriced_turns: Option<u32>,
    /// What all sessions of the project together may use; no bound if it is not given.
    pub(super) purse: Option<Located<PurseEntry>>,
    /// Dollars of the purse that are set aside for a turn before it begins; 1 if it is not given.
    pub(super) turn_cost: Option<Located<DollarAmount>>,
    /// Tokens of the purse that are set aside for a turn before it begins; 2 million if it is not given.
    pub(super) turn_tokens: Option<Located<u64>>,
}

/// What all sessions of a project together may use: turns, and dollars and tokens where agents tell.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PurseEntry {
    /// In dollars.
    pub(super) cost: Option<DollarAmount>,
    pub(super) tokens: Option<u64>,
    /// Turns of agents.
    pub(super) turns: Option<u64>,
    /// `day`: for each day of the calendar, in UTC; `ever`: for good. `day` if it is not given.
    pub(super) per: Option<PerEntry>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PerEntry {
    Day,
    Ever,
}

impl PurseEntry {
    fn read(self, at: Location) -> Result<Purse, Complaint> {
        let PurseEntry { cost, tokens, turns, per } = self;
        let bounds = BudgetBounds { cost_micros: cost.map(|cost| cost.0.0), tokens, turns };
        if bounds.is_none() {
            return Err(Complaint::new(
                at,
                "a purse has `cost`, `tokens`, `turns` or several of them",
            ));
        }
        Ok(match per {
            None | Some(PerEntry::Day) => Purse { day: bounds, ..Purse::default() },
            Some(PerEntry::Ever) => Purse { ever: bounds, ..Purse::default() },
        })
    }
}

impl Limits {
    /// The limits of sessions that are given, by name.
    pub(super) fn set(&self) -> Result<BTreeMap<String, u64>, Complaint> {
        let time = |time: &Option<Located<Time>>| {
            let length = |time: &Located<Time>| super::hooks::length(time.value.clone(), time.at);
            time.as_ref().map(length).transpose()
        };
        let given = [
            ("iterations", self.iterations.map(u64::from)),
            ("duration", time(&self.duration)?),
            ("turn", time(&self.turn)?),
            ("errors", self.errors.map(u64::from)),
            ("hook_retries", self.hook_retries.map(u64::from)),
            ("no_progress", self.no_progress.map(u64::from)),
            ("remediations", self.remediations.map(u64::from)),
            ("continuations", self.continuations.map(u64::from)),
            ("tokens", self.tokens),
            ("cost", self.cost.map(|cost| cost.0.0)),
            ("unpriced_turns", self.unpriced_turns.map(u64::from)),
        ];
        let given = given.into_iter();
        Ok(given.filter_map(|(name, limit)| Some((name.to_owned(), limit?))).collect())
    }

    /// These limits, and `others` where nothing is said.
    pub(crate) fn over(self, others: RuleLimits) -> Result<RuleLimits, Complaint> {
        let time = |time: Option<Located<Time>>, other: u64| match time {
            Some(Located { value, at }) => super::hooks::length(value, at),
            None => Ok(other),
        };
        let session = others.session;
        let session = SessionLimits {
            iterations: self.iterations.unwrap_or(session.iterations),
            duration_ms: time(self.duration, session.duration_ms)?,
            turn_ms: time(self.turn, session.turn_ms)?,
            errors: self.errors.unwrap_or(session.errors),
            hook_retries: self.hook_retries.unwrap_or(session.hook_retries),
            no_progress: self.no_progress.unwrap_or(session.no_progress),
            remediations: self.remediations.unwrap_or(session.remediations),
            continuations: self.continuations.unwrap_or(session.continuations),
            tokens: self.tokens.unwrap_or(session.tokens),
            cost_micros: self.cost.map_or(session.cost_micros, |cost| cost.0.0),
            unpriced_turns: match (self.unpriced_turns, self.cost) {
                (Some(turns), _) => turns,
                (None, Some(_)) => session.unpriced_turns.min(UNPRICED_TURNS),
                (None, None) => session.unpriced_turns,
            },
        };
        let purse = self.purse.map_or(Ok(Purse::default()), |entry| entry.value.read(entry.at))?;
        // Nothing set aside is no bound at all.
        let turn = BudgetBounds {
            cost_micros: match self.turn_cost {
                Some(Located { value: DollarAmount(Dollars(0)), at }) => {
                    return Err(Complaint::new(at, "`turn_cost` is more than nothing"));
                }
                cost => cost.map(|cost| cost.value.0.0),
            },
            tokens: match self.turn_tokens {
                Some(Located { value: 0, at }) => {
                    return Err(Complaint::new(at, "`turn_tokens` is more than nothing"));
                }
                tokens => tokens.map(|tokens| tokens.value),
            },
            turns: None,
        };
        let purse = Purse { turn, ..purse }.over(others.purse);
        let cascade = CascadeLimits {
            depth: self.cascade.depth.unwrap_or(others.cascade.depth),
            fan_out: self.cascade.fan_out.unwrap_or(others.cascade.fan_out),
            total: self.cascade.total.unwrap_or(others.cascade.total),
        };
        Ok(RuleLimits { cascade, session, purse })
    }
}

/// An amount of dollars that is not negative.
#[derive(Clone, Copy)]
pub(super) struct DollarAmount(pub(super) Dollars);

impl<'de> Deserialize<'de> for DollarAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        Dollars::new(amount).map(DollarAmount).map_err(de::Error::custom)
    }
}

/// How far hooks may set off hooks.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Cascade {
    /// Hooks that follow hooks.
    pub(super) depth: Option<u32>,
    /// Actions that one run of a hook may ask for.
    pub(super) fan_out: Option<u32>,
    /// Actions that one event may lead to.
    pub(super) total: Option<u32>,
}

/// A hook under its point. A bare string is a built-in by name.
pub(super) struct Entry(pub(super) Spanned<HookEntry>);

/// A hook: exactly one of `command`, `use`, `actions`, `http`, `gatekeeper` and the rules, and options.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HookEntry {
    /// What it is called; made from the command if it is not given.
    pub(super) name: Option<String>,
    /// A line for `sh`, or a program and its arguments as a list.
    pub(super) command: Option<Located<OneOrMany>>,
    /// A built-in hook by name.
    #[serde(rename = "use")]
    pub(super) builtin: Option<String>,
    /// What to do, without a process.
    #[schemars(with = "Option<Vec<ActionEntry>>")]
    pub(super) actions: Option<Vec<Spanned<ActionEntry>>>,
    /// A webhook: its URL.
    pub(super) http: Option<Located<String>>,
    /// Agents that review and give a verdict.
    pub(super) gatekeeper: Option<OneOrMany>,
    /// With several gatekeepers: whether `all` have to approve or `any` of them; `all` if it is not given.
    pub(super) quorum: Option<Located<String>>,
    /// A rule: this file is there.
    pub(super) file: Option<String>,
    /// A rule: a file that this path or pattern names has changed since the session began.
    pub(super) changed: Option<String>,
    /// A rule: files have a text, or do not.
    pub(super) pattern: Option<PatternEntry>,
    /// A rule: tests cover so many lines.
    pub(super) coverage: Option<CoverageEntry>,
    /// A rule: so much has changed since the session began, and no more.
    pub(super) diff: Option<DiffEntry>,
    /// Low runs first; 100 if it is not given.
    pub(super) priority: Option<i32>,
    pub(super) enabled: Option<bool>,
    /// A CEL expression that must be true for the hook to run.
    pub(super) when: Option<Located<String>>,
    /// Seconds, or a number with a unit: `500ms`, `30s`, `5m`, `1h`.
    pub(super) timeout: Option<Located<Time>>,
    /// Whether the agent is shown what the hook prints: true, false, or `on_failure`.
    pub(super) pipe_output: Option<Located<Pipe>>,
    /// Whether a gate that fails blocks (`closed`) or passes with a warning (`open`).
    pub(super) on_failure: Option<Located<Failure>>,
    /// Permission for the JSON that a gate prints: with `json` it may act, without it only make the gate stricter.
    pub(super) answers: Option<Located<AnswersEntry>>,
    /// Names of variables to let through, or names with values.
    pub(super) env: Option<Located<Env>>,
    /// The directory that it runs in, from the project's root. One that leads out of the project is refused.
    pub(super) cwd: Option<Located<String>>,
    /// Hooks of the same point that must have passed before.
    pub(super) needs: Option<Located<OneOrMany>>,
    /// At a gate: of the hooks that name the same group, one has to pass.
    pub(super) any_of: Option<String>,
    /// It may run beside neighbours that say the same.
    pub(super) parallel: Option<bool>,
    /// How often a failed run is tried again.
    pub(super) retry: Option<Located<RetryEntry>>,
    /// What its processes may not do.
    pub(super) sandbox: Option<Located<SandboxEntry>>,
    /// What its processes may use of the machine together.
    pub(super) limits: Option<Located<LimitsEntry>>,
    pub(super) description: Option<String>,
    pub(super) author: Option<String>,
    pub(super) version: Option<String>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryEntry {
    /// Runs in all, at most 10.
    pub(super) attempts: u32,
    /// The pause before the second run; it doubles each time.
    pub(super) backoff: Option<Time>,
    /// Whether a random part of each pause is left out; true if it is not given.
    pub(super) jitter: Option<bool>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SandboxEntry {
    /// `none`: no connection to anywhere, not even on this machine.
    pub(super) network: Option<Network>,
    /// The only places it may write to: `worktree` (the project's directory), `tmp` (a directory of its
    /// own, deleted after the run), or paths.
    pub(super) write: Option<Vec<String>>,
}

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HookLimitsEntry")]
pub(super) struct LimitsEntry {
    /// Processes at the same time; 1024 if it is not given.
    pub(super) processes: Option<u64>,
    /// Memory, such as `512MB` or `2GB`; three quarters of the machine's if it is not given.
    pub(super) memory: Option<String>,
    /// What is written to disks, such as `10GB`; three quarters of what is free if it is not given.
    pub(super) disk: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Network {
    None,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Failure {
    Open,
    Closed,
}

/// Permission for the JSON that a gate prints.
#[derive(Clone, Copy)]
pub(super) enum AnswersEntry {
    /// It may act.
    Json,
}

/// Exactly one action.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionEntry {
    /// A new task: `goal`, and perhaps `description`, `deliverables`, `labels`, `priority`, `type`, `parent_task_id`, `depends_on`.
    pub(super) create_task: Option<Value>,
    /// `task_id`, `action` and its `payload`.
    pub(super) update_task: Option<Value>,
    /// `{workflowId: name}`, or the name alone.
    pub(super) execute_workflow: Option<Value>,
    /// `type` and `data`; stored as `hook.<hook>.<type>`.
    pub(super) log: Option<Value>,
}

/// A value and where it is in the file.
pub(crate) struct Located<T> {
    pub(super) value: T,
    pub(super) at: Location,
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

/// A length of time as it is written.
#[derive(Clone, Debug)]
pub(super) enum Time {
    Seconds(u64),
    WithUnit(String),
}

/// `true`, `false` or `on_failure`.
pub(super) enum Pipe {
    Bool(bool),
    OnFailure,
}

/// Variables of an environment: names alone, or with values.
pub(crate) enum Env {
    Names(Vec<String>),
    Values(Pairs),
}

/// A text as it is, or where it is to be found.
pub(crate) enum GivenEntry {
    Text(String),
    Named(Pairs),
}

/// A string or a list of them.
#[derive(Clone)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(super) fn into_list(self) -> Vec<String> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

pub(super) type Pairs = Vec<(String, String)>;

/// Reads whichever of several forms a value has.
struct Forms<T> {
    expecting: &'static str,
    from_str: Option<fn(&str) -> Option<T>>,
    from_u64: Option<fn(u64) -> T>,
    from_bool: Option<fn(bool) -> T>,
    from_list: Option<fn(Vec<String>) -> T>,
    from_map: Option<fn(Pairs) -> T>,
    of: PhantomData<T>,
}

impl<T> Forms<T> {
    fn new(expecting: &'static str) -> Forms<T> {
        Forms {
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

impl<'de, T> Visitor<'de> for Forms<T> {
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
trait MapKey {
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

/// The entries of a map, in the order of the file.
fn pairs<'de, K: MapKey + Deserialize<'de>, V: Deserialize<'de>, A: MapAccess<'de>>(
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

impl<'de> Deserialize<'de> for Points {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Points;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("hook points with lists of hooks")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Points, A::Error> {
                pairs(map).map(Points)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms {
            from_str: Some(|text| Some(Time::WithUnit(text.to_owned()))),
            from_u64: Some(Time::Seconds),
            ..Forms::new(
                "a number of seconds, or a number with a unit (`500ms`, `30s`, `5m`, `1h`)",
            )
        })
    }
}

impl<'de> Deserialize<'de> for GivenEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms {
            from_str: Some(|text| Some(GivenEntry::Text(text.to_owned()))),
            from_map: Some(GivenEntry::Named),
            ..Forms::new("a text, `{env: NAME}` or `{file: PATH}`")
        })
    }
}

impl<'de> Deserialize<'de> for AnswersEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms {
            from_str: Some(|text| (text == "json").then_some(AnswersEntry::Json)),
            ..Forms::new("`json`")
        })
    }
}

impl<'de> Deserialize<'de> for Pipe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms {
            from_str: Some(|text| (text == "on_failure").then_some(Pipe::OnFailure)),
            from_bool: Some(Pipe::Bool),
            ..Forms::new("`true`, `false` or `on_failure`")
        })
    }
}

impl<'de> Deserialize<'de> for Env {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms {
            from_list: Some(Env::Names),
            from_map: Some(Env::Values),
            ..Forms::new("a list of variables to let through, or variables with values")
        })
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms {
            from_str: Some(|text| Some(OneOrMany::One(text.to_owned()))),
            from_list: Some(OneOrMany::Many),
            ..Forms::new("a string or a list of strings")
        })
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: NameOrHook(value), referenced, defined } =
            Spanned::deserialize(deserializer)?;
        Ok(Entry(Spanned { value, referenced, defined }))
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

/// Says what a hand-written reader takes, for the schema.
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

schema!(GivenEntry, _generator => json_schema!({
    "oneOf": [
        { "type": "string" },
        { "type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false,
          "properties": { "env": { "type": "string" }, "file": { "type": "string" } } },
    ],
}));

schema!(Time, _generator => json_schema!({
    "oneOf": [
        { "type": "integer", "minimum": 1, "maximum": 86400 },
        { "type": "string", "pattern": "^[0-9]+ ?(ms|s|m|h)?$" }
    ]
}));
schema!(DollarAmount, _generator => json_schema!({ "type": "number", "minimum": 0 }));
schema!(AnswersEntry, _generator => json_schema!({ "enum": ["json"] }));
schema!(Pipe, _generator => json_schema!({ "enum": [true, false, "on_failure"] }));
schema!(Env, _generator => json_schema!({
    "oneOf": [
        { "type": "array", "items": { "type": "string" } },
        { "type": "object", "additionalProperties": { "type": "string" } }
    ]
}));
schema!(OneOrMany, _generator => json_schema!({
    "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
}));
schema!(Entry, generator => {
    let names: Vec<&str> =
        hookloop_core::builtin::Builtin::ALL.into_iter().map(|builtin| builtin.name()).collect();
    let hook = generator.subschema_for::<HookEntry>();
    json_schema!({ "oneOf": [{ "enum": names }, hook] })
});
schema!(Points, generator => {
    let list = generator.subschema_for::<Vec<Entry>>();
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
