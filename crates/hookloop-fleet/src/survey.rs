//! Finds the tests and checks of a repository, its CI commands, and other tools' hooks and tasks.
//!
//! It only reads files, within the limits of [`test_detection`](hookloop_hooks::test_detection). A
//! file that cannot be read becomes one of [`ProjectSurvey::troubles`], and the search continues.
//!
//! - `checks`: formatters, linters and type checkers
//! - `ci`: commands of workflows
//! - `coverage`: projects in subdirectories, and root commands that test them, too
//! - [`room_search`]: the way in which a gate runs in a clean room
//! - `tools`: hooks and tasks of other tools
//! - [`trial`]: runs of the proposed gates

mod checks;
mod ci;
mod coverage;
pub mod room_search;
mod tools;
pub mod trial;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use coverage::{CoverageRun, ProjectTree};
use hookloop_core::environment::EnvironmentGap;
use hookloop_hooks::environment;
use hookloop_hooks::test_detection::reading::TestedProject;
use hookloop_hooks::test_detection::{NoTests, detect_with, directories, is_there};

pub use ci::CiStep;
pub use tools::FoundTool;

/// Largest number of proposed gates. With more, the user has to choose directories.
pub(crate) const GATES_MAX: usize = 24;
/// Longest part of a gate's name that stands for its directory, in characters.
const SLUG_MAX: usize = 60;
/// The runner of gates that come from a CI workflow.
const CI_RUNNER: &str = "ci";

/// The result of a survey.
#[derive(Clone, Debug, Default)]
pub struct ProjectSurvey {
    pub gates: Vec<GateProposal>,
    /// CI commands that no gate runs.
    pub ci: Vec<CiStep>,
    pub tools: Vec<FoundTool>,
    /// Files that could not be read, and other warnings.
    pub troubles: Vec<String>,
}

/// A command that could be a `stop` gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateProposal {
    pub name: String,
    pub kind: GateKind,
    /// A shell command line.
    pub command: String,
    /// The file that the command comes from.
    pub from: String,
    /// Variables that the gate needs and the user has set, in addition to those of every hook.
    pub env: Vec<String>,
    /// The directory of the gate, relative to the project's root. `None` is the root.
    pub cwd: Option<String>,
    /// The program that the gate needs and this machine lacks, if any.
    pub missing: Option<MissingProgram>,
}

/// A program that a gate needs and this machine does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    pub name: String,
    /// The command that installs it, if one is known.
    pub setup: Option<String>,
}

/// The meaning of a failing gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateKind {
    /// The work is not done. A gate that fails today is a reason to start an agent.
    Tests,
    /// The work is not tidy. A check that fails today is not the task of the next agent.
    Check,
}

/// The directory to survey, and the user's environment.
#[derive(Clone, Copy, Debug)]
pub struct SurveyGround<'a> {
    pub root: &'a Path,
    /// The search path of programs.
    pub path: &'a OsStr,
    /// Names of variables that the user has set.
    pub variables: &'a BTreeSet<String>,
}

/// Surveys the repository at `root`.
pub fn survey(ground: SurveyGround<'_>) -> ProjectSurvey {
    let mut found = ProjectSurvey::default();
    let project = match TestedProject::new(ground.root) {
        Ok(project) => project,
        Err(error) => {
            found.troubles.push(error.to_string());
            return found;
        }
    };
    let searched = directories::search(ground.root);
    found.troubles.extend(searched.notices);
    let mut tree = ProjectTree::new(ground.root, searched.paths);
    let all: Vec<String> = tree.directories().map(str::to_owned).collect();
    for directory in &all {
        found.look_at(&mut tree, directory, ground);
    }
    found.ci = ci::steps(ground.root, &mut found.troubles);
    found.take_from_ci(&tree, ground);
    found.tools = tools::all(&project, ground);
    found
}

/// A gate whose program has not been looked up yet.
struct ProposedGate<'a> {
    name: &'a str,
    kind: GateKind,
    command: String,
    program: &'a str,
    runner: &'static str,
    directory: &'a str,
    /// The file that contains the command, if it is not the usual file of the runner.
    from: Option<&'a str>,
}

impl ProjectSurvey {
    /// Returns the directories of all gates, in order. The root is `.`.
    pub fn directories(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for gate in &self.gates {
            let directory = gate.directory().to_owned();
            if !found.contains(&directory) {
                found.push(directory);
            }
        }
        found
    }

    /// Keeps the gates of these directories, at most [`GATES_MAX`], tests before checks.
    pub fn choose(&mut self, directories: &[String]) {
        self.gates.retain(|gate| directories.iter().any(|chosen| chosen == gate.directory()));
        let mut left_out: Vec<String> = Vec::new();
        while self.gates.len() > GATES_MAX {
            let last_check = self.gates.iter().rposition(|gate| gate.kind == GateKind::Check);
            let index = last_check.unwrap_or(self.gates.len() - 1);
            left_out.push(self.gates.remove(index).name);
        }
        if !left_out.is_empty() {
            left_out.reverse();
            self.troubles.push(format!(
                "more than {GATES_MAX} gates were found, and these are left out: {}; choose directories with `--only \
                 DIR`",
                left_out.join(", ")
            ));
        }
    }

    /// Adds the gates of one directory.
    fn look_at(&mut self, tree: &mut ProjectTree, directory: &str, ground: SurveyGround<'_>) {
        let path = tree.path(directory);
        let of_directory = SurveyGround { root: &path, ..ground };
        let Ok(project) = TestedProject::new(&path) else { return };
        let inherited = tree.inherited(directory);
        let at = |trouble: String| {
            if directory.is_empty() { trouble } else { format!("in `{directory}`: {trouble}") }
        };
        match detect_with(&path, ground.path, inherited) {
            Ok(tests) => {
                let mut own = Vec::new();
                for test in tests {
                    match tree.tests(directory, test.runner) {
                        CoverageRun::Own => own.push(test),
                        CoverageRun::Covered => tree.note_covered(directory),
                        CoverageRun::Refused(why) => self.troubles.push(why),
                    }
                }
                let is_only = own.len() == 1;
                for test in own {
                    tree.note(directory, test.runner);
                    let name =
                        if is_only { "tests".to_owned() } else { format!("tests-{}", test.runner) };
                    let (program, command) = checks::instead(&project, &test, of_directory);
                    self.add(
                        ground,
                        ProposedGate {
                            name: &name,
                            kind: GateKind::Tests,
                            command,
                            program: &program,
                            runner: test.runner,
                            directory,
                            from: None,
                        },
                    );
                }
            }
            Err(NoTests::NoneFound { .. }) => {}
            Err(error) => self.troubles.push(at(error.to_string())),
        }
        let mut troubles = Vec::new();
        for check in checks::all(&project, of_directory, inherited, &mut troubles) {
            if self.is_checked_above(tree, directory, &check) {
                continue;
            }
            let checks::FoundCheck { name, runner, argv, .. } = check;
            let Some(program) = argv.first() else { continue };
            self.add(
                ground,
                ProposedGate {
                    name,
                    kind: GateKind::Check,
                    command: argv.join(" "),
                    program,
                    runner,
                    directory,
                    from: None,
                },
            );
        }
        for trouble in troubles.into_iter().map(at) {
            if !self.troubles.contains(&trouble) {
                self.troubles.push(trouble);
            }
        }
    }

    /// Whether a command of a directory above also checks this one, or its tool refuses to run.
    fn is_checked_above(
        &self,
        tree: &ProjectTree,
        directory: &str,
        check: &checks::FoundCheck,
    ) -> bool {
        match (check.runner, check.script) {
            ("cargo" | "go", _) => tree.tests(directory, check.runner) != CoverageRun::Own,
            (_, Some(script)) => tree.script(directory, script),
            // These tools read all files below their working directory.
            _ => self.gates.iter().any(|gate| {
                let up = gate.cwd.as_deref().unwrap_or_default();
                let is_above = up.is_empty() || directory.starts_with(&format!("{up}/"));
                let is_same = gate.kind == GateKind::Check && gate.command == check.argv.join(" ");
                is_above && up != directory && is_same
            }),
        }
    }

    /// Turns CI tests into gates where no runner was recognised. Drops CI commands that gates run.
    fn take_from_ci(&mut self, tree: &ProjectTree, ground: SurveyGround<'_>) {
        let tests = self.gates.iter().filter(|gate| gate.kind == GateKind::Tests);
        let tested: Vec<String> = tests.map(|gate| gate.directory().to_owned()).collect();
        let is_tested = |cwd: Option<&str>| match cwd {
            // A command that CI runs in the root may test the whole repository.
            None => !tested.is_empty(),
            Some(cwd) => {
                let is_at_or_below = |up: &str| cwd == up || cwd.starts_with(&format!("{up}/"));
                tested.iter().any(|up| is_at_or_below(up)) || tree.covered().any(is_at_or_below)
            }
        };
        for step in self.ci.clone() {
            if !step.is_test || is_tested(step.cwd.as_deref()) {
                continue;
            }
            let Some(program) = step.command.split_whitespace().next() else { continue };
            self.add(
                ground,
                ProposedGate {
                    name: "tests",
                    kind: GateKind::Tests,
                    command: step.command.clone(),
                    program,
                    runner: CI_RUNNER,
                    directory: step.cwd.as_deref().unwrap_or_default(),
                    from: Some(&step.file),
                },
            );
        }
        let gates = &self.gates;
        self.ci.retain(|step| {
            !gates.iter().any(|gate| gate.command == step.command && gate.cwd == step.cwd)
        });
    }

    fn add(&mut self, ground: SurveyGround<'_>, proposed: ProposedGate<'_>) {
        let ProposedGate { name, kind, command, program, runner, directory, from } = proposed;
        let path = ground.root.join(directory);
        let missing = (!is_there(program, &path, ground.path)).then(|| {
            let gap = EnvironmentGap::of_program(program, &environment::facts(&path));
            MissingProgram { name: program.to_owned(), setup: gap.setup }
        });
        let env = checks::variables(runner).iter().filter(|name| ground.variables.contains(**name));
        let from = from.unwrap_or_else(|| checks::file_of(runner));
        let gate = GateProposal {
            name: self.free_name(name, directory, runner),
            kind,
            command,
            from: from.to_owned(),
            env: env.map(|name| (*name).to_owned()).collect(),
            cwd: Some(directory.to_owned()).filter(|directory| !directory.is_empty()),
            missing,
        };
        let is_known =
            |known: &GateProposal| known.command == gate.command && known.cwd == gate.cwd;
        if !self.gates.iter().any(is_known) {
            self.gates.push(gate);
        }
    }

    /// Returns an unused name: `tests`, `tests-backend`, `tests-backend-tox`,
    /// `tests-backend-tox-2`.
    fn free_name(&self, name: &str, directory: &str, runner: &str) -> String {
        let is_free = |name: &String| self.gates.iter().all(|gate| gate.name != *name);
        let name = if directory.is_empty() {
            name.to_owned()
        } else {
            // The runner is named last: `tests-backend-pytest`.
            let (kind, rest) =
                name.split_once('-').map_or((name, None), |(kind, rest)| (kind, Some(rest)));
            let rest = rest.map_or(String::new(), |rest| format!("-{rest}"));
            format!("{kind}-{}{rest}", slug(directory))
        };
        let with_runner = format!("{name}-{runner}");
        let numbered = (2..).map(|number| format!("{with_runner}-{number}"));
        let mut names = [name, with_runner.clone()].into_iter().chain(numbered);
        names.find(is_free).unwrap_or_default()
    }
}

impl GateProposal {
    /// Returns the directory of the gate. The root is `.`.
    pub fn directory(&self) -> &str {
        self.cwd.as_deref().unwrap_or(".")
    }
}

/// Returns a path as a part of a gate's name.
fn slug(directory: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let slug: String = directory.chars().map(plain).take(SLUG_MAX).collect();
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests;
