//! The packages for npm, from a registry on loopback without any other package.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hookloop_testkit::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cli::{DEADLINE, ProgramOutput};
use crate::install::release::{PACKAGES, Server, VERSION, made, repository, script};

/// A registry with the packages, and a user who has npm.
struct Stage {
    directory: TempDir,
    server: Server,
}

impl Stage {
    fn new() -> Stage {
        let directory = tempfile::tempdir().unwrap();
        let [registry, home] = ["registry", "home"].map(|name| directory.path().join(name));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&registry).unwrap();
        let server = Server::start(&registry);
        for file in listed(&made().join(PACKAGES)) {
            let packed = made().join(PACKAGES).join(&file);
            let manifest = manifest(&packed);
            let place = registry.join(manifest["name"].as_str().unwrap());
            let described = describe(manifest, &format!("{}/{file}", server.address()));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, described.to_string()).unwrap();
            std::os::unix::fs::symlink(packed, registry.join(file)).unwrap();
        }
        Stage { directory, server }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.home())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var("PATH").unwrap())
            .env("npm_config_registry", self.server.address())
            .env("npm_config_update_notifier", "false")
            .env("npm_config_fetch_retries", "0")
            .env("npm_config_audit", "false")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> ProgramOutput {
        self.command("sh").args(["-c", line]).output().unwrap().into()
    }
}

/// Returns the package files in `directory`, in the order of publication.
fn listed(directory: &Path) -> Vec<String> {
    let list = fs::read_to_string(directory.join("packages.txt")).unwrap();
    list.lines().map(str::to_owned).collect()
}

/// Returns the manifest in a packed package.
fn manifest(file: &Path) -> Value {
    let mut tar = Command::new("tar");
    let output = tar.arg("-xOzf").arg(file).arg("package/package.json").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the registry's description of a package with one version.
fn describe(mut manifest: Value, tarball: &str) -> Value {
    manifest["dist"] = json!({ "tarball": tarball });
    let name = manifest["name"].clone();
    json!({ "name": name, "dist-tags": { "latest": VERSION }, "versions": { VERSION: manifest } })
}

/// The first command of the README.
#[test]
fn npx_runs_the_demo() {
    let stage = Stage::new();
    let run = stage.run("npx --yes hookloop demo");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("complete"), "{run:?}");
    // Only packages were fetched: no script downloads anything.
    let fetched = stage.server.asked();
    assert!(fetched.iter().all(|path| path.contains("hookloop")), "{fetched:?}");
}

#[test]
fn the_npm_command_passes_on_arguments_input_and_exit_code() {
    let stage = Stage::new();
    let installed = stage.run("npm install --no-fund hookloop");
    assert_eq!(installed.code, 0, "{installed:?}");
    let version = stage.run("node_modules/.bin/hookloop -V");
    assert_eq!(version.stdout, format!("hookloop {VERSION}\n"), "{version:?}");
    let wrong = stage.run("node_modules/.bin/hookloop --nonsense");
    assert_eq!(wrong.code, 2, "{wrong:?}");
    // Standard input and its end are passed on.
    let piped = stage.run("printf '' | node_modules/.bin/hookloop mcp");
    assert_eq!(piped.code, 0, "{piped:?}");
}

/// A worker that npm started ends properly when npm's process gets a signal.
#[test]
fn the_npm_command_passes_sigterm_on_to_the_worker() {
    let stage = Stage::new();
    assert_eq!(stage.run("npm install --no-fund hookloop").code, 0);
    let bin = "node_modules/.bin/hookloop";
    let prepared = stage.run(&format!("{bin} init --yes && echo '[]' > turns.json"));
    assert_eq!(prepared.code, 0, "{prepared:?}");
    let mut command = stage.command(bin);
    command.args(["worker", "--agent", "scripted:turns.json"]).stdout(Stdio::piped());
    let mut worker = command.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(worker.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.starts_with("worker "), "{said}");
    let id = worker.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let status = eventually("the worker's end", DEADLINE, || worker.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_missing_platform_package_is_reported() {
    let stage = Stage::new();
    let installed = stage.run("npm install --no-fund --omit=optional hookloop");
    assert_eq!(installed.code, 0, "{installed:?}");
    let run = stage.run("node_modules/.bin/hookloop -V");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("npm install --include=optional hookloop"), "{run:?}");
}

/// Returns the shell lines of the workflow's step that publishes.
fn publishing_step() -> String {
    let workflow = fs::read_to_string(repository().join(".github/workflows/release.yml")).unwrap();
    let (_, step) = workflow.split_once("- name: Publish\n        run: |\n").unwrap();
    step.lines().take_while(|line| line.starts_with("          ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_release_publishes_all_platform_packages_before_the_main_package() {
    let stage = tempfile::tempdir().unwrap();
    let archives = stage.path().join("archives");
    fs::create_dir(&archives).unwrap();
    let targets = [
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
    ];
    for target in targets {
        let root = archives.join(format!("hookloop-{target}"));
        fs::create_dir(&root).unwrap();
        fs::write(root.join("hookloop"), target).unwrap();
        fs::write(root.join("LICENSES-OF-DEPENDENCIES.txt"), "MIT").unwrap();
        let mut tar = Command::new("tar");
        tar.current_dir(&archives).args(["-czf", &format!("hookloop-{target}.tar.gz")]);
        assert!(tar.arg(format!("hookloop-{target}")).status().unwrap().success());
    }
    let packages = stage.path().join("npm-packages");
    script("npm/pack.mjs", &[archives.to_str().unwrap(), packages.to_str().unwrap()]);

    // The workflow's own lines run with a program that records the packages to publish.
    let bin = stage.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("npm"), "#!/bin/sh\necho \"$2\" >> published\n").unwrap();
    fs::set_permissions(bin.join("npm"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.current_dir(stage.path()).args(["-e", "-c", &publishing_step()]).env("PATH", path);
    assert!(shell.status().unwrap().success());
    let published = fs::read_to_string(stage.path().join("published")).unwrap();
    let published: Vec<&Path> = published.lines().map(Path::new).collect();

    assert_eq!(published.len(), targets.len() + 1, "{published:?}");
    let manifests = published.iter().map(|file| manifest(&stage.path().join(file)));
    let manifests: Vec<Value> = manifests.collect();
    let (main, platforms) = manifests.split_last().unwrap();
    assert_eq!(main["name"], "hookloop");
    let needed: BTreeSet<&str> =
        main["optionalDependencies"].as_object().unwrap().keys().map(String::as_str).collect();
    let made = platforms.iter().map(|manifest| manifest["name"].as_str().unwrap());
    assert_eq!(needed, made.collect());
    for file in &published {
        let mut tar = Command::new("tar");
        let output = tar.arg("-tzf").arg(stage.path().join(file)).output().unwrap();
        let files = String::from_utf8(output.stdout).unwrap();
        for licence in ["package/LICENSE-MIT\n", "package/LICENSE-APACHE\n"] {
            assert!(files.contains(licence), "{}: {files}", file.display());
        }
    }
}
