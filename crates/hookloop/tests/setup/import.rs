//! Configurations of other tools: each in its own format, with a result for every entry.

use serde_json::{Value, json};

use crate::cli::{Project, fields};

impl Project {
    /// Returns the project's file, or an empty text.
    pub(crate) fn config(&self) -> String {
        std::fs::read_to_string(self.root().join("hookloop.yaml")).unwrap_or_default()
    }
}

/// Imports a file; returns the report.
fn import(project: &Project, tool: &str, name: &str, text: &str) -> Value {
    project.files(&[(name, text)]);
    project.json(&["import", tool, name])
}

/// Returns the result and the reason of the first entry that starts with `what`.
fn fate(report: &Value, what: &str) -> (String, String) {
    let rows = report["report"].as_array().unwrap();
    let row = rows.iter().find(|row| row["what"].as_str().unwrap().starts_with(what));
    let row = row.unwrap_or_else(|| panic!("{what} is not in {report:#}"));
    (row["result"].as_str().unwrap().to_owned(), row["why"].as_str().unwrap().to_owned())
}

fn is_lost(report: &Value, what: &str) -> bool {
    fate(report, what).0 == "no_equivalent"
}

#[test]
fn iteratr_hook_points_and_timeouts_are_imported() {
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

    // The tool's other file, imported into a project that already has a configuration.
    let report = import(&project, "iteratr", "iteratr.yml", "model: a/b\niterations: 12\nodd: 1\n");
    assert_eq!(report["written"], Value::Null);
    assert!(report["config"].as_str().unwrap().contains("max_iterations: 12"), "{report:#}");
    assert!(is_lost(&report, "model") && is_lost(&report, "odd"), "{report:#}");
}

#[test]
fn codemie_hooks_of_the_active_profile_are_imported_in_milliseconds() {
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
    for part in ["./run-tests.sh", "timeout: 5000ms", "on_failure: open", "gate_retries: 3"] {
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
fn agent_hooks_is_an_alias_of_the_claude_importer() {
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
    // The file is found at its usual path.
    let project = Project::bare();
    project.files(&[(".claude/settings.json", &settings.to_string())]);
    assert!(project.ok(&["import", "claude"]).starts_with("Wrote "));
}

#[test]
fn lefthook_commands_of_commit_and_push_are_imported_as_gates() {
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
        // Two git hooks may have commands of the same name.
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

/// A gate that would run more or less often than in lefthook is reported as a difference, and
/// `--strict` refuses it.
#[test]
fn lefthook_conditions_are_translated_or_reported() {
    let project = Project::bare();
    let file = r#"
pre-commit:
  skip: [{ref: main}]
  commands:
    plain: {run: make plain}
    off: {run: make off, skip: true}
    merging: {run: make merging, skip: [merge, rebase]}
    switched: {run: make switched, skip: [{run: 'test -n "$SECRET_SWITCH"'}]}
    branch: {run: make branch, only: [{ref: 'dev/*'}]}
    rebasing: {run: make rebasing, only: rebase}
    files: {run: 'eslint {staged_files}', skip: merge}
pre-push:
  skip: true
  jobs:
    - {name: pushed, run: make pushed}
pre-merge-commit:
  only: false
  jobs:
    - name: grouped
      skip: false
      group:
        jobs: [{name: inner, run: make inner}]
    - name: rebased
      only: [rebase, merge-commit]
      group:
        jobs: [{name: never, run: make never}]
"#;
    let report = import(&project, "lefthook", "lefthook.yml", file);
    let config = project.config();
    let enabled = |name: &str| project.json(&["hooks", "show", name])["enabled"].clone();
    for name in ["plain", "merging", "switched", "branch", "files"] {
        assert_eq!(enabled(name), json!(true), "{name}: {config}");
    }
    for (name, row) in [
        ("off", "pre-commit.off"),
        ("pushed", "pre-push.pushed"),
        ("inner", "pre-merge-commit.inner"),
    ] {
        assert_eq!(enabled(name), json!(false), "{name}: {config}");
        let (fate, why) = fate(&report, row);
        assert!(fate == "changed" && why.contains("`enabled: false`"), "{row}: {report:#}");
    }
    for absent in ["make rebasing", "make never"] {
        assert!(!config.contains(absent), "{config}");
    }
    for (what, why) in [
        ("pre-commit.skip", "every branch"),
        ("pre-commit.commands.merging.skip", "during a merge"),
        ("pre-commit.commands.switched.skip", "into its command"),
        ("pre-commit.commands.branch.only", "every branch"),
        ("pre-commit.rebasing: make rebasing", "during a rebase only"),
        ("pre-merge-commit.jobs: group rebased", "during a rebase or merge-commit only"),
    ] {
        assert!(is_lost(&report, what), "{what}: {report:#}");
        assert!(fate(&report, what).1.contains(why), "{what}: {report:#}");
    }
    // lefthook runs this command, and applies the conditions of both the hook and the command.
    let (files, why) = fate(&report, "pre-commit.files");
    assert!(files == "changed" && why.contains("lefthook applies `skip`: "), "{report:#}");
    assert!(!report.to_string().contains("SECRET_SWITCH"), "{report:#}");

    for condition in ["skip: [merge]", "skip: [{ref: main}]", "skip: {run: 'true'}", "only: merge"]
    {
        let project = Project::bare();
        let file = format!(
            "pre-commit:\n  commands:\n    a: {{run: make a}}\n    b:\n      run: make b\n      {condition}\n"
        );
        project.files(&[("lefthook.yml", &file)]);
        let error = project.fails(1, &["import", "lefthook", "--strict"]);
        assert!(error.contains("pre-commit."), "{condition}: {error}");
        assert_eq!(project.config(), "", "{condition}");
    }
    let project = Project::bare();
    let file = "pre-commit:\n  commands:\n    a: {run: make a, skip: true}\n    b: {run: make b, skip: false, only: true}\n";
    project.files(&[("lefthook.yml", file)]);
    project.ok(&["import", "lefthook", "--strict"]);
}

#[test]
fn lefthook_names_and_templates_that_do_not_fit_are_reported() {
    let project = Project::bare();
    let report = import(
        &project,
        "lefthook",
        "lefthook.yml",
        "templates: {wrap: docker run}\npre-push:\npre-commit:\n  jobs:\n    - {name: 'lint:css', run: make css, env: {A: 1, B: , C: true}}\n\
         \x20   - {name: wrapped, run: '{wrap} make'}\n    - {name: message, run: 'check {1}'}\n",
    );
    let config = project.config();
    for part in [
        "name: lint-css",
        "A: \"1\"",
        "B: \"\"",
        "C: \"true\"",
        "lefthook run pre-commit --all-files --job wrapped",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert!(fate(&report, "pre-commit.lint:css").1.contains("called `lint-css`"), "{report:#}");
    assert!(is_lost(&report, "pre-commit.message: check {1}"), "{report:#}");
    let rows = report["report"].as_array().unwrap();
    assert!(!rows.iter().any(|row| row["what"] == "pre-push"), "{report:#}");
}

#[test]
fn disabled_claude_hooks_are_imported_as_disabled() {
    let hook = |command: &str| json!({"type": "command", "command": command});
    let settings = json!({"disableAllHooks": true, "hooks": {
        "Stop": [{"hooks": [hook("make"), hook(" ")]}],
        "SessionStart": [{"matcher": "startup|resume", "hooks": [hook("date")]}],
    }});
    let project = Project::bare();
    let report = import(&project, "claude", "settings.json", &settings.to_string());
    assert_eq!(project.config().matches("enabled: false").count(), 2, "{}", project.config());
    assert!(!project.config().contains("stop_when"), "{}", project.config());
    assert!(fate(&report, "Stop: a hook of type `command`").1.contains("no command"), "{report:#}");
    let (fate, why) = fate(&report, "SessionStart: matcher startup|resume");
    assert!(fate == "changed" && why.contains("no `resume`"), "{report:#}");
}

/// A limit that hookloop does not support is reported, and the rest is imported.
#[test]
fn limits_that_do_not_fit_are_reported_by_name() {
    let project = Project::bare();
    let report = import(
        &project,
        "ralph",
        "ralph.yml",
        "max_iterations: 3\nevent_loop: {max_iterations: 5, max_runtime_seconds: 0, max_consecutive_failures: 5000000000}\n\
         backpressure: {gates: [{name: unit tests, command: make}, {name: list, command: [make, lint]}]}\n",
    );
    let config = project.config();
    assert!(
        config.contains("max_iterations: 5") && config.contains("name: unit-tests"),
        "{config}"
    );
    assert!(!config.contains("duration") && !config.contains("errors"), "{config}");
    for what in [
        "event_loop.max_runtime_seconds",
        "event_loop.max_consecutive_failures",
        "max_iterations",
        "backpressure.gates: list",
    ] {
        assert!(is_lost(&report, what), "{what}: {report:#}");
    }
    assert!(fate(&report, "max_iterations").1.contains("is 5 already"), "{report:#}");
}

/// Invalid tasks are reported; the others are added.
#[test]
fn invalid_tasks_are_reported_and_the_others_are_added() {
    let check = |tool: &str, name: &str, text: &str, goals: &[&str], rows: &[&str]| {
        let project = Project::with_config("");
        let report = import(&project, tool, name, text);
        let mut found = project.goals();
        found.sort_unstable();
        assert_eq!(found, goals, "{tool}: {report:#}");
        for row in rows {
            assert_ne!(fate(&report, row).0, "kept", "{tool}: {row}: {report:#}");
        }
    };
    check(
        "ralph",
        "fix_plan.md",
        "# Plan\n- [ ] a\n1. [x] b\n+ [ ] c\n- [~] d\n```\n- [ ] code\n```\n- [link](x)\n",
        &["a", "b", "c", "d"],
        &["the mark [~]"],
    );
    check(
        "ralph",
        "prd.json",
        r#"{"userStories": [{"id": "A", "title": "a"}, {"id": "A", "title": "again"}, {"title": "b"}, {"title": "c", "passes": "yes"}]}"#,
        &["a", "b", "c"],
        &["task A", "tasks without an id", "userStories.passes"],
    );
    check(
        "beads",
        "issues.jsonl",
        "{\"id\": \"a\", \"title\": \"a\", \"priority\": 70, \"defer_until\": \"soon\"}\n\
         {\"id\": \"b\", \"title\": \"b\", \"dependencies\": [\"a\", \"b\", {\"type\": \"blocks\"}]}\n",
        &["a", "b"],
        &["priority 70", "the start", "a dependency of b on itself", "a dependency"],
    );
    check(
        "vibe-kanban",
        "issues.csv",
        "Issue ID,Title,Priority,Start Date\n,a,Whenever,\n,b,High,2020-01-01\n",
        &["a", "b"],
        &["priority Whenever", "tasks without an id"],
    );
    check(
        "octopoid",
        "TASK-1.md",
        "# [TASK-1] a\nPRIORITY: soon\nBLOCKED_BY: \n",
        &["a"],
        &["priority soon"],
    );
    check(
        "task-copilot",
        "tasks.json",
        r#"{"tasks": [{"id": "a", "title": "a", "status": "odd"}]}"#,
        &["a"],
        &["status odd"],
    );
}

/// Values of a wrong type are reported, too.
#[test]
fn values_of_the_wrong_type_are_named() {
    for (tool, name, text, what) in [
        (
            "lefthook",
            "lefthook.yml",
            "pre-commit:\n  parallel: sometimes\n  commands:\n    a: {run: make a, priority: -1, env: [A]}\n",
            &["pre-commit.parallel", "pre-commit.commands.a.priority", "pre-commit.commands.a.env"]
                [..],
        ),
        ("iteratr", "iteratr.yml", "iterations: many\n", &["iterations"]),
        (
            "iteratr",
            ".iteratr.hooks.yml",
            "hooks:\n  on_error: [{command: echo a, timeout: 1.5, pipe_output: 'yes'}]\n",
            &["hooks.on_error.timeout", "hooks.on_error.pipe_output"],
        ),
        (
            "ralph",
            "ralph.yml",
            "event_loop: {max_iterations: 4, max_cost_usd: -3}\nhooks: {enabled: 'off', events: {}}\n",
            &["event_loop.max_cost_usd", "hooks.enabled"],
        ),
        (
            "octopoid",
            "octopoid.yaml",
            "hooks: {before_submit: [run_tests]}\nagents: {max_concurrent: '3'}\n",
            &["agents.max_concurrent"],
        ),
        (
            "claude",
            "settings.json",
            r#"{"maxHookRetries": "5", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}"#,
            &["maxHookRetries"],
        ),
    ] {
        let project = Project::bare();
        project.files(&[(name, text)]);
        let error = project.run(&["import", tool, name, "--strict", "--json"]);
        assert_ne!(error.code, 0, "{tool}: {error:?}");
        let said = format!("{error:?}");
        for what in what {
            assert!(said.contains(what), "{tool}: {what}: {said}");
        }
    }
}

#[test]
fn octopoid_hooks_task_types_and_flows_are_imported() {
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

/// Agents are a section of limits, a list, names only, or empty. The agents of a type are a map by
/// role, a list, or empty.
#[test]
fn octopoid_agents_are_read_in_each_of_their_shapes() {
    let hooks = "hooks: {before_submit: [run_tests]}\n";
    let imported = |text: &str| {
        let project = Project::bare();
        let report = import(&project, "octopoid", "octopoid.yaml", &format!("{hooks}{text}"));
        (project.config(), report)
    };
    let (config, report) = imported(
        "agents:\n  - {name: implementer-1, role: implement, model: sonnet, max_concurrent: 1, enabled: true}\n\
         \x20 - {name: gatekeeper-1, role: review, model: opus}\n  - {name: idle, enabled: false}\n\
         \x20 - {role: implement}\n  - second\n  - 7\n",
    );
    for part in [
        "implementer-1:\n    type: claude\n    model: sonnet",
        "gatekeeper-1:\n    type: claude\n    model: opus",
        "second:\n    type: claude",
        "loop:\n  agent: implementer-1",
    ] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert!(!config.contains("idle"), "{config}");
    assert_eq!(fate(&report, "agents.implementer-1").0, "changed", "{report:#}");
    for what in [
        "agents.implementer-1.max_concurrent",
        "agents.gatekeeper-1.role",
        "agents.idle",
        "agents: an entry",
    ] {
        assert!(is_lost(&report, what), "{what}: {report:#}");
    }
    // Names only.
    let (config, _) =
        imported("agents:\n  one: {role: implementer, model: opus}\n  two:\n  max_concurrent: 2\n");
    for part in ["one:\n    type: claude\n    model: opus", "two:\n    type: claude", "wip: 2"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    // Empty.
    for nothing in
        ["agents:\n", "agents: []\n", "agents: {}\n", "task_types:\n", "task_types: {a: }\n"]
    {
        let (config, report) = imported(nothing);
        assert!(
            !config.contains("agents") && !report.to_string().contains("no_equivalent"),
            "{nothing}: {config}"
        );
    }
    // The agents of a type.
    for (agents, expected) in [
        ("{implementer: [a, b], gatekeeper: q}", "implementer: [a, b]\n      gatekeeper: [q]"),
        ("{implementer: a, gatekeeper: }", "implementer: [a]"),
        ("[a, b]", "implementer: [a, b]"),
        ("a", "implementer: [a]"),
    ] {
        let (config, _) = imported(&format!("task_types: {{product: {{agents: {agents}}}}}\n"));
        assert!(config.contains(expected), "{agents}: {config}");
        assert!(config.contains("agents:\n  a:\n    type: claude"), "{agents}: {config}");
    }
    let (config, report) = imported("task_types: {product: {agents: {implementer: [7, a]}}}\n");
    assert!(config.contains("implementer: [\"7\", a]"), "{config} {report:#}");
    let (_, report) = imported("task_types: {product: {agents: {implementer: [{name: a}]}}}\n");
    assert!(is_lost(&report, "task_types.product.agents.implementer"), "{report:#}");
}

/// A very long duration, as real files have.
#[test]
fn an_imported_runtime_limit_is_reduced_to_a_day() {
    let project = Project::bare();
    let report =
        import(&project, "ralph", "ralph.yml", "event_loop: {max_runtime_seconds: 999999999}\n");
    assert!(project.config().contains("max_duration: 86400s"), "{}", project.config());
    assert_eq!(fate(&report, "event_loop.max_runtime_seconds").0, "changed");
}

#[test]
fn ralph_gates_limits_and_agent_are_imported() {
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
    - {name: tests, command: 'cargo test', on_fail: 'Fix them.'}
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
        "max_iterations: 40",
        "max_duration: 3600s",
        "max_cost: 7.5",
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
fn an_unsafe_hook_is_reported_and_the_others_are_imported() {
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
fn a_strict_import_with_unsupported_entries_writes_nothing() {
    let project = Project::bare();
    project.files(&[(".iteratr.hooks.yml", "hooks:\n  on_error: [{command: echo a, novel: 1}]\n")]);
    let error = project.fails(1, &["import", "iteratr", "--strict"]);
    assert!(error.contains("hooks.on_error.novel"), "{error}");
    assert_eq!(project.config(), "");
    project.files(&[(".iteratr.hooks.yml", "hooks:\n  on_error: [{command: echo a}]\n")]);
    project.ok(&["import", "iteratr", "--strict"]);
}

#[test]
fn the_import_report_has_fixed_fields_and_a_table() {
    let project = Project::bare();
    let report =
        import(&project, "ralph", "ralph.yml", "event_loop: {max_iterations: 4}\nnovel: 1\n");
    let expected =
        ["config", "files", "omitted", "report", "source", "tasks", "truncated", "written"];
    assert_eq!(fields(&report), expected.into());
    assert_eq!(fields(&report["report"][0]), ["count", "result", "what", "why"].into());
    let project = Project::bare();
    project.files(&[("ralph.yml", "event_loop: {max_iterations: 4}\nnovel: 1\n")]);
    let said = project.ok(&["import", "ralph"]);
    assert!(said.contains("kept\tevent_loop.max_iterations\t"), "{said}");
    assert!(said.contains("no equivalent\tnovel\tnot known here"), "{said}");
    // The printed text is a valid configuration when a project already has a file.
    let printed = project.ok(&["import", "ralph"]);
    let other = Project::bare();
    other.files(&[("hookloop.yaml", &printed)]);
    other.ok(&["status"]);
    assert!(printed.contains("# no equivalent: novel"), "{printed}");
}

#[test]
fn hostile_files_are_refused_with_an_error_message() {
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

#[test]
fn an_unknown_importer_is_reported_with_the_importers_and_the_page_about_git_hooks() {
    let project = Project::bare();
    for name in ["husky", "pre-commit", "something"] {
        let error = project.fails(2, &["import", name]);
        assert!(error.contains("docs/from/git-hooks.md"), "{error}");
        assert!(error.contains("importers: claude, codemie,"), "{error}");
        assert_eq!(error.contains(&format!("keep {name}")), name != "something", "{error}");
    }
    let other = project.fails(2, &["husky"]);
    assert!(!other.contains("importers"), "{other}");
}
