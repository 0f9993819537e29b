//! Repositories that contain commands: no operation runs any of them.
//!
//! Each trap creates a canary file. If it can be shown simply, plain git does run the command (the
//! control), so that an ineffective trap is noticed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hookloop_git::repo::Worktree;

use crate::course::course;
use crate::fixture::{RepositoryFixture, users_own, write};

/// Placeholder for the command of a trap in a configuration.
const TRAP: &str = "{trap}";

/// Settings that name a command, and a git command that runs it.
struct Trap {
    settings: &'static [(&'static str, &'static str)],
    /// Arguments of plain git in the checkout; empty if there is no simple control.
    control: &'static [&'static str],
}

const fn trap(
    settings: &'static [(&'static str, &'static str)],
    control: &'static [&'static str],
) -> Trap {
    Trap { settings, control }
}

const LOCAL: [Trap; 12] = [
    trap(&[("core.fsmonitor", TRAP)], &["status"]),
    trap(&[("core.hooksPath", "{hooks}")], &["commit", "--allow-empty", "-m", "x"]),
    trap(&[("filter.evil.clean", TRAP)], &["add", "--renormalize", "."]),
    trap(&[("filter.evil.smudge", TRAP)], &["switch", "clashing"]),
    trap(
        &[("filter.evil.process", TRAP), ("filter.evil.required", "true")],
        &["add", "--renormalize", "."],
    ),
    trap(&[("merge.evil.driver", TRAP), ("merge.evil.name", "x")], &["merge", "clashing"]),
    trap(&[("merge.default", "evil"), ("merge.evil.driver", TRAP)], &["merge", "clashing"]),
    trap(&[("diff.evil.textconv", TRAP)], &["diff", "HEAD", "clashing"]),
    trap(&[("diff.evil.command", TRAP)], &["diff", "HEAD", "clashing"]),
    trap(&[("diff.external", TRAP)], &["diff", "HEAD", "clashing"]),
    trap(&[("core.editor", TRAP), ("sequence.editor", TRAP)], &["commit", "--allow-empty"]),
    trap(&[("alias.trap", "!{trap}"), ("alias.fetch", "!{trap}")], &["trap"]),
];

const REMOTE: [Trap; 12] = [
    trap(&[("core.sshCommand", TRAP)], &["ls-remote", "ssh://localhost:1/x"]),
    trap(&[("core.gitProxy", TRAP)], &["ls-remote", "git://localhost:1/x"]),
    trap(&[("remote.origin.uploadpack", TRAP)], &["fetch"]),
    trap(&[("remote.origin.receivepack", TRAP)], &["push", "origin", "HEAD:x"]),
    trap(&[("remote.origin.vcs", "ext"), ("protocol.ext.allow", "always")], &[]),
    trap(
        &[("url.ext::sh -c {trap}% .insteadOf", "{origin}"), ("protocol.ext.allow", "always")],
        &["fetch"],
    ),
    trap(
        &[("url.ext::sh -c {trap}% .pushInsteadOf", "{origin}"), ("protocol.ext.allow", "always")],
        &["push", "origin", "HEAD:x"],
    ),
    trap(
        &[("url.ext::sh -c {trap}% .insteadOf", "{state}"), ("protocol.ext.allow", "always")],
        &["ls-remote", "{state}/private_repo.git"],
    ),
    trap(&[("core.askPass", TRAP)], &["credential", "fill"]),
    trap(&[("credential.helper", "!{trap}")], &["credential", "fill"]),
    trap(&[("core.alternateRefsCommand", TRAP)], &[]),
    trap(&[("uploadpack.packObjectsHook", TRAP)], &[]),
];

const OTHER: [Trap; 9] = [
    trap(&[("core.pager", TRAP), ("pager.log", TRAP)], &[]),
    trap(
        &[("gpg.program", TRAP), ("commit.gpgSign", "true")],
        &["commit", "--allow-empty", "-m", "x"],
    ),
    trap(
        &[("gpg.program", TRAP), ("push.gpgSign", "true"), ("tag.gpgSign", "true")],
        &["tag", "-m", "x", "x"],
    ),
    trap(
        &[("gpg.ssh.defaultKeyCommand", TRAP), ("gpg.format", "ssh"), ("commit.gpgSign", "true")],
        &[],
    ),
    trap(
        &[
            ("submodule.sub.update", "!{trap}"),
            ("submodule.recurse", "true"),
            ("submodule.sub.url", "{origin}"),
        ],
        &[],
    ),
    trap(&[("gc.auto", "1"), ("gc.recentObjectsHook", TRAP)], &["gc", "--prune=now"]),
    trap(
        &[
            ("trailer.x.command", TRAP),
            ("rebase.autoStash", "true"),
            ("rebase.instructionFormat", "x"),
        ],
        &[],
    ),
    trap(&[("interactive.diffFilter", TRAP), ("browser.x.cmd", TRAP), ("man.x.cmd", TRAP)], &[]),
    trap(&[("core.worktree", "{elsewhere}")], &[]),
];

/// A repository with a command that creates a canary file.
struct TrappedRepository {
    fixture: RepositoryFixture,
    canary: PathBuf,
    trap: PathBuf,
}

impl TrappedRepository {
    fn new() -> TrappedRepository {
        let fixture = RepositoryFixture::new();
        // Every driver that a trap defines has files to work on.
        fixture.others_change(".gitattributes", "* filter=evil diff=evil merge=evil\n");
        fixture.in_checkout(&["pull", "--quiet"]);
        fixture.in_checkout(&["switch", "--quiet", "-c", "clashing"]);
        fs::write(fixture.checkout().join("file"), "clash\n").unwrap();
        fixture.save("checkout", "clash");
        fixture.in_checkout(&["switch", "--quiet", "-c", "mine", "main"]);
        fs::write(fixture.checkout().join("file"), "mine\n").unwrap();
        fixture.save("checkout", "mine");
        let (canary, trap) = (fixture.path().join("canary"), fixture.path().join("trap"));
        script(&trap, &canary);
        fs::create_dir(fixture.path().join("hooks")).unwrap();
        fs::create_dir(fixture.path().join("elsewhere")).unwrap();
        for name in HOOKS {
            script(&fixture.path().join("hooks").join(name), &canary);
        }
        TrappedRepository { fixture, canary, trap }
    }

    fn filled(&self, text: &str) -> String {
        let path = |name: &str| self.fixture.path().join(name).display().to_string();
        text.replace(TRAP, &self.trap.display().to_string())
            .replace("{hooks}", &path("hooks"))
            .replace("{origin}", &path("origin.git"))
            .replace("{state}", &path("state"))
            .replace("{elsewhere}", &path("elsewhere"))
    }

    fn set(&self, file: &Path, settings: &[(&str, &str)]) {
        for (name, value) in settings {
            let (name, value) = (self.filled(name), self.filled(value));
            let file = file.to_str().unwrap();
            self.fixture.git(self.fixture.path(), &["config", "--file", file, &name, &value]);
        }
    }

    fn config(&self) -> PathBuf {
        self.fixture.checkout().join(".git/config")
    }

    /// Checks that no operation runs the command, and that plain git does.
    fn check(self, what: &str, plant: &dyn Fn(&Worktree), control: &[&str]) {
        let before = users_own(&self.fixture.checkout());
        course(&self.fixture, plant);
        assert!(!self.canary.exists(), "{what}: {}", fs::read_to_string(&self.canary).unwrap());
        let after = users_own(&self.fixture.checkout());
        let planted = Path::new(".git/config");
        let names = before.keys().chain(after.keys()).filter(|name| *name != planted);
        let other: Vec<_> = names.filter(|name| before.get(*name) != after.get(*name)).collect();
        assert!(other.is_empty(), "{what}: {other:?}");
        if control.is_empty() {
            return;
        }
        let control: Vec<String> = control.iter().map(|word| self.filled(word)).collect();
        let control: Vec<&str> = control.iter().map(String::as_str).collect();
        let mut command = self.fixture.command(&self.fixture.checkout(), &control);
        command.env("TERM", "dumb").stdin(std::process::Stdio::null());
        if control[0] == "credential" {
            command.stdin(fs::File::open(self.question()).unwrap());
        }
        let output = command.output().unwrap();
        assert!(self.canary.exists(), "{what} is ineffective: {output:?}");
    }

    fn question(&self) -> PathBuf {
        let path = self.fixture.path().join("question");
        fs::write(&path, "protocol=https\nhost=localhost\n\n").unwrap();
        path
    }
}

const HOOKS: [&str; 20] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "post-rewrite",
    "post-index-change",
];

fn script(path: &Path, canary: &Path) {
    fs::write(path, format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexit 1\n", canary.display()))
        .unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn check_all(traps: &[Trap]) {
    for trap in traps {
        let trapped = TrappedRepository::new();
        trapped.set(&trapped.config(), trap.settings);
        trapped.check(&format!("{:?}", trap.settings), &|_| {}, trap.control);
    }
}

#[test]
fn config_commands_for_files_do_not_run() {
    check_all(&LOCAL);
}

#[test]
fn config_commands_for_remotes_do_not_run() {
    check_all(&REMOTE);
}

#[test]
fn other_config_commands_do_not_run() {
    check_all(&OTHER);
}

#[test]
fn git_hooks_of_the_repository_do_not_run() {
    let trapped = TrappedRepository::new();
    let hooks = trapped.fixture.checkout().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for name in HOOKS {
        script(&hooks.join(name), &trapped.canary);
    }
    trapped.check("hooks", &|_| {}, &["commit", "--allow-empty", "-m", "x"]);
}

#[test]
fn commands_in_included_config_files_do_not_run() {
    let trapped = TrappedRepository::new();
    let included = trapped.fixture.path().join("included");
    trapped.set(&included, &[("core.fsmonitor", TRAP), ("core.hooksPath", "{hooks}")]);
    let path = included.to_str().unwrap().to_owned();
    trapped.fixture.git(
        trapped.fixture.path(),
        &["config", "--file", trapped.config().to_str().unwrap(), "include.path", &path],
    );
    trapped.check("include.path", &|_| {}, &["status"]);
}

#[test]
fn commands_in_worktree_config_do_not_run() {
    let trapped = TrappedRepository::new();
    trapped.set(&trapped.config(), &[("extensions.worktreeConfig", "true")]);
    let git_dir = trapped.fixture.checkout().join(".git");
    let traps = [
        ("core.fsmonitor", TRAP),
        ("core.hooksPath", "{hooks}"),
        ("filter.evil.clean", TRAP),
        ("merge.evil.driver", TRAP),
        ("core.worktree", "{elsewhere}"),
    ];
    let plant = |w: &Worktree| {
        let of_task = git_dir.join("worktrees").join(w.task.as_str()).join("config.worktree");
        trapped.set(&of_task, &traps);
        trapped.set(&git_dir.join("config.worktree"), &traps[..2]);
    };
    let canary = trapped.canary.clone();
    course(&trapped.fixture, &plant);
    assert!(!canary.exists(), "{}", fs::read_to_string(&canary).unwrap());
    let _ = trapped.fixture.command(&trapped.fixture.checkout(), &["status"]).output().unwrap();
    assert!(canary.exists(), "the trap is ineffective");
}

/// Changes that an agent can make to its own worktree.
#[test]
fn commands_of_the_target_of_a_redirected_worktree_do_not_run() {
    for what in ["link", "common directory", "both"] {
        let trapped = TrappedRepository::new();
        let evil = trapped.fixture.path().join("evil");
        trapped.fixture.git(trapped.fixture.path(), &["clone", "--quiet", "origin.git", "evil"]);
        for trap in LOCAL.iter().chain(&REMOTE) {
            trapped.set(&evil.join(".git/config"), trap.settings);
        }
        let plant = |w: &Worktree| {
            if what != "common directory" {
                fs::write(
                    w.path.join(".git"),
                    format!("gitdir: {}\n", evil.join(".git").display()),
                )
                .unwrap();
            }
            if what != "link" {
                let git_dir =
                    trapped.fixture.checkout().join(".git/worktrees").join(w.task.as_str());
                fs::write(git_dir.join("commondir"), evil.join(".git").to_str().unwrap()).unwrap();
            }
        };
        course(&trapped.fixture, &plant);
        assert!(
            !trapped.canary.exists(),
            "{what}: {}",
            fs::read_to_string(&trapped.canary).unwrap()
        );
        let _ = trapped.fixture.command(&evil, &["status"]).output().unwrap();
        assert!(trapped.canary.exists(), "{what} is ineffective");
    }
}

#[test]
fn commands_of_nested_repositories_do_not_run() {
    let trapped = TrappedRepository::new();
    let fixture = &trapped.fixture;
    let traps =
        [("core.fsmonitor", TRAP), ("core.hooksPath", "{hooks}"), ("filter.evil.clean", TRAP)];
    let plant = |w: &Worktree| {
        // A bare repository among the files, one beside them, and one that the index links to.
        fixture.git(&w.path, &["init", "--quiet", "--bare", "bare"]);
        trapped.set(&w.path.join("bare/config"), &traps);
        for name in ["beside", "linked"] {
            fixture.git(&w.path, &["init", "--quiet", name]);
            write(w, &format!("{name}/file"), "x\n");
            fixture.git(&w.path.join(name), &["add", "file"]);
            fixture.git(&w.path.join(name), &["commit", "--quiet", "-m", "x"]);
        }
        fixture.git(&w.path, &["-c", "advice.addEmbeddedRepo=false", "add", "linked"]);
        fixture.git(&w.path, &["commit", "--quiet", "-m", "linked"]);
        for name in ["beside", "linked"] {
            trapped.set(&w.path.join(name).join(".git/config"), &traps);
            write(w, &format!("{name}/file"), "changed\n");
        }
    };
    course(fixture, &plant);
    assert!(!trapped.canary.exists(), "{}", fs::read_to_string(&trapped.canary).unwrap());
}

/// The control of the test above: git runs commands of nested repositories when it enters them.
#[test]
fn plain_git_runs_commands_of_nested_repositories() {
    let trapped = TrappedRepository::new();
    let checkout = trapped.fixture.checkout();
    trapped.fixture.git(&checkout, &["clone", "--quiet", "../origin.git", "linked"]);
    trapped.fixture.git(&checkout, &["-c", "advice.addEmbeddedRepo=false", "add", "linked"]);
    trapped.set(&checkout.join("linked/.git/config"), &[("core.fsmonitor", TRAP)]);
    let _ = trapped.fixture.command(&checkout, &["status"]).output().unwrap();
    assert!(trapped.canary.exists());
}

#[test]
fn partial_clone_config_does_not_run_its_fetch_command() {
    let trapped = TrappedRepository::new();
    let missing = "2".repeat(40);
    trapped.set(
        &trapped.config(),
        &[
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "evil"),
            ("remote.evil.promisor", "true"),
            ("remote.evil.url", "{origin}"),
            ("remote.evil.uploadpack", TRAP),
        ],
    );
    let refused = trapped.fixture.open();
    assert!(refused.is_err(), "{refused:?}");
    assert!(!trapped.canary.exists());
    let _ = trapped
        .fixture
        .command(&trapped.fixture.checkout(), &["cat-file", "-p", &missing])
        .output()
        .unwrap();
    assert!(trapped.canary.exists(), "the trap is ineffective");
    // Set while the repository is open: no operation there needs a missing object.
    let trapped = TrappedRepository::new();
    let plant = |_: &Worktree| {
        trapped.set(
            &trapped.config(),
            &[
                ("remote.evil.promisor", "true"),
                ("remote.evil.url", "{origin}"),
                ("remote.evil.uploadpack", TRAP),
            ],
        );
    };
    course(&trapped.fixture, &plant);
    assert!(!trapped.canary.exists());
}

#[test]
fn config_commands_of_a_local_remote_do_not_run() {
    let trapped = TrappedRepository::new();
    let origin = trapped.fixture.path().join("origin.git/config");
    trapped.set(
        &origin,
        &[
            ("uploadpack.packObjectsHook", TRAP),
            ("core.fsmonitor", TRAP),
            ("core.pager", TRAP),
            ("core.sshCommand", TRAP),
            ("core.editor", TRAP),
        ],
    );
    trapped.check("the remote's own", &|_| {}, &[]);
}

#[test]
fn links_planted_by_an_agent_are_not_written_through() {
    let trapped = TrappedRepository::new();
    let precious = trapped.fixture.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("later"), "precious\n").unwrap();
    fs::write(precious.join("index"), "precious\n").unwrap();
    let git_dir = trapped.fixture.checkout().join(".git/worktrees/c1");
    let plant = |w: &Worktree| {
        use std::os::unix::fs::symlink;
        for name in ["index", "index.new"] {
            let _ = fs::remove_file(git_dir.join(name));
            symlink(precious.join("index"), git_dir.join(name)).unwrap();
        }
        symlink(&precious, w.path.join("dir")).unwrap();
    };
    course(&trapped.fixture, &plant);
    assert_eq!(fs::read_to_string(precious.join("index")).unwrap(), "precious\n");
    assert_eq!(fs::read_to_string(precious.join("later")).unwrap(), "precious\n");
}
