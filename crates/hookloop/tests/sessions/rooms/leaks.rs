//! Rooms on a machine without mount namespaces: a gate can't read the agent's working directory.
//!
//! In each project, code works only with a file that git ignores. So it works in the working directory, and not in the
//! room. A gate that passes has read the working directory.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use hookloop_testkit::{SCRIPTED_AGENT, SessionOutput, TestProject, eventually};
use serde_json::Value;

use super::{DONE, assert_complete, assert_refused, gate, python_files};
use crate::sessions::{SOON, trusted_project};
use crate::support::PROGRAM;

/// Runs "$@" after a line of input.
const AFTER_A_LINE: &str = "read -r line && exec \"$@\"";
/// Runs "$@" as a process that can create neither a mount namespace nor a user namespace.
const WITHOUT_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
    exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \"$@\"";
/// Users of a container: hookloop starts no session in a namespace that has only one.
const USERS: &str = "0 0 65536\n";
/// Claims to be complete twice.
const DONE_TWICE: &str = r#"[
    {"say": "<promise>COMPLETE</promise>"},
    {"say": "Tried again.\n<promise>COMPLETE</promise>"}
]"#;

/// Runs the hookloop program in a user namespace that refuses mounts, as some containers do.
fn unmounted(project: &TestProject, args: &[&str]) -> Output {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut command = project.command("unshare");
    command.arg("--user");
    if !is_root {
        command.args(["--map-current-user", "--keep-caps"]);
    }
    command.args(["sh", "-c", AFTER_A_LINE, "sh", "sh", "-c", WITHOUT_NAMESPACES, "sh", PROGRAM]);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if is_root {
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let own = fs::read_link("/proc/self/ns/user").unwrap();
        let is_in_namespace = || fs::read_link(process.join("ns/user")).unwrap() != own;
        eventually("a user namespace", SOON, is_in_namespace);
        for map in ["uid_map", "gid_map"] {
            fs::write(process.join(map), USERS).unwrap();
        }
    }
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child.wait_with_output().unwrap()
}

/// Runs a session whose agent changes nothing.
fn run_unmounted(project: &TestProject, turns: &str, args: &[&str]) -> SessionOutput {
    let doctor = unmounted(project, &["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("rooms have paths of their own"), "{doctor}");
    assert!(doctor.contains("gates can write only to their room"), "{doctor}");
    project.write_turns(turns);
    let run = ["run", "work", "--no-changes-ok", "--agent", SCRIPTED_AGENT, "--json"];
    unmounted(project, &[&run, args].concat()).into()
}

/// Returns the reason of a session that ended because its gate used the working directory.
#[track_caller]
fn leak_of(project: &TestProject) -> String {
    let ran = run_unmounted(project, DONE_TWICE, &[]);
    assert_refused(&ran);
    assert!(ran.all("receipt_recorded").is_empty(), "a receipt for a leak: {}", ran.stderr);
    assert_eq!(ran.turns().len(), 1, "the agent got another turn");
    assert!(ran.all("output_piped").is_empty(), "the agent was told: {}", ran.stderr);
    let ended = ran.all("session_ended")[0].to_string();
    assert!(ended.contains("room_leak: gate `tests` "), "{ended}");
    assert!(ended.contains("`setup`") && ended.contains("`room: here`"), "{ended}");
    ended
}

/// Checks that the gate passes in the working directory, so that a leak would be green.
#[track_caller]
fn passes_here(project: &TestProject, config: &str) {
    project.write("hookloop.yaml", &config.replace("version: 1\n", "version: 1\nroom: here\n"));
    project.trust();
    let ran = run_unmounted(project, DONE, &["--gate-retries", "0"]);
    assert_complete(&ran);
    assert_eq!(ran.all("receipt_recorded")[0]["room"]["kind"], "here");
    project.write("hookloop.yaml", config);
    project.trust();
}

/// Returns the only receipt of a session with one claim.
#[track_caller]
fn receipt_of(ran: &SessionOutput) -> &Value {
    let receipts = ran.all("receipt_recorded");
    assert_eq!(receipts.len(), 1, "{}", ran.stderr);
    assert_eq!(receipts[0]["room"]["kind"], "clean");
    assert_eq!(receipts[0]["room"]["boxed"], true);
    receipts[0]
}

#[track_caller]
fn passes_in_room(project: &TestProject) {
    let ran = run_unmounted(project, DONE, &["--gate-retries", "0"]);
    assert_complete(&ran);
    assert_eq!(receipt_of(&ran)["status"], "passed");
}

fn real_root(project: &TestProject) -> PathBuf {
    project.root().canonicalize().unwrap()
}

/// A virtual environment beside the project that imports from `source`, as `pip install -e` makes it.
fn create_venv(project: &TestProject, source: &Path) {
    let venv = project.home().join("venv");
    let mut python = project.command("python3");
    let made = python.args(["-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let packages: Vec<PathBuf> = fs::read_dir(venv.join("lib"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("site-packages"))
        .collect();
    assert_eq!(packages.len(), 1, "{packages:?}");
    fs::write(packages[0].join("app.pth"), format!("{}\n", source.display())).unwrap();
}

#[test]
fn an_editable_install_of_the_working_directory_is_a_leak() {
    let config = gate("command: '\"$HOME\"/venv/bin/python -c \"import app\"'");
    let project = trusted_project(&config, &python_files());
    create_venv(&project, &real_root(&project).join("src"));
    passes_here(&project, &config);
    let ended = leak_of(&project);
    assert!(ended.contains("imports `app` from the working directory"), "{ended}");
}

/// A finder of setuptools does not list the directory, so Python names the file.
#[test]
fn an_editable_install_with_a_finder_is_a_leak() {
    let config = gate("command: '\"$HOME\"/venv/bin/python run.py'");
    let mut project = trusted_project(&config, &python_files());
    let app = real_root(&project).join("src/app.py");
    let finder = format!(
        "import importlib.util, sys\n\
         sys.path.insert(0, {:?})\n\
         spec = importlib.util.spec_from_file_location('app', {app:?})\n\
         spec.loader.exec_module(importlib.util.module_from_spec(spec))\n",
        app.parent().unwrap()
    );
    project.write("run.py", &finder);
    create_venv(&project, Path::new("/nowhere"));
    project.set_variable("PYTHONDONTWRITEBYTECODE", "");
    passes_here(&project, &config);
    let ended = leak_of(&project);
    assert!(ended.contains(app.to_str().unwrap()), "{ended}");
}

#[test]
fn a_virtual_environment_without_the_project_runs_in_the_room() {
    let command = "command: 'PYTHONPATH=src \"$HOME\"/venv/bin/python -c \"import app, json\"'";
    let files = [("src/app.py", "import helper\n"), ("src/helper.py", "answer = 42\n")];
    let project = trusted_project(&gate(command), &files);
    create_venv(&project, Path::new("/nowhere"));
    passes_in_room(&project);
}

#[test]
fn a_python_path_to_the_working_directory_leads_to_the_room() {
    let config = gate("command: 'python3 -c \"import app\"', env: [PYTHONPATH]");
    let mut project = trusted_project(&config, &python_files());
    let source = real_root(&project).join("src");
    project.set_variable("PYTHONPATH", source);
    passes_here(&project, &config);
    let ran = run_unmounted(&project, DONE, &["--gate-retries", "0"]);
    assert_refused(&ran);
    assert_eq!(receipt_of(&ran)["status"], "failed");
    let output = ran.all("hook_ran")[0].to_string();
    assert!(output.contains("No module named 'helper'"), "{output}");
}

/// A file with the path of the project, which hookloop does not change.
#[test]
fn a_python_path_in_the_command_of_a_gate_is_a_leak() {
    let config = gate("command: ./gate.sh");
    let project = trusted_project(&config, &python_files());
    let source = real_root(&project).join("src");
    let script = format!("#!/bin/sh\nPYTHONPATH={} python3 -c 'import app'\n", source.display());
    project.write("gate.sh", &script);
    passes_here(&project, &config);
    leak_of(&project);
}

/// `npm link` creates such a link.
#[test]
fn a_linked_package_of_the_working_directory_is_a_leak() {
    let config = gate("command: node check.js, env: [NODE_PATH]");
    let files = [
        (".gitignore", "helper.js\n"),
        ("package.json", "{\"name\": \"linked\", \"main\": \"index.js\"}\n"),
        ("index.js", "module.exports = require('./helper');\n"),
        ("helper.js", "module.exports = 42;\n"),
        ("check.js", "require('linked');\n"),
    ];
    let mut project = trusted_project(&config, &files);
    let packages = project.beside("packages");
    fs::create_dir(&packages).unwrap();
    symlink(real_root(&project), packages.join("linked")).unwrap();
    project.set_variable("NODE_PATH", packages);
    passes_here(&project, &config);
    let ended = leak_of(&project);
    assert!(ended.contains(real_root(&project).to_str().unwrap()), "{ended}");
}

#[test]
fn a_package_beside_the_project_is_usable_in_the_room() {
    let config = gate("command: node check.js, env: [NODE_PATH]");
    let mut project = trusted_project(&config, &[("check.js", "require('other');\n")]);
    let packages = project.beside("packages");
    fs::create_dir_all(packages.join("other")).unwrap();
    fs::write(packages.join("other/index.js"), "module.exports = 42;\n").unwrap();
    project.set_variable("NODE_PATH", packages);
    passes_in_room(&project);
}

/// A crate whose only test passes if `answer` is 42.
fn cargo_project(command: &str, answer: &str) -> TestProject {
    let config = gate(&format!("{command}, env: [CARGO_TARGET_DIR, RUSTUP_HOME, CARGO_HOME]"));
    let files = [
        (".gitignore", "target\n"),
        ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/lib.rs", "#[test]\nfn answers() { assert_eq!(include!(\"answer\"), 42); }\n"),
        ("src/answer", answer),
    ];
    let mut project = trusted_project(&config, &files);
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    for (name, directory) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
        let value = std::env::var_os(name).unwrap_or_else(|| home.join(directory).into());
        project.set_variable(name, value);
    }
    project
}

#[test]
fn a_target_directory_in_the_working_directory_leads_to_the_room() {
    for (answer, status) in [("42", "passed"), ("41", "failed")] {
        let mut project = cargo_project("command: cargo test --offline", answer);
        let target = real_root(&project).join("target");
        project.set_variable("CARGO_TARGET_DIR", target.clone());
        let ran = run_unmounted(&project, DONE, &["--gate-retries", "0"]);
        assert_eq!(receipt_of(&ran)["status"], status, "{}", ran.all("hook_ran")[0]);
        assert!(!target.exists(), "the gate wrote into the working directory");
    }
}

#[test]
fn a_target_directory_in_the_command_of_a_gate_is_a_leak() {
    let project = cargo_project("command: ./gate.sh", "42");
    let target = real_root(&project).join("target");
    let build = format!("CARGO_TARGET_DIR={} cargo test --offline", target.display());
    project.write("gate.sh", &format!("#!/bin/sh\n{build}\n"));
    let built = project.shell(&build);
    assert_eq!(built.code, 0, "{}", built.stderr);
    project.trust();
    let ended = leak_of(&project);
    assert!(ended.contains(target.to_str().unwrap()), "{ended}");
}

/// Tags, the base commit and the index are there, although the objects are below the hidden directory.
#[test]
fn git_works_in_a_room_that_is_not_mounted() {
    let script = "#!/bin/sh
set -e
[ \"$(git describe --tags)\" = v1 ]
[ \"$(git show HEAD:a)\" = 1 ]
[ \"$(git diff --cached --name-only HEAD | tr '\\n' ' ')\" = 'a ' ]
git diff --exit-code
git log --oneline HEAD > /dev/null
";
    let config = gate("command: ./gate.sh");
    let files = [("gate.sh", script), ("a", "1\n"), (".gitignore", "turns.json\n")];
    let project = trusted_project(&config, &files);
    project.git(&["tag", "v1"]);
    project.write("a", "2\n");
    passes_in_room(&project);
}

/// The agent's own failures go to the agent, even if their output names the project.
#[test]
fn a_failed_test_that_prints_the_path_of_the_project_is_no_leak() {
    let config = gate("command: ./gate.sh");
    let project = trusted_project(&config, &[("src/app.py", "")]);
    let app = real_root(&project).join("src/app.py");
    project
        .write("gate.sh", &format!("#!/bin/sh\necho 'FAILED {}: 1 != 2'; exit 1\n", app.display()));
    project.trust();
    let ran = run_unmounted(&project, DONE_TWICE, &["--gate-retries", "1"]);
    assert_refused(&ran);
    assert_eq!(ran.turns().len(), 2, "{}", ran.stderr);
    assert_eq!(ran.all("receipt_recorded").len(), 2);
    assert!(!ran.all("session_ended")[0].to_string().contains("room_leak"), "{}", ran.stderr);
}
