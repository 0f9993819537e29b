//! The parts of a real session that measure the strength of tests: the changed functions, the files of the engine, and
//! the reports.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use hookloop_core::hook::{CommandText, Hook, HookHandler};
use hookloop_core::options::StrengthRules;
use hookloop_evidence::{EvidenceRole, SourceLanguage, changed_functions};
use hookloop_git::snapshot::{FileState, Snapshots, TreeEdit, top_of};
use hookloop_mutation::{
    EngineRequest, MutationTarget, TestedMutant, engine_for, plan_for, stryker_report,
};
use hookloop_process::{WriteOptions, write_whole};

use super::base_plan::relevant_changes;
use super::live_world::{LiveWorld, known};
use super::observer::SessionObserver;
use super::strength_plan::{StrengthPlan, StrengthWorld};

/// Maximum mutants that an engine tests at the same time. Tests of one project can disturb each other.
const JOBS_MAX: usize = 4;
/// Maximum changed sources that are searched for functions.
const SOURCES_MAX: usize = 2_000;
/// The directory of a session with the reports of mutation engines.
const REPORTS: &str = "mutation";
const MANIFEST: &str = "package.json";
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
        let base = self.tree_before_work()?;
        let snapshot = self.take_snapshot().ok_or("the files of the work are unknown")?;
        let top = top_of(&snapshot).map_err(|error| error.to_string())?;
        let root = self.place.root().canonicalize().map_err(|error| error.to_string())?;
        let below = root.strip_prefix(&top).unwrap_or(Path::new(""));
        let below = below.join(gate.options.cwd.as_deref().unwrap_or(""));
        let snapshots = self.snapshots().ok_or("git is not installed")?;
        let work = WorkFiles::read(snapshots, tree, below)?;
        let protect = gate.options.base_tests.as_ref().map(|rules| rules.protect.clone());
        let mut targets = work.targets((&base, tree), &protect.unwrap_or_default())?;
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
        Ok(Some(StrengthPlan { engine, targets, tree }))
    }

    fn room_directory(&self, hook: &Hook) -> Option<PathBuf> {
        let place = self.place.in_room(self.session_room.place.clone());
        let room = place.room_of(hook)?;
        Some(room.files().join(hook.options.cwd.as_deref().unwrap_or("")))
    }

    fn keep_mutation_report(
        &self,
        gate: &str,
        rules: StrengthRules,
        (plan, mutants, directory): (&StrengthPlan, &[TestedMutant], &Path),
    ) -> Option<PathBuf> {
        let source_of = |path: &str| fs::read_to_string(directory.join(path)).ok();
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

    /// Returns the changed functions of the work's sources.
    fn targets(
        &self,
        trees: (&str, &str),
        protect: &[String],
    ) -> Result<Vec<MutationTarget>, String> {
        let changes = relevant_changes(self.snapshots, trees, protect);
        let changes = changes.map_err(|error| error.to_string())?;
        let mut targets = Vec::new();
        for (change, path, role) in changes {
            let EvidenceRole::Source(language) = role else { continue };
            let (Ok(path), Some(after)) = (Path::new(&path).strip_prefix(&self.below), &change.to)
            else {
                continue;
            };
            if after.is_link() {
                continue;
            }
            if targets.len() == SOURCES_MAX {
                return Err(format!("the work changed more than {SOURCES_MAX} sources"));
            }
            let before = change.from.as_ref().filter(|before| !before.is_link());
            let objects: Vec<&str> =
                before.into_iter().chain([after]).map(|state| state.object.as_str()).collect();
            let contents = self.snapshots.contents(&objects).map_err(|error| error.to_string())?;
            let mut texts =
                contents.iter().map(|content| String::from_utf8_lossy(content).into_owned());
            let base = before.and_then(|_| texts.next());
            let work = texts.next().unwrap_or_default();
            let path = path.to_string_lossy().into_owned();
            let functions = changed_functions(language, base.as_deref(), &work)
                .map_err(|error| format!("{path}: {error}"))?;
            if !functions.is_empty() {
                targets.push(MutationTarget { path, language, functions });
            }
        }
        Ok(targets)
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
