//! The commands that install a project's packages in a clean room, by its lock files and manifests.
//!
//! This module only reads files. A command is known if its packages are installed in the working directory, in a
//! directory that git usually ignores: `node_modules`, `.venv`, `vendor`.

mod virtual_env;

use std::ffi::OsStr;
use std::path::Path;

use crate::environment::packages_of;
use crate::test_detection::javascript::{self, PackageManager};
use crate::test_detection::reading::TestedProject;

/// Files beside `package.json` that decide which packages are installed.
const NODE_SETTINGS: [&str; 4] = [".npmrc", ".yarnrc.yml", "pnpm-workspace.yaml", "bunfig.toml"];
/// The results of Node's package managers.
const NODE_RESULTS: [&str; 3] = ["node_modules", ".pnp.cjs", ".yarn"];
/// Tools with one install command: their manifest, lock file, result and command.
const OTHERS: [OtherSetup; 4] = [
    OtherSetup {
        files: ["Gemfile", "Gemfile.lock"],
        result: "vendor/bundle",
        command: "bundle config set --local path vendor/bundle && bundle install",
    },
    OtherSetup { files: ["Gemfile", "Gemfile.lock"], result: ".", command: "bundle install" },
    OtherSetup {
        files: ["composer.json", "composer.lock"],
        result: "vendor",
        command: "composer install",
    },
    OtherSetup { files: ["mix.exs", "mix.lock"], result: "deps", command: "mix deps.get" },
];

struct OtherSetup {
    /// The manifest and the lock file.
    files: [&'static str; 2],
    /// The file or directory that the command creates.
    result: &'static str,
    command: &'static str,
}

/// A command that installs packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSetup {
    pub command: String,
    /// The directory of the lock file, relative to the project's root. Empty for the root.
    pub directory: String,
    /// The files that decide which packages are installed, relative to the project's root.
    pub inputs: Vec<String>,
}

/// The gate for which packages are installed.
#[derive(Clone, Copy, Debug)]
pub struct SetupGround<'g> {
    /// The project's root.
    pub root: &'g Path,
    /// The directory of the gate, relative to the root. Empty for the root.
    pub directory: &'g str,
    /// The command line of the gate.
    pub command: &'g str,
    /// The search path of programs.
    pub path: &'g OsStr,
}

/// Returns the setups that are known for a gate, each of another tool. Skips unreadable files.
///
/// The lock file or manifest is in the directory of the gate, or in the nearest one above, up to the project's root.
pub fn known_setups(ground: SetupGround<'_>) -> Vec<RoomSetup> {
    let places: Vec<SetupPlace> = upwards(ground.directory)
        .filter_map(|directory| {
            let project = TestedProject::new(&ground.root.join(directory)).ok()?;
            Some(SetupPlace { directory, project })
        })
        .collect();
    let python = || places.iter().find_map(|place| virtual_env::setup(place, ground));
    let node = || node(&places);
    let others = || places.iter().find_map(other);
    [node(), python(), others()].into_iter().flatten().collect()
}

/// A directory in which packages may be installed.
struct SetupPlace<'p> {
    /// Relative to the project's root.
    directory: &'p str,
    project: TestedProject,
}

impl SetupPlace<'_> {
    fn has(&self, file: &str) -> bool {
        matches!(self.project.has(file), Ok(true))
    }

    fn exists(&self, name: &str) -> bool {
        self.project.root().join(name).exists()
    }

    /// Returns a setup in this directory, with those of the inputs that exist.
    fn setup<'i>(&self, command: String, inputs: impl IntoIterator<Item = &'i str>) -> RoomSetup {
        let there = inputs.into_iter().filter(|file| self.has(file));
        let inputs = there.map(|file| self.path_of(file)).collect();
        RoomSetup { command, directory: self.directory.to_owned(), inputs }
    }

    fn path_of(&self, file: &str) -> String {
        match self.directory {
            "" => file.to_owned(),
            directory => format!("{directory}/{file}"),
        }
    }
}

/// Returns a directory and those above it, up to the root: `a/b`, `a` and the empty path.
fn upwards(directory: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(directory), above)
}

fn above<'d>(directory: &&'d str) -> Option<&'d str> {
    match *directory {
        "" => None,
        inner => Some(inner.rsplit_once('/').map_or("", |(up, _)| up)),
    }
}

fn node(places: &[SetupPlace<'_>]) -> Option<RoomSetup> {
    let nearest = places.first()?;
    let has_lock = |place: &&SetupPlace<'_>| {
        place.has("package.json") && javascript::LOCK_FILES.iter().any(|(file, _)| place.has(file))
    };
    let has_packages = |place: &&SetupPlace<'_>| {
        let text = place.project.read("package.json").ok().flatten();
        text.is_some_and(|text| !packages_of(&text).is_empty())
    };
    let place = places.iter().find(has_lock).or_else(|| places.iter().find(has_packages))?;
    let is_installed =
        [nearest, place].iter().any(|place| NODE_RESULTS.iter().any(|result| place.exists(result)));
    if !is_installed {
        return None;
    }
    let manager = javascript::manager_of(&place.project).ok()??;
    let is_locked = javascript::LOCK_FILES
        .iter()
        .any(|(file, of)| *of == manager && is_lock(file) && place.has(file));
    let command = match (manager, is_locked) {
        (PackageManager::Npm, true) => "npm ci",
        (PackageManager::Npm, false) => "npm install --no-package-lock",
        (PackageManager::Pnpm, true) => "pnpm install --frozen-lockfile",
        (PackageManager::Pnpm, false) => "pnpm install --no-lockfile",
        (PackageManager::Yarn, true) => match javascript::major_of_yarn(&place.project).ok()? {
            1 => "yarn install --frozen-lockfile",
            _ => "yarn install --immutable",
        },
        (PackageManager::Yarn, false) => "yarn install",
        (PackageManager::Bun, true) => "bun install --frozen-lockfile",
        (PackageManager::Bun, false) => "bun install --no-save",
    };
    let locks = javascript::LOCK_FILES.iter().filter(|(_, of)| *of == manager);
    let locks = locks.map(|(file, _)| *file).filter(|file| is_lock(file));
    let inputs = ["package.json"].into_iter().chain(locks).chain(NODE_SETTINGS);
    let mut setup = place.setup(command.to_owned(), inputs);
    // The packages of members are installed, too.
    if matches!(javascript::workspace(&place.project), Ok(Some(_))) {
        setup.inputs.push(place.path_of("**/package.json"));
    }
    Some(setup)
}

/// Whether a file of a package manager is its lock file, not its settings.
fn is_lock(file: &str) -> bool {
    !NODE_SETTINGS.contains(&file)
}

fn other(place: &SetupPlace<'_>) -> Option<RoomSetup> {
    let is_known = |other: &&OtherSetup| place.has(other.files[0]) && place.exists(other.result);
    let other = OTHERS.iter().find(is_known)?;
    Some(place.setup(other.command.to_owned(), other.files))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes files, and returns the setups of a gate. A name that ends with `/` is a directory.
    pub(super) fn setups_of(
        files: &[(&str, &str)],
        directory: &str,
        command: &str,
    ) -> Vec<RoomSetup> {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            if name.ends_with('/') {
                fs::create_dir_all(&path).unwrap();
                continue;
            }
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        known_setups(SetupGround {
            root: home.path(),
            directory,
            command,
            path: OsStr::new("/usr/bin:/bin"),
        })
    }

    fn setup(command: &str, directory: &str, inputs: &[&str]) -> RoomSetup {
        RoomSetup {
            command: command.to_owned(),
            directory: directory.to_owned(),
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        }
    }

    const PACKAGE: (&str, &str) = ("package.json", r#"{"dependencies": {"a": "1"}}"#);

    #[test]
    fn each_manager_of_node_installs_exactly_the_locked_packages() {
        let modules = ("node_modules/", "");
        for (lock, command) in [
            ("package-lock.json", "npm ci"),
            ("npm-shrinkwrap.json", "npm ci"),
            ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
            ("yarn.lock", "yarn install --frozen-lockfile"),
            ("bun.lock", "bun install --frozen-lockfile"),
        ] {
            let expected = [setup(command, "", &["package.json", lock])];
            assert_eq!(setups_of(&[PACKAGE, modules, (lock, "")], "", "x"), expected, "{lock}");
        }
        let without_lock = [setup("npm install --no-package-lock", "", &["package.json"])];
        assert_eq!(setups_of(&[PACKAGE, modules], "", "x"), without_lock);
        let berry =
            ("package.json", r#"{"packageManager": "yarn@4.5.0", "dependencies": {"a": "1"}}"#);
        let expected = [setup("yarn install --immutable", "", &["package.json", "yarn.lock"])];
        assert_eq!(setups_of(&[berry, modules, ("yarn.lock", "")], "", "x"), expected);
    }

    #[test]
    fn packages_that_are_not_installed_here_need_no_setup() {
        assert_eq!(setups_of(&[PACKAGE, ("package-lock.json", "{}")], "", "npm test"), []);
        assert_eq!(setups_of(&[("composer.json", "{}")], "", "vendor/bin/phpunit"), []);
        assert_eq!(setups_of(&[("Cargo.toml", "")], "", "cargo test"), []);
    }

    #[test]
    fn a_setup_runs_in_the_directory_of_the_lock_file() {
        let files = [
            ("web/package.json", r#"{"workspaces": ["packages/*"]}"#),
            ("web/package-lock.json", "{}"),
            ("web/node_modules/", ""),
            ("web/packages/a/package.json", r#"{"dependencies": {"a": "1"}}"#),
        ];
        let inputs = ["web/package.json", "web/package-lock.json", "web/**/package.json"];
        let expected = [setup("npm ci", "web", &inputs)];
        assert_eq!(setups_of(&files, "web/packages/a", "npm test"), expected);
        assert_eq!(setups_of(&files, "", "make test"), [], "a gate above it");
    }

    #[test]
    fn other_tools_have_their_install_commands() {
        let gems = [("Gemfile", ""), ("Gemfile.lock", "")];
        let inputs = ["Gemfile", "Gemfile.lock"];
        assert_eq!(setups_of(&gems, "", "x"), [setup("bundle install", "", &inputs)]);
        let vendored = [gems[0], gems[1], ("vendor/bundle/", "")];
        let found = setups_of(&vendored, "", "x");
        assert!(found[0].command.ends_with("vendor/bundle && bundle install"), "{found:?}");
        let php = [("composer.json", "{}"), ("vendor/", "")];
        assert_eq!(setups_of(&php, "", "x"), [setup("composer install", "", &["composer.json"])]);
    }
}
