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
/// The settings of the engine, from the top of a workspace.
const SETTINGS: &str = ".cargo/mutants.toml";
/// Maximum lines of functions that are named to the engine.
const LINES_MAX: usize = 20_000;
/// Runs the engine on a sample of at most `$1` mutants, spread over all of them.
const SCRIPT: &str = "most=$1; shift; list=$(cargo mutants --list \"$@\") || exit 70; \
                      count=$(printf '%s\\n' \"$list\" | wc -l); shards=$(( (count + most - 1) / most )); \
                      exec cargo mutants --in-place --colors never --no-times --cap-lints=true \
                      --sharding round-robin --shard \"0/$shards\" \"$@\"";
/// Options of `cargo test` that decide which code is built.
const FEATURES: [&str; 2] = ["--all-features", "--no-default-features"];
const NEXTEST: &str = "nextest";
/// The exit codes of a run with results: no mutant or only killed ones, survivors, timeouts.
const WITH_RESULTS: [i32; 3] = [0, 2, 3];

pub(crate) fn plan(request: &EngineRequest<'_>) -> Result<EnginePlan, String> {
    let words = words_of(request)?;
    if (request.file)(SETTINGS) != (request.base_file)(SETTINGS) {
        return Err(format!("the work changes {SETTINGS}"));
    }
    let results = format!(".hookloop-mutants-{}", request.token);
    let most = request.most.to_string();
    let argv = ["sh", "-c", SCRIPT, "cargo-mutants", &most, "--workspace", "--output", &results];
    let mut argv: Vec<String> = argv.map(str::to_owned).to_vec();
    let has = |name: &str| words.words.iter().any(|word| word == name);
    if has(NEXTEST) {
        argv.push("--test-tool=nextest".to_owned());
    }
    if has("--workspace") || has("--all") {
        argv.push("--test-workspace=true".to_owned());
    }
    argv.extend(FEATURES.iter().filter(|name| has(name)).map(|name| (*name).to_owned()));
    argv.extend(words.words.iter().filter(|word| word.starts_with("--features=")).cloned());
    let pairs = words.words.windows(2);
    let pairs = pairs.filter(|pair| ["--features", "-F"].contains(&pair[0].as_str()));
    argv.extend(pairs.map(|pair| format!("--features={}", pair[1])));
    let mut lines = 0;
    for target in request.targets {
        argv.push("--file".to_owned());
        // The engine names files from the top of the workspace.
        argv.push(format!("**/{}", as_glob(&target.path)));
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
    let (engine, env) = (MutationEngine::CargoMutants, words.env);
    Ok(EnginePlan { engine, argv, env, files: Vec::new(), names: Vec::new(), results })
}

/// Returns a path as a pattern of files.
fn as_glob(path: &str) -> String {
    let is_special = |c: char| "*?[]{}\\!".contains(c);
    path.chars().map(|c| if is_special(c) { format!("[{c}]") } else { c.to_string() }).collect()
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

pub(crate) fn read(
    plan: &EnginePlan,
    directory: &Path,
    end: EngineEnd,
) -> Result<Vec<TestedMutant>, String> {
    let has_results = match end {
        EngineEnd::Exited(code) => WITH_RESULTS.contains(&code),
        EngineEnd::OutOfBudget => true,
        EngineEnd::Killed => false,
    };
    let failed = || failure(MutationEngine::CargoMutants, end);
    let all = text_below(directory, &format!("{}/{ALL}", plan.results));
    let all = all.and_then(|all| serde_json::from_str::<Vec<Value>>(&all).ok());
    let outcomes = text_below(directory, &format!("{}/{OUTCOMES}", plan.results));
    let outcomes = outcomes.and_then(|text| serde_json::from_str::<Outcomes>(&text).ok());
    let Some(Outcomes { outcomes }) = outcomes else {
        // Without mutants the engine writes no outcomes.
        let is_empty = all.is_some_and(|all| all.is_empty()) && has_results;
        return if is_empty { Ok(Vec::new()) } else { Err(failed()) };
    };
    let is_baseline = |outcome: &&Outcome| outcome.scenario.as_str() == Some("Baseline");
    let baseline = outcomes.iter().find(is_baseline);
    if baseline.is_some_and(|baseline| baseline.summary != "Success") {
        return Err("the tests fail without a mutant, as cargo-mutants runs them".to_owned());
    }
    if !has_results {
        return Err(failed());
    }
    let mut found: Vec<TestedMutant> =
        outcomes.iter().take(MUTANTS_MAX).filter_map(tested).collect();
    let left = all.unwrap_or_default().into_iter().skip(found.len()).take(MUTANTS_MAX);
    let left: Vec<Value> = left.collect();
    found.extend(left.iter().filter_map(|mutant| mutant_of(mutant, MutantOutcome::NotRun)));
    Ok(found)
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
