//! lefthook: checks before a commit or a push become gates.

use std::collections::BTreeSet;

use hookloop_core::options::Length;
use serde_json::Value;

use super::ImportTool;
use super::lefthook_occasion::{GitOccasion, HookCondition};
use super::source::SourceFile;
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::{FoundHook, HERE, ImportReport};

pub(super) const TOOL: ImportTool = ImportTool {
    name: "lefthook",
    files: &[
        "lefthook.yml",
        ".lefthook.yml",
        ".config/lefthook.yml",
        "lefthook.yaml",
        ".lefthook.yaml",
        ".config/lefthook.yaml",
        "lefthook.json",
    ],
    read,
};

/// Git hooks that check the work; the others concern git only.
const GATES: [&str; 3] = ["pre-commit", "pre-push", "pre-merge-commit"];
/// Files that a template stands for, which are there while git commits or pushes.
const TEMPLATES: [&str; 6] =
    ["{staged_files}", "{push_files}", "{files}", "{all_files}", "{lefthook_job_name}", "{cmd}"];
/// Arguments that git passes to a hook: `{1}` is the first, `{0}` all of them.
const ARGUMENTS: [&str; 5] = ["{0}", "{1}", "{2}", "{3}", "{4}"];
const GROUP_DEPTH_MAX: usize = 8;
/// Settings that stay with lefthook.
const OF_LEFTHOOK: [&str; 16] = [
    "$schema",
    "assert_lefthook_installed",
    "colors",
    "glob_matcher",
    "install_non_git_hooks",
    "lefthook",
    "min_version",
    "no_auto_install",
    "no_tty",
    "output",
    "rc",
    "skip_lfs",
    "skip_output",
    "source_dir_local",
    "extends",
    "remotes",
];

/// A git hook that is read, or a group of its jobs.
struct GitHook<'a> {
    name: &'a str,
    source_dir: &'a str,
    /// Names of the file's own templates.
    templates: &'a [String],
    is_parallel: bool,
    /// lefthook never runs it.
    is_off: bool,
    /// Conditions of the hook and of the groups around a job.
    conditions: Vec<HookCondition>,
}

impl<'a> GitHook<'a> {
    fn new(name: &'a str, source_dir: &'a str, templates: &'a [String]) -> GitHook<'a> {
        GitHook {
            name,
            source_dir,
            templates,
            is_parallel: false,
            is_off: false,
            conditions: Vec::new(),
        }
    }

    /// Returns the hook for one of its groups or jobs, with their conditions. None if lefthook runs it only in states
    /// of git that a session does not have; a row reports that.
    fn narrowed(
        &self,
        entry: &mut SourceFields,
        what: &str,
        report: &mut ImportReport,
    ) -> Option<Self> {
        let mut is_off = self.is_off;
        let mut conditions = self.conditions.clone();
        match GitOccasion::of(entry) {
            GitOccasion::Never => is_off = true,
            GitOccasion::GitStates(states) => {
                let why = format!("git runs it still, during a {states} only; no gate runs then");
                report.lose(what, why);
                return None;
            }
            GitOccasion::If(own) => conditions.extend(own),
        }
        Some(GitHook { is_off, conditions, ..*self })
    }
}

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let value = if source.ends_with(&[".json"]) { source.json()? } else { source.yaml()? };
    let mut file = SourceFields::of("", value)?;
    let source_dir = file.text("source_dir").unwrap_or_else(|| ".lefthook".to_owned());
    let source_dir = source_dir.trim_end_matches('/').to_owned();
    // Hooks that agents run when they stop are gates, under any name.
    let mut gates: Vec<String> = GATES.map(str::to_owned).to_vec();
    for (agent, events) in file.object("ai")?.each() {
        for (event, hook) in SourceFields::of(format!("ai.{agent}"), events)?.each() {
            match (event.to_ascii_lowercase().as_str(), hook) {
                ("stop", Value::String(hook)) => {
                    report.kept(format!("ai.{agent}.{event}: {hook}"));
                    gates.push(hook);
                }
                _ => report.lose(format!("ai.{agent}.{event}"), "left with the agent"),
            }
        }
    }
    let templates = file.object("templates")?.keys();
    for key in OF_LEFTHOOK {
        let why = match key {
            "extends" | "remotes" => "hooks of other files are not read: import those files",
            _ => "a setting of lefthook's",
        };
        file.lose(report, &[(key, why)]);
    }
    for (name, hook) in file.each() {
        if hook.is_null() {
            continue;
        } else if !hook.is_object() {
            report.unknown(&name);
        } else if gates.contains(&name) {
            let fields = SourceFields::of(name.as_str(), hook)?;
            read_hook(GitHook::new(&name, &source_dir, &templates), fields, report)?;
        } else {
            report.lose(name, "git runs it still; nothing here happens at that moment");
        }
    }
    Ok(())
}

fn read_hook(
    hook: GitHook<'_>,
    mut fields: SourceFields,
    report: &mut ImportReport,
) -> Result<(), String> {
    let is_parallel = fields.is_true("parallel");
    let name = hook.name;
    let Some(hook) = hook.narrowed(&mut fields, name, report) else { return Ok(()) };
    let hook = GitHook { is_parallel, ..hook };
    for (job, entry) in fields.object("commands")?.each() {
        let entry = SourceFields::of(format!("{name}.commands.{job}"), entry)?;
        one(&hook, Some(&job), entry, "command", report);
    }
    for (job, entry) in fields.object("scripts")?.each() {
        let mut entry = SourceFields::of(format!("{name}.scripts.{job}"), entry)?;
        entry.put("script", Value::from(job.as_str()));
        one(&hook, Some(&job), entry, "script", report);
    }
    jobs(&hook, fields.list("jobs"), GROUP_DEPTH_MAX, report)?;
    fields.lose(
        report,
        &[
            ("piped", "gates run in order, and the agent gets all results"),
            ("follow", "of its output"),
            ("files", "files are not passed on; the command runs for all files"),
            ("fail_on_changes", "a gate that changes files runs again"),
            ("fail_on_changes_diff", "of its output"),
            ("exclude", "files are not passed on"),
            ("exclude_tags", "gates have no tags"),
            ("setup", "write it as a hook at session_start"),
        ],
    );
    fields.finish(report);
    Ok(())
}

fn jobs(
    hook: &GitHook<'_>,
    list: Vec<Value>,
    depth: usize,
    report: &mut ImportReport,
) -> Result<(), String> {
    for job in list {
        let mut entry = SourceFields::of(format!("{}.jobs", hook.name), job)?;
        let mut group = entry.object("group")?;
        let inside = group.list("jobs");
        if inside.is_empty() {
            let name = entry.text("name");
            one(hook, name.as_deref(), entry, "job", report);
            continue;
        }
        if depth == 0 {
            return Err(format!("`{}` has groups in groups, deeper than anyone looks", hook.name));
        }
        let name = entry.text("name").map(|name| format!(" {name}")).unwrap_or_default();
        let what = format!("{}.jobs: group{name}", hook.name);
        let Some(hook) = hook.narrowed(&mut entry, &what, report) else { continue };
        let is_parallel = group.is_true("parallel");
        jobs(&GitHook { is_parallel, ..hook }, inside, depth - 1, report)?;
        group.lose(
            report,
            &[
                ("piped", "gates run in order, and the agent gets all results"),
                ("root", "write `cwd:` on each gate"),
            ],
        );
        group.finish(report);
        lose_files(&mut entry, report);
        entry.lose(
            report,
            &[
                ("root", "write `cwd:` on each gate"),
                ("env", "write `env:` on each gate"),
                ("tags", "gates have no tags"),
            ],
        );
        entry.finish(report);
    }
    Ok(())
}

/// One command, script or job as a gate.
fn one(
    hook: &GitHook<'_>,
    name: Option<&str>,
    mut entry: SourceFields,
    kind: &str,
    report: &mut ImportReport,
) {
    let Some(line) = line_of(hook, &mut entry) else {
        return report.lose(entry.place_of("run"), "nothing to run");
    };
    let place = format!("{}.{}", hook.name, name.unwrap_or(kind));
    let Some(hook) = hook.narrowed(&mut entry, &format!("{place}: {line}"), report) else { return };
    let mut changes = vec!["runs when an agent is done, not when git commits".to_owned()];
    if ARGUMENTS.iter().any(|argument| line.contains(argument)) {
        let why = "git passes arguments to it, which a gate does not get";
        return report.lose(format!("{place}: {line}"), why);
    }
    let has_template = TEMPLATES.iter().any(|template| line.contains(template))
        || hook.templates.iter().any(|name| line.contains(&format!("{{{name}}}")));
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let command = match (has_template, name.filter(is_name)) {
        (false, _) => line.clone(),
        (true, Some(name)) if kind != "script" => {
            changes
                .push("lefthook fills in the files: all of them, for nothing is staged".to_owned());
            format!("lefthook run {} --all-files --{kind} {name}", hook.name)
        }
        (true, _) => {
            return report.lose(
                format!("{}: {line}", hook.name),
                "its files are named by a template, and it has no name",
            );
        }
    };
    changes.push(HERE.to_owned());
    let mut found = FoundHook::new(&place, &line).with("room", "here");
    if let Some(name) = name {
        found = found.with("name", name);
    }
    found = with_options(found.with("command", command), &mut entry, report);
    if hook.is_parallel {
        found = found.with("parallel", true);
    }
    if hook.is_off {
        changes.push("`enabled: false`: lefthook never runs it".to_owned());
        found = found.with("enabled", false);
    } else if has_template && !hook.conditions.is_empty() {
        let keys: BTreeSet<&str> = hook.conditions.iter().map(|it| it.key).collect();
        let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        let keys = keys.join(" and ");
        changes.push(format!("lefthook applies {keys}: a run that it skips counts as passed"));
    } else {
        for HookCondition { place, why, .. } in &hook.conditions {
            report.lose(place.as_str(), why.as_str());
        }
    }
    lose_files(&mut entry, report);
    entry.lose(
        report,
        &[
            ("tags", "gates have no tags"),
            ("fail_text", "the agent reads the output of the command"),
            ("interactive", "hookloop asks no questions"),
            ("use_stdin", "a gate's input is the event as JSON"),
            ("stage_fixed", "nothing is staged"),
        ],
    );
    entry.finish(report);
    report.hook("stop", found, &changes);
}

/// Returns the command line of an entry: its `run`, or its `script` with the runner; none if it has neither.
fn line_of(hook: &GitHook<'_>, entry: &mut SourceFields) -> Option<String> {
    let run = entry.text("run");
    let script = entry.text("script");
    let runner = entry.text("runner");
    let args = entry.text("args");
    let line = match (run, script) {
        (Some(run), _) => run,
        (None, Some(script)) => {
            let file = format!("{}/{}/{script}", hook.source_dir, hook.name);
            runner.map_or(file.clone(), |runner| format!("{runner} {file}"))
        }
        (None, None) => return None,
    };
    Some(args.map_or(line.clone(), |args| format!("{line} {args}")))
}

/// Adds the timeout, directory, environment and priority of an entry.
fn with_options(
    mut found: FoundHook,
    entry: &mut SourceFields,
    report: &mut ImportReport,
) -> FoundHook {
    if let Some(timeout) = entry.text("timeout") {
        match timeout.parse::<Length>() {
            Ok(_) => found = found.with("timeout", timeout),
            Err(error) => report.lose(entry.place_of("timeout"), error.to_string()),
        }
    }
    if let Some(root) = entry.text("root") {
        found = found.with("cwd", root.trim_end_matches('/'));
    }
    if let Some(env) = entry.variables("env") {
        found = found.with("env", env);
    }
    if let Some(priority) = entry.number("priority") {
        found = found.with("priority", priority);
    }
    found
}

/// Settings that pick files.
fn lose_files(entry: &mut SourceFields, report: &mut ImportReport) {
    let why = "files are not passed on: the command runs for all files";
    for key in ["files", "glob", "exclude", "file_types"] {
        entry.lose(report, &[(key, why)]);
    }
}
