//! Ignored files that a worktree needs: copied from the user's checkout, by an explicit list.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use hookloop_config::patterns::glob;
use ignore::WalkBuilder;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use super::error::RepoError;
use super::worktree_path::WorktreePath;
use super::{Repo, git_command::CommandScope};

/// The most entries that are searched for a pattern. `node_modules/**` has more.
const LOOKED_MAX: usize = 20_000;
const FILES_MAX: usize = 200;
const FILE_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Copies the configured files to a new worktree.
pub(super) fn copy(repo: &Repo<'_>, slot: &WorktreePath) -> Result<(), RepoError> {
    let files = missing(repo, &slot.path)?;
    check_ignored(repo, slot, &files)?;
    copy_files(repo, &slot.path, &files)
}

/// Copies the configured files to a temporary checkout, of which nothing is ever committed.
pub(super) fn copy_along(repo: &Repo<'_>, top: &Path) -> Result<(), RepoError> {
    copy_files(repo, top, &missing(repo, top)?)
}

fn copy_files(repo: &Repo<'_>, top: &Path, files: &[PathBuf]) -> Result<(), RepoError> {
    let from = repo.found.top.join(&repo.found.prefix);
    let to = top.join(&repo.found.prefix);
    files.iter().try_for_each(|file| copy_file(&from, &to, file))
}

/// Returns the files to copy that are not there yet.
fn missing(repo: &Repo<'_>, top: &Path) -> Result<Vec<PathBuf>, RepoError> {
    let from = repo.found.top.join(&repo.found.prefix);
    let to = top.join(&repo.found.prefix);
    let mut files = Vec::new();
    for pattern in &repo.copy {
        files.extend(named(&from, pattern)?);
    }
    files.sort();
    files.dedup();
    if files.len() > FILES_MAX {
        return Err(asked_too_much(format!("`copy` names more than {FILES_MAX} files")));
    }
    files.retain(|file| to.join(file).symlink_metadata().is_err());
    Ok(files)
}

/// Returns the files of the project that a path or pattern names, without links.
fn named(project: &Path, pattern: &str) -> Result<Vec<PathBuf>, RepoError> {
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(pattern).components().all(is_inside) {
        return Err(asked_too_much(format!(
            "`copy` names `{pattern}`, which is not in the project"
        )));
    }
    let is_pattern = |part: &str| part.contains(['*', '?', '[', '{']);
    if !is_pattern(pattern) {
        let is_file = project.join(pattern).symlink_metadata().is_ok_and(|found| found.is_file());
        return Ok(if is_file { vec![pattern.into()] } else { Vec::new() });
    }
    let bad = |why| asked_too_much(format!("`copy` names `{pattern}`: {why}"));
    let matcher = glob(pattern).map_err(bad)?;
    let start: PathBuf = pattern.split('/').take_while(|part| !is_pattern(part)).collect();
    let mut walk = WalkBuilder::new(project.join(&start));
    walk.standard_filters(false).follow_links(false);
    walk.filter_entry(|entry| entry.file_name() != ".git");
    let mut files = Vec::new();
    for (number, entry) in walk.build().enumerate() {
        if number >= LOOKED_MAX {
            return Err(bad(format!("there are more than {LOOKED_MAX} files to look at")));
        }
        let Ok(entry) = entry else { continue };
        let path = entry.path().strip_prefix(project).unwrap_or(entry.path());
        if entry.file_type().is_some_and(|kind| kind.is_file()) && matcher.is_match(path) {
            files.push(path.to_owned());
        }
    }
    Ok(files)
}

/// Refuses a file that git does not ignore: it would be committed with the work, and pushed.
fn check_ignored(repo: &Repo<'_>, slot: &WorktreePath, files: &[PathBuf]) -> Result<(), RepoError> {
    if files.is_empty() {
        return Ok(());
    }
    let mut list = Vec::new();
    for file in files {
        list.extend_from_slice(repo.found.prefix.join(file).as_os_str().as_bytes());
        list.push(0);
    }
    let index = slot.index();
    let scope = CommandScope::Files { work_tree: &slot.path, index: &index };
    let said =
        repo.asker.ask(scope, &["check-ignore", "-z", "--stdin"]).stdin(list).long().said()?;
    let ignored: Vec<&[u8]> = said.stdout.split(|byte| *byte == 0).collect();
    let is_ignored =
        |file: &&PathBuf| ignored.contains(&repo.found.prefix.join(file).as_os_str().as_bytes());
    match files.iter().find(|file| !is_ignored(file)) {
        None => Ok(()),
        Some(file) => Err(RepoError::NeedsHuman {
            why: format!(
                "`copy` names {}, which git does not ignore: it would be committed with the work",
                file.display()
            ),
            hint: format!(
                "echo '/{}' >> .git/info/exclude",
                repo.found.prefix.join(file).display()
            ),
        }),
    }
}

/// The flags to open a directory on the path to a file.
#[cfg(target_os = "linux")]
const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const ON_THE_WAY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Copies one file. An existing file stays. No link is followed, on either side.
fn copy_file(from: &Path, to: &Path, file: &Path) -> Result<(), RepoError> {
    let failed = |error: std::io::Error| RepoError::io(&from.join(file))(error);
    let source = open_beneath(from, file, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    let mut source = File::from(source.map_err(|errno| failed(errno.into()))?);
    let found = source.metadata().map_err(failed)?;
    if !found.is_file() || found.len() > FILE_MAX_BYTES {
        let limit = FILE_MAX_BYTES / (1024 * 1024);
        let why = format!("`copy` names {}, which has more than {limit} MB", file.display());
        return Err(asked_too_much(why));
    }
    let failed = |error: std::io::Error| RepoError::io(&to.join(file))(error);
    make_parents(to, file).map_err(|errno| failed(errno.into()))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let target = match open_beneath(to, file, flags, Mode::RUSR | Mode::WUSR) {
        Err(Errno::EXIST) => return Ok(()),
        opened => opened.map_err(|errno| failed(errno.into()))?,
    };
    let mut target = File::from(target);
    std::io::copy(&mut source.by_ref().take(FILE_MAX_BYTES), &mut target).map_err(failed)?;
    target.set_permissions(found.permissions()).map_err(failed)
}

fn make_parents(top: &Path, file: &Path) -> Result<(), Errno> {
    let mut parent = openat(CWD, top, ON_THE_WAY, Mode::empty())?;
    for part in file.parent().unwrap_or(Path::new("")).components() {
        match mkdirat(&parent, name_of(part)?, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => parent = step_into(&parent, part)?,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Opens a file below `top` part by part, so that no link leads elsewhere.
fn open_beneath(top: &Path, file: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut parent = openat(CWD, top, ON_THE_WAY, Mode::empty())?;
    let mut parts = file.components().peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            return openat(&parent, name_of(part)?, flags, mode);
        }
        parent = step_into(&parent, part)?;
    }
    Err(Errno::NOENT)
}

fn step_into(parent: &OwnedFd, part: Component<'_>) -> Result<OwnedFd, Errno> {
    openat(parent, name_of(part)?, ON_THE_WAY | OFlags::NOFOLLOW, Mode::empty())
}

/// Returns the name of a part. Parts that lead up or elsewhere are refused.
fn name_of(part: Component<'_>) -> Result<&OsStr, Errno> {
    match part {
        Component::Normal(name) => Ok(name),
        _ => Err(Errno::XDEV),
    }
}

fn asked_too_much(why: String) -> RepoError {
    RepoError::NeedsHuman { why, hint: "change `copy` in hookloop.yaml".to_owned() }
}
