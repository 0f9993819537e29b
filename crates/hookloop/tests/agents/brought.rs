//! Files of a repository that configure agents have no effect before its user has trusted them.

use std::fs;

use hookloop_testbed::model::Turn;
use hookloop_testkit::SessionOutput;
use serde_json::json;

use crate::agents::stage::{AgentProject, UNPROVEN, Who};

/// Returns a repository whose files make Claude Code start commands.
fn booby_trapped() -> AgentProject {
    let turns = (0..4).map(|_| Turn::say("Hello.\n<promise>COMPLETE</promise>"));
    let stage = AgentProject::new(Who::Claude, turns);
    let touch = |name: &str| format!("touch '{}'", stage.directory().join(name).display());
    let hook = json!({ "type": "command", "command": touch("hook-ran") });
    let settings = json!({ "hooks": { "SessionStart": [{ "hooks": [hook] }] } });
    let server = format!("{}; cat", touch("server-ran"));
    let servers = json!({ "mcpServers": { "s": { "command": "sh", "args": ["-c", server] } } });
    fs::create_dir_all(stage.path(".claude")).unwrap();
    fs::write(stage.path(".claude/settings.json"), settings.to_string()).unwrap();
    fs::write(stage.path(".mcp.json"), servers.to_string()).unwrap();
    fs::write(stage.path("CLAUDE.md"), "Say xylophone where you can.\n").unwrap();
    stage
}

fn has_run(stage: &AgentProject) -> (bool, bool) {
    let is_there = |name: &str| stage.directory().join(name).exists();
    (is_there("hook-ran"), is_there("server-ran"))
}

fn forget(stage: &AgentProject) {
    for name in ["hook-ran", "server-ran"] {
        let _ = fs::remove_file(stage.directory().join(name));
    }
}

#[test]
fn untrusted_agent_hooks_and_mcp_servers_of_a_repository_do_not_run() {
    let stage = booby_trapped();
    let ran = stage.run(&["Say hello"]);
    assert_eq!((ran.code, has_run(&stage)), (UNPROVEN, (false, false)), "{ran:#?}");
    // A file that is only text for the agent has an effect.
    assert!(stage.model.requests()[0].text().contains("xylophone"));

    let agents = stage.hookloop(&["agents", "list"]);
    let all = agents.events[0].as_array().unwrap();
    let claude = all.iter().find(|one| one["name"] == "claude").unwrap();
    assert_eq!(claude["ignored"], json!([".claude/settings.json", ".mcp.json"]));

    assert_eq!(stage.hookloop(&["agents", "trust", "--yes"]).code, 0);
    let ran = stage.run(&["Say hello"]);
    assert_eq!((ran.code, has_run(&stage)), (UNPROVEN, (true, true)), "{ran:#?}");

    // The trust covers the earlier content only.
    forget(&stage);
    let settings = fs::read_to_string(stage.path(".claude/settings.json")).unwrap();
    fs::write(stage.path(".claude/settings.json"), format!("{settings} ")).unwrap();
    let ran = stage.run(&["Say hello"]);
    assert_eq!((ran.code, has_run(&stage)), (UNPROVEN, (false, false)), "{ran:#?}");
}

/// This holds even for an agent with full permissions.
#[test]
fn agent_hooks_written_by_the_agent_itself_do_not_run() {
    let stage = AgentProject::new(Who::Claude, []);
    let ran_file = stage.directory().join("hook-ran");
    let hook = json!({ "type": "command", "command": format!("touch '{}'", ran_file.display()) });
    let settings = json!({ "hooks": { "SessionStart": [{ "hooks": [hook] }] } });
    let line = format!("mkdir -p .claude && printf %s '{settings}' > .claude/settings.json");
    let line = line.replace(&format!("'{}'", ran_file.display()), &ran_file.display().to_string());
    stage.model.extend([
        Turn::call("I prepare something.", Who::Claude.run(&line)),
        Turn::say("Later more."),
        Turn::say("Done.\n<promise>COMPLETE</promise>"),
    ]);
    let ran = stage.run(&["Work", "--stop-when", "promise", "--permissions", "full"]);
    assert_eq!((ran.code, ran.turns().len()), (UNPROVEN, 2), "{ran:#?}");
    assert!(stage.path(".claude/settings.json").exists(), "{ran:#?}");
    assert!(!ran_file.exists());
}

/// Returns the exit code and the message of a refusal before anything was started.
fn refused(stage: &AgentProject, args: &[&str]) -> (i32, String) {
    let SessionOutput { code, events, stderr } = stage.hookloop(args);
    assert_eq!(events.len(), 0);
    (code, stderr)
}

#[test]
fn untrusted_agent_files_that_cannot_be_disabled_prevent_the_start() {
    for (agent, file) in [
        ("opencode", "opencode.json"),
        ("opencode", ".opencode/plugin/x.js"),
        ("gemini", ".gemini/settings.json"),
        ("gemini", ".gemini/extensions/x/gemini-extension.json"),
        ("claude-agent-acp", ".mcp.json"),
        ("claude-agent-acp", ".claude/skills/x/SKILL.md"),
        ("codex-acp", ".codex/config.toml"),
    ] {
        let stage = AgentProject::new(Who::Claude, []);
        let path = stage.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}").unwrap();
        let (code, said) = refused(&stage, &["run", "Work", "--agent", agent]);
        assert_eq!(code, 3, "{said}");
        assert!(said.contains(file) && said.contains("hookloop agents trust"), "{said}");
    }
}

#[test]
fn an_untrusted_repository_agent_is_not_started() {
    let config = "version: 1
agents:
  theirs: {type: command, command: 'touch started; echo \"<promise>COMPLETE</promise>\"'}
loop: {agent: theirs}
";
    let stage = AgentProject::with(config, Who::Claude, []);
    let (code, said) = refused(&stage, &["run", "Work"]);
    assert!(code == 3 && said.contains("defines the agent `theirs`"), "{code} {said}");
    assert!(!stage.path("started").exists());
    assert_eq!(stage.hookloop(&["agents", "trust", "--yes"]).code, 0);
    let ran = stage.hookloop(&["run", "Work", "--no-changes-ok"]);
    assert!(ran.code == UNPROVEN && stage.path("started").exists(), "{ran:#?}");
}

#[test]
fn repository_config_can_set_the_model_but_not_full_permissions() {
    let config = "version: 1\nagents: {claude: {model: other-model}}\nloop: {agent: claude}\n";
    let stage =
        AgentProject::with(config, Who::Claude, [Turn::say("Hello.\n<promise>COMPLETE</promise>")]);
    let ran = stage.hookloop(&["run", "Say hello", "--stop-when", "turn", "--no-changes-ok"]);
    assert_eq!(ran.code, UNPROVEN, "{ran:#?}");
    assert_eq!(stage.model.requests()[0].body["model"], "other-model");

    for (text, part) in [
        ("agents: {claude: {permissions: full}}", "a repository lets no agent do everything"),
        ("loop: {agent: 'command:rm -rf x'}", "define it under `agents`"),
        ("agents: {mine: {}}", "`type` is one of"),
        ("agents: {mine: {type: acp}}", "needs a `command`"),
    ] {
        fs::write(stage.path("hookloop.yaml"), format!("version: 1\n{text}\n")).unwrap();
        let (code, said) = refused(&stage, &["run", "Work", "--agent", "claude"]);
        assert!(code == 2 && said.contains(part) && said.contains(":2:"), "{code} {said}");
    }
}

#[test]
fn a_missing_agent_is_refused_before_the_session_starts() {
    let stage = AgentProject::new(Who::Claude, []);
    let run = |agent: &str| {
        let output =
            stage.command(&["run", "Work", "--agent", agent]).env("PATH", "/usr/bin:/bin").output();
        let output = output.unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run("codex");
    assert!(code == 2 && said.contains("npm install -g @openai/codex"), "{code} {said}");
    let (code, said) = run("cluade");
    assert!(code == 2 && said.contains("there is no agent `cluade`"), "{code} {said}");
}

/// The trust covers the script of a repository's agent, and each of its arguments separately.
#[test]
fn trust_covers_script_content_and_arguments_of_a_repository_agent() {
    let config = |args: &str| {
        format!(
            "version: 1\nagents:\n  theirs: {{type: command, command: [./agent.sh], args: {args}}}\n"
        )
    };
    let stage = AgentProject::with(&config("['a b']"), Who::Claude, []);
    let script = |text: &str| {
        fs::write(stage.path("agent.sh"), format!("#!/bin/sh\n{text}\n")).unwrap();
        let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(stage.path("agent.sh"), may_run).unwrap();
    };
    let run = || {
        stage.hookloop(&[
            "run",
            "Work",
            "--agent",
            "theirs",
            "--stop-when",
            "turn",
            "--no-changes-ok",
        ])
    };
    script("echo hello");
    assert_eq!(stage.hookloop(&["agents", "trust", "--yes"]).code, 0);
    assert_eq!(run().code, UNPROVEN);
    script("touch evil");
    let ran = run();
    assert!(ran.code == 3 && !stage.path("evil").exists(), "{ran:#?}");
    script("echo hello");
    assert_eq!(run().code, UNPROVEN);
    fs::write(stage.path("hookloop.yaml"), config("[a, b]")).unwrap();
    assert_eq!(run().code, 3);
}

#[test]
fn an_agent_file_that_is_a_link_to_a_device_or_directory_is_refused() {
    for target in ["/dev/zero", "/", "."] {
        let stage = AgentProject::new(Who::Claude, []);
        std::os::unix::fs::symlink(target, stage.path("opencode.json")).unwrap();
        let (code, said) = refused(&stage, &["run", "Work", "--agent", "opencode"]);
        assert!(code != 0 && said.contains("opencode.json"), "{target}: {code} {said}");
    }
}

/// Only the user can choose an agent with full permissions; a fallback agent has no more
/// permissions than the chosen one.
#[test]
fn a_repository_cannot_widen_the_permissions_given_by_the_user() {
    let config = "version: 1\nloop: {agent: mine, fallback: mine2, fallback_after: 1}\n";
    let stage = AgentProject::with(config, Who::Claude, [Turn::refuse(500, "a bad day")]);
    stage.configure(
        "version: 1\nagents:\n  mine: {type: claude, permissions: full}\n  mine2: {type: codex, permissions: full}\n",
    );
    let (code, said) = refused(&stage, &["run", "Work"]);
    assert!(code == 3 && said.contains("has full permissions"), "{code} {said}");

    stage.model.extend([
        Turn::call("I write.", Who::Codex.write(&stage.path("a.txt"), "hello\n")),
        Turn::say("Done.\n<promise>COMPLETE</promise>"),
    ]);
    let args = [
        "run",
        "Work",
        "--agent",
        "mine",
        "--permissions",
        "read",
        "--stop-when",
        "promise",
        "--no-changes-ok",
    ];
    let ran = stage.hookloop(&args);
    let agents: Vec<_> = ran.turns().iter().map(|turn| turn["agent"].clone()).collect();
    assert_eq!((ran.code, agents), (UNPROVEN, vec![json!("mine"), json!("mine2")]), "{ran:#?}");
    assert!(!stage.path("a.txt").exists(), "{ran:#?}");
}
