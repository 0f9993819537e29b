//! Checks that the generated pages are up to date.

use std::fs;

use crate::cli::Project;
use crate::documents::root;

fn check(page: &str) {
    let project = Project::bare();
    let made = project.ok(&["reference", page]);
    let path = root().join(format!("docs/reference/{page}.md"));
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let renew = format!("hookloop reference {page} > docs/reference/{page}.md");
    assert!(
        kept == made,
        "docs/reference/{page}.md differs from the output of the program; to update it:\n  {renew}"
    );
}

#[test]
fn commands() {
    check("cli");
}

#[test]
fn configuration() {
    check("config");
}

#[test]
fn events() {
    check("events");
}

#[test]
fn decisions() {
    check("decisions");
}

#[test]
fn points() {
    check("points");
}

/// Checks that the page lists every key of the schemas.
#[test]
fn no_key_of_a_file_is_missing() {
    let page = fs::read_to_string(root().join("docs/reference/config.md")).unwrap();
    let project = Project::bare();
    for args in [&["schema"][..], &["schema", "--user"], &["schema", "--policy"]] {
        let schema: serde_json::Value = serde_json::from_str(&project.ok(args)).unwrap();
        let keys = |node: &serde_json::Value| -> Vec<String> {
            node["properties"]
                .as_object()
                .map_or_else(Vec::new, |all| all.keys().cloned().collect())
        };
        let inner = schema["$defs"].as_object().unwrap().values().flat_map(keys);
        let all: Vec<String> = keys(&schema).into_iter().chain(inner).collect();
        assert!(all.len() > 10, "{args:?}");
        for key in all {
            assert!(page.contains(&format!("| `{key}` |")), "`{key}` of {args:?} is missing");
        }
    }
}
