//! Merges an import into an existing file by inserting lines.
//!
//! Existing lines stay, with one exception: an empty value such as `{}` makes room for a block.

use std::path::{Path, PathBuf};

use hookloop_config::paths::FILE_NAME;
use hookloop_config::project_file::settings_from;
use hookloop_core::hook::HookSource;
use serde_json::{Map, Value, json};

use super::source::SourceFile;
use super::yaml;

/// Sections whose members are lists of hooks.
const HOOKS: &str = "hooks";
/// Hooks of one name, distinguished by a number.
const NAMES_MAX: u32 = 20;
/// How far a member stands behind its section.
const STEP: usize = 2;
/// Some editors begin a file with this mark.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Values that a block can replace, because they hold nothing.
const EMPTY_VALUES: [&str; 4] = ["{}", "[]", "~", "null"];

/// Why an import can't be merged.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MergeError {
    /// The file has other values: one sentence for each.
    Conflicts(Vec<String>),
    /// The text can't be edited line by line.
    Layout(String),
    /// The file has a mistake already.
    Invalid(String),
}

/// Something that the file gets.
enum YamlInsertion {
    Section(String, Value),
    Member { section: String, key: String, value: Value },
    Item { section: String, key: String, item: Value },
}

/// The text of a project's file with the sections of an import in it.
///
/// The text keeps its comments, its line ends and its byte order mark.
pub(super) fn merge(before: &str, sections: &Map<String, Value>) -> Result<String, MergeError> {
    let (mark, before) = match before.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => (BYTE_ORDER_MARK.to_string(), rest),
        None => (String::new(), before),
    };
    let end = line_end(before);
    let there = read(before)?;
    if there.is_empty() {
        let mut text = closed(before, end);
        text.push_str(&yaml::text(sections).replace('\n', end));
        return checked(text).map(|text| mark + &text);
    }
    settings_from(Path::new(FILE_NAME), before.as_bytes()).map_err(|error| {
        let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        MergeError::Invalid(format!("{line}{}", error.message))
    })?;
    let mut expected = there.clone();
    let mut insertions = Vec::new();
    let mut conflicts = Vec::new();
    let empty = Map::new();
    for (section, value) in sections {
        let Value::Object(members) = value else { continue };
        match there.get(section) {
            None => {
                insertions.push(YamlInsertion::Section(section.clone(), value.clone()));
                expected.insert(section.clone(), value.clone());
            }
            Some(known) => {
                let known = known.as_object().cloned().unwrap_or_default();
                let mut named = NamedHooks::of(if section == HOOKS { &known } else { &empty });
                let mut result = known.clone();
                for (key, value) in members {
                    let place = (section.as_str(), key.as_str());
                    let added = if section == HOOKS {
                        add_hooks(place, known.get(key), value, &mut named, &mut conflicts)
                    } else {
                        add_member(place, known.get(key), value, &mut conflicts)
                    };
                    for insertion in added {
                        expect(&mut result, &insertion);
                        insertions.push(insertion);
                    }
                }
                expected.insert(section.clone(), Value::Object(result));
            }
        }
    }
    if !conflicts.is_empty() {
        return Err(MergeError::Conflicts(conflicts));
    }
    if insertions.is_empty() {
        return Ok(mark + before);
    }
    let mut text = closed(before, end);
    for insertion in &insertions {
        text = insert(&text, insertion, end)?;
    }
    let changed = || MergeError::Layout("its layout is not that of a list of lines".to_owned());
    if read(&text).map_err(|_| changed())? != expected {
        return Err(changed());
    }
    checked(text).map(|text| mark + &text)
}

/// The text, if hookloop reads it. Together, parts may be what neither is alone: two hooks of one name, for example.
fn checked(text: String) -> Result<String, MergeError> {
    settings_from(Path::new(FILE_NAME), text.as_bytes())
        .map_err(|error| MergeError::Conflicts(vec![error.message]))?;
    Ok(text)
}

/// How the lines of a text end: as the first one does.
fn line_end(text: &str) -> &'static str {
    if text.split_inclusive('\n').next().is_some_and(|line| line.ends_with("\r\n")) {
        "\r\n"
    } else {
        "\n"
    }
}

/// The text with an end of its last line.
fn closed(text: &str, end: &str) -> String {
    let is_closed = text.is_empty() || text.ends_with('\n');
    format!("{text}{}", if is_closed { "" } else { end })
}

fn read(text: &str) -> Result<Map<String, Value>, MergeError> {
    let source = SourceFile { path: PathBuf::from(FILE_NAME), text: text.to_owned() };
    match source.yaml().map_err(MergeError::Layout)? {
        Value::Object(sections) => Ok(sections),
        Value::Null => Ok(Map::new()),
        _ => Err(MergeError::Layout("it is not an object with fields".to_owned())),
    }
}

fn add_member(
    (section, key): (&str, &str),
    known: Option<&Value>,
    value: &Value,
    conflicts: &mut Vec<String>,
) -> Vec<YamlInsertion> {
    match known.filter(|known| !known.is_null()) {
        None => vec![YamlInsertion::Member {
            section: section.to_owned(),
            key: key.to_owned(),
            value: value.clone(),
        }],
        Some(known) if known == value => Vec::new(),
        Some(known) => {
            conflicts.push(format!("`{section}.{key}` is {known}, and {value} in the import"));
            Vec::new()
        }
    }
}

/// Hooks that are there, with their names.
struct NamedHooks(Vec<(String, Value)>);

impl NamedHooks {
    fn of(hooks: &Map<String, Value>) -> NamedHooks {
        let named = hooks.iter().flat_map(|(point, list)| {
            let entries = items(list).into_iter().map(entry_of);
            entries.filter_map(|entry| Some((name_of(point, &entry)?, entry))).collect::<Vec<_>>()
        });
        NamedHooks(named.collect())
    }

    fn other(&self, name: &str, entry: &Value) -> Option<&Value> {
        let other = self.0.iter().find(|(known, other)| known == name && other != entry);
        other.map(|(_, other)| other)
    }

    /// Returns the hook with a name that is free, if it has none of its own. None if another hook has its name.
    fn fit(&self, point: &str, entry: &Value) -> Option<Value> {
        let Some(name) = name_of(point, entry) else { return Some(entry.clone()) };
        let Some(other) = self.other(&name, entry) else { return Some(entry.clone()) };
        let is_same_command = entry.get("command") == other.get("command");
        if entry.get("name").is_some() || entry.get("command").is_none() || is_same_command {
            return None;
        }
        let numbered = (2..=NAMES_MAX).map(|number| {
            let mut entry = entry.clone();
            entry["name"] = json!(format!("{name}-{number}"));
            entry
        });
        let is_free = |entry: &Value| {
            let name = entry["name"].as_str().unwrap_or_default();
            self.other(name, entry).is_none()
        };
        numbered.into_iter().find(is_free)
    }
}

/// Adds the missing hooks of a point. A hook of the same name must be equal.
fn add_hooks(
    (section, point): (&str, &str),
    known: Option<&Value>,
    value: &Value,
    named: &mut NamedHooks,
    conflicts: &mut Vec<String>,
) -> Vec<YamlInsertion> {
    let section = section.to_owned();
    let key = point.to_owned();
    let known = known.filter(|known| !known.is_null());
    let there: Vec<Value> = known.map(items).unwrap_or_default();
    let there: Vec<Value> = there.into_iter().map(entry_of).collect();
    let mut added = Vec::new();
    for item in items(value) {
        let entry = entry_of(item);
        if there.contains(&entry) {
            continue;
        }
        let name = name_of(point, &entry).unwrap_or_default();
        match named.fit(point, &entry) {
            None => conflicts.push(format!("a hook `{name}` is there, and is another one")),
            Some(fitting) if there.contains(&fitting) => {}
            Some(fitting) => {
                named.0.extend(name_of(point, &fitting).map(|name| (name, fitting.clone())));
                added.push(fitting);
            }
        }
    }
    if known.is_none() && !added.is_empty() {
        return vec![YamlInsertion::Member { section, key, value: Value::Array(added) }];
    }
    let item = |item| YamlInsertion::Item { section: section.clone(), key: key.clone(), item };
    added.into_iter().map(item).collect()
}

fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    }
}

/// A hook that is only named is a built-in.
fn entry_of(item: Value) -> Value {
    match item {
        Value::String(name) => json!({ "use": name }),
        entry => entry,
    }
}

/// Returns the name of a hook; without one, its command decides.
fn name_of(point: &str, entry: &Value) -> Option<String> {
    let said = entry.get("name").or_else(|| entry.get("use")).and_then(Value::as_str);
    if let Some(name) = said {
        return Some(name.to_owned());
    }
    let file = Map::from_iter([(HOOKS.to_owned(), json!({ point: [entry] }))]);
    // A hook that is invalid has no name to compare; the merged file is validated as a whole.
    let settings = settings_from(Path::new(FILE_NAME), yaml::text(&file).as_bytes()).ok()?;
    let hooks = settings.rules.hooks.list();
    let of_project = hooks.iter().find(|hook| hook.source == HookSource::Project);
    of_project.map(|hook| hook.name.clone())
}

/// Applies an insertion to the expected section.
fn expect(section: &mut Map<String, Value>, insertion: &YamlInsertion) {
    match insertion {
        YamlInsertion::Section(..) => {}
        YamlInsertion::Member { key, value, .. } => {
            section.insert(key.clone(), value.clone());
        }
        YamlInsertion::Item { key, item, .. } => match section.get_mut(key) {
            Some(Value::Array(items)) => items.push(item.clone()),
            _ => {
                section.insert(key.clone(), json!([item]));
            }
        },
    }
}

/// Lines of a text from `first` on, up to `end`, which is not one of them.
#[derive(Clone, Copy)]
struct LineExtent {
    first: usize,
    end: usize,
}

fn insert(text: &str, insertion: &YamlInsertion, end: &str) -> Result<String, MergeError> {
    let emptied = without_empty_value(text, insertion);
    let text = emptied.as_deref().unwrap_or(text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let whole = LineExtent { first: 0, end: lines.len() };
    let (at, block) = match insertion {
        YamlInsertion::Section(name, value) => {
            let mut block = String::new();
            yaml::members(&mut block, &Map::from_iter([(name.clone(), value.clone())]), 0);
            (lines.len(), block)
        }
        YamlInsertion::Member { section, key, value } => {
            let extent = block_of(&lines, whole, 0, section)?;
            let indent = first_indent(&lines, extent).unwrap_or(STEP);
            let mut block = String::new();
            yaml::members(&mut block, &Map::from_iter([(key.clone(), value.clone())]), indent);
            (extent.end, block)
        }
        YamlInsertion::Item { section, key, item } => {
            let outer = block_of(&lines, whole, 0, section)?;
            let indent = first_indent(&lines, outer).unwrap_or(STEP);
            let inner = LineExtent { first: outer.first + 1, end: outer.end };
            let extent = block_of(&lines, inner, indent, key)?;
            let indent = first_indent(&lines, extent).unwrap_or(indent + STEP);
            let mut block = String::new();
            yaml::put_item(&mut block, item, indent);
            (extent.end, block)
        }
    };
    let block = block.replace('\n', end);
    Ok([lines[..at].concat(), block, lines[at..].concat()].concat())
}

/// The text without the empty value that stands where the insertion belongs, if one does: `hooks: {}` or `stop: []`.
fn without_empty_value(text: &str, insertion: &YamlInsertion) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let whole = LineExtent { first: 0, end: lines.len() };
    let at = match insertion {
        YamlInsertion::Section(..) => return None,
        YamlInsertion::Member { section, .. } => line_of(&lines, whole, 0, section)?,
        YamlInsertion::Item { section, key, .. } => {
            // A layout that can't be edited is reported by the insertion itself.
            let outer = block_of(&lines, whole, 0, section).ok()?;
            let indent = first_indent(&lines, outer)?;
            line_of(&lines, LineExtent { first: outer.first + 1, end: outer.end }, indent, key)?
        }
    };
    let line = lines[at];
    let (key, value) = line.split_once(':')?;
    let (said, comment) = match value.split_once(" #") {
        Some((said, _)) => (said.trim(), &value[said.len()..]),
        None => (value.trim(), &value[value.trim_end().len()..]),
    };
    if !EMPTY_VALUES.contains(&said) {
        return None;
    }
    Some([&lines[..at].concat(), key, ":", comment, &lines[at + 1..].concat()].concat())
}

/// Returns the lines of a key's block: its own, and the indented ones below.
fn block_of(
    lines: &[&str],
    within: LineExtent,
    indent: usize,
    key: &str,
) -> Result<LineExtent, MergeError> {
    let missing = || MergeError::Layout(format!("`{key}` is not on a line of its own"));
    let first = line_of(lines, within, indent, key).ok_or_else(missing)?;
    let (_, value) = lines[first].split_once(':').ok_or_else(missing)?;
    let value = value.trim();
    if !value.is_empty() && !value.starts_with('#') {
        let line = first + 1;
        let why = "is written in one line; write its entries on lines of their own";
        return Err(MergeError::Layout(format!("line {line}: `{key}` {why}")));
    }
    let is_inside = |line: &str| match indent_of(line) {
        None => true,
        Some(deep) => deep > indent || (deep == indent && line.trim_start().starts_with('-')),
    };
    let after = (first + 1..within.end).find(|at| !is_inside(lines[*at]));
    let mut end = after.unwrap_or(within.end);
    // Comments in front of the next key belong to that key.
    let is_between = |line: &str| {
        let text = line.trim();
        let deep = line.len() - line.trim_start().len();
        text.is_empty() || (text.starts_with('#') && deep <= indent)
    };
    while end > first + 1 && is_between(lines[end - 1]) {
        end -= 1;
    }
    Ok(LineExtent { first, end })
}

/// The line of a key that stands `indent` characters in.
fn line_of(lines: &[&str], within: LineExtent, indent: usize, key: &str) -> Option<usize> {
    let is_key = |line: &str| {
        let rest = line.trim_start().trim_start_matches(['"', '\'']).strip_prefix(key);
        let rest = rest.map(|rest| rest.trim_start_matches(['"', '\'']));
        indent_of(line) == Some(indent)
            && rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    (within.first..within.end).find(|at| is_key(lines[*at]))
}

/// How far in a line begins; none if it has nothing but a comment.
fn indent_of(line: &str) -> Option<usize> {
    let text = line.trim_start();
    let is_empty = text.trim_end().is_empty() || text.starts_with('#');
    (!is_empty).then(|| line.len() - text.len())
}

/// How far in the lines below a key begin.
fn first_indent(lines: &[&str], block: LineExtent) -> Option<usize> {
    lines[block.first + 1..block.end].iter().find_map(|line| indent_of(line))
}

#[cfg(test)]
mod tests;
