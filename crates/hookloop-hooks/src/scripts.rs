//! The files of a project that a command runs.
//!
//! They are found when the command is checked, by the position of their word. When the command
//! runs, the trusted bytes replace them. There is no second search: a process could exchange a file
//! between two searches.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hookloop_core::hook::{CommandText, Hook, HookHandler};

/// Programs that run the file in their arguments.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "ruby",
    "perl", "php", "source", ".",
];
/// Interpreters that take a command line with `-c`.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];
/// Words that precede a command.
const BEFORE_COMMANDS: [&str; 15] = [
    "if", "then", "else", "elif", "do", "while", "until", "!", "exec", "command", "env", "nohup",
    "time", "nice", "sudo",
];
/// Programs that check the files in their arguments, and do not run them as a script.
///
/// Their files are the work. Trusted bytes in place of the work would void the check. The result of such a program is
/// no code, unlike that of `cat`.
const CHECKERS: [&str; 38] = [
    "test",
    "[",
    "ls",
    "stat",
    "file",
    "wc",
    "cmp",
    "diff",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "shellcheck",
    "shfmt",
    "checkbashisms",
    "bashate",
    "rustfmt",
    "gofmt",
    "goimports",
    "clang-format",
    "pytest",
    "ruff",
    "black",
    "isort",
    "flake8",
    "pylint",
    "mypy",
    "pyright",
    "eslint",
    "prettier",
    "standard",
    "biome",
    "jest",
    "vitest",
    "hadolint",
    "yamllint",
    "codespell",
    "typos",
];
/// Separators that precede a command.
const COMMAND_FOLLOWS: &str = ";|&(`{\n";

/// The files of a project that a command names.
#[derive(Clone, Debug, Default)]
pub struct NamedFiles {
    /// Files that the command runs, relative to the project's root, by the position of their word.
    pub files: BTreeMap<usize, String>,
    /// Links in the project, with their targets outside of it.
    ///
    /// The targets are usually programs that the repository does not contain, but the link selects
    /// them.
    pub links: BTreeMap<String, String>,
    /// A file that the command would run and that does not exist.
    pub absent: Option<String>,
}

/// A word of a command.
struct ScriptWord {
    text: String,
    /// The separator after the word, in a shell line.
    separator: Option<char>,
    /// Whether the word is in the position of a program name.
    is_command: bool,
    /// Whether the word follows an interpreter and its options: `python3 -u tool.py`.
    is_interpreted: bool,
    /// Whether the command writes to the word: `… > file`.
    is_written: bool,
    /// Whether the word begins an argument of a list command.
    begins_argument: bool,
    /// Whether the word begins a shell line in such an argument: `[sh, -c, line]`.
    begins_line: bool,
    /// Whether the word is code of another language in such an argument: `[python3, -c, code]`.
    is_code: bool,
    /// Whether it is an argument of a program that checks files.
    is_checked: bool,
}

impl NamedFiles {
    /// Finds the files that a hook's command names.
    pub fn look(root: &Path, hook: &Hook) -> NamedFiles {
        NamedFiles::look_beside(root, hook, &BTreeMap::new())
    }

    /// Finds the files that a hook's command names, except at the words in `known`.
    pub fn look_beside(root: &Path, hook: &Hook, known: &BTreeMap<usize, String>) -> NamedFiles {
        let HookHandler::Command(text) = &hook.handler else { return NamedFiles::default() };
        let base = root.join(hook.options.cwd.as_deref().unwrap_or(""));
        NamedFiles::of_command(root, &base, text, known)
    }

    fn of_command(
        root: &Path,
        base: &Path,
        text: &CommandText,
        known: &BTreeMap<usize, String>,
    ) -> NamedFiles {
        let mut named = NamedFiles::default();
        for (place, word) in words(root, text).into_iter().enumerate() {
            if word.text.is_empty() || word.is_checked || known.contains_key(&place) {
                continue;
            }
            let path = base.join(&word.text);
            // A program counts in any case: quotes and comments can hide that it is no target.
            if word.is_written && !real(&path).is_some_and(|real| is_program(&real)) {
                continue;
            }
            let is_run = word.is_command || word.is_interpreted;
            let Some(real) = real(&path) else {
                if is_run && word.text.contains('/') && path.starts_with(root) {
                    named.absent.get_or_insert(word.text);
                }
                continue;
            };
            match real.strip_prefix(root).ok().and_then(Path::to_str) {
                Some(name) if real.is_file() && (word.is_interpreted || is_program(&real)) => {
                    named.files.insert(place, name.to_owned());
                }
                None if path.starts_with(root) && real.is_file() => {
                    named.links.insert(word.text, real.display().to_string());
                }
                _ => {}
            }
        }
        named
    }

    /// Returns the command with its files replaced by the copies of their trusted bytes.
    pub fn pinned(
        &self,
        root: &Path,
        text: &CommandText,
        kept: &BTreeMap<String, PathBuf>,
    ) -> Result<CommandText, String> {
        if self.files.is_empty() {
            return Ok(text.clone());
        }
        let place = |index: usize| {
            let name = self.files.get(&index)?;
            Some(kept.get(name).ok_or_else(|| format!("the agreed bytes of `{name}` are not kept")))
        };
        let words = words(root, text).into_iter().enumerate();
        match text {
            CommandText::Exec(_) => {
                let mut args: Vec<String> = Vec::new();
                let words: Vec<(usize, ScriptWord)> = words.collect();
                for (index, word) in &words {
                    // In a shell line, the argument has further words after this one.
                    let continues =
                        words.get(index + 1).is_some_and(|(_, next)| !next.begins_argument);
                    let is_whole = word.begins_argument && !continues;
                    let text = match place(*index).transpose()? {
                        Some(path) if is_whole => path.display().to_string(),
                        Some(path) => plain(path)?,
                        None => word.text.clone(),
                    };
                    if word.begins_argument {
                        args.push(String::new());
                    }
                    if let Some(arg) = args.last_mut() {
                        arg.push_str(&text);
                        arg.extend(word.separator);
                    }
                }
                Ok(CommandText::Exec(args))
            }
            CommandText::Shell(_) => {
                let mut line = String::new();
                for (index, word) in words {
                    match place(index).transpose()? {
                        Some(path) => line.push_str(&plain(path)?),
                        None => line.push_str(&word.text),
                    }
                    line.extend(word.separator);
                }
                Ok(CommandText::Shell(line))
            }
        }
    }
}

/// Returns the words of a command, including empty ones between two separators.
///
/// The position of a word identifies its file.
fn words(root: &Path, text: &CommandText) -> Vec<ScriptWord> {
    let mut words = match text {
        CommandText::Exec(args) => arguments(root, args),
        CommandText::Shell(line) => split(&spelled_out(root, line)),
    };
    let (mut expects_command, mut is_value, mut is_written) = (true, false, false);
    // The interpreter whose script is expected, and whether the next word is the value of an option.
    let mut interpreter: Option<String> = None;
    let mut takes_value = false;
    let mut quote = None;
    // Whether the words are arguments of a checker, and whether the next word is a module of Python.
    let (mut is_checked, mut is_module) = (false, false);
    for word in &mut words {
        if word.is_code {
            (expects_command, interpreter, is_checked) = (false, None, false);
            continue;
        }
        if word.begins_line {
            (expects_command, interpreter) = (true, None);
        }
        let is_continued = word.is_continued();
        let text = word.text.strip_suffix('\\').filter(|_| is_continued).unwrap_or(&word.text);
        if !text.is_empty() {
            word.is_written = std::mem::take(&mut is_written);
            let is_assignment = is_value || word.separator == Some('=');
            word.is_command = expects_command && !is_assignment;
            word.is_interpreted = interpreter.is_some();
            let is_program = word.is_command || std::mem::replace(&mut is_module, text == "-m");
            if is_program {
                is_checked = program_name(text).is_some_and(|name| CHECKERS.contains(&name));
            }
            word.is_checked = is_checked && !is_program && !word.is_interpreted;
            let passes_on = BEFORE_COMMANDS.contains(&text);
            expects_command &= is_assignment || passes_on;
            let was_value = std::mem::take(&mut takes_value);
            interpreter = match interpreter {
                _ if is_interpreter(text) => program_name(text).map(str::to_owned),
                Some(name) if was_value => Some(name),
                Some(name) if is_option(&name, text) => {
                    takes_value = has_value(&name, text);
                    Some(name)
                }
                _ => None,
            };
        }
        if is_continued {
            continue;
        }
        is_value = word.separator == Some('=');
        quote = word.quote_after(quote);
        match word.separator {
            Some('>') if quote.is_none() => is_written = true,
            Some(c) if COMMAND_FOLLOWS.contains(c) => is_written = false,
            _ => {}
        }
        expects_command |= word.separator.is_some_and(|c| COMMAND_FOLLOWS.contains(c));
    }
    words
}

impl ScriptWord {
    /// Whether a backslash at the end of the word joins two lines.
    fn is_continued(&self) -> bool {
        self.separator == Some('\n') && self.text.ends_with('\\')
    }

    /// Returns the quote that is open after the word, from the one that is open before it.
    fn quote_after(&self, open: Option<char>) -> Option<char> {
        let is_escaped = open != Some('\'') && self.text.ends_with('\\');
        match (open, self.separator) {
            (Some(quote), Some(c)) if c == quote && !is_escaped => None,
            (None, Some(c @ ('\'' | '"'))) if !is_escaped => Some(c),
            _ => open,
        }
    }
}

fn word(text: &str, separator: Option<char>) -> ScriptWord {
    ScriptWord {
        text: text.to_owned(),
        separator,
        is_command: false,
        is_interpreted: false,
        is_written: false,
        begins_argument: false,
        begins_line: false,
        is_code: false,
        is_checked: false,
    }
}

/// Returns the words of a list command: its arguments, and the words of a shell line in one of
/// them.
fn arguments(root: &Path, args: &[String]) -> Vec<ScriptWord> {
    let mut words = Vec::new();
    // The interpreter whose options are read, whether one of them announced code, and whether the
    // next argument is the value of the last one.
    let mut interpreter: Option<&str> = None;
    let (mut takes_code, mut takes_value) = (false, false);
    for arg in args {
        let is_shell = interpreter.is_some_and(|name| SHELLS.contains(&name));
        let is_value = std::mem::take(&mut takes_value);
        let is_option = !is_value && interpreter.is_some_and(|name| is_option(name, arg));
        // A shell reads all of its options before the line of `-c`.
        let is_code = takes_code && !is_value && !(is_shell && is_option);
        let is_line = is_code && is_shell;
        let mut own = match is_line {
            true => split(&spelled_out(root, arg)),
            false => vec![word(arg, None)],
        };
        if let Some(first) = own.first_mut() {
            first.begins_argument = true;
            first.begins_line = is_line;
            first.is_code = is_code && !is_line;
        }
        words.append(&mut own);
        if is_code {
            (interpreter, takes_code) = (None, false);
        } else if let Some(name) = interpreter.filter(|_| is_option) {
            takes_code |= is_code_option(name, arg);
            takes_value = has_value(name, arg);
        } else if !is_value {
            takes_code = false;
            interpreter = program_name(arg).filter(|name| is_interpreter(name));
        }
    }
    words
}

fn program_name(word: &str) -> Option<&str> {
    word.rsplit('/').next()
}

/// Whether a word is an option of the interpreter.
fn is_option(interpreter: &str, word: &str) -> bool {
    word.starts_with('-') || SHELLS.contains(&interpreter) && word.starts_with('+')
}

/// Whether the value of an option is the next word.
fn has_value(interpreter: &str, option: &str) -> bool {
    match interpreter {
        name if SHELLS.contains(&name) => {
            let is_long = option.starts_with("--");
            ["--rcfile", "--init-file"].contains(&option)
                || !is_long && option.ends_with(['o', 'O'])
        }
        "python" | "python3" => ["-W", "-X"].contains(&option),
        "perl" | "ruby" => option == "-I",
        "node" | "bun" | "deno" => {
            ["-r", "--require", "--import", "--loader", "-C"].contains(&option)
        }
        "php" => ["-d", "-c"].contains(&option),
        _ => false,
    }
}

/// Whether an option announces code, not a file.
fn is_code_option(interpreter: &str, option: &str) -> bool {
    match SHELLS.contains(&interpreter) {
        true => option.starts_with('-') && !option.starts_with("--") && option.contains('c'),
        false => ["-c", "-e", "-E", "-p", "-r", "--eval", "--print"].contains(&option),
    }
}

fn split(line: &str) -> Vec<ScriptWord> {
    let (mut words, mut rest) = (Vec::new(), line);
    while let Some(end) = rest.find(is_separator) {
        let separator = rest[end..].chars().next();
        words.push(word(&rest[..end], separator));
        rest = &rest[end + separator.map_or(0, char::len_utf8)..];
    }
    words.push(word(rest, None));
    words
}

/// Returns a shell line with the variables for the project's directory replaced by its path.
///
/// So a file that is named through such a variable is found.
fn spelled_out<'l>(root: &Path, line: &'l str) -> Cow<'l, str> {
    let directory = format!("{}/", root.display());
    if !line.contains('$') || directory.contains(is_separator) {
        return Cow::Borrowed(line);
    }
    let mut line = line.to_owned();
    for name in ["CLAUDE_PROJECT_DIR", "HOOKLOOP_PROJECT"] {
        for form in [format!("${name}"), format!("${{{name}}}")] {
            line = line.replace(&format!("\"{form}\"/"), &directory);
            line = line.replace(&format!("{form}/"), &directory);
        }
    }
    Cow::Owned(line)
}

/// Whether a file can be executed directly.
fn is_program(path: &Path) -> bool {
    use std::io::Read;
    let is_executable = fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    let mut start = [0; 3];
    let mut starts = || fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    // `#![…]` is an attribute of a Rust file.
    is_executable || (starts().is_ok() && start.starts_with(b"#!") && start[2] != b'[')
}

fn is_interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&word.rsplit('/').next().unwrap_or(word))
}

/// Whether a character ends a word that could be a path.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || "'\"`;|&()<>={}$,:".contains(c)
}

/// Returns the real path. Most words of a command are no path, so the cheap check comes first.
fn real(path: &Path) -> Option<PathBuf> {
    fs::symlink_metadata(path).ok()?;
    path.canonicalize().ok()
}

/// Returns a path that a shell does not change, in any quotes.
fn plain(path: &Path) -> Result<String, String> {
    let text = path.display().to_string();
    let fits = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    match text.chars().all(fits) {
        true => Ok(text),
        false => Err(format!(
            "scripts are run from `{text}`, which a shell would not take as it is; set XDG_STATE_HOME to a plain path"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(line: &str) -> Vec<String> {
        let words = words(Path::new("/p"), &CommandText::Shell(line.to_owned()));
        let is_run = |word: &ScriptWord| word.is_command || word.is_interpreted;
        words.into_iter().filter(is_run).map(|word| word.text).collect()
    }

    #[test]
    fn executed_words_are_distinguished_from_arguments() {
        assert_eq!(commands("./a x ./b"), ["./a"]);
        assert_eq!(commands("./a; ./b && ./c | ./d &"), ["./a", "./b", "./c", "./d"]);
        assert_eq!(commands("A=./x B=y ./a ./b"), ["./a"]);
        assert_eq!(
            commands("if ./a; then exec ./b; fi"),
            ["if", "./a", "then", "exec", "./b", "fi"]
        );
        assert_eq!(commands("python3 -u a/b.py c"), ["python3", "-u", "a/b.py"]);
        for (line, script) in [
            ("python3 \\\n a.py \\\n b.py", "a.py"),
            ("python3\\\n a.py", "a.py"),
            ("python3 -W ignore a.py b.py", "a.py"),
            ("bash -euo pipefail a.sh b.sh", "a.sh"),
            ("bash +x a.sh", "a.sh"),
            ("node --require ./b.js a.js c", "a.js"),
        ] {
            let run = commands(line);
            assert_eq!(run.last().map(String::as_str), Some(script), "{line}: {run:?}");
        }
        assert_eq!(commands("echo '==>'; ./a"), ["echo", "./a"]);
        assert_eq!(commands("test -e ./a && (cd x; ./b)"), ["test", "cd", "./b"]);
        assert_eq!(commands("echo \"$(./a)\" '`./b`'"), ["echo", "./a", "./b"]);
    }

    #[test]
    fn a_shell_line_in_an_argument_list_has_its_scripts_checked_and_pinned() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        std::fs::write(root.join("gate.sh"), "#!/bin/sh\n").unwrap();
        let look = |args: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            let text = CommandText::Exec(args);
            let named = NamedFiles::of_command(&root, &root, &text, &BTreeMap::new());
            (named, text)
        };
        for line in ["test -e /etc/passwd && cat /etc/passwd", "ls ./not-there", "echo a/b > c/d"] {
            assert_eq!(look(&["sh", "-c", line]).0.absent, None, "{line}");
        }
        assert_eq!(look(&["python3", "-c", "open('/x/y'); import a"]).0.absent, None);
        assert_eq!(look(&["sh", "-ec", "./not-there x"]).0.absent.as_deref(), Some("./not-there"));
        assert_eq!(look(&["sh", "./not-there"]).0.absent.as_deref(), Some("./not-there"));
        for options in [&["-euo", "pipefail", "-c"][..], &["-ce"], &["-c", "-e"], &["+x", "-c"]] {
            let args = [&["bash"], options, &["./gate.sh --all"]].concat();
            let files: Vec<String> = look(&args).0.files.into_values().collect();
            assert_eq!(files, ["gate.sh"], "{options:?}");
        }
        for line in
            ["# don't\nLABEL='-->' ./gate.sh", "LABEL=\\> ./gate.sh", "bash -o posix gate.sh"]
        {
            let text = CommandText::Shell(line.to_owned());
            let named = NamedFiles::of_command(&root, &root, &text, &BTreeMap::new());
            assert_eq!(named.files.into_values().collect::<Vec<_>>(), ["gate.sh"], "{line}");
        }
        // The script in the line is trusted by its bytes, like one in a plain command.
        let (named, text) = look(&["sh", "-c", "cd /; ./gate.sh -x", "name"]);
        let files: Vec<&String> = named.files.values().collect();
        assert_eq!(files, ["gate.sh"]);
        let kept = BTreeMap::from([("gate.sh".to_owned(), PathBuf::from("/kept/1"))]);
        let expected = ["sh", "-c", "cd /; /kept/1 -x", "name"].map(str::to_owned).to_vec();
        assert_eq!(named.pinned(&root, &text, &kept), Ok(CommandText::Exec(expected)));
        let (named, text) = look(&["./gate.sh", "-x"]);
        let expected = ["/kept/1", "-x"].map(str::to_owned).to_vec();
        assert_eq!(named.pinned(&root, &text, &kept), Ok(CommandText::Exec(expected)));
    }

    /// A linter with the trusted bytes in place of the work would accept any work.
    #[test]
    fn files_that_a_command_only_checks_are_not_pinned() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        std::fs::write(root.join("a.sh"), "#!/bin/sh\n").unwrap();
        std::fs::write(root.join("lib.rs"), "#![no_std]\n").unwrap();
        let files = |line: &str| -> Vec<String> {
            let text = CommandText::Shell(line.to_owned());
            let named = NamedFiles::of_command(&root, &root, &text, &BTreeMap::new());
            named.files.into_values().collect()
        };
        for line in [
            "shellcheck a.sh",
            "grep -q ok a.sh",
            "X=1 shellcheck -x a.sh",
            "test -x a.sh",
            "[ -x a.sh ]",
            "pytest a.sh",
            "python3 -m pytest a.sh",
            "rustfmt --check lib.rs",
            "unknown lib.rs",
        ] {
            assert_eq!(files(line), [""; 0], "{line}");
        }
        for line in [
            "test -x a.sh && ./a.sh",
            "shellcheck x; ./a.sh",
            "unknown a.sh",
            "timeout 20 ./a.sh",
            "cat a.sh | sh",
            "sh a.sh",
            "python3 -m runner a.sh",
            "grep x y | xargs ./a.sh",
        ] {
            assert_eq!(files(line), ["a.sh"], "{line}");
        }
    }

    #[test]
    fn redirection_targets_are_recognized_as_written() {
        let written = |line: &str| -> Vec<String> {
            let words = words(Path::new("/p"), &CommandText::Shell(line.to_owned()));
            words.into_iter().filter(|word| word.is_written).map(|word| word.text).collect()
        };
        assert_eq!(written("./a > ../b"), ["../b"]);
        assert_eq!(written("./a x >>b/c 2> d; ./e"), ["b/c", "d"]);
        assert_eq!(written("./a < b"), [""; 0]);
        assert_eq!(written("./a > \"b\"; ./c"), ["b"]);
        for line in ["echo '==>'; ./a", "echo \"<done>\" && ./a", "# -->\n./a", "tee >(./a)"] {
            assert_eq!(written(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn split_shell_words_join_to_the_original_line() {
        for line in ["", "a", " a  b ", "a;b|c&&d", "x=$(y) 'z' \"w\"\n", "é,ü:ß"] {
            let together: String = split(line)
                .into_iter()
                .flat_map(|word| word.text.chars().chain(word.separator).collect::<Vec<_>>())
                .collect();
            assert_eq!(together, line);
        }
    }
}
