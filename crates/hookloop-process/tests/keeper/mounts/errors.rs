//! Mounts that fail: the job is not started, and the error names the path.

use std::path::{Path, PathBuf};

use hookloop_process::{
    Confinement, ConfinementError, ExitReason, MOUNTS_MAX, MountSupport, PrivateMount,
    ProcessError, WhyNotStarted,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::users::for_each_user;
use super::{Scene, mounts};
use crate::{EXECUTABLE, executable, keeper, script, stderr, stdout};

fn bind(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> PrivateMount {
    PrivateMount::Bind { source: source.into(), target: target.into(), read_only: false }
}

#[test]
fn a_job_whose_mount_fails_is_not_started() {
    for_each_user(|| {
        let scene = Scene::new();
        let mut keeper = keeper();
        let mut check = |mount: PrivateMount, path: &Path, errno: Errno| {
            let job = scene.job(mounts([scene.bind(), mount]), "touch $BASE/ran");
            let error = keeper.run(job).unwrap_err();
            let ProcessError::NotConfined { why } = &error else { panic!("{error:?}") };
            let errno = errno.raw_os_error();
            assert_eq!(*why, ConfinementError::Mount { path: path.into(), errno });
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        };
        let missing = scene.path("missing");
        let [file, there] = [scene.path("project/file"), scene.directory("there")];
        check(bind(&there, &missing), &missing, Errno::NOENT);
        check(bind(&missing, &there), &missing, Errno::NOENT);
        // The file is there as long as the bind before does not cover it.
        check(bind(&there, scene.path("project/.git")), &scene.path("project/.git"), Errno::NOENT);
        check(bind("there", &there), Path::new("there"), Errno::INVAL);
        check(bind(&there, "there"), Path::new("there"), Errno::INVAL);
        check(bind(&there, &file), &file, Errno::INVAL);
        check(PrivateMount::Hide { target: "there".into() }, Path::new("there"), Errno::INVAL);
        let overlay = |changes: &Path, work: &Path| PrivateMount::Overlay {
            target: there.clone(),
            changes: changes.into(),
            work: work.into(),
        };
        check(overlay(&missing, &there), &missing, Errno::NOENT);
        check(overlay(&there, &missing), &missing, Errno::NOENT);
        let work = scene.directory("work");
        check(overlay(&work, &work), &there, Errno::INVAL);

        assert!(!scene.path("ran").exists());
        assert_eq!(keeper.run(script("exit 4")).unwrap().exit, ExitReason::Exited(4));
    });
}

/// The kernel keeps a user from seeing the files below such a mount.
#[test]
fn directories_with_mounts_below_are_refused_without_root() {
    for_each_user(|| {
        let scene = Scene::new();
        let there = scene.directory("there");
        let [changes, work] = ["changes", "work"].map(|name| scene.directory(name));
        let bound = keeper().run(scene.job(mounts([bind("/", &there)]), "ls -A $BASE/there/proc"));
        if geteuid().is_root() {
            assert_eq!(stdout(&bound.unwrap()), "");
            return;
        }
        let overlay = PrivateMount::Overlay { target: "/".into(), changes, work };
        for failed in [bound, keeper().run(scene.job(mounts([overlay]), "true"))] {
            let expected =
                ConfinementError::Mount { path: "/".into(), errno: Errno::INVAL.raw_os_error() };
            let error = failed.unwrap_err();
            assert!(
                matches!(&error, ProcessError::NotConfined { why } if *why == expected),
                "{error}"
            );
        }
    });
}

#[test]
fn a_job_with_too_many_mounts_is_not_started() {
    let scene = Scene::new();
    let hide = PrivateMount::Hide { target: scene.path("project/.git") };
    let run = |count| keeper().run(scene.job(mounts(vec![hide.clone(); count]), "exit 5"));
    assert_eq!(run(MOUNTS_MAX).unwrap().exit, ExitReason::Exited(5));
    let error = run(MOUNTS_MAX + 1).unwrap_err();
    let why = ConfinementError::TooManyMounts;
    assert!(matches!(&error, ProcessError::NotConfined { why: found } if *found == why), "{error}");
}

/// A confined job stands for a system that refuses namespaces. It runs the test below.
#[test]
fn a_job_without_a_mount_namespace_is_not_started() {
    for_each_user(|| {
        let scene = Scene::new();
        let mut outer = scene.job(Confinement::default(), "");
        outer.argv = vec![std::env::current_exe().unwrap().into()];
        let inner = "mounts::errors::no_namespace_in_a_confined_job";
        outer.argv.extend(["--ignored", "--exact", inner, "--nocapture"].map(Into::into));
        outer.env.push((EXECUTABLE.into(), executable().into()));
        outer.env.push(("TMPDIR".into(), scene.base.clone().into()));
        let ran = keeper().run(outer).unwrap();
        assert!(stdout(&ran).contains("1 passed"), "{}{}", stdout(&ran), stderr(&ran));
    });
}

#[test]
#[ignore = "in a confined job that another test runs"]
fn no_namespace_in_a_confined_job() {
    let scene = Scene::new();
    let job = scene.job(mounts([scene.bind()]), "touch $BASE/ran");
    let error = keeper().run(job).unwrap_err();
    let expected = ConfinementError::Namespace { errno: Errno::PERM.raw_os_error() };
    assert!(matches!(&error, ProcessError::NotConfined { why } if *why == expected), "{error}");
    assert!(error.to_string().contains("no mount namespace: Operation not permitted"), "{error}");
    assert!(!scene.path("ran").exists());
    assert_eq!(MountSupport::of_program(&executable()), MountSupport::default());
}

/// The files that this process sees do not explain why.
#[test]
fn a_program_that_its_mounts_cover_is_reported() {
    let scene = Scene::new();
    scene.write("project/tool", "#!/bin/sh\n");
    let mut job = scene.job(mounts([scene.bind()]), "");
    job.argv = vec![scene.project.join("tool").into()];
    match keeper().run(job) {
        Err(ProcessError::NotStarted { errno, why: WhyNotStarted::Other(why), .. }) => {
            assert_eq!(errno, Errno::NOENT.raw_os_error());
            assert!(why.contains("No such file") && why.contains("private mounts"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}
