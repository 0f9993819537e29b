//! The configuration: valid files, refused files, and the hooks that would run.

use serde_json::{Value, json};

use crate::cli::Project;

const USAGE: i32 = 2;

/// The example from the specification of session hooks.
const SESSIONS: &str = r#"
hooks:
  session_start:
    - command: "git pull --rebase"
      timeout: 30
    - command: "go build ./..."
      timeout: 60
      pipe_output: true  # agent sees build errors
  pre_iteration:
    - command: "golangci-lint run ./..."
      timeout: 30
      pipe_output: true
  post_iteration:
    - command: "go test ./... -short"
      timeout: 120
      pipe_output: true  # agent sees test failures next iteration
    - command: "curl -X POST $SLACK_WEBHOOK -d '{\"text\": \"Iteration {{iteration}} done\"}'"
      timeout: 5
  session_end:
    - command: "git push origin HEAD"
      timeout: 30
    - command: "./scripts/notify-complete.sh {{session}}"
      timeout: 10
  on_task_complete:
    - command: "./scripts/validate-task.sh {{task_id}}"
      timeout: 30
      pipe_output: true
  on_error:
    - command: "git diff HEAD"
      timeout: 10
      pipe_output: true
"#;

/// The example from the specification of task types.
const TYPES: &str = "
hooks:
  before_submit:
    - rebase_on_main
    - create_pr
task_types:
  product:
    hooks:
      before_submit:
        - rebase_on_main
        - run_tests
        - create_pr
      before_merge:
        - gatekeeper: [qa, architecture]
    agents:
      implementer: [implementer-1, implementer-2]
      gatekeeper: [gatekeeper-qa]
  infrastructure:
    hooks:
      before_submit:
        - rebase_on_main
        - create_pr
    agents:
      implementer: [implementer-1]
  hotfix:
    hooks:
      before_submit:
        - run_tests
        - create_pr
    agents:
      implementer: [implementer-1, implementer-2]
";

fn would_run(project: &Project, point: &str, task: Option<&str>) -> Vec<String> {
    let mut args = vec!["hooks", "explain", point];
    args.extend(task.iter().flat_map(|task| ["--task", task]));
    let explained = project.json(&args);
    let names = explained.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn the_session_hooks_of_the_specification_load_in_order() {
    let project = Project::with_config(SESSIONS);
    assert_eq!(would_run(&project, "session_start", None), ["git", "go"]);
    assert_eq!(would_run(&project, "post_iteration", None), ["go-2", "curl"]);
    assert_eq!(would_run(&project, "session_end", None), ["git-2", "notify-complete"]);
    assert_eq!(would_run(&project, "on_error", None), ["git-3"]);
    let completed = would_run(&project, "on_task_complete", None);
    assert_eq!(completed.last().unwrap(), "validate-task");
}

#[test]
fn hooks_of_task_types_resolve_as_specified() {
    let project = Project::with_config(TYPES);
    let check = |kind: &[&str], point: &str, expected: &[&str]| {
        let id = project.add("Goal", kind);
        assert_eq!(would_run(&project, point, Some(&id)), expected, "{kind:?} {point}");
    };
    check(&["--type", "product"], "before_submit", &["rebase_on_main", "run_tests", "create_pr"]);
    check(&["--type", "product"], "before_merge", &["gatekeeper-qa-architecture"]);
    check(&["--type", "infrastructure"], "before_submit", &["rebase_on_main", "create_pr"]);
    check(&["--type", "infrastructure"], "before_merge", &[]);
    check(&["--type", "hotfix"], "before_submit", &["run_tests", "create_pr"]);
    check(&["--type", "unknown"], "before_submit", &["rebase_on_main", "create_pr"]);
    check(&[], "before_submit", &["rebase_on_main", "create_pr"]);
    let bare = Project::new();
    assert_eq!(would_run(&bare, "before_submit", None), ["rebase_on_main", "create_pr"]);
}

#[test]
fn hook_mistakes_are_reported_with_file_and_line() {
    let check = |hook: &str, part: &str| {
        let project = Project::with_config(&format!("hooks:\n  stop:\n    - {hook}\n"));
        let run = project.run(&["hooks", "list"]);
        assert_eq!(run.code, USAGE, "{hook}: {run:?}");
        assert!(run.stderr.contains("hookloop.yaml:4:"), "{hook}: {}", run.stderr);
        assert!(run.stderr.contains(part), "{hook}: {}", run.stderr);
    };
    check("{command: 'true', timeout: 5 minutes}", "not a length of time");
    check("{command: 'true', timeout: 30 x}", "not a length of time");
    check("{command: 'true', timeout: 60000000}", "longer than a day");
    check("{command: 'true', timout: 5}", "timout");
    check("{command: 'true', pipe_output: sometimes}", "on_failure");
    check("{command: 'true', when: 'taks.x'}", "taks");
    check("{command: 'true', when: '1 + 1'}", "true or false");
    check("{command: 'true', env: {PATH: /tmp}}", "PATH");
    check("{command: 'true', env: {LD_PRELOAD: x}}", "LD_PRELOAD");
    check("{command: 'true', cwd: ../..}", "out of the project");
    check("{command: 'true', retry: {attempts: 99}}", "attempts");
    check("{command: 'true', sandbox: {}}", "forbids something");
    check("{command: 'true', sandbox: {write: [../up]}}", "leads out of the project");
    check("{command: 'true', sandbox: {write: [/a/../b]}}", "leads out of the project");
    check("{http: 'http://localhost', sandbox: {network: none}}", "is for commands");
    check("{command: 'true', limits: {memory: 512}}", "512");
    check("{command: 'true', limits: {memory: 512 cats}}", "is not a size");
    check("{command: 'true', limits: {processes: 1}}", "at least 4");
    check("{http: 'http://localhost', limits: {processes: 9}}", "are for commands");
    check("{command: 'echo {{no_such}}'}", "no_such");
    check("{command: 'eval {{session}}'}", "session");
    check("{command: 'true', use: create_pr}", "exactly one");
    check("{http: 'ftp://x'}", "not a URL");
    check("no_such_builtin", "no_such_builtin");
    check("auto-create-review-task", "nothing to do");
    check("{actions: [], name: a}", "follow events");
}

#[test]
fn a_needed_hook_must_exist_and_run_earlier() {
    let refused = |hooks: &str| {
        let project = Project::with_config(&format!("hooks:\n  stop:\n{hooks}"));
        let run = project.run(&["hooks", "list"]);
        assert_eq!(run.code, USAGE, "{run:?}");
        run.stderr
    };
    let missing = refused("    - {name: a, command: 'true', needs: b}\n");
    assert!(missing.contains("no other hook"), "{missing}");
    let late = refused(
        "    - {name: a, command: 'true', needs: b}\n    - {name: b, command: 'true', priority: 200}\n",
    );
    assert!(late.contains("runs after it"), "{late}");
}

/// Checks that the schema file for editors equals the schema that the program prints.
#[test]
fn the_schema_in_the_repository_is_current() {
    let project = Project::bare();
    let printed: Value = serde_json::from_str(&project.ok(&["schema"])).unwrap();
    let kept =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hookloop.schema.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(kept).unwrap()).unwrap();
    assert_eq!(printed, kept, "run: hookloop schema > docs/hookloop.schema.json");
    assert_eq!(printed["title"], "hookloop.yaml");
    assert_eq!(printed["additionalProperties"], json!(false));
}

#[test]
fn doctor_reports_common_hook_mistakes() {
    let project = Project::with_config(
        "hooks:
  stop:
    - {name: says-1, command: './says-1.sh', timeout: 60}
    - {name: absent, command: 'no-such-program --x', timeout: 60}
    - {name: slow, command: 'true', timeout: 30000}
    - {name: endless, command: 'true'}
    - {name: never, command: 'true', timeout: 60, when: \"point == 'session_end'\"}
    - {name: poor, command: 'curl $WEBHOOK', timeout: 60}
    - {name: chatty, command: ./chatty.sh, timeout: 60}
    - {name: careful, command: ./careful.sh, timeout: 60}
",
    );
    project.script("says-1.sh", "exit 1");
    project.script("chatty.sh", "echo checking\necho '{\"decision\": \"block\"}'");
    project.script("careful.sh", "echo checking >&2\necho '{\"decision\": \"block\"}'");
    let check = |name: &str, part: &str| {
        let run = project.run(&["doctor", "--json"]);
        let findings: Value = serde_json::from_str(&run.stdout).unwrap();
        let found = findings.as_array().unwrap().iter().any(|finding| {
            finding["about"] == name && finding["message"].as_str().unwrap().contains(part)
        });
        assert!(found, "{name}: {findings:#}");
    };
    check("says-1", "not trusted");
    project.trust();
    check("says-1", "exit code 1");
    check("absent", "no program `no-such-program`");
    check("slow", "milliseconds");
    check("endless", "without a timeout");
    check("never", "can't be true");
    check("poor", "$WEBHOOK");
    check("chatty", "beside its JSON");
    check("careful", "no problems");
}
