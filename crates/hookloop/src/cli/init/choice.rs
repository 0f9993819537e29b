//! The directories whose projects get gates: named by `--only`, chosen on a terminal, or all.

use std::io::Write as _;

use hookloop_fleet::survey::room_search::RoomFinding;
use hookloop_fleet::survey::trial::GateTrial;

use super::{FoundDirectory, InitPlan, TriedGate, ask, not_written};
use crate::cli::context::CommandContext;
use crate::error::{CliError, CliResult};
use crate::sanitize::plain;

/// How often a question is asked whose answer can't be read.
const ATTEMPTS_MAX: usize = 3;

/// The user's choice on the command line.
pub(super) struct WantedDirectories<'a> {
    /// Directories from `--only`.
    pub(super) only: &'a [String],
    /// No question is asked.
    pub(super) yes: bool,
}

/// Chooses the directories, and puts the gates of these into the plan.
pub(super) fn choose(
    context: &mut CommandContext,
    plan: &mut InitPlan,
    wanted: &WantedDirectories<'_>,
) -> CliResult {
    let found = plan.survey.directories();
    let names = |path: &String| {
        let gates = plan.survey.gates.iter().filter(|gate| gate.directory() == path);
        gates.map(|gate| gate.name.clone()).collect::<Vec<String>>()
    };
    let mut directories: Vec<FoundDirectory> = found
        .iter()
        .map(|path| FoundDirectory { path: path.clone(), gates: names(path), is_chosen: true })
        .collect();
    let chosen = if !wanted.only.is_empty() {
        named(&found, wanted.only)?
    } else if wanted.yes || found.len() < 2 {
        found
    } else {
        asked(context, &directories)?
    };
    for directory in &mut directories {
        directory.is_chosen = chosen.contains(&directory.path);
    }
    plan.directories = directories;
    plan.survey.choose(&chosen);
    let gates = plan.survey.gates.iter().cloned();
    let (trial, room) = (GateTrial::NotTried, RoomFinding::NotTried);
    let untried = |gate| TriedGate { gate, trial: trial.clone(), room: room.clone() };
    plan.gates = gates.map(untried).collect();
    Ok(())
}

/// The directories of `--only`, each of which has to have a gate.
fn named(found: &[String], only: &[String]) -> CliResult<Vec<String>> {
    let mut chosen = Vec::new();
    for name in only {
        let path = name.trim_end_matches('/');
        let path = path.strip_prefix("./").unwrap_or(path);
        if !found.iter().any(|found| found == path) {
            let error =
                CliError::usage(format!("--only {name}: no tests or checks were found there"));
            return Err(if found.is_empty() {
                error.advice("leave out `--only`, and add gates to hookloop.yaml by hand")
            } else {
                error.advice(format!("directories with gates: {}", found.join(", ")))
            });
        }
        chosen.push(path.to_owned());
    }
    Ok(chosen)
}

/// Asks on a terminal. Enter chooses all.
fn asked(context: &mut CommandContext, directories: &[FoundDirectory]) -> CliResult<Vec<String>> {
    let mut stderr = anstream::stderr();
    writeln!(stderr, "Projects were found in {} directories:", directories.len())?;
    let width =
        directories.iter().map(|directory| directory.path.chars().count()).max().unwrap_or(0);
    for (number, FoundDirectory { path, gates, .. }) in (1..).zip(directories) {
        writeln!(stderr, "  {number:2}  {:width$}  {}", plain(path), gates.join(", "))?;
    }
    for _ in 0..ATTEMPTS_MAX {
        let question = "Which of them should have gates? [Enter: all, or numbers such as 1 2] ";
        let Some(answer) = ask(context, question)? else { break };
        match read(&answer, directories.len()) {
            Ok(numbers) => {
                let path = |number: usize| directories[number - 1].path.clone();
                return Ok(numbers.into_iter().map(path).collect());
            }
            Err(why) => writeln!(anstream::stderr(), "{why}")?,
        }
    }
    Err(not_written("no directories were chosen"))
}

/// The numbers of an answer, each from 1 to `count`.
fn read(answer: &str, count: usize) -> std::result::Result<Vec<usize>, String> {
    let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
    let mut numbers: Vec<usize> = Vec::new();
    for word in words {
        match word.parse() {
            Ok(number) if (1..=count).contains(&number) => numbers.push(number),
            _ if word == "all" => numbers.extend(1..=count),
            _ => {
                let word = plain(word);
                return Err(format!("`{word}` is not a number from 1 to {count}"));
            }
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(if numbers.is_empty() { (1..=count).collect() } else { numbers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_chosen_by_number_and_an_empty_answer_chooses_all() {
        assert_eq!(read("", 3), Ok(vec![1, 2, 3]));
        assert_eq!(read("all", 2), Ok(vec![1, 2]));
        assert_eq!(read("3, 1 3", 3), Ok(vec![1, 3]));
        for wrong in ["0", "4", "x", "1-2"] {
            assert!(read(wrong, 3).is_err(), "{wrong}");
        }
    }
}
