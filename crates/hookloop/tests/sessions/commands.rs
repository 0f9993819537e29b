//! The commands as a user types them.

use hookloop_testkit::{ProgramOutput, TestProject};

use super::{run, scripted, trusted_project};
use crate::support::empty_project;

/// Runs the program without `--json`; returns the exit code and both streams.
pub(crate) fn plain(project: &TestProject, args: &[&str]) -> (i32, String, String) {
    let ProgramOutput { code, stdout, stderr } = project.run(args);
    (code, stdout, stderr)
}

#[test]
fn the_demo_shows_a_gate_that_refuses() {
    let project = empty_project();
    let began = std::time::Instant::now();
    let (code, out, err) = plain(&project, &["demo"]);
    assert!(began.elapsed() < std::time::Duration::from_secs(30));
    assert_eq!(code, 0, "{out}{err}");
    let parts = [
        "iteration 1",
        "sent back",
        "iteration 2",
        "the gate passes",
        "complete after 2",
        "receipt: tests passed",
    ];
    let places: Vec<_> = parts
        .iter()
        .map(|part| out.find(part).unwrap_or_else(|| panic!("{part}: {out}")))
        .collect();
    assert!(places.is_sorted(), "{out}");
}

#[test]
fn invalid_session_arguments_are_refused_with_a_hint() {
    let project = trusted_project("version: 1\n", &[]);
    let check = |args: &[&str], code: i32, part: &str| {
        let (found, _, err) = plain(&project, args);
        assert!(found == code && err.contains(part), "{args:?}: {found} {err}");
    };
    check(&["run", "x"], 2, "--agent claude");
    check(&["run", "x", "--agent", "clod"], 2, "there is no agent `clod`");
    check(&["run", "x", "--agent", "scripted:none.json"], 2, "none.json");
    check(
        &["run", "x", "--agent", "command:true", "--stop-when", "never"],
        2,
        "`never` is not a stop condition",
    );
    check(&["run"], 2, "required");
    check(&["run", "--spec", "nope.md", "--agent", "command:true"], 2, "nope.md");
    check(&["resume"], 1, "no unfinished session");
    check(&["resume", "zzz"], 1, "hookloop sessions list");
    check(&["message", "hi"], 1, "no unfinished session");
    check(&["why", "zzz"], 1, "no session and no task");
    check(&["why"], 1, "run `hookloop run \"…\" --agent claude`");
    project.write("turns.json", "[{\"sya\": 1}]");
    check(&["run", "x", "--agent", "scripted:turns.json"], 2, "sya");
    project.write("hookloop.yaml", "version: 1\nloop:\n  stop_when: never\n");
    check(&["run", "x", "--agent", "command:true"], 2, "hookloop.yaml:3");
}

#[test]
fn a_custom_prompt_template_is_rendered_and_its_mistakes_fail_the_turn() {
    let project = trusted_project(
        "version: 1\nloop:\n  prompt_template: prompt.md\n  stop_when: turn\n",
        &[],
    );
    project.write("prompt.md", "{{ session }} / {{ iteration }} / {{ work }}");
    project.write("agent.sh", "#!/bin/sh\ncat > prompt\n");
    let ran = run(&project, &["do it", "--agent", "command:./agent.sh", "--name", "mine"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(project.read("prompt"), "mine / 1 / do it");
    project.write("prompt.md", "{{ sesion }}");
    let ran = run(&project, &["do it", "--agent", "command:./agent.sh", "--max-errors", "1"]);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.all("turn_ended")[0]["error"].as_str().unwrap().contains("template"));
}

#[test]
fn a_prompt_template_that_cannot_be_read_starts_no_session() {
    let config = "version: 1\nloop: {prompt_template: prompt.md, stop_when: turn}\n";
    let project = trusted_project(config, &[]);
    let refused = |why: &str| {
        let before = project.json_lines(&["log", "--all"]).len();
        let (code, _, error) = plain(&project, &["run", "do it", "--agent", "command:true"]);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains("error: the prompt template can't be read: "), "{error}");
        assert!(error.contains(&format!("prompt.md: {why}")), "{error}");
        assert_eq!(project.json_lines(&["log", "--all"]).len(), before, "{error}");
    };
    refused("No such file");
    project.write("prompt.md", &"x".repeat(256 * 1024 + 1));
    refused("it has 262145 bytes");
    assert_eq!(project.json(&["sessions", "list"]), serde_json::json!([]));
}

#[test]
fn sessions_are_listed_shown_and_explained() {
    let project = trusted_project(
        "version: 1\nhooks:\n  stop:\n    - {name: gate, command: 'exit 2'}\n",
        &[],
    );
    scripted(&project, r#"[{"say": "<promise>COMPLETE</promise>"}]"#, &["--gate-retries", "0"]);
    let (_, list, _) = plain(&project, &["sessions", "list"]);
    assert!(list.contains("needs_human"), "{list}");
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    let (_, shown, _) = plain(&project, &["sessions", "show", &id[..5]]);
    for part in ["iteration 1", "claims to be done", "sent back", "needs a human"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let (_, why, _) = plain(&project, &["why", &id]);
    assert!(why.contains("gates still fail") && why.contains("fails: gate"), "{why}");
    // The view can be rebuilt from the log.
    assert_eq!(project.json(&["rebuild"])["equal"], true);
}

#[test]
fn control_characters_in_hook_output_do_not_reach_the_terminal() {
    let say = r#"#!/bin/sh
printf '{"continue": false, "stopReason": "look \\u001b]0;pwned\\u0007 \\u202e here"}'
"#;
    let config = "version: 1\nhooks:\n  stop:\n    - {name: gate, command: ./gate.sh}\n";
    let project = trusted_project(config, &[("gate.sh", say)]);
    project.write("turns.json", r#"[{"say": "<promise>COMPLETE</promise>"}]"#);
    let (code, out, _) = plain(&project, &["run", "x", "--agent", "scripted:turns.json"]);
    assert_eq!(code, 3, "{out}");
    let id = project.json(&["sessions", "list"])[0]["id"].as_str().unwrap().to_owned();
    for text in
        [out, plain(&project, &["sessions", "show", &id]).1, plain(&project, &["why", &id]).1]
    {
        assert!(
            text.contains("look") && !text.contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{text:?}"
        );
    }
}

#[test]
fn a_secret_that_the_configuration_gives_an_agent_is_not_kept() {
    let project = trusted_project("version: 1\n", &[]);
    let own = project.root().parent().unwrap().join("home/.config/hookloop");
    std::fs::create_dir_all(&own).unwrap();
    let config = "version: 1
agents:
  mine: {type: command, command: 'echo \"it is $MY_TOKEN\"', env: {MY_TOKEN: hush-hush-123}}
agent: mine
";
    std::fs::write(own.join("config.yaml"), config).unwrap();
    let ran = run(&project, &["say it", "--stop-when", "turn"]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    let message = ran.all("turn_ended")[0]["message"].as_str().unwrap();
    assert!(message.starts_with("it is ") && !message.contains("hush"), "{message}");
}

#[test]
fn a_command_agent_is_any_line_for_the_shell() {
    let project = trusted_project("version: 1\n", &[("say.sh", "echo said")]);
    let home = project.root().parent().unwrap().join("home");
    std::fs::write(home.join("say"), "#!/bin/sh\necho said\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.join("say"), mode).unwrap();
    for line in [
        "cd . && echo said",
        "{ echo said; }",
        "(echo said)",
        "! false && echo said",
        "if true; then echo said; fi",
        "for word in said; do echo $word; done",
        "while read -r line; do :; done; echo said",
        "case x in x) echo said;; esac",
        "exec echo said",
        "export WORD=said; echo $WORD",
        "WORD=said; echo $WORD",
        ". ./say.sh",
        "~/say",
        ": nothing; echo said",
        "eval 'echo said'",
        "\"echo\" said",
        "echo said|cat",
    ] {
        let ran =
            run(&project, &["x", "--stop-when", "turn", "--agent", &format!("command:{line}")]);
        assert_eq!(ran.code, 6, "{line}: {}", ran.stderr);
        assert_eq!(ran.all("turn_ended")[0]["message"], "said", "{line}");
    }
    let ran =
        run(&project, &["x", "--stop-when", "turn", "--agent", "command:no-such-agent --now"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("no-such-agent"), "{}", ran.stderr);
}

/// The full id of a task has precedence over a session whose id starts with it.
#[test]
fn why_prefers_a_whole_id_to_the_start_of_another() {
    let project = trusted_project("version: 1\n", &[]);
    let ran = scripted(&project, r#"[{"say": "<promise>COMPLETE</promise>"}]"#, &[]);
    assert_eq!(ran.outcome(), "complete");
    let sessions = project.json(&["sessions", "list"]);
    let session = sessions[0]["id"].as_str().unwrap();
    let (task, other) = (&session[..2], format!("{}-x", &session[..4]));
    for id in [task, &other] {
        project.json(&["task", "add", "--id", id, "a title"]);
    }
    for (text, id) in [(task, task), (session, session), (&session[..6], session)] {
        assert_eq!(project.json(&["why", text])["id"], id);
    }
    let (_, _, said) = plain(&project, &["why", &session[..3]]);
    assert!(said.contains(&format!("the session {session} or the task {other}")), "{said}");
}

#[test]
fn a_run_with_an_empty_prompt_is_refused() {
    let project = trusted_project("version: 1\n", &[("turns.json", r#"[{"write": {"ran": ""}}]"#)]);
    for prompt in ["", " ", "\n\t "] {
        let (code, out, told) = plain(&project, &["run", prompt, "--agent", "scripted:turns.json"]);
        assert_eq!((code, out.as_str()), (2, ""), "{prompt:?}: {told}");
        assert!(told.contains("the prompt is empty"), "{told}");
        assert!(told.contains("run `hookloop run \""), "{told}");
    }
    assert_eq!(project.json(&["sessions", "list"]), serde_json::json!([]));
}
