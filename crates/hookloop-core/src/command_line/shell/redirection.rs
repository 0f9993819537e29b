//! Redirections and here-documents.

use super::{
    CommandWord, HereDocument, ReadStep, ReadStop, Redirection, ShellReader, Unsafe, WordPiece,
};

impl ShellReader<'_> {
    /// Reads a redirection operator, and expects its target.
    pub(super) fn redirect(&mut self) -> ReadStep {
        if self.follows("<(") {
            self.word().pieces.push(WordPiece::Expansion);
            self.at += 1;
            return self.substitution();
        }
        if self.follows(">(") {
            return Err(ReadStop::Unclear("`>(…)`"));
        }
        // `2` in `2>file` is no argument.
        let is_number = |word: &CommandWord| {
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            !word.quoted && word.literal().is_some_and(digits)
        };
        self.word.take_if(|(_, word)| is_number(word));
        self.end_word()?;
        const OPERATORS: [&str; 9] = ["<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", "<"];
        let operator = OPERATORS.into_iter().find(|operator| self.follows(operator)).unwrap_or(">");
        self.at += operator.len();
        self.redirection = Some(match operator {
            "<<" | "<<-" => Redirection::HereDocument { strips_tabs: operator == "<<-" },
            _ => Redirection::Target,
        });
        Ok(())
    }

    /// Skips a here-document, in which no place is accepted.
    pub(super) fn here_document(&mut self, document: &HereDocument) -> ReadStep {
        loop {
            if self.at >= self.text.len() {
                let what = "a here-document";
                return Err(ReadStop::Unterminated { what, at: document.at });
            }
            let rest = &self.text[self.at..];
            let line = rest.split('\n').next().unwrap_or(rest);
            let end = (self.at + line.len() + 1).min(self.text.len());
            self.skip_to(end, Unsafe::HereDocument)?;
            let text = if document.strips_tabs { line.trim_start_matches('\t') } else { line };
            if text == document.delimiter {
                return Ok(());
            }
            if !document.is_quoted && line.ends_with('\\') {
                return Err(ReadStop::Unclear("a here-document whose lines are joined"));
            }
        }
    }
}
