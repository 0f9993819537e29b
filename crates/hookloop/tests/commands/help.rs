//! Help, usage errors, the prompt on standard input, and completions.

use serde_json::{Value, json};

use crate::cli::Project;

#[test]
fn help_shows_commands_in_groups_and_examples() {
    let project = Project::bare();
    let overview = project.ok(&["help"]);
    for group in ["Work:", "Tasks:", "Hooks and gates:", "Fleet:", "Administration:"] {
        assert!(overview.contains(&format!("\n{group}\n")), "{overview}");
    }
    assert!(!overview.contains("  rebuild"), "{overview}");
    assert!(project.ok(&["help", "all"]).contains("  rebuild"));
    let run = project.ok(&["help", "run"]);
    assert_eq!(run, project.ok(&["run", "--help"]));
    assert!(run.contains("Example:\n  hookloop run "), "{run}");
    assert!(project.ok(&["help", "task", "dep", "add"]).contains("Example:"));
    let unknown = project.fails(2, &["help", "hok"]);
    assert!(
        unknown.contains("unrecognized subcommand 'hok'") && unknown.contains("'hook'"),
        "{unknown}"
    );
}

/// Shows each hook point and event type that an example of the help names.
#[test]
fn help_examples_name_hook_points_and_event_types_that_exist() {
    let project = Project::new();
    for command in [&["hooks", "explain"][..], &["log"]] {
        let help = project.ok(&[&["help"], command].concat());
        let (_, example) = help.split_once("Example:\n  hookloop ").unwrap();
        let args: Vec<&str> = example.split_whitespace().collect();
        assert!(args.starts_with(command), "{example}");
        project.ok(&args);
    }
}

#[test]
fn usage_errors_are_json_with_the_json_option() {
    let project = Project::bare();
    let error = |args: &[&str]| -> Value {
        let run = project.run(args);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{args:?}: {run:?}");
        serde_json::from_str(&run.stderr).unwrap()
    };
    let unknown = error(&["task", "lst", "--json"]);
    assert_eq!(unknown["error"]["type"], "usage");
    assert_eq!(unknown["error"]["message"], "unrecognized subcommand 'lst'");
    assert!(unknown["error"]["hint"].as_str().unwrap().contains("'list'"), "{unknown}");
    let missing = error(&["--json", "task", "show"]);
    assert!(missing["error"]["message"].as_str().unwrap().contains("<TASK>"), "{missing}");
    assert_eq!(error(&["--json"])["error"]["type"], "usage");
}

#[test]
fn version_names_commit_and_target_and_its_short_form_only_the_version() {
    let project = Project::bare();
    let short = project.ok(&["-V"]);
    assert_eq!(short.lines().count(), 1, "{short}");
    let long = project.ok(&["--version"]);
    assert!(long.starts_with(short.trim()), "{long}");
    assert!(long.contains("\ncommit: ") && long.contains("\ntarget: "), "{long}");
}

#[test]
fn a_prompt_is_read_from_standard_input() {
    let project = Project::new();
    project.write("turns.json", r#"[{"say": "Done.\n<promise>COMPLETE</promise>"}]"#);
    let args = ["run", "-", "--agent", "scripted:turns.json", "--no-changes-ok", "--json"];
    let ran = project.run_with_input(&args, "Read this prompt");
    assert_eq!(ran.code, 6, "{ran:?}");
    assert_eq!(
        project.event("session_started")["data"]["work"],
        json!({"prompt": "Read this prompt"})
    );
    let empty = project.run_with_input(&args, " \n");
    assert!(empty.code == 2 && empty.stderr.contains("the prompt is empty"), "{empty:?}");
    let long = project.run_with_input(&args, &"x".repeat(1024 * 1024 + 1));
    assert!(long.code == 2 && long.stderr.contains("1048576 bytes"), "{long:?}");
}

#[test]
fn a_directory_is_not_taken_for_a_command() {
    let project = Project::new();
    let error = project.fails(2, &["-C", "status"]);
    assert!(error.contains("Usage:"), "{error}");
    assert!(project.fails(2, &["status", "-C"]).contains("a value is required"));
}

#[test]
fn a_shell_completes_names_of_the_project() {
    let project = Project::with_config("hooks: {stop: [{name: my-gate, command: 'true'}]}\n");
    project.add("Write the parser", &["--id", "parser"]);
    project.add("Write the printer", &["--id", "printer"]);
    let complete = |line: &[&str]| {
        let mut command = project.hookloop(&[]);
        command.args(["--"]).args(line);
        command
            .env("HOOKLOOP_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", (line.len() - 1).to_string());
        command.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_COMP_TYPE", "9");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let tasks = complete(&["hookloop", "task", "show", "p"]);
    assert!(tasks.contains("parser") && tasks.contains("printer"), "{tasks}");
    assert!(!complete(&["hookloop", "task", "show", "pr"]).contains("parser"));
    assert!(complete(&["hookloop", "hooks", "show", "my"]).contains("my-gate"));
    assert!(complete(&["hookloop", "run", "x", "--agent", "cl"]).contains("claude"));
    assert!(complete(&["hookloop", "re"]).contains("resume"));
    let elsewhere = tempfile::tempdir().unwrap();
    let root = project.root().to_str().unwrap().to_owned();
    let mut command = project.hookloop(&["--", "hookloop", "-C", &root, "task", "show", "p"]);
    command.current_dir(elsewhere.path()).env("HOOKLOOP_COMPLETE", "bash");
    let output = command.env("_CLAP_COMPLETE_INDEX", "5").env("_CLAP_IFS", "\n").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("parser"));
}

#[test]
fn completion_creates_no_state() {
    let project = Project::bare();
    project.write("hookloop.yaml", "version: 1\n");
    let mut command = project.hookloop(&["--", "hookloop", "task", "show", ""]);
    command.env("HOOKLOOP_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "3");
    assert!(command.env("_CLAP_IFS", "\n").status().unwrap().success());
    assert!(!project.home().join(".local/state/hookloop").exists());
}

#[test]
fn an_inherited_variable_of_completion_changes_no_command() {
    let project = Project::with_config("hooks: {stop: [{name: no, command: 'exit 2'}]}\n");
    project.trust();
    for value in ["bash", "1"] {
        let mut command = project.hookloop(&["hooks", "run", "no"]);
        let output =
            command.env("HOOKLOOP_COMPLETE", value).env("COMPLETE", value).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}

#[test]
fn a_usage_error_of_the_hook_command_exits_with_1_and_not_2() {
    let project = Project::bare();
    for args in [&["hook", "Stop", "--bogus"][..], &["hook", "Stop", "--bogus", "--json"]] {
        assert_eq!(project.run(args).code, 1, "{args:?}");
    }
}
