//! What is likely to go wrong with a project's hooks and agents, found before it does.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hookloop_core::hook::{CommandText, Handler, Hook, Registry};
use hookloop_core::options::{EnvEntry, Length, OnFailure};
use hookloop_core::point::{Kind, Point};

use crate::agents::repository::{self, Wanted};
use crate::condition::Condition;
use crate::policy::Policies;
use crate::process::{Support, cgroup_home};
use crate::rules::Rules;
use crate::runner::{BASE, Runner};
use crate::trust::{self, Standing};

/// A timeout that is longer was meant in milliseconds, probably.
const SUSPICIOUS_TIMEOUT_MS: u64 = 1_000_000;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub about: String,
    pub status: FindingStatus,
    pub message: String,
    /// What mends it.
    pub hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingStatus {
    Ok,
    Warning,
    Error,
}

impl FindingStatus {
    pub fn name(self) -> &'static str {
        match self {
            FindingStatus::Ok => "ok",
            FindingStatus::Warning => "warning",
            FindingStatus::Error => "error",
        }
    }
}

/// Looks at every hook; nothing is run.
pub fn examine(hooks: &Registry, rules: &Rules, runner: &Runner) -> Vec<Finding> {
    let mut findings = vec![about_policy(&rules.policy)];
    if rules.is_limited {
        findings.push(Finding {
            about: "limits".to_owned(),
            status: FindingStatus::Warning,
            message: format!("the project asks for more than you allow; it has {}", rules.limits),
            hint: Some("only your own configuration widens limits, within the policy".to_owned()),
        });
    }
    for hook in hooks.list() {
        let before = findings.len();
        let mut found = |status, message: String, hint: &str| {
            let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
            findings.push(Finding { about: hook.name.clone(), status, message, hint });
        };
        look_at(hook, runner, &mut found);
        if findings.len() == before {
            let (about, message) = (hook.name.clone(), "nothing stands out".to_owned());
            findings.push(Finding { about, status: FindingStatus::Ok, message, hint: None });
        }
    }
    if hooks.list().iter().any(|hook| hook.options.sandbox.is_some()) {
        let (about, message) = ("sandbox".to_owned(), Support::of_this_system().to_string());
        findings.push(Finding { about, status: FindingStatus::Ok, message, hint: None });
    }
    if hooks.list().iter().any(|hook| matches!(hook.handler, Handler::Command(_))) {
        let (about, message) = ("cgroup".to_owned(), cgroup_in_words());
        findings.push(Finding { about, status: FindingStatus::Ok, message, hint: None });
    }
    findings
}

/// What holds above everything, in a line.
pub fn about_policy(policy: &Policies) -> Finding {
    let files: Vec<String> =
        policy.list().iter().map(|policy| policy.path.display().to_string()).collect();
    let (message, hint) = match policy.is_none() {
        true => ("there is none".to_owned(), None),
        false => {
            let count = policy.lines().len();
            let message = format!("{count} rules of {} hold", files.join(" and "));
            (message, Some("hookloop policy".to_owned()))
        }
    };
    Finding { about: "policy".to_owned(), status: FindingStatus::Ok, message, hint }
}

/// Looks at the agents, and asks those that can be started for their versions.
pub fn examine_agents(rules: &Rules, runner: &Runner) -> Vec<Finding> {
    let ground = runner.ground();
    let examine = |name: String| {
        let about = format!("agent {name}");
        match repository::fit(rules, &name, &Wanted::default(), ground) {
            Ok(fit) => {
                let version = repository::version(&fit.settings, runner);
                let version = version.unwrap_or_else(|| "it does not tell its version".to_owned());
                let message = format!("{version}; it may {}", fit.settings.powers());
                let (status, hint) = match fit.ignored.as_slice() {
                    [] => (FindingStatus::Ok, None),
                    files => {
                        let files = files.join(", ");
                        let hint = format!("hookloop agents trust, for it to heed {files}");
                        (FindingStatus::Warning, Some(hint))
                    }
                };
                Finding { about, status, message, hint }
            }
            Err(error) => {
                let hint = error.hint();
                Finding { about, status: FindingStatus::Error, message: error.to_string(), hint }
            }
        }
    };
    repository::present(rules, ground).into_iter().map(examine).collect()
}

fn cgroup_in_words() -> String {
    match cgroup_home() {
        Some(home) => format!("hooks' processes are in one of their own, in {}", home.display()),
        None => "none is delegated to you; hooks' processes are found without".to_owned(),
    }
}

fn look_at(hook: &Hook, runner: &Runner, found: &mut dyn FnMut(FindingStatus, String, &str)) {
    use FindingStatus::{Error, Warning};
    let is_gate = hook.points.iter().any(|point| point.kind() == Kind::Gate);
    match runner.standing(hook) {
        Standing::Own | Standing::Trusted => {}
        Standing::Untrusted => {
            found(
                Error,
                "it is not trusted, so it does not run".to_owned(),
                "hookloop hooks trust",
            );
        }
        Standing::Modified => {
            let message = "it changed since it was trusted, so it does not run".to_owned();
            found(Error, message, "hookloop hooks trust");
        }
    }
    if let Some(ms) = hook.options.timeout_ms
        && ms >= SUSPICIOUS_TIMEOUT_MS
    {
        let meant = Length { ms: ms / 1_000 };
        let message = format!("its timeout is {}; milliseconds were meant?", Length { ms });
        found(Warning, message, &format!("write `timeout: {meant}`"));
    }
    if let Some(when) = &hook.options.when {
        for point in hook.points.iter().filter(|point| can_not_hold(when, point)) {
            let message = format!("its condition can't be true at `{point}`: {when}");
            found(Warning, message, "mend `when`, or remove the hook");
        }
    }
    let Handler::Command(text) = &hook.handler else { return };
    let texts = texts(runner.root(), hook);
    if is_gate && hook.options.timeout_ms.is_none() {
        let default = Length { ms: hook.options.timeout_at(Kind::Gate) };
        let message = format!("a gate without a timeout: it has {default}");
        found(Warning, message, "write `timeout:` with what it should take at most");
    }
    if let Some(missing) = runner.missing_program(hook) {
        let hint = format!("install `{missing}`, or mend the command");
        found(Error, format!("there is no program `{missing}`"), &hint);
    }
    if is_gate && hook.options.on_failure == OnFailure::Closed && says_no_with_1(&texts) {
        let message = "it says no with exit code 1, which means that the hook failed".to_owned();
        found(Warning, message, "exit 2 blocks with feedback; or write `on_failure: open`");
    }
    if has_chatter(&texts) {
        let message = "it prints text beside its JSON answer, which is then no answer".to_owned();
        found(Warning, message, "print the text to standard error: `echo … >&2`");
    }
    if let (Some(_), Some(gap)) = (&hook.options.sandbox, Support::of_this_system().gap()) {
        let message = format!("its sandbox can't be enforced, so it is not run: {gap}");
        found(
            Error,
            message,
            "run it on another system, or take `sandbox:` out and trust it again",
        );
    }
    for name in undeclared(text, hook) {
        let message = format!("its command uses ${name}, which it does not have");
        found(Warning, message, &format!("write `env: [{name}]`"));
    }
    for point in &hook.points {
        let line = text.compile(point.variables());
        let free_text = ["task_content", "error", "result", "reason"];
        let unguarded = line.map(|line| line.unguarded()).unwrap_or_default();
        for name in unguarded.into_iter().filter(|name| free_text.contains(name)) {
            let message = format!("{{{{{name}}}}} may begin with `-` and be taken as an option");
            found(Warning, message, "put `--` before it, if the program knows that");
        }
    }
}

/// Whether a condition says no whatever happens.
fn can_not_hold(when: &str, point: &Point) -> bool {
    match Condition::compile(when, point) {
        Ok(condition) => condition.always(point) == Some(false),
        Err(_) => true,
    }
}

/// A hook's command for a shell, and the scripts of the project that it names.
fn texts(root: &Path, hook: &Hook) -> Vec<String> {
    let Ok(seen) = trust::Seen::look(root, hook) else { return Vec::new() };
    let line = match &hook.handler {
        Handler::Command(CommandText::Shell(line)) => Some(line.clone()),
        _ => None,
    };
    let scripts = seen.bytes.into_values();
    line.into_iter().chain(scripts.filter_map(|bytes| String::from_utf8(bytes).ok())).collect()
}

/// Whether it ends with 1 and never with 2.
fn says_no_with_1(texts: &[String]) -> bool {
    let any = |code: &str| texts.iter().any(|text| text.contains(code));
    any("exit 1") && !any("exit 2")
}

/// Whether a shell script prints an answer and, on another line, something else to the same place.
fn has_chatter(texts: &[String]) -> bool {
    let prints = |line: &str| {
        ["echo ", "printf "].iter().any(|word| {
            line.starts_with(word)
                || line.contains(&format!("; {word}"))
                || line.contains(&format!("& {word}"))
        })
    };
    let answers = |line: &str| {
        ["decision", "hookSpecificOutput", "\"continue\"", "\"hookloop\""]
            .iter()
            .any(|word| line.contains(word))
    };
    let is_plain = |line: &str| prints(line) && !answers(line) && !line.contains(['>', '|']);
    texts.iter().any(|text| {
        let lines = || text.lines().map(str::trim);
        lines().any(answers) && lines().any(is_plain)
    })
}

/// Variables in a shell command that are neither set there nor declared.
fn undeclared(text: &CommandText, hook: &Hook) -> Vec<String> {
    let CommandText::Shell(line) = text else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for part in line.split('$').skip(1) {
        let part = part.strip_prefix('{').unwrap_or(part);
        let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        let name: String = part.chars().take_while(fits).collect();
        let is_name = name.len() > 1 && name.chars().all(|c| !c.is_ascii_lowercase());
        let is_set = line.contains(&format!("{name}="));
        let is_declared = hook.options.env.iter().map(EnvEntry::name).any(|known| known == name);
        let is_ours = name.starts_with("HOOKLOOP_") || name == "CLAUDE_PROJECT_DIR";
        if is_name
            && !is_set
            && !is_declared
            && !is_ours
            && !BASE.contains(&name.as_str())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// Whether there is a program of that name on `path`.
pub(crate) fn is_on_path(name: &str, path: &std::ffi::OsStr) -> bool {
    let is_program = |file: std::path::PathBuf| {
        std::fs::metadata(file)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).any(|directory| is_program(directory.join(name)))
}
