//! Finds the private mounts that this system supports, by a process that tries them.
//!
//! A namespace cannot be left, and a process with threads cannot enter a user namespace. So another process tries it:
//! the program of confined jobs, in its probing mode.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io};

use rustix::process::Pid;

use crate::confined_exec::{CONFINED_ARGUMENT, PROBE_ARGUMENT};
use crate::sandbox::{MountSupport, SandboxSupport};
use crate::{orphans, os};

/// Time within which the process answers, or is killed.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// The directory without permissions that an overlay leaves in its `work` directory.
const OVERLAY_REST: &str = "work/work";

impl SandboxSupport {
    /// Returns the private mounts that jobs of this program can have. Later calls return the same result.
    ///
    /// The first call starts a process, so call it only if a job needs mounts. Overlays are tried in the directory for
    /// temporary files. Another file system may not support them.
    pub fn mounts_of_this_system() -> MountSupport {
        static FOUND: OnceLock<MountSupport> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let program = os::this_program();
            program.map(|program| MountSupport::of_program(&program)).unwrap_or_default()
        })
    }
}

impl MountSupport {
    /// Returns the private mounts that jobs can have if their keepers run the program at `executable`.
    ///
    /// A program that cannot be probed has none.
    pub fn of_program(executable: &Path) -> MountSupport {
        if cfg!(not(target_os = "linux")) {
            return MountSupport::default();
        }
        let probed = probe(executable);
        let probed =
            probed.inspect_err(|error| tracing::warn!(%error, "private mounts can't be probed"));
        probed.unwrap_or_default()
    }
}

fn probe(executable: &Path) -> io::Result<MountSupport> {
    let directory = tempfile::Builder::new().prefix("hookloop-probe-").tempdir()?;
    let mut command = Command::new(executable);
    command.args([CONFINED_ARGUMENT, PROBE_ARGUMENT]).arg(directory.path()).env_clear();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = orphans::while_no_process_starts(|| command.spawn())?;
    os::wait_for_end(Pid::from_child(&child), PROBE_LIMIT);
    // A process that has ended needs no signal.
    let _ = child.kill();
    let support = MountSupport::from_exit_code(child.wait()?.code());
    // Only root could list and remove it as it is. Without overlays there is none.
    let rest = directory.path().join(OVERLAY_REST);
    let _ = fs::set_permissions(rest, fs::Permissions::from_mode(0o700));
    directory.close()?;
    Ok(support)
}
