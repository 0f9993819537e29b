//! Checks of git: installed, new enough, with an identity for commits, and allowed to read the repository.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use hookloop_git::excerpt;
use hookloop_git::git::{HARMLESS, variables};
use hookloop_process::{ExitReason, Job, JobResult, KeeperPool, find_program};

use super::{Finding, FindingGroup, owned};

const WITHIN: Duration = Duration::from_secs(5);
/// The first version that merges without a worktree, which merge trains need.
const VERSION_MIN: (u32, u32) = (2, 38);
/// Package managers, each with the command that installs git.
const INSTALLERS: [(&str, &str); 6] = [
    ("apt-get", "sudo apt-get install git"),
    ("dnf", "sudo dnf install git"),
    ("pacman", "sudo pacman -S git"),
    ("apk", "sudo apk add git"),
    ("zypper", "sudo zypper install git"),
    ("brew", "brew install git"),
];

/// Checks git itself and the directory `root`.
pub fn examine_git(root: &Path, environment: &[(OsString, OsString)]) -> Vec<Finding> {
    let path = environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(""), |(_, path)| path);
    if find_program("git", path).is_none() {
        let installer =
            INSTALLERS.iter().find(|(program, _)| find_program(program, path).is_some());
        let message = "it is not installed: nothing that is proven can be named or delivered";
        let finding = FindingGroup::Git.error("git", message);
        return vec![match installer {
            Some((_, command)) => finding.typed(*command),
            None => finding,
        }];
    }
    let asked = GitAnswer { root, environment, keepers: KeeperPool::of_this_program() };
    std::thread::scope(|scope| {
        let version = scope.spawn(|| asked.version());
        let identity = scope.spawn(|| asked.identity());
        let repository = scope.spawn(|| asked.repository());
        let parts = [version, identity, repository];
        parts.into_iter().filter_map(|part| part.join().ok().flatten()).collect()
    })
}

/// Returns the address of a remote from the repository's own configuration.
pub(super) fn remote_url(
    root: &Path,
    environment: &[(OsString, OsString)],
    remote: &str,
) -> Option<String> {
    let asked = GitAnswer { root, environment, keepers: KeeperPool::of_this_program() };
    let value = |key: &str| {
        let key = format!("remote.{remote}.{key}");
        let said =
            asked.ask(&["config", "--get", &key], UserSettings::No).and_then(|ran| well(&ran));
        said.map(|said| said.trim().to_owned()).filter(|said| !said.is_empty())
    };
    value("pushurl").or_else(|| value("url"))
}

struct GitAnswer<'a> {
    root: &'a Path,
    environment: &'a [(OsString, OsString)],
    keepers: KeeperPool,
}

impl GitAnswer<'_> {
    fn version(&self) -> Option<Finding> {
        let said = self.ask(&["--version"], UserSettings::No).and_then(|ran| well(&ran));
        let Some(said) = said else {
            return Some(FindingGroup::Git.error("git", "it does not tell its version"));
        };
        let text = said.trim().trim_start_matches("git version ").to_owned();
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Some(match found >= VERSION_MIN {
            true => FindingGroup::Git.ok("git", text),
            false => {
                let (major, minor) = VERSION_MIN;
                FindingGroup::Git.warning("git", format!("{text}; delivery needs {major}.{minor}"))
            }
        })
    }

    /// Checks the author of commits, which agents and delivery need.
    fn identity(&self) -> Option<Finding> {
        let value = |key: &str| {
            let said =
                self.ask(&["config", "--get", key], UserSettings::Yes).and_then(|ran| well(&ran));
            said.map(|said| said.trim().to_owned()).filter(|said| !said.is_empty())
        };
        let has = |name: &str| {
            self.environment.iter().any(|(own, value)| own == name && !value.is_empty())
        };
        let name = value("user.name").or_else(|| has("GIT_AUTHOR_NAME").then(|| "you".to_owned()));
        let mail = value("user.email").or_else(|| has("GIT_AUTHOR_EMAIL").then(String::new));
        let name_command = "git config --global user.name \"Your Name\"";
        let mail_command = "git config --global user.email you@example.com";
        let message = "git does not know who commits";
        Some(match (name, mail) {
            (Some(name), Some(mail)) if mail.is_empty() => FindingGroup::Git.ok("identity", name),
            (Some(name), Some(mail)) => {
                FindingGroup::Git.ok("identity", format!("{name} <{mail}>"))
            }
            (Some(_), None) => FindingGroup::Git.warning("identity", message).typed(mail_command),
            (None, Some(_)) => FindingGroup::Git.warning("identity", message).typed(name_command),
            (None, None) => FindingGroup::Git
                .warning("identity", message)
                .typed(format!("{name_command} && {mail_command}")),
        })
    }

    fn repository(&self) -> Option<Finding> {
        let none = || {
            let message = "this is not in a git repository: a receipt cannot name a git tree";
            FindingGroup::Git.warning("repository", message).typed("git init")
        };
        if !self.root.ancestors().any(|directory| directory.join(".git").exists()) {
            return Some(none());
        }
        // Runs as during a session: without user and system settings, which could run programs.
        let ran = self.ask(&["rev-parse", "--show-toplevel"], UserSettings::No)?;
        if let Some(top) = well(&ran) {
            return Some(FindingGroup::Git.ok("repository", top.trim().to_owned()));
        }
        let why = excerpt::of_output(&ran.output.stderr);
        let why = why.lines().next().unwrap_or("git does not say why").trim().to_owned();
        if why.contains("not a git repository") && !self.root.join(".git").exists() {
            // A directory above has a `.git` that is no repository.
            return Some(none());
        }
        let finding = FindingGroup::Git.error("repository", why.clone());
        Some(match why.contains("dubious ownership") {
            true => finding.typed(owned(self.root)),
            false => finding,
        })
    }

    fn ask(&self, args: &[&str], own: UserSettings) -> Option<JobResult> {
        let argv = std::iter::once("git").chain(args.iter().copied()).map(OsString::from).collect();
        let is_needed = |(name, _): &&(OsString, OsString)| match own {
            // The variables that locate the user's own settings.
            UserSettings::Yes => name == "PATH" || name == "HOME" || name == "XDG_CONFIG_HOME",
            UserSettings::No => name == "PATH",
        };
        let mut env: Vec<_> = self.environment.iter().filter(is_needed).cloned().collect();
        env.extend(variables(HARMLESS));
        env.push(("GIT_TERMINAL_PROMPT".into(), "0".into()));
        env.push(("LC_ALL".into(), "C".into()));
        if let UserSettings::No = own {
            env.push(("GIT_CONFIG_NOSYSTEM".into(), "1".into()));
            env.push(("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()));
        }
        let job = Job { env, ..Job::new(argv, self.root.to_owned(), WITHIN) };
        self.keepers.run(job).inspect_err(|error| tracing::debug!(%error, "git does not run")).ok()
    }
}

/// Whether git reads the user's own settings.
#[derive(Clone, Copy)]
enum UserSettings {
    Yes,
    No,
}

/// Returns the output of a command that succeeded.
fn well(ran: &JobResult) -> Option<String> {
    (ran.exit == ExitReason::Exited(0)).then(|| excerpt::of_output(&ran.output.stdout))
}
