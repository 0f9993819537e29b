//! Compares the program with a brute-force model: ready set, counters, edges and actions, on random
//! graphs and schedules with lost, repeated and reordered deliveries.
//!
//! `HOOKLOOP_CASES` sets the total number of cases, `HOOKLOOP_SEED` selects a single one.
#![expect(clippy::unwrap_used, reason = "tests")]

mod asks;
mod compare;
mod directed;
mod facts;
mod fleet;
mod later;
mod reactions;
mod rules;
mod schedule;
mod tasks;
mod wire;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hookloop_testkit::SeededRandom;
use rules::Setup;
use schedule::Case;
use tasks::{Ask, Change, Spec};
use wire::{Overtaken, Wire};

const CASES: u64 = 10_000;

/// Runs `per_mille` of all cases, or the one that the environment selects.
fn check(test: &str, per_mille: u64, case: impl Fn(SeededRandom)) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("HOOKLOOP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..(number("HOOKLOOP_CASES").unwrap_or(CASES) * per_mille).div_ceil(1_000),
    };
    for seed in seeds {
        let failed = catch_unwind(AssertUnwindSafe(|| case(SeededRandom::new(seed)))).is_err();
        assert!(
            !failed,
            "case {seed} failed; to run it alone:\n  \
             HOOKLOOP_SEED={seed} cargo nextest run -p hookloop-engine --test model {test}"
        );
    }
}

fn play(mut case: Case) -> Case {
    let turns = if case.rng.chance(4) { 40 } else { 5 + case.rng.below(11) };
    case.play(turns);
    if case.rng.chance(50) {
        case.finish();
    }
    case.compare_all();
    case
}

#[test]
fn builtin_hooks_agree_with_the_model() {
    check("builtin_hooks", 461, |rng| drop(play(Case::in_memory(rng, Setup::builtin()))));
}

#[test]
fn declared_hooks_agree_with_the_model() {
    check("declared_hooks", 470, |mut rng| {
        let setup = Setup::declared(&mut rng);
        play(Case::in_memory(rng, setup));
    });
}

#[test]
fn projects_in_files_agree_with_the_model() {
    check("files", 25, |mut rng| {
        let setup = Setup::declared(&mut rng);
        play(Case::in_file(rng, setup));
    });
}

#[test]
fn commands_that_meet_a_conflict_agree_with_the_model() {
    check("conflict", 40, race);
}

fn race(mut rng: SeededRandom) {
    let setup = if rng.chance(50) { Setup::builtin() } else { Setup::declared(&mut rng) };
    overtake(Case::racing(rng, setup, Wire::new(Overtaken::Anywhere)));
}

fn overtake(mut case: Case) -> Case {
    for _ in 0..4 + case.rng.below(12) {
        case.overtaken_command();
    }
    case.finish();
    case.compare_all();
    case
}

#[test]
fn wide_fan_outs_agree_with_the_model() {
    check("wide", 4, |mut rng| {
        let setup = Setup::wide(&mut rng);
        let case = match rng.chance(70) {
            true => Case::in_memory(rng, setup),
            false => Case::in_file(rng, setup),
        };
        play_wide(case);
    });
}

/// Plays a case with one or two tasks that have many dependents.
fn play_wide(mut case: Case) {
    let hubs = 1 + case.rng.below(2);
    let width = *case.rng.pick(&[199, 200, 201, 399, 400, 401, 430]);
    add_wide(&mut case, hubs, width);
    for hub in 0..hubs {
        case.command(&Ask::Change(hub, Change::Complete(None)));
    }
    case.play(10);
    case.finish();
    case.compare_all();
}

/// Adds `hubs` tasks, and `width` tasks that depend on them.
fn add_wide(case: &mut Case, hubs: usize, width: usize) {
    let add = |name: usize| {
        let on = if name < hubs { vec![] } else { (0..hubs).collect() };
        let spec = Spec { goal: "g".into(), labels: vec!["agent".into()], ..Spec::default() };
        Ask::Add { name: Some(name), spec, on }
    };
    case.commands(&(0..hubs).map(add).collect::<Vec<_>>());
    case.commands(&(hubs..hubs + width).map(add).collect::<Vec<_>>());
}
