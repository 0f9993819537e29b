//! T2, T3, T6, T7, T8: whose consent counts, for which bytes, and in which directory.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::cli::{ProgramOutput, Project};
use crate::hooks::CHECK;

const USAGE: i32 = 2;
pub(crate) const UNTRUSTED: i32 = 3;

fn untrusted() -> Project {
    let project = Project::with_config(CHECK);
    project.script("check.sh", "touch ran");
    project
}

fn digest(project: &Project) -> String {
    project.json(&["hooks", "trust", "--show"])["digest"].as_str().unwrap().to_owned()
}

/// Returns the trust state of `check`, or none if the file is refused.
fn standing(project: &Project) -> Option<String> {
    let run = project.run(&["hooks", "trust", "--show", "--json"]);
    if run.code == USAGE {
        return None;
    }
    let shown: Value = serde_json::from_str(&run.stdout).unwrap();
    let hooks = shown["hooks"].as_array().unwrap();
    let check = hooks.iter().find(|hook| hook["name"] == "check").unwrap();
    Some(check["trust"].as_str().unwrap().to_owned())
}

/// T2: no key that the schema allows in a file changes whether that file is trusted.
#[test]
fn no_configuration_key_makes_its_own_file_trusted() {
    let project = untrusted();
    let schema: Value = serde_json::from_str(&project.ok(&["schema"])).unwrap();
    let mut files = Vec::new();
    let check = json!([{ "command": "./check.sh {{task_id}}" }]);
    for (key, value) in samples(&schema, &schema) {
        let mut file = json!({ "version": 1, "hooks": { "on_task_complete": check } });
        if key == "hooks" {
            file["hooks"]["stop"] = value["stop"].clone();
        } else {
            file[&key] = value;
        }
        files.push(file);
    }
    let hook = resolved(&schema, &schema["$defs"]["HookEntry"]);
    for (key, value) in samples(&schema, hook) {
        let entry = json!({ "command": "true", "name": "other", key.as_str(): value });
        let hooks = json!({ "on_task_complete": check, "stop": [entry] });
        files.push(json!({ "version": 1, "hooks": hooks }));
    }
    let mut read = 0;
    for file in &files {
        project.write("hookloop.yaml", &file.to_string());
        let now = standing(&project);
        assert!(now.as_deref().is_none_or(|now| now == "untrusted"), "{file}: {now:?}");
        project.run(&["task", "add", "Goal", "--id", "a"]);
        project.run(&["task", "complete", "a"]);
        project.run(&["task", "delete", "a"]);
        assert!(!project.root().join("ran").exists(), "{file}");
        read += usize::from(now.is_some());
    }
    assert!(files.len() > 25 && read > 20, "{read} of {} files were read", files.len());
}

/// Returns each key of an object with a value that its schema allows.
fn samples(schema: &Value, object: &Value) -> Vec<(String, Value)> {
    let properties = object["properties"].as_object().unwrap();
    properties.iter().map(|(key, inner)| (key.clone(), sample(schema, inner))).collect()
}

fn resolved<'a>(schema: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"].as_str() {
        Some(reference) => schema.pointer(reference.trim_start_matches('#')).unwrap(),
        None => part,
    }
}

/// Returns a value that a schema allows.
fn sample(schema: &Value, part: &Value) -> Value {
    let part = resolved(schema, part);
    for choice in ["oneOf", "anyOf"] {
        if let Some(choices) = part[choice].as_array() {
            return sample(schema, &choices[0]);
        }
    }
    if let Some(values) = part["enum"].as_array() {
        return values[0].clone();
    }
    let kind = part["type"].as_str().or(part["type"][0].as_str()).unwrap_or("string");
    match kind {
        "boolean" => json!(true),
        "integer" => json!(1),
        "array" => json!([sample(schema, &part["items"])]),
        "object" => {
            let properties = part["properties"].as_object();
            let inner = properties.into_iter().flatten();
            inner.map(|(key, inner)| (key.clone(), sample(schema, inner))).collect()
        }
        _ => json!("true"),
    }
}

/// T3: each change of a hook's meaning makes it a different hook; a changed comment does not.
#[test]
fn every_byte_of_a_definition_counts_and_those_of_comments_do_not() {
    const FILE: &str = "version: 1\nhooks:\n  stop:\n    # why\n    - name: check\n      command: touch ran\n      timeout: 9s\n      on_failure: open\n      env: {A: b}\n";
    let project = Project::bare();
    project.write("hookloop.yaml", FILE);
    project.trust();
    let ran = project.root().join("ran");
    let comment = FILE.find('#').unwrap() + 1..FILE.find("why").unwrap() + 3;
    for at in 0..FILE.len() {
        let mut changed = FILE.to_owned().into_bytes();
        changed[at] ^= 1;
        fs::write(project.root().join("hookloop.yaml"), &changed).unwrap();
        let run = project.run(&["hooks", "run", "check", "--json"]);
        let changed = String::from_utf8_lossy(&changed);
        assert_eq!(ran.exists(), comment.contains(&at), "byte {at}: {changed}\n{run:?}");
        let _ = fs::remove_file(&ran);
    }
    for changed in
        ["on_failure: closed", "timeout: 8s", "env: {A: c}", "env: [A]", "retry: {attempts: 2}"]
    {
        let key = changed.split(':').next().unwrap();
        let lines: Vec<&str> = FILE.lines().filter(|line| !line.trim().starts_with(key)).collect();
        project.write("hookloop.yaml", &format!("{}\n      {changed}\n", lines.join("\n")));
        assert_eq!(standing(&project).as_deref(), Some("modified"), "{changed}");
    }
}

/// T6: without a person, a hook runs only if its exact content is trusted.
#[test]
fn without_a_person_hooks_run_only_with_the_exact_digest() {
    let piped = "hookloop ARGS < /dev/null | cat";
    let in_ci = "CI=true hookloop ARGS < /dev/null";
    let on_terminal = "script -qec 'hookloop ARGS' /dev/null < /dev/null";
    for line in [piped, in_ci, on_terminal] {
        let check = |prepare: &dyn Fn(&Project) -> String, runs: bool| {
            let project = untrusted();
            let args = prepare(&project);
            let ask = |what: &str| project.shell(&line.replace("ARGS", &format!("{args} {what}")));
            ask("task add Goal --id a");
            let told = ask("task complete a");
            assert_eq!(project.root().join("ran").exists(), runs, "{line} {args}: {told:?}");
        };
        let trust = |project: &Project| {
            project.trust();
            String::new()
        };
        let modify = |project: &Project| {
            trust(project);
            project.script("check.sh", "touch ran # and more");
            String::new()
        };
        check(&|_| String::new(), false);
        check(&|project| format!("--trust {}", digest(project)), true);
        check(&|_| format!("--trust sha256:{}", "0".repeat(64)), false);
        check(&trust, true);
        check(&modify, false);
    }
}

/// T6: if nobody can be asked, the refusal names the digest and has an exit code of its own.
#[test]
fn a_refusal_of_untrusted_hooks_names_the_digest() {
    let project = untrusted();
    let digest = digest(&project);
    for ci in [false, true] {
        let mut command = project.hookloop(&["hooks", "trust"]);
        if ci {
            command.env("CI", "true");
        }
        let run: ProgramOutput = command.output().unwrap().into();
        assert!(run.code == UNTRUSTED && run.stderr.contains(&digest), "{run:?}");
    }
    let other = format!("sha256:{}", "0".repeat(64));
    for args in [vec!["task", "add", "Goal"], vec!["status"], vec!["hooks", "run", "check"]] {
        let run = project.run(&[&["--trust", &other], args.as_slice()].concat());
        assert_eq!(run.code, UNTRUSTED, "{args:?}: {run:?}");
        assert!(run.stderr.contains(&digest) && run.stderr.contains(&other), "{run:?}");
    }
    assert_eq!(project.json(&["task", "list"]), json!([]));
}

/// T7: trust belongs to content in a directory; links and neighbouring directories do not inherit
/// it.
#[test]
fn trust_is_not_inherited() {
    let trusted = Project::with_check("touch ran");
    let root = trusted.root();
    let place = |name: &str| {
        let place = root.join(name);
        fs::create_dir_all(&place).unwrap();
        fs::copy(root.join("check.sh"), place.join("check.sh")).unwrap();
        fs::write(place.join("hookloop.yaml"), format!("version: 1\n{CHECK}")).unwrap();
        place
    };
    fs::create_dir(root.join(".git")).unwrap();
    let nested = place("nested");
    let worktree = place("worktree");
    fs::write(worktree.join(".git"), format!("gitdir: {}/.git\n", root.display())).unwrap();
    let crafted = place("crafted");
    fs::create_dir(crafted.join(".git")).unwrap();
    fs::write(crafted.join(".git/commondir"), format!("{}/.git\n", root.display())).unwrap();
    fs::write(crafted.join(".git/gitdir"), format!("{}/.git\n", root.display())).unwrap();
    let bare = place("bare.git");
    fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let folded = place("PROJECT");
    let linked = place("linked");
    fs::remove_file(linked.join("check.sh")).unwrap();
    symlink(root.join("check.sh"), linked.join("check.sh")).unwrap();
    for place in [nested, worktree, crafted, bare, folded, linked] {
        let args = ["-C", place.to_str().unwrap(), "hooks", "run", "check"];
        let run = trusted.json_with(UNTRUSTED, &args);
        assert_eq!(run["status"], "not_started", "{}: {run}", place.display());
        assert!(!place.join("ran").exists());
    }
    // A link leads to the same directory.
    let link = root.parent().unwrap().join("link");
    symlink(&root, &link).unwrap();
    let run = trusted.json(&["-C", link.to_str().unwrap(), "hooks", "run", "check"]);
    assert_eq!(run["status"], "passed", "{run}");
    // Another repository in the same directory is a different project.
    fs::remove_file(root.join("ran")).unwrap();
    fs::rename(&root, root.with_file_name("moved")).unwrap();
    fs::create_dir(&root).unwrap();
    fs::write(root.join("hookloop.yaml"), format!("version: 1\n{CHECK}")).unwrap();
    trusted.script("check.sh", "touch ran; touch evil");
    let run = trusted.json_with(UNTRUSTED, &["hooks", "run", "check"]);
    assert_eq!(run["status"], "not_started", "{run}");
    assert!(!root.join("ran").exists());
}

/// T8: no file of a repository sets an environment variable.
#[test]
fn a_repository_sets_no_environment() {
    let project = Project::with_config(
        "hooks:\n  stop:\n    - {name: check, command: [/usr/bin/env], env: [WANTED]}\n",
    );
    let planted = "HOOKLOOP_STORE=nats://evil:1\nANTHROPIC_BASE_URL=http://evil\nCODEX_HOME=.\nLD_PRELOAD=./evil.so\nWANTED=evil\nHTTPS_PROXY=http://evil\nPATH=.\n";
    for name in [".env", ".env.local", ".envrc", "hookloop.env", ".hookloop.env"] {
        project.write(name, planted);
    }
    project.trust();
    let run = project.try_hook(&["check"]);
    assert_eq!(run["status"], "passed", "{run}");
    assert!(!run["stdout"].as_str().unwrap().contains("evil"), "{run}");
    for name in ["LD_PRELOAD", "https_proxy", "OPENAI_API_BASE", "HOOKLOOP_TRUST", "GIT_SSH"] {
        project.configure(&format!(
            "hooks:\n  stop:\n    - {{name: check, command: 'true', env: {{{name}: x}}}}\n"
        ));
        let run = project.run(&["hooks", "run", "check"]);
        assert!(run.code == USAGE && run.stderr.contains(name), "{run:?}");
    }
}
