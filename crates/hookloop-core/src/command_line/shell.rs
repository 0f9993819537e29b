//! Reads shell text. It finds the quotes around each place, and the command of the place.
//!
//! The reader covers the grammar that POSIX and bash share. It stops where they differ, or where
//! the whole grammar is needed (`case`, functions, `[[`). No place beyond that is accepted.

mod expansion;
mod redirection;

use super::error::{CommandLineError, Position, Unsafe};
use super::place::{ValuePlace, refused};
use super::program;
use super::word::{CommandWord, WordPiece, assigned};

/// The author's quotes around a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceQuotes {
    None,
    Single,
    Double,
}

#[derive(Debug, Default)]
pub(super) struct ShellFindings {
    /// The quotes of each place.
    pub(super) quotes: Vec<PlaceQuotes>,
    pub(super) unguarded: Vec<&'static str>,
}

/// The reason why reading ended early.
enum ReadStop {
    Refused(ValuePlace, Unsafe),
    Unterminated {
        what: &'static str,
        at: usize,
    },
    /// Syntax that this reader does not support.
    Unclear(&'static str),
}

type ReadStep = Result<(), ReadStop>;

pub(super) fn read(text: &str, places: &[ValuePlace]) -> Result<ShellFindings, CommandLineError> {
    let mut reader = ShellReader::new(text, places);
    match (reader.read(), places) {
        (Ok(()), _) => Ok(reader.found),
        (Err(ReadStop::Refused(place, why)), _) => Err(refused(&place, why)),
        (Err(ReadStop::Unterminated { what, at }), _) => {
            let at = Position { argument: None, byte: at };
            Err(CommandLineError::Unterminated { what, at })
        }
        (Err(ReadStop::Unclear(what)), [place, ..]) => Err(refused(place, Unsafe::Unclear(what))),
        // Without places there is nothing to keep safe.
        (Err(ReadStop::Unclear(_)), []) => Ok(ShellFindings::default()),
    }
}

/// A simple command as far as it was read.
#[derive(Debug, Default)]
struct SimpleCommand {
    assignments: Vec<CommandWord>,
    words: Vec<CommandWord>,
    /// Targets of redirections.
    targets: Vec<CommandWord>,
}

#[derive(Clone, Copy, Debug)]
enum Redirection {
    Target,
    /// `<<`, or with true `<<-`.
    HereDocument {
        strips_tabs: bool,
    },
}

#[derive(Debug)]
struct HereDocument {
    delimiter: String,
    strips_tabs: bool,
    is_quoted: bool,
    at: usize,
}

struct ShellReader<'a> {
    text: &'a str,
    at: usize,
    /// Places not yet reached.
    places: &'a [ValuePlace],
    found: ShellFindings,
    word: Option<(usize, CommandWord)>,
    simple: SimpleCommand,
    redirection: Option<Redirection>,
    here_documents: Vec<HereDocument>,
    /// Open parentheses of subshells.
    groups: Vec<usize>,
    /// The last place that was passed.
    passed: Option<ValuePlace>,
    /// The last place before a pipe.
    piped: Option<ValuePlace>,
}

impl<'a> ShellReader<'a> {
    fn new(text: &'a str, places: &'a [ValuePlace]) -> ShellReader<'a> {
        ShellReader {
            text,
            at: 0,
            places,
            found: ShellFindings::default(),
            word: None,
            simple: SimpleCommand::default(),
            redirection: None,
            here_documents: Vec::new(),
            groups: Vec::new(),
            passed: None,
            piped: None,
        }
    }

    fn read(&mut self) -> ReadStep {
        while let Some(byte) = self.peek() {
            if let Some(place) = self.place() {
                self.accept(place, PlaceQuotes::None);
                continue;
            }
            match byte {
                b' ' | b'\t' => self.blank()?,
                b'\n' => self.newline()?,
                b'#' if self.word.is_none() => self.comment()?,
                b'\\' => self.escape()?,
                b'\'' => self.single()?,
                b'"' => self.double()?,
                b'`' => self.backticks()?,
                b'$' => self.dollar(PlaceQuotes::None)?,
                b'<' | b'>' => self.redirect()?,
                b'|' | b'&' | b';' | b'(' | b')' => self.operator()?,
                _ => self.plain(),
            }
        }
        self.end_command()?;
        match (self.groups.last(), self.here_documents.first()) {
            (_, Some(HereDocument { at, .. })) => {
                Err(ReadStop::Unterminated { what: "a here-document", at: *at })
            }
            (Some(at), None) => Err(ReadStop::Unterminated { what: "`(`", at: *at }),
            (None, None) => Ok(()),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn follows(&self, text: &str) -> bool {
        self.text[self.at..].starts_with(text)
    }

    /// Returns the place that begins here.
    fn place(&self) -> Option<ValuePlace> {
        self.places.first().filter(|place| place.start == self.at).cloned()
    }

    fn accept(&mut self, place: ValuePlace, quotes: PlaceQuotes) {
        self.word().pieces.push(WordPiece::Place(place.clone()));
        self.at = place.end;
        self.places = &self.places[1..];
        self.found.quotes.push(quotes);
        self.passed = Some(place);
    }

    /// Skips to `end`, if no place is before it.
    fn skip_to(&mut self, end: usize, why: Unsafe) -> ReadStep {
        match self.places.first() {
            Some(place) if place.start < end => Err(ReadStop::Refused(place.clone(), why)),
            _ => {
                self.at = end;
                Ok(())
            }
        }
    }

    fn word(&mut self) -> &mut CommandWord {
        &mut self.word.get_or_insert((self.at, CommandWord::default())).1
    }

    fn quoted(&mut self) -> &mut CommandWord {
        let word = self.word();
        word.quoted = true;
        word
    }

    /// Takes one character as part of a word.
    fn plain(&mut self) {
        let end = self.text[self.at..].chars().next().map_or(1, char::len_utf8) + self.at;
        let text = &self.text[self.at..end];
        self.word().push_text(text);
        self.at = end;
    }

    fn blank(&mut self) -> ReadStep {
        self.end_word()?;
        self.at += 1;
        Ok(())
    }

    fn newline(&mut self) -> ReadStep {
        self.end_command()?;
        self.at += 1;
        for document in std::mem::take(&mut self.here_documents) {
            self.here_document(&document)?;
        }
        Ok(())
    }

    fn comment(&mut self) -> ReadStep {
        let length = self.text[self.at..].find('\n').unwrap_or(self.text.len() - self.at);
        self.skip_to(self.at + length, Unsafe::Comment)
    }

    fn escape(&mut self) -> ReadStep {
        if self.follows("\\\n") {
            return self.continuation();
        }
        // A last backslash stands for itself.
        self.quoted();
        self.at += 1;
        match self.place() {
            Some(place) => Err(ReadStop::Refused(place, Unsafe::AfterBackslash)),
            None if self.peek().is_none() => Ok(()),
            None => {
                self.plain();
                Ok(())
            }
        }
    }

    /// Skips a backslash and a newline, as the shell does before it reads anything else.
    fn continuation(&mut self) -> ReadStep {
        const OPERATORS: &[u8] = b"<>&|;($";
        let before = self.at.checked_sub(1).map(|at| self.text.as_bytes()[at]);
        self.at += 2;
        let joins = |byte: Option<u8>| byte.is_some_and(|byte| OPERATORS.contains(&byte));
        if joins(before) && joins(self.peek()) || before == Some(b'$') {
            return Err(ReadStop::Unclear("an operator over two lines"));
        }
        Ok(())
    }

    fn single(&mut self) -> ReadStep {
        let start = self.at;
        self.quoted();
        self.at += 1;
        loop {
            if let Some(place) = self.place() {
                self.accept(place, PlaceQuotes::Single);
                continue;
            }
            match self.peek() {
                None => return Err(ReadStop::Unterminated { what: "a single quote", at: start }),
                Some(b'\'') => break,
                Some(_) => self.plain(),
            }
        }
        self.at += 1;
        self.check_span(start)
    }

    fn double(&mut self) -> ReadStep {
        let start = self.at;
        self.quoted();
        self.at += 1;
        loop {
            if let Some(place) = self.place() {
                self.accept(place, PlaceQuotes::Double);
                continue;
            }
            match self.peek() {
                None => return Err(ReadStop::Unterminated { what: "a double quote", at: start }),
                Some(b'"') => break,
                Some(b'\\') => self.escape_in_double()?,
                Some(b'`') => self.backticks()?,
                Some(b'$') => self.dollar(PlaceQuotes::Double)?,
                Some(_) => self.plain(),
            }
        }
        self.at += 1;
        self.check_span(start)
    }

    fn escape_in_double(&mut self) -> ReadStep {
        self.at += 1;
        if let Some(place) = self.place() {
            return Err(ReadStop::Refused(place, Unsafe::AfterBackslash));
        }
        match self.peek() {
            Some(b'\n') => self.at += 1,
            Some(b'$' | b'`' | b'"' | b'\\') => self.plain(),
            _ => self.word().push_text("\\"),
        }
        Ok(())
    }

    /// Refuses a here-document next to a quoted newline, after which shells begin it differently.
    fn check_span(&self, start: usize) -> ReadStep {
        match !self.here_documents.is_empty() && self.text[start..self.at].contains('\n') {
            true => Err(ReadStop::Unclear("a here-document next to quotes over several lines")),
            false => Ok(()),
        }
    }

    fn operator(&mut self) -> ReadStep {
        if self.follows("(") {
            return self.open();
        }
        if self.follows(";;") || self.follows(";&") {
            return Err(ReadStop::Unclear("`;;`"));
        }
        if self.follows("&>") {
            self.end_word()?;
            self.at += if self.follows("&>>") { 3 } else { 2 };
            self.redirection = Some(Redirection::Target);
            return Ok(());
        }
        self.end_command()?;
        if self.follows("|") && !self.follows("||") {
            self.piped = self.passed.clone();
        }
        if self.follows(")") && self.groups.pop().is_none() {
            return Err(ReadStop::Unclear("`)` without `(`"));
        }
        let double = ["&&", "||", "|&"].into_iter().any(|operator| self.follows(operator));
        self.at += if double { 2 } else { 1 };
        Ok(())
    }

    fn open(&mut self) -> ReadStep {
        if self.follows("((") {
            return Err(ReadStop::Unclear("`((`"));
        }
        let SimpleCommand { assignments, words, targets } = &self.simple;
        if self.word.is_some() || !(assignments.is_empty() && words.is_empty()) {
            return Err(ReadStop::Unclear("a function, an array or a pattern in parentheses"));
        }
        if !targets.is_empty() || self.redirection.is_some() {
            return Err(ReadStop::Unclear("a redirection before `(`"));
        }
        self.groups.push(self.at);
        self.at += 1;
        Ok(())
    }

    fn end_word(&mut self) -> ReadStep {
        let Some((start, mut word)) = self.word.take() else { return Ok(()) };
        word.assigned = assigned(&self.text[start..self.at]).map(str::to_owned);
        match self.redirection.take() {
            Some(Redirection::Target) => self.simple.targets.push(word),
            Some(Redirection::HereDocument { strips_tabs }) => {
                if let Some(place) = word.places().next() {
                    return Err(ReadStop::Refused(place.clone(), Unsafe::HereDocument));
                }
                let Some(delimiter) = word.literal().map(str::to_owned) else {
                    return Err(ReadStop::Unclear("a here-document that ends with an expansion"));
                };
                let is_quoted = word.quoted;
                let document = HereDocument { delimiter, strips_tabs, is_quoted, at: start };
                self.here_documents.push(document);
            }
            None => self.add(word)?,
        }
        Ok(())
    }

    fn add(&mut self, word: CommandWord) -> ReadStep {
        if !self.simple.words.is_empty() {
            self.simple.words.push(word);
            return Ok(());
        }
        if word.assigned.is_some() {
            self.simple.assignments.push(word);
            return Ok(());
        }
        let keyword = if word.quoted { None } else { word.literal() };
        match keyword {
            // A command follows these, or nothing.
            Some(
                "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "{"
                | "}" | "!" | "time",
            ) => {}
            Some("case") => return Err(ReadStop::Unclear("`case`")),
            Some("select") => return Err(ReadStop::Unclear("`select`")),
            Some("function") => return Err(ReadStop::Unclear("a function")),
            Some("coproc") => return Err(ReadStop::Unclear("`coproc`")),
            Some("[[") => return Err(ReadStop::Unclear("`[[`; use `[`")),
            _ => self.simple.words.push(word),
        }
        Ok(())
    }

    fn end_command(&mut self) -> ReadStep {
        self.end_word()?;
        if self.redirection.is_some() {
            return Err(ReadStop::Unclear("a redirection to nothing"));
        }
        let SimpleCommand { assignments, words, targets } = std::mem::take(&mut self.simple);
        if words.first().is_some_and(|word| !word.quoted && word.literal() == Some("for")) {
            return check_for(&words);
        }
        // After such a command, a plain assignment may evaluate its value.
        if program::declares_types(&words) {
            return Err(ReadStop::Unclear("`declare` with options"));
        }
        program::check_assignments(&assignments)
            .and_then(|()| program::check(&words, &targets))
            .map_err(|program::RefusedPlace { place, why }| ReadStop::Refused(place, why))?;
        self.found.unguarded.extend(program::unguarded(&words));
        match (&self.piped, program::runs_its_input(&words)) {
            (Some(place), Some(by)) => Err(ReadStop::Refused(place.clone(), Unsafe::Piped { by })),
            _ => Ok(()),
        }
    }
}

/// Checks `for name in words`. Any word except the name can be a value.
fn check_for(words: &[CommandWord]) -> ReadStep {
    if words.get(2).and_then(CommandWord::literal) != Some("in") {
        return Err(ReadStop::Unclear("`for` without `in`"));
    }
    match words[..2].iter().flat_map(CommandWord::places).next() {
        Some(place) => Err(ReadStop::Refused(place.clone(), Unsafe::AssignmentName)),
        None => Ok(()),
    }
}
