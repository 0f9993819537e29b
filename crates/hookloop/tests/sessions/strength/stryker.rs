//! Strength by StrykerJS, with Vitest.

use serde_json::{Value, json};

use super::{claims, installed, strength};
use crate::sessions::trusted_project;

const WORK: &str = "export function total(prices, limit) {\n  const amount = prices.reduce((a, b) => a + b, 0);\n  if \
                    (amount > limit) {\n    return limit;\n  }\n  return amount;\n}\n";
const WEAK: &str = "import { expect, test } from 'vitest';\nimport { total } from '../src/cart.js';\ntest('total', () => \
                    {\n  expect(total([10, 20], 100)).toBe(30);\n});\n";

#[test]
fn surviving_mutants_of_the_changed_function_are_reported() {
    let modules = installed("javascript/node_modules");
    let config = format!(
        "version: 1\nhooks:\n  setup:\n    - {{name: packages, command: ln -s {modules} node_modules}}\n  stop:\n    - \
         {{name: tests, command: npm test, strength: {{at_least: 100}}}}\n"
    );
    let package = json!({"type": "module", "scripts": {"test": "vitest run"}}).to_string();
    let stub = "export function total() {\n  return 0;\n}\n";
    let files = [
        ("src/cart.js", stub),
        ("test/cart.test.js", WEAK),
        ("package.json", package.as_str()),
        (".gitignore", "node_modules\n"),
    ];
    let ran = claims(&trusted_project(&config, &files), &[json!({"src/cart.js": WORK})]);
    let strength = strength(&ran);
    assert_eq!(strength["status"], "measured", "{strength} {}", ran.stderr);
    assert_eq!(strength["engine"], "Stryker");
    let survivors = strength["survivors"].as_array().unwrap();
    let at = |line: u64| {
        survivors.iter().any(|mutant| mutant["path"] == "src/cart.js" && mutant["line"] == line)
    };
    assert!(at(3), "{strength}");
    assert!(strength["mutants"]["killed"].as_u64().unwrap() > 0, "{strength}");
    assert_ne!(strength["score"], Value::Null);
    assert_eq!(ran.all("receipt_recorded")[0]["status"], "blocked");
}
