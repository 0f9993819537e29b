//! A word of a command: text, places, and parts that only the shell knows.

use super::ArgumentPart;
use super::place::ValuePlace;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordPiece {
    Text(String),
    Place(ValuePlace),
    /// The outcome of `$…` or backticks.
    Expansion,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandWord {
    pub(super) pieces: Vec<WordPiece>,
    /// Whether any of it was quoted or escaped, so that it can be no keyword.
    pub(super) quoted: bool,
    /// The variable that the word assigns, if it reads `name=value`.
    pub(super) assigned: Option<String>,
}

impl CommandWord {
    /// Creates an argument of a list command, which has no quotes to read.
    pub(super) fn argument(text: &str, places: &[ValuePlace]) -> CommandWord {
        let mut word =
            CommandWord { assigned: assigned(text).map(str::to_owned), ..CommandWord::default() };
        let mut read = 0;
        for place in places {
            word.push_text(&text[read..place.start]);
            word.pieces.push(WordPiece::Place(place.clone()));
            read = place.end;
        }
        word.push_text(&text[read..]);
        word
    }

    pub(super) fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(WordPiece::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(WordPiece::Text(text.to_owned())),
        }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &ValuePlace> {
        self.pieces.iter().filter_map(|piece| match piece {
            WordPiece::Place(place) => Some(place),
            _ => None,
        })
    }

    pub(super) fn has_place(&self) -> bool {
        self.places().next().is_some()
    }

    /// Returns the place that the word begins with.
    pub(super) fn leading_place(&self) -> Option<&ValuePlace> {
        match self.pieces.first() {
            Some(WordPiece::Place(place)) => Some(place),
            _ => None,
        }
    }

    /// Returns the author's text in front of the first `=`.
    pub(super) fn before_equals(&self) -> Option<&str> {
        match self.pieces.first() {
            Some(WordPiece::Text(text)) => text.split_once('=').map(|(before, _)| before),
            _ => None,
        }
    }

    /// Returns the whole word, if the author wrote all of it.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [WordPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the name of the program, if the author wrote it: `notify` in `"$HOME/bin/notify"`.
    pub(super) fn program(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [WordPiece::Text(text)] => Some(text.rsplit('/').next().unwrap_or(text)),
            [.., WordPiece::Text(text)] => text.rsplit_once('/').map(|(_, name)| name),
            _ => None,
        }
    }

    /// Whether it is certain to be no option, and not empty.
    pub(super) fn is_operand(&self) -> bool {
        matches!(self.pieces.first(), Some(WordPiece::Text(text)) if !text.starts_with(['-', '+']))
            || (self.program().is_some_and(|name| !name.is_empty()) && self.literal().is_none())
    }

    pub(super) fn into_parts(self) -> Vec<ArgumentPart> {
        let part = |piece| match piece {
            WordPiece::Text(text) => Some(ArgumentPart::Text(text)),
            WordPiece::Place(place) => Some(ArgumentPart::Variable(place.name)),
            WordPiece::Expansion => None,
        };
        self.pieces.into_iter().filter_map(part).collect()
    }
}

/// Returns the name that `text` gives a value to: `a` in `a=…` and `a+=…`.
pub(super) fn assigned(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (begins && name.chars().all(fits)).then_some(name)
}
