//! lefthook: what has to pass before a commit or a push has to pass before an agent is done.

use hookloop_core::options::Length;
use serde_json::Value;

use super::Tool;
use super::source::Source;
use super::taken::{Fields, Found, Taken};

pub(super) const TOOL: Tool = Tool {
    name: "lefthook",
    files: &["lefthook.yml", ".lefthook.yml", "lefthook.yaml", ".lefthook.yaml", "lefthook.json"],
    read,
};

/// Git hooks that ask whether the work is good; what else there is belongs to git.
const GATES: [&str; 3] = ["pre-commit", "pre-push", "pre-merge-commit"];
/// Files that a template stands for, which are there while git commits or pushes.
const TEMPLATES: [&str; 5] =
    ["{staged_files}", "{push_files}", "{files}", "{all_files}", "{lefthook_job_name}"];
const GROUP_DEPTH_MAX: usize = 8;
/// What stays with lefthook.
const OF_LEFTHOOK: [&str; 17] = [
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
    "templates",
    "extends",
    "remotes",
];

/// A git hook that is read.
struct Hook<'a> {
    name: &'a str,
    source_dir: &'a str,
    is_parallel: bool,
}

fn read(source: &Source, taken: &mut Taken) -> Result<(), String> {
    let value = match source.ends_with(&[".json"]) {
        true => source.json()?,
        false => source.yaml()?,
    };
    let mut file = Fields::of("", value)?;
    let source_dir = file.text("source_dir").unwrap_or_else(|| ".lefthook".to_owned());
    let source_dir = source_dir.trim_end_matches('/').to_owned();
    // Hooks that agents are told to run when they stop are gates, whatever they are called.
    let mut gates: Vec<String> = GATES.map(str::to_owned).to_vec();
    for (agent, events) in file.object("ai")?.each() {
        for (event, hook) in Fields::of(format!("ai.{agent}"), events)?.each() {
            match (event.to_ascii_lowercase().as_str(), hook) {
                ("stop", Value::String(hook)) => {
                    taken.kept(format!("ai.{agent}.{event}: {hook}"));
                    gates.push(hook);
                }
                _ => taken.lose(format!("ai.{agent}.{event}"), "left with the agent"),
            }
        }
    }
    for key in OF_LEFTHOOK {
        let why = match key {
            "extends" | "remotes" => "hooks of other files are not read: import those files",
            _ => "a setting of lefthook's",
        };
        file.lose(taken, &[(key, why)]);
    }
    for (name, hook) in file.each() {
        if !hook.is_object() {
            taken.unknown(&name);
        } else if gates.contains(&name) {
            read_hook(&name, &source_dir, Fields::of(name.as_str(), hook)?, taken)?;
        } else {
            taken.lose(name, "git runs it still; nothing here happens at that moment");
        }
    }
    Ok(())
}

fn read_hook(
    name: &str,
    source_dir: &str,
    mut fields: Fields,
    taken: &mut Taken,
) -> Result<(), String> {
    let hook = Hook { name, source_dir, is_parallel: fields.is_true("parallel") };
    if fields.take("skip") == Some(Value::Bool(true)) {
        taken.lose(name, "it is skipped there");
        return Ok(());
    }
    for (job, entry) in fields.object("commands")?.each() {
        let entry = Fields::of(format!("{name}.commands.{job}"), entry)?;
        one(&hook, Some(&job), entry, "command", taken);
    }
    for (job, entry) in fields.object("scripts")?.each() {
        let mut entry = Fields::of(format!("{name}.scripts.{job}"), entry)?;
        entry.put("script", Value::from(job.as_str()));
        one(&hook, Some(&job), entry, "script", taken);
    }
    jobs(&hook, fields.list("jobs"), GROUP_DEPTH_MAX, taken)?;
    fields.lose(
        taken,
        &[
            ("piped", "gates run in order, and all of them are told"),
            ("follow", "of its output"),
            ("files", "files are not handed on; the command runs for all of them"),
            ("fail_on_changes", "a gate that changes files is asked again"),
            ("fail_on_changes_diff", "of its output"),
            ("exclude", "files are not handed on"),
            ("exclude_tags", "gates have no tags"),
            ("only", "write `when:` on the gate"),
            ("skip", "write `when:` on the gate"),
            ("setup", "write it as a hook at session_start"),
        ],
    );
    fields.finish(taken);
    Ok(())
}

fn jobs(hook: &Hook<'_>, list: Vec<Value>, depth: usize, taken: &mut Taken) -> Result<(), String> {
    for job in list {
        let mut entry = Fields::of(format!("{}.jobs", hook.name), job)?;
        let mut group = entry.object("group")?;
        let inside = group.list("jobs");
        if inside.is_empty() {
            let name = entry.text("name");
            one(hook, name.as_deref(), entry, "job", taken);
            continue;
        }
        if depth == 0 {
            return Err(format!("`{}` has groups in groups, deeper than anyone looks", hook.name));
        }
        let is_parallel = group.is_true("parallel");
        jobs(&Hook { is_parallel, ..*hook }, inside, depth - 1, taken)?;
        group.lose(
            taken,
            &[
                ("piped", "gates run in order, and all of them are told"),
                ("root", "write `cwd:` on each gate"),
            ],
        );
        group.finish(taken);
        entry.finish(taken);
    }
    Ok(())
}

/// One command, script or job as a gate.
fn one(hook: &Hook<'_>, name: Option<&str>, mut entry: Fields, kind: &str, taken: &mut Taken) {
    let (run, script) = (entry.text("run"), entry.text("script"));
    let (runner, args) = (entry.text("runner"), entry.text("args"));
    let line = match (run, script) {
        (Some(run), _) => run,
        (None, Some(script)) => {
            let file = format!("{}/{}/{script}", hook.source_dir, hook.name);
            runner.map_or(file.clone(), |runner| format!("{runner} {file}"))
        }
        (None, None) => return taken.lose(entry.place_of("run"), "nothing to run"),
    };
    let line = args.map_or(line.clone(), |args| format!("{line} {args}"));
    let mut changes = vec!["asked when an agent is done, not when git commits".to_owned()];
    let has_template = TEMPLATES.iter().any(|template| line.contains(template));
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let command = match (has_template, name.filter(is_name)) {
        (false, _) => line.clone(),
        (true, Some(name)) if kind != "script" => {
            changes
                .push("lefthook fills in the files: all of them, for nothing is staged".to_owned());
            format!("lefthook run {} --all-files --{kind} {name}", hook.name)
        }
        (true, _) => {
            return taken.lose(
                format!("{}: {line}", hook.name),
                "its files are named by a template, and it has no name",
            );
        }
    };
    let mut found = Found::new(&format!("{}.{}", hook.name, name.unwrap_or(kind)), &line);
    if let Some(name) = name.filter(is_name) {
        found = found.with("name", name);
    }
    found = found.with("command", command);
    if let Some(timeout) = entry.text("timeout") {
        match timeout.parse::<Length>() {
            Ok(_) => found = found.with("timeout", timeout),
            Err(error) => taken.lose(entry.place_of("timeout"), error.to_string()),
        }
    }
    if let Some(root) = entry.text("root") {
        found = found.with("cwd", root.trim_end_matches('/'));
    }
    if let Some(Value::Object(env)) = entry.take("env") {
        found = found.with("env", env);
    }
    if let Some(priority) = entry.number("priority") {
        found = found.with("priority", priority);
    }
    if hook.is_parallel {
        found = found.with("parallel", true);
    }
    if entry.take("skip") == Some(Value::Bool(true)) {
        found = found.with("enabled", false);
    }
    let files = "files are not handed on: it runs for all of them";
    entry.lose(
        taken,
        &[
            ("files", files),
            ("glob", files),
            ("exclude", files),
            ("file_types", files),
            ("tags", "gates have no tags"),
            ("only", "write `when:` on the gate"),
            ("fail_text", "the agent reads what the command prints"),
            ("interactive", "nobody is asked"),
            ("use_stdin", "a gate's input is what happened, as JSON"),
            ("stage_fixed", "nothing is staged; a gate that changes files is asked again"),
        ],
    );
    entry.finish(taken);
    taken.hook("stop", found, &changes);
}
