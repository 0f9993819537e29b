//! Settings of the user's repository that decide what a commit of its files contains.
//!
//! They are read once, when a session begins. A later change of the configuration, by an agent for example, has no
//! effect on the snapshots of that session.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::commands::SnapshotCommands;
use crate::lfs::LFS_CLEAN_ARGUMENT;
use crate::repo::{FoundRepository, RepoError, quoted, state_file};

/// The most bytes of a file with patterns or attributes.
const FILE_MAX: u64 = 4 * 1024 * 1024;
/// Settings of files, as a pattern for `git config`.
const NAMES: &str = r"^(core\.(autocrlf|eol|symlinks|filemode|ignorecase|precomposeunicode|excludesfile|attributesfile|sparsecheckout|sparsecheckoutcone)|filter\.lfs\.(clean|process))$";
/// Settings that are copied, apart from `core.autocrlf` and `core.eol`.
const COPIED: [&str; 4] =
    ["core.symlinks", "core.filemode", "core.ignorecase", "core.precomposeunicode"];
/// Attributes that turn every conversion off. In `info/attributes` they have precedence over all others.
const NO_CONVERSION: &str = "\n* -text -ident !eol !crlf !working-tree-encoding\n";
/// The start of a setting or attribute that converts more than line ends.
const CONVERTING: [&str; 2] = ["ident", "working-tree-encoding"];

/// How a commit changes the content of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Conversion {
    /// It does not, as far as settings and attributes say.
    #[default]
    Off,
    /// Line ends alone: files without a carriage return stay as they are.
    LineEnds,
    /// In any way.
    Any,
}

#[derive(Debug, Default)]
pub(super) struct CommitSettings {
    core: Vec<(&'static str, String)>,
    autocrlf: Option<String>,
    eol: Option<String>,
    is_sha256: bool,
    /// Patterns of ignored files, from all files that are not part of the work.
    excludes: Vec<u8>,
    /// The attributes of all of the user's repositories.
    global_attributes: Vec<u8>,
    /// The attributes of this repository.
    attributes: Vec<u8>,
    sparse: Option<SparsePatterns>,
    /// The command that makes pointers to large files, if the user's git does so.
    lfs_clean: Option<String>,
}

#[derive(Debug)]
struct SparsePatterns {
    patterns: Vec<u8>,
    is_cone: bool,
}

impl CommitSettings {
    pub(super) fn read(
        commands: &SnapshotCommands,
        found: &FoundRepository,
    ) -> Result<CommitSettings, RepoError> {
        let git_dir = &found.git_dir;
        let said = commands.users(git_dir, &["config", "--null", "--get-regexp", NAMES])?;
        let values = match said.code {
            1 => BTreeMap::new(),
            _ => parse(&said.well("config")?),
        };
        let bool_of = |name: &str| values.get(name).map(|value| as_bool(value.as_deref()));
        let is_on = |name: &str| bool_of(name) == Some(Some(true));
        let core = COPIED.into_iter().filter_map(|name| {
            let value = bool_of(name).flatten()?;
            Some((name, value.to_string()))
        });
        let word = |name: &str, words: &[&str]| {
            let value = values.get(name)?.as_deref()?.to_ascii_lowercase();
            words.contains(&value.as_str()).then_some(value)
        };
        let autocrlf = word("core.autocrlf", &["input"])
            .or_else(|| bool_of("core.autocrlf").flatten().map(|value| value.to_string()));
        let path = |name: &str| -> Result<Option<PathBuf>, RepoError> {
            let key = format!("core.{name}");
            if !values.contains_key(&key) {
                return Ok(None);
            }
            let said =
                commands.users(git_dir, &["config", "--null", "--type=path", "--get", &key])?;
            let bytes = said.well("config")?;
            let text = String::from_utf8_lossy(&bytes);
            Ok(Some(PathBuf::from(text.trim_end_matches('\0'))))
        };
        let default = |name: &str| {
            let own = commands.variable("XDG_CONFIG_HOME").filter(|value| !value.is_empty());
            let home = || commands.variable("HOME").map(|home| Path::new(home).join(".config"));
            Some(own.map(PathBuf::from).or_else(home)?.join("git").join(name))
        };
        // An empty value names no file.
        let file = |path: Option<PathBuf>| match path.filter(|path| path.is_absolute()) {
            Some(path) => content(&path),
            None => Ok(Vec::new()),
        };
        let mut excludes = file(path("excludesfile")?.or_else(|| default("ignore")))?;
        excludes.push(b'\n');
        excludes.extend(content(&found.common.join("info/exclude"))?);
        let sparse = match is_on("core.sparsecheckout") {
            false => None,
            true => Some(SparsePatterns {
                patterns: content(&git_dir.join("info/sparse-checkout"))?,
                is_cone: is_on("core.sparsecheckoutcone"),
            }),
        };
        Ok(CommitSettings {
            core: core.collect(),
            autocrlf,
            eol: word("core.eol", &["lf", "crlf", "native"]),
            is_sha256: is_sha256(commands, found)?,
            excludes,
            global_attributes: file(path("attributesfile")?.or_else(|| default("attributes")))?,
            attributes: content(&found.common.join("info/attributes"))?,
            sparse,
            lfs_clean: match values.keys().any(|name| name.starts_with("filter.lfs.")) {
                true => Some(lfs_clean(commands, found)?),
                false => None,
            },
        })
    }

    /// Returns whether hookloop makes pointers to large files.
    pub(super) fn has_filter(&self) -> bool {
        self.lfs_clean.is_some()
    }

    /// Returns whether modes and names in a commit are not those of the files.
    fn has_own_modes(&self) -> bool {
        let is = |name: &str, wanted: &str| {
            self.core.iter().any(|(known, value)| *known == name && value == wanted)
        };
        is("core.filemode", "false")
            || is("core.symlinks", "false")
            || is("core.ignorecase", "true")
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }

    /// Returns how a commit converts files, given the text of all attribute files among them.
    pub(super) fn conversion(&self, attributes_in_files: &[u8]) -> Conversion {
        let all = [attributes_in_files, &self.attributes, &self.global_attributes];
        let text = all.map(String::from_utf8_lossy).join("\n");
        let words =
            || text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
        if self.has_own_modes()
            || words().any(|word| CONVERTING.iter().any(|name| word.starts_with(name)))
        {
            return Conversion::Any;
        }
        let is_automatic = self.autocrlf.as_deref().is_some_and(|value| value != "false");
        let is_text =
            |word: &str| ["text", "eol", "crlf"].iter().any(|name| word.starts_with(name));
        match is_automatic || words().any(is_text) {
            true => Conversion::LineEnds,
            false => Conversion::Off,
        }
    }

    /// Writes git's own directory for the exact content of files.
    pub(super) fn write_exact(&self, directory: &Path) -> Result<(), RepoError> {
        let mut attributes = self.attributes.clone();
        attributes.extend_from_slice(NO_CONVERSION.as_bytes());
        self.write(directory, "\tautocrlf = false\n", &attributes)
    }

    /// Writes git's own directory for content as a commit of the user has it.
    pub(super) fn write_converted(&self, directory: &Path) -> Result<(), RepoError> {
        self.write(directory, &self.converting(), &self.attributes)
    }

    /// Writes the settings of a checkout in a room, which has the files of a user's own checkout.
    ///
    /// A room has all files of its tree, so there are no patterns of a sparse checkout.
    pub(super) fn write_checkout(&self, directory: &Path) -> Result<(), RepoError> {
        let mut config = String::from("# Written by hookloop.\n[core]\n\tbare = false\n");
        config.push_str(&self.converting());
        // The last value counts. The file system of a room has permissions to execute.
        config.push_str("\tfilemode = true\n");
        config.push_str(format_settings(self.is_sha256));
        for (name, bytes) in [
            ("attributes", self.global_attributes.as_slice()),
            ("info/attributes", &self.attributes),
            ("info/exclude", &self.excludes),
            ("config", config.as_bytes()),
        ] {
            state_file::write(&directory.join(name), bytes)?;
        }
        Ok(())
    }

    /// Returns the settings that convert content.
    fn converting(&self) -> String {
        let mut settings = String::new();
        for (name, value) in &self.core {
            let key = name.trim_start_matches("core.");
            // Writing to a string does not fail.
            let _ = writeln!(settings, "\t{key} = {value}");
        }
        for (key, value) in [("autocrlf", &self.autocrlf), ("eol", &self.eol)] {
            if let Some(value) = value {
                let _ = writeln!(settings, "\t{key} = {value}");
            }
        }
        settings.push_str("\tsafecrlf = false\n");
        settings
    }

    fn write(&self, directory: &Path, settings: &str, attributes: &[u8]) -> Result<(), RepoError> {
        for name in ["refs", "info"] {
            state_file::make_directory(&directory.join(name))?;
        }
        let mut config = String::from("# Written by hookloop.\n");
        config.push_str("[core]\n\tbare = false\n");
        config.push_str(settings);
        let global = directory.join("attributes");
        let _ = writeln!(config, "\tattributesFile = {}", quoted(&global.to_string_lossy()));
        // The user's own file is part of `info/exclude`.
        config.push_str("\texcludesFile = /dev/null\n");
        if let Some(sparse) = &self.sparse {
            let cone = sparse.is_cone;
            let _ = writeln!(config, "\tsparseCheckout = true\n\tsparseCheckoutCone = {cone}");
            state_file::write(&directory.join("info/sparse-checkout"), &sparse.patterns)?;
        }
        if let Some(command) = &self.lfs_clean {
            let command = command.replace('\\', "\\\\").replace('"', "\\\"");
            let _ =
                writeln!(config, "[filter \"lfs\"]\n\tclean = \"{command}\"\n\trequired = true");
        }
        config.push_str(format_settings(self.is_sha256));
        state_file::write(&directory.join("config"), config.as_bytes())?;
        state_file::write(&global, &self.global_attributes)?;
        state_file::write(&directory.join("info/attributes"), attributes)?;
        state_file::write(&directory.join("info/exclude"), &self.excludes)?;
        if !directory.join("HEAD").exists() {
            state_file::write(&directory.join("HEAD"), super::NO_HEAD)?;
        }
        Ok(())
    }
}

/// Returns whether the names of objects in a repository are SHA-256.
pub(super) fn is_sha256(
    commands: &SnapshotCommands,
    found: &FoundRepository,
) -> Result<bool, RepoError> {
    let said = commands.users(&found.git_dir, &["rev-parse", "--show-object-format"])?;
    match String::from_utf8_lossy(&said.well("rev-parse")?).trim() {
        "sha1" => Ok(false),
        "sha256" => Ok(true),
        other => Err(RepoError::permanent(format!("hookloop does not know `{other}` objects"))),
    }
}

/// Returns the settings of a repository's format, for the end of its configuration.
pub(super) fn format_settings(is_sha256: bool) -> &'static str {
    match is_sha256 {
        false => "[core]\n\trepositoryFormatVersion = 0\n",
        true => "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n",
    }
}

/// Returns the command line that makes pointers to large files.
fn lfs_clean(commands: &SnapshotCommands, found: &FoundRepository) -> Result<String, RepoError> {
    let program = commands.keepers.program().map_err(RepoError::io(Path::new("/proc/self/exe")))?;
    let word = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    Ok(format!(
        "{} {LFS_CLEAN_ARGUMENT} {} {}",
        word(&program),
        word(&commands.lfs()),
        word(&found.common.join("lfs/objects")),
    ))
}

/// Returns the content of a file; nothing if there is none.
fn content(path: &Path) -> Result<Vec<u8>, RepoError> {
    match fs::metadata(path) {
        Err(error) if state_file::absent(&error) => Ok(Vec::new()),
        Err(error) => Err(RepoError::io(path)(error)),
        Ok(found) if !found.is_file() || found.len() > FILE_MAX => {
            let why = format!("{} is not a file of at most {FILE_MAX} bytes", path.display());
            Err(RepoError::permanent(why))
        }
        Ok(_) => fs::read(path).map_err(RepoError::io(path)),
    }
}

/// Returns the last value of each setting. A setting without a value is on.
fn parse(output: &[u8]) -> BTreeMap<String, Option<String>> {
    let text = String::from_utf8_lossy(output);
    let records = text.split('\0').filter(|record| !record.is_empty());
    let read = |record: &str| match record.split_once('\n') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (record.to_owned(), None),
    };
    records.map(read).collect()
}

fn as_bool(value: Option<&str>) -> Option<bool> {
    let Some(value) = value else { return Some(true) };
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" | "" => Some(false),
        _ => None,
    }
}
