//! Files outside of the project that gates use and that changed while the session ran: programs on `PATH`, packages of
//! interpreters, settings in the home directory and above the project.
//!
//! A room excludes the files of the working directory, but not these. The time of the last change of an inode shows
//! them: no program can set it. `installed_packages` compares the content of files with several names.

mod installed_packages;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hookloop_core::session::facts::{FindingKind, TestFinding};

use self::installed_packages::PackageHashes;

/// Maximum files that are looked at.
const FILES_MAX: usize = 500_000;
/// Maximum depth of a directory with packages.
const DEPTH_MAX: usize = 24;

/// Files and directories of the home directory with settings of interpreters, runners and package managers.
const HOME_SETTINGS: [&str; 20] = [
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".bunfig.toml",
    ".mocharc.json",
    ".babelrc",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".config/pypoetry/config.toml",
    ".pydistutils.cfg",
    ".coveragerc",
    ".gitconfig",
    ".config/git/config",
    ".cargo/config",
    ".cargo/config.toml",
    ".rustup/settings.toml",
    ".config/nextest.toml",
    ".config/go/env",
    ".makerc",
];
/// Directories of the home directory with modules that interpreters find.
const HOME_MODULES: [&str; 3] = [".node_modules", ".node_libraries", ".local/lib"];
/// Settings that programs look for in the directories above a project.
const SETTINGS_ABOVE: [&str; 19] = [
    ".cargo/config",
    ".cargo/config.toml",
    ".npmrc",
    "package.json",
    "node_modules",
    "tsconfig.json",
    "babel.config.js",
    "babel.config.json",
    ".babelrc",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
    "conftest.py",
    "go.mod",
    "go.work",
    "rust-toolchain",
    "rust-toolchain.toml",
];
/// Directories beside programs with packages of their interpreters.
const PACKAGES: [&str; 3] = ["site-packages", "dist-packages", "node_modules"];
/// Directories that interpreters fill by themselves.
const CACHES: [&str; 3] = ["__pycache__", ".cache", ".package-lock.json"];

/// The places that a gate uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'s> {
    pub(super) path: &'s OsStr,
    pub(super) home: Option<&'s Path>,
    /// The working directory and the project's directory. Their files are not part of the surroundings.
    pub(super) project: [&'s Path; 2],
    /// The time when the session began.
    pub(super) since: SystemTime,
}

impl Surroundings<'_> {
    /// Returns the files that changed since the session began. The error is for a person.
    pub(super) fn changed(&self) -> Result<Vec<TestFinding>, String> {
        let mut search = SurroundingsSearch {
            since: self.since,
            project: self.project,
            looked_at: 0,
            seen: BTreeSet::new(),
            found: BTreeSet::new(),
            linked: BTreeSet::new(),
        };
        for directory in std::env::split_paths(self.path).filter(|path| path.is_absolute()) {
            search.programs(&directory)?;
        }
        if let Some(home) = self.home {
            for name in HOME_SETTINGS {
                search.look_at(&home.join(name))?;
            }
            for name in HOME_MODULES {
                search.tree(&home.join(name), 0)?;
            }
            // The toolchains of rustup, whose programs on PATH are links to one program.
            for toolchain in entries(&home.join(".rustup/toolchains"))? {
                search.files_of(&toolchain.join("bin"))?;
            }
        }
        for above in self.project[0].ancestors().skip(1) {
            for name in SETTINGS_ABOVE {
                search.tree(&above.join(name), 0)?;
            }
        }
        search.settle_links();
        Ok(search.found.iter().map(|path| finding(path)).collect())
    }
}

/// The search for changed files.
struct SurroundingsSearch<'s> {
    since: SystemTime,
    project: [&'s Path; 2],
    looked_at: usize,
    /// The directories that were searched.
    seen: BTreeSet<PathBuf>,
    found: BTreeSet<PathBuf>,
    /// Files with several names whose content may be unchanged.
    linked: BTreeSet<PathBuf>,
}

impl SurroundingsSearch<'_> {
    /// Searches a directory with programs, and the packages of its interpreters and of those that its links lead to.
    fn programs(&mut self, directory: &Path) -> Result<(), String> {
        self.files_of(directory)?;
        let Ok(real) = directory.canonicalize() else { return Ok(()) };
        self.libraries_beside(&real)?;
        let links = entries(&real)?.into_iter().filter(|path| path.is_symlink());
        let targets: BTreeSet<PathBuf> = links
            .filter_map(|link| link.canonicalize().ok()?.parent().map(Path::to_owned))
            .filter(|target| *target != real && !self.is_own(target))
            .collect();
        targets.iter().try_for_each(|target| self.libraries_beside(target))
    }

    /// Searches the libraries of the interpreters in a directory, and the packages there.
    fn libraries_beside(&mut self, programs: &Path) -> Result<(), String> {
        let Some(prefix) = programs.parent() else { return Ok(()) };
        for name in ["lib", "lib64"] {
            let library = prefix.join(name);
            self.packages(&library)?;
            let interpreters = entries(&library)?.into_iter().filter(|path| {
                let name = path.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
                name.starts_with(b"python")
            });
            for interpreter in interpreters {
                self.tree(&interpreter, 0)?;
            }
        }
        Ok(())
    }

    fn packages(&mut self, directory: &Path) -> Result<(), String> {
        for name in PACKAGES {
            self.tree(&directory.join(name), 0)?;
        }
        Ok(())
    }

    /// Looks at the files of a directory, without those of its directories.
    fn files_of(&mut self, directory: &Path) -> Result<(), String> {
        let Some(directory) = self.enter(directory) else { return Ok(()) };
        for path in entries(&directory)? {
            if !path.is_dir() {
                self.look_at(&path)?;
            }
        }
        Ok(())
    }

    /// Looks at a file, or at all files of a directory.
    fn tree(&mut self, path: &Path, depth: usize) -> Result<(), String> {
        let is_cache =
            path.file_name().is_some_and(|name| CACHES.iter().any(|cache| name == *cache));
        if is_cache {
            return Ok(());
        }
        if depth > DEPTH_MAX {
            return Err(format!("{}: more than {DEPTH_MAX} directories deep", path.display()));
        }
        // Links inside of a tree lead to other packages of the tree, or to sources of a project.
        let is_directory = match depth {
            0 => path.is_dir(),
            _ => fs::symlink_metadata(path).is_ok_and(|data| data.is_dir()),
        };
        if !is_directory {
            return self.look_at(path);
        }
        let Some(directory) = self.enter(path) else { return Ok(()) };
        for path in entries(&directory)? {
            self.tree(&path, depth + 1)?;
        }
        Ok(())
    }

    /// Returns the real path of a directory that is not yet searched, and not a part of the project.
    fn enter(&mut self, directory: &Path) -> Option<PathBuf> {
        let real = directory.canonicalize().ok()?;
        (!self.is_own(&real) && self.seen.insert(real.clone())).then_some(real)
    }

    /// Whether a path is a part of the project.
    fn is_own(&self, path: &Path) -> bool {
        self.project.iter().any(|project| path.starts_with(project))
    }

    /// Looks at a file, and at the file that it links to.
    fn look_at(&mut self, path: &Path) -> Result<(), String> {
        self.looked_at += 1;
        if self.looked_at > FILES_MAX {
            return Err(format!("gates use more than {FILES_MAX} files outside of the project"));
        }
        for data in [fs::symlink_metadata(path), fs::metadata(path)] {
            match data {
                Ok(data) if changed(&data) < self.since => {}
                Ok(data) if data.is_file() && data.nlink() > 1 => {
                    self.linked.insert(path.to_owned());
                }
                Ok(_) => {
                    self.found.insert(path.to_owned());
                }
                Err(error) if is_nothing(error.kind()) || is_loop(&error) => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(())
    }

    /// Adds the files with several names to those found, unless they have the content that their installer recorded.
    fn settle_links(&mut self) {
        let mut hashes = PackageHashes::default();
        let is_changed = |record: &Path| {
            fs::symlink_metadata(record).map_or(true, |data| changed(&data) >= self.since)
        };
        for path in &self.linked {
            if !hashes.match_content(path, is_changed) {
                self.found.insert(path.clone());
            }
        }
    }
}

/// Whether an error means that gates find no such file either.
fn is_nothing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

/// Whether a link leads to itself, so that no program finds a file there.
fn is_loop(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Returns the time of the last change of a file or of its name, owner and mode.
fn changed(data: &fs::Metadata) -> SystemTime {
    let seconds = u64::try_from(data.ctime()).unwrap_or_default();
    let nanos = u32::try_from(data.ctime_nsec()).unwrap_or_default();
    UNIX_EPOCH + Duration::new(seconds, nanos)
}

/// Returns the paths in a directory. A directory that does not exist has none.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let unread = |error: std::io::Error| format!("{}: {error}", directory.display());
    let read = match fs::read_dir(directory) {
        Ok(read) => read,
        Err(error) if is_nothing(error.kind()) => return Ok(Vec::new()),
        Err(error) => return Err(unread(error)),
    };
    let mut paths: Vec<PathBuf> = read
        .map(|entry| entry.map(|entry| entry.path()).map_err(unread))
        .collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

fn finding(path: &Path) -> TestFinding {
    // The path, and the file that it links to.
    let states = [fs::symlink_metadata(path), fs::metadata(path)].into_iter().flatten();
    let states: Vec<String> = states
        .map(|data| {
            format!("{} bytes, changed {}.{:09}", data.len(), data.ctime(), data.ctime_nsec())
        })
        .collect();
    TestFinding {
        kind: FindingKind::SurroundingsChanged,
        check: path.display().to_string(),
        path: None,
        cause: "gates use it, and it is not part of the work".to_owned(),
        before: None,
        after: Some(states.join("; ")).filter(|states| !states.is_empty()),
        content: None,
        allowed_by: None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }

    /// Waits until files get a later time than those that exist.
    fn later(directory: &Path) -> SystemTime {
        let path = directory.join("clock");
        write(&path);
        let before = changed(&fs::metadata(&path).unwrap());
        for _ in 0..1_000 {
            std::thread::sleep(Duration::from_millis(1));
            write(&path);
            let now = changed(&fs::metadata(&path).unwrap());
            if now > before {
                return now;
            }
        }
        panic!("the clock of files stands still");
    }

    /// Installers of packages give the files of a cache further names.
    #[test]
    fn a_file_that_gets_another_name_is_found_only_with_another_content() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (bin, tool) = (root.join("home/.local/bin"), root.join("tools/pytest"));
        let packages = tool.join("lib/python3.11/site-packages");
        let (module, record) =
            (packages.join("pytest/main.py"), packages.join("pytest-8.dist-info/RECORD"));
        for path in [bin.join("other"), tool.join("bin/pytest"), module.clone(), record.clone()] {
            write(&path);
        }
        symlink(tool.join("bin/pytest"), bin.join("pytest")).unwrap();
        // The digests of "x" and "y", as installers write them.
        let hash = "LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE";
        let line = format!("pytest/main.py,sha256={hash},1\npytest-8.dist-info/RECORD,,\n");
        fs::write(&record, line).unwrap();
        let path = std::env::join_paths([bin]).unwrap();
        let found = |since| -> Vec<PathBuf> {
            let project = [root.join("shop"), root.join("shop")];
            let surroundings = Surroundings {
                path: &path,
                home: None,
                project: [&project[0], &project[1]],
                since,
            };
            let found = surroundings.changed().unwrap();
            found.into_iter().map(|finding| finding.check.into()).collect()
        };
        let since = later(&root);
        fs::hard_link(&module, root.join("cache")).unwrap();
        assert_eq!(found(since), [] as [&Path; 0]);
        // An old time of the content does not hide a change.
        fs::write(&module, "y").unwrap();
        fs::File::options().write(true).open(&module).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert_eq!(found(since), std::slice::from_ref(&module));
        // A record that was written since proves nothing.
        let line = "pytest/main.py,sha256=ofzkNjhU_4iM_0uOeHXWAMJoI5BBKoz3mzfQsRFIsPo,1\n";
        fs::write(&record, line).unwrap();
        assert_eq!(found(since), [module, record]);
    }

    #[test]
    fn files_that_gates_use_and_that_changed_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (home, top) = (root.join("home"), root.join("home/work/shop"));
        let bin = home.join("py/bin");
        let package = home.join("py/lib/python3.11/site-packages/pytest/main.py");
        for path in [bin.join("python"), home.join("real/pytest"), package.clone()] {
            write(&path);
        }
        symlink(home.join("real/pytest"), bin.join("pytest")).unwrap();
        write(&top.join("bin/tool"));
        let path = std::env::join_paths([bin.clone(), top.join("bin"), root.join("none")]).unwrap();
        let found = |since| -> Vec<String> {
            let home = Some(home.as_path());
            let surroundings = Surroundings { path: &path, home, project: [&top, &top], since };
            surroundings.changed().unwrap().into_iter().map(|finding| finding.check).collect()
        };
        for changed in [
            bin.join("pytest"),
            bin.join("make"),
            package.clone(),
            package.with_file_name("plugin.py"),
            home.join(".npmrc"),
            home.join(".cargo/config.toml"),
            home.join("work/.cargo/config.toml"),
            home.join("work/node_modules/tape/index.js"),
            home.join(".rustup/toolchains/stable/bin/cargo"),
            home.join(".local/lib/python3.11/site-packages/x.pth"),
        ] {
            let since = later(&root);
            assert_eq!(found(since), [] as [&str; 0]);
            write(&changed);
            assert_eq!(found(since), [changed.display().to_string()]);
        }
        let since = later(&root);
        write(&top.join("bin/tool"));
        write(&package.with_file_name("__pycache__/main.pyc"));
        write(&home.join("notes.txt"));
        // An old time of the content does not hide a change.
        fs::File::open(&package).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert_eq!(found(since), [package.display().to_string()]);
    }
}
