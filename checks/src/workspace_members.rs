//! The packages, targets and dependencies that Cargo knows.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::CheckError;

/// The directory of the packages that are the product, and of its test kit.
pub const PRODUCT_DIRECTORY: &str = "crates";

/// A package of the workspace.
#[derive(Debug, Deserialize)]
pub struct MemberPackage {
    pub name: String,
    pub manifest_path: PathBuf,
    pub targets: Vec<MemberTarget>,
    pub dependencies: Vec<MemberDependency>,
}

/// A library, a program or a test executable.
#[derive(Debug, Deserialize)]
pub struct MemberTarget {
    pub name: String,
    pub kind: Vec<String>,
    pub src_path: PathBuf,
}

/// A dependency of a package. `path` is set if it is in the workspace.
#[derive(Debug, Deserialize)]
pub struct MemberDependency {
    pub name: String,
    pub kind: Option<String>,
    pub path: Option<PathBuf>,
}

impl MemberPackage {
    /// Returns whether the package is below `crates/`.
    pub fn is_product(&self, root: &Path) -> bool {
        self.manifest_path.starts_with(root.join(PRODUCT_DIRECTORY))
    }
}

impl MemberTarget {
    pub fn is_library(&self) -> bool {
        self.kind.iter().any(|kind| kind == "lib")
    }

    /// Returns whether the target is a library or a program.
    pub fn is_product(&self) -> bool {
        self.is_library() || self.kind.iter().any(|kind| kind == "bin")
    }

    /// Returns the name of the target's crate in paths.
    pub fn crate_name(&self) -> String {
        self.name.replace('-', "_")
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MemberPackage>,
}

/// Returns the directory of the workspace.
pub fn workspace_root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// Returns all members of the workspace in `root`, by name.
pub fn workspace_members(root: &Path) -> Result<Vec<MemberPackage>, CheckError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .map_err(|error| CheckError::Metadata(error.to_string()))?;
    if !output.status.success() {
        return Err(CheckError::Metadata(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| CheckError::Metadata(error.to_string()))?;
    let mut packages = metadata.packages;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}
