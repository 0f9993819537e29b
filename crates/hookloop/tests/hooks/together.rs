//! The order of hooks: sequential, parallel, and again after a failure.

use serde_json::Value;

use crate::cli::Project;

/// Returns a project with these hooks on completed tasks, and a script that waits for other hooks.
fn with_hooks(hooks: &[&str]) -> Project {
    let list: String =
        hooks.iter().map(|hook| format!("    - {{{hook}, timeout: 30s}}\n")).collect();
    let project = Project::with_config(&format!("hooks:\n  on_task_complete:\n{list}"));
    // `meet.sh NAME COUNT` waits until COUNT hooks have started.
    project.script(
        "meet.sh",
        "mkdir -p here && : > here/$1\nuntil [ $(ls here | wc -l) -ge $2 ]; do sleep 0.01; done\necho $1 >> order",
    );
    project.trust();
    project
}

fn runs(project: &Project) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let logged = project.logged("hook_ran");
    logged.iter().map(|e| (text(&e["data"]["hook_name"]), text(&e["data"]["status"]))).collect()
}

fn all_passed(names: &[&str]) -> Vec<(String, String)> {
    names.iter().map(|name| ((*name).to_owned(), "passed".to_owned())).collect()
}

#[test]
fn parallel_hooks_run_concurrently_and_are_recorded_in_their_order() {
    // The first hook in the report is the last to end.
    let project = with_hooks(&[
        "name: a, command: './meet.sh a 3; until [ -e end ]; do sleep 0.01; done', parallel: true",
        "name: b, command: ./meet.sh b 3, parallel: true",
        "name: c, command: './meet.sh c 3; : > end', parallel: true",
    ]);
    project.complete("x");
    assert_eq!(runs(&project), all_passed(&["a", "b", "c"]));
}

#[test]
fn sequential_hooks_wait_for_parallel_hooks_and_vice_versa() {
    let project = with_hooks(&[
        "name: first, command: 'sleep 0.1; : > first'",
        "name: a, command: 'test -e first && ./meet.sh a 2 && sleep 0.1 && : > a', parallel: true",
        "name: b, command: 'test -e first && ./meet.sh b 2', parallel: true",
        "name: last, command: test -e a",
    ]);
    project.complete("x");
    assert_eq!(runs(&project), all_passed(&["first", "a", "b", "last"]));
}

#[test]
fn a_parallel_hook_waits_for_what_it_needs() {
    let project = with_hooks(&[
        "name: a, command: 'sleep 0.1; : > a', parallel: true",
        "name: b, command: test -e a, parallel: true, needs: [a]",
        "name: c, command: exit 1, parallel: true",
        "name: d, command: 'true', parallel: true, needs: [c]",
    ]);
    project.complete("x");
    let expected = [("a", "passed"), ("b", "passed"), ("c", "failed")];
    let expected = expected.map(|(name, status)| (name.to_owned(), status.to_owned()));
    assert_eq!(runs(&project), expected, "d does not run");
}

#[test]
fn at_most_eight_parallel_hooks_run_at_once() {
    // A hook fails if more than eight run at the same time.
    let count = "mkdir -p at && mkdir at/$HOOKLOOP_HOOK && test $(ls at | wc -l) -le 8 && sleep 0.2 && rmdir at/$HOOKLOOP_HOOK";
    let names: Vec<String> = (0..20).map(|number| format!("h{number}")).collect();
    let hook = |name: &String| format!("name: {name}, command: '{count}', parallel: true");
    let hooks: Vec<String> = names.iter().map(hook).collect();
    let project = with_hooks(&hooks.iter().map(String::as_str).collect::<Vec<_>>());
    project.complete("x");
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(runs(&project), all_passed(&names));
}

/// A hook's retries end before the next hook starts, although the keeper already has the next one.
#[test]
fn a_hook_is_tried_again_before_the_next_starts() {
    let project = with_hooks(&[
        "name: flaky, command: 'echo try >> order; test $(wc -l < order) -ge 3', retry: {attempts: 3, backoff: 10ms}",
        "name: next, command: echo next >> order",
        "name: other, command: echo other >> order",
    ]);
    project.complete("x");
    let order = std::fs::read_to_string(project.root().join("order")).unwrap();
    assert_eq!(order, "try\ntry\ntry\nnext\nother\n");
    assert_eq!(project.logged("hook_ran")[0]["data"]["attempts"], 3);
}
