//! The page of the configuration, from the schemas that editors use.

use serde_json::Value;

use super::cell;
use super::shape::{SchemaShape, title};

const HEAD: &str = "# Configuration

Every key of the three files, from the JSON Schemas that `hookloop schema`, `hookloop schema --user` and `hookloop schema --policy` print. An
unknown key is an error, with file, line and column. Keys without \"required\" are optional.
";

pub(super) fn page() -> String {
    let files = [
        (
            "hookloop.yaml",
            "Configuration of a project, at its root.",
            hookloop_config::project_file::schema(),
        ),
        (
            "config.yaml",
            "Your own configuration, `~/.config/hookloop/config.yaml`. It applies to every project ([your own hooks](../command-hooks.md#your-own-hooks-and-limits)).",
            hookloop_config::user_file::schema(),
        ),
        (
            "policy.yaml",
            "Policy of the machine, `/etc/hookloop/policy.yaml` ([policies](../policy.md)).",
            hookloop_config::policy_file::schema(),
        ),
    ];
    let mut text = HEAD.to_owned();
    let mut told: Vec<&str> = Vec::new();
    for (name, about, schema) in &files {
        let shape = SchemaShape::linked(schema);
        text.push_str(&format!("\n## {name}\n\n{about}\n"));
        text.push_str(&table(shape, schema));
        for (name, found) in shape.sections() {
            // The files have most of them in common.
            if told.contains(&name) {
                continue;
            }
            told.push(name);
            let about = found["description"].as_str().unwrap_or_default();
            text.push_str(&format!("\n### {}\n", title(name)));
            if !about.is_empty() {
                text.push_str(&format!("\n{about}\n"));
            }
            text.push_str(&table(shape, found));
        }
    }
    text
}

fn table(shape: SchemaShape<'_>, node: &Value) -> String {
    let mut text = "\n| key | value | meaning |\n|---|---|---|\n".to_owned();
    for row in shape.rows(node) {
        let required = if row.is_required { ", required" } else { "" };
        let kind = cell(&row.kind);
        let meaning = cell(&row.meaning);
        text.push_str(&format!("| `{}` | {kind}{required} | {meaning} |\n", row.name));
    }
    text
}
