//! Many good, bad and conflicting branches in any order: every commit of the base passes its tests.
//!
//! `HOOKLOOP_TRAINS=200 cargo nextest run -p hookloop --test delivery_flow delivery::campaign` runs
//! 200 rounds.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use hookloop_testkit::{SeededRandom, run_git};

use crate::delivery_project::{DeliveryProject, GREEN};
use crate::support::number_from_env;

const BRANCHES: usize = 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    Good,
    /// The tests of the task fail.
    Bad,
    /// The task changes the same line as other tasks of this kind.
    Conflicting,
    /// The task passes alone, but not together with another task of this kind.
    Incompatible,
}

fn nature(random: &mut SeededRandom) -> Nature {
    match random.below(10) {
        0..5 => Nature::Good,
        5..7 => Nature::Bad,
        7..9 => Nature::Conflicting,
        _ => Nature::Incompatible,
    }
}

/// Returns the tests of the base: no file contains bad, and at most one file claims to be the only
/// one.
fn tests() -> String {
    format!("{GREEN} && [ $(ls only-*.txt 2>/dev/null | wc -l) -le 1 ]")
}

/// Adds a submitted task to the project, as a session would.
fn submit(project: &DeliveryProject, id: &str, nature: Nature) {
    project.add(id, &[]);
    let script = match nature {
        Nature::Good => format!("echo good > {id}.txt"),
        Nature::Bad => format!("echo bad > {id}.txt"),
        Nature::Conflicting => format!("echo {id} > shared.txt"),
        Nature::Incompatible => format!("echo only > only-{id}.txt"),
    };
    project.does(id, 1, &script);
}

fn round(seed: u64) {
    let mut random = SeededRandom::new(seed);
    let config = format!(
        "delivery: {{merge: {}}}\nhooks:\n  before_submit: [create_pr]\n  before_merge:\n    - {{name: green, command: \"{}\"}}\n",
        ["squash", "rebase", "merge"][random.below(3) as usize],
        tests()
    );
    let project =
        DeliveryProject::new(&config, &[("shared.txt", "nobody\n"), ("mine.txt", "mine\n")]);
    let mut natures: Vec<(String, Nature)> =
        (0..BRANCHES).map(|n| (format!("t{n:02}"), nature(&mut random))).collect();
    for at in (1..natures.len()).rev() {
        natures.swap(at, random.below(at as u64 + 1) as usize);
    }
    for (id, nature) in &natures {
        submit(&project, id, *nature);
    }
    let ran = project.run_tasks();
    assert_eq!(ran.code, 6, "seed {seed}: {}", ran.stderr);
    fs::write(project.root().join("mine.txt"), "not saved\n").unwrap();
    let before = project.users();
    let fates = project.merge();
    assert_eq!(project.users(), before, "seed {seed}");
    let merged: BTreeSet<&String> =
        natures.iter().map(|(id, _)| id).filter(|id| fates[*id].0 == "merged").collect();
    let mut one_of = std::collections::BTreeMap::new();
    for (id, nature) in &natures {
        let (fate, why) = &fates[id];
        match nature {
            Nature::Good => assert_eq!(fate, "merged", "seed {seed}, {id}: {why}"),
            Nature::Bad => {
                assert_eq!(fate, "returned", "seed {seed}, {id}");
                assert!(why.contains("green"), "seed {seed}, {id}: {why}");
            }
            Nature::Conflicting | Nature::Incompatible => {
                *one_of.entry(format!("{nature:?}")).or_insert(0) +=
                    usize::from(merged.contains(id));
                assert!(
                    ["merged", "returned"].contains(&fate.as_str()),
                    "seed {seed}, {id}: {fate}"
                );
            }
        }
    }
    assert!(one_of.values().all(|count| *count == 1), "seed {seed}: {one_of:?}");
    check_base(&project, seed);
}

/// Checks that every commit of the base passes the tests.
fn check_base(project: &DeliveryProject, seed: u64) {
    let clone = project.root().parent().unwrap().join("check");
    run_git(
        Path::new("/"),
        &["clone", "-q", &project.remote().display().to_string(), &clone.display().to_string()],
    );
    let commits = run_git(&clone, &["rev-list", "--first-parent", "HEAD"]);
    for commit in commits.lines() {
        run_git(&clone, &["checkout", "-q", commit]);
        let green = Command::new("sh").args(["-c", &tests()]).current_dir(&clone).status().unwrap();
        assert!(green.success(), "seed {seed}: the base is red at {commit}");
    }
}

/// The number of rounds, unless `HOOKLOOP_TRAINS` is set.
const ROUNDS: u64 = 8;
/// The number of parts of the rounds, which run at the same time.
const PARTS: u64 = 4;

fn part(number: u64) {
    let rounds = number_from_env("HOOKLOOP_TRAINS", ROUNDS).div_ceil(PARTS);
    let first = number_from_env("HOOKLOOP_SEED", 1) + number * rounds;
    (first..first + rounds).for_each(round);
}

#[test]
fn every_base_commit_passes_and_each_bad_task_is_returned_1() {
    part(0);
}

#[test]
fn every_base_commit_passes_and_each_bad_task_is_returned_2() {
    part(1);
}

#[test]
fn every_base_commit_passes_and_each_bad_task_is_returned_3() {
    part(2);
}

#[test]
fn every_base_commit_passes_and_each_bad_task_is_returned_4() {
    part(3);
}
