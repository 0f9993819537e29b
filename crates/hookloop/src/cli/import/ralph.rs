//! Ralph loops: the orchestrator's `ralph.yml` and tasks, stories of a `prd.json`, and plans as lists to tick off.

use std::collections::BTreeMap;

use hookloop_config::agents::profile::known;
use hookloop_core::options::TIMEOUT_MAX_MS;
use hookloop_core::session::plan::Dollars;
use hookloop_core::task::TaskState;
use serde_json::json;

use super::ImportTool;
use super::source::SourceFile;
use super::tasks::{TaskDraft, id_of};
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::{FoundHook, HERE, ImportReport};

pub(super) const TOOL: ImportTool = ImportTool {
    name: "ralph",
    files: &[
        "ralph.yml",
        "ralph.yaml",
        ".ralph/agent/tasks.jsonl",
        ".agent/tasks.jsonl",
        "prd.json",
        "fix_plan.md",
        "@fix_plan.md",
        "IMPLEMENTATION_PLAN.md",
    ],
    read,
};

/// Its phases, and where their hooks run here.
const PHASES: [(&str, &str); 8] = [
    ("pre.loop.start", "session_start"),
    ("post.loop.start", "session_start"),
    ("pre.iteration.start", "pre_iteration"),
    ("post.iteration.start", "pre_iteration"),
    ("pre.loop.complete", "stop"),
    ("post.loop.complete", "session_end"),
    ("pre.loop.error", "on_error"),
    ("post.loop.error", "on_error"),
];
/// Shells whose `-c` takes a line.
const SHELLS: [&str; 4] = ["sh", "/bin/sh", "bash", "/bin/bash"];
/// The timeout of a gate that sets none, and of a hook.
const GATE_TIMEOUT: &str = "10m";

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    if source.ends_with(&[".jsonl"]) {
        tasks(source, report)
    } else if source.ends_with(&[".json"]) {
        stories(source, report)
    } else if source.ends_with(&[".md"]) {
        plan(source, report);
        Ok(())
    } else {
        config(source, report)
    }
}

fn config(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let mut file = SourceFields::of("", source.yaml()?)?;
    let mut looping = file.object("event_loop")?;
    limits(&mut looping, report);
    looping.finish(report);
    // The same without its section is how the first version wrote it.
    limits(&mut file, report);
    let mut cli = file.object("cli")?;
    for (place, backend) in [("cli.backend", cli.text("backend")), ("agent", file.text("agent"))] {
        let Some(backend) = backend else { continue };
        match known(&backend) {
            Some(agent) => {
                report.set("loop", "agent", json!(agent.name));
                report.kept(place);
            }
            None => report.lose(
                format!("{place}: {backend}"),
                "hookloop run --agent 'acp:PROGRAM' or 'command:PROGRAM'",
            ),
        }
    }
    cli.lose(
        report,
        &[
            ("command", "`agents: {NAME: {type: command, command: …}}`"),
            ("args", "`agents: {NAME: {args: […]}}`"),
            ("prompt_mode", "each agent has its own interface"),
            ("prompt_flag", "each agent has its own interface"),
            ("default_mode", "a terminal is noticed"),
            ("idle_timeout_secs", "`limits: {turn_timeout: 30m}`"),
        ],
    );
    cli.finish(report);
    gates(&mut file, report)?;
    hooks(&mut file, report)?;
    for (hat, _) in file.object("hats")?.each() {
        report.lose(
            format!("hats.{hat}"),
            "no roles that pass events on: gates, gatekeepers and types of tasks do that",
        );
    }
    file.lose(
        report,
        &[
            ("events", "events are those of docs/log.md"),
            ("core", "`loop: {prompt_template: FILE}` sets the template of all prompts"),
            ("agent_priority", "`loop: {fallback: […]}`"),
            ("adapters", "`agents: {NAME: …}`"),
            ("memories", "notes of a task go with it: hookloop task note"),
            ("tasks", "the task graph is always there"),
            ("skills", "skills are the agent's own"),
            ("tui", "hookloop watch"),
            ("features", "hookloop worker --jobs N"),
            ("RObot", "`notify` in your own configuration: docs/inbox.md"),
            ("verbose", "hookloop log"),
            ("archive_prompts", "hookloop sessions show"),
            ("enable_metrics", "hookloop usage"),
            ("retry_delay", "failed turns wait longer each time"),
            ("_suppress_warnings", "of its own messages"),
        ],
    );
    file.finish(report);
    Ok(())
}

fn limits(file: &mut SourceFields, report: &mut ImportReport) {
    let numbers =
        [("max_iterations", "max_iterations"), ("max_consecutive_failures", "max_errors")];
    for (theirs, ours) in numbers {
        if let Some(number) = file.number(theirs) {
            report.set_or_lose("limits", ours, json!(number), file.place_of(theirs));
        }
    }
    for theirs in ["max_runtime_seconds", "max_runtime"] {
        if let Some(seconds) = file.number(theirs) {
            let longest = TIMEOUT_MAX_MS / 1_000;
            if seconds > longest {
                report.set("limits", "max_duration", json!(format!("{longest}s")));
                report.changed(file.place_of(theirs), "a session ends after a day");
                continue;
            }
            let length = json!(format!("{seconds}s"));
            report.set_or_lose("limits", "max_duration", length, file.place_of(theirs));
        }
    }
    for theirs in ["max_cost_usd", "max_cost"] {
        if let Some(dollars) = file.decimal(theirs) {
            match Dollars::new(dollars) {
                Ok(_) => {
                    report.set_or_lose("limits", "max_cost", json!(dollars), file.place_of(theirs))
                }
                Err(error) => report.lose(file.place_of(theirs), error.to_string()),
            }
        }
    }
    let promise = "an agent reports `<promise>COMPLETE</promise>`, and gates check it";
    file.lose(
        report,
        &[
            ("prompt", "hookloop run \"…\""),
            ("prompt_file", "hookloop run --spec FILE"),
            ("completion_promise", promise),
            ("cancellation_promise", "an agent reports `<promise>BLOCKED</promise>`"),
            ("starting_event", "a session begins with its prompt"),
            ("starting_hat", "there are no hats"),
            ("required_events", "gates check the conditions"),
            ("enforce_hat_scope", "there are no hats"),
            ("cooldown_delay_seconds", "failed turns wait longer each time"),
            ("mutation_score_warn_threshold", "write a gate that measures it"),
            ("persistent", "hookloop worker"),
            ("context_window_tokens", "agents mind their own"),
            ("max_tokens", "`limits: {max_tokens: N}` counts those of a session"),
        ],
    );
}

fn gates(file: &mut SourceFields, report: &mut ImportReport) -> Result<(), String> {
    let mut pressure = file.object("backpressure")?;
    for gate in pressure.list("gates") {
        let mut gate = SourceFields::of("backpressure.gates", gate)?;
        let name = gate.text("name").unwrap_or_default();
        let Some(command) = gate.text("command") else {
            report.lose(format!("backpressure.gates: {name}"), "a gate without a command");
            continue;
        };
        let mut found = FoundHook::new(&format!("backpressure.gates.{name}"), &command);
        if !name.is_empty() {
            found = found.with("name", name.as_str());
        }
        let found = found.with("command", command.as_str()).with("timeout", GATE_TIMEOUT);
        gate.lose(report, &[("on_fail", "the agent gets the failures from the output")]);
        gate.finish(report);
        report.hook("stop", found, &[]);
    }
    pressure.finish(report);
    Ok(())
}

fn hooks(file: &mut SourceFields, report: &mut ImportReport) -> Result<(), String> {
    let mut hooks = file.object("hooks")?;
    let is_off = hooks.flag("enabled") == Some(false);
    let mut defaults = hooks.object("defaults")?;
    let usual = defaults.number("timeout_seconds");
    defaults.lose(
        report,
        &[
            ("max_output_bytes", "output is kept whole"),
            ("suspend_mode", "hookloop pause, by hand"),
        ],
    );
    defaults.finish(report);
    let mut events = hooks.object("events")?;
    for (phase, point) in PHASES {
        for spec in events.list(phase) {
            let mut spec = SourceFields::of(format!("hooks.{phase}"), spec)?;
            let words = spec.texts("command");
            let mut found = FoundHook::new(phase, &words.join(" "));
            if let Some(name) = spec.text("name") {
                found = found.with("name", name);
            }
            let mut changes = vec![format!("the point is called `{point}`")];
            match words.as_slice() {
                // As a line, the scripts that it runs are found, and agreed to.
                [shell, option, line] if SHELLS.contains(&shell.as_str()) && option == "-c" => {
                    if !shell.ends_with("/sh") && shell != "sh" {
                        changes.push(format!("`sh` runs the line, not `{shell}`"));
                    }
                    found = found.with("command", line.as_str());
                }
                _ => found = found.with("command", words),
            }
            if let Some(seconds) = spec.number("timeout_seconds").or(usual) {
                found = found.with("timeout", format!("{seconds}s"));
            }
            if let Some(cwd) = spec.text("cwd") {
                found = found.with("cwd", cwd);
            }
            if let Some(env) = spec.variables("env") {
                found = found.with("env", env);
            }
            if is_off {
                found = found.with("enabled", false);
            }
            if point == "stop" {
                changes.push(HERE.to_owned());
                found = found.with("room", "here");
            }
            match (spec.text("on_error").as_deref(), point) {
                (Some("block"), "stop") | (None | Some("warn"), _) => {}
                (Some(how), _) => changes.push(format!(
                    "`on_error: {how}` can't stop a session there; a `stop` gate can"
                )),
            }
            spec.lose(
                report,
                &[
                    ("max_output_bytes", "output is kept whole"),
                    ("suspend_mode", "hookloop pause, by hand"),
                    ("mutate", "a hook's output is piped: `pipe_output: true`"),
                ],
            );
            spec.finish(report);
            report.hook(point, found, &changes);
        }
    }
    for (left, _) in events.each() {
        report.lose(format!("hooks.{left}"), "nothing here happens at that moment");
    }
    hooks.finish(report);
    Ok(())
}

/// Tasks of the orchestrator, one a line.
fn tasks(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    for line in source.json_lines() {
        let (_, value) = line?;
        let mut task = SourceFields::of("tasks", value)?;
        let status = task.text("status").unwrap_or_default();
        if status == "failed" {
            report.changed("status failed", "ready here: it can be tried again");
        } else if !["", "open", "closed"].contains(&status.as_str()) {
            report.changed(format!("status {status}"), "ready here: not claimed yet");
        }
        TaskDraft {
            id: task.text("id").unwrap_or_default(),
            goal: task.text("title").unwrap_or_default(),
            description: vec![("", task.text("description").unwrap_or_default())],
            // Theirs begins with 1.
            priority: task.number("priority").map(|n| n.saturating_sub(1)),
            depends_on: task.texts("blocked_by"),
            state: (status == "closed").then_some(TaskState::Completed),
            created_at: task.text("created"),
            completed_at: task.text("closed"),
            ..TaskDraft::default()
        }
        .take(report);
        report.kept("tasks");
        task.lose(
            report,
            &[
                ("key", "ids do that"),
                ("loop_id", "a claim records who works on it"),
                ("started", "not claimed yet"),
            ],
        );
        task.finish(report);
    }
    Ok(())
}

/// Stories of a product, as `prd.json` has them.
fn stories(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    let mut file = SourceFields::of("", source.json()?)?;
    let product = file.text("description").unwrap_or_default();
    for story in file.list("userStories") {
        let mut story = SourceFields::of("userStories", story)?;
        let has_passed = story.is_true("passes");
        TaskDraft {
            id: story.text("id").unwrap_or_default(),
            goal: story.text("title").unwrap_or_default(),
            description: vec![
                ("", story.text("description").unwrap_or_default()),
                ("Notes", story.text("notes").unwrap_or_default()),
                ("Part of", product.clone()),
            ],
            deliverables: story.texts("acceptanceCriteria"),
            priority: story.number("priority").map(|n| n.saturating_sub(1)),
            state: has_passed.then_some(TaskState::Completed),
            ..TaskDraft::default()
        }
        .take(report);
        report.kept("userStories");
        story.finish(report);
    }
    file.lose(
        report,
        &[
            ("project", "hookloop.yaml has `project:`"),
            ("branchName", "a task has a branch of its own: docs/delivery.md"),
        ],
    );
    file.finish(report);
    Ok(())
}

/// A plan: each line that can be ticked off is a task, under the heading it stands below.
fn plan(source: &SourceFile, report: &mut ImportReport) {
    let mut heading = String::new();
    let mut seen = BTreeMap::new();
    let mut is_code = false;
    for line in source.text.lines() {
        let said = line.trim();
        if said.starts_with("```") || said.starts_with("~~~") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        if let Some(text) = said.strip_prefix('#') {
            heading = text.trim_start_matches('#').trim().to_owned();
            continue;
        }
        let item = item_of(said).and_then(|item| item.strip_prefix('[')?.split_once(']'));
        let Some((mark, goal)) = item.filter(|(mark, _)| mark.chars().count() <= 1) else {
            continue;
        };
        if !["", " ", "x", "X"].contains(&mark) {
            report.changed(format!("the mark [{mark}]"), "ready here: not claimed yet");
        }
        let goal = goal.trim().to_owned();
        TaskDraft {
            id: id_of("plan", &goal, &mut seen),
            description: vec![("Part of", heading.clone())],
            state: matches!(mark.trim(), "x" | "X").then_some(TaskState::Completed),
            goal,
            ..TaskDraft::default()
        }
        .take(report);
        report.kept("lines that can be ticked off");
    }
}

/// The text of an item of a list, behind its sign or number.
fn item_of(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = digits.strip_prefix(['.', ')']).filter(|_| digits.len() < line.len());
    let rest = line.strip_prefix(['-', '*', '+']).or(numbered)?;
    rest.starts_with(' ').then(|| rest.trim_start())
}
