//! Expansions that begin with `$` or a backtick: read to their end, and closed to values.

use super::{PlaceQuotes, ReadStep, ReadStop, ShellReader};
use crate::command_line::error::Unsafe;
use crate::command_line::word::WordPiece;

/// Largest depth of nested expansions.
const DEPTH_LIMIT: usize = 16;

/// The expansions around an expansion, outermost first.
#[derive(Clone, Copy)]
struct OuterExpansions<'w> {
    why: &'w Unsafe,
    depth: usize,
}

impl<'w> OuterExpansions<'w> {
    fn outermost(why: &'w Unsafe) -> OuterExpansions<'w> {
        OuterExpansions { why, depth: 0 }
    }

    fn deeper(self) -> Result<OuterExpansions<'w>, ReadStop> {
        match self.depth < DEPTH_LIMIT {
            true => Ok(OuterExpansions { depth: self.depth + 1, ..self }),
            false => Err(ReadStop::Unclear("expansions too deep inside each other")),
        }
    }
}

impl ShellReader<'_> {
    /// Reads from `$` on, outside of any expansion.
    pub(super) fn dollar(&mut self, quotes: PlaceQuotes) -> ReadStep {
        let start = self.at;
        self.word();
        if self.follows("$'") && quotes == PlaceQuotes::None {
            self.quoted().pieces.push(WordPiece::Expansion);
            self.at += 2;
            return self.ansi_quotes(&Unsafe::AnsiQuotes);
        }
        if self.follows("$\"") && quotes == PlaceQuotes::None {
            self.at += 1;
            return self.double();
        }
        let why = match () {
            () if self.follows("$((") => Unsafe::Arithmetic,
            () if self.follows("$(") => Unsafe::Substitution,
            () => Unsafe::Parameter,
        };
        if self.expansion(OuterExpansions::outermost(&why))? {
            self.word().pieces.push(WordPiece::Expansion);
            self.check_span(start)
        } else {
            self.word().push_text("$");
            Ok(())
        }
    }

    /// Reads from the parenthesis of `<(…)` on.
    pub(super) fn substitution(&mut self) -> ReadStep {
        let start = self.at;
        self.at += 1;
        self.commands(OuterExpansions::outermost(&Unsafe::Substitution))?;
        self.check_span(start)
    }

    /// Reads from a backtick on, outside of any expansion.
    pub(super) fn backticks(&mut self) -> ReadStep {
        let start = self.at;
        self.word().pieces.push(WordPiece::Expansion);
        self.backticked(&Unsafe::Backticks)?;
        self.check_span(start)
    }

    /// Skips the expansion at `$`, or only the `$` if it begins none.
    fn expansion(&mut self, within: OuterExpansions<'_>) -> Result<bool, ReadStop> {
        let start = self.at;
        self.at += 1;
        if let Some(place) = self.place() {
            return Err(ReadStop::Refused(place, Unsafe::AfterDollar));
        }
        match self.peek() {
            Some(b'(') if self.follows("((") => {
                self.at += 2;
                self.arithmetic(within.deeper()?)?;
            }
            Some(b'(') => {
                self.at += 1;
                self.commands(within.deeper()?)?;
            }
            Some(b'{') => {
                self.at += 1;
                self.parameter(within.deeper()?, start)?;
            }
            Some(b'[') => return Err(ReadStop::Unclear("`$[`")),
            Some(b'\\') if self.follows("\\\n") => {
                return Err(ReadStop::Unclear("an expansion over two lines"));
            }
            Some(b'$') => {
                self.at += 1;
                self.after_process_id()?;
            }
            Some(b'!' | b'#' | b'?' | b'@' | b'*' | b'-' | b'0'..=b'9') => self.at += 1,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                let name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
                while self.peek().is_some_and(name) {
                    self.at += 1;
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads on after `$$`. bash sometimes reads the second `$` as the beginning of the next
    /// expansion.
    fn after_process_id(&mut self) -> ReadStep {
        match self.place() {
            Some(place) => Err(ReadStop::Refused(place, Unsafe::AfterDollar)),
            None if self.peek().is_some_and(|byte| b"({['\"$\\".contains(&byte)) => {
                Err(ReadStop::Unclear("`$$` in front of a quote, a bracket or another `$`"))
            }
            None => Ok(()),
        }
    }

    /// Skips one character of an expansion.
    fn pass(&mut self, why: &Unsafe) -> ReadStep {
        let length = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        self.skip_to(self.at + length, why.clone())
    }

    /// Reads on after `$'`. Only bash knows these quotes, so nothing may depend on how they are
    /// read.
    fn ansi_quotes(&mut self, why: &Unsafe) -> ReadStep {
        let start = self.at - 2;
        loop {
            match self.peek() {
                None => return Err(ReadStop::Unterminated { what: "`$'`", at: start }),
                Some(b'\'') => break,
                Some(b'\\') if self.follows("\\'") || self.follows("\\\\") => {
                    return Err(ReadStop::Unclear("an escaped quote or backslash in `$'…'`"));
                }
                Some(_) => self.pass(why)?,
            }
        }
        self.at += 1;
        self.check_span(start)
    }

    fn backticked(&mut self, why: &Unsafe) -> ReadStep {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(ReadStop::Unterminated { what: "a backtick", at: start }),
                Some(b'`') => break,
                Some(b'\\') => {
                    self.pass(why)?;
                    self.pass(why)?;
                }
                Some(_) => self.pass(why)?,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads on after `${`. Quotes in it have different meanings in different shells.
    fn parameter(&mut self, within: OuterExpansions<'_>, start: usize) -> ReadStep {
        loop {
            match self.peek() {
                None => return Err(ReadStop::Unterminated { what: "`${`", at: start }),
                Some(b'}') => break,
                Some(b'$') => self.nested(within)?,
                // A place begins with a brace too.
                Some(b'\'' | b'"' | b'\\' | b'`' | b'{' | b'(') if self.place().is_none() => {
                    return Err(ReadStop::Unclear("quotes or braces inside `${…}`"));
                }
                Some(_) => self.pass(within.why)?,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn nested(&mut self, within: OuterExpansions<'_>) -> ReadStep {
        self.expansion(within).map(drop)
    }

    /// Reads on after `$((`.
    fn arithmetic(&mut self, within: OuterExpansions<'_>) -> ReadStep {
        let start = self.at - 3;
        let mut open = 2;
        while open > 0 {
            match self.peek() {
                None => return Err(ReadStop::Unterminated { what: "`$((`", at: start }),
                Some(b'$') => self.nested(within)?,
                Some(b'\'' | b'"' | b'\\' | b'`' | b'\n') => {
                    return Err(ReadStop::Unclear("quotes or newlines inside `$((…))`"));
                }
                Some(byte) => {
                    open += usize::from(byte == b'(');
                    open -= usize::from(byte == b')');
                    self.pass(within.why)?;
                }
            }
        }
        Ok(())
    }

    /// Reads on after `$(` or `<(`.
    fn commands(&mut self, within: OuterExpansions<'_>) -> ReadStep {
        let start = self.at - 1;
        let mut open = 1;
        let mut word_begins = true;
        while open > 0 {
            let Some(byte) = self.peek() else {
                return Err(ReadStop::Unterminated { what: "a command substitution", at: start });
            };
            if word_begins && byte == b'#' {
                let rest = &self.text[self.at..];
                let end = self.at + rest.find('\n').unwrap_or(rest.len());
                self.skip_to(end, within.why.clone())?;
                continue;
            }
            if word_begins && self.follows("case") {
                return Err(ReadStop::Unclear("`case` in a command substitution"));
            }
            if self.follows("<<") {
                return Err(ReadStop::Unclear("a here-document in a command substitution"));
            }
            if !self.follows("\\\n") {
                word_begins = b" \t\n;&|()".contains(&byte);
            }
            match byte {
                b'\'' => self.single_within(within)?,
                b'"' => self.double_within(within)?,
                b'`' => self.backticked(within.why)?,
                b'$' if self.follows("$'") => {
                    self.at += 2;
                    self.ansi_quotes(within.why)?;
                }
                b'$' => self.nested(within)?,
                b'\\' => {
                    self.pass(within.why)?;
                    self.pass(within.why)?;
                }
                _ => {
                    open += usize::from(byte == b'(');
                    open -= usize::from(byte == b')');
                    self.pass(within.why)?;
                }
            }
        }
        Ok(())
    }

    fn single_within(&mut self, within: OuterExpansions<'_>) -> ReadStep {
        let start = self.at;
        match self.text[start + 1..].find('\'') {
            Some(length) => self.skip_to(start + length + 2, within.why.clone()),
            None => Err(ReadStop::Unterminated { what: "a single quote", at: start }),
        }
    }

    fn double_within(&mut self, within: OuterExpansions<'_>) -> ReadStep {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(ReadStop::Unterminated { what: "a double quote", at: start }),
                Some(b'"') => break,
                Some(b'`') => self.backticked(within.why)?,
                Some(b'$') => self.nested(within)?,
                Some(b'\\') => {
                    self.pass(within.why)?;
                    self.pass(within.why)?;
                }
                Some(_) => self.pass(within.why)?,
            }
        }
        self.at += 1;
        Ok(())
    }
}
