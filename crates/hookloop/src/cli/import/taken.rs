//! What was taken over of another tool, and a row for everything that was found.

use std::collections::BTreeSet;
use std::path::Path;

use hookloop_config::paths::FILE_NAME;
use hookloop_config::project_file::settings_from;
use hookloop_core::id::TaskId;
use hookloop_engine::bulk::Line;
use hookloop_fleet::doctor::undeclared_in;
use serde_json::{Map, Value, json};

use super::yaml;

/// Rows that are told at most; the others are counted.
const ROWS_MAX: usize = 1_000;
/// Hooks that a file of ours takes.
const HOOKS_MAX: usize = 256;
/// Hooks of one name, told apart by a number.
const NAMES_MAX: u32 = 20;
/// The longest name of a hook.
const NAME_MAX: usize = 64;
/// Of a text in a row.
const SHOWN_MAX: usize = 80;

/// What became of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    Changed,
    Lost,
}

impl Fate {
    pub(super) fn name(self) -> &'static str {
        match self {
            Fate::Kept => "kept",
            Fate::Changed => "changed",
            Fate::Lost => "no equivalent",
        }
    }
}

/// Something that was found, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) what: String,
    pub(super) fate: Fate,
    pub(super) why: String,
    /// How often it was found.
    pub(super) count: u64,
}

/// What was taken over.
pub(super) struct Taken {
    pub(super) tool: &'static str,
    /// Sections of a project's file.
    pub(super) config: Map<String, Value>,
    pub(super) tasks: Vec<Line>,
    /// Ids of the tasks.
    pub(super) ids: BTreeSet<TaskId>,
    pub(super) rows: Vec<Row>,
    /// Rows that were too many.
    pub(super) more: u64,
    /// Hooks in the configuration.
    hooks: usize,
}

impl Taken {
    pub(super) fn new(tool: &'static str) -> Taken {
        Taken {
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
        self.row(Fate::Kept, what.into(), String::new());
    }

    pub(super) fn changed(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.row(Fate::Changed, what.into(), why.into());
    }

    pub(super) fn lose(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.row(Fate::Lost, what.into(), why.into());
    }

    fn row(&mut self, fate: Fate, what: String, why: String) {
        let what = shown(&what);
        let is_same = |row: &&mut Row| row.what == what && row.fate == fate && row.why == why;
        if let Some(row) = self.rows.iter_mut().find(is_same) {
            row.count += 1;
        } else if self.rows.len() < ROWS_MAX {
            self.rows.push(Row { what, fate, why, count: 1 });
        } else {
            self.more += 1;
        }
    }

    pub(super) fn lost(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.fate == Fate::Lost)
    }

    /// What the rows say, for an error.
    pub(super) fn in_a_line(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(Row::in_words).collect();
        rows.join("; ")
    }

    pub(super) fn lost_in_a_line(&self) -> String {
        let rows: Vec<String> = self.lost().map(Row::in_words).collect();
        rows.join("; ")
    }

    /// Takes over a hook, if it could run here; `changes` is what is different from before. Returns whether it could.
    pub(super) fn hook(&mut self, point: &str, found: Found, changes: &[String]) -> bool {
        let Found { what, mut entry } = found;
        let mut changes = changes.to_vec();
        if let Some(name) = entry.get("name").and_then(Value::as_str).and_then(fitting_name) {
            changes.push(format!("it is called `{name}`: names are letters, digits, `_` and `-`"));
            entry.insert("name".to_owned(), Value::from(name));
        }
        let line = entry.get("command").and_then(Value::as_str).unwrap_or_default();
        let variables = undeclared_in(line);
        if !variables.is_empty() && !entry.contains_key("env") {
            changes.push(format!(
                "`env` lets {} through: hooks have what they name",
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
                changes.push(format!("it is called `{name}`: another has its name"));
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

    /// The hooks with one more, and the name that it has to have for that.
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

    /// Whether a hook could be at a point, alone in a file.
    pub(super) fn check(&self, point: &str, entry: &Map<String, Value>) -> Result<(), String> {
        self.check_all(&json!({ point: [entry.clone()] }))
    }

    fn check_all(&self, hooks: &Value) -> Result<(), String> {
        let mut sections = Map::from_iter([("hooks".to_owned(), hooks.clone())]);
        // Agents that review are defined beside the hooks.
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
                    "a repository only tightens limits: this one holds if ~/.config/hookloop/config.yaml has \
                     `limits: {{{key}: {value}}}` too"
                );
                self.changed(format!("limits.{key}: {value}"), why);
            }
        }
    }

    /// A key that nobody knows here.
    pub(super) fn unknown(&mut self, key: &str) {
        self.lose(key, "not known here");
    }
}

/// A hook as it was found.
pub(super) struct Found {
    /// Where, and what: for the report.
    pub(super) what: String,
    pub(super) entry: Map<String, Value>,
}

impl Found {
    pub(super) fn new(place: &str, text: &str) -> Found {
        Found { what: format!("{place}: {text}"), entry: Map::new() }
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Found {
        self.entry.insert(key.to_owned(), value.into());
        self
    }
}

impl Row {
    fn in_words(&self) -> String {
        match self.why.is_empty() {
            true => self.what.clone(),
            false => format!("{}: {}", self.what, self.why),
        }
    }
}

/// The fields of an object, each asked for once: what nobody asked for is unknown.
pub(super) struct Fields {
    place: String,
    fields: Map<String, Value>,
    /// Fields whose value has another type than the one that was asked for, with the reason. `finish` reports them.
    refused: Vec<(String, &'static str)>,
}

impl Fields {
    /// The fields of `value`; `place` is what it is called in rows.
    pub(super) fn of(place: impl Into<String>, value: Value) -> Result<Fields, String> {
        let place = place.into();
        match value {
            Value::Object(fields) => Ok(Fields { place, fields, refused: Vec::new() }),
            Value::Null => Ok(Fields { place, fields: Map::new(), refused: Vec::new() }),
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

    pub(super) fn object(&mut self, key: &str) -> Result<Fields, String> {
        let place = self.place_of(key);
        Fields::of(place, self.take(key).unwrap_or(Value::Null))
    }

    /// What is left, with names.
    pub(super) fn each(self) -> impl Iterator<Item = (String, Value)> {
        self.fields.into_iter()
    }

    pub(super) fn place_of(&self, key: &str) -> String {
        match self.place.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.place),
        }
    }

    /// Fields that have no equivalent, each with why.
    pub(super) fn lose(&mut self, taken: &mut Taken, known: &[(&str, &str)]) {
        for (key, why) in known {
            if self.take(key).is_some() {
                taken.lose(self.place_of(key), *why);
            }
        }
    }

    /// Reports keys that no importer reads and values of a wrong type. Values are left out: they may be secret.
    pub(super) fn finish(self, taken: &mut Taken) {
        for (key, why) in &self.refused {
            taken.lose(self.place_of(key), *why);
        }
        let left: Vec<String> = self.fields.keys().map(|key| self.place_of(key)).collect();
        left.iter().for_each(|key| taken.unknown(key));
    }
}

/// A name that hooks can have in place of one that they can't; none if the name fits.
fn fitting_name(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.chars().all(fits) && (1..=NAME_MAX).contains(&name.len()) {
        return None;
    }
    let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(NAME_MAX).collect();
    let name = name.trim_matches('-');
    Some(if name.is_empty() { "imported".to_owned() } else { name.to_owned() })
}

/// The first line of a text, as far as it is shown.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
