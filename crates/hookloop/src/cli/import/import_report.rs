//! The imported configuration and tasks, and a row for everything that was found.

use std::collections::BTreeSet;
use std::path::Path;

use hookloop_config::paths::FILE_NAME;
use hookloop_config::project_file::settings_from;
use hookloop_core::id::TaskId;
use hookloop_engine::bulk::ImportLine;
use hookloop_fleet::doctor::undeclared_in;
use serde_json::{Map, Value, json};

use super::yaml;

/// Rows that are printed at most; the others are counted.
const ROWS_MAX: usize = 1_000;
/// Hooks that hookloop.yaml can have.
const HOOKS_MAX: usize = 256;
/// Hooks of one name, distinguished by a number.
const NAMES_MAX: u32 = 20;
/// The longest name of a hook.
const NAME_MAX: usize = 64;
/// Characters of a text in a row.
const SHOWN_MAX: usize = 80;

/// The result for something that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    Kept,
    Changed,
    Lost,
}

impl Mapping {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mapping::Kept => "kept",
            Mapping::Changed => "changed",
            Mapping::Lost => "no equivalent",
        }
    }
}

/// Something that was found, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportRow {
    pub(super) what: String,
    pub(super) fate: Mapping,
    pub(super) why: String,
    /// How often the same row was found.
    pub(super) count: u64,
}

/// The result of an import.
pub(super) struct ImportReport {
    pub(super) tool: &'static str,
    /// Sections of a project's file.
    pub(super) config: Map<String, Value>,
    pub(super) tasks: Vec<ImportLine>,
    /// Ids of the tasks.
    pub(super) ids: BTreeSet<TaskId>,
    pub(super) rows: Vec<ReportRow>,
    /// Rows above the maximum.
    pub(super) more: u64,
    /// Hooks in the configuration.
    hooks: usize,
}

impl ImportReport {
    pub(super) fn new(tool: &'static str) -> ImportReport {
        ImportReport {
            tool,
            config: Map::new(),
            tasks: Vec::new(),
            ids: BTreeSet::new(),
            rows: Vec::new(),
            more: 0,
            hooks: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.config.is_empty() && self.tasks.is_empty()
    }

    pub(super) fn kept(&mut self, what: impl Into<String>) {
        self.row(Mapping::Kept, what.into(), String::new());
    }

    pub(super) fn changed(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.row(Mapping::Changed, what.into(), why.into());
    }

    pub(super) fn lose(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.row(Mapping::Lost, what.into(), why.into());
    }

    fn row(&mut self, fate: Mapping, what: String, why: String) {
        let what = shown(&what);
        let is_same = |row: &&mut ReportRow| row.what == what && row.fate == fate && row.why == why;
        if let Some(row) = self.rows.iter_mut().find(is_same) {
            row.count += 1;
        } else if self.rows.len() < ROWS_MAX {
            self.rows.push(ReportRow { what, fate, why, count: 1 });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn lost(&self) -> impl Iterator<Item = &ReportRow> {
        self.rows.iter().filter(|row| row.fate == Mapping::Lost)
    }

    /// Returns the rows in one line, for an error.
    pub(super) fn in_a_line(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(ReportRow::in_words).collect();
        rows.join("; ")
    }

    pub(super) fn lost_in_a_line(&self) -> String {
        let rows: Vec<String> = self.lost().map(ReportRow::in_words).collect();
        rows.join("; ")
    }

    /// Imports a hook, if it can run here; `changes` are the differences from the other tool. Returns whether it could.
    pub(super) fn hook(&mut self, point: &str, found: FoundHook, changes: &[String]) -> bool {
        let FoundHook { what, mut entry } = found;
        let mut changes = changes.to_vec();
        if let Some(name) = entry.get("name").and_then(Value::as_str).and_then(fitting_name) {
            changes.push(format!("it is called `{name}`: names are letters, digits, `_` and `-`"));
            entry.insert("name".to_owned(), Value::from(name));
        }
        let line = entry.get("command").and_then(Value::as_str).unwrap_or_default();
        let variables = undeclared_in(line);
        if !variables.is_empty() && !entry.contains_key("env") {
            changes.push(format!(
                "`env` passes {} on: hooks get only the variables that they name",
                variables.join(", ")
            ));
            entry.insert("env".to_owned(), json!(variables));
        }
        if self.hooks == HOOKS_MAX {
            self.lose(what, format!("there are {HOOKS_MAX} hooks already"));
            return false;
        }
        if let Err(why) = self.check(point, &entry) {
            self.lose(what, why);
            return false;
        }
        let hooks = match self.with_hook(point, entry) {
            Ok((hooks, None)) => hooks,
            Ok((hooks, Some(name))) => {
                changes.push(format!("renamed to `{name}`: another hook has its name"));
                hooks
            }
            Err(why) => {
                self.lose(what, why);
                return false;
            }
        };
        self.config.insert("hooks".to_owned(), hooks);
        self.hooks += 1;
        if changes.is_empty() {
            self.kept(what);
        } else {
            self.changed(what, changes.join("; "));
        }
        true
    }

    /// Returns the hooks with one more, and its new name if its own is taken.
    fn with_hook(
        &self,
        point: &str,
        mut entry: Map<String, Value>,
    ) -> Result<(Value, Option<String>), String> {
        let known = entry.get("name").and_then(Value::as_str).unwrap_or(point).to_owned();
        let mut why = String::new();
        for number in 1..=NAMES_MAX {
            let name = (number > 1).then(|| format!("{known}-{number}"));
            if let Some(name) = &name {
                entry.insert("name".to_owned(), json!(name));
            }
            let mut hooks = self.config.get("hooks").cloned().unwrap_or_else(|| json!({}));
            match hooks[point].as_array_mut() {
                Some(list) => list.push(entry.clone().into()),
                None => hooks[point] = json!([entry.clone()]),
            }
            match self.check_all(&hooks) {
                Ok(()) => return Ok((hooks, name)),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Fails if a hook is invalid at a point, alone in a file.
    pub(super) fn check(&self, point: &str, entry: &Map<String, Value>) -> Result<(), String> {
        self.check_all(&json!({ point: [entry.clone()] }))
    }

    fn check_all(&self, hooks: &Value) -> Result<(), String> {
        let mut sections = Map::from_iter([("hooks".to_owned(), hooks.clone())]);
        // Reviewing agents are defined beside the hooks.
        if let Some(gatekeepers) = self.config.get("gatekeepers") {
            sections.insert("gatekeepers".to_owned(), gatekeepers.clone());
        }
        let read = settings_from(Path::new(FILE_NAME), yaml::text(&sections).as_bytes());
        read.map(|_| ()).map_err(|error| error.message)
    }

    /// Sets `section.key`, such as a limit.
    pub(super) fn set(&mut self, section: &str, key: &str, value: Value) {
        let section = self.config.entry(section).or_insert_with(|| json!({}));
        section[key] = value;
    }

    /// Sets `section.key` if a file can have this value; `what` is its name in the row. A value that another file or
    /// section has set before stays.
    pub(super) fn set_or_lose(&mut self, section: &str, key: &str, value: Value, what: String) {
        let there = self.config.get(section).and_then(|section| section.get(key));
        if let Some(there) = there.filter(|there| **there != value) {
            let why = format!("left out: `{section}.{key}` is {there} already");
            return self.lose(what, why);
        }
        let members = Map::from_iter([(key.to_owned(), value.clone())]);
        let file = Map::from_iter([(section.to_owned(), Value::Object(members))]);
        match settings_from(Path::new(FILE_NAME), yaml::text(&file).as_bytes()) {
            Ok(_) => {
                self.set(section, key, value);
                self.kept(what);
            }
            Err(error) => self.lose(what, format!("left out: {}", error.message)),
        }
    }

    /// Adds a row for each limit that a repository's file can't set by itself.
    pub(super) fn note_wide_limits(&mut self) {
        let Some(Value::Object(limits)) = self.config.get("limits").cloned() else { return };
        for (key, value) in limits {
            let section = Map::from_iter([(key.clone(), value.clone())]);
            let file = Map::from_iter([("limits".to_owned(), Value::Object(section))]);
            let read = settings_from(Path::new(FILE_NAME), yaml::text(&file).as_bytes());
            if read.is_ok_and(|settings| settings.rules.is_limited) {
                let why = format!(
                    "a repository can only tighten limits: this one applies if ~/.config/hookloop/config.yaml has \
                     `limits: {{{key}: {value}}}` too"
                );
                self.changed(format!("limits.{key}: {value}"), why);
            }
        }
    }

    /// Reports a key that has no meaning here.
    pub(super) fn unknown(&mut self, key: &str) {
        self.lose(key, "not known here");
    }
}

/// The remark on a gate that may change files or use the user's services, because it could in the other tool.
pub(super) const HERE: &str = "`room: here`: it runs in the working directory, as there";

/// A hook of another tool.
pub(super) struct FoundHook {
    /// The place and the text of the hook, for the report.
    pub(super) what: String,
    pub(super) entry: Map<String, Value>,
}

impl FoundHook {
    pub(super) fn new(place: &str, text: &str) -> FoundHook {
        FoundHook { what: format!("{place}: {text}"), entry: Map::new() }
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> FoundHook {
        self.entry.insert(key.to_owned(), value.into());
        self
    }
}

impl ReportRow {
    fn in_words(&self) -> String {
        if self.why.is_empty() { self.what.clone() } else { format!("{}: {}", self.what, self.why) }
    }
}

/// Returns a valid name in place of an invalid one; none if the name is valid.
fn fitting_name(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.chars().all(fits) && (1..=NAME_MAX).contains(&name.len()) {
        return None;
    }
    let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(NAME_MAX).collect();
    let name = name.trim_matches('-');
    Some(if name.is_empty() { "imported".to_owned() } else { name.to_owned() })
}

/// Returns the first line of a text, truncated.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
