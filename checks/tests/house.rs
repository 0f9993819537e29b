//! Checks that the sources comply with the house rules.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

use hookloop_checks::crate_picture::{TEST_ONLY_MEMBERS, crate_arrows, drawn_picture, picture};
use hookloop_checks::house_rules::{
    PICTURE_FILE, RATCHETS_FILE, all_sources, arrow_figures, circle_arrows, name_figures,
    orphan_files, product_sources, public_figures, size_figures,
};
use hookloop_checks::import_circles::ModuleArrow;
use hookloop_checks::prose::{prose_by_area, prose_figures};
use hookloop_checks::public_items::public_items;
use hookloop_checks::ratchet::{Ratchets, RuleFigures};
use hookloop_checks::type_names::TypeNames;
use hookloop_checks::workspace_members::{workspace_members, workspace_root};

/// Returns the figures of a rule that are above their bar and their ratchet.
fn problems(rule: &RuleFigures) -> Vec<String> {
    Ratchets::read(&workspace_root().join(RATCHETS_FILE)).unwrap().compare(rule)
}

/// Checks all rules of the product's sources in one test, because parsing dominates its duration.
#[test]
fn import_circles_code_sizes_and_shared_type_names_are_within_limits() {
    let root = workspace_root();
    let index = product_sources(&root, &workspace_members(&root).unwrap()).unwrap();
    assert!(index.modules.len() > 100, "only {} modules", index.modules.len());
    let mut found = Vec::new();

    let arrows = circle_arrows(&index);
    let in_circles = problems(&arrow_figures(&arrows));
    let is_shown = |arrow: &&ModuleArrow| {
        let crate_words = format!("arrows {}:", arrow.crate_label);
        in_circles.iter().any(|problem| problem.starts_with(&crate_words))
    };
    found.extend(arrows.iter().filter(is_shown).map(ToString::to_string));
    found.extend(in_circles);

    found.extend(size_figures(&index.files).iter().flat_map(problems));
    let sharing = problems(&name_figures(&TypeNames::of(&index)));
    if !sharing.is_empty() {
        found.push("`cargo run -p hookloop-checks -- names` lists the names".to_owned());
    }
    found.extend(sharing);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn sentences_have_a_subject() {
    let areas = prose_by_area(&workspace_root()).unwrap();
    assert!(areas["docs"].words > 40_000 && areas.len() > 20, "{:?}", areas.keys());
    let found: Vec<String> = prose_figures(&areas).iter().flat_map(problems).collect();
    let hint = "`cargo run -p hookloop-checks -- prose` lists the sentences";
    assert!(found.is_empty(), "{hint}\n{}", found.join("\n"));
}

#[test]
fn public_items_are_named_by_another_crate() {
    let root = workspace_root();
    let index = all_sources(&root, &workspace_members(&root).unwrap()).unwrap();
    assert_eq!(
        orphan_files(&root, &index).unwrap(),
        [""; 0].map(Path::new),
        "no target loads these"
    );
    let found = problems(&public_figures(&public_items(&index)));
    let hint = "`cargo run -p hookloop-checks -- public` lists the items";
    assert!(found.is_empty(), "{hint}\n{}", found.join("\n"));
}

#[test]
fn the_architecture_picture_shows_the_dependencies_between_crates() {
    let root = workspace_root();
    let members = workspace_members(&root).unwrap();
    let drawn = drawn_picture(&root.join(PICTURE_FILE)).unwrap();
    let hint = "after a change that is meant: cargo run -p hookloop-checks -- picture --write";
    assert_eq!(drawn, picture(&members, &root), "{hint}");
}

#[test]
fn product_crates_do_not_depend_on_test_crates() {
    let root = workspace_root();
    let members = workspace_members(&root).unwrap();
    let arrows = crate_arrows(&members);
    let test_only: BTreeSet<&str> = TEST_ONLY_MEMBERS.into();
    for member in members.iter().filter(|member| member.is_product(&root)) {
        let found: Vec<_> = arrows[member.name.as_str()].intersection(&test_only).collect();
        let is_test_only = test_only.contains(member.name.as_str());
        assert!(is_test_only || found.is_empty(), "{} is built with {found:?}", member.name);
    }
}
