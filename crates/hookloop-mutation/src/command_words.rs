//! The parts of a gate's command: variables, the launcher, the runner and its arguments.

use hookloop_core::hook::CommandText;

/// Characters of a word that a shell reads as they are.
const PLAIN: &str = "@%+=:,./_-~[]";

/// One plain command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandWords {
    pub(crate) env: Vec<(String, String)>,
    pub(crate) words: Vec<String>,
}

impl CommandWords {
    /// Returns the words of one plain command, without `cd`, pipes, quotes and other parts of a shell's language.
    pub(crate) fn of(command: &CommandText) -> Option<CommandWords> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
        let all: Vec<String> = match command {
            CommandText::Exec(words) => words.clone(),
            CommandText::Shell(line) if line.trim().contains('\n') => return None,
            CommandText::Shell(line) => line.split_whitespace().map(str::to_owned).collect(),
        };
        if !all.iter().all(|word| word.chars().all(is_plain)) {
            return None;
        }
        let mut found = CommandWords::default();
        let mut words = all.into_iter().peekable();
        while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_name) {
                break;
            }
            found.env.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        found.words = words.collect();
        (!found.words.is_empty()).then_some(found)
    }

    /// Returns the position of a word whose file name is one of these.
    pub(crate) fn position(&self, names: &[&str]) -> Option<usize> {
        self.words.iter().position(|word| names.contains(&file_name(word)))
    }
}

pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_command_has_variables_and_words() {
        let of = |line: &str| CommandWords::of(&CommandText::Shell(line.to_owned()));
        let found = of("PYTHONPATH=src A=b uv run pytest -q --maxfail=1 tests/unit").unwrap();
        let env = [("PYTHONPATH", "src"), ("A", "b")];
        assert_eq!(found.env, env.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(found.words[..3], ["uv", "run", "pytest"]);
        assert_eq!(found.position(&["pytest"]), Some(2));
        for line in ["cd a && pytest", "pytest 'a b'", "pytest | tee log", "A=b", "", "a\nb"] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
