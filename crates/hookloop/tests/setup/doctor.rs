//! `hookloop doctor`: each test breaks one part, runs the hint, and expects the finding to be ok.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli::{ProgramOutput, Project, fields};

fn doctor(project: &Project) -> Vec<Value> {
    let run = project.run(&["doctor", "--json"]);
    assert!(run.stderr.is_empty(), "{run:?}");
    let findings: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    let has_error = findings.iter().any(|finding| finding["status"] == "error");
    assert_eq!(run.code, i32::from(has_error), "{findings:#?}");
    findings
}

/// Returns the most severe finding about something.
fn about(findings: &[Value], group: &str, about: &str) -> Value {
    let of = findings.iter().filter(|f| f["group"] == group && f["about"] == about);
    let rank =
        |finding: &&Value| ["ok", "warning", "error"].iter().position(|s| finding["status"] == **s);
    of.max_by_key(rank)
        .cloned()
        .unwrap_or_else(|| panic!("no finding about {group} {about}: {findings:#?}"))
}

/// Checks that a finding has this status, and that its command fixes the problem.
fn check_mended(project: &Project, group: &str, name: &str, status: &str) {
    let broken = about(&doctor(project), group, name);
    assert_eq!(broken["status"], status, "{broken}");
    let command = broken["command"].as_str().unwrap_or_else(|| panic!("no command: {broken}"));
    // No terminal is available for a confirmation.
    let command = match command {
        "hookloop hooks trust" | "hookloop agents trust" | "hookloop init" => {
            format!("{command} --yes")
        }
        command => command.to_owned(),
    };
    let typed = project.shell(&command);
    assert_eq!(typed.code, 0, "{command}: {typed:?}");
    let mended = about(&doctor(project), group, name);
    assert_eq!(mended["status"], "ok", "after {command}: {mended}");
}

#[test]
fn a_new_project_has_no_error_findings() {
    let project = Project::new();
    let findings = doctor(&project);
    let expected = ["about", "command", "group", "hint", "message", "status"];
    for finding in &findings {
        assert_eq!(fields(finding), expected.into());
        assert_ne!(finding["status"], "error", "{finding}");
    }
    let mut groups: Vec<&str> = findings.iter().map(|f| f["group"].as_str().unwrap()).collect();
    groups.dedup();
    assert_eq!(
        groups,
        ["machine", "network", "git", "state", "project", "store", "hooks", "agents", "people"]
    );
    assert!(project.run(&["doctor"]).stdout.contains("git:"));
}

/// Checks that a gate that can't run is reported with the setup step, as a user types it in the
/// project's directory.
#[test]
fn the_setup_step_of_a_gate_is_named_with_its_directory() {
    let package = r#"{"scripts": {"test": "jest"}, "devDependencies": {"jest": "1"}}"#;
    for (cwd, step) in [("", "type `npm ci`"), ("web app/", "type `cd 'web app' && npm ci`")] {
        let project = Project::bare();
        let at = if cwd.is_empty() {
            String::new()
        } else {
            format!(", cwd: {}", cwd.trim_end_matches('/'))
        };
        let config = format!(
            "version: 1\nhooks:\n  stop:\n    - {{name: web, command: npm test, timeout: 5m{at}}}\n"
        );
        project.files(&[
            ("hookloop.yaml", &config),
            (&format!("{cwd}package.json"), package),
            (&format!("{cwd}package-lock.json"), "{}"),
        ]);
        project.program("npm", "true");
        let path = format!("{}/bin:/usr/bin:/bin", project.home().display());
        let ask = || -> Value {
            let mut command = project.hookloop(&["doctor", "--json"]);
            let output = command.env("PATH", &path).output().unwrap();
            let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
            about(&findings, "hooks", "web")
        };
        let web = ask();
        assert_eq!(web["status"], "error", "{web}");
        let message = web["message"].as_str().unwrap();
        assert!(message.contains("the environment is not ready: the packages"), "{web}");
        assert_eq!(web["hint"], step, "{web}");
        // With the packages the gate is ready, even if it is not trusted yet.
        std::fs::create_dir(project.root().join(format!("{cwd}node_modules"))).unwrap();
        let web = ask();
        assert!(!web["message"].as_str().unwrap().contains("not ready"), "{web}");
    }
}

#[test]
fn doctor_finishes_in_time() {
    let project = Project::new();
    doctor(&project);
    let begun = Instant::now();
    doctor(&project);
    // Four times the allowed duration, because other tests run concurrently.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn doctor_outside_of_a_project_still_checks_the_machine() {
    let project = Project::bare();
    let findings = doctor(&project);
    assert_eq!(
        (&findings[0]["about"], &findings[0]["command"]),
        (&json!("project"), &json!("hookloop init"))
    );
    let mut groups: Vec<&str> = findings.iter().map(|f| f["group"].as_str().unwrap()).collect();
    groups.dedup();
    assert_eq!(groups.iter().filter(|group| **group == "project").count(), 1, "{groups:?}");
    for (group, name) in [("git", "git"), ("state", "directory"), ("machine", "keeper")] {
        assert_eq!(about(&findings, group, name)["status"], "ok", "{findings:#?}");
    }
    let typed = project.shell("hookloop init --yes");
    assert_eq!(typed.code, 0, "{typed:?}");
    assert_eq!(about(&doctor(&project), "project", "hookloop.yaml")["status"], "ok");
}

#[test]
fn an_invalid_configuration_is_the_first_finding_and_other_checks_run() {
    for (text, part) in [
        ("version: 1\nhooks: {stop: [{comand: x}]}\n", "comand"),
        ("version: 1\nnovel: 1\n", "novel"),
        ("not: [a", "hookloop.yaml"),
    ] {
        let project = Project::bare();
        project.files(&[("hookloop.yaml", text)]);
        let findings = doctor(&project);
        assert_eq!(
            (&findings[0]["about"], &findings[0]["status"]),
            (&json!("hookloop.yaml"), &json!("error")),
            "{findings:#?}"
        );
        assert!(findings[0]["message"].as_str().unwrap().contains(part), "{findings:#?}");
        assert!(findings[0]["hint"].as_str().unwrap().contains("edit "), "{findings:#?}");
        assert_eq!(about(&findings, "git", "git")["status"], "ok");
        assert_eq!(about(&findings, "state", "directory")["status"], "ok");
    }
    let project = Project::new();
    std::fs::create_dir_all(project.home().join(".config/hookloop")).unwrap();
    std::fs::write(project.home().join(".config/hookloop/config.yaml"), "version: 9\n").unwrap();
    let findings = doctor(&project);
    assert_eq!(findings[0]["about"], "your configuration", "{findings:#?}");
}

#[test]
fn hints_about_git_fix_the_findings() {
    let project = Project::new();
    check_mended(&project, "git", "repository", "warning");
    check_mended(&project, "git", "identity", "warning");
    // If only the email is missing, only the email is requested.
    let project = Project::new();
    project.shell("git config --global user.name Ada");
    let found = about(&doctor(&project), "git", "identity");
    assert!(found["command"].as_str().unwrap().ends_with("user.email you@example.com"), "{found}");
    // A repository that git cannot read is an error.
    project.files(&[(".git/HEAD", "nonsense")]);
    assert_eq!(about(&doctor(&project), "git", "repository")["status"], "error");
}

#[test]
fn a_missing_or_old_git_is_reported() {
    let project = Project::new();
    let with_path = |path: &str| {
        let mut command = project.hookloop(&["doctor", "--json"]);
        let run: ProgramOutput = command.env("PATH", path).output().unwrap().into();
        let findings: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
        about(&findings, "git", "git")
    };
    assert_eq!(with_path("/nowhere")["status"], "error");
    project.program("git", "echo git version 2.17.1");
    let old = with_path(&project.home().join("bin").display().to_string());
    assert!(
        old["status"] == "warning" && old["message"].as_str().unwrap().contains("2.38"),
        "{old}"
    );
}

#[test]
fn hints_about_the_state_directory_fix_the_findings() {
    let project = Project::new();
    let state = project.home().join(".local/state/hookloop");
    let mode = |mode: u32| {
        std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).unwrap()
    };
    mode(0o777);
    check_mended(&project, "state", "directory", "error");
    // A file instead of the state directory.
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::write(&state, "").unwrap();
    check_mended(&project, "state", "directory", "error");
    let space = about(&doctor(&project), "state", "space");
    assert!(space["message"].as_str().unwrap().contains("free in"), "{space}");
}

#[test]
fn the_hint_about_untrusted_and_changed_hooks_fixes_the_finding() {
    let project = Project::with_config(
        "hooks:\n  stop:\n    - {name: check, command: ./check.sh, timeout: 60}\n",
    );
    project.files(&[("check.sh", "#!/bin/sh\ntrue\n")]);
    check_mended(&project, "hooks", "check", "error");
    project.files(&[("check.sh", "#!/bin/sh\ntrue # other\n")]);
    let drifted = about(&doctor(&project), "hooks", "check");
    assert!(drifted["message"].as_str().unwrap().contains("changed since"), "{drifted}");
    check_mended(&project, "hooks", "check", "error");
}

#[test]
fn a_project_without_a_gate_gets_a_warning() {
    let project = Project::new();
    assert_eq!(about(&doctor(&project), "hooks", "gates")["status"], "warning");
    project.configure("hooks: {stop: [{name: t, command: 'true', timeout: 60}]}\n");
    assert!(!doctor(&project).iter().any(|finding| finding["about"] == "gates"));
}

#[test]
fn a_damaged_newer_or_locked_log_is_reported() {
    let project = Project::new();
    project.add("Goal", &[]);
    let file = project.state().join("hookloop.db");
    assert!(
        about(&doctor(&project), "store", "log")["message"].as_str().unwrap().contains("whole")
    );

    let holder = rusqlite::Connection::open(&file).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let held = about(&doctor(&project), "store", "log");
    assert!(
        held["status"] == "warning"
            && held["message"].as_str().unwrap().contains("another process"),
        "{held}"
    );
    holder.execute_batch("ROLLBACK; PRAGMA user_version = 99").unwrap();
    let newer = about(&doctor(&project), "store", "log");
    assert!(
        newer["status"] == "error" && newer["message"].as_str().unwrap().contains("version 99"),
        "{newer}"
    );
    drop(holder);

    let project = Project::new();
    for number in 0..200 {
        project.add(&format!("Goal {number} {}", "x".repeat(500)), &[]);
        if number == 20 {
            break;
        }
    }
    let file = project.state().join("hookloop.db");
    let database = rusqlite::Connection::open(&file).unwrap();
    database.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(database);
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 4096 / 2 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&file, bytes).unwrap();
    let damaged = about(&doctor(&project), "store", "log");
    assert!(
        damaged["status"] == "error" && damaged["message"].as_str().unwrap().contains("damaged"),
        "{damaged}"
    );
}

#[test]
fn an_unreachable_nats_store_is_reported_in_time() {
    let project = Project::with_config("project: p\nstore: nats://127.0.0.1:9\n");
    let begun = Instant::now();
    let findings = doctor(&project);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(about(&findings, "store", "store")["status"], "error");
    assert_eq!(about(&findings, "git", "git")["status"], "ok");
}

#[test]
fn versions_and_logins_of_agents_are_reported() {
    let project = Project::new();
    let look = |extra: &[(&str, &str)]| {
        let mut command = project.hookloop(&["doctor", "--json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", project.home().join("bin").display()));
        let run: ProgramOutput = command.envs(extra.iter().copied()).output().unwrap().into();
        serde_json::from_str::<Vec<Value>>(&run.stdout).unwrap()
    };
    let none = about(&look(&[]), "agents", "agents");
    assert!(none["command"].as_str().unwrap().starts_with("npm install -g "), "{none}");
    project.program("claude", "echo 9.9.9");
    // `doctor` does not wait for a program that hangs.
    project.program("codex", "sleep 600");
    let begun = Instant::now();
    let findings = look(&[]);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let claude = about(&findings, "agents", "agent claude");
    assert_eq!(
        (&claude["status"], &claude["command"]),
        (&json!("warning"), &json!("claude auth login")),
        "{claude}"
    );
    assert!(findings.iter().any(|f| f["message"].as_str().unwrap().starts_with("9.9.9; it may")));
    assert!(
        findings
            .iter()
            .any(|f| f["message"].as_str().unwrap().contains("does not tell its version"))
    );
    let keyed = about(&look(&[("ANTHROPIC_API_KEY", "x")]), "agents", "agent claude");
    assert_eq!(keyed["status"], "ok", "{keyed}");
    std::fs::create_dir_all(project.home().join(".claude")).unwrap();
    std::fs::write(project.home().join(".claude/.credentials.json"), "{}").unwrap();
    assert_eq!(about(&look(&[]), "agents", "agent claude")["status"], "ok");
}

/// Checks that the error names the package of the missing agent, and the agents that are installed.
#[test]
fn the_error_for_a_missing_agent_names_its_package_and_installed_agents() {
    const INSTALL: &str = "npm install -g @anthropic-ai/claude-code@latest";
    let project = Project::new();
    project.configure("loop: {agent: claude}\n");
    let with_path = |args: &[&str]| -> ProgramOutput {
        let mut command = project.hookloop(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", project.home().join("bin").display()));
        command.output().unwrap().into()
    };
    let check = |missing: &str| {
        for args in [&["run", "x", "--agent", "claude"][..], &["run", "x"]] {
            let run = with_path(args);
            let told = format!("error: {missing}\nhint: run `{INSTALL}`\n");
            assert_eq!((run.code, run.stderr), (2, told), "{args:?}");
        }
        let findings = serde_json::from_str(&with_path(&["doctor", "--json"]).stdout);
        let claude = about(
            &findings.unwrap_or_else(|_: serde_json::Error| vec![]),
            "agents",
            "agent claude",
        );
        assert_eq!((&claude["message"], &claude["command"]), (&json!(missing), &json!(INSTALL)));
    };
    let missing = "there is no program `claude` for the agent `claude`";
    check(missing);
    project.program("codex", "echo codex-cli 9.9.9");
    check(&format!("{missing}; `--agent codex` is installed"));
    project.program("gemini", "echo 9.9.9");
    check(&format!("{missing}; `--agent codex` and `--agent gemini` are installed"));
    // An agent of the repository is not proposed before the user trusts it.
    project.configure("loop: {agent: claude}\nagents: {mine: {type: command, command: [codex]}}\n");
    check(&format!("{missing}; `--agent codex` and `--agent gemini` are installed"));
}

/// Checks that a new project proposes to install an agent, or to use an installed one.
#[test]
fn init_proposes_an_agent_that_is_installed() {
    let next = |project: &Project| {
        let mut command = project.hookloop(&["init", "--yes", "--json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", project.home().join("bin").display()));
        let run: ProgramOutput = command.output().unwrap().into();
        serde_json::from_str::<Value>(&run.stdout).unwrap()["next"].to_string()
    };
    let project = Project::bare();
    let none = next(&project);
    assert!(none.contains("npm install -g @anthropic-ai/claude-code@latest"), "{none}");
    assert!(none.contains("or another agent: codex, opencode, gemini"), "{none}");
    let project = Project::bare();
    project.program("codex", "echo codex-cli 9.9.9");
    let one = next(&project);
    assert!(one.contains("--agent codex") && !one.contains("npm install"), "{one}");
}

#[test]
fn the_hint_about_agent_settings_in_a_repository_fixes_the_finding() {
    let project = Project::new();
    project.files(&[(".claude/settings.json", "{}")]);
    std::fs::create_dir_all(project.home().join(".claude")).unwrap();
    std::fs::write(project.home().join(".claude/.credentials.json"), "{}").unwrap();
    std::fs::create_dir_all(project.home().join(".config/hookloop")).unwrap();
    // The user's agent runs a program that always exists.
    let own = "version: 1\nagents: {claude: {type: claude, command: [/bin/true]}}\n";
    std::fs::write(project.home().join(".config/hookloop/config.yaml"), own).unwrap();
    check_mended(&project, "agents", "agent claude", "warning");
}

#[test]
fn fleet_directives_and_notification_channels_are_reported() {
    let project = Project::new();
    project.ok(&["fleet", "pause", "--reason", "a look"]);
    let paused = about(&doctor(&project), "fleet", "directives");
    assert_eq!(paused["command"], "hookloop fleet resume all", "{paused}");
    assert_eq!(project.shell(paused["command"].as_str().unwrap()).code, 0);
    assert!(!doctor(&project).iter().any(|finding| finding["about"] == "directives"));

    std::fs::create_dir_all(project.home().join(".config/hookloop")).unwrap();
    let own = "version: 1\nnotify:\n  - {name: phone, webhook: {env: NO_SUCH_HOOK}}\n";
    std::fs::write(project.home().join(".config/hookloop/config.yaml"), own).unwrap();
    let phone = about(&doctor(&project), "people", "phone");
    assert!(
        phone["status"] == "warning" && phone["message"].as_str().unwrap().contains("NO_SUCH_HOOK"),
        "{phone}"
    );
}

#[test]
fn doctor_creates_no_state() {
    let project = Project::bare();
    project.files(&[("hookloop.yaml", "version: 1\n")]);
    doctor(&project);
    let state = project.home().join(".local/state/hookloop");
    let left: Vec<_> =
        std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [""; 0].map(std::path::PathBuf::from));
}
