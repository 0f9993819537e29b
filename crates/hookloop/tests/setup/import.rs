//! Configurations of other tools: each in its own form, with everything accounted for.

use serde_json::{Value, json};

use crate::cli::{Project, fields};

impl Project {
    /// The project's file, if there is one.
    pub(crate) fn config(&self) -> String {
        std::fs::read_to_string(self.root().join("hookloop.yaml")).unwrap_or_default()
    }
}

/// Imports a file; answers the report.
fn import(project: &Project, tool: &str, name: &str, text: &str) -> Value {
    project.files(&[(name, text)]);
    project.json(&["import", tool, name])
}

/// What became of what, by its beginning.
fn fate(report: &Value, what: &str) -> (String, String) {
    let rows = report["report"].as_array().unwrap();
    let row = rows.iter().find(|row| row["what"].as_str().unwrap().starts_with(what));
    let row = row.unwrap_or_else(|| panic!("{what} is not in {report:#}"));
    (row["fate"].as_str().unwrap().to_owned(), row["why"].as_str().unwrap().to_owned())
}

fn is_lost(report: &Value, what: &str) -> bool {
    fate(report, what).0 == "no_equivalent"
}

#[test]
fn iteratr_keeps_its_points_and_its_times() {
    let project = Project::bare();
    let report = import(
        &project,
        "iteratr",
        ".iteratr.hooks.yml",
        r#"
version: 1
hooks:
  session_start:
    - command: "cargo fetch"
      timeout: 45
      pipe_output: true
  post_iteration:
    - command: 'curl -d "{\"n\": \"{{iteration}}\"}" $TEAM_HOOK'
      timeout: 5
  on_task_complete:
    - command: "./check.sh {{task_id}}"
  session_end:
    - command: "git push"
      pipe_output: true
      retries: 3
"#,
    );
    assert_eq!(fate(&report, "session_start").0, "kept");
    let (changed, why) = fate(&report, "post_iteration");
    assert!(changed == "changed" && why.contains("TEAM_HOOK"), "{report:#}");
    assert!(fate(&report, "on_task_complete").1.contains("task_completed"), "{report:#}");
    assert!(is_lost(&report, "hooks.session_end.retries"), "{report:#}");
    let config = project.config();
    for part in ["timeout: 45s", "pipe_output: true", "env: [TEAM_HOOK]", "timeout: 30s"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    let explained = project.json(&["hooks", "explain", "task_completed"]);
    assert!(explained.to_string().contains("check.sh"), "{explained}");

    // Its other file, into a project that has one now.
    let report = import(&project, "iteratr", "iteratr.yml", "model: a/b\niterations: 12\nodd: 1\n");
    assert_eq!(report["written"], Value::Null);
    assert!(report["config"].as_str().unwrap().contains("iterations: 12"), "{report:#}");
    assert!(is_lost(&report, "model") && is_lost(&report, "odd"), "{report:#}");
}

#[test]
fn codemie_is_read_by_profile_and_in_milliseconds() {
    let hook = |command: &str| json!([{"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 5000}]}]);
    let file = json!({
        "version": 2,
        "activeProfile": "work",
        "profiles": {
            "work": {"provider": "p", "apiKey": "sk-very-secret", "hooks": {
                "Stop": hook("./run-tests.sh"), "PreToolUse": hook("./guard.sh"),
            }, "maxHookRetries": 3},
            "other": {"hooks": {"Stop": hook("./never.sh")}},
        },
        "novel": true,
    });
    let project = Project::bare();
    let report = import(&project, "codemie", ".codemie/codemie-cli.config.json", &file.to_string());
    let config = project.config();
    for part in ["./run-tests.sh", "timeout: 5000ms", "on_failure: open", "hook_retries: 3"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert!(!config.contains("never"), "{config}");
    for what in ["PreToolUse", "profiles.other.hooks", "profiles.work.apiKey", "novel"] {
        assert!(is_lost(&report, what), "{what}: {report:#}");
    }
    assert!(!report.to_string().contains("very-secret"), "{report:#}");
    assert!(!config.contains("very-secret"), "{config}");
}

#[test]
fn claude_is_what_agent_hooks_was() {
    let settings = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./t.sh"}]}]}, "permissions": {}});
    let configs: Vec<String> = ["claude", "agent-hooks"]
        .iter()
        .map(|tool| {
            let project = Project::bare();
            let report = import(&project, tool, ".claude/settings.json", &settings.to_string());
            assert!(is_lost(&report, "permissions"), "{report:#}");
            assert_eq!(report["source"], "claude");
            project.config()
        })
        .collect();
    assert_eq!(configs[0], configs[1]);
    // The file is found where the agent has it.
    let project = Project::bare();
    project.files(&[(".claude/settings.json", &settings.to_string())]);
    assert!(project.ok(&["import", "claude"]).starts_with("Wrote "));
}

#[test]
fn lefthook_has_gates_of_what_a_commit_needs() {
    let project = Project::bare();
    let report = import(
        &project,
        "lefthook",
        "lefthook.yml",
        r#"
min_version: 1.10.0
shared: &shared
  timeout: 15s
pre-commit:
  parallel: true
  commands:
    unit:
      run: npm test
      tags: [backend]
      env: {CI: "1"}
      root: web/
    style:
      run: yarn stylelint {staged_files}
      glob: "*.css"
      stage_fixed: true
  scripts:
    "verify.sh":
      runner: bash
pre-push:
  jobs:
    - name: build
      <<: *shared
      run: make build
    - name: unit
      run: make unit
    - group:
        parallel: true
        jobs:
          - run: make check
            novel: 1
commit-msg:
  commands:
    lint: {run: 'commitlint {1}'}
remotes:
  - git_url: https://example.invalid/x
"#,
    );
    let config = project.config();
    for part in [
        "command: npm test",
        "cwd: web",
        "CI: \"1\"",
        "lefthook run pre-commit --all-files --command style",
        "bash .lefthook/pre-commit/verify.sh",
        "command: make build",
        "timeout: 15s",
        "command: make check",
        "parallel: true",
        // Two hooks of git may have commands of one name.
        "name: unit-2",
    ] {
        assert!(config.contains(part), "{part}: {config}\n{report:#}");
    }
    for what in [
        "commit-msg",
        "remotes",
        "pre-commit.commands.style.glob",
        "pre-push.jobs.novel",
        "pre-commit.commands.unit.tags",
        "min_version",
    ] {
        assert!(is_lost(&report, what), "{what}: {report:#}");
    }
    assert_eq!(project.json(&["hooks", "show", "unit"])["events"], json!(["stop"]));
}

#[test]
fn octopoid_has_hooks_types_and_flows() {
    let project = Project::bare();
    project.files(&[
        (
            ".octopoid/config.yaml",
            "
server: {enabled: true, url: 'https://example.invalid'}
scope: mine
repo: {path: ., base_branch: trunk}
agents: {max_concurrent: 3}
hooks:
  before_submit: [rebase_on_base, run_tests, create_pr]
task_types:
  product:
    hooks:
      before_submit: [rebase_on_main, unheard_of, create_pr]
      before_merge:
        - gatekeeper: [qa, design]
    agents: {implementer: [claude]}
    novel: 1
",
        ),
        (
            ".octopoid/flows/default.yaml",
            "
name: default
description: usual
transitions:
  \"incoming -> claimed\": {agent: implementer}
  \"provisional -> done\":
    checks: [check_ci]
    conditions:
      - {name: review, type: agent, agent: gatekeeper, on_fail: incoming}
    runs: [merge_pr]
",
        ),
    ]);
    let report = project.json(&["import", "octopoid"]);
    let config = project.config();
    for part in [
        "base: trunk",
        "wip: 3",
        "use: rebase_on_main",
        "use: run_tests",
        "gatekeeper: [qa, design]",
        "implementer: [claude]",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    for what in [
        "server",
        "scope",
        "task_types.product.hooks.before_submit: unheard_of",
        "task_types.product.novel",
        "default: provisional -> done: merge_pr",
        "default: incoming -> claimed",
    ] {
        assert!(is_lost(&report, what), "{what}: {report:#}");
    }
    project.ok(&["hooks", "list"]);
}

/// As long as somebody could think of, which a file of theirs has.
#[test]
fn a_runtime_of_years_is_one_of_a_day() {
    let project = Project::bare();
    let report =
        import(&project, "ralph", "ralph.yml", "event_loop: {max_runtime_seconds: 999999999}\n");
    assert!(project.config().contains("duration: 86400s"), "{}", project.config());
    assert_eq!(fate(&report, "event_loop.max_runtime_seconds").0, "changed");
}

#[test]
fn ralph_has_gates_limits_and_an_agent() {
    let project = Project::bare();
    let report = import(
        &project,
        "ralph",
        "ralph.yml",
        "
event_loop: {max_iterations: 40, max_runtime_seconds: 3600, max_cost_usd: 7.5, completion_promise: LOOP_COMPLETE}
cli: {backend: claude}
core: {guardrails: ['be good']}
backpressure:
  gates:
    - {name: tests, command: 'cargo test', on_fail: 'Mend them.'}
hats: {builder: {triggers: [x]}}
hooks:
  enabled: true
  defaults: {timeout_seconds: 20}
  events:
    pre.loop.start:
      - {name: guard, command: ['./guard.sh', '--all'], on_error: block}
    pre.plan.created:
      - {name: plan, command: ['./plan.sh']}
novel: 1
",
    );
    let config = project.config();
    for part in [
        "iterations: 40",
        "duration: 3600s",
        "cost: 7.5",
        "agent: claude",
        "command: cargo test",
        "timeout: 20s",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    for what in
        ["hats.builder", "hooks.pre.plan.created", "novel", "event_loop.completion_promise", "core"]
    {
        assert!(is_lost(&report, what), "{what}: {report:#}");
    }
    assert_eq!(project.json(&["hooks", "show", "guard"])["events"], json!(["session_start"]));
}

#[test]
fn a_hook_that_could_not_run_safely_is_a_row_and_not_the_end() {
    let project = Project::bare();
    let report = import(
        &project,
        "iteratr",
        ".iteratr.hooks.yml",
        "hooks:\n  on_error:\n    - command: 'echo `{{error}}`'\n    - command: 'echo fine'\n",
    );
    assert!(is_lost(&report, "on_error: echo `{{error}}`"), "{report:#}");
    assert_eq!(fate(&report, "on_error: echo fine").0, "kept");
    assert!(project.config().contains("echo fine"));
}

#[test]
fn strict_fails_and_writes_nothing() {
    let project = Project::bare();
    project.files(&[(".iteratr.hooks.yml", "hooks:\n  on_error: [{command: echo a, novel: 1}]\n")]);
    let error = project.fails(1, &["import", "iteratr", "--strict"]);
    assert!(error.contains("hooks.on_error.novel"), "{error}");
    assert_eq!(project.config(), "");
    project.files(&[(".iteratr.hooks.yml", "hooks:\n  on_error: [{command: echo a}]\n")]);
    project.ok(&["import", "iteratr", "--strict"]);
}

#[test]
fn what_is_said_has_fixed_fields_and_a_table() {
    let project = Project::bare();
    let report =
        import(&project, "ralph", "ralph.yml", "event_loop: {max_iterations: 4}\nnovel: 1\n");
    let expected = ["config", "files", "left_off", "report", "source", "tasks", "written"];
    assert_eq!(fields(&report), expected.into());
    assert_eq!(fields(&report["report"][0]), ["count", "fate", "what", "why"].into());
    let project = Project::bare();
    project.files(&[("ralph.yml", "event_loop: {max_iterations: 4}\nnovel: 1\n")]);
    let said = project.ok(&["import", "ralph"]);
    assert!(said.contains("kept\tevent_loop.max_iterations\t"), "{said}");
    assert!(said.contains("no equivalent\tnovel\tnot known here"), "{said}");
    // All that is printed where there is a file can be put into one.
    let printed = project.ok(&["import", "ralph"]);
    let other = Project::bare();
    other.files(&[("hookloop.yaml", &printed)]);
    other.ok(&["status"]);
    assert!(printed.contains("# no equivalent: novel"), "{printed}");
}

#[test]
fn hostile_files_are_refused_with_a_sentence() {
    let project = Project::bare();
    let check = |name: &str, tool: &str, part: &str| {
        let error = project.fails(2, &["import", tool, name]);
        assert!(error.contains(part), "{name}: {error}");
        assert_eq!(project.config(), "", "{name}");
    };
    let deep = "[".repeat(10_000);
    let anchors: String = (0..2_000).map(|n| format!("a{n}: &a{n} x\n")).collect();
    project.files(&[
        ("deep.json", &deep),
        ("deep.yml", &format!("hooks: {deep}")),
        ("anchors.hooks.yml", &anchors),
        ("list.json", "[]"),
        ("huge.yml", &"#".repeat(5 * 1024 * 1024)),
    ]);
    std::fs::write(project.root().join("bytes.json"), b"{\"a\": \"\n\xff\"}").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", project.root().join("link.json")).unwrap();
    std::fs::create_dir(project.root().join("directory.json")).unwrap();
    let made = project.command("mkfifo").arg("pipe.json").status().unwrap();
    assert!(made.success());
    check("deep.json", "claude", "recursion limit");
    check("deep.yml", "lefthook", "deep.yml: ");
    check("anchors.hooks.yml", "iteratr", "anchors.hooks.yml: ");
    check("list.json", "claude", "not an object");
    check("huge.yml", "lefthook", "longer than");
    check("bytes.json", "claude", "line 2 is not UTF-8");
    check("link.json", "claude", "leads out");
    check("directory.json", "claude", "not a file");
    check("pipe.json", "claude", "not a file");
    check("nowhere.json", "claude", "No such file");
    let error = project.fails(2, &["import", "beads"]);
    assert!(
        error.contains(".beads/issues.jsonl") && error.contains("hookloop import beads FILE"),
        "{error}"
    );
}
