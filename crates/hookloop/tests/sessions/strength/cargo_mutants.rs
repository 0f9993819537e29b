//! Strength by cargo-mutants.

use std::path::PathBuf;

use serde_json::json;

use super::{claims, installed, strength};
use crate::sessions::trusted_project;

const MANIFEST: &str = "[package]\nname = \"cart\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
const TESTS: &str = "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn sums() {\n        \
                     assert_eq!(super::total(&[10, 20], 100), 30);\n    }\n}\n";

#[test]
fn surviving_mutants_of_the_changed_function_are_reported() {
    let programs = installed("rust/bin/cargo-mutants");
    let programs = programs.trim_end_matches("/cargo-mutants");
    // The proxy of rustup needs its own home directory.
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap());
    let toolchain = cargo.parent().unwrap().display();
    let config = format!(
        "version: 1\nhooks:\n  stop:\n    - {{name: tests, command: PATH={programs}:{toolchain}:{} cargo test, strength: {{}}}}\n",
        std::env::var("PATH").unwrap()
    );
    let stub = format!("pub fn total(_: &[i64], _: i64) -> i64 {{\n    0\n}}\n{TESTS}");
    let work = format!(
        "pub fn total(prices: &[i64], limit: i64) -> i64 {{\n    let sum: i64 = prices.iter().sum();\n    if sum > limit \
         {{\n        return limit;\n    }}\n    sum\n}}\n{TESTS}"
    );
    let files =
        [("Cargo.toml", MANIFEST), ("src/lib.rs", &stub), (".gitignore", "target\nCargo.lock\n")];
    let ran = claims(&trusted_project(&config, &files), &[json!({"src/lib.rs": work})]);
    let strength = strength(&ran);
    assert_eq!(
        (&strength["engine"], &strength["status"]),
        (&json!("cargo-mutants"), &json!("measured")),
        "{strength} {}",
        ran.stderr
    );
    let survivors = strength["survivors"].as_array().unwrap();
    assert!(survivors.iter().all(|mutant| mutant["line"] == 3), "{strength}");
    assert_eq!(strength["score"], 66, "{strength}");
}
