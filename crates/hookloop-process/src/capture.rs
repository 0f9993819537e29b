//! What is kept of a stream of output: all of it in a file, its head and tail in memory, exact counts.
//!
//! Memory does not grow with the output, and a file that can't be written does not stop the job.

use std::borrow::Cow;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hookloop_core::excerpt::LeftOut;

use super::excerpt;
use super::{JobObserver, Stream};

/// Bytes of each stream's beginning that stay in memory.
pub const HEAD: usize = 32 * 1024;
/// Bytes of each stream's end that stay in memory.
pub const TAIL: usize = 32 * 1024;
/// Bytes of each stream that are stored; what follows is counted.
pub const OUTPUT_MAX: u64 = 256 * 1024 * 1024;

/// The longest beginning of a line that waits for its end.
const OPEN_LINE_MAX: usize = 64 * 1024;

/// Gets each piece of a stream and appends what may be kept of it. It may hold back what could go on in
/// the next piece; an empty piece is the end of the stream.
pub type Filter<'a> = Box<dyn FnMut(&[u8], &mut Vec<u8>) + 'a>;

/// What was kept of a stream, after its filter; the counts are of that too.
#[derive(Debug, Default)]
pub struct Output {
    head: Vec<u8>,
    /// What followed the head, at most its last [`TAIL`] bytes.
    tail: Vec<u8>,
    pub bytes: u64,
    /// Ends of lines.
    pub lines: u64,
    pub stored: Stored,
}

/// What is in a stream's file.
#[derive(Debug, Default)]
pub enum Stored {
    /// There is no file: nobody asked for one, or there was no output.
    #[default]
    Nothing,
    Whole(PathBuf),
    /// The first [`OUTPUT_MAX`] bytes.
    Cut(PathBuf),
    /// As far as it could be written.
    Failed(PathBuf, io::Error),
}

impl Output {
    /// All of the output, if none of it was left out.
    pub fn whole(&self) -> Option<Cow<'_, [u8]>> {
        let whole = || match self.tail.is_empty() {
            true => Cow::Borrowed(&self.head[..]),
            false => Cow::Owned([&self.head[..], &self.tail].concat()),
        };
        (self.left_out_bytes() == 0).then(whole)
    }

    /// Bytes that are neither in the head nor in the tail.
    pub fn left_out_bytes(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// Text for people and prompts: nothing in it acts on a terminal or hides, and what was left out is
    /// told.
    pub fn excerpt(&self) -> String {
        self.excerpt_within(usize::MAX)
    }

    /// The same with at most `max` bytes of what was printed, half of them from its end, in whole lines.
    pub fn excerpt_within(&self, max: usize) -> String {
        self.excerpt_and_rest(max).0
    }

    /// The same, and what it leaves out.
    pub fn excerpt_and_rest(&self, max: usize) -> (String, Option<LeftOut>) {
        let whole = self.whole();
        let (head, tail) = match &whole {
            Some(whole) if whole.len() <= max => return (excerpt::plain(whole), None),
            Some(whole) => (&whole[..], &whole[..]),
            None => (&self.head[..], &self.tail[..]),
        };
        let head = excerpt::whole_lines_of_head(&head[..head.len().min(max / 2)]);
        let tail = &tail[tail.len() - tail.len().min(max / 2)..];
        let tail = excerpt::whole_lines_of_tail(tail);
        let left_out = LeftOut {
            bytes: self.bytes - (head.len() + tail.len()) as u64,
            lines: self.lines - count_lines(head) - count_lines(tail),
        };
        (excerpt::around(head, left_out, tail), Some(left_out))
    }
}

/// A stream that is being read.
pub(super) struct Capture<'a> {
    stream: Stream,
    output: Output,
    filter: Option<Filter<'a>>,
    /// What the filter let through; kept for its memory.
    passed: Vec<u8>,
    file: Artifact,
}

impl<'a> Capture<'a> {
    pub(super) fn new(
        stream: Stream,
        directory: Option<&Path>,
        filter: Option<Filter<'a>>,
    ) -> Capture<'a> {
        let name = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let file = match directory {
            Some(directory) => Artifact::Due(directory.join(name)),
            None => Artifact::Unwanted,
        };
        Capture { stream, output: Output::default(), filter, passed: Vec::new(), file }
    }

    pub(super) fn take(&mut self, piece: &[u8], both: &mut BothStreams) {
        if piece.is_empty() {
            return;
        }
        match &mut self.filter {
            None => {
                keep(&mut self.output, &mut self.file, piece);
                both.take(self.stream, piece);
            }
            Some(_) => self.pass(piece, both),
        }
    }

    pub(super) fn finish(mut self, both: &mut BothStreams) -> Output {
        self.pass(&[], both);
        self.output.tail = tail_of(&self.output.tail).to_vec();
        self.output.stored = self.file.finish();
        self.output
    }

    fn pass(&mut self, piece: &[u8], both: &mut BothStreams) {
        let Some(filter) = &mut self.filter else { return };
        filter(piece, &mut self.passed);
        keep(&mut self.output, &mut self.file, &self.passed);
        both.take(self.stream, &self.passed);
        self.passed.clear();
    }
}

/// Both streams of a job as one text of whole lines, in the order in which they are read.
///
/// Two pipes keep no order between them. A reader that takes each piece when it comes sees the order of a program
/// that leaves it a moment between two writes.
pub(super) struct BothStreams {
    output: Output,
    /// The beginnings of lines, of each stream.
    open: [Vec<u8>; 2],
    /// The stream that the observer heard last, if it stopped in the middle of a line.
    open_for_observer: Option<Stream>,
    observer: Option<Arc<dyn JobObserver>>,
    heard_at: Instant,
}

impl BothStreams {
    pub(super) fn new(observer: Option<Arc<dyn JobObserver>>) -> BothStreams {
        BothStreams {
            output: Output::default(),
            open: [Vec::new(), Vec::new()],
            open_for_observer: None,
            observer,
            heard_at: Instant::now(),
        }
    }

    /// The job has its turn now.
    pub(super) fn begin(&mut self) {
        self.heard_at = Instant::now();
        if let Some(observer) = &self.observer {
            observer.began();
        }
    }

    fn take(&mut self, stream: Stream, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.heard_at = Instant::now();
        self.tell(stream, piece);
        let open = &mut self.open[stream as usize];
        let lines = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if lines > 0 || open.len() + piece.len() > OPEN_LINE_MAX {
            let taken = if lines > 0 { lines } else { piece.len() };
            keep(&mut self.output, &mut Artifact::Unwanted, open);
            keep(&mut self.output, &mut Artifact::Unwanted, &piece[..taken]);
            open.clear();
            open.extend_from_slice(&piece[taken..]);
        } else {
            open.extend_from_slice(piece);
        }
    }

    /// The observer hears each piece at once, also the beginning of a line.
    fn tell(&mut self, stream: Stream, piece: &[u8]) {
        let Some(observer) = &self.observer else { return };
        if self.open_for_observer.is_some_and(|open| open != stream) {
            observer.printed(b"\n");
        }
        observer.printed(piece);
        self.open_for_observer = (!piece.ends_with(b"\n")).then_some(stream);
    }

    /// The text, and how long nothing was printed.
    pub(super) fn finish(mut self) -> (Output, Duration) {
        let is_in_line = self.open.iter().all(|open| !open.is_empty());
        for open in &mut self.open {
            keep(&mut self.output, &mut Artifact::Unwanted, open);
            if is_in_line {
                keep(&mut self.output, &mut Artifact::Unwanted, b"\n");
            }
        }
        self.output.tail = tail_of(&self.output.tail).to_vec();
        (self.output, self.heard_at.elapsed())
    }
}

fn keep(output: &mut Output, file: &mut Artifact, piece: &[u8]) {
    file.write(output.bytes, piece);
    output.bytes += piece.len() as u64;
    output.lines += count_lines(piece);
    let (head, rest) = piece.split_at(piece.len().min(HEAD - output.head.len()));
    output.head.extend_from_slice(head);
    // Twice the tail has room, so that bytes are moved once per tail and not once per piece.
    let rest = tail_of(rest);
    if output.tail.len() + rest.len() > 2 * TAIL {
        output.tail.drain(..output.tail.len() - TAIL.min(output.tail.len()));
    }
    output.tail.extend_from_slice(rest);
}

fn tail_of(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(TAIL)..]
}

fn count_lines(bytes: &[u8]) -> u64 {
    // As many as a byte can count: the compiler makes that many comparisons at once.
    let ends = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|part| u64::from(ends(part))).sum()
}

/// The file that a stream is written to.
enum Artifact {
    Unwanted,
    /// It is made when there is something to write.
    Due(PathBuf),
    Open(PathBuf, File),
    Full(PathBuf),
    Failed(PathBuf, io::Error),
}

impl Artifact {
    /// Writes what is within the limit, given what was written before.
    fn write(&mut self, before: u64, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        if let Artifact::Due(path) = self {
            let path = std::mem::take(path);
            *self = match create(&path) {
                Ok(file) => Artifact::Open(path, file),
                Err(error) => Artifact::Failed(path, error),
            };
        }
        let Artifact::Open(path, file) = self else { return };
        let room = usize::try_from(OUTPUT_MAX.saturating_sub(before)).unwrap_or(usize::MAX);
        if let Err(error) = file.write_all(&piece[..piece.len().min(room)]) {
            *self = Artifact::Failed(std::mem::take(path), error);
        } else if room < piece.len() {
            *self = Artifact::Full(std::mem::take(path));
        }
    }

    fn finish(self) -> Stored {
        match self {
            Artifact::Unwanted | Artifact::Due(_) => Stored::Nothing,
            Artifact::Open(path, _) => Stored::Whole(path),
            Artifact::Full(path) => Stored::Cut(path),
            Artifact::Failed(path, error) => Stored::Failed(path, error),
        }
    }
}

/// A new file: what is there already is neither followed nor overwritten.
fn create(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn captured(pieces: &[&[u8]]) -> Output {
        let mut capture = Capture::new(Stream::Stdout, None, None);
        let mut both = BothStreams::new(None);
        pieces.iter().for_each(|piece| capture.take(piece, &mut both));
        capture.finish(&mut both)
    }

    /// Numbered lines, so that every place looks different.
    fn numbered(bytes: usize) -> Vec<u8> {
        let mut text: Vec<u8> =
            (0..).flat_map(|n| format!("{n}\n").into_bytes()).take(bytes).collect();
        text.truncate(bytes);
        text
    }

    #[test]
    fn an_excerpt_within_a_limit_has_both_ends() {
        for total in [10, 100, HEAD + 10, HEAD + TAIL + 10] {
            let text = numbered(total);
            let excerpt = captured(&[&text]).excerpt_within(60);
            match total <= 60 {
                true => assert_eq!(excerpt.as_bytes(), text),
                false => {
                    let (head, rest) = excerpt.split_once("[… ").unwrap();
                    let (note, tail) = rest.split_once(" left out …]\n").unwrap();
                    assert!(text.starts_with(head.as_bytes()) && head.ends_with('\n'), "{excerpt}");
                    assert!(text.ends_with(tail.as_bytes()) && tail.len() > 10, "{excerpt}");
                    let bytes: usize =
                        note.split(' ').next().unwrap().replace(',', "").parse().unwrap();
                    assert_eq!(head.len() + bytes + tail.len(), total, "{excerpt}");
                }
            }
        }
    }

    #[test]
    fn head_tail_and_counts_are_exact_whatever_the_pieces() {
        for total in [0, 1, HEAD - 1, HEAD, HEAD + 1, HEAD + TAIL, HEAD + TAIL + 1, 500_000] {
            let text = numbered(total);
            for size in [1, 7, 4_096, TAIL, 3 * TAIL, 1 << 20] {
                let output = captured(&text.chunks(size).collect::<Vec<_>>());
                assert_eq!(output.bytes, total as u64);
                assert_eq!(output.lines, text.iter().filter(|byte| **byte == b'\n').count() as u64);
                assert_eq!(output.head, text[..total.min(HEAD)]);
                let tail = total.saturating_sub(HEAD).min(TAIL);
                assert_eq!(output.tail, text[total - tail..]);
                let left_out = total.saturating_sub(HEAD + TAIL) as u64;
                assert_eq!(output.left_out_bytes(), left_out);
                assert_eq!(output.whole().is_some(), left_out == 0);
            }
        }
    }

    #[test]
    fn an_excerpt_tells_what_is_left_out_and_splits_no_character() {
        let text = "€".repeat(40_000);
        let excerpt = captured(&[text.as_bytes()]).excerpt();
        // 32,768 is not a multiple of three: two bytes go at each cut.
        let kept = (HEAD / 3) * 3 + (TAIL / 3) * 3;
        let told = format!(
            "\n[… {},{:03} bytes left out …]\n",
            (120_000 - kept) / 1000,
            (120_000 - kept) % 1000
        );
        assert_eq!(excerpt.matches('€').count(), kept / 3);
        assert!(excerpt.contains(&told), "{told}");
        assert!(!excerpt.contains('\u{fffd}'));
    }

    #[test]
    fn a_character_across_head_and_tail_is_whole() {
        let text = format!("{}€{}", "x".repeat(HEAD - 1), "y".repeat(10));
        assert_eq!(captured(&[text.as_bytes()]).excerpt(), text);
    }

    #[test]
    fn a_filter_sees_all_and_decides_what_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut held = Vec::new();
        // Holds back half of what could be the word.
        let filter: Filter<'_> = Box::new(move |piece, kept| {
            held.extend_from_slice(piece);
            let text =
                String::from_utf8(std::mem::take(&mut held)).unwrap().replace("secret", "***");
            let split = if piece.is_empty() { text.len() } else { text.len().saturating_sub(5) };
            kept.extend_from_slice(&text.as_bytes()[..split]);
            held.extend_from_slice(&text.as_bytes()[split..]);
        });
        let mut capture = Capture::new(Stream::Stderr, Some(directory.path()), Some(filter));
        let mut both = BothStreams::new(None);
        for piece in ["the sec", "ret is", " secret"] {
            capture.take(piece.as_bytes(), &mut both);
        }
        let output = capture.finish(&mut both);
        assert_eq!(both.finish().0.excerpt(), "the *** is ***");
        assert_eq!(output.excerpt(), "the *** is ***");
        assert_eq!(output.bytes, 14);
        assert_eq!(fs::read_to_string(directory.path().join("stderr")).unwrap(), "the *** is ***");
    }

    #[test]
    fn both_streams_are_one_text_in_the_order_of_reading() {
        #[derive(Default)]
        struct Heard(std::sync::Mutex<Vec<u8>>);
        impl JobObserver for Heard {
            fn began(&self) {}
            fn printed(&self, text: &[u8]) {
                self.0.lock().unwrap().extend_from_slice(text);
            }
        }
        let heard = Arc::new(Heard::default());
        let mut both = BothStreams::new(Some(Arc::clone(&heard) as _));
        let mut stdout = Capture::new(Stream::Stdout, None, None);
        let mut stderr = Capture::new(Stream::Stderr, None, None);
        stdout.take(b"one\ntw", &mut both);
        stderr.take(b"three\n", &mut both);
        stdout.take(b"o\nfo", &mut both);
        stderr.take(b"five", &mut both);
        stdout.take(b"ur", &mut both);
        assert_eq!(stdout.finish(&mut both).excerpt(), "one\ntwo\nfour");
        assert_eq!(stderr.finish(&mut both).excerpt(), "three\nfive");
        assert_eq!(both.finish().0.excerpt(), "one\nthree\ntwo\nfour\nfive\n");
        // What is told at once can't wait for the end of a line.
        assert_eq!(*heard.0.lock().unwrap(), b"one\ntw\nthree\no\nfo\nfive\nur");
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut both = BothStreams::new(None);
        let mut stdout = Capture::new(Stream::Stdout, None, None);
        for _ in 0..10 {
            stdout.take(&vec![b'x'; OPEN_LINE_MAX / 2], &mut both);
            assert!(both.open[0].len() <= OPEN_LINE_MAX);
        }
        stdout.finish(&mut both);
        assert_eq!(both.finish().0.bytes, 5 * OPEN_LINE_MAX as u64);
    }

    #[test]
    fn a_file_is_new_private_and_made_for_output_only() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("deep/er");
        let capture = |pieces: &[&str]| {
            let mut capture = Capture::new(Stream::Stdout, Some(&place), None);
            let mut both = BothStreams::new(None);
            pieces.iter().for_each(|piece| capture.take(piece.as_bytes(), &mut both));
            capture.finish(&mut both)
        };
        assert!(matches!(capture(&[]).stored, Stored::Nothing));
        assert!(!place.exists());
        let output = capture(&["a", "b"]);
        let Stored::Whole(path) = output.stored else { panic!("{:?}", output.stored) };
        assert_eq!(fs::read(&path).unwrap(), b"ab");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = capture(&["c"]);
        assert!(matches!(again.stored, Stored::Failed(_, _)), "{:?}", again.stored);
        assert_eq!(again.excerpt(), "c");
        assert_eq!(fs::read(&path).unwrap(), b"ab");
    }

    #[test]
    fn a_file_ends_at_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout");
        let mut file = Artifact::Due(path.clone());
        file.write(OUTPUT_MAX - 2, b"abc");
        file.write(OUTPUT_MAX + 1, b"d");
        assert!(matches!(file.finish(), Stored::Cut(_)));
        assert_eq!(fs::read(path).unwrap(), b"ab");
    }
}
