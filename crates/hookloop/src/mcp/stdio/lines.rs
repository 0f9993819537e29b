//! Lines of bounded length.

use std::io::{BufRead, ErrorKind};

/// The longest line, without its end.
pub(super) const LINE_MAX: usize = 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum StdioLine<'a> {
    Whole(&'a [u8]),
    /// It was read over, and none of it kept.
    TooLong,
}

pub(super) struct StdioLines<R> {
    from: R,
    line: Vec<u8>,
}

impl<R: BufRead> StdioLines<R> {
    pub(super) fn new(from: R) -> StdioLines<R> {
        StdioLines { from, line: Vec::new() }
    }

    /// None at the end, and where reading fails. A last line without an end is a line too.
    pub(super) fn next(&mut self) -> Option<StdioLine<'_>> {
        self.line.clear();
        let mut is_too_long = false;
        let mut is_begun = false;
        loop {
            let available = match self.from.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            if available.is_empty() && !is_begun {
                return None;
            }
            is_begun = true;
            let end = available.iter().position(|byte| *byte == b'\n');
            let piece = &available[..end.unwrap_or(available.len())];
            is_too_long |= self.line.len() + piece.len() > LINE_MAX;
            if !is_too_long {
                self.line.extend_from_slice(piece);
            }
            let is_over = end.is_some() || available.is_empty();
            let taken = piece.len() + usize::from(end.is_some());
            self.from.consume(taken);
            match (is_over, is_too_long) {
                (false, _) => {}
                (true, true) => return Some(StdioLine::TooLong),
                (true, false) => return Some(StdioLine::Whole(&self.line)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[track_caller]
    fn check(input: &[u8], expected: &[&str]) {
        for capacity in [1, 7, 8192] {
            let mut lines = StdioLines::new(BufReader::with_capacity(capacity, input));
            let mut found = Vec::new();
            while let Some(line) = lines.next() {
                found.push(match line {
                    StdioLine::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    StdioLine::TooLong => "too long".to_owned(),
                });
            }
            assert_eq!(found, expected, "{capacity} bytes at a time");
        }
    }

    #[test]
    fn input_is_split_at_line_ends() {
        check(b"", &[]);
        check(b"a\nb\n", &["a", "b"]);
        check(b"a\n\nb", &["a", "", "b"]);
    }

    #[test]
    fn a_line_over_the_limit_is_skipped() {
        let just = "x".repeat(LINE_MAX);
        check(format!("a\n{just}\nb\n").as_bytes(), &["a", &just, "b"]);
        check(format!("a\n{just}x\nb\n").as_bytes(), &["a", "too long", "b"]);
        check(format!("{just}{just}").as_bytes(), &["too long"]);
    }
}
