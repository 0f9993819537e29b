//! Programs by name.

#[derive(Clone, Copy, Debug)]
pub(super) enum ProgramKind {
    /// Uses arguments literally, as far as is known.
    Plain,
    /// Parses arguments as code or as names. With `input`, also parses its standard input.
    Parses {
        input: bool,
    },
    /// Runs a script that is named first, or code.
    Interprets(&'static Interpreter),
    /// Runs the command that follows its own options.
    Wraps(&'static Wrapper),
    Finds,
    /// Sets variables of the shell.
    Declares,
    Tests,
    Formats,
    /// Takes options of the shell.
    Sets,
}

#[derive(Debug)]
pub(super) struct Interpreter {
    names: &'static [&'static str],
    /// Options that take no value and do not change the executed command.
    pub(super) flags: &'static str,
    /// Options that take code.
    pub(super) code: &'static str,
    /// Whether `-m` names the module to run.
    pub(super) has_modules: bool,
}

#[derive(Debug)]
pub(super) struct Wrapper {
    name: &'static str,
    /// Options without a value, options with one, and long options without one.
    ///
    /// After any other option, the beginning of the command is unknown.
    pub(super) flags: &'static str,
    pub(super) valued: &'static str,
    pub(super) long: &'static [&'static str],
    /// Arguments between the options and the command.
    pub(super) operands: usize,
    /// Whether `name=value` may stand before the command.
    pub(super) assigns: bool,
}

pub(super) fn kind(name: &str) -> ProgramKind {
    // `python3.12` is a `python`. The program `.` stays unchanged.
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let interpreter = |interpreter: &&Interpreter| interpreter.names.contains(&family);
    if lists(PARSES_ALL, name) || lists(PARSES_ALL, family) {
        return ProgramKind::Parses { input: true };
    }
    if lists(PARSES_ARGUMENTS, name) {
        return ProgramKind::Parses { input: false };
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        return ProgramKind::Wraps(wrapper);
    }
    if let Some(interpreter) = INTERPRETERS.iter().find(interpreter) {
        return ProgramKind::Interprets(interpreter);
    }
    match name {
        "find" | "gfind" => ProgramKind::Finds,
        "export" | "readonly" | "local" | "declare" | "typeset" => ProgramKind::Declares,
        "test" | "[" => ProgramKind::Tests,
        "printf" => ProgramKind::Formats,
        "set" => ProgramKind::Sets,
        _ => ProgramKind::Plain,
    }
}

fn lists(names: &str, name: &str) -> bool {
    names.split(' ').any(|listed| listed == name)
}

/// Whether a leading `-` of a value has no relevant effect on the program.
pub(super) fn takes_no_options(name: &str) -> bool {
    lists("test [ printf echo : true false export readonly", name)
}

/// Whether an option takes a command, for any program.
pub(super) fn option_takes_code(option: &str) -> bool {
    const OPTIONS: &str = "\
        --exec --command --eval --run --rsh --to-command --shell-command --init-command \
        --upload-pack --receive-pack --use-compress-program --checkpoint-action \
        --on-change --rsync-path --cmd";
    lists(OPTIONS, option)
}

/// Whether a variable selects a program to run, or is evaluated when it is set.
pub(super) fn decides_what_runs(name: &str) -> bool {
    const NAMES: &str = "\
        PATH IFS ENV BASH_ENV PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND SHELL SHELLOPTS BASHOPTS \
        CDPATH EDITOR VISUAL PAGER BROWSER LESSOPEN LESSCLOSE MANPAGER NODE_OPTIONS \
        NODE_PATH PERL5OPT PERL5LIB RUBYOPT RUBYLIB MAKEFLAGS JAVA_TOOL_OPTIONS RANDOM \
        SECONDS OPTIND LINENO HISTCMD BASHPID HOME XDG_CONFIG_HOME RUSTC_WRAPPER";
    const PREFIXES: &str = "\
        LD_ DYLD_ PYTHON GIT_CONFIG GIT_SSH GIT_EXEC GIT_TEMPLATE BASH_FUNC HOOKLOOP_";
    const SUFFIXES: &str = "_COMMAND _CMD EDITOR PAGER ASKPASS _DIFF";
    lists(NAMES, name)
        || PREFIXES.split(' ').any(|prefix| name.starts_with(prefix))
        || SUFFIXES.split(' ').any(|suffix| name.ends_with(suffix))
}

const PARSES_ALL: &str = "\
    eval source . ssh slogin rsh mosh autossh sshpass su runuser parallel expect tclsh \
    wish osascript at batch crontab m4 gdb lldb vi vim nvim ex ed emacs psql mysql \
    mariadb sqlite sqlite3 duckdb mongo mongosh fc Rscript R ghci iex bc";

const PARSES_ARGUMENTS: &str = "\
    trap watch awk gawk mawk nawk sed gsed ssed tmux screen script make gmake bmake \
    just alias unset read mapfile readarray let getopts bind complete compgen enable \
    hash jobs shopt expr entr watchexec nodemon concurrently hyperfine nix-shell exit \
    return shift break continue";

const INTERPRETERS: [Interpreter; 9] = [
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "yash"],
        flags: "aefhuvxl",
        code: "c",
        has_modules: false,
    },
    Interpreter { names: &["fish", "nu", "pwsh", "csh", "tcsh"], code: "cC", ..PLAIN },
    Interpreter { names: &["python", "pypy"], flags: "bBdEIOPqsSuv", code: "c", has_modules: true },
    Interpreter { names: &["node", "nodejs", "bun", "deno", "tsx"], code: "ep", ..PLAIN },
    Interpreter { names: &["perl"], flags: "wWTt", code: "eE", ..PLAIN },
    Interpreter { names: &["ruby", "jruby"], flags: "wW", code: "e", ..PLAIN },
    Interpreter { names: &["php"], code: "rBRE", ..PLAIN },
    Interpreter { names: &["lua", "luajit", "julia", "elixir", "guile"], code: "eEc", ..PLAIN },
    Interpreter { names: &["groovy", "scala", "ghc", "ocaml"], code: "e", ..PLAIN },
];

const PLAIN: Interpreter = Interpreter { names: &[], flags: "", code: "", has_modules: false };

const WRAPPERS: [Wrapper; 20] = [
    Wrapper { name: "command", flags: "pvV", ..BARE },
    Wrapper { name: "builtin", ..BARE },
    Wrapper { name: "exec", flags: "cl", valued: "a", ..BARE },
    Wrapper { name: "nohup", ..BARE },
    Wrapper { name: "nice", flags: "0123456789", valued: "n", ..BARE },
    Wrapper { name: "ionice", flags: "t", valued: "cn", ..BARE },
    Wrapper {
        name: "timeout",
        flags: "v",
        valued: "ks",
        long: &["foreground", "preserve-status", "verbose"],
        operands: 1,
        ..BARE
    },
    Wrapper { name: "gtimeout", valued: "ks", operands: 1, ..BARE },
    Wrapper { name: "time", flags: "pv", ..BARE },
    Wrapper { name: "stdbuf", valued: "ioe", ..BARE },
    Wrapper { name: "setsid", flags: "cfw", long: &["wait", "fork", "ctty"], ..BARE },
    Wrapper {
        name: "sudo",
        flags: "nEHSAbkP",
        valued: "ugpCDhRrtTU",
        long: &["non-interactive", "preserve-env"],
        assigns: true,
        ..BARE
    },
    Wrapper { name: "doas", flags: "nL", valued: "uC", ..BARE },
    Wrapper {
        name: "env",
        flags: "i0v",
        valued: "uC",
        long: &["ignore-environment", "null"],
        assigns: true,
        ..BARE
    },
    Wrapper { name: "xargs", flags: "0rtpx", valued: "InPLsdaE", long: &["null"], ..BARE },
    Wrapper { name: "flock", flags: "nsxueoF", valued: "wE", operands: 1, ..BARE },
    Wrapper { name: "chroot", operands: 1, ..BARE },
    Wrapper { name: "busybox", ..BARE },
    Wrapper { name: "chronic", flags: "ev", ..BARE },
    Wrapper { name: "caffeinate", flags: "dimsu", valued: "tw", ..BARE },
];

const BARE: Wrapper =
    Wrapper { name: "", flags: "", valued: "", long: &[], operands: 0, assigns: false };
