//! What a repository says about itself: what tests and checks it, what its CI runs, which tools keep hooks or
//! tasks in it.
//!
//! Files are read, within the limits of [`tests_of`](crate::delivery::tests_of), and nothing is started. What a
//! file says that can't be read is a trouble to tell of, not a reason to find nothing.
//!
//! - `checks`: formatters, linters and types
//! - `ci`: what workflows run
//! - `tools`: hooks and tasks of other tools
//! - [`trial`]: gates as they do now

mod checks;
mod ci;
mod tools;
pub mod trial;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use hookloop_core::environment::EnvironmentGap;

use crate::delivery::tests_of::reading::Project;
use crate::delivery::tests_of::{NoTests, detect, is_there};
use crate::environment;

pub use ci::Step;
pub use tools::Tool;

/// Gates that are proposed at most: who has more chooses by hand.
const GATES_MAX: usize = 12;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub gates: Vec<Gate>,
    /// What CI runs and no gate does.
    pub ci: Vec<Step>,
    pub tools: Vec<Tool>,
    /// What could not be read.
    pub troubles: Vec<String>,
}

/// A command that could be a `stop` gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    pub name: String,
    pub kind: GateKind,
    /// A line for a shell.
    pub command: String,
    /// The file that it was told by.
    pub from: String,
    /// Variables that it needs and the user has, beside those that every hook has.
    pub env: Vec<String>,
    /// The directory that it runs in, from the project's root; none for the root itself.
    pub cwd: Option<String>,
    /// The program that is missing, if it can't be started at all.
    pub missing: Option<MissingProgram>,
}

/// A program that a gate needs and this machine does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    pub name: String,
    /// The command that installs it, if one is known.
    pub setup: Option<String>,
}

/// What a gate says when it says no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateKind {
    /// The work is not done. That they fail now is a reason to have an agent work on it.
    Tests,
    /// The work is not tidy. Where that is so today, it is not the next agent's task.
    Check,
}

/// Where to look, and as whom.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub root: &'a Path,
    /// Where programs are looked for.
    pub path: &'a OsStr,
    /// Names of variables that the user has set.
    pub variables: &'a BTreeSet<String>,
}

/// Looks at the repository at `root`.
pub fn survey(ground: Ground<'_>) -> Survey {
    let mut found = Survey::default();
    let project = match Project::new(ground.root) {
        Ok(project) => project,
        Err(error) => {
            found.troubles.push(error.to_string());
            return found;
        }
    };
    match detect(ground.root, ground.path) {
        Ok(tests) => {
            let is_only = tests.len() == 1;
            for test in tests {
                let name =
                    if is_only { "tests".to_owned() } else { format!("tests-{}", test.runner) };
                let argv = checks::instead(&project, &test, ground);
                found.add(
                    ground,
                    Proposed {
                        name: &name,
                        kind: GateKind::Tests,
                        argv: &argv,
                        runner: test.runner,
                    },
                );
            }
        }
        Err(NoTests::NoneFound { .. }) => {}
        Err(error) => found.troubles.push(error.to_string()),
    }
    for check in checks::all(&project, ground, &mut found.troubles) {
        let (name, kind, argv) = (check.name, GateKind::Check, &check.argv);
        found.add(ground, Proposed { name, kind, argv, runner: check.runner });
    }
    found.gates.truncate(GATES_MAX);
    found.ci = ci::steps(ground.root, &mut found.troubles);
    let known: Vec<String> = found.gates.iter().map(|gate| gate.command.clone()).collect();
    found.ci.retain(|step| !known.contains(&step.command));
    found.tools = tools::all(&project, ground);
    found
}

/// A gate before it is known whether it can be started.
struct Proposed<'a> {
    name: &'a str,
    kind: GateKind,
    argv: &'a [String],
    runner: &'static str,
}

impl Survey {
    fn add(&mut self, ground: Ground<'_>, proposed: Proposed<'_>) {
        let Proposed { name, kind, argv, runner } = proposed;
        let Some(program) = argv.first() else { return };
        let missing = (!is_there(program, ground.root, ground.path)).then(|| {
            let gap = EnvironmentGap::of_program(program, &environment::facts(ground.root));
            MissingProgram { name: program.clone(), setup: gap.setup }
        });
        let env = checks::variables(runner).iter().filter(|name| ground.variables.contains(**name));
        let taken = |name: &str| self.gates.iter().any(|gate| gate.name == name);
        let name = if taken(name) { format!("{name}-{runner}") } else { name.to_owned() };
        if taken(&name) {
            return;
        }
        self.gates.push(Gate {
            name,
            kind,
            command: argv.join(" "),
            from: checks::file_of(runner).to_owned(),
            env: env.map(|name| (*name).to_owned()).collect(),
            cwd: None,
            missing,
        });
    }
}

#[cfg(test)]
mod tests;
