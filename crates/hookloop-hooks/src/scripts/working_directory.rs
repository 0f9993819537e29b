//! The working directory at each word of a shell line, as far as the text determines it.
//!
//! A directory change is followed if its target is literal and no condition precedes it. After any
//! other change the directory is unknown, until its subshell or quotes end.

use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Variables with the project's directory.
pub(super) const PROJECT_VARIABLES: [&str; 2] = ["CLAUDE_PROJECT_DIR", "HOOKLOOP_PROJECT"];
/// Commands that change the directory of the shell.
const CHANGES: [&str; 4] = ["cd", "chdir", "pushd", "popd"];
/// Words before commands that the shell may skip or repeat.
const BRANCHES: [&str; 5] = ["then", "else", "elif", "do", "case"];
/// Separators that begin the commands of another shell.
const OPENINGS: &str = "('\"`";
const GIT_TOP_LEVEL: &str = "$(git rev-parse --show-toplevel)";

#[derive(Clone)]
struct DirectoryState {
    /// Relative to the directory of the command, or absolute; `None` if unknown.
    now: Option<Rc<Path>>,
    /// The directory before the present list of commands: `a && b && c`.
    before_list: Option<Rc<Path>>,
    /// Whether the list changed the directory on a condition: `a && cd b`.
    is_conditional: bool,
    /// Whether the shell may skip or repeat the next commands.
    has_branches: bool,
}

/// The directory of a shell while it reads a line.
pub(super) struct WorkingDirectory {
    state: DirectoryState,
    /// Open parentheses and quotes: the character that closes each, and the state before it.
    scopes: Vec<(char, DirectoryState)>,
    /// Whether one of the scopes is in single quotes.
    is_single: bool,
    /// Directories that `pushd` left.
    pushed: Vec<Option<Rc<Path>>>,
    /// Separators since the last word.
    gap: String,
    /// The last separator.
    before: Option<char>,
    is_comment: bool,
}

impl WorkingDirectory {
    /// Returns the directory at the beginning of a line.
    pub(super) fn new() -> WorkingDirectory {
        let start: Option<Rc<Path>> = Some(Path::new("").into());
        WorkingDirectory {
            state: DirectoryState {
                now: start.clone(),
                before_list: start,
                is_conditional: false,
                has_branches: false,
            },
            scopes: Vec::new(),
            is_single: false,
            pushed: Vec::new(),
            gap: ";".to_owned(),
            before: None,
            is_comment: false,
        }
    }

    /// Returns the directory, relative to that of the command; `None` if it is unknown.
    pub(super) fn now(&self) -> Option<Rc<Path>> {
        self.state.now.clone()
    }

    /// Whether a word, in the position of a command, changes the directory.
    pub(super) fn is_change(word: &str) -> bool {
        CHANGES.contains(&word)
    }

    /// Reads the beginning of a word that is not empty.
    pub(super) fn begin(&mut self, word: &str, is_run: bool) {
        let gap = &self.gap;
        let is_group = gap.trim_end().ends_with('{') && gap.contains(['|', '&']);
        // A function, or a here-document, whose lines are no commands.
        let is_other = gap.contains("()") || gap.contains("<<");
        self.state.has_branches |= is_group || is_other || is_run && BRANCHES.contains(&word);
    }

    /// Follows a command that changes the directory, with the text after its first word.
    pub(super) fn change(&mut self, root: &Path, command: &str, argument: &str) {
        if self.is_comment {
            return;
        }
        let left = self.now();
        let next = match command {
            "popd" => self.pushed.pop().flatten(),
            _ => self.target(root, argument),
        };
        if command == "pushd" {
            self.pushed.push(left);
        }
        self.state.is_conditional |= self.own_gap().contains("&&");
        self.state.now = next.filter(|_| self.is_reached());
    }

    /// Reads the separator after a word, which may be empty.
    pub(super) fn pass(&mut self, word: &str, separator: char) {
        let before = self.before.replace(separator);
        let top = self.scopes.last().map(|(closing, _)| *closing);
        let begins_word = before.is_none_or(|c| c.is_whitespace() || ";|&(".contains(c));
        let is_quoted = matches!(top, Some('"' | '\''));
        self.is_comment |= word.starts_with('#') && begins_word && !is_quoted;
        if self.is_comment && separator != '\n' {
            return;
        }
        // A lone backslash continues a line.
        if !word.is_empty() && word != "\\" && !self.is_comment {
            self.gap.clear();
        }
        self.gap.push(separator);
        self.is_comment = false;
        let is_escaped = word.ends_with('\\') && top != Some('\'');
        let is_substitution = word.is_empty() && before == Some('$');
        match separator {
            _ if is_escaped => {}
            ';' | '\n' => self.end_list(),
            '|' if word.is_empty() && before == Some('|') => self.end_list(),
            '(' if top != Some('"') || is_substitution => self.open(')'),
            ')' | '"' | '`' if top == Some(separator) => self.close(separator),
            '\'' if self.is_single => self.close(separator),
            '\'' if top == Some('"') => {}
            '"' | '`' | '\'' => self.open(separator),
            _ => {}
        }
    }

    /// Ends a list of commands. After `a && cd b;`, the directory depends on `a`.
    fn end_list(&mut self) {
        let state = &mut self.state;
        if state.is_conditional && state.now != state.before_list {
            state.now = None;
        }
        state.is_conditional = false;
        state.before_list = state.now.clone();
    }

    fn open(&mut self, closing: char) {
        self.scopes.push((closing, self.state.clone()));
        self.is_single |= closing == '\'';
        self.state.before_list = self.now();
        self.state.is_conditional = false;
        self.state.has_branches = false;
    }

    /// Ends a scope, and the scopes in it that were not closed.
    fn close(&mut self, closing: char) {
        self.is_single &= closing != '\'';
        while let Some((open, state)) = self.scopes.pop() {
            self.state = state;
            if open == closing {
                break;
            }
        }
    }

    /// Returns the separators since the last word of the same shell.
    fn own_gap(&self) -> &str {
        self.gap.rsplit(|c: char| OPENINGS.contains(c)).next().unwrap_or_default()
    }

    /// Whether the shell comes to the command without a condition but `&&`.
    fn is_reached(&self) -> bool {
        let own = self.own_gap();
        let is_first = own.len() < self.gap.len() && own.trim().is_empty();
        let own = own.replace("&&", ";");
        let follows = own.contains([';', '\n']) && !own.contains(['|', '&']);
        (is_first || follows) && !self.state.has_branches
    }

    fn target(&self, root: &Path, argument: &str) -> Option<Rc<Path>> {
        let target = named_directory(root, argument)?;
        let from = if target.is_absolute() { Path::new("") } else { self.state.now.as_deref()? };
        Some(without_dots(&from.join(target)).into())
    }
}

/// Returns the directory that the arguments of `cd` name, if they are literal.
fn named_directory(root: &Path, argument: &str) -> Option<PathBuf> {
    let argument = argument.trim();
    let argument = argument.strip_prefix("-- ").unwrap_or(argument);
    // The number of a stream, if a redirection follows: `cd tool 2> /dev/null`.
    let argument = argument.strip_suffix(" 2").unwrap_or(argument).trim();
    let unquoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| argument.strip_prefix(quote).and_then(|text| text.strip_suffix(quote)));
    let text = unquoted.unwrap_or(argument);
    if text == GIT_TOP_LEVEL {
        return root.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned);
    }
    let braced = text.strip_prefix("${").and_then(|name| name.strip_suffix('}'));
    match braced.or_else(|| text.strip_prefix('$')) {
        Some("PWD") => return Some(PathBuf::new()),
        Some(name) if PROJECT_VARIABLES.contains(&name) => return Some(root.to_owned()),
        _ => {}
    }
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%,:=".contains(c);
    let is_literal = text.chars().all(|c| is_plain(c) || unquoted.is_some() && c == ' ');
    let is_directory = is_literal && !text.is_empty() && !text.starts_with('-');
    is_directory.then(|| PathBuf::from(text))
}

/// Returns a path without `.` and `..`, as `cd` reads it: `link/..` is the parent of the link.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            Component::ParentDir if plain.has_root() => {}
            other => plain.push(other),
        }
    }
    plain
}
