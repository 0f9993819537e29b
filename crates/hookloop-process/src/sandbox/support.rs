//! The sandbox features of this system.

#[cfg(target_os = "linux")]
use super::{landlock, syscalls};

/// The oldest usable version of Landlock. Before it, any file could be truncated (Linux 6.2).
const LANDLOCK_MIN: u32 = 3;
/// The version of Landlock that restricts signals and abstract sockets (Linux 6.12).
const LANDLOCK_SIGNALS: u32 = 6;

/// The exit code of a probe that found no support for mounts. Higher codes add the bits of the support.
const PROBED: u8 = 64;
const MOUNTS: u8 = 1;
const OVERLAYS: u8 = 2;

/// The sandbox features that this system can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The newest known version of Landlock that the kernel has, or 0.
    pub landlock: u32,
    pub seccomp: bool,
}

/// The kinds of private mounts that this system lets this user make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountSupport {
    /// Whether a job can have a mount namespace, and directories can be bound and hidden in it.
    pub mounts: bool,
    /// Whether writes to a directory can go to another (overlayfs).
    pub overlays: bool,
}

impl MountSupport {
    /// Returns the exit code by which a probe answers.
    pub(crate) fn exit_code(self) -> u8 {
        let bit = |has: bool, bit: u8| if has { bit } else { 0 };
        PROBED + bit(self.mounts, MOUNTS) + bit(self.overlays, OVERLAYS)
    }

    /// Returns the support that a probe answered. Every other exit code means none.
    pub(crate) fn from_exit_code(code: Option<i32>) -> MountSupport {
        let [no, yes] = [PROBED + MOUNTS, PROBED + MOUNTS + OVERLAYS].map(|code| Some(code.into()));
        MountSupport { mounts: code == no || code == yes, overlays: code == yes }
    }
}

impl SandboxSupport {
    #[cfg(target_os = "linux")]
    pub fn of_this_system() -> SandboxSupport {
        SandboxSupport { landlock: landlock::version(), seccomp: syscalls::is_supported() }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn of_this_system() -> SandboxSupport {
        SandboxSupport { landlock: 0, seccomp: false }
    }

    /// Returns the reason why a sandbox cannot be enforced here, if it cannot.
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

impl std::fmt::Display for SandboxSupport {
    /// Writes in one line whether a sandbox is enforced here, and by which features.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(gap) = self.gap() {
            return write!(f, "not enforced here, so not run: {gap}");
        }
        write!(f, "enforced here by Landlock {} and seccomp", self.landlock)?;
        if self.landlock < LANDLOCK_SIGNALS {
            write!(f, "; signals to other processes are not stopped before Linux 6.12")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_that_is_no_answer_of_a_probe_means_no_mounts() {
        let check = |code, mounts, overlays| {
            let support = MountSupport { mounts, overlays };
            assert_eq!(MountSupport::from_exit_code(code), support, "{code:?}");
        };
        for code in 0..=255 {
            check(Some(code), code == 65 || code == 67, code == 67);
        }
        check(None, false, false);
        for (mounts, overlays) in [(false, false), (true, false), (true, true)] {
            let support = MountSupport { mounts, overlays };
            check(Some(support.exit_code().into()), mounts, overlays);
        }
    }

    #[test]
    fn a_missing_sandbox_feature_is_named() {
        let check = |landlock, seccomp, shown: &str| {
            let support = SandboxSupport { landlock, seccomp };
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
