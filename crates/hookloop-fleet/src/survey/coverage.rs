//! Projects in subdirectories of a repository, and root commands that test their members, too.
//!
//! A project below another one gets its own gates unless a command further up runs its tests. In
//! doubt it gets its own gates: tests that run twice cost time, tests that never run hide a
//! failure.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use hookloop_hooks::test_detection::cargo::{self, CargoManifest};
use hookloop_hooks::test_detection::javascript::{self, ScriptCommand};
use hookloop_hooks::test_detection::members::{MemberPatterns, normal, resolved};
use hookloop_hooks::test_detection::reading::TestedProject;
use hookloop_hooks::test_detection::{InheritedTools, NoTests, python};

/// Largest number of path dependencies that are followed in one Cargo workspace.
const PACKAGES_MAX: usize = 10_000;
/// Largest depth of Maven modules that are followed.
const MODULES_MAX: usize = 16;
const GO_WORK: &str = "go.work";
const POM: &str = "pom.xml";
const GRADLE_SETTINGS: [&str; 2] = ["settings.gradle", "settings.gradle.kts"];
const SOLUTIONS: [&str; 2] = [".sln", ".slnx"];
const DOTNET_PROJECTS: [&str; 3] = [".csproj", ".fsproj", ".vbproj"];
const DENO: [&str; 2] = ["deno.json", "deno.jsonc"];

/// The command that runs the tests of a project below the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CoverageRun {
    /// A gate of the project's own.
    Own,
    /// The command of a project further up.
    Covered,
    /// None: the tool refuses to run the tests, for this reason.
    Refused(String),
}

/// The projects of a repository, by directory. The root is the empty path.
pub(super) struct ProjectTree {
    root: PathBuf,
    directories: BTreeSet<String>,
    manifests: BTreeMap<String, CargoManifest>,
    /// Runners of the tests in each directory.
    runners: BTreeMap<String, Vec<&'static str>>,
    /// Directories whose tests a command of a project further up runs.
    covered: BTreeSet<String>,
    /// Cached script commands by directory and name. Each lookup is a search, and every member
    /// repeats it.
    scripts: RefCell<BTreeMap<(String, String), Option<ScriptCommand>>>,
}

impl ProjectTree {
    pub(super) fn new(root: &Path, below: BTreeSet<String>) -> ProjectTree {
        let mut directories = below;
        directories.insert(String::new());
        let mut tree = ProjectTree {
            root: root.to_owned(),
            directories,
            manifests: BTreeMap::new(),
            runners: BTreeMap::new(),
            covered: BTreeSet::new(),
            scripts: RefCell::default(),
        };
        for directory in &tree.directories {
            // The search for tests reports a manifest that cannot be read.
            let manifest =
                tree.project(directory).and_then(|project| cargo::manifest(&project).ok()?);
            tree.manifests.extend(manifest.map(|manifest| (directory.clone(), manifest)));
        }
        tree
    }

    /// Returns all directories, parents before their children.
    pub(super) fn directories(&self) -> impl Iterator<Item = &str> {
        self.directories.iter().map(String::as_str)
    }

    pub(super) fn path(&self, directory: &str) -> PathBuf {
        self.root.join(directory)
    }

    /// Records that a directory has tests of this runner.
    pub(super) fn note(&mut self, directory: &str, runner: &'static str) {
        self.runners.entry(directory.to_owned()).or_default().push(runner);
    }

    pub(super) fn note_covered(&mut self, directory: &str) {
        self.covered.insert(directory.to_owned());
    }

    pub(super) fn covered(&self) -> impl Iterator<Item = &str> {
        self.covered.iter().map(String::as_str)
    }

    /// Returns the tools that a directory inherits from its workspace.
    pub(super) fn inherited(&self, directory: &str) -> InheritedTools {
        let mut tools = InheritedTools::default();
        for (ancestor, path) in self.above(directory) {
            let Some(project) = self.project(ancestor) else { continue };
            if tools.manager.is_none() && is_member(&javascript::workspace(&project), path) {
                tools.manager = javascript::manager_of(&project).ok().flatten();
            }
            if tools.launcher.is_empty() && is_member(&python::workspace(&project), path) {
                tools.launcher = python::launcher_of_members(&project).unwrap_or_default();
            }
        }
        tools
    }

    /// Returns the command that runs the tests of a runner in a directory.
    pub(super) fn tests(&self, directory: &str, runner: &str) -> CoverageRun {
        let is_covered = match runner {
            "cargo" => return self.cargo(directory),
            "go" => return self.go(directory),
            "npm" | "pnpm" | "yarn" | "bun" => self.script(directory, "test"),
            "pytest" | "tox" | "nox" | "django" => self.python(directory),
            "maven" => self.maven(directory),
            "gradle" => self.gradle(directory),
            "dotnet" => self.dotnet(directory),
            "deno" => self.any_above(directory, |_, project| has_any(project, &DENO)),
            "mix" => {
                self.any_above(directory, |_, project| has_text(project, "mix.exs", "apps_path"))
            }
            // One command of these tools builds everything below its directory.
            "sbt" | "cmake" | "make" | "just" => {
                self.any_above(directory, |ancestor, _| self.has_runner(ancestor, runner))
            }
            _ => false,
        };
        if is_covered { CoverageRun::Covered } else { CoverageRun::Own }
    }

    /// Whether a script of the workspace root also covers the script of this member.
    pub(super) fn script(&self, directory: &str, script: &str) -> bool {
        self.any_above(directory, |ancestor, project| {
            let path = below(directory, ancestor);
            if !is_member(&javascript::workspace(project), path) {
                return false;
            }
            let command = self.command(ancestor, project, script);
            // A linter in the root reads all files below it. A test runner may not.
            command
                .is_some_and(|ScriptCommand { runs_members, .. }| runs_members || script != "test")
        })
    }

    fn command(
        &self,
        directory: &str,
        project: &TestedProject,
        script: &str,
    ) -> Option<ScriptCommand> {
        let key = (directory.to_owned(), script.to_owned());
        let mut scripts = self.scripts.borrow_mut();
        let found = || javascript::command(project, script, None).ok().flatten();
        scripts.entry(key).or_insert_with(found).clone()
    }

    fn cargo(&self, directory: &str) -> CoverageRun {
        let has_own = |directory: &str| {
            self.manifests.get(directory).and_then(|manifest| manifest.workspace.as_ref())
        };
        if has_own(directory).is_some() {
            return CoverageRun::Own;
        }
        let root = self.above(directory).find_map(|(up, path)| Some((up, path, has_own(up)?)));
        let Some((root, path, workspace)) = root else { return CoverageRun::Own };
        if workspace.excludes(path) {
            return CoverageRun::Own;
        }
        if workspace.names(path) || self.packages_by_path(root).contains(directory) {
            return CoverageRun::Covered;
        }
        let file = place(root, cargo::FILE);
        CoverageRun::Refused(format!(
            "`{}` is neither a member of the workspace of `{file}` nor excluded from it",
            place(directory, cargo::FILE)
        ))
    }

    /// Returns the packages that workspace members depend on by path, which Cargo makes members.
    fn packages_by_path(&self, root: &str) -> BTreeSet<String> {
        let workspace = self.manifests.get(root).and_then(|manifest| manifest.workspace.as_ref());
        let is_named = |directory: &String| {
            let is_below = root.is_empty() || directory.starts_with(&format!("{root}/"));
            is_below && workspace.is_some_and(|workspace| workspace.names(below(directory, root)))
        };
        let mut waiting: Vec<String> =
            self.manifests.keys().filter(|path| is_named(path)).cloned().collect();
        waiting.push(root.to_owned());
        let mut found: BTreeSet<String> = BTreeSet::new();
        while let Some(directory) = waiting.pop() {
            if found.len() >= PACKAGES_MAX || !found.insert(directory.clone()) {
                continue;
            }
            let manifest = self.manifests.get(&directory);
            for path in manifest.into_iter().flat_map(|manifest| &manifest.path_dependencies) {
                waiting.extend(resolved(&directory, path));
            }
        }
        found
    }

    fn go(&self, directory: &str) -> CoverageRun {
        let own = (directory, "");
        for (ancestor, path) in std::iter::once(own).chain(self.above(directory)) {
            let text = self.project(ancestor).and_then(|project| project.read(GO_WORK).ok()?);
            let Some(text) = text else { continue };
            if go_modules(&text).any(|module| normal(module) == path) {
                return CoverageRun::Own;
            }
            return CoverageRun::Refused(format!(
                "`{}` is not listed in `{}`",
                place(directory, "go.mod"),
                place(ancestor, GO_WORK)
            ));
        }
        CoverageRun::Own
    }

    fn python(&self, directory: &str) -> bool {
        let is_project = self
            .project(directory)
            .is_some_and(|project| matches!(python::is_project(&project), Ok(true)));
        self.any_above(directory, |ancestor, project| {
            let runs_pytest = self.has_runner(ancestor, "pytest");
            let is_python = runs_pytest
                || ["tox", "nox", "django"].iter().any(|runner| self.has_runner(ancestor, runner));
            let collects = python::collects(project, below(directory, ancestor));
            (is_python && !is_project) || (runs_pytest && matches!(collects, Ok(true)))
        })
    }

    fn maven(&self, directory: &str) -> bool {
        let mut ancestors = self.above(directory);
        ancestors.any(|(ancestor, _)| self.has_module(ancestor, directory, MODULES_MAX))
    }

    fn has_module(&self, from: &str, wanted: &str, levels: usize) -> bool {
        let text = self.project(from).and_then(|project| project.read(POM).ok()?);
        let modules = text.map(|text| maven_modules(&text)).unwrap_or_default();
        levels > 0
            && modules.iter().filter_map(|module| resolved(from, module)).any(|module| {
                let is_above = wanted.starts_with(&format!("{module}/"));
                module == wanted || (is_above && self.has_module(&module, wanted, levels - 1))
            })
    }

    /// Whether a build further up includes this directory.
    ///
    /// Gradle uses the nearest settings file above, unless the directory has its own.
    fn gradle(&self, directory: &str) -> bool {
        let has_settings = |project: &TestedProject| has_any(project, &GRADLE_SETTINGS);
        let has_own = self.project(directory).is_some_and(|project| has_settings(&project));
        !has_own && self.any_above(directory, |_, project| has_settings(project))
    }

    fn dotnet(&self, directory: &str) -> bool {
        let names = |project: &TestedProject, ends: &[&str]| -> Vec<String> {
            let names = project.names().unwrap_or_default();
            names.into_iter().filter(|name| ends.iter().any(|end| name.ends_with(end))).collect()
        };
        let Some(own) = self.project(directory).map(|project| names(&project, &DOTNET_PROJECTS))
        else {
            return false;
        };
        self.any_above(directory, |_, project| {
            let solutions = names(project, &SOLUTIONS);
            let text = solutions.iter().filter_map(|file| project.read(file).ok()?);
            let text: String = text.collect();
            !own.is_empty() && own.iter().all(|name| text.contains(name.as_str()))
        })
    }

    fn any_above(&self, directory: &str, is_meant: impl Fn(&str, &TestedProject) -> bool) -> bool {
        let mut ancestors = self.above(directory);
        ancestors.any(|(up, _)| self.project(up).is_some_and(|project| is_meant(up, &project)))
    }

    /// Returns the projects above a directory, nearest first, each with the path to the directory.
    fn above<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let ends = directory.rmatch_indices('/').map(|(at, _)| at);
        let ends = ends.chain((!directory.is_empty()).then_some(0));
        let ancestors = ends.map(move |end| &directory[..end]);
        ancestors
            .filter(|up| self.directories.contains(*up))
            .map(move |up| (up, below(directory, up)))
    }

    fn has_runner(&self, directory: &str, runner: &str) -> bool {
        self.runners.get(directory).is_some_and(|runners| runners.contains(&runner))
    }

    fn project(&self, directory: &str) -> Option<TestedProject> {
        TestedProject::new(&self.path(directory)).ok()
    }
}

/// Returns the path of a directory relative to one above it.
fn below<'a>(directory: &'a str, ancestor: &str) -> &'a str {
    directory.strip_prefix(ancestor).unwrap_or(directory).trim_start_matches('/')
}

fn place(directory: &str, file: &str) -> String {
    if directory.is_empty() { file.to_owned() } else { format!("{directory}/{file}") }
}

fn is_member(members: &Result<Option<MemberPatterns>, NoTests>, path: &str) -> bool {
    matches!(members, Ok(Some(members)) if members.contains(path))
}

fn has_any(project: &TestedProject, files: &[&str]) -> bool {
    files.iter().any(|file| matches!(project.has(file), Ok(true)))
}

fn has_text(project: &TestedProject, file: &str, part: &str) -> bool {
    matches!(project.read(file), Ok(Some(text)) if text.contains(part))
}

/// Returns the directories in `go.work`, in both forms: `use ./a` and a parenthesized list.
fn go_modules(text: &str) -> impl Iterator<Item = &str> {
    let mut is_in_list = false;
    text.lines().filter_map(move |line| {
        let line = line.split("//").next().unwrap_or_default().trim();
        let is_listed = is_in_list && line != ")";
        let used = line.strip_prefix("use").filter(|rest| rest.starts_with([' ', '\t', '(']));
        let rest = match used.map(str::trim) {
            Some(rest) if rest.starts_with('(') => {
                is_in_list = true;
                return None;
            }
            Some(rest) => rest,
            None if is_listed => line,
            None => {
                is_in_list = false;
                return None;
            }
        };
        (!rest.is_empty()).then(|| rest.trim_matches('"'))
    })
}

/// Returns the directories of the modules in a `pom.xml`. A module may also be the path of a file.
fn maven_modules(text: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        plain.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, behind)| behind);
    }
    plain.push_str(rest);
    let parts = plain.split("<module>").skip(1);
    let modules = parts.filter_map(|part| Some(part.split_once("</module>")?.0.trim()));
    let directory = |module: &str| match module.strip_suffix(".xml") {
        Some(_) => module.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned(),
        None => module.to_owned(),
    };
    modules.map(directory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_go_and_maven_are_read() {
        let text = "go 1.22\n\nuse ./one // first\nuse (\n\t./two\n\t\"./three\"\n)\nreplace x => ./four\n";
        assert_eq!(go_modules(text).collect::<Vec<_>>(), ["./one", "./two", "./three"]);
        let text = "<modules><module>a</module><!-- <module>old</module> -->\n<module> b/pom.xml </module></modules>";
        assert_eq!(maven_modules(text), ["a", "b"]);
    }
}
