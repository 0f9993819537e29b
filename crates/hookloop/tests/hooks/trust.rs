//! No content of a repository runs before the user has seen exactly those bytes.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::Project;
use crate::hooks::CHECK;

const UNTRUSTED: i32 = 3;

/// Returns the status of a run of the hook, and the reason. An untrusted hook has its own exit
/// code.
fn status(project: &Project, args: &[&str]) -> (String, String) {
    let run = project.run(&[&["hooks", "run", "check", "--json"], args].concat());
    let printed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let text = |field: &str| printed[field].as_str().unwrap_or_default().to_owned();
    let is_untrusted = ["it is not trusted", "it changed since it was trusted"];
    let expected = match text("status").as_str() {
        _ if is_untrusted.contains(&&*text("reason")) => UNTRUSTED,
        "passed" => 0,
        _ => 1,
    };
    assert_eq!(run.code, expected, "{run:?}");
    (text("status"), text("reason"))
}

#[test]
fn a_hook_that_is_not_trusted_is_named_with_the_command_to_type() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "touch ran");
    let check = |reason: &str| {
        let run = project.run(&["hooks", "run", "check"]);
        assert_eq!(run.code, UNTRUSTED, "{run:?}");
        let told = format!("error: hook `check` did not run: {reason}\n");
        assert!(run.stderr.starts_with(&told), "{run:?}");
        assert!(run.stderr.ends_with("hint: run `hookloop hooks trust`\n"), "{run:?}");
        let run = project.run(&["hooks", "run", "check", "--json"]);
        let error: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        assert_eq!(error["error"]["type"], "untrusted");
        assert!(!project.root().join("ran").exists());
        project.ok(&["hooks", "run", "check", "--dry-run"]);
    };
    check("it is not trusted");
    project.trust();
    project.script("check.sh", "touch ran # and more");
    check("it changed since it was trusted");
    project.trust();
    project.ok(&["hooks", "run", "check"]);
    assert!(project.root().join("ran").exists());
}

#[test]
fn hooks_explain_shows_the_trust_state() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "true");
    let explained = |trust: &str, runs: &str, words: &str| {
        let hooks = project.json(&["hooks", "explain", "on_task_complete"]);
        let hook = hooks.as_array().unwrap().iter().find(|hook| hook["name"] == "check").unwrap();
        assert_eq!((hook["trust"].as_str(), hook["runs"].as_str()), (Some(trust), Some(runs)));
        let text = project.ok(&["hooks", "explain", "on_task_complete"]);
        assert!(text.contains(words), "{text}");
    };
    explained("untrusted", "untrusted", "does not run: not trusted (hookloop hooks trust)");
    project.trust();
    explained("trusted", "yes", "trusted");
    project.script("check.sh", "false");
    explained("modified", "modified", "does not run: changed since it was trusted");
}

#[test]
fn a_hook_runs_only_after_it_was_trusted() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "touch ran");
    let id = project.add("First", &[]);
    let told = project.ok(&["task", "complete", &id]);
    assert!(told.contains("`check` failed: it is not trusted: hookloop hooks trust"), "{told}");
    assert!(!project.root().join("ran").exists());
    let errors = project.logged("hook_error");
    assert!(errors[0]["data"]["error"].as_str().unwrap().contains("not trusted"), "{errors:?}");
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(shown.contains("./check.sh") && shown.contains("sha256:"), "{shown}");
    assert_eq!(status(&project, &[]).0, "not_started");
    project.trust();
    project.complete("Second");
    assert!(project.root().join("ran").exists());
    assert_eq!(project.logged("hook_ran").len(), 1);
}

#[test]
fn hooks_cannot_be_trusted_interactively_without_a_terminal() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "true");
    for environment in [None, Some("true")] {
        let mut command = project.hookloop(&["hooks", "trust"]);
        if let Some(ci) = environment {
            command.env("CI", ci);
        }
        assert_eq!(command.output().unwrap().status.code(), Some(UNTRUSTED));
    }
    assert_eq!(status(&project, &[]).0, "not_started");
}

#[test]
fn hooks_trust_without_a_terminal_hints_at_commands_that_can_be_typed() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "true");
    let refused = project.hookloop(&["hooks", "trust"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(UNTRUSTED));
    let error = String::from_utf8(refused.stderr).unwrap();
    let commands: Vec<&str> = error.split('`').skip(1).step_by(2).collect();
    let [yes, digest] = commands[..] else { panic!("{error}") };
    let digest: Vec<&str> = digest.split_whitespace().collect();
    assert_eq!(status(&project, &digest).0, "passed", "{error}");
    let yes: Vec<&str> = yes.split_whitespace().skip(1).collect();
    assert!(project.ok(&yes).contains("Trusted sha256:"), "{error}");
}

#[test]
fn a_digest_stands_for_exactly_one_set_of_hooks() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "true");
    let digest = project.json(&["hooks", "trust", "--show"])["digest"].as_str().unwrap().to_owned();
    assert_eq!(status(&project, &["--trust", &digest]).0, "passed");
    let other = digest.replace(&digest[10..12], if &digest[10..12] == "00" { "11" } else { "00" });
    project.fails(UNTRUSTED, &["hooks", "run", "check", "--trust", &other]);
    project.script("check.sh", "true # and more");
    project.fails(UNTRUSTED, &["hooks", "run", "check", "--trust", &digest]);
    // The trust was for one run.
    assert_eq!(status(&project, &[]).0, "not_started");
}

#[test]
fn every_byte_of_a_script_counts() {
    let text = "echo fine";
    let project = Project::with_check(text);
    assert_eq!(status(&project, &[]).0, "passed");
    let whole = format!("#!/bin/sh\n{text}\n");
    for at in 0..whole.len() {
        let mut changed = whole.clone().into_bytes();
        changed[at] ^= 1;
        std::fs::write(project.root().join("check.sh"), changed).unwrap();
        let (status, reason) = status(&project, &[]);
        assert!(status == "not_started" && reason.contains("changed"), "byte {at}: {status}");
    }
    std::fs::write(project.root().join("check.sh"), whole).unwrap();
    assert_eq!(status(&project, &[]).0, "passed");
}

/// T4: regardless of how a command names a script of the project, the trusted bytes run.
#[test]
fn a_changed_script_needs_trust_with_every_spelling_of_its_path() {
    for named in [
        "./check.sh",
        "sub/../check.sh",
        "sh check.sh",
        "\\\"$CLAUDE_PROJECT_DIR\\\"/check.sh",
        "\\\"$CLAUDE_PROJECT_DIR/check.sh\\\"",
        "${CLAUDE_PROJECT_DIR}/check.sh",
        "$HOOKLOOP_PROJECT/sub/../check.sh",
        "true && ./check.sh",
        "ROOT/check.sh",
    ] {
        let project = Project::bare();
        let named = named.replace("ROOT", project.root().canonicalize().unwrap().to_str().unwrap());
        project.configure(&format!("hooks: {{stop: [{{name: check, command: \"{named}\"}}]}}\n"));
        std::fs::create_dir(project.root().join("sub")).unwrap();
        project.script("check.sh", "echo agreed");
        project.trust();
        let run = project.try_hook(&["check"]);
        assert_eq!(run["stdout"], "agreed\n", "{named}: {run}");
        project.script("check.sh", "touch evil");
        assert_eq!(status(&project, &[]).0, "not_started", "{named}");
        assert!(!project.root().join("evil").exists(), "{named}");
    }
}

/// T4: the target of a link to a program is part of the trusted content.
#[test]
fn a_changed_link_target_outside_the_project_needs_trust() {
    let project = Project::with_config("hooks: {stop: [{name: check, command: ./tool}]}\n");
    let tool = project.root().join("tool");
    std::os::unix::fs::symlink("/bin/true", &tool).unwrap();
    project.trust();
    assert_eq!(status(&project, &[]).0, "passed");
    std::fs::remove_file(&tool).unwrap();
    std::os::unix::fs::symlink("/bin/ls", &tool).unwrap();
    assert_eq!(status(&project, &[]).0, "not_started");
    assert!(project.ok(&["hooks", "trust", "--show"]).contains("+ link    ./tool -> /"));
}

#[test]
fn every_part_of_a_definition_counts_and_its_layout_does_not() {
    let project = Project::with_check("true");
    let file = |hook: &str| format!("hooks:\n  on_task_complete:\n    - {{{hook}}}\n");
    for changed in [
        "name: check, command: './check.sh {{task_id}} '",
        "name: check, command: './check.sh {{task_id}}', env: [SECRET]",
        "name: check, command: './check.sh {{task_id}}', env: {A: b}",
        "name: check, command: './check.sh {{task_id}}', cwd: .",
        "name: check, command: './check.sh {{task_id}}', when: 'true'",
        "name: check, command: [./check.sh, '{{task_id}}']",
    ] {
        project.configure(&file(changed));
        assert_eq!(status(&project, &[]).0, "not_started", "{changed}");
    }
    project.configure(
        "# A comment\nhooks:\n  task_completed:\n    -   command:   './check.sh {{task_id}}'\n",
    );
    assert_eq!(status(&project, &[]).0, "passed");
}

#[test]
fn no_file_of_a_repository_makes_its_hooks_trusted() {
    for key in ["trust: true", "trusted: [check]", "durability: unsafe", "hooks_trusted: yes"] {
        let project = Project::with_config(&format!("{key}\n{CHECK}"));
        project.script("check.sh", "true");
        let run = project.run(&["hooks", "list"]);
        assert_eq!(run.code, 2, "{key}: {run:?}");
    }
    let project = Project::with_config(CHECK);
    project.script("check.sh", "touch ran");
    // Files with the names of hookloop's files have no effect in the repository.
    project.write("trust.json", "{\"version\":1,\"agreed\":[]}");
    std::fs::create_dir(project.root().join(".hookloop")).unwrap();
    project.complete("Goal");
    assert!(!project.root().join("ran").exists());
}

#[test]
fn a_script_replaced_during_a_run_is_not_run() {
    let project = Project::with_check("echo agreed");
    race(&project, &[]);
}

#[test]
fn a_script_replaced_during_a_run_with_a_digest_is_not_run() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "echo agreed");
    let digest = project.json(&["hooks", "trust", "--show"])["digest"].as_str().unwrap().to_owned();
    race(&project, &["--trust", &digest]);
}

/// Trust in a command whose script does not exist yet covers no script.
#[test]
fn a_script_created_after_trust_is_not_run() {
    let project = Project::with_config(CHECK);
    project.trust();
    let (absent, reason) = status(&project, &[]);
    assert_eq!(
        (absent.as_str(), reason.as_str()),
        ("not_started", "it runs `./check.sh`, which is not there")
    );
    project.script("check.sh", "touch ran");
    assert_eq!(status(&project, &[]).0, "not_started");
    assert!(!project.root().join("ran").exists());
}

/// Sets the flag when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Another thread keeps replacing the script: the trusted script runs, or none.
fn race(project: &Project, args: &[&str]) {
    let rounds = std::env::var("HOOKLOOP_RACES").map_or(1_000, |text| text.parse().unwrap());
    let (script, over) = (project.root().join("check.sh"), AtomicBool::new(false));
    let good = std::fs::read(&script).unwrap();
    let bad = b"#!/bin/sh\necho evil; touch evil\n".to_vec();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                // The trusted script, no script, one that is not executable, and another one.
                for (bytes, mode) in [(&good, 0o755), (&bad, 0), (&bad, 0o644), (&bad, 0o755)] {
                    let new = script.with_extension("new");
                    std::fs::write(&new, bytes).unwrap();
                    std::fs::set_permissions(&new, Permissions::from_mode(mode)).unwrap();
                    match mode {
                        0 => std::fs::remove_file(&script).unwrap(),
                        _ => std::fs::rename(&new, &script).unwrap(),
                    }
                }
            }
        });
        // The writer ends, even if an assertion fails.
        let _over = Over(&over);
        let mut ran = 0;
        for _ in 0..rounds {
            let run = project.run(&[&["hooks", "run", "check", "--json"], args].concat());
            // With a digest, another script is refused at once, and so is one that is being
            // removed.
            if run.stdout.is_empty() {
                assert!(run.code == UNTRUSTED || run.stderr.contains("check.sh"), "{run:?}");
                continue;
            }
            let run: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            match run["status"].as_str().unwrap() {
                "passed" => {
                    assert_eq!(run["stdout"], "agreed\n");
                    ran += 1;
                }
                other => assert_eq!(other, "not_started", "{run}"),
            }
        }
        assert!(ran > 0, "the trusted script never ran");
    });
    assert!(!project.root().join("evil").exists());
}

/// The screen shows the actual content: no character moves the cursor or hides text.
#[test]
fn control_characters_in_a_command_are_escaped_in_the_trust_request() {
    for hostile in ["\u{1b}[2K", "\u{202e}", "\u{200b}", "\u{7}", "\u{9b}31m", "\r"] {
        let project = Project::with_config(&format!(
            "hooks:\n  stop:\n    - name: check\n      command: {}\n",
            escaped(&format!("echo a{hostile}b"))
        ));
        let shown = project.ok(&["hooks", "trust", "--show"]);
        assert!(!shown.contains(hostile), "{hostile:?}");
        let fits = |c: char| c == '\n' || (' '..='~').contains(&c);
        assert!(shown.chars().all(fits), "{shown:?}");
    }
}

/// Returns a text as a YAML string, with invisible characters escaped.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        c => format!("\\u{:04x}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

#[test]
fn a_changed_hook_definition_is_shown_as_a_difference() {
    let project = Project::with_check("true");
    project.configure(&CHECK.replace("./check.sh", "./check.sh --more"));
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(shown.contains("+ shell   ./check.sh --more {{task_id}}"), "{shown}");
    assert!(shown.contains("- shell   ./check.sh {{task_id}}"), "{shown}");
    assert!(shown.contains("modified"), "{shown}");
}

#[test]
fn the_content_of_scripts_is_shown_before_they_are_trusted() {
    let project = Project::with_config(CHECK);
    let long = (1..=300).map(|n| format!("echo line {n}\n")).collect::<String>();
    project.script("check.sh", &format!("echo 'red \u{1b}[31m \u{202e}'\n{long}"));
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(shown.contains("| echo line 1\n"), "{shown}");
    assert!(!shown.contains("echo line 299"), "{shown}");
    assert!(shown.contains("more lines; read the file: less check.sh]"), "{shown}");
    // No character of the script controls the terminal.
    assert!(shown.contains("\\u{1b}[31m \\u{202e}") && !shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn the_changes_of_a_script_are_shown_against_the_trusted_copy() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "echo one\necho two\necho three");
    project.trust();
    let unchanged = project.ok(&["hooks", "trust", "--show"]);
    assert!(!unchanged.contains("echo two"), "{unchanged}");
    project.script("check.sh", "echo one\ncurl evil.example\necho three");
    let shown = project.ok(&["hooks", "trust", "--show"]);
    for line in ["changes of check.sh:", "- echo two", "+ curl evil.example", "  echo three"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // A copy that was changed does not count as a trusted copy.
    let kept = project.state().join("trusted");
    let mut found = 0;
    for directory in std::fs::read_dir(&kept).unwrap() {
        let path = directory.unwrap().path().join("check.sh");
        std::fs::write(&path, "echo forged\n").unwrap();
        found += 1;
    }
    assert_eq!(found, 1);
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(shown.contains("no copy of the trusted version is here"), "{shown}");
    assert!(shown.contains("| curl evil.example") && !shown.contains("forged"), "{shown}");
}

#[test]
fn a_script_that_does_not_exist_is_reported_before_it_is_trusted_and_by_doctor() {
    let project = Project::with_config(
        "hooks:\n  stop:\n    - {name: direct, command: ./gone.sh --all, timeout: 1m}\n    \
         - {name: read, command: sh scripts/gone.sh, timeout: 1m}\n    \
         - {name: there, command: sh scripts/there.sh, timeout: 1m}\n",
    );
    std::fs::create_dir(project.root().join("scripts")).unwrap();
    project.script("scripts/there.sh", "exit 0");
    let shown = project.ok(&["hooks", "trust", "--yes"]);
    for (name, script) in [("direct", "./gone.sh"), ("read", "scripts/gone.sh")] {
        let told = format!("`{name}` runs `{script}`, which does not exist: create it");
        assert!(shown.contains(&told), "{shown}");
    }
    assert_eq!(shown.matches("does not exist").count(), 2, "{shown}");
    let offered = project.json(&["hooks", "trust", "--show"]);
    assert_eq!(offered["hooks"][0]["missing_script"], "./gone.sh", "{offered}");
    assert_eq!(offered["hooks"][2]["missing_script"], serde_json::Value::Null, "{offered}");
    let doctor = project.run(&["doctor"]);
    for script in ["./gone.sh", "scripts/gone.sh"] {
        let told = format!("it runs `{script}`, which does not exist");
        assert!(doctor.stdout.contains(&told), "{doctor:?}");
    }
}

#[test]
fn letters_are_shown_as_they_are_and_hidden_characters_are_not() {
    let project = Project::with_config(
        "hooks:\n  stop:\n    - {name: check, command: \"./check.sh 'déjà vu' \\u202e\\u0441url 検査\"}\n",
    );
    project.script("check.sh", "# Größe\necho \u{200b}ok");
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(shown.contains("./check.sh 'déjà vu' \\u{202e}\\u{441}url 検査\n"), "{shown}");
    assert!(shown.contains("| # Größe\n") && shown.contains("| echo \\u{200b}ok\n"), "{shown}");
}
