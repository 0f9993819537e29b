//! Octopoid: hooks and types of `.octopoid/config.yaml`, flows, and tasks as it writes them.

use hookloop_config::agents::profile::known;
use hookloop_config::effective::IMPLEMENTER;
use serde_json::{Map, Value, json};

use super::ImportTool;
use super::octopoid_tasks::{task, tasks};
use super::source::SourceFile;
use crate::cli::import::fields::SourceFields;
use crate::cli::import::import_report::{FoundHook, ImportReport};

pub(super) const TOOL: ImportTool = ImportTool {
    name: "octopoid",
    files: &[".octopoid/config.yaml", ".octopoid/agents.yaml", ".octopoid/flows/default.yaml"],
    read,
};

/// Its points, which hookloop has too.
const POINTS: [&str; 4] = ["before_submit", "after_submit", "before_merge", "after_merge"];
/// Transitions of a flow that have steps here, and where.
const TRANSITIONS: [(&str, &str); 2] =
    [("claimed -> provisional", "before_submit"), ("provisional -> done", "before_merge")];

/// A role of a type, and the agents that have it.
type RoleAgents = (String, Vec<String>);

/// Its names for the role that does the work.
const IMPLEMENTERS: [&str; 2] = ["implement", IMPLEMENTER];

/// The equivalent of one of its steps.
enum FlowStep {
    Same(&'static str),
    Another(&'static str, &'static str),
    /// The step has no equivalent, or happens anyway.
    None(&'static str),
}

fn step(name: &str) -> FlowStep {
    match name {
        "rebase_on_main" => FlowStep::Same("rebase_on_main"),
        "run_tests" => FlowStep::Same("run_tests"),
        "create_pr" => FlowStep::Same("create_pr"),
        "rebase_on_base" => FlowStep::Another("rebase_on_main", "`rebase_on_main` is for any base"),
        "push_branch" => FlowStep::None("`create_pr` pushes the branch"),
        "merge_pr" => FlowStep::None("`hookloop merge` merges work that has passed its gates"),
        "check_ci" => FlowStep::None("`delivery: {wait_for_checks: true}` is the default"),
        "post_review_comment" => {
            FlowStep::None("a gatekeeper's findings are in the request already")
        }
        _ => FlowStep::None("there is no built-in of this name; write `command: …`"),
    }
}

fn read(source: &SourceFile, report: &mut ImportReport) -> Result<(), String> {
    if source.ends_with(&[".md"]) {
        return task(source, report);
    }
    if source.ends_with(&[".json"]) {
        return tasks(source, report);
    }
    let mut file = SourceFields::of("", source.yaml()?)?;
    if let Some(transitions) = file.take("transitions") {
        flow(&mut file, transitions, report)?;
    } else {
        config(&mut file, report)?;
    }
    file.finish(report);
    Ok(())
}

fn config(file: &mut SourceFields, report: &mut ImportReport) -> Result<(), String> {
    for (point, list) in hooks("hooks", file.take("hooks"), report)? {
        report.set("hooks", &point, list);
    }
    for (name, kind) in file.object("task_types")?.each() {
        let place = format!("task_types.{name}");
        let mut kind = SourceFields::of(place.as_str(), kind)?;
        let mut ours = Map::new();
        let lists = hooks(&format!("{place}.hooks"), kind.take("hooks"), report)?;
        if !lists.is_empty() {
            ours.insert("hooks".to_owned(), Value::Object(lists));
        }
        let roles = roles(&place, kind.take("agents"), report)?;
        if !roles.is_empty() {
            define_agents(&roles, report);
            report.changed(
                format!("{place}.agents"),
                "each is defined under `agents` as Claude Code, which runs them there",
            );
            let roles = roles.into_iter().map(|(role, names)| (role, json!(names)));
            ours.insert("agents".to_owned(), Value::Object(roles.collect()));
        }
        kind.finish(report);
        report.set("task_types", &name, Value::Object(ours));
    }
    match file.take("agents") {
        None => {}
        Some(Value::Object(fields)) => agent_section(fields, report)?,
        Some(Value::Array(list)) => {
            for entry in list {
                listed_agent(entry, report)?;
            }
        }
        Some(_) => return Err("`agents` is neither a list nor an object with fields".to_owned()),
    }
    let mut repo = file.object("repo")?;
    for key in ["base_branch", "main_branch"] {
        if let Some(base) = repo.text(key) {
            report.set("delivery", "base", json!(base));
            report.kept(repo.place_of(key));
        }
    }
    repo.lose(report, &[("path", "a project is the directory of its file")]);
    repo.finish(report);
    file.lose(
        report,
        &[
            ("server", "`store: nats://…` is the shared store"),
            ("mode", "`store: nats://…` is the shared store"),
            ("scope", "`project:` is the name in a shared store"),
            ("paused", "hookloop fleet pause"),
            ("queue_limits", "`scheduling: {wip}`"),
            ("fleet", "hookloop worker --agent NAME, once for each"),
        ],
    );
    Ok(())
}

/// Limits of all agents, and agents by name.
fn agent_section(fields: Map<String, Value>, report: &mut ImportReport) -> Result<(), String> {
    let mut agents = SourceFields::of("agents", Value::Object(fields))?;
    if let Some(most) = agents.number("max_concurrent").filter(|most| *most > 0) {
        report.set("scheduling", "wip", json!(most));
        report.changed(
            "agents.max_concurrent",
            "`scheduling: {wip}`: tasks in progress at once, on all machines together",
        );
    }
    agents.lose(
        report,
        &[
            ("max_breakdown_depth", "tasks are broken down by hand, or by an agent's tools"),
            ("models", "hookloop run --model, or `agents: {NAME: {model}}`"),
        ],
    );
    for name in agents.keys_of_objects() {
        let fields =
            SourceFields::of(format!("agents.{name}"), agents.take(&name).unwrap_or_default())?;
        define_agent(&name, fields, report)?;
    }
    agents.finish(report);
    Ok(())
}

/// An agent in a list: a name, or an object that has one.
fn listed_agent(entry: Value, report: &mut ImportReport) -> Result<(), String> {
    let (name, entry) = match entry {
        Value::String(name) => (Some(name), Value::Null),
        Value::Object(mut entry) => match entry.shift_remove("name") {
            Some(Value::String(name)) => (Some(name), Value::Object(entry)),
            _ => (None, Value::Null),
        },
        _ => (None, Value::Null),
    };
    match name.filter(|name| !name.trim().is_empty()) {
        Some(name) => {
            define_agent(&name, SourceFields::of(format!("agents.{name}"), entry)?, report)
        }
        None => {
            report.lose("agents: an entry", "it has no name");
            Ok(())
        }
    }
}

/// Defines an agent with its own settings.
fn define_agent(
    name: &str,
    mut entry: SourceFields,
    report: &mut ImportReport,
) -> Result<(), String> {
    let place = entry.place().to_owned();
    if entry.flag("enabled") == Some(false) {
        report.lose(place, "left out: it is not enabled there");
        return Ok(());
    }
    let mut agent = Map::from_iter([("type".to_owned(), json!("claude"))]);
    if let Some(model) = entry.text("model") {
        agent.insert("model".to_owned(), json!(model));
    }
    let lists = hooks(&format!("{place}.hooks"), entry.take("hooks"), report)?;
    if !lists.is_empty() {
        agent.insert("hooks".to_owned(), Value::Object(lists));
    }
    let role = entry.text("role").or_else(|| entry.text("type")).unwrap_or_default();
    if IMPLEMENTERS.contains(&role.as_str()) {
        choose_agent(name, report);
    } else if !role.is_empty() {
        let why = format!("agents have no roles: hookloop worker --agent {name}");
        report.lose(entry.place_of("role"), why);
    }
    report.set("agents", name, Value::Object(agent));
    report.changed(place, "defined as Claude Code, which runs it there");
    entry.lose(
        report,
        &[
            ("max_concurrent", "hookloop worker --jobs N"),
            ("interval_seconds", "a worker takes a task when one is ready"),
            ("max_turns", "`limits: {max_iterations: N}`"),
        ],
    );
    entry.finish(report);
    Ok(())
}

/// Makes this the agent of sessions, if no other is.
fn choose_agent(name: &str, report: &mut ImportReport) {
    let is_chosen = report.config.get("loop").is_some_and(|it| it.get("agent").is_some());
    if !is_chosen {
        report.set("loop", "agent", json!(name));
    }
}

/// Returns the agents of a type by role. A list without roles names implementers.
fn roles(
    place: &str,
    value: Option<Value>,
    report: &mut ImportReport,
) -> Result<Vec<RoleAgents>, String> {
    let place = format!("{place}.agents");
    let value = match value {
        None => return Ok(Vec::new()),
        Some(Value::Object(roles)) => Value::Object(roles),
        Some(names) => json!({ IMPLEMENTER: names }),
    };
    let mut fields = SourceFields::of(place, value)?;
    let mut roles = Vec::new();
    for role in fields.keys() {
        let names = fields.texts(&role);
        if !names.is_empty() {
            roles.push((role, names));
        }
    }
    fields.finish(report);
    Ok(roles)
}

/// Defines the agents that a type names: without definitions no agent works on the type.
fn define_agents(roles: &[RoleAgents], report: &mut ImportReport) {
    for (role, names) in roles {
        for name in names.iter().filter(|name| known(name).is_none()) {
            let is_defined = report.config.get("agents").is_some_and(|it| it.get(name).is_some());
            if !is_defined {
                report.set("agents", name, json!({ "type": "claude" }));
            }
            if role == IMPLEMENTER {
                choose_agent(name, report);
            }
        }
    }
}

/// Lists of hooks under their points.
fn hooks(
    place: &str,
    value: Option<Value>,
    report: &mut ImportReport,
) -> Result<Map<String, Value>, String> {
    let mut points = SourceFields::of(place, value.unwrap_or(Value::Null))?;
    let mut lists = Map::new();
    for point in POINTS {
        let mut list = Vec::new();
        for entry in points.list(point) {
            list.extend(entry_of(&format!("{place}.{point}"), point, entry, report)?);
        }
        if !list.is_empty() {
            lists.insert(point.to_owned(), Value::Array(list));
        }
    }
    points.finish(report);
    Ok(lists)
}

fn entry_of(
    place: &str,
    point: &str,
    entry: Value,
    report: &mut ImportReport,
) -> Result<Option<Value>, String> {
    if let Value::String(name) = entry {
        return Ok(named(place, point, &name, report));
    }
    let mut entry = SourceFields::of(place, entry)?;
    let names = entry.list("gatekeeper");
    let names: Vec<String> =
        names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    entry.finish(report);
    if names.is_empty() {
        return Ok(None);
    }
    for name in &names {
        let prompt = format!(
            "Review the change as the gatekeeper `{name}`: name what must be fixed before the merge."
        );
        report.set("gatekeepers", name, json!({ "prompt": prompt }));
    }
    let why = "`gatekeepers` describes each review; write yours there";
    report.changed(format!("{place}: gatekeeper {}", names.join(", ")), why);
    Ok(Some(json!({ "gatekeeper": names })))
}

fn named(place: &str, point: &str, name: &str, report: &mut ImportReport) -> Option<Value> {
    let what = format!("{place}: {name}");
    let (ours, change) = match step(name) {
        FlowStep::Same(ours) => (ours, None),
        FlowStep::Another(ours, why) => (ours, Some(why)),
        FlowStep::None(why) => {
            report.lose(what, why);
            return None;
        }
    };
    let entry = Map::from_iter([("use".to_owned(), Value::from(ours))]);
    match (report.check(point, &entry), change) {
        (Err(why), _) => {
            report.lose(what, why);
            return None;
        }
        (Ok(()), Some(why)) => report.changed(what, why),
        (Ok(()), None) => report.kept(what),
    }
    Some(Value::Object(entry))
}

fn flow(
    file: &mut SourceFields,
    transitions: Value,
    report: &mut ImportReport,
) -> Result<(), String> {
    let name = file.text("name").unwrap_or_default();
    file.take("description");
    let mut transitions = SourceFields::of("transitions", transitions)?;
    for (theirs, point) in TRANSITIONS {
        let mut steps = transitions.object(theirs)?;
        let mut list = Vec::new();
        for run in steps.list("runs").into_iter().chain(steps.list("checks")) {
            let place = format!("{name}: {theirs}");
            match run.as_str() {
                Some(run) => list.extend(named(&place, point, run, report)),
                None => report.lose(place, "a step that is not a name"),
            }
        }
        // A flow gives the order; the list in the configuration is older than flows.
        if !list.is_empty() {
            report.set("hooks", point, Value::Array(list));
        }
        for condition in steps.list("conditions") {
            let mut condition = SourceFields::of(format!("{name}: {theirs}"), condition)?;
            if let Some(agent) = condition.text("agent") {
                let prompt = format!(
                    "Review the change as `{agent}`: name what must be fixed before the merge."
                );
                report.set("gatekeepers", &agent, json!({ "prompt": prompt }));
                let found = FoundHook::new(theirs, &agent).with("gatekeeper", json!([agent]));
                report.hook(point, found, &["`gatekeepers` describes the review".to_owned()]);
            } else if let Some(script) = condition.text("script") {
                let found = FoundHook::new(theirs, &script).with("command", script.as_str());
                report.hook(point, found, &[]);
            } else {
                let condition = condition.text("name").unwrap_or_default();
                let why = "a person decides with `hookloop merge`; there is no other condition";
                report.lose(format!("{name}: {theirs}: condition {condition}"), why);
            }
            condition.take("name");
            condition.take("type");
            condition.lose(report, &[("on_fail", "work that is refused goes back to its agent")]);
            condition.finish(report);
        }
        steps.lose(
            report,
            &[
                ("agent", "hookloop worker --agent"),
                ("on_checks_fail", "work that is refused goes back to its agent"),
            ],
        );
        steps.finish(report);
    }
    for (left, _) in transitions.each() {
        report.lose(format!("{name}: {left}"), "tasks have the states of docs/tasks.md");
    }
    Ok(())
}
