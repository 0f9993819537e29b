//! The mutation engines, and the parts of their calls.

use hookloop_core::hook::CommandText;
use hookloop_evidence::{SourceFunction, SourceLanguage};

use crate::command_words::CommandWords;
use crate::mutant::TestedMutant;

/// A mutation engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutationEngine {
    Mutmut,
    CargoMutants,
    Stryker,
}

/// The changed functions of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutationTarget {
    /// The file, from the working directory of the gate.
    pub path: String,
    pub language: SourceLanguage,
    pub functions: Vec<SourceFunction>,
}

/// The circumstances of a measurement.
#[expect(missing_debug_implementations, reason = "the files are behind a function")]
pub struct EngineRequest<'r> {
    pub command: &'r CommandText,
    /// The line of the script in `package.json` that the command runs, if it runs one.
    pub script: Option<&'r str>,
    pub targets: &'r [MutationTarget],
    /// Maximum mutants.
    pub most: u32,
    /// Maximum mutants that are tested at the same time.
    pub jobs: usize,
    /// The names of the files and directories in the working directory of the gate.
    pub entries: &'r [String],
    /// Returns the text of a file of the work, from the working directory of the gate.
    pub file: &'r dyn Fn(&str) -> Option<String>,
    /// Returns the text of the same file before the work.
    pub base_file: &'r dyn Fn(&str) -> Option<String>,
    /// A word that nobody knew before. Files with it in their names are not those of the work.
    pub token: &'r str,
}

/// The call of an engine in the working directory of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnginePlan {
    pub engine: MutationEngine,
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The files that the engine needs: path and content.
    pub files: Vec<(String, String)>,
    /// The names of the mutants that are tested; empty if the engine chooses them.
    pub(crate) names: Vec<String>,
    /// The file or directory with the results.
    pub(crate) results: String,
}

/// The end of an engine's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEnd {
    Exited(i32),
    /// The budget ended before. The results so far count.
    OutOfBudget,
    /// Something else ended the engine.
    Killed,
}

impl MutationEngine {
    pub fn name(self) -> &'static str {
        match self {
            MutationEngine::Mutmut => "mutmut",
            MutationEngine::CargoMutants => "cargo-mutants",
            MutationEngine::Stryker => "Stryker",
        }
    }

    /// Whether the engine mutates sources of a language.
    pub fn mutates(self, language: SourceLanguage) -> bool {
        match self {
            MutationEngine::Mutmut => language == SourceLanguage::Python,
            MutationEngine::CargoMutants => language == SourceLanguage::Rust,
            MutationEngine::Stryker => is_script(language),
        }
    }
}

fn is_script(language: SourceLanguage) -> bool {
    let scripts = [SourceLanguage::JavaScript, SourceLanguage::TypeScript, SourceLanguage::Tsx];
    scripts.contains(&language)
}

/// Returns the reason of a failure with this end.
pub(crate) fn failure(engine: MutationEngine, end: EngineEnd) -> String {
    let name = engine.name();
    match end {
        EngineEnd::Exited(code) => format!("{name} ended with exit code {code} and left no result"),
        EngineEnd::OutOfBudget => format!("{name} had no result when its budget ended"),
        EngineEnd::Killed => format!("{name} was killed"),
    }
}

/// Returns the words of the command. The error is for a person.
pub(crate) fn words_of(request: &EngineRequest<'_>) -> Result<CommandWords, String> {
    let unclear = "`strength` needs a gate whose `command` is one plain command, without quotes, `cd` and `&&`";
    CommandWords::of(request.command).ok_or_else(|| unclear.to_owned())
}

/// Returns the mutants of the changed functions, with the paths of their files.
///
/// An engine can name a file from another directory, and tests of the work can write results of their own.
pub(crate) fn of_targets(
    targets: &[MutationTarget],
    mutants: Vec<TestedMutant>,
) -> Vec<TestedMutant> {
    let of_target = |mut mutant: TestedMutant| {
        let is_its_own = |target: &&MutationTarget| {
            let rest = mutant.path.strip_suffix(&target.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
                && target.functions.iter().any(|function| {
                    (function.first_line as u64..=function.last_line as u64).contains(&mutant.line)
                })
        };
        let own = targets.iter().filter(is_its_own).max_by_key(|target| target.path.len())?;
        mutant.path.clone_from(&own.path);
        Some(mutant)
    };
    mutants.into_iter().filter_map(of_target).collect()
}
