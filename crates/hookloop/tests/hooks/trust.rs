//! Nothing that a repository brings runs before the user has seen those very bytes.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::CHECK;
use crate::cli::Project;

const REFUSED: i32 = 1;

fn status(project: &Project, args: &[&str]) -> (String, String) {
    let run = project.json(&[&["hooks", "run", "check"], args].concat());
    let text = |field: &str| run[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
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
    project.ok(&["hooks", "trust", "--yes"]);
    project.complete("Second");
    assert!(project.root().join("ran").exists());
    assert_eq!(project.logged("hook_ran").len(), 1);
}

#[test]
fn without_a_terminal_nothing_is_agreed_to() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "true");
    for environment in [None, Some("true")] {
        let mut command = project.hookloop(&["hooks", "trust"]);
        if let Some(ci) = environment {
            command.env("CI", ci);
        }
        assert_eq!(command.output().unwrap().status.code(), Some(REFUSED));
    }
    assert_eq!(status(&project, &[]).0, "not_started");
}

#[test]
fn a_digest_stands_for_exactly_one_set_of_hooks() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "true");
    let digest = project.json(&["hooks", "trust", "--show"])["digest"].as_str().unwrap().to_owned();
    assert_eq!(status(&project, &["--trust", &digest]).0, "passed");
    let other = digest.replace(&digest[10..12], if &digest[10..12] == "00" { "11" } else { "00" });
    assert_eq!(status(&project, &["--trust", &other]).0, "not_started");
    project.script("check.sh", "true # and more");
    assert_eq!(status(&project, &["--trust", &digest]).0, "not_started");
    // It was for one run.
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
fn a_repository_has_no_word_in_its_own_trust() {
    for key in ["trust: true", "trusted: [check]", "durability: unsafe", "hooks_trusted: yes"] {
        let project = Project::with_config(&format!("{key}\n{CHECK}"));
        project.script("check.sh", "true");
        let run = project.run(&["hooks", "list"]);
        assert_eq!(run.code, 2, "{key}: {run:?}");
    }
    let project = Project::with_config(CHECK);
    project.script("check.sh", "touch ran");
    // Files of ours, in the repository: they mean nothing there.
    project.write("trust.json", "{\"version\":1,\"agreed\":[]}");
    std::fs::create_dir(project.root().join(".hookloop")).unwrap();
    project.complete("Goal");
    assert!(!project.root().join("ran").exists());
}

#[test]
fn a_racing_writer_gets_nothing_run() {
    let project = Project::with_check("echo agreed");
    race(&project, &[]);
}

#[test]
fn a_racing_writer_gets_nothing_run_where_a_digest_is_given() {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "echo agreed");
    let digest = project.json(&["hooks", "trust", "--show"])["digest"].as_str().unwrap().to_owned();
    race(&project, &["--trust", &digest]);
}

/// Someone swaps the script all the time: what runs is what was agreed to, or nothing.
fn race(project: &Project, args: &[&str]) {
    let rounds = std::env::var("HOOKLOOP_RACES").map_or(100, |text| text.parse().unwrap());
    let (script, over) = (project.root().join("check.sh"), AtomicBool::new(false));
    let good = std::fs::read(&script).unwrap();
    let bad = b"#!/bin/sh\necho evil; touch evil\n".to_vec();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                for bytes in [&bad, &good] {
                    let new = script.with_extension("new");
                    std::fs::write(&new, bytes).unwrap();
                    let same = std::fs::metadata(&script).unwrap().permissions();
                    std::fs::set_permissions(&new, same).unwrap();
                    std::fs::rename(&new, &script).unwrap();
                }
            }
        });
        let mut ran = 0;
        for _ in 0..rounds {
            let run = project.json(&[&["hooks", "run", "check"], args].concat());
            match run["status"].as_str().unwrap() {
                "passed" => {
                    assert_eq!(run["stdout"], "agreed\n");
                    ran += 1;
                }
                other => assert_eq!(other, "not_started", "{run}"),
            }
        }
        over.store(true, Ordering::SeqCst);
        assert!(ran > 0, "the race was never won by the good one");
    });
    assert!(!project.root().join("evil").exists());
}

/// What is shown is what there is: nothing moves the cursor, hides or pretends.
#[test]
fn the_screen_does_not_lie() {
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

/// A text as YAML writes what can't be seen.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        ' '..='~' => c.to_string(),
        c => format!("\\u{:04x}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

#[test]
fn a_change_is_shown_as_one() {
    let project = Project::with_check("true");
    project.configure(&CHECK.replace("./check.sh", "./check.sh --more"));
    let shown = project.ok(&["hooks", "trust", "--show"]);
    assert!(shown.contains("+ shell   ./check.sh --more {{task_id}}"), "{shown}");
    assert!(shown.contains("- shell   ./check.sh {{task_id}}"), "{shown}");
    assert!(shown.contains("modified"), "{shown}");
}
