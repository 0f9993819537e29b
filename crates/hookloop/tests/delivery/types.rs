//! Task types: the hooks of a task, and the agents that may work on it.

use crate::delivery_project::DeliveryProject;

const CONFIG: &str = "
delivery: {}
agents:
  careful:
    type: command
    command: 'true'
    hooks:
      before_submit:
        - {name: of-agent, command: 'true'}
hooks:
  before_submit:
    - {name: of-project, command: 'true'}
    - create_pr
task_types:
  product:
    hooks:
      before_submit:
        - {name: of-type, command: 'true'}
        - create_pr
  quiet:
    hooks:
      before_submit: []
  theirs:
    agents:
      implementer: [somebody-else]
";

/// Seed 002: the hooks of the agent, else of the type, else of the project.
#[test]
fn hooks_of_the_task_type_replace_hooks_of_the_project() {
    let project = DeliveryProject::new(CONFIG, &[("a.txt", "a\n")]);
    for (id, kind, hooks) in [
        ("t1", Some("product"), &["of-type", "create_pr"][..]),
        ("t2", Some("unheard-of"), &["of-project", "create_pr"]),
        ("t3", None, &["of-project", "create_pr"]),
        ("t4", Some("quiet"), &[]),
    ] {
        let rest = kind.map_or_else(Vec::new, |kind| vec!["--type", kind]);
        project.add(id, &rest);
        project.does(id, 1, &format!("echo work > {id}.txt"));
        let ran = project.run_tasks();
        // A session is proven if a hook of before_submit checked its tasks.
        let code = if hooks.is_empty() { 6 } else { 0 };
        assert_eq!(ran.code, code, "{id}: {}", ran.stderr);
        assert_eq!(ran.hooks_at("before_submit"), hooks, "{id}");
        assert_eq!(project.state(id), "submitted");
    }
}

#[test]
fn tasks_of_a_type_with_agents_are_claimed_only_by_them() {
    let project = DeliveryProject::new(CONFIG, &[("a.txt", "a\n")]);
    project.add("t1", &["--type", "theirs", "--priority", "0"]);
    project.add("t2", &["--priority", "9"]);
    project.does("t2", 1, "echo work > t2.txt");
    let ran = project.run_tasks();
    assert_eq!(
        (project.state("t1"), project.state("t2")),
        ("ready".into(), "submitted".into()),
        "{}",
        ran.stderr
    );
    let ran = project.run_session(&["--task", "t1"]);
    assert_eq!(ran.code, 3);
    let ended = ran.all("session_ended");
    assert!(ended[0]["reason"].as_str().unwrap().contains("somebody-else"), "{ended:?}");
    let claim = project.json_command(&["task", "claim", "--agent", "me"]).output().unwrap();
    assert!(!claim.status.success(), "no task is left for this agent");
    assert_eq!(project.json_values(&["task", "claim", "--agent", "somebody-else"])[0]["id"], "t1");
}
