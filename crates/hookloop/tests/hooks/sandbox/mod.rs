//! Hooks in a sandbox: escape attempts, which all work without one, and operations that still work.

mod attempts;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use attempts::{ATTEMPTS, Attempt, By};
use serde_json::{Value, json};

use crate::cli::Project;
use crate::hooks::consent::UNTRUSTED;

/// Files, sockets and processes that a hook could reach, and must not.
struct Outside {
    directory: tempfile::TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    local: UnixListener,
    datagrams: UnixDatagram,
    nameless: UnixListener,
    victim: Child,
}

impl Outside {
    fn new() -> Outside {
        let directory = tempfile::tempdir().unwrap();
        for name in ["file", "second", "third"] {
            std::fs::write(directory.path().join(name), "as it was\n").unwrap();
        }
        let place = |name: &str| directory.path().join(name);
        let name = SocketAddr::from_abstract_name(place("nameless").to_str().unwrap()).unwrap();
        // The victim allows tracing on systems where only parents may trace.
        let victim = "syscall(157, 0x59616d61, -1, 0, 0, 0); $| = 1; print qq(ready\\n); sleep 600";
        let mut victim =
            Command::new("perl").args(["-e", victim]).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        let said = victim.stdout.as_mut().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut ready).unwrap();
        Outside {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            local: UnixListener::bind(place("socket")).unwrap(),
            datagrams: UnixDatagram::bind(place("datagrams")).unwrap(),
            nameless: UnixListener::bind_addr(&name).unwrap(),
            victim,
            directory,
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the variables for the attempts.
    fn variables(&self, state: &Path) -> Value {
        json!({
            "OUTSIDE": self.path(),
            "STATE": state,
            "TCP": self.tcp.local_addr().unwrap().port().to_string(),
            "UDP": self.udp.local_addr().unwrap().port().to_string(),
            "VICTIM": self.victim.id().to_string(),
        })
    }

    fn files(&self) -> BTreeMap<PathBuf, Option<String>> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), std::fs::read_to_string(&path).ok()))
            .collect()
    }

    /// Returns whether any attempt reached a socket.
    fn was_reached(&self) -> bool {
        self.tcp.set_nonblocking(true).unwrap();
        self.udp.set_nonblocking(true).unwrap();
        self.local.set_nonblocking(true).unwrap();
        self.datagrams.set_nonblocking(true).unwrap();
        self.nameless.set_nonblocking(true).unwrap();
        let came = [
            self.tcp.accept().map(drop),
            self.udp.recv(&mut [0; 8]).map(drop),
            self.local.accept().map(drop),
            self.datagrams.recv(&mut [0; 8]).map(drop),
            self.nameless.accept().map(drop),
        ];
        came.iter().any(|came| !matches!(came, Err(error) if error.kind() == ErrorKind::WouldBlock))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
    }
}

/// Returns a project whose hooks are all attempts, in this sandbox.
fn project(sandbox: &Value, outside: &Outside) -> Project {
    let project = Project::new();
    let variables = outside.variables(&project.state());
    std::fs::create_dir(project.root().join("attempts")).unwrap();
    let hooks: Vec<Value> = ATTEMPTS
        .iter()
        .map(|Attempt { name, script, .. }| {
            let file = format!("attempts/{name}.sh");
            project.write(&file, script);
            let mut hook = json!({ "name": name, "command": ["sh", file], "env": variables,
                "timeout": 20 });
            if !sandbox.is_null() {
                hook["sandbox"] = sandbox.clone();
            }
            hook
        })
        .collect();
    // JSON is valid YAML.
    project.configure(&format!("hooks: {}\n", json!({ "on_task_complete": hooks })));
    project.trust();
    project
}

/// Returns the names of the attempts that worked.
fn successes(project: &Project, which: impl Fn(&Attempt) -> bool) -> Vec<&'static str> {
    let tried = ATTEMPTS.iter().filter(|attempt| which(attempt));
    let worked = tried.filter(|attempt| {
        let run = project.try_hook(&[attempt.name]);
        let status = run["status"].as_str().unwrap();
        // The attempt was refused, and the script has no mistake.
        assert!(!run["stderr"].as_str().unwrap().contains("at -e line"), "{}: {run}", attempt.name);
        assert!(["passed", "failed", "killed"].contains(&status), "{}: {run}", attempt.name);
        status == "passed"
    });
    worked.map(|attempt| attempt.name).collect()
}

#[test]
fn every_escape_attempt_works_without_a_sandbox() {
    let outside = Outside::new();
    let project = project(&Value::Null, &outside);
    let worked = successes(&project, |_| true);
    let expected = ATTEMPTS.iter().filter(|attempt| attempt.sure).map(|attempt| attempt.name);
    let missing: Vec<_> = expected.filter(|name| !worked.contains(name)).collect();
    assert_eq!(missing, [""; 0], "these should have worked");
    assert!(outside.was_reached());
}

#[test]
fn no_escape_attempt_works_in_a_sandbox() {
    let outside = Outside::new();
    let before = outside.files();
    let project = project(&json!({ "network": "none", "write": ["worktree"] }), &outside);
    assert_eq!(successes(&project, |_| true), [""; 0]);
    assert_eq!(outside.files(), before);
    assert!(!outside.was_reached());
}

#[test]
fn network_and_write_limits_each_stop_their_escape_attempts() {
    for (sandbox, half) in
        [(json!({ "network": "none" }), By::Network), (json!({ "write": ["worktree"] }), By::Write)]
    {
        let outside = Outside::new();
        let project = project(&sandbox, &outside);
        let worked = successes(&project, |attempt| [half, By::Either].contains(&attempt.by));
        assert_eq!(worked, [""; 0], "{sandbox}");
    }
}

/// Runs a script in a project with this sandbox.
fn run(project: &Project, sandbox: &str, script: &str) -> Value {
    project.configure(&format!(
        "hooks:\n  on_task_complete:\n    - {{name: check, command: [sh, check.sh], sandbox: {sandbox}}}\n"
    ));
    project.write("check.sh", script);
    project.trust();
    project.try_hook(&["check"])
}

const FULL: &str = "{network: none, write: [worktree, tmp]}";

#[test]
fn ordinary_file_and_git_operations_work_in_a_sandbox() {
    let project = Project::new();
    let run = run(
        &project,
        FULL,
        r#"set -e
        echo one > new; echo two >> new; mkdir -p deep/er; mv new deep/er/; ln deep/er/new linked
        chmod +x linked; rm -r deep
        git init -q .; git add -A; git -c user.name=n -c user.email=e commit -qm first; git status
        printf 'a\nb\n' | sort -r | head -1 | tr b c
        test "$(stat -c %a "$TMPDIR")" = 700; mktemp > /dev/null; sort -o "$TMPDIR/x" linked
        cat <<END
$(cat "$TMPDIR/x")
END
        echo gone > /dev/null; echo out > /dev/stdout; echo err > /dev/stderr
        perl -e 'use Socket; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; syswrite A, "pair\n";
            sysread B, $_, 9; print; fork // die; wait; kill "CONT", $$ or die'
        cat; echo "tmp $TMPDIR""#,
    );
    assert_eq!(run["status"], "passed", "{run}");
    let stdout = run["stdout"].as_str().unwrap();
    for part in ["nothing to commit", "\nc\n", "one\ntwo\n", "out\n", "pair\n", "hook_event_name"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert_eq!(run["stderr"], "err\n");
    let temporary = stdout.rsplit("tmp ").next().unwrap().trim();
    assert!(temporary.starts_with("/tmp/hookloop-"), "{stdout}");
    assert!(!Path::new(temporary).exists(), "{temporary}");
}

#[test]
fn a_sandboxed_hook_has_the_files_and_the_environment_of_any_other() {
    let open = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: 'ls /proc/self/fd; env | sort; grep -E \"Sig(Blk|Ign)\" /proc/self/status; exit 7'}\n",
    );
    open.ok(&["hooks", "trust", "--yes"]);
    let plain = open.try_hook(&["check"]);
    let config = std::fs::read_to_string(open.root().join("hookloop.yaml")).unwrap();
    open.write(
        "hookloop.yaml",
        &config.replace("name: check", "name: check, sandbox: {write: []}"),
    );
    open.ok(&["hooks", "trust", "--yes"]);
    let boxed = open.try_hook(&["check"]);
    for field in ["stdout", "stderr", "status", "exit_code"] {
        assert_eq!(plain[field], boxed[field], "{field}");
    }
    assert_eq!(plain["status"], "failed", "{plain}");
}

#[test]
fn a_sandboxed_hook_writes_only_to_the_named_paths() {
    let project = Project::new();
    std::fs::create_dir(project.root().join("out")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().display();
    let all = run(
        &project,
        &format!("{{write: [out, {path}]}}"),
        &format!("echo x > out/a && echo x > {path}/a && ! echo x > b"),
    );
    assert_eq!(all["status"], "passed", "{all}");
    let none = run(&project, "{write: []}", "! echo x > out/b");
    assert_eq!(none["status"], "passed", "{none}");
}

#[test]
fn missing_linked_or_internal_write_paths_are_refused() {
    let project = Project::new();
    std::os::unix::fs::symlink("/", project.root().join("link")).unwrap();
    let state = project.state();
    let above = state.parent().unwrap().display();
    let check = |sandbox: &str, why: &str| {
        let run = run(&project, sandbox, "touch ran");
        assert_eq!(run["status"], "not_started", "{run}");
        assert!(run.to_string().contains(why), "{run}");
        assert!(!project.root().join("ran").exists());
    };
    check("{write: [worktree, nowhere]}", "No such file");
    check("{write: [worktree, link]}", "out of the project");
    check(&format!("{{write: [worktree, {above}]}}"), "hookloop's own state");
    check(&format!("{{write: [worktree, {}]}}", state.join("hookloop.db").display()), "own state");
}

#[test]
fn a_missing_program_in_a_sandbox_is_reported() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: [/no/such/program], sandbox: {network: none}}\n",
    );
    project.trust();
    let run = project.try_hook(&["check"]);
    assert_eq!(run["status"], "not_started", "{run}");
    assert!(run.to_string().contains("there is no such file"), "{run}");
}

#[test]
fn trust_and_doctor_show_that_the_sandbox_is_enforced() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: 'true', timeout: 5, sandbox: {network: none, write: [tmp]}}\n",
    );
    let enforced = "enforced here by Landlock";
    assert!(project.ok(&["hooks", "trust", "--show"]).contains(enforced));
    project.trust();
    let explained = project.ok(&["hooks", "explain", "task_completed"]);
    assert!(explained.contains("sandbox: no network; writes only to tmp; enforced"), "{explained}");
    assert!(project.ok(&["doctor"]).contains(enforced));
}

/// A sandbox that can't be enforced is refused: here the kernel reports that it has no Landlock.
#[test]
fn a_hook_does_not_run_if_its_sandbox_cannot_be_enforced() {
    let project = Project::with_config(
        "hooks:\n  on_task_complete:\n    - {name: check, command: touch ran, sandbox: {network: none}}\n",
    );
    project.trust();
    let without_landlock = |args: &str| {
        // A filter that refuses the three calls with ENOSYS; perl can install one.
        let script = format!(
            r#"perl -e '
            my @code = ([0x20, 0, 0, 0], [0x35, 0, 2, 444], [0x25, 1, 0, 446],
                [0x06, 0, 0, 0x50026], [0x06, 0, 0, 0x7fff0000]);
            my $code = join "", map {{ pack "SCCL", @$_ }} @code;
            my $program = pack "Sx6P", scalar @code, $code;
            syscall(157, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
            syscall(157, 22, 2, $program, 0, 0) == 0 or die "seccomp: $!";
            exec "hookloop", @ARGV' -- {args}"#
        );
        project.shell(&script)
    };
    let ran = without_landlock("hooks run check --json");
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "{ran:?}");
    let run: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(run["status"], "not_started", "{run}");
    assert!(run.to_string().contains("this kernel has no Landlock"), "{run}");
    assert!(!project.root().join("ran").exists());
    let doctor = without_landlock("doctor");
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(
        doctor.stdout.contains("its sandbox can't be enforced, so it is not run"),
        "{doctor:?}"
    );
    // Without the filter the hook runs, so the filter made the difference.
    assert_eq!(project.try_hook(&["check"])["status"], "passed");
    assert!(project.root().join("ran").exists());
}

#[test]
fn a_hook_with_a_changed_sandbox_or_limit_needs_trust() {
    let config = |options: &str| {
        format!("hooks:\n  on_task_complete:\n    - {{name: check, command: 'true', {options}}}\n")
    };
    let project = Project::with_config(&config("sandbox: {network: none, write: [tmp]}"));
    project.trust();
    assert_eq!(project.try_hook(&["check"])["status"], "passed");
    for changed in [
        "sandbox: {network: none}",
        "sandbox: {write: [tmp]}",
        "sandbox: {network: none, write: [tmp, worktree]}",
        "sandbox: {network: none, write: [tmp]}, limits: {processes: 9}",
        "timeout: 60",
    ] {
        project.configure(&config(changed));
        let run = project.json_with(UNTRUSTED, &["hooks", "run", "check"]);
        assert!(run["reason"].as_str().unwrap().contains("it changed since"), "{changed}: {run}");
    }
}
