//! `hookloop.yaml`, read strictly: what is not known is an error with its line.

pub(crate) mod agents;
mod delivery;
mod entry;
mod hooks;
pub(crate) mod looping;
pub(crate) mod network;
pub(crate) mod notify;
pub(crate) mod policy;
mod scheduling;
pub(crate) mod telemetry;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use hookloop_core::builtin::Builtin;
use hookloop_core::hook::{DeclaredAction, Hook, HookRegistry, HookSource};
use hookloop_core::id::ProjectName;
use hookloop_core::point::Point;
use hookloop_core::session::StopWhen;
use hookloop_core::workflow::MAX_STEPS;
use serde_saphyr::{Location, Spanned};

use crate::policy::Policy;
use crate::rules::{DeliveryRules, Rules, TypeRules};
use entry::{ActionEntry, File};
pub(crate) use entry::{Limits, Points};
use hooks::Reader;

use crate::user::{StoreName, User};

/// The name of the file that makes a directory a project.
pub const FILE_NAME: &str = "hookloop.yaml";
pub const VERSION: u64 = 1;
const MAX_BYTES: u64 = 256 * 1024;
const MAX_DEPTH: usize = 16;
const MAX_NODES: usize = 20_000;
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

/// What a project's file says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub rules: Rules,
    /// The project's name among those who share a store.
    pub project: Option<ProjectName>,
    pub store: StoreName,
}

/// Reads a project's file, under what the user has of hooks and limits.
pub fn settings(path: &Path, user: &User) -> Result<Settings, ConfigError> {
    read(path, |text| parse(text, user))
}

/// Reads a project's file from its bytes; `path` is what complaints call it.
pub fn settings_from(path: &Path, bytes: &[u8]) -> Result<Settings, ConfigError> {
    read_bytes(path, bytes, |text| parse(text, &User::default()))
}

/// Reads an operator's file; `number` says which of several it is.
pub(crate) fn policy(path: &Path, number: usize) -> Result<Policy, ConfigError> {
    read(path, |text| policy::parse(text, path, number))
}

/// Reads `path` within the limits that hold for every file of ours.
pub(crate) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Complaint>,
) -> Result<T, ConfigError> {
    let failed = |error: std::io::Error| ConfigError {
        path: path.to_owned(),
        line: None,
        column: None,
        message: error.to_string(),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // What is longer is not read to its end, whatever length the file claims to have.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    read_bytes(path, &bytes, parse)
}

fn read_bytes<T>(
    path: &Path,
    bytes: &[u8],
    parse: impl FnOnce(&str) -> Result<T, Complaint>,
) -> Result<T, ConfigError> {
    let error = |(line, column): (u64, u64), message: String| ConfigError {
        path: path.to_owned(),
        line: Some(line),
        column: Some(column),
        message,
    };
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the file goes on here, after {MAX_BYTES} bytes, which are enough");
        return Err(error(place_of(&bytes[..MAX_BYTES as usize]), message));
    }
    let text = std::str::from_utf8(bytes).map_err(|wrong| {
        error(place_of(&bytes[..wrong.valid_up_to()]), "this is not UTF-8".to_owned())
    })?;
    parse(text).map_err(|complaint| {
        let at = complaint.at.filter(|at| at.line() > 0 && at.column() > 0);
        error(at.map_or(BEGINNING, |at| (at.line(), at.column())), complaint.message)
    })
}

/// Where a complaint is about the file as a whole.
const BEGINNING: (u64, u64) = (1, 1);

/// The line and column that follow `before`.
fn place_of(before: &[u8]) -> (u64, u64) {
    let line = before.split(|byte| *byte == b'\n').next_back().unwrap_or_default();
    let lines = before.iter().filter(|byte| **byte == b'\n').count();
    (lines as u64 + 1, String::from_utf8_lossy(line).chars().count() as u64 + 1)
}

/// Keys that no repository's file may have, with the reason. They are not among the keys of `File`, so no list of keys
/// names them.
const REFUSED_KEYS: [(&str, &str); 4] = [
    (
        "secrets",
        "a repository does not say where secrets are: \
         that is for your own configuration, or for a policy",
    ),
    (
        "notify",
        "`notify` is yours, and not a repository's: it belongs in ~/.config/hookloop/config.yaml",
    ),
    (
        "gates",
        "`gates` is yours, and not a repository's: it belongs in ~/.config/hookloop/config.yaml",
    ),
    (
        "network",
        "a repository does not choose a proxy or certificates: \
         `network` belongs in ~/.config/hookloop/config.yaml",
    ),
];
/// A key that only the top level of a repository's file has.
const TOP_LEVEL_KEY: &str = "task_types";
/// How alike two keys are, from 0 to 1, for one to be suggested in place of the other.
const ALIKE: f64 = 0.8;

/// Describes a key that is not known, by the keys that are allowed in its place.
fn unknown_key(key: &str, allowed: &[&str]) -> String {
    let refused = REFUSED_KEYS.iter().find(|(refused, _)| *refused == key);
    if let Some((_, reason)) = refused.filter(|_| allowed.contains(&TOP_LEVEL_KEY)) {
        return (*reason).to_owned();
    }
    let likeness = |other: &&str| strsim::jaro(key, other);
    let alike = allowed.iter().copied().filter(|other| likeness(other) >= ALIKE);
    let nearest = alike.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let suggestion = nearest.map_or(String::new(), |key| format!("; did you mean `{key}`?"));
    match allowed.is_empty() {
        true => format!("unknown key `{key}`; no keys are allowed here"),
        false => format!("unknown key `{key}`{suggestion}; known keys: {}", allowed.join(", ")),
    }
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
        if let serde_saphyr::Error::SerdeUnknownField { field, expected, .. } = &error {
            return Complaint { at, message: unknown_key(field, expected) };
        }
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

fn parse(text: &str, user: &User) -> Result<Settings, Complaint> {
    let mut file: File = from_yaml(text)?;
    check_version(&file.version)?;
    let set_limits = file.limits.set()?;
    let wanted = file.limits.over(user.limits)?;
    let limits = wanted.within(user.limits);
    let workflows = read_workflows(&file.workflows)?;
    let mut hooks = HookRegistry::builtin();
    let required = user.policy.gates().map(|gate| &gate.value);
    for hook in required.chain(&user.hooks) {
        hooks.register(hook.clone()).map_err(|error| Complaint {
            at: None,
            message: format!("with {}: {error}", user.path.display()),
        })?;
    }
    let without_project = hooks.clone();
    let gatekeepers = delivery::gatekeepers(file.gatekeepers)?;
    let mut reader = Reader::new(&mut hooks, &workflows, &gatekeepers, HookSource::Project);
    reader.read(file.hooks, None)?;
    let mut types = BTreeMap::new();
    for (name, task_type) in file.task_types {
        delivery::check_type_name(&name, &task_type)?;
        reader.read(task_type.value.hooks, Some(&name))?;
        types.insert(
            name,
            TypeRules {
                agents: task_type.value.agents,
                no_changes_ok: task_type.value.no_changes_ok,
            },
        );
    }
    for (name, hooks) in agents::own_hooks(&mut file.agents) {
        reader.read_of_agent(hooks, &name)?;
    }
    let is_listed = reader.has_list(&Point::BeforeSubmit);
    reader.check_needs()?;
    let deciding = hooks.resolve(Point::StopWhen.name(), None);
    let deciding: Vec<String> = deciding.into_iter().map(|hook| hook.name.clone()).collect();
    let mut session = file.session.read(&deciding, user.at_retry_limit)?;
    let of_project = agents::read(file.agents, HookSource::Project)?;
    // What counts for nothing has to be read without a mistake nevertheless.
    let brings_nothing = user.policy.no_repository_hooks().is_some();
    let (workflows, gatekeepers, of_project, is_listed) = match brings_nothing {
        false => (workflows, gatekeepers, of_project, is_listed),
        true => {
            hooks = without_project;
            session.prompt = None;
            let is_left = |way: &StopWhen| match way {
                StopWhen::Hook(name) => hooks.get(name).is_some(),
                _ => true,
            };
            session.stop_when.retain(is_left);
            if session.stop_when.is_empty() {
                session.stop_when = vec![StopWhen::Default];
            }
            (Workflows::new(), Vec::new(), Vec::new(), false)
        }
    };
    let delivery = match file.delivery {
        Some(entry) => Some(entry.read()?),
        None => delivery::has_delivery_hooks(&hooks).then(DeliveryRules::default),
    };
    // What a project does with work that is done, if it says nothing else.
    if delivery.is_some() && !is_listed {
        for step in Builtin::SUBMISSION {
            let step = Hook { points: vec![Point::BeforeSubmit], ..step.hook() };
            hooks
                .register(step)
                .map_err(|error| Complaint { at: None, message: error.to_string() })?;
        }
    }
    // Nobody else says what an agent of the user's is.
    let is_theirs =
        |agent: &crate::agents::Settings| user.agents.iter().all(|own| own.name != agent.name);
    let agents = user.agents.iter().cloned().chain(of_project.into_iter().filter(is_theirs));
    let (is_limited, agents) = (wanted != limits, agents.collect());
    Ok(Settings {
        rules: Rules {
            hooks,
            workflows,
            limits,
            set_limits,
            is_limited,
            types,
            session,
            agents,
            delivery,
            gatekeepers,
            policy: user.policy.clone(),
            scheduling: file.scheduling.read()?,
            untrusted_actions: BTreeSet::new(),
            wants_no_gates: user.wants_no_gates,
            prices: user.prices.clone(),
        },
        project: file.project.map(read_word).transpose()?,
        store: file.store.map(read_word).transpose()?.unwrap_or_default(),
    })
}

/// The hooks of the user's own file.
pub(crate) fn own_hooks(points: Points) -> Result<Vec<Hook>, Complaint> {
    let (mut hooks, workflows) = (HookRegistry::default(), Workflows::new());
    let mut reader = Reader::new(&mut hooks, &workflows, &[], HookSource::User);
    reader.read(points, None)?;
    reader.check_needs()?;
    Ok(hooks.list().to_vec())
}

/// What editors need to complete a project's file: a JSON Schema.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}

/// The same for an operator's policy.
pub fn policy_schema() -> serde_json::Value {
    schemars::schema_for!(policy::File).to_value()
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
        ("missing field `version`", "`version` is missing; begin the file with `version: 1`"),
        ("unexpected end of input", "the file is empty; write `version: 1`"),
    ];
    if let Some(rest) = message.strip_prefix("duplicate mapping key: ") {
        let key = rest.split(", set ").next().unwrap_or(rest);
        return format!("`{key}` is there twice");
    }
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
        let read = steps.value.iter().map(|step| hooks::read_action(step, &known));
        let read: Vec<DeclaredAction> = read.collect::<Result<_, _>>()?;
        // Nobody is asked for their word about a workflow.
        if read.iter().any(DeclaredAction::decides) {
            let message = format!(
                "workflow `{name}` completes or unblocks a task, which a hook with `actions` does after `hookloop hooks trust`"
            );
            return Err(Complaint::new(steps.referenced, message));
        }
        workflows.insert(name.clone(), read);
    }
    Ok(workflows)
}

fn check_name(name: &str, at: Location) -> Result<(), Complaint> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=NAME_MAX).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    let message = format!("`{name}` is not a name: 1 to {NAME_MAX} letters, digits, `_` or `-`");
    Err(Complaint::new(at, message))
}

#[cfg(test)]
mod tests {
    use hookloop_core::urgency::PriorityAging;

    use super::*;
    use crate::rules::Scheduling;

    fn names(hook: &hookloop_core::hook::Hook) -> Vec<&str> {
        hook.points.iter().map(hookloop_core::point::Point::name).collect()
    }

    fn complaint(text: &str) -> (u64, String) {
        match parse(text, &User::default()) {
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
            &User::default(),
        );
        let hooks = rules.map_err(|c| c.message).unwrap().rules.hooks;
        let review = hooks.get("auto-create-review-task").unwrap();
        assert_eq!((names(review), review.priority), (vec!["task_created"], 10));
        assert_eq!(hooks.get("check-dependency-satisfaction").unwrap().priority, 0);
        let track = hooks.get("track-agent-task-lifecycle").unwrap();
        assert_eq!((track.points.len(), track.enabled), (1, false));
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
        let hooks = parse(&file("x"), &User::default()).map_err(|c| c.message).unwrap().rules.hooks;
        assert_eq!(names(hooks.get("a").unwrap()), ["task_created", "task_started"]);
        assert!(complaint(&file("y")).1.contains("two hooks named `a`"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let check = |text: &str, line: u64, part: &str| {
            let (at, message) = complaint(text);
            assert!(at == line && message.contains(part), "{text}\n-> line {at}: {message}");
        };
        check("version: 2\n", 1, "version 2 is not known");
        check("hooks: {}\n", 1, "begin the file with `version: 1`");
        check("version: 1\nhook: {}\n", 2, "hook");
        check("version: 1\nhooks: {}\nhooks: {}\n", 3, "`hooks` is there twice");
        check("version: 1\nhooks:\n  task_done:\n    - auto-create-review-task\n", 3, "task_done");
        check("version: 1\nhooks:\n  stop: []\n  task_done:\n\n    - a\n", 4, "task_done");
        check(
            "version: 1\ntask_types:\n  bug:\n    hooks:\n      stop: []\n      stopp: []\n",
            6,
            "`stopp` is not a hook point",
        );
        check(
            "version: 1\nagents:\n  claude:\n    hooks:\n      stop:\n        - {command: a}\n",
            5,
            "not at `stop`",
        );
        check("version: 1\nhooks:\n  task_created:\n    - no-such\n", 4, "no-such");
        check(
            "version: 1\nhooks:\n  task_created:\n    - {use: x, actions: []}\n",
            4,
            "exactly one",
        );
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
        check("version: 1\nscheduling:\n  ageing: soon\n", 3, "or `never`");
        check("version: 1\nscheduling:\n  wip: 0\n", 3, "`wip` is 1 or more");
        check("version: 1\nscheduling:\n  wip_of:\n    bug: 0\n", 4, "`bug` is 1 or more");
        check("version: 1\nscheduling:\n  limit: 1\n", 3, "limit");
        check("version: 1\nhooks:\n  task_done: []\n", 3, "task_done");
        check(
            "version: 1\nhooks:\n  stop:\n    - command: 'true'\n      needs: b\n",
            5,
            "no other hook",
        );
    }

    /// A key that is refused where it stands is no advice.
    #[test]
    fn a_list_of_keys_names_no_key_that_is_refused() {
        let (line, message) = complaint("version: 1\nsecret: {}\n");
        assert!(
            line == 2 && message.starts_with("unknown key `secret`; known keys: "),
            "{message}"
        );
        for (key, reason) in REFUSED_KEYS {
            assert!(!message.split([' ', ',']).any(|word| word == key), "{key}: {message}");
            assert_eq!(complaint(&format!("version: 1\n{key}: {{}}\n")), (2, reason.to_owned()));
        }
        let (_, message) = complaint("version: 1\nlimitz: {}\n");
        assert!(message.contains("did you mean `limits`?"), "{message}");
        // The key of a sandbox has the name of one that is refused above it.
        let (_, message) =
            complaint("version: 1\nhooks:\n  stop:\n    - {command: a, sandbox: {netwrk: none}}\n");
        assert!(message.contains("did you mean `network`?"), "{message}");
        let (_, message) =
            complaint("version: 1\nhooks:\n  stop:\n    - {command: a, network: none}\n");
        assert!(message.starts_with("unknown key `network`"), "{message}");
    }

    #[test]
    fn a_limit_of_cost_is_an_amount_of_money() {
        for limit in ["cost: -1", "cost: .nan", "cost: .inf", "cost: -.inf", "cost: -0.01"] {
            for text in
                [format!("limits:\n  {limit}\n"), format!("limits:\n  purse: {{{limit}}}\n")]
            {
                let (line, message) = complaint(&format!("version: 1\n{text}"));
                assert!(line == 3 && message.contains("is not an amount of dollars"), "{message}");
            }
        }
        for amount in ["-1", ".nan", ".inf"] {
            let (_, message) = complaint(&format!("version: 1\nlimits: {{turn_cost: {amount}}}\n"));
            assert!(message.contains("is not an amount of dollars"), "{message}");
        }
        let text = "version: 1\nlimits: {cost: 2.5, purse: {cost: 10}}\n";
        let limits = parse(text, &User::default()).map_err(|wrong| wrong.message).unwrap();
        assert_eq!(limits.rules.limits.session.cost_micros, 2_500_000);
        assert_eq!(limits.rules.limits.purse.day.cost_micros, Some(10_000_000));
    }

    #[test]
    fn a_length_without_a_unit_is_in_seconds() {
        for length in ["45", "'45'", "45s", "'45 s'"] {
            let text = format!("version: 1\nlimits: {{duration: {length}, turn: {length}}}\n");
            let limits = parse(&text, &User::default()).map_err(|wrong| wrong.message).unwrap();
            let session = limits.rules.limits.session;
            assert_eq!((session.duration_ms, session.turn_ms), (45_000, 45_000), "{length}");
        }
    }

    #[test]
    fn scheduling_is_read() {
        let check = |yaml: &str, ageing: PriorityAging, wip: Option<u32>, of_bug: Option<u32>| {
            let text = format!("version: 1\nscheduling: {yaml}\n");
            let rules = parse(&text, &User::default()).map_err(|c| c.message).unwrap().rules;
            let Scheduling { ageing: real, slots } = rules.scheduling;
            let bugs = slots.of_type.get("bug").copied();
            assert_eq!((real, slots.all, bugs), (ageing, wip, of_bug), "{yaml}");
        };
        check("{}", PriorityAging::default(), None, None);
        check("{ageing: never, wip: 4}", PriorityAging::Never, Some(4), None);
        check("{ageing: 2d}", PriorityAging::Each { ms: 172_800_000 }, None, None);
        check("{ageing: 60, wip_of: {bug: 2}}", PriorityAging::Each { ms: 60_000 }, None, Some(2));
    }

    #[test]
    fn what_can_not_be_read_has_a_place_too() {
        let check = |bytes: &[u8], line: u64, column: u64| {
            let error = settings_from(Path::new("f"), bytes).map(drop).unwrap_err();
            assert_eq!((error.line, error.column), (Some(line), Some(column)), "{error}");
        };
        check(b"version: 1\n# \xc3\xa9 \xff\n", 2, 5);
        check(b"", 1, 1);
        check(b"hooks: {}\n", 1, 1);
        let long = "version: 1\n".to_owned() + &"#\n".repeat(MAX_BYTES as usize);
        check(long.as_bytes(), 131_068, 2);
    }

    /// A file of a stranger is read, or refused, at once.
    #[test]
    fn the_worst_files_are_read_soon() {
        let many = |entry: &dyn Fn(usize) -> String| -> String { (0..19_000).map(entry).collect() };
        for text in [
            format!("version: 1\nhooks: {{{}}}\n", many(&|n| format!("p{n}: [], "))),
            format!(
                "version: 1\nhooks: {{stop: [{{command: 'true', env: {{{}}}}}]}}\n",
                many(&|n| format!("v{n}: a, "))
            ),
        ] {
            // The processor time of this thread: a busy machine is no failure.
            let now = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            let begun = now();
            assert!(parse(&text, &User::default()).is_err());
            let took = std::time::Duration::try_from(now() - begun).unwrap();
            assert!(took.as_millis() < 500, "{took:?}");
        }
    }
}
