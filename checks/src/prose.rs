//! Counts sentences that are hard to read: without a noun as subject.
//!
//! A reader has to search for the noun of a sentence whose subject is a question word. Clauses with such a word are fine
//! now and then. Documents have no such sentence and few such clauses; comments may have some.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::CheckError;
use crate::ratchet::RuleFigures;

/// Sentences with a question word as subject.
const SUBJECT_MAX: u64 = 0;
/// Clauses with a question word and without a noun, in 100,000 words of documents.
const DOCUMENT_HEADLESS_MAX: u64 = 100;
/// The same in comments.
const COMMENT_HEADLESS_MAX: u64 = 200;
const PER_WORDS: u64 = 100_000;

/// The documents of the repository, relative to the workspace. Directories are searched.
const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs"];
/// Directories with sources.
const SOURCES: [&str; 5] = ["crates", "bench", "checks", "faults", "testbed"];
/// Output of builds is not read.
const NOT_READ: &str = "target";

static BEGINS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(What|Who|Whoever|Whatever)\b").ok());
static HEADLESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?:^|[,;:.(]\s*|\b(?:of|for|to|by|with|from|on|and|or|than|as|in|that|is|are|at|about|has|have|says|said|tells?|takes?|see|shows?|does|do|but)\s+)(?:what|who|whoever|whatever)\b(\?)?",
    )
    .ok()
});
static CODE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("`[^`]*`").ok());
static LINK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])").ok());

/// Figures of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProseFigures {
    pub words: u64,
    /// Sentences that begin with a question word.
    pub subjects: Vec<String>,
    pub headless: u64,
}

impl ProseFigures {
    fn add(&mut self, paragraph: &str) {
        let plain = plain(paragraph);
        self.words += plain.split_whitespace().count() as u64;
        for sentence in sentences(&plain) {
            let is_question = sentence.ends_with('?');
            if sentence.split_whitespace().count() < 3 || is_question {
                continue;
            }
            if BEGINS.as_ref().is_some_and(|begins| begins.is_match(&sentence)) {
                self.subjects.push(sentence.clone());
            }
            if let Some(headless) = HEADLESS.as_ref() {
                let found = headless.captures_iter(&sentence);
                self.headless += found.filter(|found| found.get(1).is_none()).count() as u64;
            }
        }
    }

    fn headless_rate(&self) -> u64 {
        self.headless * PER_WORDS / self.words.max(1)
    }
}

/// Returns a text without links, code and emphasis.
fn plain(text: &str) -> String {
    let text = match LINK.as_ref() {
        Some(link) => link.replace_all(text, "$1").into_owned(),
        None => text.to_owned(),
    };
    let text = match CODE.as_ref() {
        Some(code) => code.replace_all(&text, "CODE").into_owned(),
        None => text,
    };
    text.replace("**", "")
}

fn sentences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut sentence = String::new();
    for word in text.split_whitespace() {
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        if word.ends_with(['.', '!', '?']) {
            found.push(std::mem::take(&mut sentence));
        }
    }
    found.extend((!sentence.is_empty()).then_some(sentence));
    found
}

/// Returns the paragraphs of a Markdown document, without code blocks and headings.
fn markdown(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in text.lines().map(str::trim) {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_row = line.starts_with('|');
        if is_code || is_fence || line.is_empty() || line.starts_with(['#', '!', '<']) || is_row {
            paragraphs.push(String::new());
            if is_row && !is_code {
                paragraphs
                    .extend(line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()));
                paragraphs.push(String::new());
            }
            continue;
        }
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        if item.is_some() {
            paragraphs.push(String::new());
        }
        if let Some(last) = paragraphs.last_mut() {
            last.push(' ');
            last.push_str(item.unwrap_or(line));
        }
    }
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    paragraphs
}

/// Returns the comments of a Rust source; neighbouring lines are one paragraph.
fn comments(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines().map(str::trim_start) {
        let comment =
            line.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim());
        match (comment, paragraphs.last_mut()) {
            (Some(comment), Some(last)) if !comment.is_empty() => {
                last.push(' ');
                last.push_str(comment);
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.trim().is_empty());
    paragraphs
}

fn files_below(path: &Path, extension: &str, found: &mut Vec<PathBuf>) -> Result<(), CheckError> {
    if path.is_file() {
        found.extend(path.extension().is_some_and(|end| end == extension).then(|| path.to_owned()));
        return Ok(());
    }
    let read = |source| CheckError::Read { path: path.to_owned(), source };
    for entry in fs::read_dir(path).map_err(read)? {
        let path = entry.map_err(read)?.path();
        if path.file_name().is_some_and(|name| name != NOT_READ) {
            files_below(&path, extension, found)?;
        }
    }
    Ok(())
}

/// Returns the figures of documents and comments, by area.
pub fn prose_by_area(root: &Path) -> Result<BTreeMap<String, ProseFigures>, CheckError> {
    let mut areas: BTreeMap<String, ProseFigures> = BTreeMap::new();
    let mut read = |area: String, path: &Path, paragraphs: fn(&str) -> Vec<String>| {
        let text = fs::read_to_string(path)
            .map_err(|source| CheckError::Read { path: path.to_owned(), source })?;
        let figures = areas.entry(area).or_default();
        paragraphs(&text).iter().for_each(|paragraph| figures.add(paragraph));
        Ok::<(), CheckError>(())
    };
    for document in DOCUMENTS {
        let mut files = Vec::new();
        files_below(&root.join(document), "md", &mut files)?;
        for path in files {
            read(document.to_owned(), &path, markdown)?;
        }
    }
    for directory in SOURCES {
        let mut files = Vec::new();
        files_below(&root.join(directory), "rs", &mut files)?;
        for path in files {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let depth = if directory == "crates" { 3 } else { 1 };
            let area: PathBuf = relative.components().take(depth).collect();
            read(area.display().to_string(), &path, comments)?;
        }
    }
    Ok(areas)
}

/// Few sentences are without a subject.
pub fn prose_figures(areas: &BTreeMap<String, ProseFigures>) -> Vec<RuleFigures> {
    let is_document = |area: &str| DOCUMENTS.contains(&area);
    let rates = |documents: bool| {
        let chosen = areas.iter().filter(move |(area, _)| is_document(area) == documents);
        chosen.map(|(area, figures)| (area.clone(), figures.headless_rate())).collect()
    };
    let subjects =
        areas.iter().map(|(area, figures)| (area.clone(), figures.subjects.len() as u64));
    vec![
        RuleFigures { kind: "prose-subject", bar: SUBJECT_MAX, figures: subjects.collect() },
        RuleFigures { kind: "prose-headless", bar: DOCUMENT_HEADLESS_MAX, figures: rates(true) },
        RuleFigures { kind: "comments-headless", bar: COMMENT_HEADLESS_MAX, figures: rates(false) },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paragraphs: &[String]) -> ProseFigures {
        let mut figures = ProseFigures::default();
        paragraphs.iter().for_each(|paragraph| figures.add(paragraph));
        figures
    }

    #[test]
    fn sentences_without_a_noun_are_found() {
        let text = "# What\n\nWho looks is not taken for who has it. A hook prints what changed.\n\n\
                    ```sh\nWhat is in a block does not count.\n```\n\n- What now?\n- Run `what it is` first.\n";
        let figures = of(&markdown(text));
        assert_eq!(figures.subjects, ["Who looks is not taken for who has it."]);
        assert_eq!(figures.headless, 2, "{figures:?}");
    }

    #[test]
    fn sentences_of_comments_are_joined_across_lines() {
        let text = "//! What a module\n//! is for.\nfn a() {\n    // Returns the name of\n    // what is read.\n}\n";
        let figures = of(&comments(text));
        assert_eq!(figures.subjects, ["What a module is for."]);
        assert_eq!((figures.headless, figures.words), (2, 12));
    }
}
