//! Diagnostics: failures that a command survives are reported on request, or in the file of the
//! project.

use std::fs;
use std::path::PathBuf;

use crate::cli::{ProgramOutput, Project};
use crate::operators::{RUN, project, to};

/// The maximum size of the file, as documented.
const FILE_BYTES_MAX: usize = 1024 * 1024;
const HIDDEN: &str = "the record of the log's head is not written";

/// Returns a project whose record of the log's head can't be written; no command fails because of
/// it.
fn with_hidden_failure() -> Project {
    let project = project();
    let record = project.state().join("hookloop.head");
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    project
}

fn add(project: &Project, options: &[&str], variables: &[(&str, &str)]) -> ProgramOutput {
    let mut command = project.hookloop(&[&["task", "add", "Goal"], options].concat());
    command.envs(variables.iter().copied()).output().unwrap().into()
}

fn file(project: &Project) -> PathBuf {
    project.state().join("diagnostics.log")
}

#[test]
fn a_nonfatal_failure_is_shown_only_with_verbose_or_hookloop_log() {
    let project = with_hidden_failure();
    let silent = add(&project, &[], &[]);
    assert_eq!((silent.code, silent.stderr.as_str()), (0, ""));
    assert!(!file(&project).exists(), "a one-shot command makes no file");
    let by_variable = [("HOOKLOOP_LOG", "hookloop_store=warn")];
    for (options, variables) in [(&["-v"][..], &[][..]), (&["-vv"], &[]), (&[], &by_variable)] {
        let run = add(&project, options, variables);
        assert!(run.code == 0 && run.stdout == silent_answer(&run), "{run:?}");
        let line = run.stderr.lines().find(|line| line.contains(HIDDEN));
        let line = line.unwrap_or_else(|| panic!("{options:?}: {run:?}"));
        assert!(line.contains(" WARN hookloop_store::recorded_head: "), "{line}");
        assert!(line.contains("path=") && line.contains("hookloop.head error="), "{line}");
    }
    let off = add(&project, &[], &[("HOOKLOOP_LOG", "hookloop_git=debug")]);
    assert_eq!((off.code, off.stderr.as_str()), (0, ""));
}

/// Returns the answer, which contains only the task's id, with diagnostics or without.
fn silent_answer(run: &ProgramOutput) -> String {
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 1, "{run:?}");
    run.stdout.clone()
}

#[test]
fn main_steps_are_shown_with_two_verbose_flags() {
    let project = project();
    let run = project.run(&[&RUN[..], &["-vv"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    for step in ["project opened", "the log opens", "a hook starts hook=", "a hook ended hook="] {
        assert!(run.stderr.contains(step), "{step}: {}", run.stderr);
    }
    let info = project.run(&[&RUN[..], &["-v"]].concat());
    assert!(info.code == 0 && !info.stderr.contains("DEBUG"), "{info:?}");
}

#[test]
fn an_invalid_log_directive_is_refused_with_an_example() {
    let project = project();
    let run = add(&project, &[], &[("HOOKLOOP_LOG", "hookloop=loud")]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("HOOKLOOP_LOG can't be read: `hookloop=loud`"), "{}", run.stderr);
    assert!(run.stderr.contains("HOOKLOOP_LOG=hookloop=debug,async_nats=info"), "{}", run.stderr);
    // An agent takes exit code 2 for the refusal of a hook.
    let mut hook = project.hookloop(&["hook", "stop"]);
    let hook = hook.env("HOOKLOOP_LOG", "hookloop=loud").output().unwrap();
    assert_eq!(hook.status.code(), Some(1));
    assert_eq!(project.run(&["status", "-v", "-q"]).code, 2, "-v and -q exclude each other");
}

#[test]
fn diagnostics_contain_no_secrets_or_control_characters() {
    let project = with_hidden_failure();
    let state_home = project.home().join("hush-hush\u{1b}[2J");
    let own = [("XDG_STATE_HOME", state_home.to_str().unwrap()), ("MY_TOKEN", "hush-hush")];
    let mut first = project.hookloop(&["task", "add", "Goal", "--json"]);
    assert!(first.envs(own).output().unwrap().status.success());
    let mut status = project.hookloop(&["status", "--json"]);
    let status: ProgramOutput = status.envs(own).output().unwrap().into();
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    let record = PathBuf::from(status["state"].as_str().unwrap()).join("hookloop.head");
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    let run = add(&project, &["-v"], &own);
    assert!(run.code == 0 && run.stderr.contains(HIDDEN), "{run:?}");
    assert!(run.stderr.contains("[redacted:MY_TOKEN]"), "{}", run.stderr);
    assert!(!run.stderr.contains("hush-hush") && !run.stderr.contains('\u{1b}'), "{}", run.stderr);
}

#[test]
fn a_session_leaves_its_warnings_in_a_file_of_limited_size() {
    let project = with_hidden_failure();
    let path = file(&project);
    let old = format!("{}\n", "x".repeat(FILE_BYTES_MAX - 1));
    fs::write(&path, &old).unwrap();
    let run = project.run(&RUN);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(fs::read_to_string(path.with_extension("log.1")).unwrap() == old, "the older file");
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains(HIDDEN) && written.len() < FILE_BYTES_MAX, "{written}");
    assert!(written.lines().all(|line| line.contains(" WARN ")), "{written}");
    let told = project.run(&["doctor"]).stdout;
    assert!(told.contains(&format!("warnings are in {}", path.display())), "{told}");
    // With -v, diagnostics go to standard error instead of the file.
    fs::remove_file(&path).unwrap();
    let run = project.run(&[&RUN[..], &["-v"]].concat());
    assert!(run.stderr.contains(HIDDEN) && !path.exists(), "{run:?}");
}

#[test]
fn hook_output_for_an_agent_contains_no_diagnostics() {
    let project = with_hidden_failure();
    let cwd = project.root();
    let payload = serde_json::json!({
        "session_id": "c1", "hook_event_name": "Stop", "cwd": cwd, "transcript_path": "/nowhere",
    });
    let run = project.run_by_agent(&["hook", "stop", "-vv"], &payload.to_string());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let written = fs::read_to_string(file(&project)).unwrap();
    assert!(written.contains("project opened") && written.contains(HIDDEN), "{written}");
}

#[test]
fn agents_and_hooks_do_not_inherit_hookloop_log() {
    let hook = "hooks: {stop: [{name: seen, room: here, command: 'env > hook-seen'}]}\n";
    let project = Project::with_config(hook);
    project.ok(&["hooks", "trust", "--yes"]);
    let turn = r#"[{"run": "env > agent-seen", "say": "Done.\n<promise>COMPLETE</promise>"}]"#;
    project.write("turns.json", turn);
    let ran = project.hookloop(&RUN).env("HOOKLOOP_LOG", "off").output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    for name in ["agent-seen", "hook-seen"] {
        let seen = fs::read_to_string(project.root().join(name)).unwrap();
        assert!(seen.contains("HOOKLOOP_SESSION=") && !seen.contains("HOOKLOOP_LOG"), "{seen}");
    }
}

#[test]
fn quiet_hides_warnings_and_keeps_errors() {
    let project = project();
    // No server listens at this address.
    let gone = "http://127.0.0.1:9";
    let told: ProgramOutput = to(&project, gone, &RUN).output().unwrap().into();
    assert!(told.code == 0 && told.stderr.starts_with("warning: "), "{told:?}");
    let mut quiet = to(&project, gone, &[&["-q"], &RUN[..]].concat());
    let quiet: ProgramOutput = quiet.env("HOOKLOOP_LOG", "debug").output().unwrap().into();
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    let failed = project.run(&["task", "show", "nope", "--quiet"]);
    assert!(failed.code == 1 && failed.stderr.starts_with("error: "), "{failed:?}");
}

#[test]
fn log_lines_and_diagnostics_do_not_share_standard_error() {
    let project = with_hidden_failure();
    let run = project.run(&[&RUN[..], &["--log-format", "json", "-vv"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    for line in run.stderr.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
    assert!(!run.stderr.is_empty());
    let written = fs::read_to_string(file(&project)).unwrap();
    assert!(written.contains("project opened") && written.contains(HIDDEN), "{written}");
}

#[test]
fn a_failed_command_prints_its_error_once() {
    let failed = project().run(&["task", "show", "nope", "-v"]);
    assert_eq!((failed.code, failed.stderr.matches("nope").count()), (1, 1), "{failed:?}");
}
