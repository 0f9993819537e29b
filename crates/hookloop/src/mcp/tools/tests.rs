use std::collections::BTreeSet;

use hookloop_config::paths::ProjectPaths;
use hookloop_engine::log_location::LaunchContext;
use hookloop_engine::project::Project;

use super::*;

struct Stage {
    _directory: tempfile::TempDir,
    tools: AgentTools,
}

fn stage() -> Stage {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    std::fs::write(root.join("hookloop.yaml"), "version: 1\n").unwrap();
    let place = ProjectPaths::at(&root, &root.join("state"));
    let nothing = LaunchContext::default();
    let project = Project::open(&place, "tester", &nothing).unwrap();
    Stage { _directory: directory, tools: AgentTools::new(project, None).unwrap() }
}

/// Something that the field takes.
fn sample(field: &ToolField) -> Value {
    match (field.name, field.kind) {
        ("completionPromise", _) => json!("<promise>COMPLETE</promise>"),
        ("completionPromises", _) => json!(["COMPLETE", "<promise>BLOCKED</promise>"]),
        ("status", _) => json!("in_progress"),
        (_, ArgumentKind::Text) => json!("x"),
        (_, ArgumentKind::Count | ArgumentKind::Positive) => json!(3),
        (_, ArgumentKind::Texts) => json!(["x", "y"]),
        (_, ArgumentKind::Object | ArgumentKind::Anything) => json!({ "a": [1] }),
        (_, ArgumentKind::OneOf(words) | ArgumentKind::Word(words)) => json!(words[0]),
        (_, ArgumentKind::Words(words)) => json!(words),
    }
}

fn samples(tool: &AgentTool, wanted: impl Fn(&ToolField) -> bool) -> Arguments {
    let fields = tool.fields.iter().filter(|field| wanted(field));
    fields.map(|field| (field.name.to_owned(), sample(field))).collect()
}

/// Returns the result of a call: nothing, or the code of its error.
fn outcome(tool: &AgentTool, tools: &AgentTools, arguments: Arguments) -> Option<&'static str> {
    let answer = tool.check(arguments).and_then(|checked| tool.call(tools, checked));
    answer.err().map(|refusal| refusal.code)
}

#[test]
fn arguments_that_match_the_schema_are_accepted() {
    let stage = stage();
    for tool in TOOLS {
        let nulls = tool.fields.iter().filter(|field| !field.is_needed);
        let nulls = nulls.map(|field| (field.name.to_owned(), Value::Null));
        let sparse: Arguments =
            samples(tool, |field| field.is_needed).into_iter().chain(nulls).collect();
        for arguments in [samples(tool, |_| true), samples(tool, |field| field.is_needed), sparse] {
            let code = outcome(tool, &stage.tools, arguments.clone());
            assert_ne!(code, Some("invalid_argument"), "{} {arguments:?}", tool.name);
        }
    }
}

#[test]
fn arguments_that_violate_the_schema_are_refused_by_name() {
    for tool in TOOLS {
        let whole = samples(tool, |_| true);
        for field in tool.fields {
            let mut without = whole.clone();
            without.remove(field.name);
            assert_eq!(
                tool.check(without).is_err(),
                field.is_needed,
                "{} {}",
                tool.name,
                field.name
            );
            if matches!(field.kind, ArgumentKind::Anything) {
                continue;
            }
            for wrong in [json!(true), json!(-1), json!(1.5), json!([1]), json!(5_000_000_000_u64)]
            {
                let mut with = whole.clone();
                with.insert(field.name.to_owned(), wrong.clone());
                let refusal = tool.check(with).unwrap_err();
                assert_eq!(refusal.code, "invalid_argument");
                assert!(refusal.message.contains(field.name), "{} {wrong}", refusal.message);
            }
        }
        let mut more = whole.clone();
        more.insert("shell".to_owned(), json!("rm -rf /"));
        let refusal = tool.check(more).unwrap_err();
        assert!(refusal.message.contains("`shell`"), "{}", refusal.message);
        for field in tool.fields {
            assert!(refusal.message.contains(field.name), "{}", refusal.message);
        }
    }
}

#[test]
fn tool_schemas_list_exactly_the_checked_arguments() {
    for tool in TOOLS {
        let schema = tool.schema();
        let keys: BTreeSet<&str> = schema.keys().map(String::as_str).collect();
        assert!(keys.is_subset(&BTreeSet::from(["type", "properties", "required"])), "{keys:?}");
        let names: BTreeSet<&str> = tool.fields.iter().map(|field| field.name).collect();
        let listed = schema["properties"].as_object().unwrap();
        assert_eq!(listed.keys().map(String::as_str).collect::<BTreeSet<_>>(), names);
    }
}

#[test]
fn validation_rules_of_an_agent_are_refused() {
    let refusal = iterations::START
        .check(Map::from_iter([
            ("taskId".to_owned(), json!("x")),
            ("validationRules".to_owned(), json!([])),
        ]))
        .unwrap_err();
    assert_eq!(refusal.code, "not_allowed");
    assert!(refusal.next.contains("hookloop.yaml"), "{}", refusal.next);
}

/// Agents are allowed these by name.
#[test]
fn the_list_of_allowed_tools_has_every_tool() {
    assert_eq!(TOOLS.map(|tool| tool.name), hookloop_agents::tools::TOOLS);
}
