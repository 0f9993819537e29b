//! The system call filter of confined jobs.
//!
//! It refuses ways around Landlock (io_uring, memory and files of other processes, namespaces, mounts), calls by which
//! root could change the machine, and sockets. A refused call returns an error, and the program continues.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::confinement::Confinement;

/// The architecture of this program's system calls. `None` where the filter does not know it.
const ARCHITECTURE: Option<TargetArch> = if cfg!(target_arch = "x86_64") {
    Some(TargetArch::x86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(TargetArch::aarch64)
} else {
    None
};

/// The kernel's list of filter actions.
const ACTIONS: &str = "/proc/sys/kernel/seccomp/actions_avail";

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

const REFUSED: [c_long; 46] = [
    // Requests that the kernel performs later, past every filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Memory and files of other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    // Memory and programs of the kernel.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    // Keys of the session, which are shared with other processes.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Another view of the file system.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

/// Calls that connect a socket, for a job that has inherited one.
const SOCKET_USES: [c_long; 3] = [libc::SYS_connect, libc::SYS_bind, libc::SYS_listen];

/// Flags that put a new process into other namespaces.
const NAMESPACE_FLAGS: [i32; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    CLONE_NEWTIME,
];
const CLONE_NEWTIME: i32 = 0x80;
/// Requests that simulate input on a terminal.
const TERMINAL_INPUT: [u64; 2] = [0x5412, 0x541c];
/// The type of a socket without its flags.
const SOCKET_TYPE: u64 = 0xf;

/// Returns whether this kernel has the filter actions that are used here.
pub(super) fn is_supported() -> bool {
    let actions = std::fs::read_to_string(ACTIONS).unwrap_or_default();
    let has = |name| actions.split_ascii_whitespace().any(|action| action == name);
    ARCHITECTURE.is_some() && has("errno") && has("kill_process")
}

/// Filters the system calls of this thread and of its future children. Returns `None` if that fails.
pub(super) fn filter(confinement: &Confinement) -> Option<()> {
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    // The flags of `clone3` are in memory, where a filter cannot see them. With ENOSYS, programs fall back to `clone`,
    // whose flags are an argument.
    let unknown = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    let clone3 = SyscallRules::from([(libc::SYS_clone3, Vec::new())]);
    apply_filter(&other_numbers()).ok()?;
    apply_filter(&program(clone3, unknown)?).ok()?;
    apply_filter(&program(rules(confinement)?, refused)?).ok()
}

fn rules(confinement: &Confinement) -> Option<SyscallRules> {
    let mut rules: SyscallRules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        let bits = NAMESPACE_FLAGS.map(|bit| u64::from(bit.cast_unsigned()));
        let any: Option<_> =
            bits.iter().map(|bit| when(0, SeccompCmpOp::MaskedEq(*bit), *bit)).collect();
        rules.insert(call, any?);
    }
    let terminal: Option<_> =
        TERMINAL_INPUT.iter().map(|request| when(1, SeccompCmpOp::Eq, *request)).collect();
    rules.insert(libc::SYS_ioctl, terminal?);
    rules.extend(socket_rules(confinement)?);
    Some(rules)
}

fn socket_rules(confinement: &Confinement) -> Option<SyscallRules> {
    let mut rules = SyscallRules::new();
    let local = u64::from(libc::AF_UNIX.cast_unsigned());
    // Services outside of the sandbox listen on local sockets, so the network does not include those.
    match (confinement.no_network, confinement.local_sockets) {
        (true, false) => {
            let all = SOCKET_USES.iter().chain(&[libc::SYS_socket]);
            rules.extend(all.map(|call| (*call, Vec::new())));
        }
        (true, true) => {
            rules.insert(libc::SYS_socket, vec![when(0, SeccompCmpOp::Ne, local)?]);
        }
        (false, false) => {
            rules.insert(libc::SYS_socket, vec![when(0, SeccompCmpOp::Eq, local)?]);
        }
        (false, true) => {}
    }
    let mut pairs = vec![when(0, SeccompCmpOp::Ne, local)?];
    if !confinement.local_sockets {
        // A socket pair stays within the job, unless its ends can get another address.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW].map(i32::cast_unsigned) {
            pairs.push(when(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind.into())?);
        }
    }
    rules.insert(libc::SYS_socketpair, pairs);
    Some(rules)
}

fn when(argument: u8, op: SeccompCmpOp, value: u64) -> Option<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value).ok()?;
    SeccompRule::new(vec![condition]).ok()
}

/// Compiles rules into a filter. Calls of another architecture kill the process.
fn program(rules: SyscallRules, action: SeccompAction) -> Option<BpfProgram> {
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, ARCHITECTURE?).ok()?;
    filter.try_into().ok()
}

/// Refuses calls with high numbers, which on x86-64 are aliases of those with low numbers (x32).
fn other_numbers() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const FIRST_OTHER: u32 = 0x4000_0000;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_AT_LEAST, 1, FIRST_OTHER),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned()),
    ]
}
