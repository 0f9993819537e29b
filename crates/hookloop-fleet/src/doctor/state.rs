//! Checks of the state directory: owner, permissions, locks, free space and file system.

use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock, statfs};

use super::{Finding, FindingGroup, Remedy, owned, quoted};

/// Free space below the first is a warning, below the second an error.
const SPACE_LOW: u64 = 1024 * 1024 * 1024;
const SPACE_NONE: u64 = 64 * 1024 * 1024;
/// Magic numbers of network and FUSE file systems, where locks and shared memory are unreliable.
const ELSEWHERE: [(i64, &str); 7] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x517b, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
];
const ELSEWHERE_MEND: &str =
    "put the state on a disk of this machine: export XDG_STATE_HOME=/some/local/directory";

/// Checks the directory of all states. Creates it if it is missing, as any command does.
pub fn examine_state(home: &Path) -> Vec<Finding> {
    let about = "directory";
    if let Err(finding) = reachable(home) {
        return vec![*finding];
    }
    let found = match fs::metadata(home) {
        Ok(found) => found,
        Err(error) => {
            return vec![FindingGroup::State.error(about, format!("{}: {error}", home.display()))];
        }
    };
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        let message = format!("{} belongs to another user", home.display());
        return vec![FindingGroup::State.error(about, message).typed(owned(home))];
    }
    if !found.is_dir() {
        let message = format!("{} is not a directory", home.display());
        let command = format!("mv {0} {0}.old", quoted(home));
        return vec![FindingGroup::State.error(about, message).typed(command)];
    }
    if found.mode() & 0o022 != 0 {
        let message = format!("{} can be written by other users", home.display());
        return vec![
            FindingGroup::State.error(about, message).typed(format!("chmod 700 {}", quoted(home))),
        ];
    }
    if let Err(error) = try_file(home) {
        let message = format!("{} can't be written: {error}", home.display());
        return vec![
            FindingGroup::State.error(about, message).typed(format!("chmod 700 {}", quoted(home))),
        ];
    }
    let mut findings = vec![FindingGroup::State.ok(about, home.display().to_string())];
    if let Some(name) = elsewhere(home) {
        let message = format!("{name}: databases there can lose what they promised to keep");
        let remedy = Remedy::Do(ELSEWHERE_MEND.to_owned());
        findings.push(FindingGroup::State.warning("file system", message).with_remedy(remedy));
    }
    findings
}

/// Creates the directory, or returns the obstacle.
fn reachable(home: &Path) -> Result<(), Box<Finding>> {
    let mut builder = fs::DirBuilder::new();
    match builder.recursive(true).mode(0o700).create(home) {
        Ok(()) => Ok(()),
        Err(error) => {
            // The nearest existing directory is the obstacle.
            let there = home.ancestors().find(|path| path.exists()).unwrap_or(home);
            let message = format!("{} can't be made: {error}", home.display());
            let finding = FindingGroup::State.error("directory", message);
            let command = match there.is_dir() {
                true => format!("chmod u+rwx {}", quoted(there)),
                false => format!("mv {0} {0}.old", quoted(there)),
            };
            Err(Box::new(finding.typed(command)))
        }
    }
}

/// Writes and locks a file there, as stores do.
fn try_file(home: &Path) -> std::io::Result<()> {
    let path = home.join(format!(".doctor-{}", std::process::id()));
    let mut options = File::options();
    let tried = options.create_new(true).write(true).mode(0o600).open(&path).and_then(|file| {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.sync_all()
    });
    // A file that was not made can't be removed. The result of the trial says why.
    let _ = fs::remove_file(&path);
    tried
}

fn elsewhere(home: &Path) -> Option<&'static str> {
    let kind = statfs(home).ok()?.f_type as i64 & 0xffff_ffff;
    ELSEWHERE.iter().find(|(magic, _)| *magic == kind).map(|(_, name)| *name)
}

/// Reports the free space at `path`, under the name `about`.
pub fn examine_space(about: &str, path: &Path) -> Option<Finding> {
    let there = path.ancestors().find(|path| path.exists())?;
    let found = statfs(there).ok()?;
    let free = found.f_bavail.saturating_mul(u64::try_from(found.f_bsize).unwrap_or(0));
    let message = format!("{} free in {}", in_words(free), there.display());
    let remedy =
        || Remedy::Do("hookloop worktrees clean removes what is done; then df -h".to_owned());
    Some(match free {
        0..SPACE_NONE => FindingGroup::State.error(about, message).with_remedy(remedy()),
        SPACE_NONE..SPACE_LOW => FindingGroup::State.warning(about, message).with_remedy(remedy()),
        _ => FindingGroup::State.ok(about, message),
    })
}

fn in_words(bytes: u64) -> String {
    match bytes {
        0..SPACE_LOW => format!("{} MB", bytes / (1024 * 1024)),
        _ => format!("{} GB", bytes / SPACE_LOW),
    }
}
