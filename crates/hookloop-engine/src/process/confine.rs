//! What a hook's processes are kept from, and how: Landlock for files, signals and other processes, a
//! filter of system calls for the rest.
//!
//! Landlock lists what is allowed and can't take anything out of it again: a directory that may be
//! written to may be written to everywhere. It does not know of modes, owners and times of files, so
//! those can be changed wherever the user could. Reading and running programs is not limited.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::syscalls;

/// Before the third version, files could be emptied wherever they were (Linux 6.2).
const LANDLOCK_MIN: u32 = 3;
/// What knows about signals, and about sockets without a file (Linux 6.12).
const LANDLOCK_SIGNALS: u32 = 6;
/// What the kernel can answer to a system call.
const ACTIONS: &str = "/proc/sys/kernel/seccomp/actions_avail";
/// Devices that programs expect to be able to write to.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// What is left to an administrator's hook: to work on files as whoever they belong to, and as others.
const CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

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
    pub fn of_this_system() -> Support {
        let actions = std::fs::read_to_string(ACTIONS).unwrap_or_default();
        let has = |name| actions.split_ascii_whitespace().any(|action| action == name);
        let seccomp = syscalls::ARCHITECTURE.is_some() && has("errno") && has("kill_process");
        Support { landlock: landlock_version(), seccomp }
    }

    /// Why a sandbox can't be enforced here, if it can't.
    pub fn gap(self) -> Option<String> {
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

/// The newest version whose marks the kernel knows.
fn landlock_version() -> u32 {
    type Mark = fn(Ruleset) -> Result<Ruleset, RulesetError>;
    const MARKS: [(u32, Mark); 7] = [
        (9, |rules| rules.handle_access(AccessFs::ResolveUnix)),
        (6, |rules| rules.scope(Scope::Signal)),
        (5, |rules| rules.handle_access(AccessFs::IoctlDev)),
        (4, |rules| rules.handle_access(AccessNet::ConnectTcp)),
        (3, |rules| rules.handle_access(AccessFs::Truncate)),
        (2, |rules| rules.handle_access(AccessFs::Refer)),
        (1, |rules| rules.handle_access(AccessFs::Execute)),
    ];
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let known = MARKS.iter().find(|(_, mark)| mark(strict()).is_ok());
    known.map_or(0, |(version, _)| *version)
}

impl Confinement {
    /// Holds for this process and all that it starts from now on, for ever. There must be one thread.
    pub(super) fn enforce(&self) -> Result<(), Unconfined> {
        let rules = self.rules()?;
        let status = rules.restrict_self().map_err(|_| Unconfined::Landlock)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(Unconfined::Landlock);
        }
        drop_capabilities().map_err(|_| Unconfined::Capabilities)?;
        syscalls::filter(self.no_network).ok_or(Unconfined::Filter)
    }

    /// What has to be there is required; what newer kernels have is used if it is there.
    fn rules(&self) -> Result<RulesetCreated, Unconfined> {
        let failed = |_| Unconfined::Landlock;
        // Handled is what is forbidden where no rule allows it. One thing has to be, for there to be
        // rules: with them, processes outside can be neither traced nor written to.
        let handled = match self.write {
            Some(_) => AccessFs::from_write(ABI::V3),
            None => AccessFs::MakeBlock.into(),
        };
        let mut rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(handled)
            .map_err(failed)?
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(ABI::V6))
            .map_err(failed)?
            .handle_access(AccessFs::ResolveUnix)
            .map_err(failed)?;
        if self.write.is_some() {
            rules = rules.handle_access(AccessFs::IoctlDev).map_err(failed)?;
        }
        if self.no_network {
            rules = rules.handle_access(AccessNet::from_all(ABI::V4)).map_err(failed)?;
        }
        let mut rules = rules.create().map_err(failed)?;
        for place in self.write.iter().flatten() {
            rules = allow(rules, place, AccessFs::from_write(ABI::V5))?;
        }
        let devices = DEVICES.iter().map(Path::new).filter(|device| device.exists());
        for device in devices.filter(|_| self.write.is_some()) {
            let access = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
            rules = allow(rules, device, access)?;
        }
        Ok(rules)
    }
}

/// Gives up what an administrator has beyond files. It does not come back: no program gains rights now.
fn drop_capabilities() -> rustix::io::Result<()> {
    let CapabilitySets { effective, permitted, .. } = capabilities(None)?;
    let kept = CapabilitySets {
        effective: effective & CAPABILITIES,
        permitted: permitted & CAPABILITIES,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept)
}

fn allow(
    rules: RulesetCreated,
    place: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Unconfined> {
    let parent = PathFd::new(place).map_err(|_| Unconfined::Place)?;
    // A place that is one file takes what is for files of this.
    let access = if place.is_dir() { access } else { access & AccessFs::from_file(ABI::V5) };
    rules.add_rule(PathBeneath::new(parent, access)).map_err(|_| Unconfined::Landlock)
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
