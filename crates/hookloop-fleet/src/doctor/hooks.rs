//! Finds likely problems of a project's hooks without running them.

use std::path::{Path, PathBuf};

use hookloop_config::condition::Condition;
use hookloop_config::effective::{EffectiveConfig, MissingAgent};
use hookloop_config::policy::PolicySet;
use hookloop_config::variables::BASE;
use hookloop_core::environment::EnvironmentGap;
use hookloop_core::hook::{CommandText, Hook, HookHandler, HookRegistry};
use hookloop_core::hook_vars::HookVariable;
use hookloop_core::options::{EnvEntry, Length, OnFailure};
use hookloop_core::point::{Point, PointKind};
use hookloop_engine::error::EngineError;
use hookloop_engine::gate_agreement;
use hookloop_engine::project::Project;
use hookloop_hooks::environment;
use hookloop_hooks::runner::HookRunner;
use hookloop_hooks::scripts::NamedFiles;
use hookloop_hooks::trust::{self, HookStanding};
use hookloop_process::{SandboxSupport, cgroup_home};

use super::{Finding, FindingGroup, FindingStatus, Remedy, quoted};

/// Timeouts of this length or more were probably meant in milliseconds.
const SUSPICIOUS_TIMEOUT_MS: u64 = 1_000_000;

/// Checks every hook without running it.
pub fn examine(hooks: &HookRegistry, rules: &EffectiveConfig, runner: &HookRunner) -> Vec<Finding> {
    let mut findings = Vec::new();
    if rules.is_limited {
        let message = format!("the project asks for more than you allow; it has {}", rules.limits);
        let remedy =
            Remedy::Do("only your own configuration widens limits, within the policy".to_owned());
        findings.push(FindingGroup::Hooks.warning("limits", message).with_remedy(remedy));
    }
    for hook in hooks.list() {
        let before = findings.len();
        let mut found = |status, message: String, remedy: Remedy| {
            findings
                .push(FindingGroup::Hooks.finding(status, &hook.name, message).with_remedy(remedy));
        };
        look_at(hook, runner, &mut found);
        if findings.len() == before {
            findings.push(FindingGroup::Hooks.ok(&hook.name, "no problems"));
        }
    }
    let gates = hooks.list().iter().filter(|hook| hook.points.contains(&Point::Stop)).count();
    if gates == 0 {
        let message = "there is no `stop` gate: an agent is done when it says so";
        let remedy = Remedy::Do("write one under `hooks: {stop: […]}` in hookloop.yaml".to_owned());
        findings.push(FindingGroup::Hooks.warning("gates", message).with_remedy(remedy));
    }
    findings
}

/// Finds agents that task types name and no configuration defines.
///
/// No worker can claim tasks of such a type.
pub fn examine_types(rules: &EffectiveConfig) -> Vec<Finding> {
    let finding = |missing: MissingAgent| {
        let MissingAgent { task_type, role, agent } = &missing;
        let message = format!("no agent `{agent}` is defined, which the type names as {role}");
        let about = format!("type {task_type}");
        FindingGroup::Agents.warning(&about, message).with_remedy(Remedy::Do(missing.remedy()))
    };
    rules.missing_agents().into_iter().map(finding).collect()
}

/// Checks whether gates were removed or weakened since a person trusted them. Writes nothing.
pub fn examine_gates(project: &Project) -> Result<Option<Finding>, EngineError> {
    let Some(runner) = project.runner() else { return Ok(None) };
    let changes = gate_agreement::weakened(project, runner)?;
    if changes.is_empty() {
        return Ok(None);
    }
    let finding = FindingGroup::Hooks.error("gates", gate_agreement::weakened_words(&changes));
    Ok(Some(finding.typed("hookloop hooks trust")))
}

/// Reports the confinement of hook processes that this system supports.
pub fn examine_keeping() -> Vec<Finding> {
    let support = SandboxSupport::of_this_system();
    let sandbox = match support.gap() {
        None => FindingGroup::Machine.ok("sandbox", support.to_string()),
        // Only hooks with `sandbox:` need it, and their own findings report it.
        Some(_) => {
            FindingGroup::Machine.ok("sandbox", format!("hooks with `sandbox:` are {support}"))
        }
    };
    vec![sandbox, FindingGroup::Machine.ok("cgroup", cgroup_in_words())]
}

/// Summarizes the policies in one line.
pub fn about_policy(policy: &PolicySet) -> Finding {
    let files: Vec<String> =
        policy.list().iter().map(|policy| policy.path.display().to_string()).collect();
    if policy.is_none() {
        return FindingGroup::Project.ok("policy", "there is none");
    }
    let count = policy.lines().len();
    FindingGroup::Project
        .ok("policy", format!("{count} rules of {} hold (hookloop policy)", files.join(" and ")))
}

fn cgroup_in_words() -> String {
    match cgroup_home() {
        Some(home) => format!("hooks' processes are in one of their own, in {}", home.display()),
        None => "none is delegated to you; hooks' processes are found without".to_owned(),
    }
}

fn look_at(hook: &Hook, runner: &HookRunner, found: &mut dyn FnMut(FindingStatus, String, Remedy)) {
    use FindingStatus::{Error, Warning};
    match runner.standing(hook) {
        HookStanding::Own | HookStanding::Trusted => {}
        HookStanding::Untrusted => {
            found(
                Error,
                "it is not trusted, so it does not run".to_owned(),
                typed("hookloop hooks trust"),
            );
        }
        HookStanding::Modified => {
            let message = "it changed since it was trusted, so it does not run".to_owned();
            found(Error, message, typed("hookloop hooks trust"));
        }
    }
    if let Some(ms) = hook.options.timeout_ms
        && ms >= SUSPICIOUS_TIMEOUT_MS
    {
        let meant = Length { ms: ms / 1_000 };
        let message = format!("its timeout is {}; milliseconds were meant?", Length { ms });
        found(Warning, message, Remedy::Do(format!("write `timeout: {meant}`")));
    }
    if let Some(when) = &hook.options.when {
        for point in hook.points.iter().filter(|point| can_not_hold(when, point)) {
            let message = format!("its condition can't be true at `{point}`: {when}");
            found(Warning, message, done("fix `when`, or remove the hook"));
        }
    }
    if let HookHandler::Command(text) = &hook.handler {
        look_at_command(hook, text, runner, found);
    }
}

/// Returns whether a variable's value is text that a person or an agent wrote.
fn is_free_text(name: &str) -> bool {
    HookVariable::ALL.iter().any(|variable| variable.name() == name && variable.is_free_text())
}

/// Reports the problems of a hook that runs a command.
fn look_at_command(
    hook: &Hook,
    text: &CommandText,
    runner: &HookRunner,
    found: &mut dyn FnMut(FindingStatus, String, Remedy),
) {
    use FindingStatus::{Error, Warning};
    let is_gate = hook.points.iter().any(|point| point.kind() == PointKind::Gate);
    let texts = texts(runner.root(), hook);
    if is_gate && hook.options.timeout_ms.is_none() {
        let default = Length { ms: hook.options.timeout_at(PointKind::Gate) };
        let message = format!("a gate without a timeout: it has {default}");
        found(Warning, message, done("set `timeout:` to the longest time that it may take"));
    }
    if let Some(script) = NamedFiles::look(runner.root(), hook).absent {
        let message = format!("it runs `{script}`, which does not exist");
        found(Error, message, done("create the file, or change the command in hookloop.yaml"));
    } else if let Some(missing) = runner.missing_program(hook) {
        let facts = environment::facts(&directory_of(hook, runner));
        let remedy = match EnvironmentGap::of_program(&missing, &facts).setup {
            Some(setup) => {
                Remedy::Do(format!("type `{}`, or fix the command", setup_of(hook, &setup)))
            }
            None => Remedy::Do(format!("install `{missing}`, or fix the command")),
        };
        found(Error, format!("there is no program `{missing}`"), remedy);
    } else if is_gate && let Some(gap) = packages_gap(text, &directory_of(hook, runner)) {
        let setup = gap.setup.unwrap_or_else(|| "npm install".to_owned());
        let message = format!("the environment is not ready: {}", gap.cause);
        found(Error, message, Remedy::Do(format!("type `{}`", setup_of(hook, &setup))));
    }
    if is_gate && hook.options.on_failure == OnFailure::Closed && says_no_with_1(&texts) {
        let message = "it says no with exit code 1, which means that the hook failed".to_owned();
        found(Warning, message, done("exit 2 blocks with feedback; or write `on_failure: open`"));
    }
    if has_chatter(&texts) {
        let message = "it prints text beside its JSON answer, which is then no answer".to_owned();
        found(Warning, message, done("print the text to standard error: `echo … >&2`"));
    }
    if let (Some(_), Some(gap)) = (&hook.options.sandbox, SandboxSupport::of_this_system().gap()) {
        let message = format!("its sandbox can't be enforced, so it is not run: {gap}");
        found(
            Error,
            message,
            done("run it on another system, or take `sandbox:` out and trust it again"),
        );
    }
    for name in undeclared(text, hook) {
        let message = format!("its command uses ${name}, which it does not have");
        found(Warning, message, Remedy::Do(format!("write `env: [{name}]`")));
    }
    for point in &hook.points {
        let line = text.compile(&point.variables());
        let unguarded = line.map(|line| line.unguarded()).unwrap_or_default();
        for name in unguarded.into_iter().filter(|name| is_free_text(name)) {
            let message = format!("{{{{{name}}}}} may begin with `-` and be taken as an option");
            found(Warning, message, done("put `--` before it, if the program knows that"));
        }
    }
}

/// Returns the directory in which a hook runs.
fn directory_of(hook: &Hook, runner: &HookRunner) -> PathBuf {
    runner.root().join(hook.options.cwd.as_deref().unwrap_or(""))
}

/// Returns the setup command for the project's directory.
fn setup_of(hook: &Hook, setup: &str) -> String {
    match hook.options.cwd.as_deref().map(Path::new).filter(|cwd| !cwd.as_os_str().is_empty()) {
        Some(cwd) => format!("cd {} && {setup}", quoted(cwd)),
        None => setup.to_owned(),
    }
}

/// Returns the gap if a script of package.json needs packages and none is installed.
fn packages_gap(text: &CommandText, directory: &Path) -> Option<EnvironmentGap> {
    const MANAGERS: [&str; 5] = ["npm", "npx", "pnpm", "yarn", "bun"];
    let program = match text {
        CommandText::Shell(line) => line.split_whitespace().next(),
        CommandText::Exec(args) => args.first().map(String::as_str),
    };
    program.filter(|program| MANAGERS.contains(program))?;
    let facts = environment::facts(directory);
    // Packages of a workspace are installed at its root, and Yarn can store them elsewhere.
    let is_installed = directory
        .ancestors()
        .any(|above| above.join("node_modules").is_dir() || above.join(".pnp.cjs").exists());
    (!is_installed && !facts.node_dependencies.is_empty()).then(|| EnvironmentGap {
        cause: "the packages of package.json are not installed".to_owned(),
        setup: facts.node_setup,
    })
}

fn typed(command: &str) -> Remedy {
    Remedy::Type(command.to_owned())
}

fn done(what: &str) -> Remedy {
    Remedy::Do(what.to_owned())
}

/// Whether a condition is always false at a hook point.
fn can_not_hold(when: &str, point: &Point) -> bool {
    match Condition::compile(when, point) {
        Ok(condition) => condition.always(point) == Some(false),
        Err(_) => true,
    }
}

/// Returns the shell command of a hook, and the project scripts that it names.
fn texts(root: &Path, hook: &Hook) -> Vec<String> {
    let Ok(seen) = trust::SeenHook::look(root, hook) else { return Vec::new() };
    let line = match &hook.handler {
        HookHandler::Command(CommandText::Shell(line)) => Some(line.clone()),
        _ => None,
    };
    let scripts = seen.bytes.into_values();
    line.into_iter().chain(scripts.filter_map(|bytes| String::from_utf8(bytes).ok())).collect()
}

/// Whether the scripts contain `exit 1` and no `exit 2`.
fn says_no_with_1(texts: &[String]) -> bool {
    let any = |code: &str| texts.iter().any(|text| text.contains(code));
    any("exit 1") && !any("exit 2")
}

/// Whether a script prints an answer and, on another line, other text to standard output.
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

/// Returns the variables of a shell command that are neither set there nor declared.
fn undeclared(text: &CommandText, hook: &Hook) -> Vec<String> {
    let CommandText::Shell(line) = text else { return Vec::new() };
    let is_declared =
        |name: &String| hook.options.env.iter().map(EnvEntry::name).any(|known| known == name);
    undeclared_in(line).into_iter().filter(|name| !is_declared(name)).collect()
}

/// Returns the user's variables in a shell command that a hook gets only if it declares them.
pub fn undeclared_in(line: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for part in line.split('$').skip(1) {
        let part = part.strip_prefix('{').unwrap_or(part);
        let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        let name: String = part.chars().take_while(fits).collect();
        let is_name = name.len() > 1
            && name.chars().all(|c| !c.is_ascii_lowercase())
            && !name.starts_with(|c: char| c.is_ascii_digit());
        let is_set = line.contains(&format!("{name}="));
        let is_ours = name.starts_with("HOOKLOOP_") || name == "CLAUDE_PROJECT_DIR";
        if is_name
            && !is_set
            && !is_ours
            && !BASE.contains(&name.as_str())
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}
