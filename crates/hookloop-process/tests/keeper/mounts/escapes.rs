//! Ways to the covered files, which all work without a confinement.
//!
//! Perl makes the system calls, by their numbers on x86-64. An argument that is passed by address has to be a variable.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use hookloop_process::{Confinement, ExitReason, Job, JobResult};
use rustix::process::geteuid;

use super::users::for_each_user;
use super::{Scene, mounts};
use crate::{keeper, stderr, stdout};

const SECRET: &str = "covered secret";

/// The place where an attempt works, which shows that it has no mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Works {
    /// Without mounts.
    Open,
    /// In a namespace with the same mount, and without a confinement.
    Mounted,
    /// As `Mounted`, for root.
    MountedByRoot,
}

/// A script that prints a covered file.
struct Attempt(&'static str, Works, &'static str);

const ATTEMPTS: [Attempt; 14] = [
    Attempt("read", Works::Open, "cat $PROJECT/.git/secret"),
    Attempt("directory-of-another", Works::Open, "cat /proc/$VICTIM/cwd/.git/secret"),
    Attempt("root-of-another", Works::Open, "cat /proc/$VICTIM/root$PROJECT/.git/secret"),
    Attempt("file-of-another", Works::Open, "cat /proc/$VICTIM/fd/3/secret"),
    Attempt("threads-of-another", Works::Open, "cat /proc/$VICTIM/task/$VICTIM/cwd/.git/secret"),
    Attempt("root-of-the-keeper", Works::Open, "cat /proc/$PPID/root$PROJECT/.git/secret"),
    Attempt("directory-of-the-keeper", Works::Open, "cat /proc/$PPID/cwd$PROJECT/.git/secret"),
    Attempt(
        "move-it",
        Works::Open,
        "cd / && mv $PROJECT $BASE/moved && cat $BASE/moved/.git/secret",
    ),
    Attempt(
        "unmount",
        Works::Mounted,
        r#"cd /; perl -e 'my $path = $ENV{PROJECT}; exit(syscall(166, $path, 2) != 0)' &&
        cat $PROJECT/.git/secret"#,
    ),
    // A bind without its mounts below shows the files that they cover.
    Attempt(
        "bind",
        Works::Mounted,
        r#"perl -e 'my ($from, $to, $none) = ($ENV{BASE}, "$ENV{BASE}/spare", "none");
        exit(syscall(165, $from, $to, $none, 4096, 0) != 0)' && cat $BASE/spare/project/.git/secret"#,
    ),
    Attempt(
        "tree",
        Works::Mounted,
        r#"perl -e 'my $base = $ENV{BASE}; my $tree = syscall(428, -100, $base, 1);
        $tree >= 0 && open F, "/proc/self/fd/$tree/project/.git/secret" or exit 1; print <F>'"#,
    ),
    Attempt(
        "new-namespace",
        Works::MountedByRoot,
        r#"cd /; perl -e 'my $path = $ENV{PROJECT}; syscall(272, 0x20000) == 0 or exit 1;
        syscall(166, $path, 2) == 0 && open F, "$path/.git/secret" or exit 1; print <F>'"#,
    ),
    Attempt(
        "namespace-of-another",
        Works::MountedByRoot,
        r#"perl -e 'open N, "/proc/$ENV{VICTIM}/ns/mnt" or exit 1;
        syscall(308, fileno N, 0) == 0 && open F, "$ENV{PROJECT}/.git/secret" or exit 1; print <F>'"#,
    ),
    Attempt(
        "change-root",
        Works::MountedByRoot,
        r#"perl -e 'my $root = "/proc/$ENV{VICTIM}/root"; syscall(161, $root) == 0 or exit 1;
        open F, "$ENV{PROJECT}/.git/secret" or exit 1; print <F>'"#,
    ),
];

/// Makes the mount of the scene in a namespace, without a confinement, and runs an attempt there.
const MOUNTED: &str = r#"mount --bind "$CHECKOUT" "$PROJECT" && ! test -e "$PROJECT/.git" && cd "$PROJECT" &&
    exec sh -c "$ATTEMPT""#;

/// A process outside that has the covered directory open.
struct Victim(Child);

impl Victim {
    fn new(scene: &Scene) -> Victim {
        let mut victim = Command::new("sh");
        victim.args(["-c", "exec 3< .git; echo ready; exec sleep 600"]).current_dir(&scene.project);
        let mut victim = victim.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(victim.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Victim(victim)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Runs an attempt in a new scene, with this confinement or without.
fn run(attempt: &Attempt, confine: impl Fn(&Scene) -> Option<Confinement>) -> JobResult {
    let scene = Scene::new();
    scene.directory("spare");
    let victim = Victim::new(&scene);
    let Attempt(_, works, script) = attempt;
    let confinement = confine(&scene);
    let mut job: Job<'_> = scene.job(Confinement::default(), script);
    if confinement.is_none() && *works != Works::Open {
        let user = if geteuid().is_root() { "-m" } else { "-Urm" };
        job.argv = ["unshare", user, "sh", "-c", MOUNTED].map(Into::into).to_vec();
    }
    job.confinement = confinement;
    job.env.push(("ATTEMPT".into(), script.into()));
    job.env.push(("CHECKOUT".into(), scene.checkout.clone().into()));
    job.env.push(("VICTIM".into(), victim.0.id().to_string().into()));
    keeper().run(job).unwrap()
}

#[test]
fn every_attempt_to_read_covered_files_works_without_a_confinement() {
    for_each_user(|| {
        for attempt in &ATTEMPTS {
            if attempt.1 == Works::MountedByRoot && !geteuid().is_root() {
                continue;
            }
            let ran = run(attempt, |_| None);
            let (out, err) = (stdout(&ran), stderr(&ran));
            assert!(out.contains(SECRET), "{}: {:?} {out}{err}", attempt.0, ran.exit);
        }
    });
}

#[test]
fn no_attempt_to_read_covered_files_works_in_a_confinement() {
    for_each_user(|| {
        // Writes are allowed in the scene, or everywhere.
        let cases = ATTEMPTS.iter().flat_map(|attempt| [(attempt, true), (attempt, false)]);
        for (attempt, is_limited) in cases {
            let ran = run(attempt, |scene| {
                let write = is_limited.then(|| vec![scene.base.clone()]);
                Some(Confinement { write, local_sockets: true, ..mounts([scene.bind()]) })
            });
            let (out, err) = (stdout(&ran), stderr(&ran));
            assert!(!out.contains(SECRET), "{}: {out}", attempt.0);
            // The attempt was refused, and the script has no mistake.
            assert!(
                matches!(ran.exit, ExitReason::Exited(1)),
                "{}: {:?} {err}",
                attempt.0,
                ran.exit
            );
            assert!(!err.contains("at -e line"), "{}: {err}", attempt.0);
        }
    });
}

#[test]
fn a_job_with_mounts_inherits_no_open_files() {
    for_each_user(|| {
        let scene = Scene::new();
        let overlay = scene.overlay(&scene.project, "own");
        let confined = mounts([scene.bind(), overlay]);
        let ran = scene.run(confined, "ls /proc/$$/fd");
        assert_eq!(stdout(&ran), "0\n1\n2\n", "{}", stderr(&ran));
    });
}
