//! The drawing of the task graph.

use crate::cli::Project;

/// Returns a project with a diamond: `b` and `c` depend on `a`, `d` depends on both.
fn diamond() -> Project {
    let project = Project::new();
    project.add("Start \"here\"", &["--id", "a"]);
    project.add("Left", &["--id", "b", "--depends-on", "a"]);
    project.add("Right", &["--id", "c", "--depends-on", "a"]);
    project.add("End", &["--id", "d", "--depends-on", "b", "--depends-on", "c"]);
    project
}

#[test]
fn the_text_graph_shows_dependencies_above_their_dependents() {
    let drawn = diamond().ok(&["task", "graph"]);
    let at = |text: &str| drawn.find(text).unwrap_or_else(|| panic!("{text} in {drawn}"));
    assert!(at("a ready Start \"here\"") < at("b created Left"), "{drawn}");
    assert!(at("b created Left") < at("d created End"), "{drawn}");
    assert!(at("c created Right") < at("d created End"), "{drawn}");
    assert!(drawn.contains('│'), "{drawn}");
}

#[test]
fn the_graph_is_drawn_as_dot() {
    let drawn = diamond().ok(&["task", "graph", "--format", "dot"]);
    assert!(drawn.starts_with("digraph tasks {\n") && drawn.ends_with("}\n"), "{drawn}");
    for part in
        ["\"a\" [label=\"Start \\\"here\\\" (ready)\"];", "\"a\" -> \"b\";", "\"c\" -> \"d\";"]
    {
        assert!(drawn.contains(part), "{part} in {drawn}");
    }
}

#[test]
fn the_graph_is_drawn_as_mermaid() {
    let drawn = diamond().ok(&["task", "graph", "--format", "mermaid"]);
    assert!(drawn.starts_with("flowchart TD\n"), "{drawn}");
    assert!(drawn.contains("t1[\"Start #34;here#34; #40;ready#41;\"]"), "{drawn}");
    assert!(drawn.contains("t1 --> t2") && drawn.contains("t3 --> t4"), "{drawn}");
}

#[test]
fn the_graph_of_a_task_shows_only_connected_tasks() {
    let project = diamond();
    project.add("Apart", &["--id", "apart"]);
    assert!(project.ok(&["task", "graph"]).contains("Apart"));
    let part = project.ok(&["task", "graph", "d"]);
    assert!(part.contains("Start") && !part.contains("Apart"), "{part}");
}

#[test]
fn completed_tasks_are_left_out_until_asked_for() {
    let project = diamond();
    project.ok(&["task", "complete", "a"]);
    assert!(!project.ok(&["task", "graph"]).contains("Start"));
    assert!(project.ok(&["task", "graph", "--all"]).contains("● "));
    assert!(project.ok(&["task", "graph", "--limit", "2"]).contains("more tasks exist"));
    assert_eq!(project.json(&["task", "graph", "--limit", "2"])["truncated"], true);
}
