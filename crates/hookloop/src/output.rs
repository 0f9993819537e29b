//! Prints results: tables and colour on a terminal, plain lines in a pipe, JSON on request.

use std::io::{IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use hookloop_core::task::TaskState;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::error::CliResult;
use crate::sanitize::plain;

/// Columns of a terminal whose width is not known.
const DEFAULT_WIDTH: usize = 100;

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// Output is written in pieces of this size.
const BUFFER: usize = 64 * 1024;

pub(crate) struct CommandOutput {
    stdout: AutoStream<std::io::StdoutLock<'static>>,
    buffer: Vec<u8>,
    pub(crate) json: bool,
    pub(crate) terminal: bool,
}

impl CommandOutput {
    pub(crate) fn new(json: bool, colour: anstream::ColorChoice) -> CommandOutput {
        let stdout = std::io::stdout();
        let terminal = stdout.is_terminal();
        let choice = match colour {
            anstream::ColorChoice::Auto => AutoStream::choice(&stdout),
            choice => choice,
        };
        let stdout = AutoStream::new(stdout.lock(), choice);
        CommandOutput { stdout, buffer: Vec::new(), json, terminal }
    }

    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> CliResult {
        writeln!(self.buffer, "{text}")?;
        self.flush_if_full()
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> CliResult {
        self.line(CommandOutput::json_line(value)?)
    }

    /// Returns a value as one line of JSON.
    pub(crate) fn json_line(value: &impl Serialize) -> CliResult<String> {
        let text = serde_json::to_string(value)?;
        // JSON may contain this character, but the filter that strips colours would remove it.
        Ok(text.replace('\u{7f}', "\\u007f"))
    }

    fn flush_if_full(&mut self) -> CliResult {
        if self.buffer.len() < BUFFER { Ok(()) } else { self.flush() }
    }

    pub(crate) fn flush(&mut self) -> CliResult {
        let written = self.stdout.write_all(&self.buffer).and_then(|()| self.stdout.flush());
        self.buffer.clear();
        Ok(written?)
    }

    /// Truncates `text` to a terminal's line, of which `used` columns are taken; a pipe gets all of it.
    pub(crate) fn fitting(&self, text: &str, used: usize) -> String {
        if self.terminal {
            cut(text, terminal_width().saturating_sub(used).max(20))
        } else {
            text.to_owned()
        }
    }

    /// Prints rows under headings; the last column ends at the terminal's edge. In a pipe, tabs separate the cells and
    /// nothing is truncated.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &[Vec<TableCell>]) -> CliResult {
        if !self.terminal {
            for row in rows {
                let cells: Vec<&str> = row.iter().map(|cell| cell.text.as_str()).collect();
                self.line(cells.join("\t"))?;
            }
            return Ok(());
        }
        let width_of = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.text.width()).chain([headings[column].width()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..headings.len()).map(width_of).collect();
        let last = headings.len() - 1;
        let used: usize = widths[..last].iter().map(|width| width + 2).sum();
        let room = terminal_width().saturating_sub(used).max(20);
        let heading = |(i, name): (usize, &&str)| pad(name, if i == last { 0 } else { widths[i] });
        let names: Vec<String> = headings.iter().enumerate().map(heading).collect();
        self.line(format_args!("{DIM}{}{DIM:#}", names.join("  ")))?;
        for row in rows {
            let mut line = String::new();
            for (i, cell) in row.iter().enumerate() {
                let text =
                    if i == last { cut(&cell.text, room) } else { pad(&cell.text, widths[i]) };
                line.push_str(&cell.paint(&text));
                line.push_str(if i == last { "" } else { "  " });
            }
            self.line(line.trim_end())?;
        }
        Ok(())
    }
}

/// Truncates a line to the width of the terminal.
pub(crate) fn cut_to_terminal(text: &str) -> String {
    cut(text, terminal_width())
}

/// Returns the width of the terminal in columns.
pub(crate) fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0))
}

pub(crate) fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// Truncates `text` to `room` columns.
pub(crate) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if kept.width() + unicode_width::UnicodeWidthChar::width(c).unwrap_or(0) >= room {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

/// A cell of a row. Its text has no terminal control characters.
pub(crate) struct TableCell {
    text: String,
    style: Style,
    /// Bytes at the start that are highlighted: the part of an id that is enough to type.
    lead: usize,
}

impl TableCell {
    pub(crate) fn new(text: impl ToString) -> TableCell {
        TableCell { text: plain(&text.to_string()).into_owned(), style: Style::new(), lead: 0 }
    }

    pub(crate) fn style(mut self, style: Style) -> TableCell {
        self.style = style;
        self
    }

    pub(crate) fn lead(mut self, bytes: usize) -> TableCell {
        self.lead = bytes;
        self
    }

    fn paint(&self, text: &str) -> String {
        let style = self.style;
        match text.split_at_checked(self.lead).filter(|_| self.lead > 0) {
            Some((lead, rest)) => format!("{BOLD}{lead}{BOLD:#}{DIM}{rest}{DIM:#}"),
            None => format!("{style}{text}{style:#}"),
        }
    }
}

pub(crate) fn state_style(state: TaskState) -> Style {
    match state {
        TaskState::Created => Style::new().dimmed(),
        TaskState::Ready => AnsiColor::Green.on_default(),
        TaskState::Active => AnsiColor::Blue.on_default().bold(),
        TaskState::Submitted => AnsiColor::Cyan.on_default(),
        TaskState::Completed => Style::new().dimmed(),
        TaskState::Blocked => AnsiColor::Red.on_default().bold(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_truncated_at_the_display_width() {
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
    }
}
