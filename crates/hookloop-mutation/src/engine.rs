//! The mutation engines, and the parts of their calls.

use hookloop_core::hook::CommandText;
use hookloop_evidence::{SourceFunction, SourceLanguage};

use crate::command_words::CommandWords;

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
}

/// The end of an engine's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineEnd {
    Exited(i32),
    /// The budget ended before, or the engine was killed.
    Interrupted,
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
        EngineEnd::Interrupted => format!("{name} had no result when it was ended"),
    }
}

/// Returns the words before the runner, with its variables, if the command is one plain command.
pub(crate) fn words_of(request: &EngineRequest<'_>) -> CommandWords {
    CommandWords::of(request.command).unwrap_or_default()
}
