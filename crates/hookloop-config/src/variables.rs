//! Environment variables with a fixed meaning.

/// Variables of the user's environment that every hook has.
pub const BASE: [&str; 8] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "TERM", "USER", "SHELL"];

/// Variables that select the project's log: with them, a hook's `hookloop` opens the same one.
pub const LOG_SELECTORS: [&str; 4] =
    ["HOOKLOOP_STORE", "HOOKLOOP_POLICY", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];

/// Signals to programs that no person is watching.
pub const CI_VARIABLE: &str = "CI";

/// The filter of the diagnostics. Hooks and agents do not inherit it.
pub const DIAGNOSTICS_VARIABLE: &str = "HOOKLOOP_LOG";

/// Names the span that a process belongs to (W3C Trace Context).
pub const TRACE_PARENT: &str = "TRACEPARENT";
