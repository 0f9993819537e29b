//! Secrets by reference: only a hook or agent that names a secret gets it, and no file or output
//! contains it in any form.

use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use serde_json::Value;

use crate::cli::{ProgramOutput, Project};
use crate::policy::set_mode;

/// The number of secrets of each source.
const EACH: usize = 50;
const WAYS: [&str; 3] = ["ENV", "FILE", "COMMAND"];

/// Returns a unique secret with characters that encodings change.
fn secret(way: &str, number: usize) -> String {
    let mixed = (number + way.len() * 1_000).wrapping_mul(2_654_435_761) % 0xffff_ffff;
    format!("{way}{number}/\"{mixed:08x}\\+é {:08x}", mixed.rotate_left(13) % 0xffff_ffff)
}

/// Returns the forms that the scripts below print.
fn forms(secret: &str) -> [String; 4] {
    let percent = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let json = secret.replace('\\', "\\\\").replace('"', "\\\"");
    [secret.to_owned(), BASE64.encode(secret.as_bytes()), percent(secret), json]
}

/// Returns a script that prints all secrets of one source in all forms, to both streams.
fn printing(way: &str) -> String {
    format!(
        r#"number=0
while [ $number -lt {EACH} ]; do
  eval "value=\$S_{way}_$number"
  [ -n "$value" ] || {{ echo "no S_{way}_$number" >&2; exit 9; }}
  printf 'raw %s\n' "$value"
  printf 'base64 %s\n' "$(printf %s "$value" | base64 -w0)" >&2
  printf 'url %s\n' "$(printf %s "$value" | od -An -v -tx1 | tr -d '\n' | tr ' ' '%')"
  printf 'json "%s"\n' "$(printf %s "$value" | sed 's/\\/\\\\/g; s/"/\\"/g')" >&2
  number=$((number + 1))
done
"#
    )
}

fn names(way: &str) -> String {
    (0..EACH).map(|number| format!("S_{way}_{number}")).collect::<Vec<_>>().join(", ")
}

/// Returns the file of a secret that is read from a file.
fn place(project: &Project, way: &str, number: usize) -> PathBuf {
    project.home().join(format!("kept/{way}-{number}"))
}

fn with_secrets() -> Project {
    let project = Project::bare();
    fs::create_dir(project.home().join("kept")).unwrap();
    let mut lines = String::new();
    for number in 0..EACH {
        for way in ["FILE", "COMMAND"] {
            let path = place(&project, way, number);
            fs::write(&path, format!("{}\n", secret(way, number))).unwrap();
            set_mode(&path, 0o600);
        }
        let at = |way| place(&project, way, number).display().to_string();
        lines += &format!("    S_ENV_{number}: {{env: PLAIN_{number}}}\n");
        lines += &format!("    S_FILE_{number}: {{file: {}}}\n", at("FILE"));
        lines += &format!("    S_COMMAND_{number}: {{command: [cat, {}]}}\n", at("COMMAND"));
    }
    let mut agents = String::new();
    for way in WAYS {
        let printing = printing(way);
        let agent = format!(
            "#!/bin/sh\ncat > prompt-$(date +%s%N)\n{printing}echo '<promise>COMPLETE</promise>'\n"
        );
        for (name, text) in [
            (format!("{way}.sh"), format!("#!/bin/sh\n{printing}exit 2\n")),
            (format!("{way}-agent.sh"), agent),
        ] {
            set_mode(&project.write(&name, &text), 0o755);
        }
        let names = names(way);
        agents += &format!(
            "  leaky-{way}: {{type: command, command: [./{way}-agent.sh], env: [{names}]}}\n"
        );
    }
    project.write_own(&format!("secrets:\n  '*':\n{lines}agents:\n{agents}"));
    let hook = |way: &str| {
        format!(
            "{{name: leak-{way}, command: ./{way}.sh, env: [{}], pipe_output: true}}",
            names(way)
        )
    };
    let hooks = WAYS.map(hook).join(", ");
    project.configure(&format!(
        "hooks:\n  stop: [{hooks}]\n  post_iteration: [{}]\n  task_completed: [{}]\n",
        hook("FILE").replace("leak-", "post-"),
        hook("ENV").replace("leak-", "done-"),
    ));
    project.trust();
    project
}

fn run(project: &Project, args: &[&str]) -> ProgramOutput {
    let mut command = project.hookloop(args);
    for number in 0..EACH {
        command.env(format!("PLAIN_{number}"), secret("ENV", number));
    }
    command.output().unwrap().into()
}

#[test]
fn no_encoding_of_a_secret_is_stored_or_printed() {
    let project = with_secrets();
    let id = project.add("a", &[]);
    let mut said = Vec::new();
    for args in [
        &["run", "work", "--agent", "leaky-ENV", "--gate-retries", "1", "--name", "it"][..],
        &["run", "work", "--agent", "leaky-FILE", "--gate-retries", "0"],
        &["run", "work", "--agent", "leaky-COMMAND", "--gate-retries", "0"],
        &["run", "more", "--agent", "leaky-COMMAND", "--gate-retries", "0", "--json"],
        &["task", "complete", &id],
        &["hooks", "run", "leak-COMMAND"],
        &["hooks", "run", "leak-ENV", "--json"],
        &["hooks", "explain", "stop"],
        &["hooks", "list", "--json"],
        &["hooks", "trust", "--show"],
        &["agents", "list", "--json"],
        &["policy"],
        &["policy", "--json"],
        &["doctor"],
        &["sessions", "show", "it"],
        &["why", "it"],
        &["log", "--all", "--json"],
    ] {
        let run = run(&project, args);
        said.push((format!("{args:?}"), [run.stdout, run.stderr].concat().into_bytes()));
    }
    // The scripts did print: the marker of each secret is in the stored output.
    let kept = files_below(&project.home().join(".local/state"));
    let artifacts: String = kept
        .iter()
        .filter(|file| file.ends_with("stdout") || file.ends_with("stderr"))
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    for way in WAYS {
        for number in 0..EACH {
            let marker = format!("[redacted:S_{way}_{number}]");
            let times = artifacts.matches(&marker).count();
            assert!(times >= 4 * 2, "{marker}: {times} times");
        }
    }
    said.extend(kept.iter().map(|file| (file.display().to_string(), fs::read(file).unwrap())));
    // The prompts that reached the agent.
    let prompts = files_below(&project.root()).into_iter();
    let prompts: Vec<PathBuf> =
        prompts.filter(|file| file.to_string_lossy().contains("/prompt-")).collect();
    assert!(prompts.len() >= 3, "{prompts:?}");
    said.extend(prompts.iter().map(|file| (file.display().to_string(), fs::read(file).unwrap())));
    for (place, bytes) in &said {
        let text = String::from_utf8_lossy(bytes);
        for (way, number) in WAYS.iter().flat_map(|way| (0..EACH).map(move |n| (way, n))) {
            for form in forms(&secret(way, number)) {
                assert!(!text.contains(&form), "{place} has a form of S_{way}_{number}: {form}");
            }
        }
    }
}

#[test]
fn a_secret_is_neither_fetched_for_nor_given_to_hooks_that_do_not_name_it() {
    let project = Project::with_config(
        "hooks: {task_completed: [{name: see, command: 'env > seen; echo $DEPLOY > has', env: [OTHER]}]}\n",
    );
    project.write_own("secrets: {'*': {DEPLOY: {command: [touch, fetched]}}}\n");
    project.trust();
    let id = project.add("a", &[]);
    project.ok(&["task", "complete", &id]);
    let seen = fs::read_to_string(project.root().join("seen")).unwrap();
    assert!(!seen.contains("DEPLOY"), "{seen}");
    assert!(!project.state().join("fetched").exists(), "the secret was fetched");
}

#[test]
fn policy_secrets_override_user_secrets_and_the_closest_project_wins() {
    let project = Project::with_config(
        "project: shop\nhooks: {task_completed: [{name: see, command: 'printf %s $A_KEY,$B_KEY,$C_KEY | rev > seen', env: [A_KEY, B_KEY, C_KEY]}]}\n",
    );
    project.trust();
    let root = project.root().canonicalize().unwrap();
    project.write_own(&format!(
        "secrets:
  '*': {{A_KEY: {{env: V1}}, B_KEY: {{env: V2}}, C_KEY: {{env: V1}}}}
  shop: {{B_KEY: {{env: V3}}}}
  '{}': {{C_KEY: {{env: V4}}}}
  till: {{A_KEY: {{env: V1}}}}
",
        root.display()
    ));
    project.write_policy("secrets: {'*': {A_KEY: {env: V5}}}\n");
    let id = project.add("a", &[]);
    let mut command = project.hookloop(&["task", "complete", &id]);
    for number in 1..=5 {
        command.env(format!("V{number}"), format!("value-{number}"));
    }
    let run: ProgramOutput =
        command.env("HOOKLOOP_POLICY", project.policy_file()).output().unwrap().into();
    assert_eq!(run.code, 0, "{run:?}");
    let seen = fs::read_to_string(project.root().join("seen")).unwrap();
    let seen: String = seen.trim().chars().rev().collect();
    assert_eq!(seen, "value-5,value-3,value-4");
}

#[test]
fn an_unavailable_secret_fails_its_hook_and_turn_without_disclosure() {
    let project =
        Project::with_config("hooks: {stop: [{name: needs, command: 'true', env: [DEPLOY]}]}\n");
    project.trust();
    let open = project.home().join("open");
    fs::write(&open, "content-of-it\n").unwrap();
    set_mode(&open, 0o644);
    let script = project.home().join("script");
    fs::write(&script, "#!/bin/sh\necho content-of-it; echo content-of-it >&2; exit 3\n").unwrap();
    set_mode(&script, 0o755);
    let (open, script) = (open.display(), script.display());
    for (reference, parts) in [
        (format!("{{file: {open}}}"), [format!("file {open}"), "chmod o-rw".to_owned()]),
        ("{file: /no/such}".to_owned(), ["file /no/such".to_owned(), "not found".to_owned()]),
        ("{file: /etc}".to_owned(), ["file /etc".to_owned(), "not a file".to_owned()]),
        (format!("{{command: [{script}]}}"), [format!("command {script}"), "code 3".to_owned()]),
        ("{command: [no-such]}".to_owned(), ["command no-such".to_owned(), "no such".to_owned()]),
        (
            "{command: [sh, -c, 'yes content-of-it | head -c 70000']}".to_owned(),
            ["command sh".to_owned(), "longer than".to_owned()],
        ),
        ("{env: UNSET}".to_owned(), ["variable UNSET".to_owned(), "no such variable".to_owned()]),
        ("{env: SHORT}".to_owned(), ["variable SHORT".to_owned(), "shorter".to_owned()]),
    ] {
        project.write_own(&format!(
            "secrets: {{'*': {{DEPLOY: {reference}}}}}\nagents: {{a: {{type: command, command: [echo, hi], env: [DEPLOY]}}}}\n"
        ));
        let run = |args: &[&str]| -> ProgramOutput {
            project.hookloop(args).env("SHORT", "abc").output().unwrap().into()
        };
        let hook = run(&["hooks", "run", "needs", "--json"]);
        let session = run(&["run", "x", "--agent", "a", "--max-errors", "1", "--json"]);
        for run in [hook, session] {
            let all = [run.stdout, run.stderr].concat();
            let is_hook = all.contains("\"status\":\"not_started\"");
            assert!(is_hook || run.code != 0, "{reference}: {all}");
            assert!(!all.contains("content-of-it"), "{reference}: {all}");
            for part in &parts {
                assert!(all.contains(part.as_str()), "{reference}: no `{part}` in {all}");
            }
            assert!(all.contains("config.yaml:2"), "{all}");
        }
    }
    for file in files_below(&project.home().join(".local/state")) {
        let bytes = fs::read(&file).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("content-of-it"), "{}", file.display());
    }
}

#[test]
fn a_repository_cannot_define_secrets() {
    let project = Project::with_config("secrets: {'*': {DEPLOY: {env: HOME}}}\n");
    let error = project.fails(2, &["task", "list"]);
    assert!(error.contains("hookloop.yaml:2:") && error.contains("your own"), "{error}");
}

/// Checks that an agent of the repository that names a secret must be trusted.
#[test]
fn an_agent_of_a_repository_that_names_a_secret_needs_trust() {
    let project = Project::with_config("agents: {claude: {env: [DEPLOY]}}\n");
    let found = project.run(&["agents", "trust", "--show", "--json"]).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(found["agents"][0]["env"], serde_json::json!({ "DEPLOY": null }), "{found}");
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
