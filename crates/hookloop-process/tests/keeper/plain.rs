//! Ordinary jobs: their environment, their end, and errors of starting them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hookloop_process::{
    Cancel, ExitReason, Job, KILL_GRACE, OutputFilter, OutputStream, PARALLEL_MAX, ProcessError,
    WhyNotStarted,
};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::{eventually, has_own_process, is_marking, job, keeper, pool, script, stderr, stdout};

const JOBS: usize = 1_000;
/// The mask of signals that have a name. The C library uses two more.
const STANDARD_SIGNALS: u64 = 0x7fff_ffff;

#[test]
fn exit_codes_and_signals_are_distinguished() {
    let mut keeper = keeper();
    for (text, exit) in [
        ("exit 0", ExitReason::Exited(0)),
        ("exit 2", ExitReason::Exited(2)),
        ("exit 255", ExitReason::Exited(255)),
        ("kill -KILL $$", ExitReason::Signalled(9)),
        ("kill -SEGV $$", ExitReason::Signalled(11)),
    ] {
        assert_eq!(keeper.run(script(text)).unwrap().exit, exit, "{text}");
    }
}

#[test]
fn resource_usage_is_reported() {
    let ran = keeper().run(script("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")).unwrap();
    let usage = ran.usage.unwrap();
    assert!(usage.user + usage.system > Duration::from_millis(1), "{usage:?}");
    assert!(usage.user + usage.system <= ran.duration * 2, "{ran:?}");
    assert!((100 << 10..1 << 30).contains(&usage.max_rss_bytes), "{usage:?}");
}

#[test]
fn a_job_gets_exactly_what_is_declared() {
    let directory = tempfile::tempdir().unwrap();
    let cwd = directory.path().canonicalize().unwrap();
    let mut keeper = keeper();

    let mut env = job(&["env"]);
    env.env.push(("EMPTY".into(), "".into()));
    env.env.push(("TWO".into(), "first\nsecond".into()));
    let ran = keeper.run(env).unwrap();
    let expected = "EMPTY=\nPATH=/usr/local/bin:/usr/bin:/bin\nTWO=first\nsecond\n";
    let marks = stdout(&ran).matches("\nHOOKLOOP_KEEPER=").count();
    assert_eq!(marks, usize::from(is_marking()), "{ran:?}");
    let declared: String = stdout(&ran)
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("HOOKLOOP_KEEPER="))
        .collect();
    assert_eq!(declared, expected);

    let mut rest = script("ls /proc/$$/fd; pwd -P; cat; echo $0 $*");
    rest.argv.extend(["zero".into(), "o n e".into()]);
    rest.cwd.clone_from(&cwd);
    rest.stdin = b"input\n".to_vec();
    let ran = keeper.run(rest).unwrap();
    assert_eq!(stdout(&ran), format!("0\n1\n2\n{}\ninput\nzero o n e\n", cwd.display()));

    let ran = keeper.run(job(&["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"])).unwrap();
    let masks = stdout(&ran);
    for line in masks.lines() {
        let mask = u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap();
        assert_eq!(mask & STANDARD_SIGNALS, 0, "{masks}");
    }
    assert_eq!(masks.lines().count(), 2);

    let environ = fs::read(format!("/proc/{}/environ", keeper.pid().unwrap())).unwrap();
    let variables = environ.split_inclusive(|byte| *byte == 0);
    let others = variables.filter(|variable| !variable.starts_with(b"HOOKLOOP_KEEPER="));
    assert_eq!(others.count(), 0, "a job can read its keeper's environment");
    assert_eq!(environ.is_empty(), !is_marking());
}

#[test]
fn input_can_depend_on_output() {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let ours = RefCell::new(Some(File::from(ours)));
    ours.borrow().as_ref().unwrap().write_all(b"1\n").unwrap();
    let filter = |_: OutputStream| -> OutputFilter<'_> {
        Box::new(|piece, out| {
            out.extend_from_slice(piece);
            match piece {
                b"got 1\n" => ours.borrow().as_ref().unwrap().write_all(b"2\n").unwrap(),
                b"got 2\n" => *ours.borrow_mut() = None,
                _ => {}
            }
        })
    };
    let mut job = script("while read line; do echo got $line; done; echo end");
    job.stdin_from = Some(theirs);
    job.filter = Some(&filter);
    assert_eq!(stdout(&keeper().run(job).unwrap()), "got 1\ngot 2\nend\n");
}

#[test]
fn a_writer_to_a_job_gets_epipe_when_the_job_has_ended() {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let mut job = script("read line; exit 3");
    job.stdin_from = Some(theirs);
    File::from(ours.try_clone().unwrap()).write_all(b"1\n").unwrap();
    assert_eq!(keeper().run(job).unwrap().exit, ExitReason::Exited(3));
    let written = File::from(ours).write_all(b"2\n");
    assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn a_job_has_no_terminal() {
    let ran = keeper().run(script("exec 3<>/dev/tty")).unwrap();
    assert_ne!(ran.exit, ExitReason::Exited(0), "{ran:?}");
}

#[test]
fn large_arguments_and_environments_arrive_whole() {
    let mut large = script("printf '%s' \"$LARGE$MORE$1\" | wc -c");
    large.argv.extend(["zero".into(), "a".repeat(100_000).into()]);
    large.env.push(("LARGE".into(), "b".repeat(100_000).into()));
    large.env.push(("MORE".into(), "c".repeat(100_000).into()));
    let ran = keeper().run(large).unwrap();
    assert_eq!(stdout(&ran).trim(), "300000", "{ran:?}");
}

#[test]
fn a_job_that_does_not_start_names_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let forbidden = file("forbidden", "#!/bin/sh\n", 0o644);
    let orphaned = file("orphaned", "#!/no/such/shell -e\n", 0o755);
    let dos = file("dos", "#!/bin/sh\r\n", 0o755);
    let text = file("text", "hello\n", 0o755);
    let within = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let not_in_path = WhyNotStarted::NotInPath { path: "/usr/local/bin:/usr/bin:/bin".into() };
    let bad = |interpreter: &str| WhyNotStarted::BadInterpreter { interpreter: interpreter.into() };
    let mut elsewhere = job(&["sh"]);
    elsewhere.cwd = within("nowhere").into();
    let mut huge = job(&["true"]);
    huge.env.push(("HUGE".into(), "x".repeat(5 << 20).into()));
    let mut enormous = job(&["true"]);
    enormous.env.push(("ENORMOUS".into(), "x".repeat(17 << 20).into()));

    let mut keeper = keeper();
    let cases: Vec<(Job<'_>, Errno, WhyNotStarted)> = vec![
        (job(&[]), Errno::INVAL, WhyNotStarted::Unnamed),
        (job(&["true", "a\0b"]), Errno::INVAL, WhyNotStarted::ZeroByte),
        (job(&["no-such-program"]), Errno::NOENT, not_in_path),
        (job(&[&within("nothing")]), Errno::NOENT, WhyNotStarted::NotFound),
        (job(&[&forbidden]), Errno::ACCESS, WhyNotStarted::NotExecutable),
        (job(&[directory.path().to_str().unwrap()]), Errno::ACCESS, WhyNotStarted::NotExecutable),
        (job(&[&orphaned]), Errno::NOENT, bad("/no/such/shell")),
        (job(&[&dos]), Errno::NOENT, bad("/bin/sh\\r")),
        (job(&[&text]), Errno::NOEXEC, WhyNotStarted::NotAProgram),
        (elsewhere, Errno::NOENT, WhyNotStarted::BadDirectory(within("nowhere").into())),
        (huge, Errno::TOOBIG, WhyNotStarted::TooLarge),
        (enormous, Errno::TOOBIG, WhyNotStarted::TooLarge),
    ];
    for (job, expected_errno, expected) in cases {
        let asked = format!("{job:?}");
        match keeper.run(job) {
            Err(ProcessError::NotStarted { errno, why, .. }) => {
                assert_eq!((errno, why), (expected_errno.raw_os_error(), expected), "{asked}");
            }
            other => panic!("{asked}: {other:?}"),
        }
    }
    assert_eq!(keeper.run(script("exit 5")).unwrap().exit, ExitReason::Exited(5));
}

#[test]
fn a_relative_program_counts_from_the_jobs_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hook");
    fs::write(&path, "#!/bin/sh\necho $0\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut hook = job(&["./hook"]);
    hook.cwd = directory.path().into();
    let ran = keeper().run(hook).unwrap();
    assert_eq!(Path::new(stdout(&ran).trim()).file_name().unwrap(), "hook", "{}", stderr(&ran));
}

#[test]
fn a_timeout_sends_sigterm_first_and_keeps_the_output() {
    let mut polite =
        script("trap 'echo bye; exit 0' TERM; echo here; echo there >&2; sleep 600 & wait");
    // Long enough for a shell to start on a busy machine.
    let timeout = Duration::from_secs(2);
    polite.timeout = timeout;
    let ran = keeper().run(polite).unwrap();
    assert_eq!(ran.exit, ExitReason::TimedOut);
    assert_eq!((stdout(&ran), stderr(&ran)), ("here\nbye\n".into(), "there\n".into()));
    assert!(ran.duration < timeout + KILL_GRACE, "{ran:?}");
}

#[test]
fn another_thread_can_cancel_a_job() {
    let cancel = Cancel::new().unwrap();
    let mut keeper = keeper();
    let directory = tempfile::tempdir().unwrap();
    let (ran, took) = thread::scope(|scope| {
        let canceller = scope.spawn(|| {
            let is_there = || directory.path().join("there").exists().then_some(());
            eventually("the job", super::AMPLE, is_there);
            cancel.trigger();
            Instant::now()
        });
        let mut long = script("echo here; touch there; sleep 600");
        long.cwd = directory.path().into();
        long.cancel = Some(&cancel);
        let ran = keeper.run(long).unwrap();
        (ran, canceller.join().unwrap().elapsed())
    });
    assert_eq!(ran.exit, ExitReason::Cancelled);
    assert_eq!(stdout(&ran), "here\n");
    assert!(took < super::AMPLE, "{took:?}");

    let mut late = script("touch started");
    late.cwd = directory.path().into();
    late.cancel = Some(&cancel);
    assert_eq!(keeper.run(late).unwrap().exit, ExitReason::Cancelled);
    assert!(!directory.path().join("started").exists());
    assert_eq!(keeper.run(script("exit 4")).unwrap().exit, ExitReason::Exited(4));
}

/// Each job waits for the others, so they end only if they all run at the same time.
#[test]
fn a_pool_runs_jobs_at_the_same_time() {
    if !has_own_process() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let pool = pool();
    let all = 3 * PARALLEL_MAX;
    let before = children();
    let meet = |own: usize| {
        let others = all;
        let mut job = script(&format!(
            "touch {own}; while [ $(ls | wc -l) -lt {others} ]; do sleep 0.01; done; echo met"
        ));
        job.cwd = directory.path().into();
        let ran = pool.run(job).unwrap();
        assert_eq!(stdout(&ran), "met\n");
    };
    thread::scope(|scope| {
        for own in 0..all {
            scope.spawn(move || meet(own));
        }
    });
    let stay = children() - before;
    assert!((1..=PARALLEL_MAX).contains(&stay), "{stay} keepers stay for later jobs");
}

/// Number of children of this process that have not ended.
fn children() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    // A thread that has ended meanwhile has no children: they belong to another thread.
    let children = threads.filter_map(|thread| fs::read_to_string(thread.join("children")).ok());
    children.map(|of_thread| of_thread.split_whitespace().count()).sum()
}

#[test]
fn many_jobs_leak_neither_files_nor_processes() {
    if !has_own_process() {
        return;
    }
    let mut keeper = keeper();
    keeper.run(script("exit 0")).unwrap();
    let pid = keeper.pid().unwrap();
    let files = |process: &str| -> BTreeSet<_> {
        let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
        files.map(|file| file.unwrap().file_name()).collect()
    };
    let before = (files("self"), files(&pid.to_string()));
    for _ in 0..JOBS {
        assert_eq!(keeper.run(job(&["true"])).unwrap().exit, ExitReason::Exited(0));
    }
    assert_eq!((files("self"), files(&pid.to_string())), before);
    assert_eq!(keeper.pid(), Some(pid));
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    assert_eq!(children, "");
}
