//! Task types that name their agents: errors name the missing agent and the configuration to add.

use crate::cli::Project;

const TYPED: &str =
    "task_types:\n  product:\n    agents: {implementer: [nobody], gatekeeper: [qa-agent]}\n";
const TURNS: &str = r#"[{"write": {"work": "1"}, "say": "<promise>COMPLETE</promise>"}]"#;

#[test]
fn an_undefined_agent_of_a_task_type_is_reported_by_run_why_and_doctor() {
    let project = Project::with_config(TYPED);
    let task = project.add("Build it", &["--type", "product"]);
    project.write("turns.json", TURNS);
    let run = project.run(&["run", "--tasks", "--agent", "scripted:turns.json"]);
    assert_eq!(run.code, 3, "{run:?}");
    let expected = [
        "tasks of type `product` are for the implementer `nobody`",
        "no agent `nobody` is defined",
        "`agents: {nobody: {type: claude}}`",
    ];
    let why = project.ok(&["why", &task]);
    let claimed = project.fails(1, &["task", "claim", "--agent", "somebody"]);
    for part in expected {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
        assert!(why.contains(part), "{part}: {why}");
        assert!(claimed.contains(part), "{part}: {claimed}");
    }
    let found = project.json_of_doctor();
    for (agent, role) in [("nobody", "implementer"), ("qa-agent", "gatekeeper")] {
        let message = format!("no agent `{agent}` is defined, which the type names as {role}");
        let one = found.iter().find(|one| one["message"] == message.as_str());
        let one = one.unwrap_or_else(|| panic!("{agent}: {found:#?}"));
        assert_eq!(one["about"], "type product");
        assert!(one["hint"].as_str().unwrap().contains(&format!("agents: {{{agent}: ")), "{one}");
    }
}

/// Checks that the configuration proposed by the message solves the problem.
#[test]
fn tasks_of_a_type_run_once_the_agent_of_the_type_is_defined() {
    let project = Project::with_config(TYPED);
    let task = project.add("Build it", &["--type", "product"]);
    project
        .write("agent.sh", "cat > /dev/null\necho 1 > work\necho '<promise>COMPLETE</promise>'\n");
    let own =
        "version: 1\ngates: none\nagents: {nobody: {type: command, command: [sh, agent.sh]}}\n";
    std::fs::write(project.home().join(".config/hookloop/config.yaml"), own).unwrap();
    let why = project.ok(&["why", &task]);
    assert!(why.contains("`hookloop run --tasks --agent nobody`"), "{why}");
    let run = project.run(&["run", "--tasks", "--agent", "nobody"]);
    assert_eq!((run.code, project.state_of(&task).as_str()), (6, "completed"), "{run:?}");
    // Another agent does not get the task.
    project.add("Another", &["--type", "product"]);
    project.write("turns.json", TURNS);
    let run = project.run(&["run", "--tasks", "--agent", "scripted:turns.json"]);
    assert!(run.stdout.contains("none is ready for `scripted:turns.json`"), "{run:?}");
    assert!(run.stdout.contains("`hookloop run --tasks --agent nobody`"), "{run:?}");
}

#[test]
fn hooks_of_an_agent_replace_those_of_the_project() {
    let project = Project::with_config(
        "hooks:\n  before_submit:\n    - {name: of-project, command: 'true'}\nagents:\n  careful:\n    type: command\n    \
         command: [sh, agent.sh]\n    hooks:\n      before_submit:\n        - {name: of-agent, command: 'true'}\n",
    );
    project
        .write("agent.sh", "cat > /dev/null\necho 1 > work\necho '<promise>COMPLETE</promise>'\n");
    let made = project.shell(
        "git init -q -b main && git config user.email a@b && git config user.name a && git add -A && git commit -qm x",
    );
    assert_eq!(made.code, 0, "{made:?}");
    project.trust();
    project.ok(&["agents", "trust", "--yes"]);
    project.add("Build it", &[]);
    let run = project.run(&["run", "--tasks", "--agent", "careful"]);
    let ran = project.events_of("hook_ran");
    let names: Vec<&str> =
        ran.iter().map(|event| event["data"]["hook_name"].as_str().unwrap()).collect();
    assert_eq!(names, ["of-agent"], "{run:?}");
}

impl Project {
    fn json_of_doctor(&self) -> Vec<serde_json::Value> {
        let run = self.run(&["doctor", "--json"]);
        serde_json::from_str(&run.stdout).unwrap()
    }
}
