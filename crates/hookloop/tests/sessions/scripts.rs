//! A session runs the bytes of the scripts that it started with, until its end.

use std::process::{Child, Stdio};

use hookloop_testkit::{SessionOutput, TestProject, eventually};

use super::{SOON, scripted, trusted_project};

const CONFIG: &str = "version: 1
hooks:
  stop:
    - {name: gate, room: here, command: ./gate.sh}
";
const RED: &str = "#!/bin/sh\necho red >> runs\nexit 2\n";
const GREEN: &str = "#!/bin/sh\necho green >> runs\nexit 0\n";
/// Waits in its first turn, and claims to be done when the file `go` exists.
const AGENT: &str = "#!/bin/sh
cat >> prompts
echo begun >> begun
if [ ! -f go ]; then sleep 97.531; fi
date +%N > work
echo '<promise>COMPLETE</promise>'
";

fn project() -> TestProject {
    let ignored = "runs\nbegun\nprompts\ngo\nturns.json\n";
    trusted_project(CONFIG, &[("gate.sh", RED), ("agent.sh", AGENT), (".gitignore", ignored)])
}

/// Starts a session and waits for the first turn of its agent.
fn start(project: &TestProject) -> Child {
    let args = ["run", "x", "--agent", "command:./agent.sh", "--gate-retries", "1"];
    let child = project.json_command(&args).stdin(Stdio::null()).spawn().unwrap();
    eventually("the agent begins", SOON, || !project.read("begun").is_empty());
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn trust(project: &TestProject) {
    let trusted = project.json_command(&["hooks", "trust", "--yes"]).output().unwrap();
    assert!(trusted.status.success(), "{trusted:?}");
}

fn resume(project: &TestProject, args: &[&str]) -> SessionOutput {
    let all: Vec<&str> = ["resume"].into_iter().chain(args.iter().copied()).collect();
    SessionOutput::from(project.json_command(&all).output().unwrap())
}

fn runs(project: &TestProject) -> Vec<String> {
    project.read("runs").lines().map(str::to_owned).collect()
}

#[test]
fn a_resumed_session_runs_the_scripts_that_it_began_with() {
    let project = project();
    let child = start(&project);
    project.write("gate.sh", GREEN);
    trust(&project);
    kill(child);
    project.write("go", "");
    let resumed = resume(&project, &[]);
    assert_eq!((resumed.code, resumed.outcome()), (3, "needs_human"), "{}", resumed.stderr);
    assert_eq!(runs(&project), ["red", "red"]);
    let drift = resumed.all("trust_drift_detected");
    assert!(drift[0]["changed"][0].as_str().unwrap().ends_with("gate.sh"), "{drift:?}");
}

#[test]
fn changed_scripts_are_run_after_resume_with_changed_hooks() {
    let project = project();
    let child = start(&project);
    project.write("gate.sh", GREEN);
    kill(child);
    // The new bytes must be trusted, too.
    let refused = resume(&project, &["--with-changed-hooks"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("not trusted"), "{}", refused.stderr);
    trust(&project);
    project.write("go", "");
    let resumed = resume(&project, &["--with-changed-hooks"]);
    assert_eq!((resumed.code, resumed.outcome()), (0, "complete"), "{}", resumed.stderr);
    assert_eq!(runs(&project), ["green"]);
    assert_eq!(resumed.all("session_resumed")[0]["scripts"][0]["path"], "gate.sh");
}

/// A session that was resumed with other scripts runs these until its end.
#[test]
fn scripts_accepted_at_a_resume_are_used_until_the_session_ends() {
    let project = project();
    let child = start(&project);
    project.write("gate.sh", &RED.replace("red", "second"));
    trust(&project);
    kill(child);
    std::fs::remove_file(project.root().join("begun")).unwrap();
    let args = ["resume", "--with-changed-hooks"];
    let child = project.json_command(&args).stdin(Stdio::null()).spawn().unwrap();
    eventually("the agent begins", SOON, || !project.read("begun").is_empty());
    project.write("gate.sh", GREEN);
    trust(&project);
    kill(child);
    project.write("go", "");
    let resumed = resume(&project, &[]);
    assert_eq!(resumed.code, 3, "{}", resumed.stderr);
    assert_eq!(runs(&project), ["second", "second"]);
}

/// The session runs the bytes that it started with, even if the agent changes the script.
#[test]
fn a_script_changed_during_a_session_runs_with_its_trusted_content() {
    for change in [
        "printf '#!/bin/sh\\nexit 0\\n' > gate.sh",
        "rm gate.sh",
        "rm gate.sh; mkdir gate.sh",
        "printf '#!/bin/sh\\nexit 0\\n' > o; chmod +x o; ln -sf o gate.sh",
        "ln -sf /bin/true gate.sh",
        "chmod -x gate.sh; echo plain > gate.sh",
        "head -c 5000000 /dev/zero > gate.sh",
    ] {
        let project = project();
        let agent =
            format!("#!/bin/sh\ncat >> prompts\n{change}\necho '<promise>COMPLETE</promise>'\n");
        project.write("agent.sh", &agent);
        let args = ["x", "--agent", "command:./agent.sh", "--gate-retries", "1"];
        let ran = super::run(&project, &args);
        assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{change}: {}", ran.stderr);
        assert_eq!(runs(&project), ["red", "red"], "{change}");
        assert!(ran.count("trust_drift_detected") >= 1, "{change}");
        let prompts = project.read("prompts");
        assert!(!prompts.contains("trust"), "{change}: {prompts}");
    }
}

/// A word of a gate's command that named no file at the start of the session runs no file that
/// appears later.
#[test]
fn a_script_created_during_a_session_is_not_run() {
    let config = "version: 1
hooks:
  stop:
    - {name: gate, command: 'timeout 20 ./late.sh'}
";
    let agent = r"#!/bin/sh
cat > /dev/null
printf '#!/bin/sh\ntouch evil\n' > late.sh
chmod +x late.sh
echo '<promise>COMPLETE</promise>'
";
    let project = trusted_project(config, &[("agent.sh", agent)]);
    let args = ["x", "--agent", "command:./agent.sh", "--gate-retries", "0"];
    let ran = super::run(&project, &args);
    assert_eq!((ran.code, ran.outcome()), (3, "needs_human"), "{}", ran.stderr);
    assert!(project.root().join("late.sh").exists());
    assert!(!project.root().join("evil").exists());
}

/// Without the stored copies, the session cannot continue with its scripts and reports this.
#[test]
fn a_resume_without_the_stored_script_copies_needs_consent() {
    let project = project();
    let child = start(&project);
    project.write("gate.sh", GREEN);
    trust(&project);
    kill(child);
    project.write("go", "");
    let state = project.json(&["status"])["state"].clone();
    let kept = std::path::Path::new(state.as_str().unwrap()).join("trusted");
    std::fs::remove_dir_all(kept).unwrap();
    let refused = resume(&project, &[]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("gate.sh"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--with-changed-hooks"), "{}", refused.stderr);
    let resumed = resume(&project, &["--with-changed-hooks"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
}

/// A stored copy that does not match its digest is not run.
#[test]
fn an_altered_copy_of_a_trusted_script_is_not_run() {
    let project = project();
    let child = start(&project);
    project.write("gate.sh", GREEN);
    trust(&project);
    kill(child);
    project.write("go", "");
    let state = project.json(&["status"])["state"].clone();
    let kept = std::path::Path::new(state.as_str().unwrap()).join("trusted");
    for entry in std::fs::read_dir(kept).unwrap().flatten() {
        std::fs::write(entry.path().join("gate.sh"), GREEN).unwrap();
    }
    let refused = resume(&project, &[]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert_eq!(runs(&project), [""; 0]);
}

/// A session whose scripts are unchanged is resumed without further consent.
#[test]
fn a_session_with_unchanged_scripts_is_resumed_without_consent() {
    let project = project();
    kill(start(&project));
    project.write("go", "");
    let resumed = resume(&project, &[]);
    assert_eq!((resumed.code, resumed.outcome()), (3, "needs_human"), "{}", resumed.stderr);
    assert_eq!(runs(&project), ["red", "red"]);
    assert_eq!(resumed.count("trust_drift_detected"), 0);
    let later =
        scripted(&project, r#"[{"say": "<promise>COMPLETE</promise>"}]"#, &["--gate-retries", "0"]);
    assert_eq!(later.code, 3, "{}", later.stderr);
}

/// A reaction that may not run reports the reason in the agent's prompt, but not the command that
/// would allow it.
#[test]
fn an_untrusted_reaction_does_not_show_the_trust_command_to_the_agent() {
    let config = "version: 1
hooks:
  task_completed:
    - {name: note, command: ./note.sh, pipe_output: true}
";
    let agent = "#!/bin/sh\ncat >> prompts\necho '<promise>COMPLETE</promise>'\n";
    let project = trusted_project(config, &[("note.sh", "#!/bin/sh\n"), ("agent.sh", agent)]);
    for id in ["a", "b"] {
        project.json(&["task", "add", "Goal", "--id", id]);
    }
    project.write("note.sh", "#!/bin/sh\ntouch evil\n");
    let ran = super::run(&project, &["--tasks", "--agent", "command:./agent.sh"]);
    assert_eq!(ran.code, 6, "there is no gate: {}", ran.stderr);
    let prompts = project.read("prompts");
    assert!(prompts.contains("it changed since it was trusted"), "{prompts}");
    assert!(!prompts.contains("hooks trust"), "{prompts}");
    assert!(!project.root().join("evil").exists());
}
