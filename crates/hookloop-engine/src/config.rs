//! `hookloop.yaml`, read strictly: what is not known is an error with its line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use hookloop_core::builtin::Builtin;
use hookloop_core::cascade::CascadeLimits;
use hookloop_core::hook::{
    DEFAULT_PRIORITY, DeclaredAction, Handler, Hook, Metadata, Registry, RegistryError,
};
use hookloop_core::id::ProjectName;
use hookloop_core::template::TemplateValue;
use hookloop_core::workflow::MAX_STEPS;
use serde::Deserialize;
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};

use crate::rules::Rules;
use crate::user::StoreName;

/// The name of the file that makes a directory a project.
pub const FILE_NAME: &str = "hookloop.yaml";
pub const VERSION: u64 = 1;
const MAX_BYTES: u64 = 256 * 1024;
const MAX_DEPTH: usize = 16;
const MAX_NODES: usize = 20_000;
const MAX_HOOKS: usize = 256;
/// The longest name of a hook or workflow.
const NAME_MAX: usize = 64;

/// What is wrong, and where.
#[derive(Debug, thiserror::Error)]
pub struct ConfigError {
    pub path: PathBuf,
    pub line: Option<u64>,
    pub column: Option<u64>,
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A complaint about one place in the file.
pub(crate) struct Complaint {
    pub(crate) at: Option<Location>,
    pub(crate) message: String,
}

impl Complaint {
    pub(crate) fn new(at: Location, message: impl ToString) -> Complaint {
        Complaint { at: Some(at), message: message.to_string() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: Spanned<u64>,
    project: Option<Spanned<String>>,
    store: Option<Spanned<String>>,
    #[serde(default)]
    hooks: BTreeMap<String, Vec<Entry>>,
    #[serde(default)]
    workflows: BTreeMap<String, Spanned<Vec<Spanned<ActionEntry>>>>,
    #[serde(default)]
    limits: Limits,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    #[serde(default)]
    cascade: Cascade,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cascade {
    depth: Option<u32>,
    fan_out: Option<u32>,
    total: Option<u32>,
}

/// A hook under its point. A bare string is a built-in by name.
struct Entry(Spanned<HookEntry>);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HookEntry {
    name: Option<String>,
    #[serde(rename = "use")]
    builtin: Option<String>,
    actions: Option<Vec<Spanned<ActionEntry>>>,
    priority: Option<i32>,
    enabled: Option<bool>,
    description: Option<String>,
    author: Option<String>,
    version: Option<String>,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value: OneOrMap(value), referenced, defined } =
            Spanned::deserialize(deserializer)?;
        Ok(Entry(Spanned { value, referenced, defined }))
    }
}

struct OneOrMap(HookEntry);

impl<'de> Deserialize<'de> for OneOrMap {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrMap;
        impl<'de> Visitor<'de> for StringOrMap {
            type Value = OneOrMap;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a built-in hook, or a hook with its options")
            }

            fn visit_str<E>(self, name: &str) -> Result<OneOrMap, E> {
                Ok(OneOrMap(HookEntry { builtin: Some(name.to_owned()), ..HookEntry::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OneOrMap, A::Error> {
                HookEntry::deserialize(MapAccessDeserializer::new(map)).map(OneOrMap)
            }
        }
        deserializer.deserialize_any(StringOrMap)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionEntry {
    create_task: Option<Value>,
    update_task: Option<Value>,
    execute_workflow: Option<Value>,
    log: Option<Value>,
}

/// What a project's file says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub rules: Rules,
    /// The project's name among those who share a store.
    pub project: Option<ProjectName>,
    pub store: StoreName,
}

/// Reads the rules of a project from `path`.
pub fn load(path: &Path) -> Result<Rules, ConfigError> {
    settings(path).map(|settings| settings.rules)
}

/// Reads a project's file.
pub fn settings(path: &Path) -> Result<Settings, ConfigError> {
    read(path, parse)
}

/// Reads `path` within the limits that hold for every file of ours.
pub(crate) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Complaint>,
) -> Result<T, ConfigError> {
    let error =
        |message: String| ConfigError { path: path.to_owned(), line: None, column: None, message };
    let size = std::fs::metadata(path).map_err(|e| error(e.to_string()))?.len();
    if size > MAX_BYTES {
        return Err(error(format!("{size} bytes are too many: at most {MAX_BYTES}")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| error(e.to_string()))?;
    parse(&text).map_err(|complaint| ConfigError {
        line: complaint.at.map(|at| at.line()),
        column: complaint.at.map(|at| at.column()),
        ..error(complaint.message)
    })
}

/// Reads YAML strictly: no anchors, nothing unknown, nothing deep.
pub(crate) fn from_yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Complaint> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_anchors: 0,
            max_depth: MAX_DEPTH,
            max_documents: 1,
            max_nodes: MAX_NODES,
            max_merge_keys: 0,
        },
        with_snippet: false,
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let at = error.location();
        let message = error.to_string();
        let message = match message.strip_prefix("budget breached: ") {
            Some(which) => {
                format!("anchors, aliases and files this large or deep are not read ({which})")
            }
            None => in_plain_words(message.split(" at line ").next().unwrap_or(&message)),
        };
        Complaint { at, message }
    })
}

pub(crate) fn check_version(version: &Spanned<u64>) -> Result<(), Complaint> {
    match version.value {
        VERSION => Ok(()),
        other => {
            let message = format!("version {other} is not known; write `version: {VERSION}`");
            Err(Complaint::new(version.referenced, message))
        }
    }
}

/// Reads one word of the file as what it stands for.
pub(crate) fn read_word<T>(word: Spanned<String>) -> Result<T, Complaint>
where
    T: std::str::FromStr<Err: fmt::Display>,
{
    word.value.parse().map_err(|error| Complaint::new(word.referenced, error))
}

fn parse(text: &str) -> Result<Settings, Complaint> {
    let file: File = from_yaml(text)?;
    check_version(&file.version)?;
    let defaults = CascadeLimits::default();
    let limits = CascadeLimits {
        depth: file.limits.cascade.depth.unwrap_or(defaults.depth),
        fan_out: file.limits.cascade.fan_out.unwrap_or(defaults.fan_out),
        total: file.limits.cascade.total.unwrap_or(defaults.total),
    };
    let workflows = read_workflows(&file.workflows)?;
    let hooks = read_hooks(file.hooks, &workflows)?;
    Ok(Settings {
        rules: Rules { hooks, workflows, limits },
        project: file.project.map(read_word).transpose()?,
        store: file.store.map(read_word).transpose()?.unwrap_or_default(),
    })
}

/// A parser's complaint in the words of someone who writes YAML.
fn in_plain_words(message: &str) -> String {
    let known = [
        ("invalid i32", "a whole number belongs here"),
        ("invalid u32", "a whole number, not negative, belongs here"),
        ("invalid u64", "a whole number, not negative, belongs here"),
        ("invalid boolean", "`true` or `false` belongs here"),
        ("expected mapping start", "`key: value` lines belong here"),
        ("expected sequence start", "a list (lines that start with `- `) belongs here"),
        ("unexpected end of input", "the file is empty; write `version: 1`"),
    ];
    let found = known.into_iter().find(|(theirs, _)| message.contains(theirs));
    found.map_or(message, |(_, ours)| ours).to_owned()
}

type Workflows = BTreeMap<String, Vec<DeclaredAction>>;

fn read_workflows(
    entries: &BTreeMap<String, Spanned<Vec<Spanned<ActionEntry>>>>,
) -> Result<Workflows, Complaint> {
    let mut workflows = Workflows::new();
    for (name, steps) in entries {
        check_name(name, steps.referenced)?;
        if steps.value.is_empty() || steps.value.len() > MAX_STEPS {
            let message = format!("workflow `{name}` needs 1 to {MAX_STEPS} steps");
            return Err(Complaint::new(steps.referenced, message));
        }
        let known = |workflow: &str| entries.contains_key(workflow);
        let steps = steps.value.iter().map(|step| read_action(step, &known));
        workflows.insert(name.clone(), steps.collect::<Result<_, _>>()?);
    }
    Ok(workflows)
}

fn read_hooks(
    points: BTreeMap<String, Vec<Entry>>,
    workflows: &Workflows,
) -> Result<Registry, Complaint> {
    let mut hooks = Registry::builtin();
    let mut listed: Vec<&str> = Vec::new();
    let mut count = 0;
    for (point, entries) in points {
        for Entry(Spanned { value: entry, referenced: at, .. }) in entries {
            count += 1;
            if count > MAX_HOOKS {
                return Err(Complaint::new(at, format!("more than {MAX_HOOKS} hooks")));
            }
            match (&entry.builtin, &entry.actions) {
                (Some(_), None) => use_builtin(&mut hooks, &mut listed, &point, entry, at)?,
                (None, Some(_)) => declare(&mut hooks, &point, entry, at, workflows)?,
                _ => {
                    let message = "a hook has either `use` or `actions`";
                    return Err(Complaint::new(at, message));
                }
            }
        }
    }
    Ok(hooks)
}

/// A built-in that the file lists follows just the points it is listed under.
fn use_builtin(
    hooks: &mut Registry,
    listed: &mut Vec<&str>,
    point: &str,
    entry: HookEntry,
    at: Location,
) -> Result<(), Complaint> {
    let wanted = entry.builtin.unwrap_or_default();
    let builtin = Builtin::ALL.into_iter().find(|builtin| builtin.name() == wanted);
    let Some((builtin, hook)) = builtin.and_then(|b| Some((b, hooks.get_mut(b.name())?))) else {
        let known = Builtin::ALL.map(Builtin::name).join(", ");
        return Err(Complaint::new(
            at,
            format!("there is no built-in hook `{wanted}`; there are {known}"),
        ));
    };
    if let Some(name) = entry.name.filter(|name| *name != wanted) {
        let message = format!("a built-in keeps its name: `{wanted}`, not `{name}`");
        return Err(Complaint::new(at, message));
    }
    let defaults = builtin.hook();
    let priority = entry.priority.unwrap_or(defaults.priority);
    let enabled = entry.enabled.unwrap_or(true);
    if listed.contains(&builtin.name()) {
        if (hook.priority, hook.enabled) != (priority, enabled) {
            let message =
                format!("`{wanted}` has other options under another point; a hook has one set");
            return Err(Complaint::new(at, message));
        }
    } else {
        listed.push(builtin.name());
        hook.events.clear();
    }
    hook.events.push(point.to_owned());
    (hook.priority, hook.enabled) = (priority, enabled);
    describe(&mut hook.metadata, entry.description, entry.author, entry.version);
    hookloop_core::hook::check_events(&wanted, &hook.events).map_err(|e| Complaint::new(at, e))
}

fn describe(
    metadata: &mut Metadata,
    description: Option<String>,
    author: Option<String>,
    version: Option<String>,
) {
    metadata.description = description.or(metadata.description.take());
    metadata.author = author.or(metadata.author.take());
    metadata.version = version.or(metadata.version.take());
}

fn declare(
    hooks: &mut Registry,
    point: &str,
    entry: HookEntry,
    at: Location,
    workflows: &Workflows,
) -> Result<(), Complaint> {
    let Some(name) = entry.name else {
        return Err(Complaint::new(at, "a hook with `actions` needs a `name`"));
    };
    check_name(&name, at)?;
    let known = |workflow: &str| workflows.contains_key(workflow);
    let actions = entry.actions.unwrap_or_default();
    let actions = actions.iter().map(|action| read_action(action, &known));
    let mut metadata = Metadata::default();
    describe(&mut metadata, entry.description, entry.author, entry.version);
    let hook = Hook {
        name,
        events: vec![point.to_owned()],
        priority: entry.priority.unwrap_or(DEFAULT_PRIORITY),
        enabled: entry.enabled.unwrap_or(true),
        metadata,
        handler: Handler::Declared(actions.collect::<Result<_, _>>()?),
    };
    match hooks.get_mut(&hook.name) {
        // The same hook under a further point follows that too.
        Some(there) if there.is_alike(&hook) && !there.events.contains(&hook.events[0]) => {
            hookloop_core::hook::check_events(&hook.name, &hook.events)
                .map_err(|error| Complaint::new(at, error))?;
            there.events.extend(hook.events);
            Ok(())
        }
        _ => hooks.register(hook).map_err(|error: RegistryError| Complaint::new(at, error)),
    }
}

fn check_name(name: &str, at: Location) -> Result<(), Complaint> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=NAME_MAX).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let message = format!("`{name}` is not a name: 1 to {NAME_MAX} letters, digits, `_` or `-`");
    Err(Complaint::new(at, message))
}

fn read_action(
    entry: &Spanned<ActionEntry>,
    known_workflow: &dyn Fn(&str) -> bool,
) -> Result<DeclaredAction, Complaint> {
    let at = entry.referenced;
    let ActionEntry { create_task, update_task, execute_workflow, log } = &entry.value;
    let mut given = [
        ("create_task", create_task),
        ("update_task", update_task),
        ("execute_workflow", execute_workflow),
        ("log", log),
    ]
    .into_iter()
    .filter_map(|(kind, payload)| payload.as_ref().map(|payload| (kind, payload)));
    let (Some((kind, payload)), None) = (given.next(), given.next()) else {
        return Err(Complaint::new(
            at,
            "an action is one of create_task, update_task, execute_workflow, log",
        ));
    };
    // `execute_workflow: name` is short for `execute_workflow: {workflowId: name}`.
    let payload = match payload {
        Value::String(name) if kind == "execute_workflow" => {
            serde_json::json!({ "workflowId": name })
        }
        payload => payload.clone(),
    };
    DeclaredAction::check(kind, &payload)
        .map_err(|error| Complaint::new(at, format!("{kind}: {error}")))?;
    if let Some(workflow) = payload.get("workflowId").and_then(Value::as_str)
        && !known_workflow(workflow)
    {
        return Err(Complaint::new(at, format!("there is no workflow `{workflow}`")));
    }
    let payload = TemplateValue::parse(&payload).map_err(|error| Complaint::new(at, error))?;
    Ok(DeclaredAction { kind, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> (u64, String) {
        match parse(text) {
            Ok(_) => panic!("accepted: {text}"),
            Err(complaint) => (complaint.at.map_or(0, |at| at.line()), complaint.message),
        }
    }

    #[test]
    fn a_listed_builtin_follows_just_the_points_it_is_listed_under() {
        let rules = parse(
            "version: 1
hooks:
  task_created:
    - auto-create-review-task
  task_completed:
    - use: check-dependency-satisfaction
      priority: 0
    - {use: track-agent-task-lifecycle, enabled: false}
",
        );
        let hooks = rules.map_err(|c| c.message).unwrap().rules.hooks;
        let review = hooks.get("auto-create-review-task").unwrap();
        assert_eq!(
            (review.events.as_slice(), review.priority),
            (&["task_created".to_owned()][..], 10)
        );
        assert_eq!(hooks.get("check-dependency-satisfaction").unwrap().priority, 0);
        let track = hooks.get("track-agent-task-lifecycle").unwrap();
        assert_eq!((track.events.len(), track.enabled), (1, false));
    }

    #[test]
    fn one_hook_may_follow_several_points() {
        let log = |kind| format!("    - name: a\n      actions: [{{log: {{type: {kind}}}}}]\n");
        let file = |second| {
            format!(
                "version: 1\nhooks:\n  task_created:\n{}  task_started:\n{}",
                log("x"),
                log(second)
            )
        };
        let hooks = parse(&file("x")).map_err(|c| c.message).unwrap().rules.hooks;
        assert_eq!(hooks.get("a").unwrap().events, ["task_created", "task_started"]);
        assert!(complaint(&file("y")).1.contains("two hooks named `a`"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let check = |text: &str, line: u64, part: &str| {
            let (at, message) = complaint(text);
            assert!(at == line && message.contains(part), "{text}\n-> line {at}: {message}");
        };
        check("version: 2\n", 1, "version 2 is not known");
        check("version: 1\nhook: {}\n", 2, "hook");
        check("version: 1\nhooks:\n  task_done:\n    - auto-create-review-task\n", 4, "task_done");
        check("version: 1\nhooks:\n  task_created:\n    - no-such\n", 4, "no-such");
        check("version: 1\nhooks:\n  task_created:\n    - {use: x, actions: []}\n", 4, "either");
        check(
            "version: 1\nhooks:\n  task_created:\n    - name: a\n      actions:\n        - log: {typ: x}\n",
            6,
            "typ",
        );
        check(
            "version: 1\nhooks:\n  task_created:\n    - name: a\n      actions:\n        - create_task: {goal: '{{gaol}}'}\n",
            6,
            "gaol",
        );
        check(
            "version: 1\nhooks:\n  task_created:\n    - name: a\n      actions: [{execute_workflow: w}]\n",
            5,
            "no workflow `w`",
        );
        check("version: 1\nhooks: &a\n  task_created: []\n", 3, "anchors");
        check("version: 1\nworkflows: {w: []}\n", 2, "steps");
    }
}
