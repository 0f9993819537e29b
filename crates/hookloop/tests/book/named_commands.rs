//! Checks that every command and option of hookloop that a page names exists.
//!
//! Other tests run the blocks of the pages. These tests check the rest: commands in sentences and
//! tables, and blocks that CI does not run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use pulldown_cmark::{Event, Options, Parser};

use crate::book::structure::pages_under;
use crate::cli::Project;
use crate::documents::{blocks, root};

/// Options of every command that the reference does not list.
const UNLISTED_OPTIONS: [&str; 2] = ["--help", "--version"];
/// A hidden command, and the second name of another one.
const UNLISTED_COMMANDS: [&str; 2] = ["reference", "import agent-hooks"];

/// The commands of the program with their options, as the reference lists them.
struct CommandList {
    /// By the path of the command. The options of every command have the path "".
    options: BTreeMap<String, BTreeSet<String>>,
}

impl CommandList {
    fn of_the_program() -> CommandList {
        let reference = Project::bare().ok(&["reference", "cli"]);
        let mut options: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        options.insert(String::new(), UNLISTED_OPTIONS.map(str::to_owned).into());
        for path in UNLISTED_COMMANDS {
            options.insert(path.to_owned(), BTreeSet::new());
        }
        let mut path = String::new();
        for line in reference.lines() {
            if let Some(heading) = line.strip_prefix("##") {
                let heading = heading.trim_start_matches('#').trim_start();
                path = heading.strip_prefix("hookloop ").unwrap_or_default().to_owned();
                options.entry(path.clone()).or_default();
            } else if let Some(row) = line.strip_prefix("| `") {
                let cell = row.split('`').next().unwrap_or_default();
                let words = cell.split([' ', ',']).filter(|word| word.starts_with('-'));
                options.entry(path.clone()).or_default().extend(words.map(str::to_owned));
            }
        }
        CommandList { options }
    }

    fn is_group(&self, path: &str) -> bool {
        let start = if path.is_empty() { String::new() } else { format!("{path} ") };
        self.options.keys().any(|other| other != path && other.starts_with(&start))
    }

    /// Returns the first mistake in a command line.
    fn mistake(&self, line: &str) -> Option<String> {
        let is_end = |word: &&str| ["|", "||", "&&", ";", ">", "\\"].contains(word);
        let words = line.split_whitespace().skip(1);
        let words = words.take_while(|word| !is_end(word) && !word.starts_with('#'));
        let mut path = String::new();
        let mut is_path = true;
        // Paths follow after `--`.
        for word in words.take_while(|word| *word != "--") {
            let longer = format!("{path} {word}").trim_start().to_owned();
            let follows_path = is_path;
            is_path &= self.options.contains_key(&longer);
            if is_path {
                path = longer;
            } else if word.starts_with("--") && !word.ends_with(['\'', '"']) {
                let option = word.split('=').next().unwrap_or_default();
                let is_known = ["", &path].iter().any(|path| self.options[*path].contains(option));
                if !is_known {
                    return Some(format!("`{path}` has no option {option}"));
                }
            } else if follows_path
                && word.starts_with(|c: char| c.is_ascii_lowercase())
                && self.is_group(&path)
            {
                return Some(format!("there is no command `{longer}`"));
            }
        }
        None
    }
}

/// Returns the commands in the sentences and tables of a document.
fn commands_in_prose(document: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let code = Parser::new_ext(&text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Code(code) => Some(code.into_string()),
        _ => None,
    });
    code.filter(|code| code.starts_with("hookloop ")).collect()
}

/// Returns the commands in the blocks of a document that CI does not run.
fn commands_that_do_not_run(document: &str) -> Vec<String> {
    let skipped = blocks(document).into_iter().filter(|block| block.language == "sh" && !block.run);
    let lines = |text: String| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let lines = skipped.flat_map(|block| lines(block.text));
    lines.filter(|line| line.starts_with("hookloop ")).collect()
}

#[test]
fn every_command_that_a_page_names_exists() {
    let known = CommandList::of_the_program();
    assert!(known.options.len() > 80, "{:?}", known.options.keys());
    let pages = pages_under("").into_iter().map(|page| format!("docs/{page}"));
    let top = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(str::to_owned);
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages.chain(top) {
        let named = commands_in_prose(&page).into_iter().chain(commands_that_do_not_run(&page));
        for command in named {
            count += 1;
            if let Some(mistake) = known.mistake(&command) {
                wrong.push(format!("{page}: `{command}`: {mistake}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "{count} commands");
}

#[test]
fn unknown_commands_and_options_are_found() {
    let known = CommandList::of_the_program();
    for wrong in ["hookloop hoks trust", "hookloop task finish a", "hookloop run x --max-costs 1"] {
        assert!(known.mistake(wrong).is_some(), "{wrong}");
    }
    for right in ["hookloop task show ID", "hookloop run … --worktree", "hookloop log --json | jq"]
    {
        assert_eq!(known.mistake(right), None);
    }
}
