//! Jobs with private mounts: the files that they see, and the files that their writes change.

mod errors;
mod escapes;
mod support;
mod users;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;

use hookloop_process::{Confinement, ExitReason, Job, JobResult, PrivateMount};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{getegid, geteuid};
use users::{flagged_directory, for_each_user, not_tested, run_by};

use super::{AMPLE, eventually, keeper, number_in, script, stderr, stdout};

/// A project's directory with the files of an agent, and a clean checkout of it elsewhere.
struct Scene {
    _directory: tempfile::TempDir,
    base: PathBuf,
    project: PathBuf,
    checkout: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let scene = Scene {
            _directory: directory,
            project: base.join("project"),
            checkout: base.join("project/.state/checkout"),
            base,
        };
        scene.write("project/file", "agent\n");
        scene.write("project/.git/secret", "covered secret\n");
        scene.write("project/.state/checkout/file", "clean\n");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.path(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// The checkout at the project's path.
    fn bind(&self) -> PrivateMount {
        let (source, target) = (self.checkout.clone(), self.project.clone());
        PrivateMount::Bind { source, target, read_only: false }
    }

    /// Changes to a directory of the scene, in another directory of it.
    fn overlay(&self, target: &Path, own: &str) -> PrivateMount {
        let [changes, work] = ["changes", "work"].map(|part| self.path(own).join(part));
        [&changes, &work].into_iter().for_each(|path| fs::create_dir_all(path).unwrap());
        PrivateMount::Overlay { target: target.into(), changes, work }
    }

    fn job<'a>(&self, confinement: Confinement, text: &str) -> Job<'a> {
        let mut job = script(text);
        job.cwd.clone_from(&self.project);
        job.env.push(("BASE".into(), self.base.clone().into()));
        job.env.push(("PROJECT".into(), self.project.clone().into()));
        job.confinement = Some(confinement);
        job
    }

    fn run(&self, confinement: Confinement, text: &str) -> JobResult {
        keeper().run(self.job(confinement, text)).unwrap()
    }
}

/// The text of all files below a directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
    found
}

fn mounts(mounts: impl Into<Vec<PrivateMount>>) -> Confinement {
    Confinement { mounts: mounts.into(), ..Confinement::default() }
}

fn assert_passed(ran: &JobResult) {
    assert_eq!(ran.exit, ExitReason::Exited(0), "{}{}", stdout(ran), stderr(ran));
}

#[test]
fn a_bound_directory_replaces_the_files_at_its_target() {
    for_each_user(|| {
        let scene = Scene::new();
        let state = scene.path("project/.state");
        let outside = |all: BTreeMap<PathBuf, String>| {
            all.into_iter().filter(|(path, _)| !path.starts_with(&state)).collect::<Vec<_>>()
        };
        let before = outside(files(&scene.project));
        let write = Some(vec![scene.project.clone()]);
        let ran = scene.run(
            Confinement { write, ..mounts([scene.bind()]) },
            "pwd; ls -A; cat file; cat $PROJECT/file; echo changed > file; echo new > $PROJECT/new",
        );
        assert_passed(&ran);
        let expected = format!("{}\nfile\nclean\nclean\n", scene.project.display());
        assert_eq!(stdout(&ran), expected);
        assert_eq!(outside(files(&scene.project)), before);
        assert_eq!(fs::read_to_string(scene.checkout.join("file")).unwrap(), "changed\n");
        assert_eq!(fs::read_to_string(scene.checkout.join("new")).unwrap(), "new\n");
    });
}

#[test]
fn a_job_with_mounts_writes_only_to_its_places() {
    for_each_user(|| {
        let scene = Scene::new();
        let elsewhere = scene.directory("elsewhere");
        let refused = "echo x > $BASE/elsewhere/new";
        let confined = |places: &[&Path]| {
            let write = Some(places.iter().map(PathBuf::from).collect());
            Confinement { write, ..mounts([scene.bind()]) }
        };
        let ran = scene.run(confined(&[&scene.project]), refused);
        assert_ne!(ran.exit, ExitReason::Exited(0));
        assert!(stderr(&ran).contains("Permission denied"), "{}", stderr(&ran));
        assert!(files(&elsewhere).is_empty());
        assert_passed(&scene.run(confined(&[&elsewhere]), refused));
        // The place is the directory that the job sees, so the rule is for the checkout and not for the covered files.
        let ran = scene.run(confined(&[&scene.path("project")]), "rm file; ls -A");
        assert_passed(&ran);
        assert_eq!(stdout(&ran), "");
        assert!(scene.path("project/file").exists());
        assert!(!scene.checkout.join("file").exists());
    });
}

#[test]
fn a_read_only_bind_takes_no_changes() {
    for_each_user(|| {
        let scene = Scene::new();
        let source = tempfile::tempdir_in(flagged_directory()).unwrap();
        fs::write(source.path().join("file"), "shared\n").unwrap();
        let bind = PrivateMount::Bind {
            source: source.path().into(),
            target: scene.project.clone(),
            read_only: true,
        };
        let write = Some(vec![scene.project.clone()]);
        let ran = scene.run(
            Confinement { write, ..mounts([bind]) },
            "cat file; for c in 'echo x > file' 'touch new' 'rm file' 'chmod 700 .'; do
                sh -c \"$c\" && echo done; done; grep \" $PROJECT \" /proc/self/mountinfo",
        );
        let (out, err) = (stdout(&ran), stderr(&ran));
        assert_eq!(err.matches("Read-only file system").count(), 4, "{err}");
        let (file, mount) = out.split_once('\n').unwrap();
        assert_eq!(file, "shared", "{out}");
        let flags = mount.split(' ').nth(5).unwrap().split(',').collect::<Vec<_>>();
        let had = statvfs(source.path()).unwrap().f_flag;
        for (flag, name) in [
            (StatVfsMountFlags::NOSUID, "nosuid"),
            (StatVfsMountFlags::NODEV, "nodev"),
            (StatVfsMountFlags::NOEXEC, "noexec"),
        ] {
            assert_eq!(flags.contains(&name), had.contains(flag), "{name}: {mount}");
        }
        assert!(flags.contains(&"ro"), "{mount}");
    });
}

#[test]
fn an_overlay_keeps_changes_apart() {
    for_each_user(|| {
        let scene = Scene::new();
        scene.write("project/old", "old\n");
        scene.write("project/deep/er", "deep\n");
        let before = files(&scene.project);
        let overlay = scene.overlay(&scene.project, "own: a,b\\c");
        let write = Some(vec![scene.project.clone()]);
        let confined = Confinement { write, ..mounts([overlay]) };
        let first = scene.run(
            confined.clone(),
            "set -e; cat file; echo changed > file; echo new > deep/new; rm old; mv deep/er er; ls",
        );
        assert_passed(&first);
        assert_eq!(stdout(&first), "agent\ndeep\ner\nfile\n");
        assert_eq!(files(&scene.project), before);
        let changes = scene.path("own: a,b\\c/changes");
        assert_eq!(fs::read_to_string(changes.join("file")).unwrap(), "changed\n");
        assert_eq!(fs::read_to_string(changes.join("deep/new")).unwrap(), "new\n");

        let second = scene.run(confined, "set -e; cat file deep/new er; test ! -e old; rm -r deep");
        assert_passed(&second);
        assert_eq!(stdout(&second), "changed\nnew\ndeep\n");
        assert_eq!(files(&scene.project), before);
    });
}

/// Each mount is made upon those before it.
#[test]
fn mounts_are_made_in_their_order() {
    for_each_user(|| {
        let scene = Scene::new();
        scene.write("project/.state/checkout/cache/file", "cached\n");
        scene.write("project/.state/checkout/.env", "token\n");
        let cache = scene.project.join("cache");
        let changes = scene.overlay(&cache, "project/.state/own");
        let hide = PrivateMount::Hide { target: scene.project.join(".env") };
        // The project has neither a cache nor this file. The directories of the overlay are covered by the bind.
        assert!(!cache.exists());
        let write = Some(vec![scene.project.clone(), cache]);
        let ran = scene.run(
            Confinement { write, ..mounts([scene.bind(), changes, hide]) },
            "cat cache/file .env; echo changed > cache/file",
        );
        assert_passed(&ran);
        assert_eq!(stdout(&ran), "cached\n");
        let read = |name| fs::read_to_string(scene.path(name)).unwrap();
        assert_eq!(read("project/.state/checkout/cache/file"), "cached\n");
        assert_eq!(read("project/.state/own/changes/file"), "changed\n");
    });
}

/// The user cannot reach this file, and neither can the job.
#[test]
fn a_hidden_target_that_cannot_be_reached_is_skipped() {
    for_each_user(|| {
        let scene = Scene::new();
        if !geteuid().is_root() {
            let reached = fs::metadata("/proc/1/cwd/.");
            assert_eq!(reached.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
        }
        let hide = PrivateMount::Hide { target: "/proc/1/cwd/hidden".into() };
        assert_passed(&scene.run(mounts([hide]), "true"));
    });
}

#[test]
fn hidden_files_and_directories_are_empty() {
    for_each_user(|| {
        let scene = Scene::new();
        let socket = scene.path("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let file = scene.project.join("file");
        let targets =
            [scene.project.join(".git"), file.clone(), socket, scene.path("a/b"), file.join("b")];
        let hide = targets.map(|target| PrivateMount::Hide { target });
        let confined = Confinement { local_sockets: true, ..mounts(hide) };
        let ran = scene.run(
            confined,
            "ls -A .git; cat file; ls -A $BASE
            touch .git/new; chmod 777 .git file; rmdir .git; rm file; test -S $BASE/socket; echo $?",
        );
        assert_eq!(stdout(&ran), "project\nsocket\n1\n", "{}", stderr(&ran));
        let refusals = stderr(&ran);
        assert_eq!(refusals.matches("Read-only file system").count(), 3, "{refusals}");
        assert_eq!(refusals.matches("busy").count(), 2, "{refusals}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "agent\n");
        assert_eq!(files(&scene.path("project/.git")).len(), 1);
    });
}

/// Each job waits for the other, so they end only if both run at the same time.
#[test]
fn jobs_at_the_same_time_have_different_mounts() {
    for_each_user(|| {
        let scene = Scene::new();
        scene.write("other/file", "other\n");
        scene.directory("meet");
        let bind = |source: &Path| PrivateMount::Bind {
            source: source.into(),
            target: scene.project.clone(),
            read_only: false,
        };
        let meet = |mount: PrivateMount, own: &str, other: &str| {
            let text = format!(
                "touch $BASE/meet/{own}
                while ! test -e $BASE/meet/{other}; do sleep 0.01; done; cat file"
            );
            let ran = scene.run(mounts([mount]), &text);
            assert_passed(&ran);
            stdout(&ran)
        };
        let both = thread::scope(|scope| {
            let first = scope.spawn(|| meet(bind(&scene.checkout), "1", "2"));
            let second = scope.spawn(|| meet(bind(&scene.path("other")), "2", "1"));
            [first.join().unwrap(), second.join().unwrap()]
        });
        assert_eq!(both, ["clean\n", "other\n"]);
    });
}

/// Limits need these files of the job's processes, which are in another user namespace.
#[test]
fn a_keeper_watches_and_ends_the_processes_of_a_job_with_mounts() {
    for_each_user(|| {
        let scene = Scene::new();
        let text = "echo $$ > $BASE/id; while ! test -e $BASE/go; do sleep 0.01; done
            setsid sleep 600 & exit 0";
        let ran = thread::scope(|scope| {
            let job = scope.spawn(|| scene.run(mounts([scene.bind()]), text));
            let id = eventually("the job", AMPLE, || number_in(&scene.path("id")));
            let unread = ["io", "environ", "smaps_rollup", "cwd"]
                .map(|name| format!("/proc/{id}/{name}"))
                .into_iter()
                .filter(|file| fs::read(file).is_err() && fs::read_link(file).is_err());
            let unread: Vec<_> = unread.collect();
            scene.write("go", "");
            assert_eq!(unread, [""; 0]);
            job.join().unwrap()
        });
        assert_passed(&ran);
        assert_eq!((ran.leftovers_killed, ran.survivors), (1, Vec::new()));
    });
}

#[test]
fn directory_and_program_of_a_job_are_those_of_its_mounts() {
    for_each_user(|| {
        let scene = Scene::new();
        scene.directory("project/.state/checkout/only-here");
        fs::copy("/bin/sh", scene.checkout.join("tool")).unwrap();
        let mut job = scene.job(mounts([scene.bind()]), "");
        job.cwd = scene.project.join("only-here");
        job.argv = ["../tool", "-c", "pwd"].map(Into::into).to_vec();
        let ran = keeper().run(job).unwrap();
        assert_passed(&ran);
        assert_eq!(stdout(&ran), format!("{}/only-here\n", scene.project.display()));
    });
}

#[test]
fn a_job_with_mounts_has_its_user_and_no_other_capabilities() {
    for_each_user(|| {
        let scene = Scene::new();
        let text = "id -u; id -g; grep -E '^(Cap(Prm|Eff|Inh|Amb)|NoNewPrivs):' /proc/self/status";
        let bound = scene.run(mounts([scene.bind()]), text);
        let plain = scene.run(mounts([]), text);
        assert_eq!(stdout(&bound), stdout(&plain), "{}", stderr(&bound));
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        assert!(stdout(&bound).starts_with(&format!("{user}\n{group}\n")), "{}", stdout(&bound));
        if !geteuid().is_root() {
            assert!(stdout(&bound).contains("CapEff:\t0000000000000000\n"), "{}", stdout(&bound));
        }
    });
}

/// Root may lack capabilities, as in a container. It would have all of them in its user namespace.
#[test]
fn mounts_give_no_capabilities_to_a_job_of_root() {
    if !geteuid().is_root() {
        return not_tested("root without capabilities");
    }
    // The kernel requires this one of a process that maps root.
    let without = ["setpriv", "--bounding-set", "-all,+setfcap"];
    run_by(&without, "mounts::root_has_no_capabilities");
}

#[test]
#[ignore = "without capabilities, by another test"]
fn root_has_no_capabilities() {
    let scene = Scene::new();
    let text = "id -u; grep -E '^Cap(Prm|Eff):' /proc/self/status";
    let ran = scene.run(mounts([scene.bind()]), text);
    let none = "0000000000000000";
    assert_eq!(stdout(&ran), format!("0\nCapPrm:\t{none}\nCapEff:\t{none}\n"), "{}", stderr(&ran));
}

/// Where mounts are shared between namespaces, as systemd does it, root's would be visible outside.
#[test]
fn mounts_are_not_visible_outside_of_the_job() {
    if !geteuid().is_root() {
        return not_tested("mounts that are shared between namespaces");
    }
    let shared = ["unshare", "--mount", "--propagation", "shared"];
    run_by(&shared, "mounts::mounts_are_not_visible_outside");
}

#[test]
#[ignore = "with shared mounts, by another test"]
fn mounts_are_not_visible_outside() {
    let scene = Scene::new();
    let own = || fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = own();
    assert!(before.contains(" / / ") && before.contains("shared:"), "{before}");
    let ran = thread::scope(|scope| {
        let text = "touch $BASE/made; while ! test -e $BASE/go; do sleep 0.01; done; cat file";
        let job = scope.spawn(|| scene.run(mounts([scene.bind()]), text));
        let made = scene.path("made");
        eventually("the job", AMPLE, || made.exists().then_some(()));
        let after = own();
        scene.write("go", "");
        assert_eq!(after, before);
        job.join().unwrap()
    });
    assert_eq!(stdout(&ran), "clean\n");
}

#[test]
fn a_job_without_write_limits_moves_files_between_directories() {
    for_each_user(|| {
        let scene = Scene::new();
        let rename = "rename 'file', 'sub/file' and link 'sub/file', 'again' or die $!";
        let text = format!("mkdir sub && perl -e \"{rename}\"");
        for confined in [mounts([scene.bind()]), mounts([])] {
            assert_passed(&scene.run(confined, &text));
        }
        assert!(scene.project.join("sub/file").exists() && scene.checkout.join("again").exists());
    });
}

/// A script that connects to a socket of this test, and to one of its own.
const SOCKETS: &str = r#"exec perl -MSocket -e '
    socket(S, PF_UNIX, SOCK_STREAM, 0) or exit 9;
    connect(S, sockaddr_un("$ENV{BASE}/socket")) or die "connect: $!"; print S "hello\n"; close S;
    socket(L, PF_UNIX, SOCK_STREAM, 0) && bind(L, sockaddr_un("$ENV{BASE}/own")) && listen(L, 1)
        or die "own: $!";
    socket(C, PF_UNIX, SOCK_STREAM, 0) && connect(C, sockaddr_un("$ENV{BASE}/own")) or die "own: $!";
    socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or die "pair: $!";
    print socket(I, PF_INET, SOCK_STREAM, 0) ? "network\n" : "no network\n"'"#;

#[test]
fn local_sockets_are_a_permission_of_their_own() {
    for_each_user(|| {
        for no_network in [false, true] {
            let scene = Scene::new();
            let listener = UnixListener::bind(scene.path("socket")).unwrap();
            listener.set_nonblocking(true).unwrap();
            let confined = |local_sockets| Confinement {
                no_network,
                local_sockets,
                write: Some(vec![scene.base.clone()]),
                ..mounts([scene.bind()])
            };
            assert_eq!(scene.run(confined(false), SOCKETS).exit, ExitReason::Exited(9));
            assert!(listener.accept().is_err());
            let ran = scene.run(confined(true), SOCKETS);
            assert_passed(&ran);
            assert_eq!(stdout(&ran), if no_network { "no network\n" } else { "network\n" });
            listener.accept().unwrap();
        }
    });
}
