//! Public names: no name disappears, and no name uses a retired word.
//!
//! Other tests compare the reference pages with the program, so the names on these pages are the
//! names of the program. `public_names.txt` lists all of them. A name may be added, but never
//! renamed.

use std::collections::BTreeSet;
use std::{env, fs};

use crate::documents::root;

/// The variable that makes the test write the list, set to any value.
const RENEW: &str = "HOOKLOOP_RENEW_NAMES";

/// Words that older builds used for things that have an established name.
///
/// `hand` and `held` are also ordinary words, so they are not listed. Stored keys are not public
/// and may keep a retired word.
const RETIRED: &[&str] = &[
    "ageing",
    "anew",
    "arrived",
    "came of",
    "cascade_cut",
    "desk",
    "fate",
    "gates_judged",
    "goes on",
    "guest",
    "heed",
    "hook_retries",
    "in hands",
    "left_off",
    "left_out",
    "mend",
    "mends",
    "notice_sent",
    "order_lifted",
    "purse",
    "readied",
    "receipt_made",
    "seat",
    "set aside",
    "signs of life",
    "slot_taken",
    "somebody",
    "task_left",
    "task_taken",
    "trouble",
    "troubles",
    "turn_reserved",
    "under way",
    "unfit",
    "whoever",
    "wip_of",
    "workshop",
];

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the parts of a text that are in backticks.
fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the first cell of each row below each heading of a page, as `kind heading name`.
fn names_by_heading(kind: &str, path: &str) -> BTreeSet<String> {
    let text = page(path);
    let mut found = BTreeSet::new();
    let mut heading = "";
    for line in text.lines() {
        if let Some(title) = line.trim_start_matches('#').strip_prefix(' ')
            && line.starts_with('#')
        {
            heading = title.trim_matches('`');
        }
        let Some(row) = line.strip_prefix('|') else { continue };
        let cell = row.split('|').next().unwrap_or_default();
        for name in code(cell) {
            found.insert(format!("{kind} {heading}: {name}"));
        }
    }
    found
}

/// Returns the words of a page that begin with a prefix.
fn prefixed(kind: &str, path: &str, prefix: &str) -> BTreeSet<String> {
    let text = page(path);
    let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_inside(c)).filter(|word| word.starts_with(prefix));
    words.map(|word| format!("{kind} {word}")).collect()
}

fn public_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let cli = page("docs/reference/cli.md");
    let commands = cli.lines().filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    names.extend(
        commands
            .filter(|title| title.starts_with("hookloop "))
            .map(|title| format!("command {title}")),
    );
    names.extend(names_by_heading("option", "docs/reference/cli.md"));
    names.extend(names_by_heading("key", "docs/reference/config.md"));
    let events = page("docs/reference/events.md");
    let types = events.lines().filter_map(|line| line.strip_prefix("### "));
    names.extend(types.map(|kind| format!("event {kind}")));
    names.extend(names_by_heading("field", "docs/reference/events.md"));
    names.extend(names_by_heading("point", "docs/reference/points.md"));
    names.extend(names_by_heading("variable", "docs/reference/environment.md"));
    names.extend(prefixed("metric", "docs/reference/metrics.md", "hookloop_"));
    for line in page("docs/reference/json.md").lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').collect();
        let command = code(cells[1]).first().copied().unwrap_or_default();
        names.extend(code(cells[2]).into_iter().map(|field| format!("json {command}: {field}")));
    }
    names
}

#[test]
fn no_public_name_disappears() {
    let names = public_names();
    assert!(names.len() > 500, "{} names", names.len());
    let path = root().join("crates/hookloop/tests/book/public_names.txt");
    let text: String = names.iter().map(|name| format!("{name}\n")).collect();
    if env::var_os(RENEW).is_some() {
        fs::write(&path, text).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap();
    let kept: BTreeSet<String> = kept.lines().map(str::to_owned).collect();
    let lost: Vec<&String> = kept.difference(&names).collect();
    assert!(lost.is_empty(), "these public names were removed; scripts may use them: {lost:#?}");
    let new: Vec<&String> = names.difference(&kept).collect();
    assert!(
        new.is_empty(),
        "new names cannot be renamed later; if they are right, set {RENEW} and run this: {new:#?}"
    );
}

#[test]
fn no_public_name_uses_a_retired_word() {
    let mut pages: Vec<String> =
        ["cli", "config", "events", "points", "decisions", "json", "environment"]
            .map(|name| format!("docs/reference/{name}.md"))
            .into();
    pages.push("docs/hookloop.schema.json".to_owned());
    pages.push("crates/hookloop/tests/book/public_names.txt".to_owned());
    let mut found = Vec::new();
    for path in pages {
        for (number, line) in page(&path).to_lowercase().lines().enumerate() {
            let words: Vec<&str> = line
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .filter(|w| !w.is_empty())
                .collect();
            let line = format!(" {} ", words.join(" "));
            for retired in RETIRED {
                if line.contains(&format!(" {retired} ")) {
                    found.push(format!("{path}:{}: {retired}", number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
