//! How a confinement is put on: by Landlock and a filter of system calls.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags, open};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::confine::{Confinement, Support, Unconfined};
use super::syscalls;

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

/// What this kernel can do.
pub(super) fn support() -> Support {
    let actions = std::fs::read_to_string(ACTIONS).unwrap_or_default();
    let has = |name| actions.split_ascii_whitespace().any(|action| action == name);
    let seccomp = syscalls::ARCHITECTURE.is_some() && has("errno") && has("kill_process");
    Support { landlock: landlock_version(), seccomp }
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
    // Not `landlock::PathFd`: with musl, the standard library drops `O_PATH`, and a device such as /dev/tty can't be opened
    // for reading where there is no terminal.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let parent = open(place, flags, Mode::empty()).map_err(|_| Unconfined::Place)?;
    // A place that is one file takes what is for files of this.
    let access = if place.is_dir() { access } else { access & AccessFs::from_file(ABI::V5) };
    rules.add_rule(PathBeneath::new(parent, access)).map_err(|_| Unconfined::Landlock)
}
