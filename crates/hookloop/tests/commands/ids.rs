//! Ids, and prefixes of ids.

use crate::cli::Project;

#[test]
fn the_start_of_an_id_is_enough_where_it_is_unique() {
    let project = Project::new();
    for id in ["alpha-1", "alpha-2", "beta"] {
        project.add("Goal", &["--id", id]);
    }
    assert_eq!(project.task("b")["id"], "beta");
    project.ok(&["task", "dep", "add", "be", "--on", "alpha-2"]);
    assert_eq!(project.task("bet")["depends_on"][0]["id"], "alpha-2");
    let error = project.fails(1, &["task", "start", "alpha"]);
    assert!(error.contains("alpha-1") && error.contains("alpha-2"), "{error}");
    assert!(error.contains("hint: run `"), "{error}");
    assert_eq!(project.state_of("alpha-1"), "ready");
}

#[test]
fn a_whole_id_wins_over_the_start_of_others() {
    let project = Project::new();
    for id in ["a", "ab", "abc"] {
        project.add("Goal", &["--id", id]);
    }
    assert_eq!(project.task("ab")["id"], "ab");
    assert_eq!(project.task("a")["id"], "a");
}

#[test]
fn the_candidates_for_an_ambiguous_prefix_are_truncated() {
    let project = Project::new();
    for n in 0..9 {
        project.add("Goal", &["--id", &format!("task{n}")]);
    }
    let error = project.fails(1, &["task", "show", "task"]);
    assert!(error.contains("task0") && error.contains('…'), "{error}");
    assert!(!error.contains("task8"), "{error}");
}

#[test]
fn sql_wildcards_in_a_task_id_prefix_match_literally() {
    let project = Project::new();
    project.add("Goal", &["--id", "a_b"]);
    project.add("Goal", &["--id", "axb"]);
    assert_eq!(project.task("a_")["id"], "a_b");
    project.fails(1, &["task", "show", "A_"]);
}

#[test]
fn an_unknown_task_id_is_refused_with_a_hint() {
    let project = Project::new();
    let commands: [&[&str]; 8] = [
        &["task", "show", "nope"],
        &["task", "start", "nope"],
        &["task", "complete", "nope"],
        &["task", "block", "nope", "--reason", "r"],
        &["task", "unblock", "nope"],
        &["task", "delete", "nope"],
        &["task", "add", "Goal", "--depends-on", "nope"],
        &["task", "add", "Goal", "--parent", "nope"],
    ];
    for args in commands {
        let error = project.fails(1, args);
        assert!(error.contains("there is no task `nope`"), "{args:?}: {error}");
        assert!(error.contains("run `hookloop task list"), "{args:?}: {error}");
    }
    assert_eq!(project.goals(), [] as [&str; 0]);
}

#[test]
fn ids_can_be_chosen_and_bad_ones_are_refused() {
    let project = Project::new();
    let longest = "x".repeat(64);
    for good in ["7", "task_42", "A-b_C", &longest] {
        assert_eq!(project.add("Goal", &["--id", good]), good);
    }
    let too_long = "x".repeat(65);
    for bad in ["", "_graph", "a.b", "a b", "a/b", "../x", "ä", "a\nb", "$(x)", &too_long] {
        let error = project.fails(2, &["task", "add", "Goal", &format!("--id={bad}")]);
        assert!(error.contains("is not a task id"), "{bad:?}: {error}");
    }
    assert_eq!(project.goals().len(), 4);
}

#[test]
fn ids_are_not_used_twice() {
    let project = Project::new();
    project.add("Goal", &["--id", "x"]);
    let error = project.fails(1, &["task", "add", "Other", "--id", "x"]);
    assert!(error.contains("task `x` exists already"), "{error}");
    project.ok(&["task", "delete", "x"]);
    let error = project.fails(1, &["task", "add", "Other", "--id", "x"]);
    assert!(error.contains("ids are not used twice"), "{error}");
}
