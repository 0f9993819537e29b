//! Other tools' hooks and tasks in a repository, each with the command that imports them.

use hookloop_hooks::test_detection::is_there;
use hookloop_hooks::test_detection::reading::TestedProject;

use super::SurveyGround;

/// A file of another tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTool {
    pub file: String,
    pub what: &'static str,
    /// The import command, if there is one.
    pub command: Option<String>,
}

/// Files, descriptions of their content, and their names in `hookloop import`.
const FILES: [(&str, &str, Option<&str>); 18] = [
    (".claude/settings.json", "hooks of Claude Code", Some("claude")),
    (".codex/hooks.json", "hooks of Codex", Some("claude")),
    ("lefthook.yml", "git hooks of lefthook", Some("lefthook")),
    (".lefthook.yml", "git hooks of lefthook", Some("lefthook")),
    ("lefthook.yaml", "git hooks of lefthook", Some("lefthook")),
    (".iteratr.hooks.yml", "hooks of iteratr", Some("iteratr")),
    (".codemie/codemie-cli.config.json", "hooks of CodeMie", Some("codemie")),
    (".octopoid/config.yaml", "hooks and types of Octopoid", Some("octopoid")),
    ("ralph.yml", "a loop of Ralph", Some("ralph")),
    ("prd.json", "stories of Ralph", Some("ralph")),
    (".ralph/agent/tasks.jsonl", "tasks of Ralph", Some("ralph")),
    ("fix_plan.md", "a plan of Ralph", Some("ralph")),
    ("IMPLEMENTATION_PLAN.md", "a plan of Ralph", Some("ralph")),
    (".beads/issues.jsonl", "issues of Beads", Some("beads")),
    ("data/automation-hooks.json", "automation hooks", Some("automation-hooks")),
    (".husky/pre-commit", "git hooks of husky", None),
    (".husky/pre-push", "git hooks of husky", None),
    (".cursor/hooks.json", "hooks of Cursor", None),
];

pub(super) fn all(project: &TestedProject, ground: SurveyGround<'_>) -> Vec<FoundTool> {
    let is_readable = |file: &str| matches!(project.has(file), Ok(true));
    let mut found: Vec<FoundTool> = Vec::new();
    for (file, what, name) in FILES.into_iter().filter(|(file, ..)| is_readable(file)) {
        // The settings file of an agent may have no hooks.
        let has_hooks =
            || matches!(project.read(file), Ok(Some(text)) if text.contains("\"hooks\""));
        if file.ends_with(".json") && name == Some("claude") && !has_hooks() {
            continue;
        }
        let command = name.map(|name| {
            // `hookloop init` writes hookloop.yaml first, so the import must add to a file.
            let write = if name == "beads" { "" } else { " --write" };
            format!("hookloop import {name} {file}{write}")
        });
        found.push(FoundTool { file: file.to_owned(), what, command });
    }
    if is_there(".git/hooks/pre-commit", ground.root, ground.path) && found.is_empty() {
        let file = ".git/hooks/pre-commit".to_owned();
        found.push(FoundTool { file, what: "a git hook of this checkout", command: None });
    }
    found
}
