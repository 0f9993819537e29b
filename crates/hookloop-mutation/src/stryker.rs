//! StrykerJS, for JavaScript and TypeScript.
//!
//! A reporter of hookloop's writes the plan and each result as a line of JSON, so that a run that is ended early keeps
//! its results.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::command_words::{CommandWords, file_name};
use crate::engine::{EngineEnd, EnginePlan, EngineRequest, MutationEngine, failure, words_of};
use crate::mutant::{MUTANTS_MAX, MutantOutcome, TestedMutant};
use crate::result_files::text_below;

/// The beginning of the names of the engine's files.
const NAME: &str = ".hookloop-stryker";
/// The runners with a plugin of Stryker.
const RUNNERS: [&str; 3] = ["vitest", "jest", "mocha"];
/// Writes results to the file, and ends the run after the last wanted mutant. Plans count lines from 0.
const REPORTER_TEXT: &str = r"import fs from 'node:fs';
const most = MOST;
let tested = 0;
const put = (line) => fs.appendFileSync(FILE, JSON.stringify(line) + '\n');
class HookloopReporter {
  onMutationTestingPlanReady(event) {
    put({ planned: event.mutantPlans.map(({ mutant }) => ({
      id: mutant.id, file: mutant.fileName, line: mutant.location.start.line + 1, replacement: mutant.replacement,
    })) });
  }
  onMutantTested(result) {
    put({ id: result.id, status: result.status });
    if (['Killed', 'Survived', 'Timeout'].includes(result.status)) tested += 1;
    if (tested >= most) process.exit(0);
  }
}
export const strykerPlugins = [{ kind: 'Reporter', name: 'hookloop', injectableClass: HookloopReporter }];
";

pub(crate) fn plan(request: &EngineRequest<'_>) -> Result<EnginePlan, String> {
    let words = CommandWords::of(request.command).unwrap_or_default();
    let named = |end: &str| format!("{NAME}-{}{end}", request.token);
    let (configuration, reporter) = (named(".json"), named(".mjs"));
    let (results, directory) = (named(".jsonl"), named(""));
    let line = format!("{} {}", words.words.join(" "), request.script.unwrap_or_default());
    let runner = line.split_whitespace().map(file_name).find(|word| RUNNERS.contains(word));
    let mutate: Vec<String> = request
        .targets
        .iter()
        .flat_map(|target| {
            target.functions.iter().map(|function| {
                format!("{}:{}-{}", target.path, function.first_line, function.last_line)
            })
        })
        .collect();
    let mut plugins: Vec<String> =
        runner.iter().map(|runner| format!("@stryker-mutator/{runner}-runner")).collect();
    plugins.push(format!("./{reporter}"));
    let mut settings = json!({
        "testRunner": runner.unwrap_or("command"),
        "plugins": plugins,
        "mutate": mutate,
        "reporters": ["hookloop"],
        "coverageAnalysis": if runner.is_some() { "perTest" } else { "off" },
        "concurrency": request.jobs,
        "tempDirName": directory,
        "ignorePatterns": [&results],
        "disableTypeChecks": false,
        "allowConsoleColors": false,
        "allowEmpty": true,
        "checkers": [],
        "fileLogLevel": "off",
        "thresholds": { "high": 80, "low": 60, "break": null },
    });
    if runner.is_none() {
        let words = words_of(request)?;
        settings["commandRunner"] = json!({ "command": words.words.join(" ") });
    }
    let argv =
        ["npx", "--no-install", "stryker", "run", &configuration].map(str::to_owned).to_vec();
    let mut env = words.env;
    env.push(("NO_COLOR".to_owned(), "1".to_owned()));
    let text = REPORTER_TEXT
        .replace("MOST", &request.most.to_string())
        .replace("FILE", &format!("'{results}'"));
    let files = vec![(configuration, settings.to_string()), (reporter, text)];
    let engine = MutationEngine::Stryker;
    Ok(EnginePlan { engine, argv, env, files, names: Vec::new(), results })
}

/// A line of the reporter.
#[derive(Deserialize)]
#[serde(untagged)]
enum ReportedLine {
    Plan { planned: Vec<PlannedMutant> },
    Result { id: String, status: String },
}

#[derive(Deserialize)]
struct PlannedMutant {
    id: String,
    file: String,
    line: u64,
    #[serde(default)]
    replacement: Value,
}

pub(crate) fn read(
    plan: &EnginePlan,
    directory: &Path,
    end: EngineEnd,
) -> Result<Vec<TestedMutant>, String> {
    if !matches!(end, EngineEnd::Exited(0) | EngineEnd::OutOfBudget) {
        return Err(failure(MutationEngine::Stryker, end));
    }
    let text = text_below(directory, &plan.results);
    let mut planned: Option<BTreeMap<String, TestedMutant>> = None;
    for line in text.iter().flat_map(|text| text.lines()) {
        // The last line may be cut.
        let Ok(line) = serde_json::from_str::<ReportedLine>(line) else { continue };
        match (line, &mut planned) {
            (ReportedLine::Plan { planned: mutants }, planned @ None) => {
                let mutants = mutants.into_iter().take(MUTANTS_MAX);
                let mutants = mutants.map(|mutant| (mutant.id.clone(), found(mutant)));
                *planned = Some(mutants.collect());
            }
            (ReportedLine::Result { id, status }, Some(planned)) => {
                if let Some(mutant) = planned.get_mut(&id) {
                    mutant.outcome = outcome_of(&status);
                }
            }
            _ => {}
        }
    }
    match planned {
        Some(planned) => Ok(planned.into_values().collect()),
        None => Err(failure(MutationEngine::Stryker, end)),
    }
}

/// Returns a mutant without a result.
fn found(mutant: PlannedMutant) -> TestedMutant {
    let change = match mutant.replacement.as_str() {
        Some("") => "the code is removed".to_owned(),
        Some(text) => format!("+ {text}"),
        None => "the engine shows no change".to_owned(),
    };
    let (path, line) = (mutant.file, mutant.line);
    TestedMutant { path, line, change, outcome: MutantOutcome::NotRun }
}

fn outcome_of(status: &str) -> MutantOutcome {
    match status {
        "Killed" => MutantOutcome::Killed,
        "Survived" | "NoCoverage" => MutantOutcome::Survived,
        "Timeout" => MutantOutcome::TimedOut,
        "CompileError" | "RuntimeError" | "Ignored" => MutantOutcome::Unviable,
        _ => MutantOutcome::NotRun,
    }
}
