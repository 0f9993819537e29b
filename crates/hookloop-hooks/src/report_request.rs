//! Requests to known test runners to write a report of their checks.
//!
//! A runner is asked by its environment or by arguments after its own. A command that is not one plain command keeps its
//! arguments.

use std::path::Path;

use hookloop_core::hook::CommandText;
use serde_json::Value;

/// Largest `package.json` that is read.
const MANIFEST_MAX: u64 = 4 * 1024 * 1024;
/// Characters of a word that a shell reads as they are.
const PLAIN: &str = "@%+=:,./_-~";

/// The additions to a gate's command by which its runner writes a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportRequest {
    pub(crate) env: Vec<(&'static str, String)>,
    /// Words for the end of the command.
    pub(crate) args: Vec<String>,
    /// Words after `go test`.
    pub(crate) after_test: Vec<String>,
    /// Patterns of reports that the runner writes anyway.
    pub(crate) files: Vec<&'static str>,
}

impl ReportRequest {
    /// Returns the request for a command that runs in `cwd` and may write to `directory`.
    pub(crate) fn of(command: &CommandText, cwd: &Path, directory: &Path) -> ReportRequest {
        let line = match command {
            CommandText::Shell(line) => line.clone(),
            CommandText::Exec(args) => args.join(" "),
        };
        let mut request = ReportRequest::default();
        if line.matches("pytest").count() <= 1 {
            let file = directory.join("pytest.xml");
            let options = format!("--junitxml={} -o junit_family=xunit1", file.display());
            request.env.push(("PYTEST_ADDOPTS", options));
        }
        if line.contains("gradle") {
            request.files.push("**/build/test-results/**/*.xml");
        }
        if line.contains("mvn") {
            request.files.push("**/target/surefire-reports/*.xml");
            request.files.push("**/target/failsafe-reports/*.xml");
        }
        if let Some(words) = plain_words(command) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            request.ask(&words, cwd, directory);
        }
        request
    }

    fn ask(&mut self, words: &[&str], cwd: &Path, directory: &Path) {
        let start = words.iter().position(|word| !is_assignment(word)).unwrap_or(words.len());
        let words = &words[start..];
        if let ["go", "test", rest @ ..] = words {
            let is_set = |word: &&str| ["-v", "-json", "-test.v"].contains(word);
            if !rest.iter().any(is_set) {
                self.after_test.push("-v".to_owned());
            }
            return;
        }
        let Some((script, is_npm)) = script_of(words, cwd) else {
            return self.ask_program(words, directory, false);
        };
        let Some(words) = plain_words(&CommandText::Shell(script)) else { return };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.ask_program(&words, directory, is_npm);
    }

    /// Adds the arguments of a JavaScript runner. npm passes on only arguments after `--`.
    fn ask_program(&mut self, words: &[&str], directory: &Path, is_npm: bool) {
        let words: Vec<&str> =
            words.iter().skip_while(|word| is_assignment(word)).copied().collect();
        let program = match words.as_slice() {
            ["npx" | "bunx" | "pnpx", rest @ ..] => rest.first(),
            ["pnpm" | "yarn" | "npm", "exec", "--", rest @ ..]
            | ["pnpm" | "yarn" | "npm", "exec", rest @ ..]
            | ["pnpm" | "yarn", rest @ ..] => rest.first(),
            rest => rest.first(),
        };
        let Some(program) = program.map(|program| file_name(program)) else { return };
        let has = |start: &str| words.iter().any(|word| word.starts_with(start));
        let mut args = Vec::new();
        match program {
            "vitest" if !has("--outputFile") => {
                if !has("--reporter") {
                    args.push("--reporter=default".to_owned());
                }
                args.push("--reporter=junit".to_owned());
                args.push(format!("--outputFile.junit={}", directory.join("vitest.xml").display()));
            }
            "jest" if !has("--json") && !has("--outputFile") => {
                args.push("--json".to_owned());
                args.push(format!("--outputFile={}", directory.join("jest.json").display()));
            }
            "node" if has("--test") && !has("--test-reporter") => {
                let file = directory.join("node.xml");
                let options = format!(
                    "--test-reporter=spec --test-reporter-destination=stdout \
                     --test-reporter=junit --test-reporter-destination={}",
                    file.display()
                );
                self.env.push(("NODE_OPTIONS", options));
            }
            _ => {}
        }
        if is_npm && !args.is_empty() {
            args.insert(0, "--".to_owned());
        }
        self.args.extend(args);
    }

    /// Returns the command with the requested words.
    pub(crate) fn added_to(&self, command: &CommandText) -> CommandText {
        if self.args.is_empty() && self.after_test.is_empty() {
            return command.clone();
        }
        match command {
            CommandText::Shell(line) => {
                let mut line = line.trim_end().to_owned();
                if !self.after_test.is_empty() {
                    let words = format!("go test {}", self.after_test.join(" "));
                    line = line.replacen("go test", &words, 1);
                }
                for arg in &self.args {
                    line = format!("{line} {arg}");
                }
                CommandText::Shell(line)
            }
            CommandText::Exec(args) => {
                let mut args = args.clone();
                let test =
                    args.iter().position(|arg| arg == "test").map_or(args.len(), |at| at + 1);
                for (offset, word) in self.after_test.iter().enumerate() {
                    args.insert((test + offset).min(args.len()), word.clone());
                }
                args.extend(self.args.iter().cloned());
                CommandText::Exec(args)
            }
        }
    }
}

/// Returns the script of `package.json` that the words run, and whether npm runs it.
fn script_of(words: &[&str], cwd: &Path) -> Option<(String, bool)> {
    let (name, is_npm) = match words {
        ["npm", "test" | "t"] => ("test", true),
        ["npm", "run" | "run-script", name] => (*name, true),
        ["pnpm" | "yarn" | "bun", "test"] => ("test", false),
        ["pnpm" | "yarn" | "bun", "run", name] => (*name, false),
        _ => return None,
    };
    let path = cwd.join("package.json");
    let size = std::fs::metadata(&path).ok()?.len();
    let text = std::fs::read_to_string(&path).ok().filter(|_| size <= MANIFEST_MAX)?;
    let manifest: Value = serde_json::from_str(&text).ok()?;
    Some((manifest["scripts"][name].as_str()?.to_owned(), is_npm))
}

/// Returns the words of one plain command. A directory of the report never has other characters.
fn plain_words(command: &CommandText) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
    match command {
        CommandText::Exec(args) => Some(args.clone()),
        CommandText::Shell(line) => {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let all_plain = words.iter().all(|word| word.chars().all(is_plain));
            (all_plain && !line.trim().contains('\n')).then_some(words)
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str, manifest: Option<&str>) -> (String, Vec<&'static str>) {
        let home = tempfile::tempdir().unwrap();
        if let Some(manifest) = manifest {
            std::fs::write(home.path().join("package.json"), manifest).unwrap();
        }
        let command = CommandText::Shell(line.to_owned());
        let request = ReportRequest::of(&command, home.path(), Path::new("/r"));
        let CommandText::Shell(line) = request.added_to(&command) else { panic!() };
        (line, request.env.iter().map(|(name, _)| *name).collect())
    }

    #[test]
    fn known_runners_get_arguments_and_variables() {
        let check = |line: &str, manifest: Option<&str>, expected: &str| {
            assert_eq!(request(line, manifest).0, expected, "{line}");
        };
        check("go test ./...", None, "go test -v ./...");
        check("go test -v ./...", None, "go test -v ./...");
        let vitest = "--reporter=default --reporter=junit --outputFile.junit=/r/vitest.xml";
        check("npx vitest run", None, &format!("npx vitest run {vitest}"));
        let script = |test: &str| format!(r#"{{"scripts": {{"test": "{test}"}}}}"#);
        check("npm test", Some(&script("vitest run")), &format!("npm test -- {vitest}"));
        check("pnpm test", Some(&script("vitest run")), &format!("pnpm test {vitest}"));
        check(
            "CI=1 npm run test",
            Some(&script("jest")),
            "CI=1 npm run test -- --json --outputFile=/r/jest.json",
        );
        check("npm test", Some(&script("tsc && vitest run")), "npm test");
        check("npm test; echo x", Some(&script("jest")), "npm test; echo x");
        check("make test", None, "make test");
        assert_eq!(request("node --test", None).1, ["PYTEST_ADDOPTS", "NODE_OPTIONS"]);
        assert_eq!(request("pytest a && pytest b", None).1, Vec::<&str>::new());
    }
}
