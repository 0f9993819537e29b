//! Jobs with hidden directories: no path leads to the files there, and everything beside them stays usable.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use hookloop_process::{
    Confinement, ConfinementError, ExitReason, JobResult, ProcessError, SIBLINGS_MAX,
};
use rustix::io::Errno;

use super::{keeper, script, stderr, stdout};

/// A hidden project, and files beside it.
struct HiddenScene {
    _directory: tempfile::TempDir,
    base: PathBuf,
    project: PathBuf,
}

impl HiddenScene {
    fn new() -> HiddenScene {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let scene = HiddenScene { _directory: directory, project: base.join("project"), base };
        scene.write("project/file", "hidden\n");
        scene.write("project/deep/er/file", "hidden\n");
        scene.write("beside/deep/file", "visible\n");
        scene.write("file", "visible\n");
        fs::create_dir(scene.path("room")).unwrap();
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

    /// The project is hidden, and only the room can be written.
    fn confinement(&self) -> Confinement {
        Confinement {
            write: Some(vec![self.path("room")]),
            hide: vec![self.project.clone()],
            ..Confinement::default()
        }
    }

    fn try_run(&self, confinement: Confinement, text: &str) -> Result<JobResult, ProcessError> {
        let mut job = script(text);
        job.cwd = self.path("room");
        job.env.push(("BASE".into(), self.base.clone().into()));
        job.env.push(("TMPDIR".into(), self.path("room").into()));
        job.confinement = Some(confinement);
        keeper().run(job)
    }

    fn run(&self, confinement: Confinement, text: &str) -> JobResult {
        self.try_run(confinement, text).unwrap()
    }

    #[track_caller]
    fn passes(&self, confinement: Confinement, text: &str) -> String {
        let ran = self.run(confinement, text);
        assert_eq!(ran.exit, ExitReason::Exited(0), "{text}: {}{}", stdout(&ran), stderr(&ran));
        stdout(&ran)
    }

    /// Checks that the kernel refuses a command, and that the same command works without hidden directories.
    #[track_caller]
    fn is_refused(&self, confinement: Confinement, text: &str) {
        let open = Confinement { hide: Vec::new(), read: Vec::new(), ..confinement.clone() };
        self.passes(open, text);
        let ran = self.run(confinement, text);
        assert_ne!(ran.exit, ExitReason::Exited(0), "{text}: {}", stdout(&ran));
        assert!(stderr(&ran).contains("Permission denied"), "{text}: {}", stderr(&ran));
        assert!(!stdout(&ran).contains("hidden"), "{text}: {}", stdout(&ran));
    }
}

/// A process in a directory, until this is dropped.
struct ProcessIn(Child);

impl ProcessIn {
    fn new(directory: &Path) -> ProcessIn {
        ProcessIn(Command::new("sleep").arg("600").current_dir(directory).spawn().unwrap())
    }
}

impl Drop for ProcessIn {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn no_path_leads_to_a_hidden_file() {
    let scene = HiddenScene::new();
    symlink(scene.path("project/file"), scene.path("beside/link")).unwrap();
    symlink(&scene.project, scene.path("beside/project")).unwrap();
    scene.write("project/tool", "#!/bin/sh\n");
    assert!(
        Command::new("chmod").arg("+x").arg(scene.path("project/tool")).status().unwrap().success()
    );
    for text in [
        "cat $BASE/project/file",
        "cat $BASE/project/deep/er/file",
        "cat ../project/file",
        "cat $BASE/beside/link",
        "cat $BASE/beside/project/deep/er/file",
        "cat /proc/self/root$BASE/project/file",
        "cd $BASE/project && cat file",
        "cd $BASE/project && cat /proc/self/cwd/file",
        "cd $BASE/project && sh -c 'cat /proc/$PPID/cwd/file; exit $?'",
        "ls $BASE/project",
        "$BASE/project/tool",
        "sh $BASE/project/tool",
    ] {
        scene.is_refused(scene.confinement(), text);
    }
}

#[test]
fn the_directories_of_another_process_do_not_lead_to_a_hidden_file() {
    let scene = HiddenScene::new();
    let other = ProcessIn::new(&scene.project);
    for text in ["cat /proc/PID/cwd/file", "cat /proc/PID/root$BASE/project/file"] {
        let text = text.replace("PID", &other.0.id().to_string());
        // Any box keeps its processes from these links.
        let unconfined = format!("BASE={}; {text}", scene.base.display());
        assert_eq!(stdout(&keeper().run(script(&unconfined)).unwrap()), "hidden\n");
        let ran = scene.run(scene.confinement(), &text);
        assert_ne!(ran.exit, ExitReason::Exited(0), "{text}");
        assert!(stderr(&ran).contains("Permission denied"), "{text}: {}", stderr(&ran));
    }
}

#[test]
fn a_hidden_directory_can_not_be_written_even_if_writes_are_not_limited() {
    let scene = HiddenScene::new();
    let anywhere = Confinement { write: None, ..scene.confinement() };
    for text in ["echo x >> $BASE/project/file", "echo x > $BASE/project/new"] {
        scene.is_refused(anywhere.clone(), text);
    }
    assert_eq!(
        scene.passes(anywhere.clone(), "echo x > $BASE/beside/new; cat $BASE/beside/new"),
        "x\n"
    );
    scene.is_refused(anywhere, "mkdir $BASE/new && rmdir $BASE/new");
}

#[test]
fn everything_beside_a_hidden_directory_stays_usable() {
    let scene = HiddenScene::new();
    for (text, expected) in [
        ("cat $BASE/file $BASE/beside/deep/file", "visible\nvisible\n"),
        ("ls $BASE/beside", "deep\n"),
        ("d=$(mktemp -d) && echo 1 > $d/a && mkdir $d/b && mv $d/a $d/b/c && cat $d/b/c", "1\n"),
        ("/usr/bin/env printf x; /bin/echo y | /usr/bin/tr y z", "xz\n"),
        ("echo x > /dev/null && head -c 1 /dev/zero | wc -c", "1\n"),
        ("pwd | sed 's#.*/##'", "room\n"),
        ("test -r /proc/self/status && test -e $BASE/project/file && echo seen", "seen\n"),
    ] {
        assert_eq!(scene.passes(scene.confinement(), text), expected, "{text}");
    }
    let ran = scene.run(scene.confinement(), "echo x > $BASE/beside/new");
    assert_ne!(ran.exit, ExitReason::Exited(0));
    assert!(!scene.path("beside/new").exists());
}

#[test]
fn a_virtual_environment_beside_a_hidden_directory_runs() {
    let scene = HiddenScene::new();
    let venv = scene.path("beside/venv");
    let mut made = Command::new("python3");
    let made = made.args(["-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    scene.write("room/own.py", "print('own')\n");
    scene.write("project/theirs.py", "print('hidden')\n");
    let python = venv.join("bin/python").display().to_string();
    let imported = format!("{python} -c 'import json, ssl, own'");
    assert_eq!(scene.passes(scene.confinement(), &imported), "own\n");
    let ran = scene
        .run(scene.confinement(), &format!("PYTHONPATH=$BASE/project {python} -c 'import theirs'"));
    assert!(stderr(&ran).contains("No module named 'theirs'"), "{}", stderr(&ran));
}

#[test]
fn exceptions_below_a_hidden_directory_are_usable() {
    let scene = HiddenScene::new();
    scene.write("project/.state/room/file", "room\n");
    scene.write("project/.git/objects/file", "object\n");
    let confinement = Confinement {
        write: Some(vec![scene.path("project/.state/room")]),
        read: vec![scene.path("project/.git/objects")],
        ..scene.confinement()
    };
    let check = |text: &str| scene.is_refused(confinement.clone(), text);
    check("cat $BASE/project/file");
    let text =
        "cd $BASE/project && cat .state/room/file .git/objects/file && echo x > .state/room/new";
    assert_eq!(scene.passes(confinement.clone(), text), "room\nobject\n");
    let ran = scene.run(confinement, "echo x > $BASE/project/.git/objects/new");
    assert!(stderr(&ran).contains("Permission denied"), "{}", stderr(&ran));
}

#[test]
fn a_place_that_contains_a_hidden_directory_does_not_uncover_it() {
    let scene = HiddenScene::new();
    symlink(&scene.base, scene.path("beside/base")).unwrap();
    for place in [scene.base.clone(), scene.path("beside/base"), "/".into(), scene.project.clone()]
    {
        let confinement = Confinement {
            write: Some(vec![place.clone(), scene.path("room")]),
            read: vec![place],
            ..scene.confinement()
        };
        scene.is_refused(confinement, "cat $BASE/project/file");
    }
    let base = Confinement { write: Some(vec![scene.base.clone()]), ..scene.confinement() };
    scene.is_refused(base.clone(), "echo x >> $BASE/project/file");
    assert_eq!(scene.passes(base, "echo x > $BASE/beside/new; cat $BASE/beside/new"), "x\n");
}

#[test]
fn several_hidden_directories_are_hidden() {
    let scene = HiddenScene::new();
    scene.write("beside/other/file", "hidden\n");
    let hide = vec![
        scene.path("beside/other"),
        scene.path("project/deep"),
        scene.project.clone(),
        scene.path("beside/other"),
    ];
    let confinement = Confinement { hide, ..scene.confinement() };
    for path in ["beside/other/file", "project/file", "project/deep/er/file"] {
        scene.is_refused(confinement.clone(), &format!("cat $BASE/{path}"));
    }
    assert_eq!(
        scene.passes(confinement, "cat $BASE/beside/deep/file $BASE/file"),
        "visible\nvisible\n"
    );
}

/// A rule belongs to a directory and not to its path, so a rule for the second path would hold at the first.
#[test]
fn a_bind_mount_of_a_directory_on_the_path_does_not_uncover_a_hidden_directory() {
    let scene = HiddenScene::new();
    scene.write("home/project/file", "hidden\n");
    fs::create_dir(scene.path("alias")).unwrap();
    let bind = hookloop_process::PrivateMount::Bind {
        source: scene.path("home"),
        target: scene.path("alias"),
        read_only: false,
    };
    let confinement = Confinement {
        hide: vec![scene.path("home/project")],
        mounts: vec![bind],
        ..scene.confinement()
    };
    scene.is_refused(confinement, "cat $BASE/home/project/file");
}

#[test]
fn a_directory_that_can_not_be_hidden_stops_the_job() {
    let scene = HiddenScene::new();
    let check = |hide: PathBuf, errno: Errno| {
        let confinement = Confinement { hide: vec![hide.clone()], ..scene.confinement() };
        let error = scene.try_run(confinement, "touch ran").unwrap_err();
        let expected = ConfinementError::Hidden { path: hide, errno: errno.raw_os_error() };
        assert!(
            matches!(&error, ProcessError::NotConfined { why } if *why == expected),
            "{error:?}"
        );
    };
    check(scene.path("missing"), Errno::NOENT);
    check(scene.path("file"), Errno::INVAL);
    check("/".into(), Errno::INVAL);
    check("usr".into(), Errno::INVAL);
    assert!(!scene.path("room/ran").exists());
}

#[test]
fn a_hidden_program_is_named_as_the_reason() {
    let scene = HiddenScene::new();
    scene.write("project/tool", "#!/bin/sh\n");
    let tool = scene.path("project/tool");
    assert!(Command::new("chmod").arg("+x").arg(&tool).status().unwrap().success());
    let mut job = script("");
    job.argv = vec![tool.clone().into()];
    job.confinement = Some(scene.confinement());
    let error = keeper().run(job).unwrap_err().to_string();
    assert!(error.contains(tool.to_str().unwrap()), "{error}");
    assert!(error.contains("Permission denied") && error.contains("hidden directory"), "{error}");
}

#[test]
fn too_many_entries_beside_a_hidden_directory_stop_the_job() {
    let scene = HiddenScene::new();
    scene.write("many/project/file", "hidden\n");
    let confinement = Confinement { hide: vec![scene.path("many/project")], ..scene.confinement() };
    // Some more are beside the directories above.
    for number in 0..SIBLINGS_MAX / 2 {
        fs::write(scene.path(&format!("many/{number}")), "").unwrap();
    }
    scene.is_refused(confinement.clone(), "cat $BASE/many/project/file");
    for number in SIBLINGS_MAX / 2..SIBLINGS_MAX {
        fs::write(scene.path(&format!("many/{number}")), "").unwrap();
    }
    let error = scene.try_run(confinement, "touch ran").unwrap_err();
    let expected = ConfinementError::TooManySiblings { path: scene.path("many") };
    assert!(matches!(&error, ProcessError::NotConfined { why } if *why == expected), "{error:?}");
    assert!(error.to_string().contains("more than 20000 entries"), "{error}");
    assert!(!scene.path("room/ran").exists());
}
