//! Which imported commands are scripts of the project that were written to answer an agent.

/// Programs that run the file they are given.
const INTERPRETERS: [&str; 11] =
    ["sh", "bash", "dash", "zsh", "python", "python3", "node", "bun", "ruby", "perl", "php"];
/// How the names of scripts end.
const ENDINGS: [&str; 10] = ["sh", "bash", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php"];
/// Directories of programs that others wrote.
const OF_OTHERS: [&str; 5] = ["node_modules", "vendor", ".venv", "venv", "target"];
/// The project's directory, as hooks of agents write it.
const PROJECT: [&str; 4] = ["$CLAUDE_PROJECT_DIR/", "${CLAUDE_PROJECT_DIR}/", "$PWD/", "./"];
/// Parts of the names of programs that run tests, and print what those print.
const OF_TESTS: [&str; 4] = ["test", "spec", "coverage", "bench"];

/// Whether a command is one script of the project, and not a test runner: only then is its JSON its author's.
pub(super) fn is_script(command: &str) -> bool {
    // A line of several commands prints what any of them prints.
    if command.contains([';', '|', '&', '`', '\n', '(', '<', '>']) {
        return false;
    }
    let plain = command.replace(['"', '\''], "");
    let mut words = plain.split_whitespace().skip_while(|word| is_assignment(word)).peekable();
    let Some(mut path) = words.next() else { return false };
    if INTERPRETERS.contains(&path.rsplit('/').next().unwrap_or(path)) {
        // With options it may be no file that is run: `-c`, `-m`.
        let Some(file) = words.next().filter(|word| !word.starts_with('-')) else { return false };
        path = file;
    }
    let path = PROJECT.iter().find_map(|prefix| path.strip_prefix(prefix)).unwrap_or(path);
    let runs_tests = |word: &str| {
        let word = word.to_ascii_lowercase();
        OF_TESTS.iter().any(|part| word.contains(part))
    };
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_inside = !path.starts_with(['/', '~', '$'])
        && !path.split('/').any(|part| part == ".." || OF_OTHERS.contains(&part));
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_named_so = ENDINGS.contains(&ending) || path.contains("hooks/");
    is_inside && is_named_so && !runs_tests(name) && !words.any(runs_tests)
}

/// Whether a word sets a variable for the command that follows.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_the_project_are_distinguished_from_test_runners() {
        for script in [
            "./.claude/hooks/stop.sh",
            "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/stop.py",
            "$CLAUDE_PROJECT_DIR/.claude/hooks/gate",
            "python3 .claude/hooks/stop.py --strict",
            "MODE=x bash scripts/gate.sh",
        ] {
            assert!(is_script(script), "{script}");
        }
        for other in [
            "npm test",
            "pytest",
            "cargo nextest run",
            "./gradlew test",
            "./run-tests.sh",
            "bash scripts/test.sh",
            "python3 manage.py test",
            "python3 -m pytest",
            "node node_modules/jest/bin/jest.js",
            "vendor/bin/phpunit.php",
            "./gate.sh && npm test",
            "./gate.sh | tee log.sh",
            "sh -c ./gate.sh",
            "/usr/local/hooks/gate.sh",
            "../gate.sh",
            "~/gate.sh",
            "",
        ] {
            assert!(!is_script(other), "{other}");
        }
    }
}
