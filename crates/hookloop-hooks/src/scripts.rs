//! The files of a project that a command runs.
//!
//! They are found when the command is checked, by the position of their word. When the command
//! runs, the trusted bytes replace them. There is no second search: a process could exchange a file
//! between two searches.
//!
//! Only literal words name a file. A word with an expansion, or after a directory change that
//! cannot be followed (`working_directory`), is reported as not covered by trust.

mod working_directory;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hookloop_core::hook::{CommandText, Hook, HookHandler};
use working_directory::{PROJECT_VARIABLES, WorkingDirectory};

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
/// Separators that precede a command.
const COMMAND_FOLLOWS: &str = ";|&(`{\n";
/// Separators inside a word of a shell.
const INSIDE_WORDS: &str = "'\"${}=:,";
/// Separators between the paths of a word: `PATH=a:b`.
const BETWEEN_PATHS: &str = "=:,";
/// Separators that end the arguments of a command.
const COMMAND_ENDS: &str = ";|&<>)\n";
/// Longest argument of `cd` that is read, in words between separators.
const ARGUMENT_MAX: usize = 64;

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
    /// Words through which files may run that only the shell can determine: `$TOOLS/run`.
    pub unresolved: BTreeSet<String>,
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
    /// Whether an interpreted word may be code or a plain argument: `perl -e code`, `find . x`.
    is_doubtful: bool,
    /// Whether the command writes to the word: `… > file`.
    is_written: bool,
    /// Whether a shell reads the word.
    is_shell: bool,
    /// Whether the path is the result of an expansion, or continues one.
    is_expanded: bool,
    /// The directory at the word, relative to that of the command; `None` if it is unknown.
    directory: Option<Rc<Path>>,
    /// The whole word, as the shell reads it.
    shown: Rc<str>,
    /// Whether the word begins an argument of a list command.
    begins_argument: bool,
    /// Whether the word begins a shell line in such an argument: `[sh, -c, line]`.
    begins_line: bool,
    /// Whether the word is code of another language in such an argument: `[python3, -c, code]`.
    is_code: bool,
}

impl ScriptWord {
    /// Returns the path in the word, if the text alone determines it.
    fn path(&self) -> Option<PathBuf> {
        let text = Path::new(&self.text);
        match self.directory.as_deref() {
            _ if self.is_expanded => None,
            _ if text.is_absolute() => Some(text.to_owned()),
            Some(directory) if directory.as_os_str().is_empty() => Some(text.to_owned()),
            // Components leave out each `.`.
            Some(directory) => Some(directory.join(text).components().collect()),
            None => None,
        }
    }

    /// Whether the command changes to a directory that does not exist.
    fn has_no_directory(&self, base: &Path) -> bool {
        self.directory.as_deref().is_some_and(|directory| !base.join(directory).is_dir())
    }

    /// Whether the command runs the word as a file, although its path is unknown.
    fn runs_unknown_file(&self) -> bool {
        let is_interpreted =
            self.is_interpreted && !self.is_doubtful && !self.text.starts_with('-');
        let is_file_name = is_interpreted && !self.is_expanded && self.text.contains('.');
        (self.is_command || is_interpreted) && (is_file_name || self.shown.contains(['/', '$']))
    }

    /// Whether the word sets the search path of programs.
    fn sets_search_path(&self) -> bool {
        let is_name = self.text == "PATH" && self.separator == Some('=');
        is_name || self.text.starts_with("PATH=")
    }
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
            if word.text.is_empty() || word.is_written || known.contains_key(&place) {
                continue;
            }
            if word.sets_search_path() {
                named.unresolved.insert(word.shown.to_string());
            }
            let is_script =
                |real: &Path| real.is_file() && (word.is_interpreted || is_program(real));
            let is_in_base = || {
                let found = real(&base.join(&word.text));
                found.is_some_and(|real| real.starts_with(root) && is_script(&real))
            };
            let Some(named_path) = word.path() else {
                if word.runs_unknown_file() || is_in_base() {
                    named.unresolved.insert(word.shown.to_string());
                }
                continue;
            };
            let path = base.join(&named_path);
            let is_run = word.is_command || word.is_interpreted;
            let Some(real) = real(&path) else {
                let is_missing = is_run && word.text.contains('/') && path.starts_with(root);
                // If `cd` fails, the shell stays in its directory.
                if is_missing || (word.has_no_directory(base) && is_in_base()) {
                    named.absent.get_or_insert(named_path.display().to_string());
                }
                continue;
            };
            match real.strip_prefix(root).ok().and_then(Path::to_str) {
                Some(name) if is_script(&real) => {
                    named.files.insert(place, name.to_owned());
                }
                None if path.starts_with(root) && real.is_file() => {
                    let link = named_path.display().to_string();
                    named.links.insert(link, real.display().to_string());
                }
                _ => {}
            }
        }
        named
    }

    /// Returns a sentence about the files that trust does not cover, if the command may run some.
    pub fn uncovered(&self) -> Option<String> {
        let words: Vec<String> = self.unresolved.iter().map(|word| format!("`{word}`")).collect();
        let words = Some(words.join(", ")).filter(|words| !words.is_empty())?;
        Some(format!(
            "hookloop cannot tell which files run through {words}: trust does not cover them"
        ))
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
    mark_roles(&mut words);
    mark_expansions(root, &mut words);
    mark_directories(root, &mut words);
    words
}

/// The role of the next word of a command.
#[derive(Default)]
struct WordRoles {
    expects_command: bool,
    is_interpreted: bool,
    is_doubtful: bool,
    /// Whether the interpreter's language is not that of a shell.
    is_other_language: bool,
    is_value: bool,
    is_written: bool,
    /// Open substitutions: the character that closes each, and whether its result is run.
    substitutions: Vec<(char, bool)>,
    /// Whether the next word continues a substitution whose result is run: `$(pwd)/run`.
    continues: bool,
}

impl WordRoles {
    /// Marks a word that is not empty.
    fn mark(&mut self, word: &mut ScriptWord) {
        let is_assignment = self.is_value || word.separator == Some('=');
        word.is_written = std::mem::take(&mut self.is_written);
        word.is_expanded = std::mem::take(&mut self.continues);
        word.is_command = word.is_expanded || (self.expects_command && !is_assignment);
        word.is_interpreted = self.is_interpreted;
        word.is_doubtful = self.is_doubtful;
        self.expects_command &= is_assignment || BEFORE_COMMANDS.contains(&word.text.as_str());
        if is_interpreter(&word.text) {
            let name = file_name(&word.text);
            let is_builtin = ["source", "."].contains(&name);
            self.is_doubtful = is_builtin && !word.is_command && !word.is_interpreted;
            self.is_other_language = !is_builtin && !SHELLS.contains(&name);
            self.is_interpreted = true;
        } else {
            self.is_interpreted &= word.text.starts_with('-');
            self.is_doubtful |= self.is_other_language && word.text.ends_with(['c', 'e', 'E', 'r']);
        }
    }

    /// Reads the separator after a word, which may be empty.
    fn pass(&mut self, word: &ScriptWord, begins_group: bool) {
        let separator = word.separator.unwrap_or(' ');
        let is_run = self.is_interpreted || (self.expects_command && !self.is_value);
        let open = self.substitutions.last().map(|(closing, _)| *closing);
        self.continues = match separator {
            ')' | '`' if open == Some(separator) => {
                self.substitutions.pop().is_some_and(|(_, is_run)| is_run)
            }
            '(' | '`' => {
                let closing = if separator == '(' { ')' } else { separator };
                self.substitutions.push((closing, is_run));
                false
            }
            '\'' | '"' => self.continues,
            _ => false,
        };
        self.is_value = separator == '=' || (self.is_value && INSIDE_WORDS.contains(separator));
        self.is_written |= separator == '>';
        self.expects_command |=
            COMMAND_FOLLOWS.contains(separator) && (separator != '{' || begins_group);
    }
}

/// Marks the words that the command runs, and those that it writes to.
fn mark_roles(words: &mut [ScriptWord]) {
    let mut roles = WordRoles { expects_command: true, ..WordRoles::default() };
    for place in 0..words.len() {
        let is_blank = |word: &ScriptWord| {
            word.text.is_empty() && word.separator.is_some_and(char::is_whitespace)
        };
        let begins_group = words.get(place + 1).is_some_and(is_blank);
        let word = &mut words[place];
        if word.is_code || word.begins_line {
            roles = WordRoles { expects_command: word.begins_line, ..WordRoles::default() };
        }
        if !word.text.is_empty() && !word.is_code {
            roles.mark(word);
        }
        roles.pass(word, begins_group);
    }
}

/// Marks the words with an expansion, whose path only the shell knows.
fn mark_expansions(root: &Path, words: &mut [ScriptWord]) {
    let root = root.display().to_string();
    let is_inside = |word: &ScriptWord| word.separator.is_some_and(|c| INSIDE_WORDS.contains(c));
    for whole in words.split_inclusive_mut(|word| !is_inside(word)) {
        let shown: Rc<str> = joined(whole).into();
        let is_between =
            |word: &ScriptWord| word.separator.is_some_and(|c| BETWEEN_PATHS.contains(c));
        for path in whole.split_inclusive_mut(is_between) {
            // The project's path is literal, whatever characters it has.
            let text = joined(path).replace(&root, "");
            let expands = text.contains(['$', '*', '?', '[', '\\']) || text.starts_with('~');
            let mut before = None;
            for word in path {
                let is_brace = |c: Option<char>| matches!(c, Some('{' | '}'));
                let touches_brace = is_brace(before) || is_brace(word.separator);
                before = word.separator;
                // Until here, only the continuation of a substitution is marked.
                word.shown = if word.is_expanded {
                    format!("$(…){}", word.text).into()
                } else {
                    Rc::clone(&shown)
                };
                word.is_expanded |=
                    if word.is_shell { expands || touches_brace } else { text.contains("{{") };
            }
        }
    }
}

/// Returns words with the separators between them.
fn joined(words: &[ScriptWord]) -> String {
    let mut text = String::new();
    let mut separator = None;
    for word in words {
        text.extend(separator);
        text.push_str(&word.text);
        separator = word.separator;
    }
    text
}

/// Marks each word with the directory in which the shell reads it.
fn mark_directories(root: &Path, words: &mut [ScriptWord]) {
    let mut directory = WorkingDirectory::new();
    for place in 0..words.len() {
        let word = &words[place];
        if word.begins_argument {
            directory = WorkingDirectory::new();
        }
        let is_run = word.is_command || word.is_interpreted;
        if !word.text.is_empty() && word.is_shell {
            directory.begin(&word.text, is_run);
            if is_run && !word.is_expanded && WorkingDirectory::is_change(&word.text) {
                directory.change(root, &word.text, &argument(&words[place..]));
            }
        }
        let now = directory.now();
        if let Some(separator) = word.separator {
            directory.pass(&word.text, separator);
        }
        words[place].directory = now;
    }
}

/// Returns the text from the first word of a command, without it, to the end of the command.
fn argument(words: &[ScriptWord]) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    for (index, word) in words.iter().take(ARGUMENT_MAX).enumerate() {
        if index > 0 {
            text.push_str(&word.text);
        }
        match word.separator {
            Some('(') => depth += 1,
            Some(')') if depth > 0 => depth -= 1,
            Some(c) if depth > 0 || !COMMAND_ENDS.contains(c) => {}
            _ => break,
        }
        text.extend(word.separator);
    }
    text
}

fn word(text: &str, separator: Option<char>) -> ScriptWord {
    ScriptWord {
        text: text.to_owned(),
        separator,
        is_command: false,
        is_interpreted: false,
        is_doubtful: false,
        is_written: false,
        is_shell: false,
        is_expanded: false,
        directory: None,
        shown: "".into(),
        begins_argument: false,
        begins_line: false,
        is_code: false,
    }
}

/// Returns the words of a list command: its arguments, and the words of a shell line in one of
/// them.
fn arguments(root: &Path, args: &[String]) -> Vec<ScriptWord> {
    let mut words = Vec::new();
    // The interpreter whose options are read, and whether the next argument is code for it.
    let mut interpreter: Option<&str> = None;
    let mut takes_code = false;
    for arg in args {
        let is_line = takes_code && interpreter.is_some_and(|name| SHELLS.contains(&name));
        let mut own = match is_line {
            true => split(&spelled_out(root, arg)),
            false => vec![word(arg, None)],
        };
        if let Some(first) = own.first_mut() {
            first.begins_argument = true;
            first.begins_line = is_line;
            first.is_code = takes_code && !is_line;
        }
        words.append(&mut own);
        if std::mem::take(&mut takes_code) {
            interpreter = None;
        } else if let Some(name) = interpreter.filter(|_| arg.starts_with('-')) {
            takes_code = is_code_option(name, arg);
        } else {
            interpreter = arg.rsplit('/').next().filter(|name| is_interpreter(name));
        }
    }
    words
}

/// Whether the argument after an option is code, not a file.
fn is_code_option(interpreter: &str, option: &str) -> bool {
    match SHELLS.contains(&interpreter) {
        true => !option.starts_with("--") && option.ends_with('c'),
        false => ["-c", "-e", "-E", "-p", "-r", "--eval", "--print"].contains(&option),
    }
}

fn split(line: &str) -> Vec<ScriptWord> {
    let of_shell = |text, separator| ScriptWord { is_shell: true, ..word(text, separator) };
    let (mut words, mut rest) = (Vec::new(), line);
    while let Some(end) = rest.find(is_separator) {
        let separator = rest[end..].chars().next();
        words.push(of_shell(&rest[..end], separator));
        rest = &rest[end + separator.map_or(0, char::len_utf8)..];
    }
    words.push(of_shell(rest, None));
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
    for name in PROJECT_VARIABLES {
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
    let mut start = [0; 2];
    let mut starts = || fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    is_executable || (starts().is_ok() && start == *b"#!")
}

fn is_interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&file_name(word))
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
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
        // The script in the line is trusted by its bytes, like one in a plain command.
        let (named, text) = look(&["sh", "-c", "cd .; ./gate.sh -x", "name"]);
        let files: Vec<&String> = named.files.values().collect();
        assert_eq!(files, ["gate.sh"]);
        let kept = BTreeMap::from([("gate.sh".to_owned(), PathBuf::from("/kept/1"))]);
        let expected = ["sh", "-c", "cd .; /kept/1 -x", "name"].map(str::to_owned).to_vec();
        assert_eq!(named.pinned(&root, &text, &kept), Ok(CommandText::Exec(expected)));
        let (named, text) = look(&["./gate.sh", "-x"]);
        let expected = ["/kept/1", "-x"].map(str::to_owned).to_vec();
        assert_eq!(named.pinned(&root, &text, &kept), Ok(CommandText::Exec(expected)));
    }

    /// Checks the scripts, the missing script and the unresolved words of a shell line.
    fn check(line: &str, scripts: &[&str], absent: Option<&str>, unresolved: &[&str]) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        for name in ["check.sh", "hooks/l1.sh", "tool/run", "tool/deep/run", "a b/run"] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "#!/bin/sh\n").unwrap();
        }
        std::fs::create_dir(root.join(".git")).unwrap();
        let words = ["sh", "-c", line].map(str::to_owned).to_vec();
        for text in [CommandText::Shell(line.to_owned()), CommandText::Exec(words)] {
            let named = NamedFiles::of_command(&root, &root, &text, &BTreeMap::new());
            let found: Vec<&String> = named.files.values().collect();
            assert_eq!(found, scripts, "{line}");
            assert_eq!(named.absent.as_deref(), absent, "{line}");
            assert_eq!(named.unresolved.iter().collect::<Vec<_>>(), unresolved, "{line}");
        }
    }

    #[test]
    fn literal_directory_changes_are_followed() {
        for line in [
            "cd tool; ./run",
            "cd tool && ./run",
            "set -e\ncd ./tool/\n./run",
            "cd 'tool' 2>/dev/null || exit 1; ./run",
            "cd -- tool/deep && cd .. && ./run",
            "cd $HOOKLOOP_PROJECT/tool && sh run",
            "cd \"$CLAUDE_PROJECT_DIR\"; tool/run",
            "cd \"$(git rev-parse --show-toplevel)\" && tool/run",
            "(cd tool && ./run)",
            "bash -c 'cd tool && ./run'",
            "true && cd tool && ./run",
            "# don't\ncd tool\necho 'x'\n./run",
        ] {
            check(line, &["tool/run"], None, &[]);
        }
        check("cd \"a b\" && ./run", &["a b/run"], None, &[]);
        check("cd tool; ./run; cd ..; ./check.sh", &["tool/run", "check.sh"], None, &[]);
        check("pushd tool; ./run; popd; ./check.sh", &["tool/run", "check.sh"], None, &[]);
        check("(cd tool; ./run) && ./check.sh", &["tool/run", "check.sh"], None, &[]);
        check("echo \"$(cd tool; pwd)\"; ./check.sh", &["check.sh"], None, &[]);
        check("sh -c 'cd tool; make'; ./check.sh", &["check.sh"], None, &[]);
        check("cd / && ./check.sh", &[], None, &[]);
    }

    #[test]
    fn words_after_an_unknown_directory_change_are_unresolved() {
        for line in [
            "cd $T; ./run",
            "cd \"$(dirname \"$T\")\" && ./run",
            "cd; ./run",
            "cd - && ./run",
            "cd ~/tool && ./run",
            "cd t*; ./run",
            "test -d tool && cd tool; ./run",
            "false || cd tool; ./run",
            "if true; then\ncd tool\nfi\n./run",
            "for d in tool; do cd $d; ./run; done",
            "f() { cd tool; }; f; ./run",
        ] {
            check(line, &[], None, &["./run"]);
        }
        // Scripts that the change does not concern stay covered.
        check("(cd $T && ./run); ./check.sh", &["check.sh"], None, &["./run"]);
        check("cd $T; ./run; cd $HOOKLOOP_PROJECT; ./check.sh", &["check.sh"], None, &["./run"]);
        check("cd $T; $HOOKLOOP_PROJECT/check.sh", &["check.sh"], None, &[]);
        // A script that has the same path without the change is reported as an argument, too.
        check("cd $T; timeout 5 ./check.sh", &[], None, &["./check.sh"]);
        check("cd $T; make; npm test", &[], None, &[]);
    }

    #[test]
    fn words_with_an_expansion_are_unresolved() {
        for (line, word) in [
            ("T=tool; $T/run", "$T/run"),
            ("T=tool; \"${T}\"/run", "\"${T}\"/run"),
            ("./tool/$T", "./tool/$T"),
            ("sh hooks/l*.sh", "hooks/l*.sh"),
            ("sh hooks/l?.sh", "hooks/l?.sh"),
            ("sh hooks/l[1].sh", "hooks/l[1].sh"),
            ("sh $PWD/check.sh", "$PWD/check.sh"),
            ("sh ~/check.sh", "~/check.sh"),
            ("./tool/{run,all}", "./tool/{run,all}"),
            ("./tool/{{task_type}}.sh", "./tool/{{task_type}}.sh"),
            ("./my\\ tool", "./my\\"),
            ("\"$(pwd)\"/tool/run", "$(…)/tool/run"),
            ("sh `pwd`/check.sh", "$(…)/check.sh"),
            ("PATH=$PWD/tool:$PATH; run", "PATH=$PWD/tool:$PATH"),
            (". \"$HOME/env\" && make", "\"$HOME/env\""),
        ] {
            check(line, &[], None, &[word]);
        }
        for line in [
            "echo $T/run ${T}/run",
            "[ -n \"$T\" ] && make",
            "find . -path './x/*'",
            "perl -e '$x/$y'",
            "T=\"$PWD/x\" make",
            "case $T in */*) make;; *) npm test;; esac",
        ] {
            check(line, &[], None, &[]);
        }
        check("./check.sh {{task_id}} \"$T\" *.rs", &["check.sh"], None, &[]);
    }

    #[test]
    fn a_literal_script_that_does_not_exist_is_missing() {
        for (line, script) in [
            ("./gone", "./gone"),
            ("T=\"$PWD/x\" ./gone", "./gone"),
            ("cd tool; ./gone", "tool/gone"),
            ("cd gone && ./run", "gone/run"),
            ("cd gone; sh check.sh", "gone/check.sh"),
            ("cd gone && sh ../hooks/gone.sh", "gone/../hooks/gone.sh"),
            ("(cd $T; make); ./gone", "./gone"),
        ] {
            check(line, &[], Some(script), &[]);
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
