//! The sandbox features of this system.

#[cfg(target_os = "linux")]
use super::{landlock, syscalls};

/// The oldest usable version of Landlock. Before it, any file could be truncated (Linux 6.2).
const LANDLOCK_MIN: u32 = 3;
/// The version of Landlock that restricts signals and abstract sockets (Linux 6.12).
const LANDLOCK_SIGNALS: u32 = 6;

/// The sandbox features that this system can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SandboxSupport {
    /// The newest known version of Landlock that the kernel has, or 0.
    pub landlock: u32,
    pub seccomp: bool,
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
