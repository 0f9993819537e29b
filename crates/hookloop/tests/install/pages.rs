//! Manual pages.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::cli::{Project, fields};

/// Returns the commands that a help lists, in one section or several.
fn listed(help: &str) -> Vec<String> {
    const OTHERS: [&str; 4] = ["Options:", "Arguments:", "Usage:", "Example:"];
    let mut is_listing = false;
    let mut found = Vec::new();
    for line in help.lines() {
        if !line.starts_with(' ') {
            is_listing = line.ends_with(':') && !OTHERS.contains(&line);
        } else if is_listing {
            let name = line.strip_prefix("  ").and_then(|line| line.split(' ').next());
            found.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
    }
    found
}

/// Returns the page name of every command, from the help of all of them.
fn commands(project: &Project) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut due = vec![Vec::new()];
    while let Some(words) = due.pop() {
        let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
        found.insert([&["hookloop"], args.as_slice()].concat().join("-") + ".1");
        let help = if args.is_empty() {
            project.ok(&["help", "all"])
        } else {
            args.push("--help");
            project.ok(&args)
        };
        for name in listed(&help) {
            due.push([words.as_slice(), &[name]].concat());
        }
    }
    found
}

#[test]
fn every_command_has_a_man_page_without_lint_errors() {
    let project = Project::bare();
    let answer = project.json(&["man", "--dir", "pages"]);
    assert_eq!(fields(&answer), BTreeSet::from(["directory", "pages"]));
    let pages = answer["pages"].as_array().unwrap().iter();
    let pages: BTreeSet<String> = pages.map(|page| page.as_str().unwrap().to_owned()).collect();
    let commands = commands(&project);
    assert!(commands.len() > 50, "{commands:?}");
    assert_eq!(pages, commands);
    let files = fs::read_dir(project.root().join("pages")).unwrap();
    let files = files.map(|file| file.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(files.len(), pages.len());
    let lint = Command::new("mandoc").args(["-Tlint", "-Werror"]).args(&files).output().unwrap();
    assert!(lint.status.success(), "{}", String::from_utf8_lossy(&lint.stdout));
}

#[test]
fn a_man_page_has_the_options_of_the_help() {
    let project = Project::bare();
    let read = |line: &str| {
        let run = project.shell(&format!("{line} | MANWIDTH=100 man -l - | col -bx"));
        assert_eq!(run.code, 0, "{run:?}");
        run.stdout
    };
    let page = read("hookloop man task add");
    assert!(page.contains("hookloop-task-add"), "{page}");
    assert!(page.contains("--depends-on"), "{page}");
    // The page also has options that the short help omits.
    assert!(page.contains("Digest of hooks to trust"), "{page}");
    assert!(page.contains("hookloop-task(1)"), "{page}");
    let page = read("hookloop man");
    for heading in ["EXIT STATUS", "ENVIRONMENT", "FILES"] {
        assert!(page.contains(heading), "{page}");
    }
    assert!(page.contains("hookloop-task(1)"), "{page}");
    let said = project.fails(2, &["man", "task", "ad"]);
    assert!(said.contains("there is no command `hookloop task ad`"), "{said}");
    assert!(said.contains("hookloop task --help"), "{said}");
}

#[test]
fn a_man_page_directory_that_cannot_be_created_is_reported() {
    let project = Project::bare();
    project.write("file", "");
    let said = project.fails(70, &["man", "--dir", "file/pages"]);
    assert!(said.contains("file/pages: "), "{said}");
    let _: Value = project.json(&["man", "--dir", "pages/deep"]);
}
