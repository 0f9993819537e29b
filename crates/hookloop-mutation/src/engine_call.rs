//! The choice of a mutation engine, its call and its result.

use std::path::Path;

use hookloop_core::hook::CommandText;
use hookloop_evidence::SourceLanguage;

use crate::command_words::file_name;
use crate::engine::{
    EngineEnd, EnginePlan, EngineRequest, MutationEngine, MutationTarget, of_targets,
};
use crate::mutant::TestedMutant;
use crate::{cargo_mutants, mutmut, stryker};

/// Words by which code can hide from engines, or find out that one runs.
const ENGINE_WORDS: [&str; 9] = [
    "pragma: no mutate",
    "Stryker disable",
    "mutants::skip",
    "mutants_skip",
    "MUTANT_UNDER_TEST",
    "__mutmut",
    "__stryker",
    "stryMutAct",
    "changed by cargo-mutants",
];

/// Returns the engine for the tests of a gate. `languages` are those of the changed functions.
///
/// The error is for a person.
pub fn engine_for(
    command: &CommandText,
    script: Option<&str>,
    languages: &[SourceLanguage],
) -> Result<MutationEngine, String> {
    let line = match command {
        CommandText::Shell(line) => line.clone(),
        CommandText::Exec(words) => words.join(" "),
    };
    let text = format!("{line} {}", script.unwrap_or_default());
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || "'\";&|()".contains(c)).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&file_name(word)));
    if has(&["pytest", "py.test", "tox", "nox", "unittest"]) {
        return Ok(MutationEngine::Mutmut);
    }
    if has(&["cargo"]) {
        return Ok(MutationEngine::CargoMutants);
    }
    if has(&["vitest", "jest", "mocha", "npm", "npx", "pnpm", "yarn", "bun", "node"]) {
        return Ok(MutationEngine::Stryker);
    }
    let none = "hookloop knows no mutation engine for Go";
    if has(&["go", "gotestsum"]) {
        return Err(none.to_owned());
    }
    let all = [MutationEngine::Mutmut, MutationEngine::CargoMutants, MutationEngine::Stryker];
    let able = all.into_iter().filter(|engine| languages.iter().any(|one| engine.mutates(*one)));
    match able.collect::<Vec<_>>()[..] {
        [engine] => Ok(engine),
        [] => Err(none.to_owned()),
        _ => Err(format!(
            "the work changed sources of several languages, and `{line}` does not tell which of them the gate tests: \
             name a test runner in `command`"
        )),
    }
}

/// Returns the call of the engine for the changed functions. The error is for a person.
pub fn plan_for(engine: MutationEngine, request: &EngineRequest<'_>) -> Result<EnginePlan, String> {
    match engine {
        MutationEngine::Mutmut => mutmut::plan(request),
        MutationEngine::CargoMutants => cargo_mutants::plan(request),
        MutationEngine::Stryker => stryker::plan(request),
    }
}

/// Reads the mutants that an engine tested in a directory. The error is the reason why there is no result.
pub fn result_of(
    plan: &EnginePlan,
    targets: &[MutationTarget],
    directory: &Path,
    (end, output): (EngineEnd, &str),
) -> Result<Vec<TestedMutant>, String> {
    let mutants = match plan.engine {
        MutationEngine::Mutmut => mutmut::read(plan, targets, directory, (end, output))?,
        MutationEngine::CargoMutants => cargo_mutants::read(plan, directory, end)?,
        MutationEngine::Stryker => stryker::read(plan, directory, end)?,
    };
    Ok(of_targets(targets, mutants))
}

/// Returns a word of a text by which code can hide from engines, or find out that one runs.
pub fn engine_words(text: &str) -> impl Iterator<Item = &'static str> {
    ENGINE_WORDS.into_iter().filter(|word| text.contains(word))
}
