//! The parts of a real session that measure the strength of tests: the changed functions, the files of the engine, and
//! the reports.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::options::StrengthRules;
use hookloop_evidence::{EvidenceRole, SourceLanguage, changed_functions, functions_in};
use hookloop_git::snapshot::{FileState, Snapshots, TreeEdit, top_of};
use hookloop_mutation::{
    EngineRequest, MutationTarget, TestedMutant, engine_for, engine_words, plan_for, stryker_report,
};
use hookloop_process::{WriteOptions, write_whole};

use super::base_plan::relevant_changes;
use super::live_world::{LiveWorld, known};
use super::observer::SessionObserver;
use super::strength_plan::{StrengthPlan, StrengthWorld};
use super::unproven_tests::UnprovenTests;
use crate::machine::random_word;

/// Maximum mutants that an engine tests at the same time. Tests of one project can disturb each other.
const JOBS_MAX: usize = 4;
/// Maximum changed sources that are searched for functions.
const SOURCES_MAX: usize = 2_000;
/// The directory of a session with the reports of mutation engines.
const REPORTS: &str = "mutation";
const MANIFEST: &str = "package.json";
/// The ending of files with types only.
const STUB_ENDING: &str = ".pyi";
/// Commands that run a script of `package.json`.
const PACKAGE_MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

impl<O: SessionObserver> StrengthWorld for LiveWorld<'_, O> {
    fn plan_strength(
        &mut self,
        gate: &Hook,
        rules: StrengthRules,
        tree: &str,
    ) -> Result<Option<StrengthPlan>, String> {
        let HookHandler::Command(command) = &gate.handler else {
            return Err("`strength` needs a gate with a `command`".to_owned());
        };
        // A start that is recorded at a claim would be the work itself.
        if !self.base.with_extension("tests").exists() {
            return Err("the files at the start of the work are unknown".to_owned());
        }
        let base = self.tree_before_work()?;
        let snapshot = self.take_snapshot().ok_or("the files of the work are unknown")?;
        let top = top_of(&snapshot).map_err(|error| error.to_string())?;
        let root = self.place.root().canonicalize().map_err(|error| error.to_string())?;
        let below = root.strip_prefix(&top).unwrap_or(Path::new(""));
        let below = below.join(gate.options.cwd.as_deref().unwrap_or(""));
        let snapshots = self.snapshots().ok_or("git is not installed")?;
        let before = WorkFiles::read(snapshots, &base, below.clone())?;
        let work = WorkFiles::read(snapshots, tree, below)?;
        let protect = gate.options.base_tests.as_ref().map(|rules| rules.protect.clone());
        let ChangedFunctions { mut targets, sources } =
            work.changed_functions((&base, tree), &protect.unwrap_or_default())?;
        if targets.is_empty() {
            return Ok(None);
        }
        let script = work.text(MANIFEST).and_then(|manifest| script_of(command, &manifest));
        let languages: Vec<SourceLanguage> = targets.iter().map(|target| target.language).collect();
        let engine = engine_for(command, script.as_deref(), &languages)?;
        targets.retain(|target| engine.mutates(target.language));
        if targets.is_empty() {
            return Ok(None);
        }
        let entries = work.entries();
        let request = EngineRequest {
            command,
            script: script.as_deref(),
            targets: &targets,
            most: rules.most,
            jobs: thread::available_parallelism().map_or(1, usize::from).min(JOBS_MAX),
            entries: &entries,
            file: &|path| work.text(path),
            base_file: &|path| before.text(path),
            token: &random_word(),
        };
        let engine = plan_for(engine, &request)?;
        let edits: Vec<(Vec<u8>, TreeEdit)> = engine
            .files
            .iter()
            .map(|(path, text)| {
                let content = TreeEdit::Content {
                    mode: "100644".to_owned(),
                    content: text.clone().into_bytes(),
                };
                (work.below.join(path).into_os_string().into_encoded_bytes(), content)
            })
            .collect();
        let tree = snapshots.edited_tree(tree, &edits).map_err(|error| error.to_string())?;
        Ok(Some(StrengthPlan { engine, targets, tree, sources }))
    }

    fn room_directory(&self, hook: &Hook) -> Option<PathBuf> {
        let place = self.place.in_room(self.session_room.place.clone());
        let room = place.room_of(hook)?;
        Some(room.files().join(hook.options.cwd.as_deref().unwrap_or("")))
    }

    fn note_measured_work(&mut self) {
        let unproven = UnprovenTests::of(self.runner.state(), self.place.root());
        known(unproven.forget_first_tree(), "the start of the measured work stays");
    }

    fn keep_mutation_report(
        &self,
        gate: &str,
        rules: StrengthRules,
        (plan, mutants): (&StrengthPlan, &[TestedMutant]),
    ) -> Option<PathBuf> {
        let source_of = |path: &str| plan.sources.get(path).cloned();
        let engine = plan.engine.engine;
        let report =
            stryker_report(engine, rules.at_least, (&plan.targets, mutants), source_of).to_string();
        let parent = self.directory.join(REPORTS);
        let path = parent.join(format!("{gate}-{}.json", &plan.tree[..12.min(plan.tree.len())]));
        let kept = fs::create_dir_all(&parent)
            .and_then(|()| write_whole(&path, report.as_bytes(), WriteOptions::CACHE));
        known(kept, "the report of a mutation engine is not kept")?;
        Some(path)
    }
}

/// The changed functions of the work, and the files with them.
#[derive(Default)]
struct ChangedFunctions {
    targets: Vec<MutationTarget>,
    /// The texts of these files, by path.
    sources: BTreeMap<String, String>,
}

/// The files of the work below the working directory of a gate.
struct WorkFiles<'s> {
    snapshots: &'s Snapshots,
    below: PathBuf,
    files: Vec<(String, FileState)>,
}

impl<'s> WorkFiles<'s> {
    fn read(snapshots: &'s Snapshots, tree: &str, below: PathBuf) -> Result<Self, String> {
        let states = snapshots.file_states(tree).map_err(|error| error.to_string())?;
        let inside = states.into_iter().filter_map(|(path, state)| {
            let path = String::from_utf8(path).ok()?;
            let path = Path::new(&path).strip_prefix(&below).ok()?.to_str()?.to_owned();
            Some((path, state))
        });
        Ok(WorkFiles { snapshots, files: inside.collect(), below })
    }

    /// Returns the names of the files and directories at the top.
    fn entries(&self) -> Vec<String> {
        let first = |(path, _): &(String, FileState)| path.split('/').next().map(str::to_owned);
        self.files.iter().filter_map(first).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn text(&self, path: &str) -> Option<String> {
        let (_, state) =
            self.files.iter().find(|(known, state)| known == path && !state.is_link())?;
        let mut contents = self.snapshots.contents(&[&state.object]).ok()?;
        String::from_utf8(contents.pop()?).ok()
    }

    /// Returns the changed functions of the work's sources. The error is for a person.
    fn changed_functions(
        &self,
        trees: (&str, &str),
        protect: &[String],
    ) -> Result<ChangedFunctions, String> {
        let changes = relevant_changes(self.snapshots, trees, protect);
        let changes = changes.map_err(|error| error.to_string())?;
        if changes.len() > SOURCES_MAX {
            return Err(format!("the work changed more than {SOURCES_MAX} files"));
        }
        let mut sources: Vec<(String, SourceLanguage, Option<String>, String)> = Vec::new();
        // Functions that only moved, also to another file, are not the work's.
        let mut known: HashSet<String> = HashSet::new();
        for (change, path, role) in changes {
            let path = Path::new(&path).strip_prefix(&self.below).map(Path::to_string_lossy);
            let base = self.text_of(change.from.as_ref())?;
            let work = self.text_of(change.to.as_ref())?;
            let before = base.as_deref().unwrap_or_default();
            if let Some(word) = work.iter().flat_map(|work| engine_words(work)).next()
                && !before.contains(word)
            {
                let path = path.unwrap_or_default();
                return Err(format!(
                    "the work adds `{word}` to {path}, which concerns mutation engines"
                ));
            }
            let EvidenceRole::Source(language) = role else { continue };
            // A source that can't be parsed has no functions that could have moved.
            let moved = functions_in(language, before).unwrap_or_default();
            known.extend(moved.into_iter().map(|function| function.text));
            let (Ok(path), Some(state)) = (path, &change.to) else { continue };
            if state.is_link() {
                return Err(format!("{path} is a link, which no engine mutates"));
            }
            if !path.ends_with(STUB_ENDING) {
                sources.push((path.into_owned(), language, base, work.unwrap_or_default()));
            }
        }
        let mut found = ChangedFunctions::default();
        for (path, language, base, work) in sources {
            let mut functions = changed_functions(language, base.as_deref(), &work)
                .map_err(|error| format!("{path}: {error}"))?;
            functions.retain(|function| !known.contains(&function.text));
            if !functions.is_empty() {
                found.targets.push(MutationTarget { path: path.clone(), language, functions });
                found.sources.insert(path, work);
            }
        }
        Ok(found)
    }

    /// Returns the text of a file; none for no file, and for a link.
    fn text_of(&self, state: Option<&FileState>) -> Result<Option<String>, String> {
        let Some(state) = state.filter(|state| !state.is_link()) else { return Ok(None) };
        let contents = self.snapshots.contents(&[&state.object]);
        let contents = contents.map_err(|error| error.to_string())?;
        Ok(contents.first().map(|content| String::from_utf8_lossy(content).into_owned()))
    }
}

/// Returns the script of `package.json` that a command runs.
fn script_of(command: &CommandText, manifest: &str) -> Option<String> {
    let words: Vec<String> = match command {
        CommandText::Shell(line) => line.split_whitespace().map(str::to_owned).collect(),
        CommandText::Exec(words) => words.clone(),
    };
    let at = words.iter().position(|word| PACKAGE_MANAGERS.contains(&word.as_str()))?;
    let name = words[at + 1..].iter().find(|word| !word.starts_with('-') && *word != "run")?;
    let manifest: serde_json::Value = serde_json::from_str(manifest).ok()?;
    let name = if name == "t" { "test" } else { name };
    Some(manifest["scripts"][name].as_str()?.to_owned())
}
