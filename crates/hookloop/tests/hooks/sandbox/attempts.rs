//! Ways out of a sandbox, as scripts that exit with 0 if they succeed.
//!
//! Perl makes the system calls, by their numbers on x86-64. An argument that is passed by address
//! has to be a variable.

/// The part of a sandbox that stops an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Network,
    Write,
    /// Each of the two parts stops it.
    Either,
}

pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) by: By,
    /// Without a sandbox the attempt works on every system and for every user.
    pub(crate) sure: bool,
    pub(crate) script: &'static str,
}

const fn sure(by: By, name: &'static str, script: &'static str) -> Attempt {
    Attempt { name, by, sure: true, script }
}

/// Returns an attempt that the system may refuse anyway or not support at all.
const fn perhaps(by: By, name: &'static str, script: &'static str) -> Attempt {
    Attempt { name, by, sure: false, script }
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    sure(
        By::Network,
        "tcp",
        r#"perl -MSocket -e '
        socket(S, PF_INET, SOCK_STREAM, 0) or exit 1;
        connect(S, sockaddr_in($ENV{TCP}, INADDR_LOOPBACK)) or exit 1'"#,
    ),
    sure(
        By::Network,
        "udp-as-a-resolver-does",
        r#"perl -MSocket -e '
        socket(S, PF_INET, SOCK_DGRAM, 0) or exit 1;
        send(S, "query", 0, sockaddr_in($ENV{UDP}, INADDR_LOOPBACK)) or exit 1'"#,
    ),
    sure(By::Network, "shell-tcp", r#"exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/$TCP'"#),
    sure(
        By::Network,
        "listen",
        r#"perl -MSocket -e '
        socket(S, PF_INET, SOCK_STREAM, 0) && bind(S, sockaddr_in(0, INADDR_LOOPBACK)) && listen(S, 1)
        or exit 1'"#,
    ),
    sure(By::Network, "netlink", r#"perl -e 'exit(syscall(41, 16, 3, 0) < 0)'"#),
    perhaps(By::Network, "vsock", r#"perl -e 'exit(syscall(41, 40, 1, 0) < 0)'"#),
    perhaps(By::Network, "packets", r#"perl -e 'exit(syscall(41, 17, 3, 0) < 0)'"#),
    perhaps(
        By::Network,
        "other-numbers",
        r#"perl -e 'exit(syscall(0x40000000 + 41, 2, 1, 0) < 0)'"#,
    ),
    // A 32-bit program, whose system calls have other numbers: it opens a socket, then exits.
    perhaps(
        By::Network,
        "other-architecture",
        r#"perl -e '
        open F, ">", "old"; print F pack "H*", "7f454c46010101000000000000000000020003000100000054800408340000000000000000000000340020000100000000000000"
            . "0100000000000000008004080080040880000000800000000500000000100000"
            . "b867010000bb02000000b90100000031d2cd8085c07809b80100000031dbcd80b801000000bb01000000cd80";
        close F; chmod 0755, "old"; exec "./old"'"#,
    ),
    sure(
        By::Either,
        "local-socket",
        r#"perl -MSocket -e '
        socket(S, PF_UNIX, SOCK_STREAM, 0) or exit 1;
        connect(S, sockaddr_un("$ENV{OUTSIDE}/socket")) or exit 1'"#,
    ),
    sure(
        By::Either,
        "nameless-socket",
        r#"perl -MSocket -e '
        socket(S, PF_UNIX, SOCK_STREAM, 0) or exit 1;
        connect(S, sockaddr_un("\0$ENV{OUTSIDE}/nameless")) or exit 1'"#,
    ),
    sure(
        By::Either,
        "pair-with-an-address",
        r#"perl -MSocket -e '
        socketpair(A, B, AF_UNIX, SOCK_DGRAM, 0) or exit 1;
        send(A, "x", 0, sockaddr_un("$ENV{OUTSIDE}/datagrams")) or exit 1'"#,
    ),
    perhaps(
        By::Either,
        "ring",
        r#"perl -e 'my $ring = "\0" x 120; exit(syscall(425, 8, $ring) < 0)'"#,
    ),
    sure(By::Either, "trace", r#"perl -e 'exit(syscall(101, 16, $ENV{VICTIM}+0, 0, 0) < 0)'"#),
    sure(
        By::Either,
        "memory",
        r#"perl -MFcntl -e 'sysopen(F, "/proc/$ENV{VICTIM}/mem", O_RDWR) or exit 1'"#,
    ),
    sure(
        By::Either,
        "keepers-memory",
        r#"perl -MFcntl -e '
        my $parent = getppid; open S, "/proc/$parent/stat"; my ($keeper) = <S> =~ /\) . (\d+)/;
        sysopen(F, "/proc/$keeper/mem", O_RDWR) or exit 1'"#,
    ),
    sure(By::Either, "files-of-others", r#"echo x > /proc/$VICTIM/fd/1"#),
    sure(By::Either, "variables-of-others", r#"cat /proc/$VICTIM/environ > /dev/null"#),
    perhaps(
        By::Either,
        "copy-a-file-of-others",
        r#"perl -e '
        my $p = syscall(434, $ENV{VICTIM}+0, 0); exit(syscall(438, $p, 0, 0) < 0)'"#,
    ),
    sure(By::Either, "signal-to-others", r#"kill -CONT $VICTIM"#),
    sure(By::Either, "signal-to-the-keeper", r#"kill -CONT $PPID"#),
    sure(
        By::Either,
        "signal-to-all-above",
        r#"perl -e '
        my $pid = getppid; my $hit = 0;
        for (1..9) { $hit = 1 if kill("CONT", $pid) && $pid != getppid;
            open S, "/proc/$pid/stat" or last; ($pid) = <S> =~ /\) . (\d+)/; last if $pid < 2 }
        exit !$hit'"#,
    ),
    perhaps(By::Either, "new-name-space", r#"perl -e 'exit(syscall(272, 0x10000000) < 0)'"#),
    perhaps(
        By::Either,
        "process-in-a-name-space",
        r#"perl -e '
        my $p = syscall(56, 0x10000011, 0, 0, 0, 0); exit($p < 0)'"#,
    ),
    perhaps(
        By::Either,
        "process-in-a-name-space-by-memory",
        r#"perl -e '
        my $flags = pack("Q8", 0x10000000, 0, 0, 0, 17, 0, 0, 0); exit(syscall(435, $flags, 64) < 0)'"#,
    ),
    perhaps(
        By::Either,
        "name-space-of-others",
        r#"perl -MFcntl -e '
        sysopen(F, "/proc/$ENV{VICTIM}/ns/uts", O_RDONLY) or exit 1; exit(syscall(308, fileno(F), 0) < 0)'"#,
    ),
    perhaps(
        By::Either,
        "mount",
        r#"mkdir -p m; perl -e 'my ($what, $where) = ("tmpfs", "m"); exit(syscall(165, $what, $where, $what, 0, 0) < 0)' && umount m"#,
    ),
    perhaps(
        By::Either,
        "kernel-program",
        r#"perl -e 'my $map = pack("L4", 2, 4, 4, 1) . "\0" x 112; exit(syscall(321, 0, $map, 128) < 0)'"#,
    ),
    sure(By::Either, "keys", r#"perl -e 'exit(syscall(250, 0, -4, 1) < 0)'"#),
    perhaps(By::Either, "faults", r#"perl -e 'exit(syscall(323, 1) < 0)'"#),
    sure(By::Write, "new-file", r#"echo x > $OUTSIDE/new"#),
    sure(By::Write, "neighbour", r#"echo x > ../neighbour"#),
    sure(By::Write, "append", r#"echo x >> $OUTSIDE/file"#),
    sure(By::Write, "link-to-a-file", r#"ln -s $OUTSIDE/file link && echo x > link"#),
    sure(By::Write, "link-to-a-directory", r#"ln -s $OUTSIDE there && echo x > there/other"#),
    sure(By::Write, "by-the-root-of-a-process", r#"echo x > /proc/$$/root$OUTSIDE/by-root"#),
    sure(By::Write, "second-name-inside", r#"ln $OUTSIDE/second inside && echo x >> inside"#),
    sure(By::Write, "second-name-outside", r#"echo x > here && ln here $OUTSIDE/out"#),
    sure(
        By::Write,
        "rename-out",
        r#"echo x > moved && perl -e 'rename "moved", "$ENV{OUTSIDE}/moved" or exit 1'"#,
    ),
    sure(
        By::Write,
        "rename-in",
        r#"perl -e 'rename "$ENV{OUTSIDE}/third", "stolen" or exit 1' && mv stolen $OUTSIDE/third"#,
    ),
    sure(By::Write, "truncate", r#"perl -e 'exit(syscall(76, "$ENV{OUTSIDE}/file", 0) < 0)'"#),
    sure(
        By::Write,
        "truncate-what-is-read",
        r#"perl -MFcntl -e 'sysopen(F, "$ENV{OUTSIDE}/file", O_RDONLY | O_TRUNC) or exit 1'"#,
    ),
    sure(By::Write, "delete", r#"rm $OUTSIDE/file"#),
    sure(By::Write, "directory", r#"mkdir $OUTSIDE/directory"#),
    sure(By::Write, "pipe", r#"mkfifo $OUTSIDE/pipe"#),
    sure(By::Write, "link", r#"ln -s / $OUTSIDE/link"#),
    sure(By::Write, "profile", r#"echo x >> $HOME/.profile"#),
    sure(By::Write, "shared-memory", r#"echo x > /dev/shm/hookloop-$$ && rm /dev/shm/hookloop-$$"#),
    sure(
        By::Write,
        "temporary-files",
        r#"rm -f "$(mktemp -p /tmp)" && test -w /tmp && echo x > /tmp/hookloop-$$ && rm /tmp/hookloop-$$"#,
    ),
    sure(By::Write, "state", r#"echo x > $STATE/new"#),
    sure(By::Write, "database", r#": >> $STATE/hookloop.db"#),
    perhaps(
        By::Write,
        "settings-of-the-kernel",
        r#"cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern"#,
    ),
    perhaps(By::Write, "log-of-the-kernel", r#": > /dev/kmsg"#),
];
