//! Enforces a confinement on this process: private mounts, then Landlock and the system call filter.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::confinement::{Confinement, ConfinementError};
use super::hidden::{self, HiddenPaths};
use super::{mounts, syscalls};

/// Devices that programs expect to be writable.
const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Capabilities that a job of root keeps: access to files of other users, and changing to another user.
const CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Returns the newest known version of Landlock that the kernel has, or 0.
pub(super) fn version() -> u32 {
    type VersionProbe = fn(Ruleset) -> Result<Ruleset, RulesetError>;
    const PROBES: [(u32, VersionProbe); 7] = [
        (9, |rules| rules.handle_access(AccessFs::ResolveUnix)),
        (6, |rules| rules.scope(Scope::Signal)),
        (5, |rules| rules.handle_access(AccessFs::IoctlDev)),
        (4, |rules| rules.handle_access(AccessNet::ConnectTcp)),
        (3, |rules| rules.handle_access(AccessFs::Truncate)),
        (2, |rules| rules.handle_access(AccessFs::Refer)),
        (1, |rules| rules.handle_access(AccessFs::Execute)),
    ];
    let strict = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let known = PROBES.iter().find(|(_, probe)| probe(strict()).is_ok());
    known.map_or(0, |(version, _)| *version)
}

/// Confines this process, which has one thread, and every process that it starts from now on.
///
/// A confinement cannot be lifted.
pub(crate) fn enforce(confinement: &Confinement) -> Result<(), ConfinementError> {
    // In a new user namespace a process has all capabilities. The job gets none that this process does not have now.
    let held = capabilities(None).map_err(|_| ConfinementError::Capabilities)?;
    mounts::enter(&confinement.mounts)?;
    let rules = rules(confinement)?;
    let status = rules.restrict_self().map_err(|_| ConfinementError::Landlock)?;
    if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
        return Err(ConfinementError::Landlock);
    }
    drop_capabilities(held).map_err(|_| ConfinementError::Capabilities)?;
    syscalls::filter(confinement).ok_or(ConfinementError::Filter)
}

/// Builds the rules. It requires necessary features, and uses features of newer kernels if present.
fn rules(confinement: &Confinement) -> Result<RulesetCreated, ConfinementError> {
    let failed = |_| ConfinementError::Landlock;
    let hidden = HiddenPaths::new(&confinement.hide)?;
    let limits_writes = confinement.write.is_some() || !hidden.is_empty();
    let reads = match hidden.is_empty() {
        true => BitFlags::EMPTY,
        false => AccessFs::from_read(ABI::V3),
    };
    // A handled access is forbidden where no rule allows it. A ruleset needs at least one. Every ruleset also
    // keeps its processes from tracing and writing to those outside.
    let handled = match limits_writes {
        true => AccessFs::from_write(ABI::V3) | reads,
        // A ruleset that does not handle `Refer` refuses every move to another directory.
        false => AccessFs::MakeBlock | AccessFs::Refer,
    };
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(handled)
        .map_err(failed)?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(ABI::V6))
        .map_err(failed)?;
    if !confinement.local_sockets {
        rules = rules.handle_access(AccessFs::ResolveUnix).map_err(failed)?;
    }
    if limits_writes {
        rules = rules.handle_access(AccessFs::IoctlDev).map_err(failed)?;
    }
    if confinement.no_network {
        rules = rules.handle_access(AccessNet::from_all(ABI::V4)).map_err(failed)?;
    }
    let mut rules = rules.create().map_err(failed)?;
    if !limits_writes {
        rules = allow(rules, Path::new("/"), AccessFs::Refer.into(), &hidden)?;
    }
    for place in confinement.write.iter().flatten() {
        rules = allow(rules, place, AccessFs::from_write(ABI::V5) | reads, &hidden)?;
    }
    let devices = DEVICES.iter().map(Path::new).filter(|device| device.exists());
    for device in devices.filter(|_| confinement.write.is_some()) {
        let access = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        rules = allow(rules, device, access, &hidden)?;
    }
    if hidden.is_empty() {
        return Ok(rules);
    }
    for place in &confinement.read {
        rules = allow(rules, place, reads, &hidden)?;
    }
    allow_siblings(rules, confinement, &hidden)
}

/// Allows the entries beside the paths to hidden directories.
fn allow_siblings(
    mut rules: RulesetCreated,
    confinement: &Confinement,
    hidden: &HiddenPaths,
) -> Result<RulesetCreated, ConfinementError> {
    let (reads, writes) = (AccessFs::from_read(ABI::V3), AccessFs::from_write(ABI::V5));
    // A place above a hidden directory has no rule of its own.
    let split: Option<Vec<PathBuf>> = confinement.write.as_ref().map(|places| {
        let real = places.iter().filter_map(|place| place.canonicalize().ok());
        real.filter(|place| hidden.leads_to_hidden(place)).collect()
    });
    for sibling in hidden.siblings()? {
        let can_write = match &split {
            None => true,
            Some(places) => places.iter().any(|place| sibling.starts_with(place)),
        };
        let access = if can_write { reads | writes } else { reads };
        if let Some((entry, found)) = hidden::open_entry(&sibling) {
            rules = add(rules, entry, &found, access, hidden)?;
        }
    }
    Ok(rules)
}

/// Keeps those of the held capabilities that are about files. `no_new_privs` keeps the others from coming back.
fn drop_capabilities(held: CapabilitySets) -> rustix::io::Result<()> {
    let CapabilitySets { effective, permitted, .. } = held;
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
    hidden: &HiddenPaths,
) -> Result<RulesetCreated, ConfinementError> {
    // `landlock::PathFd` does not work here. With musl, the standard library drops `O_PATH`, and
    // without a terminal a device such as /dev/tty cannot be opened for reading.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = open(place, flags, Mode::empty());
    let opened = opened.and_then(|file| fstat(&file).map(|found| (file, found)));
    let (file, found) = opened.map_err(|_| ConfinementError::Place)?;
    add(rules, file, &found, access, hidden)
}

/// Adds the rule for an open file, unless the rule would allow a hidden directory.
fn add(
    rules: RulesetCreated,
    file: OwnedFd,
    found: &Stat,
    access: BitFlags<AccessFs>,
    hidden: &HiddenPaths,
) -> Result<RulesetCreated, ConfinementError> {
    if hidden.is_closed(found) {
        return Ok(rules);
    }
    // A rule for a single file takes only the accesses of files.
    let access = match FileType::from_raw_mode(found.st_mode).is_dir() {
        true => access,
        false => access & AccessFs::from_file(ABI::V5),
    };
    rules.add_rule(PathBeneath::new(file, access)).map_err(|_| ConfinementError::Landlock)
}
