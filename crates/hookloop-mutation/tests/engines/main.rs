//! Calls of engines, and results from the files that they write.
#![expect(clippy::unwrap_used, reason = "tests")]

mod calls;
mod results;

use hookloop_evidence::{SourceFunction, SourceLanguage};
use hookloop_mutation::MutationTarget;

fn function(scope: &[&str], name: &str, lines: (usize, usize)) -> SourceFunction {
    SourceFunction {
        scope: scope.iter().map(|part| (*part).to_owned()).collect(),
        name: name.to_owned(),
        first_line: lines.0,
        last_line: lines.1,
        own_line: lines.0,
        text: String::new(),
    }
}

fn target(path: &str, functions: Vec<SourceFunction>) -> MutationTarget {
    let language = SourceLanguage::of_path(path).unwrap();
    MutationTarget { path: path.to_owned(), language, functions }
}
