//! Gates that used files of the working directory, although they ran in a clean room.
//!
//! If the room is not mounted over the working directory, reads of this directory are refused. A gate that needs them
//! fails for a reason that no agent can fix: an editable install, a linked package, an absolute path. This module finds
//! such a failure in the gate's output. A failed test that only prints a path of the project is none.

use std::path::Path;

use hookloop_core::checks::plain;
use hookloop_core::gates::GateResult;
use hookloop_core::hook::Hook;
use hookloop_core::hook_protocol::{HookOutcome, HookStatus, HookVerdict};
use hookloop_hooks::environment;
use hookloop_hooks::gate_room::has_room;
use hookloop_hooks::hook_run::HookRun;

use super::drive::SessionDriver;
use super::gate_results::GateResults;
use super::gates::verdict;
use super::room_entry::SessionRoom;
use super::world::SessionWorld;

/// Texts by which a line says that a path in it was refused, or was the place of an import.
///
/// A path of the working directory counts only in a message with one of these texts.
const SIGNS: [&str; 10] = [
    // C programs, shells, Python, git.
    "Permission denied",
    // Go, Node.
    "permission denied",
    // Python.
    "PermissionError",
    // Node.
    "EACCES",
    // Rust.
    "os error 13",
    // Imports of Python.
    "ModuleNotFoundError",
    "ImportError",
    // The finders of editable installs.
    "__editable__",
    // Imports of Node.
    "Cannot find module",
    "ERR_MODULE_NOT_FOUND",
];
/// Texts by which a line says that a directory could not be listed: `ls`, `find`, Node, C programs, Go.
const LISTING_SIGNS: [&str; 5] =
    ["cannot open directory", "find: ", "scandir", "opendir", "readdirent"];
/// The message of Python about a module that it does not find. The name follows, in quotes.
const NO_MODULE: &str = "ModuleNotFoundError: No module named ";
/// The line of Rust programs before the cause of the error in the lines above.
const CAUSED_BY: &str = "Caused by:";
/// Maximum lines at the end of an output that are searched.
const LINES_MAX: usize = 4_000;
/// Maximum bytes of a searched line.
const LINE_MAX: usize = 4_096;
/// Maximum lines whose paths are looked up.
const LOOKED_UP_MAX: usize = 100;
/// Maximum paths of a line, and maximum ends of a path, that are looked up.
const PATHS_MAX: usize = 8;
const ENDS_MAX: usize = 16;

impl<W: SessionWorld> SessionDriver<'_, W> {
    /// Replaces blocking runs that used the working directory by a request for a person.
    ///
    /// The agent is not told of them, and they have no receipt.
    pub(super) fn replace_leaks(&mut self, gates: &[Hook], results: &mut GateResults) {
        let judged = verdict(gates, &results.runs);
        for (run, result) in results.runs.iter_mut().zip(&judged.results) {
            let Some(gate) = gates.iter().find(|gate| gate.name == run.hook) else { continue };
            if *result != GateResult::Blocked {
                continue;
            }
            if let Some(reason) = self.world.leak_of(gate, run) {
                let outcome = HookOutcome {
                    verdict: HookVerdict::Escalate { reason: reason.clone() },
                    reason: Some(reason.clone()),
                    ..HookOutcome::of(HookStatus::NotStarted)
                };
                *run = HookRun::without_process(gate, outcome);
                results.leaks.insert(gate.name.clone(), reason);
            }
        }
    }
}

impl SessionRoom {
    /// Returns why a failed gate of this room needs a person, if it used the working directory.
    pub(super) fn leak_of(&self, gate: &Hook, run: &HookRun) -> Option<String> {
        let place = self.place.as_ref().filter(|_| has_room(gate))?;
        let search = LeakSearch { hidden: place.hidden()?, room: place.files() };
        let reason = run.outcome.reason.as_deref().unwrap_or_default();
        search.find(&run.hook, [&run.stdout, &run.stderr, reason])
    }
}

/// The directories that decide whether a path is a leak.
#[derive(Clone, Copy, Debug)]
struct LeakSearch<'s> {
    /// The working directory, whose files are not readable.
    hidden: &'s Path,
    /// The project's directory in the room.
    room: &'s Path,
}

impl LeakSearch<'_> {
    fn find(self, gate: &str, texts: [&str; 3]) -> Option<String> {
        let messages: Vec<String> = texts.iter().flat_map(|text| messages(text)).collect();
        let with_sign = messages.iter().filter(|line| has_sign(line));
        if let Some(used) = with_sign.take(LOOKED_UP_MAX).find_map(|line| self.path_in(line)) {
            return Some(format!("room_leak: gate `{gate}` used {used} at the gate"));
        }
        let missing: Vec<&str> = messages.iter().filter_map(|line| missing_module(line)).collect();
        if missing.is_empty() {
            return None;
        }
        let packages = environment::facts(self.room).python_packages;
        let own =
            missing.into_iter().find(|name| packages.iter().any(|package| package == name))?;
        Some(format!(
            "room_leak: gate `{gate}` can't import `{own}`: your virtual environment imports `{own}` from the working \
             directory, which is not in the clean room, or does not have it: install it with a hook at `setup`, or \
             write `room: here` at the gate"
        ))
    }

    /// Describes the first path in a line that the box refuses, with the fix.
    fn path_in(self, line: &str) -> Option<String> {
        let is_start = |at: usize| {
            let before = line[..at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric() && !"/._-~".contains(before))
        };
        let starts = line.match_indices('/').map(|(at, _)| at).filter(|at| is_start(*at));
        let is_list = LISTING_SIGNS.iter().any(|sign| line.contains(sign));
        starts.take(PATHS_MAX).find_map(|at| self.path_at_start(&line[at..], is_list))
    }

    /// Describes the path at the start of a text, if it exists and the box refuses it.
    ///
    /// A path may contain spaces and punctuation, so each possible end is tried, the longest path first.
    fn path_at_start(self, text: &str, is_list: bool) -> Option<String> {
        let is_end = |c: char| c.is_whitespace() || "'\"`’:,;()[]<>".contains(c);
        let ends = text.char_indices().filter(|(_, c)| is_end(*c)).map(|(at, _)| at);
        let mut ends: Vec<usize> = ends.take(ENDS_MAX - 1).collect();
        ends.push(text.len());
        let paths = ends.iter().rev().map(|end| Path::new(&text[..*end]));
        let (path, real) =
            paths.filter_map(|path| Some((path, path.canonicalize().ok()?))).next()?;
        let path = path.display();
        if real.starts_with(self.hidden) && !real.starts_with(self.room) {
            return Some(format!(
                "{path}, a file of the working directory, which is not in the clean room: install it with a hook at \
                 `setup`, or write `room: here`"
            ));
        }
        // A single slash is rarely a path. A file that can't be created there is refused with mounts, too.
        let is_above = is_list && self.hidden.starts_with(&real) && real.parent().is_some();
        is_above.then(|| {
            format!(
                "{path}, a directory above the working directory, which gates in a clean room can't list on this \
                 machine: write `room: here`"
            )
        })
    }
}

/// Returns the last messages of an output. A cause in the following lines is part of a message.
fn messages(text: &str) -> Vec<String> {
    let text = plain(text);
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let mut last: Vec<&str> = lines.rev().take(LINES_MAX).collect();
    last.reverse();
    let mut found: Vec<String> = Vec::new();
    let mut is_cause = false;
    for line in last {
        let line = &line[..line.floor_char_boundary(LINE_MAX)];
        match found.last_mut() {
            Some(message) if is_cause || line.trim() == CAUSED_BY => {
                message.push(' ');
                message.push_str(line.trim());
            }
            _ => found.push(line.to_owned()),
        }
        is_cause = line.trim() == CAUSED_BY;
    }
    found
}

fn has_sign(line: &str) -> bool {
    SIGNS.iter().any(|sign| line.contains(sign))
}

/// Returns the module that Python does not find, unless it is a part of a package.
fn missing_module(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(NO_MODULE)?;
    let rest = rest.strip_prefix('\'')?;
    let (name, _) = rest.split_once('\'')?;
    (!name.contains('.')).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A working directory, a room, and a link to the working directory.
    struct LeakScene {
        _directory: tempfile::TempDir,
        base: PathBuf,
    }

    impl LeakScene {
        fn new() -> LeakScene {
            let directory = tempfile::tempdir().unwrap();
            let base = directory.path().canonicalize().unwrap();
            for file in [
                "project/src/app/__init__.py",
                "project/with space/it's.js",
                "project/state/room/src/app/__init__.py",
                "project/state/room/tool.py",
                "projects/file",
                "beside/file",
            ] {
                let path = base.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            std::os::unix::fs::symlink(base.join("project"), base.join("link")).unwrap();
            LeakScene { _directory: directory, base }
        }

        /// The reason for an output in which `BASE` stands for the directory of the scene.
        fn reason(&self, output: &str) -> Option<String> {
            let base = self.base.to_str().unwrap();
            let (hidden, room) = (self.base.join("project"), self.base.join("project/state/room"));
            let search = LeakSearch { hidden: &hidden, room: &room };
            let output = output.replace("BASE", base);
            let found = [
                search.find("tests", [&output, "", ""]),
                search.find("tests", ["", &output, ""]),
                search.find("tests", ["", "", &output]),
            ];
            assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
            found.into_iter().next().flatten().map(|reason| reason.replace(base, "BASE"))
        }
    }

    #[test]
    fn a_refused_path_of_the_working_directory_is_a_leak() {
        let scene = LeakScene::new();
        let check = |output: &str, path: &str| {
            let reason = scene.reason(output).unwrap_or_else(|| panic!("{output}"));
            let expected =
                format!("room_leak: gate `tests` used {path}, a file of the working directory,");
            assert!(reason.starts_with(&expected), "{reason}");
            assert!(reason.ends_with("`setup`, or write `room: here` at the gate"), "{reason}");
        };
        let init = "BASE/project/src/app/__init__.py";
        for output in [
            "cat: INIT: Permission denied",
            "PermissionError: [Errno 13] Permission denied: 'INIT'",
            "Error: EACCES: permission denied, open 'INIT'",
            "open INIT: permission denied",
            "error: can't read `INIT`: os error 13",
            "error: failed to open: INIT\n\nCaused by:\n  Permission denied (os error 13)\n",
            "\u{1b}[31msh: 1: INIT: Permission denied\u{1b}[0m",
            "ImportError: cannot import name 'x' from 'app' (INIT)",
            "Error: Cannot find module 'INIT'",
            "find: ‘INIT’: Permission denied",
            "first\nsecond /usr/bin/env\ncat: INIT: Permission denied\nlast",
        ] {
            check(&output.replace("INIT", init), init);
        }
        check("ls: cannot open directory 'BASE/project': Permission denied", "BASE/project");
        check("open BASE/link/src/app: permission denied", "BASE/link/src/app");
        check("EACCES: open 'BASE/project/with space/it's.js'", "BASE/project/with space/it's.js");
    }

    #[test]
    fn a_directory_above_the_working_directory_needs_a_person() {
        let scene = LeakScene::new();
        let reason = scene.reason("ls: cannot open directory 'BASE': Permission denied").unwrap();
        let expected =
            "room_leak: gate `tests` used BASE, a directory above the working directory,";
        assert!(reason.starts_with(expected), "{reason}");
        assert!(reason.ends_with("write `room: here` at the gate"), "{reason}");
    }

    #[test]
    fn an_output_that_only_names_the_working_directory_is_no_leak() {
        let scene = LeakScene::new();
        for output in [
            "",
            "FAILED BASE/project/src/app/__init__.py::test_one - assert 1 == 2",
            "  File \"BASE/project/src/app/__init__.py\", line 1, in <module>",
            // Not there.
            "cat: BASE/project/missing: Permission denied",
            // Other directories, also with a similar name.
            "cat: BASE/beside/file: Permission denied",
            "cat: BASE/projects/file: Permission denied",
            "cat: x/BASE/project/src: Permission denied",
            "a / b: Permission denied",
            "cc: Cannot create temporary file in BASE/: Permission denied",
            // The room.
            "cat: BASE/project/state/room/tool.py: Permission denied",
            // The sign is in another line.
            "Permission denied\nBASE/project/src/app/__init__.py",
        ] {
            assert_eq!(scene.reason(output), None, "{output}");
        }
    }

    #[test]
    fn a_package_of_the_project_that_python_does_not_find_is_a_leak() {
        let scene = LeakScene::new();
        for (module, is_leak) in
            [("app", true), ("tool", true), ("app.missing", false), ("requests", false)]
        {
            let output = format!("E   ModuleNotFoundError: No module named '{module}'");
            let reason = scene.reason(&output);
            assert_eq!(reason.is_some(), is_leak, "{module}: {reason:?}");
            let Some(reason) = reason else { continue };
            let text =
                format!("your virtual environment imports `{module}` from the working directory");
            assert!(reason.starts_with("room_leak: ") && reason.contains(&text), "{reason}");
        }
    }

    #[test]
    fn only_the_last_lines_of_an_output_are_searched() {
        let scene = LeakScene::new();
        let line = "cat: BASE/project/src: Permission denied\n";
        let after = |count: usize| format!("{line}{}", "x\n".repeat(count));
        assert!(scene.reason(&after(LINES_MAX - 1)).is_some());
        assert_eq!(scene.reason(&after(LINES_MAX)), None);
    }
}
