//! The file that `hookloop init` writes: short, with further settings as comments.

use hookloop_core::environment::EnvironmentGap;
use hookloop_fleet::survey::MissingProgram;
use hookloop_fleet::survey::room_search::RoomFinding;
use hookloop_fleet::survey::trial::{GateTrial, SETUP_TIMEOUT, TRIED_WITHIN};

use super::{InitPlan, SetupEntry, TriedGate};
use crate::sanitize::plain;

const HEAD: &str =
    "# Configuration of hookloop. `hookloop schema` prints its JSON Schema, for editors.
version: 1
# Name of the project in a shared store.
project: {name}
";

const HOOKS: &str = "
hooks:
";

const SETUP: &str = "  # Installs packages in the clean room, again when these files change.
  setup:
";

const GATES: &str = "  # An agent is done when these gates pass, not when it reports so.
  stop:
";

/// The example for a project without a gate.
const NO_GATES: &str = "
# No tests were found. An agent is done when its gates pass:
# hooks:
#   stop:
#     - name: tests
#       command: make test
#       timeout: 10m
";

const ALLOWED: &str = "
agents:
  claude:
    # Claude Code may change files and run only these commands.
    allowed_tools:
";

const MORE: &str = "
# Further settings:
# limits:
#   max_iterations: 30    # of one session
#   max_cost: 5           # dollars of one session, as reported by the agent
# loop:
#   agent: {agent}         # agent if --agent is not given
# task_types:
#   docs:
#     hooks:
#       stop: []          # tasks of this type need no gate
";

/// The agent of the example, where none is installed.
const SOME_AGENT: &str = "claude";

pub(super) fn text(plan: &InitPlan) -> String {
    let mut text = HEAD.replace("{name}", &plan.name);
    if plan.gates.iter().any(TriedGate::is_written) {
        text.push_str(HOOKS);
        setups(&mut text, &plan.setups);
        text.push_str(GATES);
        plan.gates
            .iter()
            .filter(|tried| tried.is_written())
            .for_each(|tried| gate(&mut text, tried, plan.protects(tried), "    "));
    } else {
        text.push_str(NO_GATES)
    }
    for tried in plan.gates.iter().filter(|tried| !tried.is_written()) {
        text.push_str(&format!("    # Left out: {}\n", comment(&why_not(tried))));
        gate(&mut text, tried, false, "    # ");
    }
    if !plan.survey.ci.is_empty() {
        text.push_str("\n# CI runs these, too:\n");
        for step in &plan.survey.ci {
            let place = step.cwd.as_ref().map_or(String::new(), |cwd| format!("in {cwd}, "));
            let place = comment(&format!("{place}{}", step.file));
            text.push_str(&format!("#   {}  ({place})\n", comment(&step.command)));
        }
    }
    if !plan.survey.tools.is_empty() {
        text.push_str("\n# Configuration of other tools, and the commands that import it:\n");
        for tool in &plan.survey.tools {
            let command = tool.command.as_deref().unwrap_or("by hand");
            text.push_str(&format!("#   {}: {}\n", comment(tool.what), comment(command)));
        }
    }
    if !plan.allowed.is_empty() {
        text.push_str(ALLOWED);
        for rule in &plan.allowed {
            text.push_str(&format!("      - {}\n", serde_json::Value::from(rule.as_str())));
        }
    }
    let agent = plan.agents.first().map_or(SOME_AGENT, String::as_str);
    text.push_str(&MORE.replace("{agent}", agent));
    text
}

/// A file with every gate that can be tried, each with the time that it has for that.
///
/// The gate with the name in `copied` gets these files in its room.
pub(super) fn for_trial(
    plan: &InitPlan,
    setup: &[SetupEntry],
    copied: Option<(&str, &[String])>,
) -> String {
    let mut text = HEAD.replace("{name}", &plan.name) + HOOKS;
    setups(&mut text, setup);
    text.push_str(GATES);
    for TriedGate { gate, .. } in plan.gates.iter().filter(|tried| tried.gate.missing.is_none()) {
        entry(&mut text, gate, &format!("{}s", TRIED_WITHIN.as_secs()), "    ");
        if let Some((_, files)) = copied.filter(|(name, _)| *name == gate.name) {
            copies(&mut text, files, "    ");
        }
    }
    text
}

fn setups(text: &mut String, setups: &[SetupEntry]) {
    if setups.is_empty() {
        return;
    }
    text.push_str(SETUP);
    for SetupEntry { name, setup, env } in setups {
        text.push_str(&format!("    - name: {name}\n      command: {}\n", setup.command));
        if !setup.directory.is_empty() {
            text.push_str(&format!("      cwd: {}\n", quoted(&setup.directory)));
        }
        if !setup.inputs.is_empty() {
            text.push_str(&format!("      inputs: {}\n", listed(&setup.inputs)));
        }
        text.push_str(&format!("      timeout: {SETUP_TIMEOUT}\n"));
        if !env.is_empty() {
            text.push_str(&format!("      env: [{}]\n", env.join(", ")));
        }
    }
}

fn copies(text: &mut String, files: &[String], indent: &str) {
    if !files.is_empty() {
        text.push_str(&format!("{indent}  room: {{copy: {}}}\n", listed(files)));
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns paths as a YAML list. Those with unusual characters are quoted.
fn listed(paths: &[String]) -> String {
    let is_plain = |path: &str| {
        path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.')
            && path.contains(['.', '/'])
            && path.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c))
            // YAML reads these as numbers.
            && ![".inf", ".nan"].contains(&path.to_ascii_lowercase().as_str())
    };
    let path = |path: &String| if is_plain(path) { path.clone() } else { quoted(path) };
    format!("[{}]", paths.iter().map(path).collect::<Vec<_>>().join(", "))
}

fn gate(text: &mut String, tried: &TriedGate, has_base_tests: bool, indent: &str) {
    if let GateTrial::Failed { why, .. } = &tried.trial
        && tried.is_written()
    {
        text.push_str(&format!("{indent}# Fails now ({}): work for an agent.\n", comment(why)));
    }
    if let GateTrial::NotReady { gap, .. } = &tried.trial
        && tried.is_written()
    {
        text.push_str(&format!("{indent}# {}\n", comment(&not_ready(gap, &tried.gate))));
    }
    if let RoomFinding::Here { reason, .. } = &tried.room {
        let verdict = match tried.trial {
            GateTrial::Passed { .. } => "Passes here and fails in the clean room",
            _ => "Can't run in the clean room",
        };
        let reason = comment(reason);
        let name = &tried.gate.name;
        text.push_str(&format!("{indent}# {verdict} ({reason}).\n"));
        text.push_str(&format!(
            "{indent}# To find out why: `room: clean`, then `hookloop rooms shell {name}`.\n"
        ));
    }
    entry(text, &tried.gate, tried.timeout(), indent);
    match &tried.room {
        RoomFinding::NotTried => {}
        RoomFinding::Clean { needs, .. } => copies(text, &needs.copy, indent),
        RoomFinding::Here { .. } => text.push_str(&format!("{indent}  room: here\n")),
    }
    if has_base_tests {
        text.push_str(&format!(
            "{indent}  base_tests: true  # also runs the tests as they were before the work\n"
        ));
        if matches!(tried.trial, GateTrial::Failed { .. }) {
            text.push_str(&format!(
                "{indent}  # Accept work that leaves failing tests as they are: `base_tests: {{known_failures: allow}}`\n"
            ));
        }
    }
}

/// The verdict about a gate whose environment is not prepared.
pub(super) fn not_ready(gap: &EnvironmentGap, gate: &super::GateProposal) -> String {
    let typed = |setup: &String| format!(": type `{}`", in_directory(setup, gate));
    let setup = gap.setup.as_ref().map_or(String::new(), typed);
    format!("environment not ready: {}{setup}", gap.cause)
}

pub(super) fn program_missing(missing: &MissingProgram) -> String {
    let setup = missing.setup.as_ref().map_or(String::new(), |setup| format!(": type `{setup}`"));
    format!("`{}` is not installed{setup}", missing.name)
}

/// A command as it is typed in the project's root to run in the directory of a gate.
pub(super) fn in_directory(command: &str, gate: &super::GateProposal) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._/@+-".contains(c);
    match &gate.cwd {
        None => command.to_owned(),
        Some(cwd) if cwd.chars().all(is_word) => format!("(cd {cwd} && {command})"),
        Some(cwd) => format!("(cd '{cwd}' && {command})"),
    }
}

fn entry(text: &mut String, gate: &super::GateProposal, timeout: &str, indent: &str) {
    text.push_str(&format!("{indent}- name: {}\n", gate.name));
    text.push_str(&format!("{indent}  command: {}\n", gate.command));
    if let Some(cwd) = &gate.cwd {
        text.push_str(&format!("{indent}  cwd: {}\n", quoted(cwd)));
    }
    text.push_str(&format!("{indent}  timeout: {timeout}\n"));
    if !gate.env.is_empty() {
        text.push_str(&format!("{indent}  env: [{}]\n", gate.env.join(", ")));
    }
}

/// Why a command is a comment and not a gate.
pub(super) fn why_not(tried: &TriedGate) -> String {
    match (&tried.trial, &tried.gate.missing) {
        (_, Some(missing)) => program_missing(missing),
        (GateTrial::NotReady { gap, .. }, _) => not_ready(gap, &tried.gate),
        (GateTrial::Absent { why, .. }, _) => why.clone(),
        (GateTrial::Failed { why, .. }, _) => format!("fails now ({why})"),
        (GateTrial::TimedOut { .. }, _) => {
            format!("its trial took longer than {} minutes", TRIED_WITHIN.as_secs() / 60)
        }
        (GateTrial::NotTried | GateTrial::Passed { .. }, None) => "not tried".to_owned(),
    }
}

/// Returns text of the repository for one line of a comment.
fn comment(text: &str) -> String {
    plain(text).into_owned()
}

#[cfg(test)]
mod tests {
    use hookloop_fleet::survey::room_search::RoomNeeds;
    use hookloop_fleet::survey::{CiStep, FoundTool, GateKind, GateProposal, ProjectSurvey, trial};
    use hookloop_hooks::room_setup::RoomSetup;

    use super::*;

    fn tried(kind: GateKind, trial: GateTrial, missing: Option<&str>) -> TriedGate {
        let name = "tests".to_owned();
        let command = "cargo test -- --quiet".to_owned();
        let from = "Cargo.toml".to_owned();
        let env = vec!["CARGO_HOME".to_owned()];
        let missing = missing.map(|name| MissingProgram { name: name.to_owned(), setup: None });
        let cwd = Some("sub dir".to_owned());
        let room = RoomFinding::NotTried;
        let gate = GateProposal { name, kind, command, from, env, cwd, missing };
        TriedGate { gate, trial, room }
    }

    fn plan(gates: Vec<TriedGate>) -> InitPlan {
        let hostile = "x\nhooks: {stop: [{command: evil}]}";
        let file = hostile.to_owned();
        let command = hostile.to_owned();
        let cwd = Some(hostile.to_owned());
        let step = CiStep { file, command, cwd, is_test: false };
        let tool = FoundTool {
            file: hostile.to_owned(),
            what: "hooks",
            command: Some(hostile.to_owned()),
        };
        let survey =
            ProjectSurvey { ci: vec![step], tools: vec![tool], ..ProjectSurvey::default() };
        let agents = Vec::new();
        let has_git = true;
        let allowed = Vec::new();
        let unready = None;
        let name = "p".to_owned();
        let directories = Vec::new();
        let setups = Vec::new();
        InitPlan { name, survey, directories, gates, setups, agents, unready, has_git, allowed }
    }

    fn all() -> Vec<GateTrial> {
        let text = || "a\nb: c".to_owned();
        vec![
            GateTrial::NotTried,
            GateTrial::Passed { ms: 200_000 },
            GateTrial::Failed { ms: 1, why: text(), output: text() },
            GateTrial::Absent { why: text(), output: text() },
            GateTrial::NotReady {
                gap: EnvironmentGap { cause: text(), setup: Some(text()) },
                output: text(),
            },
            GateTrial::TimedOut { output: text() },
        ]
    }

    /// For any result of a gate and any name of the repository, the file is valid and has only the expected keys.
    #[test]
    fn every_generated_file_is_valid_and_has_the_chosen_gates() {
        for kind in [GateKind::Tests, GateKind::Check] {
            for trial in all() {
                let plan = plan(vec![tried(kind, trial.clone(), None)]);
                let text = text(&plan);
                trial::check(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(
                    text.matches("\n      command:").count(),
                    usize::from(plan.gates[0].is_written()),
                    "{text}"
                );
                let is_protected = kind == GateKind::Tests && plan.gates[0].is_written();
                let protected = text.matches("\n      base_tests: true").count();
                assert_eq!(protected, usize::from(is_protected), "{text}");
                assert!(!text.contains("\nhooks: {"), "{text}");
                assert!(text.lines().count() < 50, "{text}");
            }
        }
        let mut allowing = plan(vec![tried(GateKind::Tests, GateTrial::Passed { ms: 1 }, None)]);
        allowing.allowed = vec!["Bash(cargo test -- --quiet)".to_owned()];
        let allowing = super::text(&allowing);
        trial::check(&allowing).unwrap_or_else(|error| panic!("{error}\n{allowing}"));
        assert!(allowing.contains("- \"Bash(cargo test -- --quiet)\"\n"), "{allowing}");
        let missing = plan(vec![tried(GateKind::Tests, GateTrial::NotTried, Some("cargo"))]);
        let text = text(&missing);
        assert!(text.contains("# Left out: `cargo` is not installed"), "{text}");
    }

    /// For any room of a gate and any name of a file, the file is valid and has only the expected keys.
    #[test]
    fn setups_and_rooms_of_gates_are_written_as_they_were_tried() {
        let hostile = "a\"b: [x]\n*y".to_owned();
        let trial = || GateTrial::Passed { ms: 1 };
        let needs = RoomNeeds {
            setups: Vec::new(),
            copy: vec![".env.test".to_owned(), ".nan".to_owned(), hostile.clone()],
        };
        let rooms = [
            RoomFinding::Clean { trial: trial(), needs },
            RoomFinding::Here { trial: trial(), reason: hostile.clone() },
        ];
        for room in rooms {
            let is_here = matches!(room, RoomFinding::Here { .. });
            let mut plan = plan(vec![TriedGate { room, ..tried(GateKind::Tests, trial(), None) }]);
            plan.setups = vec![SetupEntry {
                name: "packages".to_owned(),
                setup: RoomSetup {
                    command:
                        "python3 -m venv .venv && PATH=.venv/bin:$PATH pip install -e '.[test]'"
                            .to_owned(),
                    directory: "sub dir".to_owned(),
                    inputs: vec![
                        "package.json".to_owned(),
                        "**/a.json".to_owned(),
                        hostile.clone(),
                    ],
                },
                env: vec!["UV_CACHE_DIR".to_owned()],
            }];
            let text = text(&plan);
            trial::check(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(text.contains("\n      room: here\n"), is_here, "{text}");
            assert_eq!(
                text.contains("      room: {copy: [.env.test, \".nan\", "),
                !is_here,
                "{text}"
            );
            assert!(text.contains("      inputs: [package.json, \"**/a.json\", "), "{text}");
            assert!(text.contains("      timeout: 10m\n      env: [UV_CACHE_DIR]\n"), "{text}");
            let (setup, stop) = (text.find("  setup:\n"), text.find("  stop:\n"));
            assert!(setup.is_some() && setup < stop, "{text}");
        }
    }

    /// Settings in comments are valid when they are uncommented.
    #[test]
    fn commented_examples_are_valid_when_uncommented() {
        let plan = plan(Vec::new());
        let text = text(&plan);
        let uncomment = |part: &str| -> String {
            let lines = part.lines().skip(1).map(|line| line.strip_prefix("# ").unwrap_or(line));
            lines.map(|line| format!("{line}\n")).collect()
        };
        let (_, gates) = text.split_once("# No tests were found.").unwrap();
        let gates = uncomment(gates.split("\n\n").next().unwrap());
        let (_, more) = text.split_once("# Further settings:").unwrap();
        let file = format!("version: 1\n{gates}{}", uncomment(more));
        trial::check(&file).unwrap_or_else(|error| panic!("{error}\n{file}"));
        assert!(file.contains("make test") && file.contains("max_iterations: 30"), "{file}");
    }
}
