//! mutmut, for Python with pytest.
//!
//! mutmut copies the sources into the directory `mutants` and writes a `.meta` file beside each with the exit codes of
//! its mutants, one by one. A `.spans` file has the lines of each variant of a function in the copy.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use hookloop_core::digest::sha256_hex;
use hookloop_evidence::SourceFunction;
use serde::Deserialize;

use crate::command_words::CommandWords;
use crate::engine::{
    EngineEnd, EnginePlan, EngineRequest, MutationEngine, MutationTarget, failure, words_of,
};
use crate::mutant::{MUTANTS_MAX, MutantOutcome, TestedMutant};
use crate::result_files::text_below;

const RUNNERS: [&str; 2] = ["pytest", "py.test"];
const DIRECTORY: &str = "mutants";
/// Entries of a project that mutmut does not copy.
const NOT_COPIED: [&str; 6] =
    [".git", DIRECTORY, "node_modules", "pyproject.toml", "setup.cfg", ".venv"];
/// The start of the sources in a project with a `src` directory.
const SRC: &str = "src/";
/// The end of a run whose names match no mutant, and its words.
const NOTHING: (i32, &str) = (1, "nothing matches");
/// Removes results of earlier runs and of the work, and starts the engine.
const SCRIPT: &str = "rm -rf mutants && exec \"$@\"";

pub(crate) fn plan(request: &EngineRequest<'_>) -> Result<EnginePlan, String> {
    let names = names(request);
    let words = words_of(request)?;
    let mut argv = ["sh", "-c", SCRIPT, "mutmut"].map(str::to_owned).to_vec();
    argv.extend(program(&words));
    argv.extend(["run", "--max-children"].map(str::to_owned));
    argv.push(request.jobs.to_string());
    argv.extend(names.iter().cloned());
    let files = configuration(request, &words)?;
    let mut env = words.env;
    env.extend(
        [("PYTHONDONTWRITEBYTECODE", "1"), ("TERM", "dumb")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let results = DIRECTORY.to_owned();
    Ok(EnginePlan { engine: MutationEngine::Mutmut, argv, env, files, names, results })
}

/// Returns the program of mutmut beside the pytest of the command: in the same environment, by the same launcher.
fn program(command: &CommandWords) -> Vec<String> {
    let words = &command.words;
    let Some(at) = command.position(&RUNNERS) else { return vec!["mutmut".to_owned()] };
    let mut argv = words[..at].to_vec();
    match words[at].rsplit_once('/') {
        _ if argv.last().is_some_and(|word| word == "-m") => argv.push("mutmut".to_owned()),
        Some((directory, _)) => {
            argv.extend([format!("{directory}/python"), "-m".to_owned(), "mutmut".to_owned()])
        }
        None => argv.push("mutmut".to_owned()),
    }
    argv
}

/// Returns the names of mutants, at most `most`: the first of each changed function, in an order that nobody knew
/// before.
fn names(request: &EngineRequest<'_>) -> Vec<String> {
    let keys = request
        .targets
        .iter()
        .flat_map(|target| target.functions.iter().map(|function| key(&target.path, function)));
    let mut functions: Vec<String> = keys.collect::<BTreeSet<_>>().into_iter().collect();
    functions.sort_by_key(|key| sha256_hex(format!("{}{key}", request.token).as_bytes()));
    let most = usize::try_from(request.most).unwrap_or(usize::MAX).min(MUTANTS_MAX);
    // mutmut ignores names that match nothing, as long as one matches.
    let each = most.div_ceil(functions.len().max(1));
    let numbered = (1..=each).flat_map(|number| {
        functions.iter().map(move |function| format!("{function}__mutmut_{number}"))
    });
    numbered.take(most).collect()
}

/// Returns the beginning of the names of a function's mutants.
fn key(path: &str, function: &SourceFunction) -> String {
    let path = path.strip_prefix(SRC).unwrap_or(path);
    let module = path.strip_suffix(".py").unwrap_or(path).replace('/', ".");
    let module = module.strip_suffix(".__init__").unwrap_or(&module);
    match function.scope.last() {
        Some(class) => format!("{module}.x\u{1c1}{class}\u{1c1}{}", function.name),
        None => format!("{module}.x_{}", function.name),
    }
}

/// Returns the files with the settings of mutmut. Settings that the project had before the work stay.
fn configuration(
    request: &EngineRequest<'_>,
    words: &CommandWords,
) -> Result<Vec<(String, String)>, String> {
    let project = (request.file)("pyproject.toml");
    let setup = (request.file)("setup.cfg");
    let mut had = Vec::new();
    for (file, name, work) in
        [("pyproject.toml", "tool.mutmut", &project), ("setup.cfg", "[mutmut]", &setup)]
    {
        let has_settings = |text: &String| text.contains(name);
        if let Some(base) = (request.base_file)(file).filter(has_settings) {
            had.push((file.to_owned(), base));
        } else if work.as_ref().is_some_and(has_settings) {
            return Err(format!("the work adds settings of mutmut to {file}"));
        }
    }
    if !had.is_empty() {
        return Ok(had);
    }
    let first = |path: &str| path.split('/').next().unwrap_or(path).to_owned();
    let sources: BTreeSet<String> =
        request.targets.iter().map(|target| first(&target.path)).collect();
    let mutated: BTreeSet<String> =
        request.targets.iter().map(|target| target.path.clone()).collect();
    let copied = request
        .entries
        .iter()
        .filter(|entry| !sources.contains(*entry) && !NOT_COPIED.contains(&entry.as_str()));
    let lists = [
        ("source_paths", sources.iter().cloned().collect::<Vec<_>>()),
        ("only_mutate", mutated.into_iter().collect()),
        ("also_copy", copied.cloned().collect()),
        ("pytest_add_cli_args", vec!["-p".to_owned(), "no:cacheprovider".to_owned()]),
        ("pytest_add_cli_args_test_selection", selection(words, request.entries)),
    ];
    let lists = lists.into_iter().filter(|(_, values)| !values.is_empty());
    match project {
        Some(text) => {
            let quoted = |values: Vec<String>| {
                let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
                values.join(", ")
            };
            let lines: String =
                lists.map(|(name, values)| format!("{name} = [{}]\n", quoted(values))).collect();
            let settings = "use_setproctitle = false\nuse_git_change_detection = false\n\
                            timeout_multiplier = 5.0\n";
            let text = format!("{text}\n\n[tool.mutmut]\n{lines}{settings}");
            Ok(vec![("pyproject.toml".to_owned(), text)])
        }
        None => {
            let lines: String = lists
                .map(|(name, values)| format!("{name} =\n    {}\n", values.join("\n    ")))
                .collect();
            let settings = "use_setproctitle = false\nuse_git_change_detection = false\n\
                            timeout_multiplier = 5.0\n";
            let before = setup.unwrap_or_default();
            let text = format!("{before}\n\n[mutmut]\n{lines}{settings}");
            Ok(vec![("setup.cfg".to_owned(), text)])
        }
    }
}

/// Returns the tests that the command names: files and directories of the project.
fn selection(command: &CommandWords, entries: &[String]) -> Vec<String> {
    let is_entry = |word: &&String| {
        let path = word.split("::").next().unwrap_or(word);
        let first = path.trim_start_matches("./").split('/').next().unwrap_or(path);
        entries.iter().any(|entry| entry == first)
    };
    let arguments = command.position(&RUNNERS).map_or(&[][..], |at| &command.words[at + 1..]);
    arguments.iter().filter(is_entry).cloned().collect()
}

#[derive(Deserialize)]
struct MutmutMeta {
    exit_code_by_key: BTreeMap<String, Option<i64>>,
}

#[derive(Deserialize)]
struct MutmutSpans {
    spans: HashMap<String, (usize, usize)>,
}

pub(crate) fn read(
    plan: &EnginePlan,
    targets: &[MutationTarget],
    directory: &Path,
    (end, output): (EngineEnd, &str),
) -> Result<Vec<TestedMutant>, String> {
    let wanted: BTreeSet<&str> = plan.names.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    let mut has_meta = false;
    for target in targets {
        let copy = format!("{DIRECTORY}/{}", target.path);
        let Some(meta) = text_below(directory, &format!("{copy}.meta")) else { continue };
        let Ok(meta) = serde_json::from_str::<MutmutMeta>(&meta) else { continue };
        has_meta = true;
        let variants = VariantLines::read(directory, &copy);
        for (key, code) in meta.exit_code_by_key.into_iter().take(MUTANTS_MAX) {
            let Some(function) = function_of(target, &key) else { continue };
            // A mutant that was not asked for may have a result by accident.
            let code = code.filter(|_| wanted.contains(key.as_str()));
            let outcome = outcome_of(code);
            let (line, change) = match outcome {
                MutantOutcome::Survived => variants.change(function, &key),
                _ => (function.own_line as u64, String::new()),
            };
            found.push(TestedMutant { path: target.path.clone(), line, change, outcome });
        }
    }
    let (nothing, words) = NOTHING;
    match end {
        EngineEnd::Exited(code) if code == nothing && output.contains(words) => Ok(Vec::new()),
        EngineEnd::Exited(0) | EngineEnd::OutOfBudget if has_meta => Ok(found),
        _ => Err(failure(MutationEngine::Mutmut, end)),
    }
}

/// Returns the outcome of a mutant by the exit code of its tests.
fn outcome_of(code: Option<i64>) -> MutantOutcome {
    match code {
        Some(0 | 5 | 33) => MutantOutcome::Survived,
        Some(36 | 24 | -24 | 152 | 255) => MutantOutcome::TimedOut,
        Some(34 | 37) => MutantOutcome::Unviable,
        // A failed test, an error of a test, or a crash of the interpreter.
        Some(1 | 3 | -11) => MutantOutcome::Killed,
        // The run was interrupted, or pytest could not run.
        _ => MutantOutcome::NotRun,
    }
}

/// Returns the changed function of a mutant.
fn function_of<'t>(target: &'t MutationTarget, key_of_mutant: &str) -> Option<&'t SourceFunction> {
    target.functions.iter().find(|function| {
        key_of_mutant
            .strip_prefix(&key(&target.path, function))
            .is_some_and(|rest| rest.starts_with("__mutmut_"))
    })
}

/// The lines of the variants of functions in a copy.
#[derive(Default)]
struct VariantLines {
    lines: Vec<String>,
    spans: HashMap<String, (usize, usize)>,
}

impl VariantLines {
    fn read(directory: &Path, copy: &str) -> VariantLines {
        let text = text_below(directory, copy).unwrap_or_default();
        let spans = text_below(directory, &format!("{copy}.spans"));
        let spans = spans.and_then(|spans| serde_json::from_str::<MutmutSpans>(&spans).ok());
        VariantLines {
            lines: text.lines().map(str::to_owned).collect(),
            spans: spans.map(|spans| spans.spans).unwrap_or_default(),
        }
    }

    /// Returns the lines of a variant from its `def` on.
    fn variant(&self, name: &str) -> Option<&[String]> {
        let (first, last) = self.spans.get(name)?;
        let lines = self.lines.get(first.checked_sub(1)?..*last)?;
        let start = lines.iter().position(|line| {
            line.trim_start().starts_with("def ") || line.trim_start().starts_with("async def ")
        })?;
        Some(&lines[start..])
    }

    /// Returns the line of the change of a mutant in the work, and the change.
    fn change(&self, function: &SourceFunction, key_of_mutant: &str) -> (u64, String) {
        let first = function.own_line as u64;
        let unknown = || (first, "the engine shows no change".to_owned());
        let name = key_of_mutant.rsplit('.').next().unwrap_or(key_of_mutant);
        let Some((original, _)) = name.rsplit_once("__mutmut_") else { return unknown() };
        let original = self.variant(&format!("{original}__mutmut_orig"));
        let (Some(original), Some(mutant)) = (original, self.variant(name)) else {
            return unknown();
        };
        // The first line has the name of the variant.
        let differs = |at: &usize| original.get(*at) != mutant.get(*at);
        let Some(at) = (1..original.len().max(mutant.len())).find(differs) else {
            return unknown();
        };
        let line = |mark: char, lines: &[String]| {
            lines.get(at).map(|line| format!("{mark} {}\n", line.trim())).unwrap_or_default()
        };
        let change = line('-', original) + &line('+', mutant);
        (first + at as u64, change.trim_end().to_owned())
    }
}
