//! What a hook's processes are kept from, and how: Landlock for files, signals and other processes, a
//! filter of system calls for the rest.
//!
//! Landlock lists what is allowed and can't take anything out of it again: a directory that may be
//! written to may be written to everywhere. It does not know of modes, owners and times of files, so
//! those can be changed wherever the user could. Reading and running programs is not limited.

use std::path::PathBuf;

#[cfg(target_os = "linux")]
use super::enforce;

/// Before the third version, files could be emptied wherever they were (Linux 6.2).
const LANDLOCK_MIN: u32 = 3;
/// What knows about signals, and about sockets without a file (Linux 6.12).
const LANDLOCK_SIGNALS: u32 = 6;

/// What a job's processes may not do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    pub no_network: bool,
    /// The only places where they may write, by absolute paths; none for anywhere.
    pub write: Option<Vec<PathBuf>>,
}

/// What this system can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    /// The version of Landlock, as far as it is known here; 0 if there is none.
    pub landlock: u32,
    pub seccomp: bool,
}

/// Why a confinement does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unconfined {
    #[error("Landlock does not take its rules")]
    Landlock,
    #[error("a place that it may write to can't be opened")]
    Place,
    #[error("capabilities could not be dropped")]
    Capabilities,
    #[error("the filter of system calls was not taken")]
    Filter,
    #[error("the process that sets it up does not answer")]
    Silent,
}

impl Support {
    #[cfg(target_os = "linux")]
    pub fn of_this_system() -> Support {
        enforce::support()
    }

    #[cfg(not(target_os = "linux"))]
    pub fn of_this_system() -> Support {
        Support { landlock: 0, seccomp: false }
    }

    /// Why a sandbox can't be enforced here, if it can't.
    pub fn gap(self) -> Option<String> {
        if cfg!(not(target_os = "linux")) {
            return Some("hooks are confined on Linux only".to_owned());
        }
        if self.landlock < LANDLOCK_MIN {
            let found = match self.landlock {
                0 => {
                    "has no Landlock, or it is switched off (`lsm=` on its command line)".to_owned()
                }
                version => format!("has Landlock {version}"),
            };
            return Some(format!("this kernel {found}; {LANDLOCK_MIN} is needed (Linux 6.2)"));
        }
        (!self.seccomp).then(|| "this kernel can't filter system calls (seccomp)".to_owned())
    }
}

impl std::fmt::Display for Support {
    /// What is enforced here, in a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(gap) = self.gap() {
            return write!(f, "not enforced here, so not run: {gap}");
        }
        write!(f, "enforced here by Landlock {} and seccomp", self.landlock)?;
        match self.landlock < LANDLOCK_SIGNALS {
            true => write!(f, "; signals to other processes are not stopped before Linux 6.12"),
            false => Ok(()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Confinement {
    pub(super) fn enforce(&self) -> Result<(), Unconfined> {
        Err(Unconfined::Landlock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let check = |landlock, seccomp, shown: &str| {
            let support = Support { landlock, seccomp };
            let text = support.to_string();
            assert!(text.contains(shown), "{text}");
            assert_eq!(support.gap().is_some(), text.starts_with("not enforced"), "{text}");
        };
        check(0, true, "has no Landlock");
        check(2, true, "has Landlock 2; 3 is needed");
        check(9, false, "seccomp");
        check(3, true, "signals to other processes are not stopped");
        check(6, true, "enforced here by Landlock 6 and seccomp");
    }
}
