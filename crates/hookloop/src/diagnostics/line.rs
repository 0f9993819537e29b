//! One event as one line: without secrets, and without characters that a terminal acts on.

use std::io::{self, IsTerminal, Write};
use std::sync::PoisonError;

use hookloop_config::known_secrets;

use super::DiagnosticsSink;
use crate::sanitize::plain;

/// Bytes of a line; the rest of a longer one is left out.
const LINE_BYTES_MAX: usize = 16 * 1024;
/// The line in place of one that can't be redacted.
const WITHHELD: &str = "a line is left out: there are too many secrets to look for";
/// The marker in place of a user and password in an address.
const URL_MARKER: &str = "[redacted:url]";
/// Returns to the start of a terminal's line and clears it: a status line may be there.
const CLEAR: &str = "\r\x1b[K";

/// Writes one event.
pub(super) struct LineWriter<'s>(&'s DiagnosticsSink);

impl<'s> LineWriter<'s> {
    pub(super) fn new(sink: &'s DiagnosticsSink) -> LineWriter<'s> {
        LineWriter(sink)
    }
}

/// The subscriber passes each event in one piece.
impl Write for LineWriter<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = line_of(event);
        match self.0 {
            DiagnosticsSink::Stderr => {
                let mut stderr = io::stderr().lock();
                let start = if stderr.is_terminal() { CLEAR } else { "" };
                // One write for the whole line, so processes do not mix lines. If standard error is closed, nobody can
                // be told.
                let _ = stderr.write_all(format!("{start}{line}").as_bytes());
            }
            DiagnosticsSink::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                // A file that can't be written does not stop the work, and there is no other place to report it.
                let _ = file.append(line.as_bytes());
            }
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn line_of(event: &[u8]) -> String {
    let text = String::from_utf8_lossy(event.trim_ascii_end());
    // Secrets are looked for before anything is cut or escaped, which would change them.
    let text = known_secrets::redacted(&text).unwrap_or_else(|| WITHHELD.to_owned());
    let text = without_url_credentials(&text);
    match text.len() {
        0..=LINE_BYTES_MAX => format!("{}\n", plain(&text)),
        _ => format!("{} …\n", plain(&text[..text.floor_char_boundary(LINE_BYTES_MAX)])),
    }
}

/// Replaces the user and the password of each address.
fn without_url_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("://");
        let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`');
        let authority = part.find(is_end).unwrap_or(part.len());
        match part[..authority].rfind('@') {
            Some(at) => {
                shown.push_str(URL_MARKER);
                shown.push_str(&part[at..]);
            }
            None => shown.push_str(part),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_redacted_from_urls() {
        let check =
            |text: &str, expected: &str| assert_eq!(without_url_credentials(text), expected);
        check("to nats://me:pass@host:4222, b", "to nats://[redacted:url]@host:4222, b");
        check("https://host/a@b and c://x@y", "https://host/a@b and c://[redacted:url]@y");
        check("no address", "no address");
    }

    #[test]
    fn a_line_has_no_tokens_and_no_control_characters() {
        let line = line_of(b"a\x1b[2Jb\nc ghp_0123456789abcdefghijABCDEFGHIJ012345\n");
        assert_eq!(line, "a\\u{1b}[2Jb\\nc [redacted:github-token]\n");
        assert!(line_of(&[b'x'; 2 * LINE_BYTES_MAX]).len() < LINE_BYTES_MAX + 10);
    }
}
