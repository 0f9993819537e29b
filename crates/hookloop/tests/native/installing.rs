//! `hookloop install` and `hookloop uninstall` in the settings files of agents.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::Project;

const AGENTS: [(&str, &str); 3] = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
];

/// Settings of a user, with hooks for the same events.
const THEIRS: &str = "{\r\n\t// mine\r\n\t\"model\": \"x\", // a note\r\n\t\"hooks\": {\r\n\t\t\"Stop\": [\r\n\
    \t\t\t{ \"hooks\": [{ \"type\": \"command\", \"command\": \"make check\" }] },\r\n\t\t],\r\n\t\t\"AfterAgent\": []\r\n\
    \t}\r\n}";

/// Returns everything below a directory: files with their bytes, directories without.
fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path.clone());
                found.insert(path, None);
            } else {
                found.insert(path.clone(), Some(fs::read(&path).unwrap()));
            }
        }
    }
    found
}

/// Returns a project in which `file` contains `text`.
fn project_with(file: &str, text: &str) -> Project {
    let project = Project::new();
    fs::create_dir_all(project.root().join(file).parent().unwrap()).unwrap();
    project.write(file, text);
    project
}

fn forget(project: &Project) {
    fs::remove_file(project.home().join(".local/state/hookloop/installed.json")).unwrap();
}

#[test]
fn uninstall_removes_all_files_that_install_created() {
    for (agent, file) in AGENTS {
        let project = Project::new();
        let before = tree(&project.root());
        let printed = project.ok(&["install", agent, "--yes"]);
        assert!(printed.contains("enforced") && printed.contains("impossible"), "{printed}");
        let settings: Value =
            serde_json::from_slice(&fs::read(project.root().join(file)).unwrap()).unwrap();
        assert_eq!(settings["hooks"].as_object().unwrap().len(), 4);
        let skill = project.root().join(format!(".{agent}/skills/hookloop/SKILL.md"));
        assert!(fs::read_to_string(skill).unwrap().starts_with("---\nname: hookloop\n"));
        let installed = tree(&project.root());
        assert!(project.ok(&["install", agent, "--yes"]).contains("Nothing to do"));
        assert_eq!(tree(&project.root()), installed);
        project.ok(&["uninstall", agent, "--yes"]);
        assert_eq!(tree(&project.root()), before);
        let again = project.ok(&["uninstall", agent, "--yes"]);
        assert!(again.starts_with("hookloop is not installed"), "{again}");
    }
}

#[test]
fn uninstall_restores_the_settings_with_and_without_the_install_record() {
    for (agent, file) in AGENTS {
        for is_recorded in [true, false] {
            let project = project_with(file, THEIRS);
            fs::set_permissions(project.root().join(file), fs::Permissions::from_mode(0o640))
                .unwrap();
            project.ok(&["install", agent, "--yes"]);
            let installed = fs::read_to_string(project.root().join(file)).unwrap();
            assert!(
                installed.contains("\"make check\"") && installed.contains("--agent"),
                "{installed}"
            );
            assert_eq!(installed.matches('\n').count(), installed.matches("\r\n").count());
            if !is_recorded {
                forget(&project);
            }
            project.ok(&["uninstall", agent, "--yes"]);
            let path = project.root().join(file);
            assert_eq!(fs::read_to_string(&path).unwrap(), THEIRS, "{agent} {is_recorded}");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
            assert!(!project.root().join(format!(".{agent}/skills/hookloop")).exists());
        }
    }
}

#[test]
fn uninstall_keeps_edits_made_since_the_install() {
    let (agent, file) = AGENTS[0];
    let project = project_with(file, THEIRS);
    project.ok(&["install", agent, "--yes"]);
    let path = project.root().join(file);
    let edit = |text: &str| text.replace("\"model\": \"x\"", "\"model\": \"y\",\r\n\t\"more\": {}");
    fs::write(&path, edit(&fs::read_to_string(&path).unwrap())).unwrap();
    project.ok(&["uninstall", agent, "--yes"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), edit(THEIRS));
}

#[test]
fn install_asks_only_on_a_terminal() {
    let project = Project::new();
    let before = tree(&project.root());
    let run = project.run(&["install", "claude", "--project"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stdout.contains("+      { \"hooks\": [{ \"type\": \"command\""), "{run:?}");
    assert!(run.stderr.contains("run `hookloop install claude --project --yes"), "{run:?}");
    assert_eq!(tree(&project.root()), before);
    let seen = project.shell("echo n | script -qec 'hookloop install claude' /dev/null");
    assert!(seen.stdout.contains("Write these changes? [y/N]") && seen.code == 1, "{seen:?}");
    assert_eq!(tree(&project.root()), before);
    let seen = project.shell("echo y | script -qec 'hookloop install claude' /dev/null");
    assert!(seen.code == 0 && project.root().join(".claude/settings.json").exists(), "{seen:?}");
}

/// Checks that control characters in a repository's file do not reach the terminal.
#[test]
fn the_printed_install_diff_escapes_control_characters() {
    let project = project_with(
        ".claude/settings.json",
        "{\n  // \u{1b}]0;x\u{7}\n  \"a\": \"\u{202e}\"\n}\n",
    );
    let run = project.run(&["install", "claude"]);
    let root = project.root().display().to_string();
    let shown = run.stdout.replace(&root, "$W");
    let settings: String =
        shown.lines().take_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
    let entry = |event: &str| {
        format!(
            "+    \"{event}\": [\n+      {{ \"hooks\": [{{ \"type\": \"command\", \"command\": \"hookloop hook {event} \
             --agent claude\", \"timeout\": 3600 }}] }}\n+    ]"
        )
    };
    let entries: Vec<String> =
        ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"].map(entry).to_vec();
    let expected = format!(
        "$W/.claude/settings.json change\n@@ -1,4 +1,18 @@\n {{\n   // \\u{{1b}}]0;x\\u{{7}}\n-  \"a\": \"\\u{{202e}}\"\n\
         +  \"a\": \"\\u{{202e}}\",\n+  \"hooks\": {{\n{}\n+  }}\n }}\n",
        entries.join(",\n")
    );
    assert_eq!(settings, expected);
}

#[test]
fn invalid_settings_are_refused_and_left_unchanged() {
    let project = project_with(".claude/settings.json", "{\n  \"a\": oops\n}\n");
    let before = tree(&project.root());
    let error = project.fails(2, &["install", "claude", "--yes"]);
    assert!(error.contains("settings.json: line 2, column 8: "), "{error}");
    assert!(error.contains("hint: edit "), "{error}");
    assert_eq!(tree(&project.root()), before);
}

#[test]
fn symlinked_settings_are_followed_except_out_of_the_project() {
    let project = Project::new();
    let dotfiles = project.home().join("dotfiles");
    fs::create_dir_all(&dotfiles).unwrap();
    fs::create_dir(project.home().join(".claude")).unwrap();
    fs::write(dotfiles.join("claude.json"), "{}").unwrap();
    let link = project.home().join(".claude/settings.json");
    symlink(dotfiles.join("claude.json"), &link).unwrap();
    project.ok(&["install", "claude", "--user", "--yes"]);
    assert!(link.is_symlink());
    assert!(fs::read_to_string(dotfiles.join("claude.json")).unwrap().contains("--agent claude"));
    project.ok(&["uninstall", "claude", "--user", "--yes"]);
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(dotfiles.join("claude.json")).unwrap(), "{}");
    // A symbolic link in a repository must not lead out of it.
    let project = Project::new();
    fs::write(project.home().join("mine.json"), "{}").unwrap();
    fs::create_dir(project.root().join(".claude")).unwrap();
    symlink(project.home().join("mine.json"), project.root().join(".claude/settings.json"))
        .unwrap();
    symlink(project.home(), project.root().join(".codex")).unwrap();
    for agent in ["claude", "codex"] {
        let error = project.fails(1, &["install", agent, "--yes"]);
        assert!(error.contains("leads out of the project"), "{error}");
    }
    assert_eq!(fs::read_to_string(project.home().join("mine.json")).unwrap(), "{}");
}

#[test]
fn the_settings_directory_comes_from_the_agents_variable() {
    let project = Project::new();
    for (agent, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ] {
        let home = project.home().join(format!("{agent} home"));
        let mut command = project.hookloop(&["install", agent, "--user", "--yes"]);
        let output = command.env(variable, &home).output().unwrap();
        assert!(output.status.success() && home.join(file).exists(), "{output:?}");
    }
}

/// The entry starts hookloop by name if the shell finds it, else by its path.
#[test]
fn the_installed_hook_command_starts_the_installing_program() {
    let project = Project::new();
    let place = project.root().join("a b");
    fs::create_dir(&place).unwrap();
    let copy = place.join("hookloop");
    fs::copy(crate::cli::BINARY, &copy).unwrap();
    let output = project.command(&copy).args(["install", "gemini", "--yes"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let path = project.root().join(".gemini/settings.json");
    let settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let entry = &settings["hooks"]["AfterAgent"][0]["hooks"][0];
    let copy = copy.display();
    assert_eq!(entry["command"], format!("'{copy}' hook AfterAgent --agent gemini || exit 1"));
    assert_eq!(entry["timeout"], 3_600_000);
    // Runs the entry in a separate process, as an agent does.
    let typed = format!("echo '{{}}' | {}", entry["command"].as_str().unwrap());
    fs::write(project.root().join("agent.sh"), &typed).unwrap();
    let run = project.shell("timeout --foreground 60 bash agent.sh");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let list = || project.json(&["install", "--list"]);
    let expected = json!([{ "agent": "gemini", "scope": "project", "state": "installed", "file": path,
        "events": ["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"] }]);
    assert_eq!(list(), expected);
    fs::remove_dir_all(&place).unwrap();
    assert!(list()[0]["state"].as_str().unwrap().starts_with("broken: "), "{}", list());
    // Gemini would treat a shell's exit code 127 as a refusal.
    let run = project.shell(&format!("echo '{{}}' | {}", entry["command"].as_str().unwrap()));
    assert_eq!(run.code, 1, "{run:?}");
    // Installing again repairs the entries and removes the old ones.
    project.ok(&["install", "gemini", "--yes"]);
    assert_eq!(list()[0]["state"], "installed");
    assert_eq!(fs::read_to_string(&path).unwrap().matches("--agent gemini").count(), 4);
    project.ok(&["uninstall", "gemini", "--yes"]);
    assert!(!project.root().join(".gemini").exists());
}

#[test]
fn a_foreign_skill_of_the_same_name_is_kept() {
    let project = project_with(".codex/skills/hookloop/SKILL.md", "mine");
    let printed = project.ok(&["install", "codex", "--yes"]);
    assert!(printed.contains("SKILL.md: it does not belong to hookloop"), "{printed}");
    project.ok(&["uninstall", "codex", "--yes"]);
    let skill = project.root().join(".codex/skills/hookloop/SKILL.md");
    assert_eq!(fs::read_to_string(skill).unwrap(), "mine");
    assert!(!project.root().join(".codex/hooks.json").exists());
}

#[test]
fn install_refuses_unsupported_agents_and_missing_projects_with_a_hint() {
    let project = Project::bare();
    let error = project.fails(2, &["install", "opencode"]);
    assert!(
        error.contains("opencode is not supported") && error.contains("hookloop run"),
        "{error}"
    );
    let error = project.fails(2, &["install", "emacs"]);
    assert!(error.contains("hooks can't be installed for `emacs`"), "{error}");
    let error = project.fails(2, &["install", "claude"]);
    assert!(error.contains("hookloop install claude --user"), "{error}");
    let error = project.fails(2, &["install", "claude", "--project", "--yes"]);
    assert!(error.contains("hookloop init"), "{error}");
    assert_eq!(
        project.ok(&["install", "--list"]),
        "Nothing is installed. Start with: hookloop install claude\n"
    );
}
