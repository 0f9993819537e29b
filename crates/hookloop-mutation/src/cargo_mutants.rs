//! cargo-mutants, for Rust.
//!
//! The engine works in the room itself, whose files hookloop restores afterwards. It writes each result to
//! `mutants.out/outcomes.json`, and the list of all mutants to `mutants.out/mutants.json`.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::engine::{EngineEnd, EnginePlan, EngineRequest, MutationEngine, failure, words_of};
use crate::mutant::{MUTANTS_MAX, MutantOutcome, TestedMutant};
use crate::result_files::text_below;

const OUTCOMES: &str = "mutants.out/outcomes.json";
const ALL: &str = "mutants.out/mutants.json";
/// Maximum lines of functions that are named to the engine.
const LINES_MAX: usize = 20_000;
/// Runs the engine on a sample of at most `$MOST` mutants, spread over all of them.
const SCRIPT: &str = "count=$(cargo mutants --list \"$@\" | wc -l) || exit 70; \
                      shards=$(( (count + MOST - 1) / MOST )); [ \"$shards\" -ge 1 ] || shards=1; \
                      exec cargo mutants --in-place --colors never --no-times --sharding round-robin \
                      --shard \"0/$shards\" \"$@\"";
/// Options of `cargo test` that decide which code is built.
const FEATURES: [&str; 2] = ["--all-features", "--no-default-features"];
const NEXTEST: &str = "nextest";
/// The exit code for no mutants, or only killed ones.
const ALL_CAUGHT: i32 = 0;

pub(crate) fn plan(request: &EngineRequest<'_>) -> Result<EnginePlan, String> {
    let words = words_of(request);
    let mut argv: Vec<String> =
        ["sh", "-c", SCRIPT, "cargo-mutants"].map(str::to_owned).into_iter().collect();
    let has = |name: &str| words.words.iter().any(|word| word == name);
    if has(NEXTEST) {
        argv.push("--test-tool=nextest".to_owned());
    }
    if has("--workspace") || has("--all") {
        argv.push("--test-workspace=true".to_owned());
    }
    argv.extend(FEATURES.iter().filter(|name| has(name)).map(|name| (*name).to_owned()));
    argv.extend(words.words.iter().filter(|word| word.starts_with("--features=")).cloned());
    let mut lines = 0;
    for target in request.targets {
        argv.push("--file".to_owned());
        argv.push(target.path.clone());
        let of_file: Vec<String> = target
            .functions
            .iter()
            .flat_map(|function| function.first_line..=function.last_line)
            .map(|line| line.to_string())
            .collect();
        lines += of_file.len();
        // A mutant's name begins with its file and its line.
        argv.push("--re".to_owned());
        argv.push(format!("(^|/){}:({}):", quoted(&target.path), of_file.join("|")));
    }
    if lines > LINES_MAX {
        return Err(format!("the changed functions have more than {LINES_MAX} lines"));
    }
    let mut env = words.env;
    env.push(("MOST".to_owned(), request.most.to_string()));
    let engine = MutationEngine::CargoMutants;
    Ok(EnginePlan { engine, argv, env, files: Vec::new(), names: Vec::new() })
}

/// Returns a path as a regular expression.
fn quoted(path: &str) -> String {
    let mut text = String::new();
    for c in path.chars() {
        if !c.is_alphanumeric() && !"/_- ".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

#[derive(Deserialize)]
struct Outcomes {
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    scenario: Value,
    summary: String,
}

pub(crate) fn read(directory: &Path, end: EngineEnd) -> Result<Vec<TestedMutant>, String> {
    let outcomes = text_below(directory, OUTCOMES);
    let outcomes = outcomes.and_then(|text| serde_json::from_str::<Outcomes>(&text).ok());
    let Some(Outcomes { outcomes }) = outcomes else {
        return match end {
            // Without mutants the engine writes no outcomes.
            EngineEnd::Exited(ALL_CAUGHT)
                if text_below(directory, ALL).is_none_or(|all| all.trim() == "[]") =>
            {
                Ok(Vec::new())
            }
            _ => Err(failure(MutationEngine::CargoMutants, end)),
        };
    };
    let is_baseline = |outcome: &&Outcome| outcome.scenario.as_str() == Some("Baseline");
    let baseline = outcomes.iter().find(is_baseline);
    if baseline.is_some_and(|baseline| baseline.summary != "Success") {
        return Err("the tests fail without a mutant, as cargo-mutants runs them".to_owned());
    }
    let mut found: Vec<TestedMutant> =
        outcomes.iter().take(MUTANTS_MAX).filter_map(tested).collect();
    let all =
        text_below(directory, ALL).and_then(|all| serde_json::from_str::<Vec<Value>>(&all).ok());
    let left = all.unwrap_or_default();
    let known = found.len();
    found.extend(
        left.iter()
            .skip(known)
            .take(MUTANTS_MAX)
            .filter_map(|mutant| mutant_of(mutant, MutantOutcome::NotRun)),
    );
    match (end, known) {
        (EngineEnd::Exited(code), 0) if code != ALL_CAUGHT => {
            Err(failure(MutationEngine::CargoMutants, end))
        }
        _ => Ok(found),
    }
}

fn tested(outcome: &Outcome) -> Option<TestedMutant> {
    let summary = match outcome.summary.as_str() {
        "CaughtMutant" => MutantOutcome::Killed,
        "MissedMutant" => MutantOutcome::Survived,
        "Timeout" => MutantOutcome::TimedOut,
        "Unviable" => MutantOutcome::Unviable,
        // An outcome that this version of the engine did not have says nothing.
        _ => MutantOutcome::NotRun,
    };
    mutant_of(outcome.scenario.get("Mutant")?, summary)
}

fn mutant_of(mutant: &Value, outcome: MutantOutcome) -> Option<TestedMutant> {
    let name = mutant["name"].as_str()?;
    let change = name.split_once(": ").map_or(name, |(_, change)| change);
    Some(TestedMutant {
        path: mutant["file"].as_str()?.to_owned(),
        line: mutant["span"]["start"]["line"].as_u64()?,
        change: change.to_owned(),
        outcome,
    })
}
