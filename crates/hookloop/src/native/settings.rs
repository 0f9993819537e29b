//! hookloop's entries in an agent's settings: put in, found again, taken out, with everything else as it was.
//!
//! Existing text is never rewritten, only spliced. Whether a list or an object was there before, the text itself tells
//! later: one that we made has blanks behind its bracket, into one that was empty the first entry is put without.

use std::ops::Range;

use serde_json::Value;

use super::jsonc::{JsoncDocument, JsoncFault, JsoncNode, JsoncParts, JsoncTokenKind};

/// An event of an agent, and the command that runs for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsEntry {
    pub(crate) event: &'static str,
    pub(crate) command: String,
    /// In the agent's own unit.
    pub(crate) timeout: u64,
}

impl SettingsEntry {
    /// The item in the list of the event.
    fn group(&self) -> String {
        let command = Value::from(self.command.as_str());
        let hook = format!(
            r#"{{ "type": "command", "command": {command}, "timeout": {} }}"#,
            self.timeout
        );
        format!(r#"{{ "hooks": [{hook}] }}"#)
    }

    fn member(&self, layout: &SettingsLayout) -> String {
        let made = layout.container("[", &[&|_: &SettingsLayout| self.group()], "]");
        format!(r#""{}": {made}"#, self.event)
    }
}

/// One of our entries as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundEntries {
    pub(crate) event: String,
    pub(crate) command: String,
    pub(crate) timeout: Option<u64>,
}

impl FoundEntries {
    fn is(&self, entry: &SettingsEntry) -> bool {
        let FoundEntries { event, command, timeout } = self;
        *event == entry.event && *command == entry.command && *timeout == Some(entry.timeout)
    }
}

/// A text, and which parts of it were put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EditedSettings {
    pub(crate) text: String,
    /// In order, apart from each other.
    pub(crate) inserted: Vec<Range<usize>>,
}

impl EditedSettings {
    fn insert(&mut self, at: usize, text: &str) {
        self.text.insert_str(at, text);
        for range in &mut self.inserted {
            range.start += if range.start >= at { text.len() } else { 0 };
            range.end += if range.end > at { text.len() } else { 0 };
        }
        let is_inside = |range: &Range<usize>| range.start < at && at + text.len() < range.end;
        if !self.inserted.iter().any(is_inside) {
            self.inserted.push(at..at + text.len());
            self.inserted.sort_by_key(|range| range.start);
        }
    }
}

/// Takes out what was put in.
pub(crate) fn without(text: &str, inserted: &[Range<usize>]) -> Option<String> {
    let mut text = text.to_owned();
    for range in inserted.iter().rev() {
        text.get(range.clone())?;
        text.replace_range(range.clone(), "");
    }
    Some(text)
}

/// How the surroundings of an entry are written.
#[derive(Clone, Debug)]
struct SettingsLayout {
    newline: &'static str,
    unit: String,
    /// Of the line that the entry begins; none if it is in the middle of one.
    indentation: Option<String>,
}

impl SettingsLayout {
    fn of(document: &JsoncDocument<'_>) -> SettingsLayout {
        let newline = if document.text.contains("\r\n") { "\r\n" } else { "\n" };
        let first = document.root.as_ref().and_then(|root| root.items().into_iter().next());
        let unit =
            first.and_then(|first| own_line(document, &first)).filter(|unit| !unit.is_empty());
        let unit = unit.unwrap_or("  ").to_owned();
        SettingsLayout { newline, unit, indentation: None }
    }

    /// A list or an object of ours; its bracket always has blanks behind it.
    fn container(
        &self,
        open: &str,
        items: &[&dyn Fn(&SettingsLayout) -> String],
        close: &str,
    ) -> String {
        let (inner, outer) = match &self.indentation {
            Some(now) => (Some(format!("{now}{}", self.unit)), Some(now)),
            None => (None, None),
        };
        let line = |indentation: Option<&String>| match indentation {
            Some(indentation) => format!("{}{indentation}", self.newline),
            None => " ".to_owned(),
        };
        let layout = SettingsLayout { indentation: inner.clone(), ..self.clone() };
        let items: Vec<String> =
            items.iter().map(|item| format!("{}{}", line(inner.as_ref()), item(&layout))).collect();
        format!("{open}{}{}{close}", items.join(","), line(outer))
    }
}

/// The indentation of a part that begins its line.
fn own_line<'t>(document: &JsoncDocument<'t>, part: &Range<usize>) -> Option<&'t str> {
    let before = document.token_before(part.start).map_or(0, |token| token.range.end);
    let blank = &document.text[before..part.start];
    blank.rfind('\n').map(|newline| &blank[newline + 1..])
}

/// Puts the entries in; a file that is not there yet is made.
pub(crate) fn install(
    text: Option<&str>,
    entries: &[SettingsEntry],
) -> Result<EditedSettings, JsoncFault> {
    let Some(text) = text else {
        let layout = SettingsLayout {
            newline: "\n",
            unit: "  ".to_owned(),
            indentation: Some(String::new()),
        };
        let text = format!("{}\n", made_root(&layout, entries));
        return Ok(EditedSettings { inserted: std::iter::once(0..text.len()).collect(), text });
    };
    if is_current(text, entries)? {
        return Ok(EditedSettings { text: text.to_owned(), inserted: Vec::new() });
    }
    let mut edited = EditedSettings { text: text.to_owned(), inserted: Vec::new() };
    let document = JsoncDocument::read(text)?;
    let layout = SettingsLayout::of(&document);
    let Some(root) = &document.root else {
        if !document.tokens.is_empty() {
            return Err(JsoncFault::at(text, 0, "there are only comments"));
        }
        let layout = SettingsLayout { indentation: Some(String::new()), ..layout };
        edited.insert(text.len(), &made_root(&layout, entries));
        return Ok(edited);
    };
    expect_object(&document, root, "the file")?;
    match root.member("hooks") {
        None => append(&mut edited, &[], &|layout| hooks_member(layout, entries))?,
        Some(hooks) => {
            expect_object(&document, &hooks.value, "`hooks`")?;
            for entry in entries {
                match hooks.value.member(entry.event) {
                    None => append(&mut edited, &["hooks"], &|layout| entry.member(layout))?,
                    Some(event) => {
                        expect_list(&document, &event.value, entry.event)?;
                        append(&mut edited, &["hooks", entry.event], &|_| entry.group())?;
                    }
                }
            }
        }
    }
    Ok(edited)
}

fn made_root(layout: &SettingsLayout, entries: &[SettingsEntry]) -> String {
    layout.container("{", &[&|layout: &SettingsLayout| hooks_member(layout, entries)], "}")
}

fn hooks_member(layout: &SettingsLayout, entries: &[SettingsEntry]) -> String {
    let members: Vec<_> =
        entries.iter().map(|entry| |layout: &SettingsLayout| entry.member(layout)).collect();
    let members: Vec<&dyn Fn(&SettingsLayout) -> String> =
        members.iter().map(|member| member as &dyn Fn(&SettingsLayout) -> String).collect();
    format!(r#""hooks": {}"#, layout.container("{", &members, "}"))
}

fn expect_object(
    document: &JsoncDocument<'_>,
    node: &JsoncNode,
    what: &str,
) -> Result<(), JsoncFault> {
    match node.parts {
        JsoncParts::Object(_) => Ok(()),
        _ => {
            Err(JsoncFault::at(document.text, node.range.start, format!("{what} is not an object")))
        }
    }
}

fn expect_list(
    document: &JsoncDocument<'_>,
    node: &JsoncNode,
    event: &str,
) -> Result<(), JsoncFault> {
    match node.parts {
        JsoncParts::Array(_) => Ok(()),
        _ => Err(JsoncFault::at(
            document.text,
            node.range.start,
            format!("`hooks.{event}` is not a list"),
        )),
    }
}

/// Puts an item behind the last of a container.
fn append(
    edited: &mut EditedSettings,
    path: &[&str],
    item: &dyn Fn(&SettingsLayout) -> String,
) -> Result<(), JsoncFault> {
    let text = edited.text.clone();
    let document = JsoncDocument::read(&text)?;
    let Some(container) = at_path(&document, path) else { return Ok(()) };
    let layout = SettingsLayout::of(&document);
    let items = container.items();
    let Some(last) = items.last() else {
        edited.insert(container.range.start + 1, &item(&layout));
        return Ok(());
    };
    let has_comma =
        document.mark_after(last.end).is_some_and(|token| token.kind == JsoncTokenKind::Mark(b','));
    let Some(before) = document.token_before(container.range.end - 1) else { return Ok(()) };
    let indentation = match own_line(&document, last) {
        Some(indentation) => Some(indentation),
        // Behind such a comment there is only the next line.
        None if before.kind == JsoncTokenKind::LineComment => {
            Some(indentation_of_line(&text, last.start))
        }
        None => None,
    };
    let layout = SettingsLayout { indentation: indentation.map(str::to_owned), ..layout };
    let lead = match indentation {
        Some(indentation) => format!("{}{indentation}", layout.newline),
        None => " ".to_owned(),
    };
    let behind = if has_comma { "," } else { "" };
    edited.insert(before.range.end, &format!("{lead}{}{behind}", item(&layout)));
    if !has_comma {
        edited.insert(last.end, ",");
    }
    Ok(())
}

fn indentation_of_line(text: &str, at: usize) -> &str {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let rest = &text[line..at];
    &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
}

fn at_path<'d>(document: &'d JsoncDocument<'_>, path: &[&str]) -> Option<&'d JsoncNode> {
    let root = document.root.as_ref()?;
    path.iter().try_fold(root, |node, name| node.member(name).map(|member| &member.value))
}

/// Our entries in a file.
pub(crate) fn installed(text: &str) -> Result<Vec<FoundEntries>, JsoncFault> {
    let document = JsoncDocument::read(text)?;
    let mut found = Vec::new();
    for (event, groups) in events(&document) {
        for group in groups {
            for entry in hooks_of(group) {
                let value = document.value(&entry.range);
                if let Some(command) = our_command(&value) {
                    let timeout = value["timeout"].as_u64();
                    found.push(FoundEntries {
                        event: event.to_owned(),
                        command: command.to_owned(),
                        timeout,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// Whether the file has just these entries of ours.
pub(crate) fn is_current(text: &str, entries: &[SettingsEntry]) -> Result<bool, JsoncFault> {
    let found = installed(text)?;
    let has = |entry: &SettingsEntry| found.iter().any(|found| found.is(entry));
    Ok(found.len() == entries.len() && entries.iter().all(has))
}

/// The lists under `hooks`.
fn events<'d>(document: &'d JsoncDocument<'_>) -> Vec<(&'d str, &'d [JsoncNode])> {
    let Some(JsoncNode { parts: JsoncParts::Object(members), .. }) = at_path(document, &["hooks"])
    else {
        return Vec::new();
    };
    let list = |value: &'d JsoncNode| match &value.parts {
        JsoncParts::Array(groups) => Some(groups.as_slice()),
        _ => None,
    };
    members.iter().filter_map(|member| Some((member.name.as_str(), list(&member.value)?))).collect()
}

fn hooks_of(group: &JsoncNode) -> &[JsoncNode] {
    match group.member("hooks").map(|member| &member.value.parts) {
        Some(JsoncParts::Array(entries)) => entries,
        _ => &[],
    }
}

fn our_command(entry: &Value) -> Option<&str> {
    entry["command"].as_str().filter(|command| super::command_line::program_of(command).is_some())
}

/// The text that is left of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RemainingText {
    Text(String),
    /// It is there for our entries alone.
    Nothing,
}

/// Removes all entries of hookloop, and the containers that were created for them.
pub(crate) fn uninstall(text: &str) -> Result<RemainingText, JsoncFault> {
    let mut text = text.to_owned();
    loop {
        let document = JsoncDocument::read(&text)?;
        match next_removal(&document) {
            None => return Ok(RemainingText::Text(text)),
            Some(EntryRemoval::Root(root)) => {
                let before = &text[..root.start];
                let behind = &text[root.end..];
                // A file of blanks was there before, and got no line's end from us.
                return Ok(match (before, behind) {
                    ("", "\n") => RemainingText::Nothing,
                    _ => RemainingText::Text(format!("{before}{behind}")),
                });
            }
            Some(EntryRemoval::Item(item)) => {
                let cuts = cuts(&document, &item);
                for cut in cuts {
                    text.replace_range(cut, "");
                }
            }
        }
    }
}

enum EntryRemoval {
    Root(Range<usize>),
    Item(Range<usize>),
}

/// The last first, so that the containers look as before.
fn next_removal(document: &JsoncDocument<'_>) -> Option<EntryRemoval> {
    let root = document.root.as_ref()?;
    let hooks = root.member("hooks")?;
    let JsoncParts::Object(members) = &hooks.value.parts else { return None };
    let is_event_ours = |value: &JsoncNode| match &value.parts {
        JsoncParts::Array(groups) => {
            is_made(document, value) && groups.iter().all(|group| is_group_ours(document, group))
        }
        _ => false,
    };
    if is_made(document, &hooks.value) && members.iter().all(|member| is_event_ours(&member.value))
    {
        let is_alone = root.items().len() == 1 && is_made(document, root);
        let has_comment = document.has_comment(&(0..document.text.len()));
        return Some(if is_alone && !has_comment {
            EntryRemoval::Root(root.range.clone())
        } else {
            EntryRemoval::Item(hooks.range.clone())
        });
    }
    if let Some(event) = members.iter().rev().find(|member| is_event_ours(&member.value)) {
        return Some(EntryRemoval::Item(event.range.clone()));
    }
    for (_, groups) in events(document).into_iter().rev() {
        for group in groups.iter().rev() {
            if is_group_ours(document, group) {
                return Some(EntryRemoval::Item(group.range.clone()));
            }
            let ours = hooks_of(group).iter().rev().find(|entry| is_ours(document, entry));
            if let Some(entry) = ours {
                return Some(EntryRemoval::Item(entry.range.clone()));
            }
        }
    }
    None
}

/// Whether we made a container, and nobody wrote a comment into it.
fn is_made(document: &JsoncDocument<'_>, node: &JsoncNode) -> bool {
    let inside = node.range.start + 1..node.range.end;
    let behind_bracket = document.text[inside.clone()].chars().next();
    !node.items().is_empty()
        && behind_bracket.is_some_and(char::is_whitespace)
        && !document.has_comment(&inside)
}

fn is_group_ours(document: &JsoncDocument<'_>, group: &JsoncNode) -> bool {
    let entries = hooks_of(group);
    !entries.is_empty() && entries.iter().all(|entry| is_ours(document, entry))
}

fn is_ours(document: &JsoncDocument<'_>, entry: &JsoncNode) -> bool {
    our_command(&document.value(&entry.range)).is_some()
}

/// Returns the parts that belong to an item, the last first: the blanks before it, and a comma.
fn cuts(document: &JsoncDocument<'_>, item: &Range<usize>) -> Vec<Range<usize>> {
    let is_comma = |kind: JsoncTokenKind| kind == JsoncTokenKind::Mark(b',');
    let lead = document.token_before(item.start).map_or(0, |token| token.range.end);
    let own = lead..item.end;
    let after = document.mark_after(item.end).filter(|token| is_comma(token.kind));
    let before = document.mark_before(item.start).filter(|token| is_comma(token.kind));
    match (before, after) {
        (_, Some(after)) => vec![after.range.clone(), own],
        (Some(before), None) => vec![own, before.range.clone()],
        (None, None) => vec![own],
    }
}

#[cfg(test)]
mod properties;
