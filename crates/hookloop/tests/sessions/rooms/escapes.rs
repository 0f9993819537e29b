//! Gates that try to lead hookloop out of their room by links, and gates that try to use earlier work.

use std::fs;

use super::{assert_complete, assert_refused};
use crate::sessions::{scripted, trusted_project};

/// Runs a file of the work. A plain `sh attempt` would run the trusted bytes.
const ATTEMPT: &str = "eval \"$(cat attempt)\"";

/// Returns a turn that writes the attempt of the gate, and claims to be complete.
fn turn(attempt: &str) -> String {
    let turn = serde_json::json!({
        "write": {"attempt": attempt},
        "say": "<promise>COMPLETE</promise>",
    });
    turn.to_string()
}

/// The next gate gets these directories as mounts.
#[test]
fn a_gate_cannot_replace_the_directories_of_caches() {
    let config =
        format!("version: 1\nhooks:\n  stop:\n    - {{name: tests, command: '{ATTEMPT}'}}\n");
    let project = trusted_project(&config, &[("attempt", "true\n")]);
    let plant = "C=$(realpath \"$TMPDIR/../caches\") || exit 1
mkdir -p \"$C\"; rm -rf \"$C/shm\"; ln -s / \"$C/shm\"; ln -s / \"$C/new\"
for d in \"$C\"/*; do mv \"$d\" \"$d.old\"; done
exit 1
";
    let home = project.root().parent().unwrap().to_owned();
    let victim = home.join("victim");
    let used = format!("echo x > /dev/shm{v}; echo x > {v}; test ! -e {v}\n", v = victim.display());
    let turns = format!("[{}, {}]", turn(plant), turn(&used));
    let ran = scripted(&project, &turns, &["--gate-retries", "1"]);
    assert_complete(&ran);
    assert!(!victim.exists(), "a gate wrote outside of its room");
}

#[test]
fn a_gate_cannot_lead_hookloop_to_another_directory_by_its_report() {
    let config = format!(
        "version: 1
hooks:
  stop:
    - {{name: tests, command: '{ATTEMPT}', retry: {{attempts: 2, backoff: 1ms}}}}
"
    );
    let project = trusted_project(&config, &[("attempt", "true\n")]);
    let precious = project.root().parent().unwrap().join("precious");
    fs::create_dir_all(precious.join("below")).unwrap();
    fs::write(precious.join("below/file"), "1\n").unwrap();
    let attempt = format!(
        "D=$(dirname \"$HOOKLOOP_REPORT\"); rm -rf \"$D\"; ln -s {} \"$D\"; exit 1\n",
        precious.display()
    );
    let ran = scripted(&project, &format!("[{}]", turn(&attempt)), &["--gate-retries", "0"]);
    assert_refused(&ran);
    assert_eq!(fs::read_to_string(precious.join("below/file")).unwrap(), "1\n");
}

/// In a clean checkout of the tree, the gate fails.
#[test]
fn a_gate_that_passed_among_files_of_refused_work_proves_nothing_for_another_session() {
    let config =
        format!("version: 1\nhooks:\n  stop:\n    - {{name: tests, command: '{ATTEMPT}'}}\n");
    let files = [("attempt", "true\n"), (".gitignore", "build\n")];
    let project = trusted_project(&config, &files);
    let turns = format!("[{}, {}]", turn("touch build; false\n"), turn("test -f build\n"));
    let ran = scripted(&project, &turns, &["--gate-retries", "1"]);
    assert_complete(&ran);
    let receipts = ran.all("receipt_recorded");
    assert_eq!(receipts.last().unwrap()["room"]["build"], "warm");
    let claim = r#"[{"say": "<promise>COMPLETE</promise>"}]"#;
    let ran = scripted(&project, claim, &["--gate-retries", "0"]);
    assert_refused(&ran);
}
