//! T20, T21: the data that a hook can read, and the part of its output that is stored.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};

use crate::cli::Project;

const PLANTED: usize = 200;
const SECRETS: usize = 1_000;

/// T20: a hook has exactly the declared environment, files and directory.
#[test]
fn a_hook_has_only_the_declared_environment_files_and_directory() {
    let project = Project::with_config(
        "hooks:\n  stop:\n    - {name: check, command: [./see], env: {MODE: quick}, cwd: sub}\n",
    );
    fs::create_dir(project.root().join("sub")).unwrap();
    project.write(
        "sub/see",
        "#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/environ > ../environ\ncd -P . && pwd > ../cwd\nls /proc/self/fd > ../files\nreadlink /proc/$$/fd/[012] > ../ends\ncat > ../input\n",
    );
    let see = project.root().join("sub/see");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(see, mode).unwrap();
    project.trust();
    // The program that starts the hook has open files that are not closed on exec.
    let mut command = project.command("sh");
    command.args(["-c", "exec 7< hookloop.yaml 8> spare; exec hookloop hooks run check --json"]);
    for number in 0..PLANTED {
        command.env(format!("PLANTED_{number}"), format!("planted-secret-{number}"));
    }
    command
        .env("ANTHROPIC_API_KEY", "planted-secret-key")
        .env("LD_LIBRARY_PATH", "/planted-secret");
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"passed\""), "{output:?}");

    let read = |name: &str| fs::read_to_string(project.root().join(name)).unwrap();
    let root = project.root().canonicalize().unwrap();
    let expected: BTreeSet<String> = [
        "CI=1".to_owned(),
        format!("CLAUDE_PROJECT_DIR={}", root.display()),
        format!("HOOKLOOP_PROJECT={}", root.display()),
        "HOOKLOOP_HOOK=check".to_owned(),
        "HOOKLOOP_POINT=stop".to_owned(),
        "HOOKLOOP_TASK_ID=".to_owned(),
        "MODE=quick".to_owned(),
        "TERM=xterm-256color".to_owned(),
        "TZ=UTC".to_owned(),
        "USER=tester".to_owned(),
    ]
    .into();
    let environ = read("environ");
    let is_of_the_test = |line: &str| line.starts_with("PATH=") || line.starts_with("HOME=");
    let mut seen: BTreeSet<String> =
        environ.lines().filter(|line| !is_of_the_test(line)).map(str::to_owned).collect();
    // The report of each run has a directory of its own.
    for report in ["HOOKLOOP_REPORT=/", "PYTEST_ADDOPTS=--junitxml=/"] {
        let count = seen.len();
        seen.retain(|line| !line.starts_with(report));
        assert_eq!(seen.len(), count - 1, "{report}");
    }
    assert_eq!(seen, expected);
    assert_eq!(read("cwd").trim(), root.join("sub").to_str().unwrap());
    // The files of a program that the hook starts; the last one is the directory that it lists.
    assert_eq!(read("files").lines().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert!(read("ends").lines().all(|end| end.starts_with("pipe:") || end.ends_with("/ends")));
    assert!(!read("input").contains("planted-secret"));
}

#[test]
fn a_hook_cwd_that_links_out_of_the_project_is_refused() {
    let project = Project::with_config(
        "hooks:\n  stop:\n    - {name: check, command: touch ran, cwd: sub}\n",
    );
    let outside = project.root().parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, project.root().join("sub")).unwrap();
    project.trust();
    let run = project.try_hook(&["check"]);
    assert_eq!(
        (&run["status"], &run["verdict"]),
        (&"not_started".into(), &"block".into()),
        "{run}"
    );
    assert!(run["reason"].as_str().unwrap().contains("leads out of the project"), "{run}");
    assert!(!outside.join("ran").exists());
    // A link within the project is a directory like any other.
    fs::remove_file(project.root().join("sub")).unwrap();
    fs::create_dir(project.root().join("real")).unwrap();
    std::os::unix::fs::symlink("real", project.root().join("sub")).unwrap();
    assert_eq!(project.try_hook(&["check"])["verdict"], "pass");
    assert!(project.root().join("real/ran").exists());
}

/// A token whose value is not declared is recognized by its format.
#[test]
fn tokens_of_known_formats_are_redacted_in_stored_files() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: './print.sh'}\n",
    );
    let body = "aB3dE6gH9kL2".repeat(4);
    let tokens = [
        format!("ghp_{}", &body[..36]),
        format!("AKIA{}", &body[..16].to_uppercase()),
        format!("sk-ant-api03-{body}"),
    ];
    project.script("print.sh", "cat tokens; cat tokens >&2");
    project.write("tokens", &tokens.join("\n"));
    project.trust();
    let id = project.add("Goal", &[]);
    project.ok(&["task", "complete", &id]);
    let kept = files_below(&project.state());
    let stdout = kept.iter().find(|file| file.ends_with("stdout")).unwrap();
    let stdout = fs::read_to_string(stdout).unwrap();
    let markers = "[redacted:github-token]\n[redacted:aws-key]\n[redacted:anthropic-key]";
    assert_eq!(stdout, markers);
    for file in kept {
        let bytes = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let found = tokens.iter().find(|token| text.contains(token.as_str()));
        assert_eq!(found, None, "{}", file.display());
    }
}

/// T21: a thousand secrets, each in five forms and split anywhere, are not stored anywhere.
#[test]
fn no_encoding_of_a_secret_is_stored() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: './print.sh', timeout: 60s}\n",
    );
    // The script prints in chunks of odd sizes, so that reads end within secrets.
    project.script(
        "print.sh",
        "dd if=forms bs=997 status=none; dd if=forms bs=13 count=3000 status=none >&2; exit 3",
    );
    let secrets: Vec<String> = (0..SECRETS).map(secret).collect();
    let mut text = String::new();
    let mut forms = Vec::new();
    for secret in &secrets {
        let json = serde_json::to_string(secret).unwrap();
        let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let all = [
            secret.clone(),
            BASE64.encode(secret.as_bytes()),
            BASE64URL_NOPAD.encode(secret.as_bytes()),
            HEXLOWER.encode(secret.as_bytes()),
            json.trim_matches('"').to_owned(),
            percent,
        ];
        text += &format!("{}\n", all.join(" "));
        forms.extend(all);
    }
    fs::write(project.root().join("forms"), &text).unwrap();
    project.trust();
    let id = project.add("Goal", &[]);
    let mut command = project.hookloop(&["task", "complete", &id]);
    for (number, secret) in secrets.iter().enumerate() {
        command.env(format!("N{number}_TOKEN"), secret);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(project.logged("hook_ran")[0]["data"]["exit_code"], 3);

    let kept: Vec<PathBuf> = files_below(&project.state());
    assert!(kept.iter().any(|file| file.ends_with("stdout")), "{kept:?}");
    let stdout = kept.iter().find(|file| file.ends_with("stdout")).unwrap();
    let stdout = fs::read_to_string(stdout).unwrap();
    assert_eq!(stdout.lines().count(), SECRETS, "text without secrets is kept");
    assert!(stdout.contains("[redacted:N999_TOKEN]"));
    let mut places: Vec<Vec<u8>> = kept.iter().map(|file| fs::read(file).unwrap()).collect();
    places.extend([output.stdout, output.stderr]);
    for place in places {
        let place = String::from_utf8_lossy(&place);
        // Each form contains a unique number, so one search for all forms is quick.
        let found = forms.iter().find(|form| place.contains(form.as_str()));
        assert_eq!(found, None);
    }
}

/// Returns a secret with a unique number, and with characters that encodings change.
fn secret(number: usize) -> String {
    let mixed = number.wrapping_mul(2_654_435_761) % 0xffff_ffff;
    format!("s{number}/\"{mixed:08x}\\+é{:08x}", mixed.rotate_left(13) % 0xffff_ffff)
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files
}
