//! Finds out how a gate runs in a clean room: as it is, with a setup, with copied files, or not at all.

use hookloop_core::checks;
use hookloop_core::excerpt;
use hookloop_hooks::room_setup::RoomSetup;

use super::trial::{GateTrial, RoomResult};

/// Maximum runs of one gate in a room.
const ATTEMPTS_MAX: usize = 10;
/// Longest reason in characters.
const REASON_MAX: usize = 160;
/// Names of ignored files that tests often read without naming them.
const USUAL_COPIES: [&str; 4] = [".env", ".env.test", ".env.local", ".env.testing"];
/// Words in a line of output that explains a failure.
const EXPLAINING: [&str; 7] =
    ["error", "denied", "read-only", "no such file", "not found", "cannot", "fail"];
/// Programs that install packages of one language.
const FAMILIES: [&[&str]; 2] =
    [&["npm", "pnpm", "yarn", "bun"], &["pip", "uv", "poetry", "pdm", "pipenv", "python3"]];

/// The additions that a gate needs in a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomNeeds {
    /// Setups that the configuration does not have yet.
    pub setups: Vec<RoomSetup>,
    /// Ignored files that are copied into the room.
    pub copy: Vec<String>,
}

impl RoomNeeds {
    /// Returns a description for people, such as `setup: npm ci; copy: .env`, or `None` without additions.
    pub fn described(&self) -> Option<String> {
        let setups: Vec<&str> = self.setups.iter().map(|setup| setup.command.as_str()).collect();
        let setups = (!setups.is_empty()).then(|| format!("setup: {}", setups.join(", ")));
        let copy = (!self.copy.is_empty()).then(|| format!("copy: {}", self.copy.join(", ")));
        let parts: Vec<String> = [setups, copy].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The room of a gate, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomFinding {
    /// No trial ran in a room.
    NotTried,
    /// The gate runs in a clean room. The trial is the one there.
    Clean { trial: GateTrial, needs: RoomNeeds },
    /// The gate runs in the working directory, because of this trial in the room.
    Here { trial: GateTrial, reason: String },
}

/// A gate whose room is searched.
#[derive(Debug)]
pub struct RoomQuestion<'q> {
    /// The result of the gate in the working directory.
    pub here: &'q GateTrial,
    /// Setups that are known for the gate, and that the configuration does not have yet.
    pub known: Vec<RoomSetup>,
}

/// A trial in a room that did not succeed.
struct RoomFailure {
    trial: GateTrial,
    reason: String,
    is_set_up: bool,
}

/// The meaning of a result in a room.
enum RoomVerdict {
    Good(GateTrial),
    /// The trial is no evidence for or against the room.
    Undecided(GateTrial),
    Bad(RoomFailure),
    NoGit,
}

/// Runs the gate in a room with more and more additions, until it runs there as it does here.
///
/// `ignored` returns the files that git ignores. It is called only if no setup helps.
pub fn find_room<E>(
    question: RoomQuestion<'_>,
    ignored: &dyn Fn() -> Vec<String>,
    attempt: &mut dyn FnMut(&RoomNeeds) -> Result<RoomResult, E>,
) -> Result<RoomFinding, E> {
    let RoomQuestion { here, known } = question;
    let first = match judged(here, attempt(&RoomNeeds::default())?) {
        RoomVerdict::Good(trial) | RoomVerdict::Undecided(trial) => {
            return Ok(RoomFinding::Clean { trial, needs: RoomNeeds::default() });
        }
        RoomVerdict::NoGit => return Ok(RoomFinding::NotTried),
        RoomVerdict::Bad(failure) => failure,
    };
    let mut search = RoomSearch { here, attempt, attempts: 1, is_over: false };
    let mut installed: Option<(Vec<RoomSetup>, RoomFailure)> = None;
    let mut not_installed = None;
    for setups in setup_choices(known, &first.trial) {
        match search.try_with(RoomNeeds { setups: setups.clone(), copy: Vec::new() })? {
            TriedNeeds::Found(finding) => return Ok(finding),
            TriedNeeds::Failed(failure) if failure.is_set_up => {
                installed.get_or_insert((setups, failure));
            }
            TriedNeeds::Failed(failure) => {
                not_installed.get_or_insert(failure);
            }
            TriedNeeds::Ended => {}
        }
    }
    let ignored = ignored();
    let nothing = (Vec::new(), &first);
    let with_packages = installed.as_ref().map(|(setups, failure)| (setups.clone(), failure));
    for (setups, failure) in [nothing].into_iter().chain(with_packages) {
        for copy in copy_choices(&ignored, failure.trial.output()) {
            let needs = RoomNeeds { setups: setups.clone(), copy };
            if let TriedNeeds::Found(finding) = search.try_with(needs)? {
                return Ok(finding);
            }
        }
    }
    let failure = installed.map(|(_, failure)| failure).or(not_installed).unwrap_or(first);
    Ok(RoomFinding::Here { trial: failure.trial, reason: failure.reason })
}

/// The trials of one gate in a room, after the first one failed.
struct RoomSearch<'s, E> {
    here: &'s GateTrial,
    attempt: &'s mut dyn FnMut(&RoomNeeds) -> Result<RoomResult, E>,
    attempts: usize,
    /// Whether the user ended the search.
    is_over: bool,
}

enum TriedNeeds {
    Found(RoomFinding),
    Failed(RoomFailure),
    /// No trial ran.
    Ended,
}

impl<E> RoomSearch<'_, E> {
    fn try_with(&mut self, needs: RoomNeeds) -> Result<TriedNeeds, E> {
        if self.is_over || self.attempts >= ATTEMPTS_MAX {
            return Ok(TriedNeeds::Ended);
        }
        self.attempts += 1;
        Ok(match judged(self.here, (self.attempt)(&needs)?) {
            RoomVerdict::Good(trial) => TriedNeeds::Found(RoomFinding::Clean { trial, needs }),
            RoomVerdict::Bad(failure) => TriedNeeds::Failed(failure),
            RoomVerdict::Undecided(trial) => {
                self.is_over = trial == GateTrial::NotTried;
                let reason = reason_of(&trial);
                match self.is_over {
                    true => TriedNeeds::Ended,
                    false => TriedNeeds::Failed(RoomFailure { trial, reason, is_set_up: true }),
                }
            }
            RoomVerdict::NoGit => TriedNeeds::Ended,
        })
    }
}

/// Compares the result in a room with the one in the working directory.
fn judged(here: &GateTrial, result: RoomResult) -> RoomVerdict {
    let trial = match result {
        RoomResult::Ran(trial) => trial,
        RoomResult::NoGit => return RoomVerdict::NoGit,
        RoomResult::SetupFailed(why) | RoomResult::NoRoom(why) => {
            let reason = one_line(&why);
            let trial = GateTrial::Failed { ms: 0, why: reason.clone(), output: why };
            return RoomVerdict::Bad(RoomFailure { trial, reason, is_set_up: false });
        }
    };
    let was_passed = matches!(here, GateTrial::Passed { .. });
    match &trial {
        GateTrial::Passed { .. } => RoomVerdict::Good(trial),
        // Red tests are an agent's work. In the room they only have to run.
        GateTrial::Failed { .. } if !was_passed => RoomVerdict::Good(trial),
        GateTrial::NotTried | GateTrial::TimedOut { .. } => RoomVerdict::Undecided(trial),
        GateTrial::Failed { .. } | GateTrial::NotReady { .. } | GateTrial::Absent { .. } => {
            let reason = reason_of(&trial);
            RoomVerdict::Bad(RoomFailure { trial, reason, is_set_up: true })
        }
    }
}

/// Returns the setups to try: each alone, the one that the failure asks for first, then all of them.
fn setup_choices(mut known: Vec<RoomSetup>, failed: &GateTrial) -> Vec<Vec<RoomSetup>> {
    let wanted = match failed {
        GateTrial::NotReady { gap, .. } => gap.setup.as_deref().and_then(family),
        _ => None,
    };
    known.sort_by_key(|setup| wanted.is_some() && family(&setup.command) != wanted);
    let mut choices: Vec<Vec<RoomSetup>> = known.iter().map(|setup| vec![setup.clone()]).collect();
    if known.len() > 1 {
        choices.push(known);
    }
    choices
}

/// Returns the place of the language in [`FAMILIES`] whose packages a command installs.
fn family(command: &str) -> Option<usize> {
    let program = command.split_whitespace().next().unwrap_or_default();
    FAMILIES.iter().position(|family| family.iter().any(|name| program.starts_with(name)))
}

/// Returns the files to copy: those that the output names, then also those that tests often read.
fn copy_choices(ignored: &[String], output: &str) -> Vec<Vec<String>> {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let is_named = |path: &&String| names(output, &file_name(path));
    let is_usual = |path: &&String| USUAL_COPIES.contains(&file_name(path).as_str());
    let named: Vec<String> = ignored.iter().filter(is_named).cloned().collect();
    let all: Vec<String> =
        ignored.iter().filter(|path| is_named(path) || is_usual(path)).cloned().collect();
    let mut choices = vec![named, all];
    choices.dedup();
    choices.retain(|choice| !choice.is_empty());
    choices
}

/// Whether a text names a file. `.env` is not named by `.env.test`.
fn names(text: &str, file: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(file).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut behind = text[at + file.len()..].chars();
        let next = behind.next();
        let goes_on = match next {
            Some('.') => behind.next().is_some_and(is_part),
            next => next.is_some_and(is_part),
        };
        !goes_on && !before.is_some_and(is_part)
    })
}

/// Returns why a gate did not pass, in one line.
fn reason_of(trial: &GateTrial) -> String {
    match trial {
        GateTrial::NotReady { gap, .. } => one_line(&gap.cause),
        GateTrial::Absent { why, .. } => one_line(why),
        GateTrial::TimedOut { .. } => "it takes too long there".to_owned(),
        GateTrial::Failed { why, output, .. } => {
            let line = explaining_line(output);
            line.map_or_else(|| why.clone(), |line| one_line(&format!("{why}: {line}")))
        }
        GateTrial::NotTried | GateTrial::Passed { .. } => "it was not tried".to_owned(),
    }
}

/// Returns the line of an output that explains a failure best.
fn explaining_line(output: &str) -> Option<String> {
    let output = checks::plain(output);
    let failing = checks::read(&output).and_then(|report| report.failing.into_iter().next());
    if let Some(checks::Check { name, cause }) = failing {
        let cause = cause.lines().next().unwrap_or_default().trim();
        return Some(if cause.is_empty() { name } else { cause.to_owned() });
    }
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let explains = |line: &&str| {
        let line = line.to_lowercase();
        EXPLAINING.iter().any(|word| line.contains(word))
    };
    lines().find(explains).or_else(|| lines().next_back()).map(str::to_owned)
}

fn one_line(text: &str) -> String {
    excerpt::one_line(text, REASON_MAX)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use hookloop_core::environment::EnvironmentGap;

    use super::*;

    fn setup(command: &str) -> RoomSetup {
        RoomSetup { command: command.to_owned(), directory: String::new(), inputs: Vec::new() }
    }

    fn passed() -> RoomResult {
        RoomResult::Ran(GateTrial::Passed { ms: 1 })
    }

    fn failed(output: &str) -> RoomResult {
        let why = "exit code 1".to_owned();
        RoomResult::Ran(GateTrial::Failed { ms: 1, why, output: output.to_owned() })
    }

    fn not_ready(setup: &str) -> RoomResult {
        let gap = EnvironmentGap { cause: "gap".to_owned(), setup: Some(setup.to_owned()) };
        RoomResult::Ran(GateTrial::NotReady { gap, output: String::new() })
    }

    /// The name of each setup and copy of a trial, such as `npm ci + .env`.
    fn named(needs: &RoomNeeds) -> String {
        let setups = needs.setups.iter().map(|setup| setup.command.as_str());
        setups.chain(needs.copy.iter().map(String::as_str)).collect::<Vec<_>>().join(" + ")
    }

    /// Searches with `answer` for each trial; returns the trials and the finding.
    fn search(
        here: &GateTrial,
        known: &[&str],
        ignored: &[&str],
        answer: impl Fn(&str) -> RoomResult,
    ) -> (Vec<String>, RoomFinding) {
        let mut trials = Vec::new();
        let ignored = || ignored.iter().map(|file| (*file).to_owned()).collect();
        let known = known.iter().map(|command| setup(command)).collect();
        let found = find_room(RoomQuestion { here, known }, &ignored, &mut |needs| {
            trials.push(named(needs));
            Ok::<_, Infallible>(answer(&named(needs)))
        });
        let Ok(found) = found;
        (trials, found)
    }

    const PASSED: GateTrial = GateTrial::Passed { ms: 1 };

    fn needs_of(finding: &RoomFinding) -> Option<String> {
        match finding {
            RoomFinding::Clean { needs, .. } => Some(named(needs)),
            RoomFinding::NotTried | RoomFinding::Here { .. } => None,
        }
    }

    #[test]
    fn a_gate_that_passes_in_the_room_needs_nothing() {
        let (trials, found) = search(&PASSED, &["npm ci"], &[".env"], |_| passed());
        assert_eq!((trials, needs_of(&found)), (vec![String::new()], Some(String::new())));
    }

    #[test]
    fn the_setup_that_the_failure_asks_for_is_tried_first() {
        let answer = |needs: &str| match needs {
            "" => not_ready("pip install -e ."),
            "uv sync" => passed(),
            _ => failed("x"),
        };
        let (trials, found) = search(&PASSED, &["npm ci", "uv sync"], &[], answer);
        assert_eq!((trials.len(), needs_of(&found).as_deref()), (2, Some("uv sync")));
    }

    #[test]
    fn files_are_copied_that_the_output_names_before_others() {
        let answer = |needs: &str| match needs {
            "secret.json" => passed(),
            _ => failed("no such file: config/secret.json"),
        };
        let (trials, found) = search(&PASSED, &[], &[".env", "secret.json"], answer);
        assert_eq!((trials.len(), needs_of(&found).as_deref()), (2, Some("secret.json")));
        let answer = |needs: &str| if needs == ".env" { passed() } else { failed("no key") };
        let (_, found) = search(&PASSED, &[], &[".env", "secret.json"], answer);
        assert_eq!(needs_of(&found).as_deref(), Some(".env"));
    }

    #[test]
    fn setup_and_copies_are_tried_together_by_the_output_after_the_setup() {
        let answer = |needs: &str| match needs {
            "" => not_ready("npm ci"),
            "npm ci + keys.json" => passed(),
            "npm ci" => failed("cannot open keys.json"),
            _ => failed("x"),
        };
        let (trials, found) = search(&PASSED, &["npm ci"], &["keys.json"], answer);
        assert_eq!(trials, ["", "npm ci", "npm ci + keys.json"]);
        assert_eq!(needs_of(&found).as_deref(), Some("npm ci + keys.json"));
    }

    #[test]
    fn a_gate_that_never_passes_in_the_room_runs_here_with_the_reason() {
        let answer = |_: &str| failed("starting\nPermissionError: denied: /home/a/x\nbye");
        let (trials, found) = search(&PASSED, &["npm ci"], &[".env"], answer);
        assert_eq!(trials, ["", "npm ci", ".env", "npm ci + .env"]);
        let RoomFinding::Here { reason, .. } = found else { panic!("{found:?}") };
        assert_eq!(reason, "exit code 1: PermissionError: denied: /home/a/x");
        let no_room = |_: &str| RoomResult::NoRoom("no space".to_owned());
        let (_, found) = search(&PASSED, &[], &[], no_room);
        assert!(matches!(found, RoomFinding::Here { reason, .. } if reason == "no space"));
        let many: Vec<String> = (0..50).map(|number| format!("npm {number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (trials, _) = search(&PASSED, &many, &[".env"], |_| failed("x"));
        assert_eq!(trials.len(), ATTEMPTS_MAX);
    }

    #[test]
    fn a_setup_that_fails_is_the_reason_if_no_setup_helps() {
        let answer = |needs: &str| match needs {
            "npm ci" => RoomResult::SetupFailed("setup_failed: `packages`: no network".to_owned()),
            _ => not_ready("npm ci"),
        };
        let (_, found) = search(&PASSED, &["npm ci"], &[], answer);
        assert!(
            matches!(&found, RoomFinding::Here { reason, .. } if reason.contains("no network")),
            "{found:?}"
        );
    }

    #[test]
    fn red_tests_only_have_to_run_in_the_room() {
        let red = GateTrial::Failed { ms: 1, why: String::new(), output: String::new() };
        let (trials, found) = search(&red, &["npm ci"], &[], |_| failed("1 test failed"));
        assert_eq!((trials.len(), needs_of(&found)), (1, Some(String::new())));
        let answer = |needs: &str| match needs {
            "" => not_ready("npm ci"),
            _ => failed("1 test failed"),
        };
        let (_, found) = search(&red, &["npm ci"], &[], answer);
        assert_eq!(needs_of(&found).as_deref(), Some("npm ci"));
    }

    #[test]
    fn a_slow_or_skipped_trial_decides_nothing() {
        for trial in [GateTrial::NotTried, GateTrial::TimedOut { output: String::new() }] {
            let (trials, found) =
                search(&PASSED, &["npm ci"], &[], |_| RoomResult::Ran(trial.clone()));
            assert_eq!((trials.len(), needs_of(&found)), (1, Some(String::new())));
        }
        let (_, found) = search(&PASSED, &[], &[], |_| RoomResult::NoGit);
        assert_eq!(found, RoomFinding::NotTried);
        // A gate that failed in the room stays out of it if the user ends the search.
        let answer = |needs: &str| match needs {
            "" => failed("x"),
            _ => RoomResult::Ran(GateTrial::NotTried),
        };
        let (trials, found) = search(&PASSED, &["npm ci", "uv sync"], &[".env"], answer);
        assert_eq!(trials.len(), 2);
        assert!(matches!(found, RoomFinding::Here { .. }), "{found:?}");
    }

    #[test]
    fn a_file_is_named_as_a_whole_word() {
        for (text, is_named) in [
            ("open .env: no such file", true),
            ("missing: .env.", true),
            ("open '/p/.env'", true),
            ("open .env.test", false),
            ("process.env", false),
            ("open .envrc", false),
        ] {
            assert_eq!(names(text, ".env"), is_named, "{text}");
        }
    }
}
