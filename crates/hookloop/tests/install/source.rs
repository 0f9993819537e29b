//! The Rust version that the program needs: the same in every document and workflow.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::install::release::repository;

/// Returns the minimum version of Rust in `Cargo.toml`.
fn minimum() -> String {
    let manifest = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    line.trim_matches('"').to_owned()
}

/// Returns the numbers of a version without its patch, which a minimum version does not have.
fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap_or(0))
}

#[test]
fn the_documents_name_the_minimum_version_of_rust() {
    let sentence = format!("Rust {} or newer", minimum());
    for page in ["README.md", "docs/install.md"] {
        let text = fs::read_to_string(repository().join(page)).unwrap();
        assert!(text.contains(&sentence), "{page} lacks \"{sentence}\"");
        assert_eq!(text.matches(" or newer").count(), text.matches(&sentence).count(), "{page}");
    }
}

/// The oldest compiler that the documents allow builds and tests the program.
#[test]
fn workflows_build_with_the_minimum_version_of_rust() {
    let expected = format!("TOOLCHAIN: \"{}.0\"", minimum());
    let mut count = 0;
    for workflow in ["ci.yml", "release.yml"] {
        let path = repository().join(".github/workflows").join(workflow);
        let text = fs::read_to_string(path).unwrap();
        for line in text.lines().filter(|line| line.contains("TOOLCHAIN:")) {
            assert_eq!(line.trim(), expected, "{workflow}");
            count += 1;
        }
    }
    assert!(count > 0);
}

#[test]
fn no_package_needs_a_newer_rust_than_the_minimum() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(repository()).args(["metadata", "--format-version", "1"]);
    // Packages for other systems are not on this machine unless they were fetched.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    cargo.args(["--filter-platform", &platform, "--locked", "--offline"]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let minimum = numbers(&minimum());
    for package in packages {
        if let Some(needed) = package["rust_version"].as_str() {
            assert!(numbers(needed) <= minimum, "{} needs Rust {needed}", package["id"]);
        }
    }
    assert!(packages.len() > 100, "{} packages", packages.len());
}
