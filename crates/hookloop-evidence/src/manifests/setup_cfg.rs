//! Test settings of `setup.cfg`: sections of runners, test extras, and plugins of pytest.

use crate::error::EvidenceError;
use crate::manifests::requirement_lists::{is_test_group, merged};

/// Maximum sections and options of a file.
const ENTRIES_MAX: usize = 20_000;

pub(super) fn graft(base: &str, work: &str) -> Result<Option<String>, EvidenceError> {
    let base = IniDocument::parse(base)?;
    let mut work = IniDocument::parse(work)?;
    let before = work.clone();
    work.sections.retain(|section| !is_runner_section(&section.name));
    let runners = base.sections.iter().filter(|section| is_runner_section(&section.name));
    let unchanged = runners.clone().map(IniSection::content).eq(before
        .sections
        .iter()
        .filter(|section| is_runner_section(&section.name))
        .map(IniSection::content));
    if unchanged {
        work = before.clone();
    } else {
        work.sections.extend(runners.cloned());
    }
    restore_options(&base, &mut work, "options.extras_require", is_test_group);
    restore_options(&base, &mut work, "options", |key| {
        matches!(key, "tests_require" | "test_suite")
    });
    set_plugins(&base, &mut work);
    Ok((work != before).then(|| work.text()))
}

/// Whether only test runners read the section.
fn is_runner_section(name: &str) -> bool {
    let kind = name.split(':').next().unwrap_or_default();
    matches!(
        name,
        "tool:pytest" | "pytest" | "aliases" | "nosetests" | "unittest" | "testenv" | "tox"
    ) || matches!(kind, "coverage" | "testenv" | "tox")
}

/// Restores the options of the base that are for tests. Requirements of the work alone stay.
fn restore_options(
    base: &IniDocument,
    work: &mut IniDocument,
    section: &str,
    is_wanted: impl Fn(&str) -> bool,
) {
    let Some(of_base) = base.section(section) else { return };
    for option in of_base.options.iter().filter(|option| is_wanted(&option.key)) {
        let lines = |option: &IniOption| option.values();
        let of_work = work.section(section).and_then(|section| section.option(&option.key));
        let values = merged(lines(option), of_work.map_or_else(Vec::new, lines), String::clone);
        if of_work.is_none_or(|of_work| lines(of_work) != values) {
            work.section_mut(section).set(IniOption::of(&option.key, &values));
        }
    }
}

/// Gives the work the plugins of pytest that the base has, and no others.
fn set_plugins(base: &IniDocument, work: &mut IniDocument) {
    let section = "options.entry_points";
    let of_base = base.section(section).and_then(|section| section.option("pytest11"));
    let of_work = work.section(section).and_then(|section| section.option("pytest11"));
    if of_base.map(IniOption::values) == of_work.map(IniOption::values) {
        return;
    }
    match of_base.cloned() {
        Some(option) => work.section_mut(section).set(option),
        None => work.section_mut(section).options.retain(|option| option.key != "pytest11"),
    }
}

/// A file of sections, with all its lines.
#[derive(Clone, PartialEq, Eq)]
struct IniDocument {
    /// Lines before the first section.
    head: Vec<String>,
    sections: Vec<IniSection>,
}

#[derive(Clone, PartialEq, Eq)]
struct IniSection {
    name: String,
    /// Comments and blank lines before the first option.
    head: Vec<String>,
    options: Vec<IniOption>,
}

/// An option with the lines that continue it, and comments behind it.
#[derive(Clone, PartialEq, Eq)]
struct IniOption {
    key: String,
    lines: Vec<String>,
}

impl IniDocument {
    fn parse(text: &str) -> Result<IniDocument, EvidenceError> {
        let mut document = IniDocument { head: Vec::new(), sections: Vec::new() };
        let mut entries = 0;
        for line in text.lines() {
            let name = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            if let Some((name, _)) = name {
                entries += 1;
                document.open(name);
            } else if let Some(section) = document.sections.last_mut() {
                entries += 1;
                section.add_line(line)?;
            } else if is_blank(line) {
                document.head.push(line.to_owned());
            } else {
                return Err(malformed("an option stands before the first section"));
            }
            if entries > ENTRIES_MAX {
                let (part, things) = ("the manifest", "lines");
                return Err(EvidenceError::TooMany { part, things, limit: ENTRIES_MAX });
            }
        }
        Ok(document)
    }

    fn open(&mut self, name: &str) {
        let name = name.trim().to_owned();
        self.sections.push(IniSection { name, head: Vec::new(), options: Vec::new() });
    }

    fn section(&self, name: &str) -> Option<&IniSection> {
        self.sections.iter().find(|section| section.name == name)
    }

    fn section_mut(&mut self, name: &str) -> &mut IniSection {
        let found = self.sections.iter().position(|section| section.name == name);
        let index = found.unwrap_or_else(|| {
            self.open(name);
            self.sections.len() - 1
        });
        &mut self.sections[index]
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut add = |lines: &[String]| {
            for line in lines {
                text.push_str(line);
                text.push('\n');
            }
        };
        add(&self.head);
        for section in &self.sections {
            add(&[format!("[{}]", section.name)]);
            add(&section.head);
            section.options.iter().for_each(|option| add(&option.lines));
        }
        text
    }
}

impl IniSection {
    fn add_line(&mut self, line: &str) -> Result<(), EvidenceError> {
        let is_continued = line.starts_with(char::is_whitespace) || is_blank(line);
        match self.options.last_mut() {
            Some(option) if is_continued => option.lines.push(line.to_owned()),
            None if is_blank(line) => self.head.push(line.to_owned()),
            None if is_continued => return Err(malformed("a value stands before its option")),
            _ => {
                let key = line.split(['=', ':']).next().unwrap_or_default();
                let key = key.trim().to_lowercase();
                self.options.push(IniOption { key, lines: vec![line.to_owned()] });
            }
        }
        Ok(())
    }

    fn option(&self, key: &str) -> Option<&IniOption> {
        self.options.iter().find(|option| option.key == key)
    }

    fn set(&mut self, option: IniOption) {
        match self.options.iter_mut().find(|other| other.key == option.key) {
            Some(other) => *other = option,
            None => self.options.push(option),
        }
    }

    /// The name and the options, without comments and indentation.
    fn content(&self) -> (&str, Vec<(&str, Vec<String>)>) {
        let options = self.options.iter();
        (&self.name, options.map(|option| (option.key.as_str(), option.values())).collect())
    }
}

impl IniOption {
    fn of(key: &str, values: &[String]) -> IniOption {
        let lines = values.iter().map(|value| format!("    {value}"));
        let lines = std::iter::once(format!("{key} =")).chain(lines).collect();
        IniOption { key: key.to_owned(), lines }
    }

    /// Returns the lines of the value, without comments.
    fn values(&self) -> Vec<String> {
        let first = self.lines.first().and_then(|line| line.split_once(['=', ':']));
        let first = first.map_or("", |(_, value)| value);
        let lines = std::iter::once(first).chain(self.lines.iter().skip(1).map(String::as_str));
        lines.filter(|line| !is_blank(line)).map(|line| line.trim().to_owned()).collect()
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with(['#', ';'])
}

fn malformed(reason: &'static str) -> EvidenceError {
    EvidenceError::Manifest { format: "setup.cfg", reason }
}
