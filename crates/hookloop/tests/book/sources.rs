//! Names on the pages that stand for parts of the sources: tests, files, environment variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::documents::{names, root, table};

/// Documents that name tests and files of the repository.
const DOCUMENTS: [&str; 2] = ["SECURITY.md", "ARCHITECTURE.md"];
/// Directories with sources.
const SOURCES: [&str; 6] = ["bench", "checks", "crates", "faults", "fuzz", "testbed"];
const ENVIRONMENT: &str = "docs/reference/environment.md";

/// Returns the text of every source by its path, which is relative to the repository.
fn sources() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut directories: Vec<PathBuf> = SOURCES.map(PathBuf::from).into();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root().join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let path = directory.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                if !path.ends_with("target") {
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(root().join(&path)).unwrap();
                found.insert(path, text);
            }
        }
    }
    found
}

/// Returns the words of a document in backticks. A name on two lines is joined.
fn words(document: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("` `::", "::");
    names(&text).into_iter().filter(|name| !name.contains(' ')).collect()
}

/// Returns whether the parts are parts of the path of a source, in this order.
fn has_parts(path: &Path, parts: &[&str]) -> bool {
    let path = path.with_extension("");
    let mut of_path = path.iter();
    parts.iter().all(|part| of_path.any(|other| other == *part))
}

/// A test is written as `module::name`, or as `…::name` after another one of the same module. A
/// module can stand for all its tests.
#[test]
fn every_test_that_a_document_names_exists() {
    let sources = sources();
    let mut missing = Vec::new();
    let mut count = 0;
    for document in DOCUMENTS {
        let mut last = Vec::new();
        for name in words(document).iter().filter(|name| name.contains("::")) {
            let parts = name.split(['/', ':']).filter(|part| !["", "…"].contains(part));
            let mut parts: Vec<&str> = parts.map(|part| part.trim_end_matches(".rs")).collect();
            let test = parts.pop().unwrap();
            let modules = if name.starts_with("…::") { last } else { owned(&parts) };
            let modules_of_test: Vec<&str> = modules.iter().map(String::as_str).collect();
            let function = format!("fn {test}(");
            let is_test = sources
                .iter()
                .any(|(path, text)| text.contains(&function) && has_parts(path, &modules_of_test));
            let module = [&modules_of_test[..], &[test]].concat();
            if !is_test && !sources.keys().any(|path| has_parts(path, &module)) {
                missing.push(format!("{document}: {name}"));
            }
            count += 1;
            last = modules;
        }
    }
    assert!(missing.is_empty(), "no such test:\n{}", missing.join("\n"));
    assert!(count > 50, "{count} names");
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A path begins at the repository, at `crates/`, or with the short name of a crate. After another
/// path, `…/` stands for the same crate.
#[test]
fn every_file_that_a_document_names_exists() {
    let sources = sources();
    let mut missing = Vec::new();
    let mut count = 0;
    for document in DOCUMENTS {
        let mut last = String::new();
        let is_path = |name: &&String| {
            name.contains('/')
                && !name.contains("::")
                && !name.ends_with('…')
                && (name.ends_with(".rs") || name.starts_with("hookloop"))
        };
        for name in words(document).iter().filter(is_path) {
            count += 1;
            let (first, rest) = name.split_once('/').unwrap();
            let is_there = if first == "…" {
                let below = Path::new("crates").join(&last);
                sources.keys().any(|path| path.starts_with(&below) && path.ends_with(rest))
            } else {
                last = first.to_owned();
                let short = format!("crates/hookloop-{first}/src/{rest}");
                [name.clone(), format!("crates/{name}"), short]
                    .iter()
                    .any(|path| root().join(path).exists())
            };
            if !is_there {
                missing.push(format!("{document}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "no such file:\n{}", missing.join("\n"));
    assert!(count > 30, "{count} paths");
}

/// Sources in which words in capitals are not variables for hookloop's own settings.
const WITHOUT_SETTINGS: [&str; 19] = [
    // Variables by which sources detect a test runner.
    "crates/hookloop-evidence/src/suspicion/",
    // Variables that a repository may not set, and messages of other programs.
    "crates/hookloop-engine/src/session/room_leak.rs",
    "crates/hookloop-core/src/options.rs",
    "crates/hookloop-core/src/environment/",
    // Parts of the names of secrets.
    "crates/hookloop-config/src/known_secrets.rs",
    // Keys and directories of the agents.
    "crates/hookloop-config/src/agents/profile.rs",
    // Variables that `init` passes on to gates.
    "crates/hookloop-fleet/src/survey/checks.rs",
    "crates/hookloop-hooks/src/test_detection/",
    // Variables of test runners and caches, which gates get.
    "crates/hookloop-hooks/src/gate_room.rs",
    "crates/hookloop-hooks/src/report_request.rs",
    // Variables of git, and words of GitHub.
    "crates/hookloop-fleet/src/doctor/git.rs",
    "crates/hookloop-git/src/git",
    "crates/hookloop-git/src/repo/",
    "crates/hookloop-git/src/snapshot/",
    "crates/hookloop-git/src/forge/github/queue.rs",
    "crates/hookloop-git/src/forge/github/refusal.rs",
    // Variables that hookloop sets for its keepers.
    "crates/hookloop-hooks/src/ancestry.rs",
    // Names of streams, and words in the files of other tools.
    "crates/hookloop-store/src/jetstream/",
    "crates/hookloop/src/cli/import/",
];
/// Variables that only a build, a debug build or another program reads.
const NOT_SETTINGS: [&str; 6] = [
    "CARGO_PKG_VERSION",
    "HOOKLOOP_COMMIT",
    "HOOKLOOP_TARGET",
    "HOOKLOOP_CRASH_AT",
    "DISABLE_AUTOUPDATER",
    "GH_PROMPT_DISABLED",
];
/// Variables that a library reads for hookloop.
const OF_LIBRARIES: [&str; 2] = ["NO_COLOR", "CLICOLOR_FORCE"];

/// Returns the code of the program by path, without comments and tests.
fn product_code() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (path, text) in sources() {
        let path = path.to_str().unwrap().to_owned();
        let is_product = path.starts_with("crates/") && path.contains("/src/");
        let is_test = path.contains("/tests") || path.starts_with("crates/hookloop-testkit/");
        if is_product && !is_test {
            let code = text.split("\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            found.insert(path, lines.collect::<Vec<_>>().join("\n"));
        }
    }
    found
}

/// Returns the names of variables in a source: words in capitals that are whole strings, and other
/// strings that are the name in a call.
fn variables_in(code: &str) -> BTreeSet<&str> {
    let is_inside = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let is_word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_uppercase())
            && !text.ends_with('_')
            && text.chars().all(is_inside)
    };
    let mut found: BTreeSet<&str> =
        code.split('"').filter(|text| text.contains('_') && is_word(text)).collect();
    for call in ["env::var(\"", "env::var_os(\"", "variable(\""] {
        let named = code.split(call).skip(1).filter_map(|rest| rest.split('"').next());
        found.extend(named.filter(|name| is_word(name)));
    }
    found
}

#[test]
fn every_variable_that_the_program_reads_is_listed() {
    let page = fs::read_to_string(root().join(ENVIRONMENT)).unwrap();
    let listed = names(&page);
    let is_listed = |name: &str| {
        let begins = |start: &str| !start.is_empty() && name.starts_with(start);
        listed.iter().any(|known| known == name || known.strip_suffix('…').is_some_and(begins))
    };
    let code = product_code();
    let mut missing = Vec::new();
    for (path, text) in &code {
        if WITHOUT_SETTINGS.iter().any(|start| path.starts_with(start)) {
            continue;
        }
        let unlisted = variables_in(text).into_iter().filter(|name| !is_listed(name));
        let unlisted = unlisted.filter(|name| !NOT_SETTINGS.contains(name));
        missing.extend(unlisted.map(|name| format!("{name} of {path}")));
    }
    assert!(missing.is_empty(), "{ENVIRONMENT} lacks\n{}", missing.join("\n"));
    for name in table(ENVIRONMENT, "Variables that hookloop reads", 0) {
        let literal = format!("\"{name}\"");
        let is_read = code.values().any(|text| text.contains(&literal));
        assert!(is_read || OF_LIBRARIES.contains(&name.as_str()), "nothing reads {name}");
    }
}
