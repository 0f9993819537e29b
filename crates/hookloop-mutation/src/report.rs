//! The results of an engine in the schema of Stryker's reports, which other tools show.

use std::collections::BTreeMap;

use hookloop_evidence::SourceLanguage;
use serde_json::{Value, json};

use crate::engine::{MutationEngine, MutationTarget};
use crate::mutant::TestedMutant;

/// Returns a report of the mutants. `source_of` returns the text of a file of the work.
pub fn stryker_report(
    engine: MutationEngine,
    at_least: u8,
    (targets, mutants): (&[MutationTarget], &[TestedMutant]),
    source_of: impl Fn(&str) -> Option<String>,
) -> Value {
    let mut by_file: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate() {
        let position = |line: u64| json!({ "line": line, "column": 1 });
        by_file.entry(&mutant.path).or_default().push(json!({
            "id": number.to_string(),
            "mutatorName": engine.name(),
            "replacement": mutant.change,
            "location": { "start": position(mutant.line), "end": position(mutant.line + 1) },
            "status": mutant.outcome.stryker_status(),
        }));
    }
    let language = |path: &str| {
        targets.iter().find(|target| target.path == path).map_or("text", |target| {
            match target.language {
                SourceLanguage::Python => "python",
                SourceLanguage::Rust => "rust",
                SourceLanguage::JavaScript => "javascript",
                SourceLanguage::TypeScript | SourceLanguage::Tsx => "typescript",
                SourceLanguage::Go => "go",
            }
        })
    };
    let files: serde_json::Map<String, Value> = by_file
        .into_iter()
        .map(|(path, mutants)| {
            let source = source_of(path).unwrap_or_default();
            let file = json!({ "language": language(path), "source": source, "mutants": mutants });
            (path.to_owned(), file)
        })
        .collect();
    json!({
        "schemaVersion": "2",
        "thresholds": { "high": at_least, "low": at_least },
        "files": files,
    })
}
