//! The command lines of hookloop's entries in an agent's settings.

use std::path::Path;

/// The program's name, which identifies its entries.
const PROGRAM: &str = "hookloop";
/// The command that an entry runs.
pub(super) const SUBCOMMAND: &str = "hook";

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%=:,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns the program of a command that is one of hookloop's entries.
pub(crate) fn program_of(command: &str) -> Option<String> {
    let (program, rest) = first_word(command)?;
    let mut rest = rest.split_ascii_whitespace();
    let is_ours = Path::new(&program).file_name().is_some_and(|name| name == PROGRAM)
        && rest.next() == Some(SUBCOMMAND)
        && rest.any(|word| word == "--agent");
    is_ours.then_some(program)
}

/// Splits a command line into its first word and the rest.
fn first_word(line: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = line.trim_start();
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        match c {
            ' ' | '\t' => return Some((word, rest)),
            '\'' | '"' => {
                let (inside, behind) = rest.split_once(c)?;
                word.push_str(inside);
                rest = behind;
            }
            '\\' => {
                let escaped = rest.chars().next()?;
                word.push(escaped);
                rest = &rest[escaped.len_utf8()..];
            }
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_program_path_is_read_unchanged_by_a_shell() {
        let path = "/home/a b/it's $HOME `x` \"q\"\\/hookloop";
        let line = format!("printf %s {}", quoted(path));
        let output = std::process::Command::new("/bin/sh").args(["-c", &line]).output();
        assert_eq!(output.map(|output| output.stdout).unwrap_or_default(), path.as_bytes());
    }
}
