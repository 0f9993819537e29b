//! Options of a hook.

use crate::limits::Limits;
use crate::point::PointKind;

pub use crate::quantity::{BadLength, Length, TIMEOUT_MAX_MS};

/// The default timeouts. A gate may run tests, while a reaction is short.
const GATE_TIMEOUT_MS: u64 = 600_000;

const REACTION_TIMEOUT_MS: u64 = 60_000;

pub const ATTEMPTS_MAX: u32 = 10;

const BACKOFF_MS: u64 = 1_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookOptions {
    /// A CEL expression that must be true for the hook to run.
    pub when: Option<String>,
    pub timeout_ms: Option<u64>,
    pub pipe_output: PipeOutput,
    pub on_failure: OnFailure,
    pub answers: AllowedAnswers,
    pub env: Vec<EnvEntry>,
    /// The working directory, relative to the project's.
    pub cwd: Option<String>,
    /// Hooks of the same point that must have passed before.
    pub needs: Vec<String>,
    /// At a gate: of the hooks that name the same group, one has to pass.
    pub any_of: Option<String>,
    /// The hook may run concurrently with neighbours that also have this option.
    pub parallel: bool,
    pub retry: RetryPolicy,
    pub sandbox: Option<HookSandbox>,
    pub limits: Limits,
    /// Patterns of the report files that the gate writes, relative to its working directory.
    pub report: Vec<String>,
    pub room: RoomRules,
    /// At a setup: patterns of the files whose change makes it run again. Empty means all lock files and manifests.
    pub inputs: Vec<String>,
    /// The tests of the base that run beside this gate; none if they do not run.
    pub base_tests: Option<BaseTestRules>,
    /// The strength that the tests of this gate must have; none if it is not measured.
    pub strength: Option<StrengthRules>,
    /// Gates of a machine with the same name do not run at the same time.
    pub exclusive: Option<String>,
}

/// The rules for the strength of the tests that a gate runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrengthRules {
    /// The minimum share of mutants that the tests notice, in percent.
    pub at_least: u8,
    /// The time of the mutation engine.
    pub budget_ms: u64,
    /// Maximum mutants.
    pub most: u32,
}

impl Default for StrengthRules {
    fn default() -> StrengthRules {
        StrengthRules { at_least: 80, budget_ms: 180_000, most: 40 }
    }
}

impl std::fmt::Display for StrengthRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StrengthRules { at_least, budget_ms, most } = *self;
        let budget = Length { ms: budget_ms };
        write!(f, "at least {at_least} % of {most} mutants, budget {budget}")
    }
}

/// The rules for the tests of the base, which run against the work beside a gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseTestRules {
    /// Patterns of further files that belong to the tests, from the top of the repository.
    pub protect: Vec<String>,
    pub expectations: ExpectationPolicy,
    pub known_failures: KnownFailures,
}

/// The result if all failing checks of a gate failed before the work began, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnownFailures {
    /// The gate fails.
    #[default]
    Block,
    /// The gate passes, and the receipt counts them.
    Allow,
}

/// The result if the work changed a test that fails as it was before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ExpectationPolicy {
    /// A person decides.
    #[default]
    Ask,
    /// A gatekeeper decides whether the work asks for the change. A person decides if it does not approve.
    Review(ExpectationReviewer),
    /// The change is recorded.
    Allow,
}

/// The gatekeeper that reviews changed expectations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExpectationReviewer {
    /// The gatekeeper or the agent; none is the agent of the session, in a conversation of its own.
    pub name: Option<String>,
    /// The agent, the model and the instructions of the gatekeeper.
    pub terms: String,
}

impl std::fmt::Display for BaseTestRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("on")?;
        if !self.protect.is_empty() {
            write!(f, ", protect {}", self.protect.join(", "))?;
        }
        match &self.expectations {
            ExpectationPolicy::Ask => {}
            ExpectationPolicy::Allow => f.write_str(", expectations: allow")?,
            ExpectationPolicy::Review(ExpectationReviewer { name, terms }) => {
                let name = name.as_deref().unwrap_or("the agent");
                write!(f, ", expectations: review by {name}")?;
                if !terms.is_empty() {
                    write!(f, " ({terms})")?;
                }
            }
        }
        if self.known_failures == KnownFailures::Allow {
            f.write_str(", known_failures: allow")?;
        }
        Ok(())
    }
}

/// The room of a gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomRules {
    pub choice: RoomChoice,
    /// Ignored files that are copied into the room, relative to the project's directory.
    pub copy: Vec<String>,
    pub confirm: ConfirmAt,
}

/// The moment at which passing gates run again without build files of refused work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfirmAt {
    /// At each claim that the gates would accept.
    Stop,
    /// Before work is submitted.
    #[default]
    Submit,
    Never,
}

impl ConfirmAt {
    pub fn name(self) -> &'static str {
        match self {
            ConfirmAt::Stop => "stop",
            ConfirmAt::Submit => "submit",
            ConfirmAt::Never => "never",
        }
    }
}

/// The directory in which a gate runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomChoice {
    /// A clean checkout of the files that git does not ignore.
    #[default]
    Clean,
    /// The working directory of the agent.
    Here,
}

impl HookOptions {
    /// Returns the timeout at a point of this kind.
    pub fn timeout_at(&self, kind: PointKind) -> u64 {
        self.timeout_ms.unwrap_or(match kind {
            PointKind::Gate => GATE_TIMEOUT_MS,
            PointKind::Reaction => REACTION_TIMEOUT_MS,
        })
    }
}

/// Whether the output of a hook is sent to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PipeOutput {
    #[default]
    Never,
    Always,
    OnFailure,
}

/// The effect of a gate's failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// The gate blocks.
    #[default]
    Closed,
    /// The gate does not block, and a warning is shown.
    Open,
}

/// The parts of a gate's JSON answer that take effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AllowedAnswers {
    /// The parts that make the gate stricter. Output of a test runner may contain anything that the code under
    /// test prints.
    #[default]
    Stricter,
    /// Also accepts the parts that act: actions, a checkpoint, the next prompt, values and a skip.
    Json,
}

/// A variable of a hook's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvEntry {
    /// A variable that is passed on from the user's environment.
    Inherited(String),
    Set {
        name: String,
        value: String,
    },
}

impl EnvEntry {
    pub fn name(&self) -> &str {
        match self {
            EnvEntry::Inherited(name) | EnvEntry::Set { name, .. } => name,
        }
    }
}

/// Retries of a hook that failed. A hook that blocked has answered and is not retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Runs in all.
    pub attempts: u32,
    /// The pause before the second run. Each further pause is twice as long.
    pub backoff_ms: u64,
    /// A random part of each pause is skipped.
    pub jitter: bool,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy { attempts: 1, backoff_ms: BACKOFF_MS, jitter: true }
    }
}

/// Restrictions of a hook's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookSandbox {
    pub no_network: bool,
    /// The only directories that the hook may write to. `None` means no restriction.
    pub write: Option<Vec<String>>,
}

/// Loaders, shells, interpreters, and programs that other programs start.
const DANGEROUS_STARTS: [&str; 19] = [
    "LD_",
    "DYLD_",
    "HOOKLOOP_",
    "GIT_",
    "BASH_",
    "PYTHON",
    "PERL",
    "RUBY",
    "NODE_",
    "NPM_",
    "LUA_",
    "PHP",
    "JAVA_",
    "JDK_",
    "DOTNET_",
    "CORECLR_",
    "GCONV_",
    "OPENSSL_",
    "SSL_CERT_",
];

/// Servers, certificates, and directories of settings.
const DANGEROUS_ENDS: [&str; 12] = [
    "PROXY",
    "_BASE_URL",
    "_API_BASE",
    "_ENDPOINT",
    "_INDEX_URL",
    "_REGISTRY",
    "_API_KEY",
    "_HOME",
    "_CONFIG_FILE",
    "_CA_BUNDLE",
    "_WRAPPER",
    "_ASKPASS",
];

/// Names that are dangerous as a whole.
const DANGEROUS_NAMES: [&str; 37] = [
    "PATH",
    "HOME",
    "SHELL",
    "ENV",
    "IFS",
    "PS4",
    "SHELLOPTS",
    "CDPATH",
    "FPATH",
    "ZDOTDIR",
    "INPUTRC",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "USER",
    "TMPDIR",
    "CLAUDE_PROJECT_DIR",
    "PROMPT_COMMAND",
    "CLASSPATH",
    "MAKEFLAGS",
    "GOFLAGS",
    "RUSTC",
    "RUSTFLAGS",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "TERMINFO",
    "KUBECONFIG",
    "GTK_MODULES",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "OLLAMA_HOST",
    "_JAVA_OPTIONS",
    "MAVEN_OPTS",
];

/// Whether a variable changes which programs run or which servers they use. A repository can't set such a
/// variable.
pub fn is_dangerous_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    DANGEROUS_STARTS.iter().any(|start| name.starts_with(start))
        || DANGEROUS_ENDS.iter().any(|end| name.ends_with(end))
        || DANGEROUS_NAMES.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T8: loaders, interpreters, proxies, base URLs, directories of settings, programs that other programs
    /// start.
    const DANGEROUS: &str = "
        PATH HOME SHELL ENV IFS PS4 CDPATH BASH_ENV BASH_FUNC_ls ZDOTDIR FPATH INPUTRC
        PROMPT_COMMAND SHELLOPTS LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES
        GCONV_PATH OPENSSL_CONF OPENSSL_MODULES SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE
        REQUESTS_CA_BUNDLE NODE_OPTIONS NODE_PATH NODE_EXTRA_CA_CERTS npm_config_registry
        NPM_CONFIG_SCRIPT_SHELL PYTHONPATH PYTHONSTARTUP PYTHONHOME PERL5LIB PERL5OPT PERLLIB
        RUBYOPT RUBYLIB LUA_INIT LUA_PATH PHPRC PHP_INI_SCAN_DIR CLASSPATH JAVA_TOOL_OPTIONS
        _JAVA_OPTIONS JDK_JAVA_OPTIONS MAVEN_OPTS DOTNET_STARTUP_HOOKS CORECLR_PROFILER
        GIT_SSH_COMMAND GIT_DIR GIT_CONFIG_GLOBAL GIT_EXEC_PATH GIT_PROXY_COMMAND SSH_ASKPASS
        SUDO_ASKPASS EDITOR VISUAL PAGER MANPAGER LESSOPEN LESSCLOSE BROWSER GOFLAGS GOPROXY
        RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTFLAGS CARGO_HOME RUSTUP_HOME MAKEFLAGS
        HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY FTP_PROXY ANTHROPIC_BASE_URL OPENAI_BASE_URL
        OPENAI_API_BASE ANTHROPIC_API_KEY AWS_ENDPOINT AWS_CONFIG_FILE DOCKER_HOST DOCKER_CONFIG
        KUBECONFIG OLLAMA_HOST PIP_INDEX_URL CODEX_HOME CLAUDE_HOME XDG_CONFIG_HOME XDG_STATE_HOME
        HOSTALIASES LOCALDOMAIN TERMINFO GTK_MODULES TMPDIR HOOKLOOP_STORE CLAUDE_PROJECT_DIR
    ";

    #[test]
    fn variables_that_redirect_programs_are_dangerous() {
        for name in DANGEROUS.split_whitespace() {
            for name in [name.to_owned(), name.to_lowercase()] {
                assert!(is_dangerous_variable(&name), "{name}");
            }
        }
        for name in ["RUST_LOG", "CI", "SLACK_WEBHOOK", "GOOS", "MODE", "DB_HOST", "DEBUG"] {
            assert!(!is_dangerous_variable(name), "{name}");
        }
    }
}
