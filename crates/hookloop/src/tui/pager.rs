//! A long text to read and search in: the whole output of a hook or an agent.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use hookloop_core::excerpt::LeftOut;
use hookloop_hooks::artifacts;
use hookloop_hooks::artifacts::ArtifactStream;
use hookloop_hooks::runner::HookRunner;

use super::list::ListMotion;
use crate::sanitize::screen_line;

/// The most of a file that is shown: its end, where what went wrong is.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The most lines of a text.
const LINES_MAX: usize = 100_000;
/// Columns that a step to the side takes.
const STEP: usize = 20;

/// A text that the pager can open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PagerSource {
    pub(super) title: String,
    /// Text that needs no read.
    pub(super) text: String,
    /// Where a machine keeps the rest.
    pub(super) artifact: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct TextPager {
    pub(super) title: String,
    /// Nothing in them acts on a terminal.
    pub(super) lines: Arc<Vec<String>>,
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) sought: String,
}

impl TextPager {
    pub(super) fn new(title: String, text: &str) -> TextPager {
        let lines = text.lines().take(LINES_MAX).map(screen_line).collect();
        TextPager { title, lines: Arc::new(lines), ..TextPager::default() }
    }

    pub(super) fn go(&mut self, motion: ListMotion, height: usize) {
        let last = self.lines.len().saturating_sub(height);
        self.top = match motion {
            ListMotion::By(by) => self.top.saturating_add_signed(by).min(last),
            ListMotion::First => 0,
            ListMotion::Last => last,
        };
    }

    pub(super) fn shift(&mut self, is_right: bool) {
        let widest = self.lines.iter().map(String::len).max().unwrap_or(0);
        self.left = match is_right {
            true if self.left + STEP < widest => self.left + STEP,
            true => self.left,
            false => self.left.saturating_sub(STEP),
        };
    }

    /// Moves to the next or previous line that contains the searched text; returns whether there is one.
    pub(super) fn seek(&mut self, is_back: bool) -> bool {
        let wanted = self.sought.to_lowercase();
        let count = self.lines.len();
        let from = self.top;
        let has = |at: &usize| {
            self.lines.get(*at).is_some_and(|line| line.to_lowercase().contains(&wanted))
        };
        let found = match is_back {
            _ if wanted.is_empty() => None,
            false => (from + 1..count).chain(0..=from).find(has),
            true => (0..from).rev().chain((from..count).rev()).find(has),
        };
        self.top = found.unwrap_or(from);
        found.is_some()
    }

    /// All of it, for another program.
    pub(super) fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }
}

/// Reads what there is of a leaf.
pub(super) fn open(leaf: &PagerSource, runner: &HookRunner) -> TextPager {
    let mut text = leaf.text.clone();
    if let Some(artifact) = &leaf.artifact {
        match runner.artifacts_of(artifact) {
            Some(directory) => {
                for stream in ArtifactStream::ALL {
                    text.push_str(&section(&directory, stream));
                }
            }
            None => text.push_str(&format!(
                "The whole output is not on this machine, or was deleted: {artifact}\n"
            )),
        }
    }
    TextPager::new(leaf.title.clone(), &text)
}

fn section(directory: &Path, stream: ArtifactStream) -> String {
    let name = stream.name();
    let path = directory.join(stream.name());
    match end_of(directory, stream) {
        Ok((text, _)) if text.is_empty() => String::new(),
        Ok((text, None)) => format!("── {name}: {} ──\n{text}\n", path.display()),
        Ok((text, Some(left_out))) => {
            format!("── {name}: {} ──\n{left_out}\n{text}\n", path.display())
        }
        // A stream that nothing was written to has no file.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => format!("── {name}: {}: {error} ──\n", path.display()),
    }
}

/// The end of an output, and how long all of it is. Returns the last lines of a stream, after a heading.
fn end_of(directory: &Path, stream: ArtifactStream) -> std::io::Result<(String, Option<LeftOut>)> {
    let (mut file, length) = artifacts::open(directory, stream)?;
    let from = length.saturating_sub(BYTES_MAX);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    (&mut file).take(BYTES_MAX).read_to_end(&mut bytes)?;
    if from == 0 {
        return Ok((String::from_utf8_lossy(&bytes).into_owned(), None));
    }
    let line = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let line = if line < bytes.len() { line } else { 0 };
    let before = from + line as u64;
    let lines = artifacts::lines_within(&mut file, 0, before)?;
    let text = String::from_utf8_lossy(&bytes[line..]).into_owned();
    Ok((text, Some(LeftOut { bytes: before, lines })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_wraps_around_the_ends_of_the_text() {
        let mut pager = TextPager::new(String::new(), "one\ntwo\nONE more\nend");
        pager.sought = "one".to_owned();
        let mut went = |is_back| (pager.seek(is_back), pager.top);
        assert_eq!(went(false), (true, 2));
        assert_eq!(went(false), (true, 0));
        assert_eq!(went(true), (true, 2));
        pager.sought = "none".to_owned();
        assert!(!pager.seek(false));
        assert!(!TextPager::default().seek(false));
    }

    #[test]
    fn scrolling_stays_within_the_text() {
        let text: String = (0..100).map(|number| format!("{number}\n")).collect();
        let mut pager = TextPager::new(String::new(), &text);
        pager.go(ListMotion::Last, 10);
        assert_eq!(pager.top, 90);
        pager.go(ListMotion::By(5), 10);
        assert_eq!(pager.top, 90);
        pager.go(ListMotion::By(-1_000), 10);
        assert_eq!(pager.top, 0);
        pager.go(ListMotion::Last, 1_000);
        pager.shift(true);
        assert_eq!((pager.top, pager.left), (0, 0));
    }

    #[test]
    fn only_the_end_of_a_huge_artifact_is_shown() {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("{}\nthe end\n", "x".repeat(BYTES_MAX as usize));
        std::fs::write(directory.path().join("stdout"), text).unwrap();
        let shown = section(directory.path(), ArtifactStream::Stdout);
        let told = "[… 4,194,305 bytes (1 line) left out …]";
        assert!(shown.contains(told), "{}", &shown[..shown.len().min(200)]);
        assert!(shown.ends_with("the end\n\n"));
        assert_eq!(section(directory.path(), ArtifactStream::Stderr), "");
    }
}
