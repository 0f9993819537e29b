//! Reads the output of a job: filters it, counts it, stores it in a file and reports it to an observer.
//!
//! Memory does not grow with the output. A file that cannot be written does not stop the job.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::output::{
    JobObserver, OUTPUT_MAX, OutputFilter, OutputStream, StoredOutput, StreamOutput,
};

/// The longest beginning of a line that waits for the end of the line.
const OPEN_LINE_MAX: usize = 64 * 1024;

/// A stream that is being read.
pub(crate) struct StreamCapture<'a> {
    stream: OutputStream,
    output: StreamOutput,
    filter: Option<OutputFilter<'a>>,
    /// Bytes that passed the filter. The field only keeps the allocation.
    passed: Vec<u8>,
    file: OutputFile,
}

impl<'a> StreamCapture<'a> {
    pub(crate) fn new(
        stream: OutputStream,
        directory: Option<&Path>,
        filter: Option<OutputFilter<'a>>,
    ) -> StreamCapture<'a> {
        let name = match stream {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        };
        let file = match directory {
            Some(directory) => OutputFile::Due(directory.join(name)),
            None => OutputFile::NotWanted,
        };
        StreamCapture { stream, output: StreamOutput::default(), filter, passed: Vec::new(), file }
    }

    pub(crate) fn take(&mut self, piece: &[u8], both: &mut BothStreams) {
        if piece.is_empty() {
            return;
        }
        if self.filter.is_some() {
            self.pass(piece, both);
        } else {
            self.file.write(self.output.bytes, piece);
            self.output.append(piece);
            both.take(self.stream, piece);
        }
    }

    pub(crate) fn finish(mut self, both: &mut BothStreams) -> StreamOutput {
        self.pass(&[], both);
        self.output.finish();
        self.output.stored = self.file.finish();
        self.output
    }

    fn pass(&mut self, piece: &[u8], both: &mut BothStreams) {
        let Some(filter) = &mut self.filter else { return };
        filter(piece, &mut self.passed);
        self.file.write(self.output.bytes, &self.passed);
        self.output.append(&self.passed);
        both.take(self.stream, &self.passed);
        self.passed.clear();
    }
}

/// Both streams of a job as one text of whole lines, in the order in which they are read.
///
/// Two pipes have no common order. A program that pauses between two writes has its order kept, because each piece
/// is read as it arrives.
pub(crate) struct BothStreams {
    output: StreamOutput,
    /// The unfinished last line of each stream.
    open: [Vec<u8>; 2],
    /// The stream of the last report to the observer, if that ended within a line.
    open_for_observer: Option<OutputStream>,
    observer: Option<Arc<dyn JobObserver>>,
    last_output: Instant,
}

impl BothStreams {
    pub(crate) fn new(observer: Option<Arc<dyn JobObserver>>) -> BothStreams {
        BothStreams {
            output: StreamOutput::default(),
            open: [Vec::new(), Vec::new()],
            open_for_observer: None,
            observer,
            last_output: Instant::now(),
        }
    }

    /// Reports the start of the job.
    pub(crate) fn begin(&mut self) {
        self.last_output = Instant::now();
        if let Some(observer) = &self.observer {
            observer.began();
        }
    }

    fn take(&mut self, stream: OutputStream, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        self.last_output = Instant::now();
        self.report(stream, piece);
        let open = &mut self.open[stream as usize];
        let lines = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if lines > 0 || open.len() + piece.len() > OPEN_LINE_MAX {
            let taken = if lines > 0 { lines } else { piece.len() };
            self.output.append(open);
            self.output.append(&piece[..taken]);
            open.clear();
            open.extend_from_slice(&piece[taken..]);
        } else {
            open.extend_from_slice(piece);
        }
    }

    /// Reports a piece at once, even if it ends within a line.
    fn report(&mut self, stream: OutputStream, piece: &[u8]) {
        let Some(observer) = &self.observer else { return };
        if self.open_for_observer.is_some_and(|open| open != stream) {
            observer.printed(b"\n");
        }
        observer.printed(piece);
        self.open_for_observer = (!piece.ends_with(b"\n")).then_some(stream);
    }

    /// Returns the text, and the time since the last output.
    pub(crate) fn finish(mut self) -> (StreamOutput, Duration) {
        let is_in_line = self.open.iter().all(|open| !open.is_empty());
        for open in &mut self.open {
            self.output.append(open);
            if is_in_line {
                self.output.append(b"\n");
            }
        }
        self.output.finish();
        (self.output, self.last_output.elapsed())
    }
}

/// The file of a stream while it is written.
enum OutputFile {
    NotWanted,
    /// The file is not created before the first output.
    Due(PathBuf),
    Open(PathBuf, File),
    Full(PathBuf),
    Failed(PathBuf, io::Error),
}

impl OutputFile {
    /// Writes the part of a piece that is within the limit. `before` is the number of earlier bytes.
    fn write(&mut self, before: u64, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        if let OutputFile::Due(path) = self {
            let path = std::mem::take(path);
            *self = match create(&path) {
                Ok(file) => OutputFile::Open(path, file),
                Err(error) => OutputFile::Failed(path, error),
            };
        }
        let OutputFile::Open(path, file) = self else { return };
        let room = usize::try_from(OUTPUT_MAX.saturating_sub(before)).unwrap_or(usize::MAX);
        if let Err(error) = file.write_all(&piece[..piece.len().min(room)]) {
            *self = OutputFile::Failed(std::mem::take(path), error);
        } else if room < piece.len() {
            *self = OutputFile::Full(std::mem::take(path));
        }
    }

    fn finish(self) -> StoredOutput {
        match self {
            OutputFile::NotWanted | OutputFile::Due(_) => StoredOutput::Nothing,
            OutputFile::Open(path, _) => StoredOutput::Whole(path),
            OutputFile::Full(path) => StoredOutput::Cut(path),
            OutputFile::Failed(path, error) => StoredOutput::Failed(path, error),
        }
    }
}

/// Creates a new file. An existing file or link is neither followed nor overwritten.
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
    use crate::output::{HEAD_MAX, TAIL_MAX};

    fn text(output: &StreamOutput) -> String {
        String::from_utf8(output.whole().unwrap().into_owned()).unwrap()
    }

    fn captured(pieces: &[&[u8]]) -> StreamOutput {
        let mut capture = StreamCapture::new(OutputStream::Stdout, None, None);
        let mut both = BothStreams::new(None);
        pieces.iter().for_each(|piece| capture.take(piece, &mut both));
        capture.finish(&mut both)
    }

    /// Returns numbered lines, so that no two parts are alike.
    fn numbered(bytes: usize) -> Vec<u8> {
        let mut text: Vec<u8> =
            (0..).flat_map(|n| format!("{n}\n").into_bytes()).take(bytes).collect();
        text.truncate(bytes);
        text
    }

    #[test]
    fn head_tail_and_counts_are_exact_for_pieces_of_any_size() {
        for total in [
            0,
            1,
            HEAD_MAX - 1,
            HEAD_MAX,
            HEAD_MAX + 1,
            HEAD_MAX + TAIL_MAX,
            HEAD_MAX + TAIL_MAX + 1,
            500_000,
        ] {
            let text = numbered(total);
            for size in [1, 7, 4_096, TAIL_MAX, 3 * TAIL_MAX, 1 << 20] {
                let output = captured(&text.chunks(size).collect::<Vec<_>>());
                assert_eq!(output.bytes, total as u64);
                assert_eq!(output.lines, text.iter().filter(|byte| **byte == b'\n').count() as u64);
                assert_eq!(output.head(), &text[..total.min(HEAD_MAX)]);
                let tail = total.saturating_sub(HEAD_MAX).min(TAIL_MAX);
                assert_eq!(output.tail(), &text[total - tail..]);
                let left_out = total.saturating_sub(HEAD_MAX + TAIL_MAX) as u64;
                assert_eq!(output.left_out_bytes(), left_out);
                assert_eq!(output.whole().is_some(), left_out == 0);
            }
        }
    }

    #[test]
    fn a_filter_sees_all_output_and_selects_the_stored_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let mut held = Vec::new();
        // Holds back the beginning of a possible match.
        let filter: OutputFilter<'_> = Box::new(move |piece, kept| {
            held.extend_from_slice(piece);
            let text =
                String::from_utf8(std::mem::take(&mut held)).unwrap().replace("secret", "***");
            let split = if piece.is_empty() { text.len() } else { text.len().saturating_sub(5) };
            kept.extend_from_slice(&text.as_bytes()[..split]);
            held.extend_from_slice(&text.as_bytes()[split..]);
        });
        let mut capture =
            StreamCapture::new(OutputStream::Stderr, Some(directory.path()), Some(filter));
        let mut both = BothStreams::new(None);
        for piece in ["the sec", "ret is", " secret"] {
            capture.take(piece.as_bytes(), &mut both);
        }
        let output = capture.finish(&mut both);
        assert_eq!(text(&both.finish().0), "the *** is ***");
        assert_eq!(text(&output), "the *** is ***");
        assert_eq!(output.bytes, 14);
        assert_eq!(fs::read_to_string(directory.path().join("stderr")).unwrap(), "the *** is ***");
    }

    #[test]
    fn both_streams_are_merged_in_the_order_of_reading() {
        #[derive(Default)]
        struct RecordingObserver(std::sync::Mutex<Vec<u8>>);
        impl JobObserver for RecordingObserver {
            fn began(&self) {}
            fn printed(&self, text: &[u8]) {
                self.0.lock().unwrap().extend_from_slice(text);
            }
        }
        let heard = Arc::new(RecordingObserver::default());
        let mut both = BothStreams::new(Some(Arc::clone(&heard) as _));
        let mut stdout = StreamCapture::new(OutputStream::Stdout, None, None);
        let mut stderr = StreamCapture::new(OutputStream::Stderr, None, None);
        stdout.take(b"one\ntw", &mut both);
        stderr.take(b"three\n", &mut both);
        stdout.take(b"o\nfo", &mut both);
        stderr.take(b"five", &mut both);
        stdout.take(b"ur", &mut both);
        assert_eq!(text(&stdout.finish(&mut both)), "one\ntwo\nfour");
        assert_eq!(text(&stderr.finish(&mut both)), "three\nfive");
        assert_eq!(text(&both.finish().0), "one\nthree\ntwo\nfour\nfive\n");
        // Reports to an observer do not wait for the end of a line.
        assert_eq!(*heard.0.lock().unwrap(), b"one\ntw\nthree\no\nfo\nfive\nur");
    }

    #[test]
    fn an_endless_line_uses_bounded_memory() {
        let mut both = BothStreams::new(None);
        let mut stdout = StreamCapture::new(OutputStream::Stdout, None, None);
        for _ in 0..10 {
            stdout.take(&vec![b'x'; OPEN_LINE_MAX / 2], &mut both);
            assert!(both.open[0].len() <= OPEN_LINE_MAX);
        }
        stdout.finish(&mut both);
        assert_eq!(both.finish().0.bytes, 5 * OPEN_LINE_MAX as u64);
    }

    #[test]
    fn an_output_file_is_new_private_and_absent_without_output() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("deep/er");
        let capture = |pieces: &[&str]| {
            let mut capture = StreamCapture::new(OutputStream::Stdout, Some(&place), None);
            let mut both = BothStreams::new(None);
            pieces.iter().for_each(|piece| capture.take(piece.as_bytes(), &mut both));
            capture.finish(&mut both)
        };
        assert!(matches!(capture(&[]).stored, StoredOutput::Nothing));
        assert!(!place.exists());
        let output = capture(&["a", "b"]);
        let StoredOutput::Whole(path) = output.stored else { panic!("{:?}", output.stored) };
        assert_eq!(fs::read(&path).unwrap(), b"ab");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = capture(&["c"]);
        assert!(matches!(again.stored, StoredOutput::Failed(_, _)), "{:?}", again.stored);
        assert_eq!(text(&again), "c");
        assert_eq!(fs::read(&path).unwrap(), b"ab");
    }

    #[test]
    fn an_output_file_ends_at_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stdout");
        let mut file = OutputFile::Due(path.clone());
        file.write(OUTPUT_MAX - 2, b"abc");
        file.write(OUTPUT_MAX + 1, b"d");
        assert!(matches!(file.finish(), StoredOutput::Cut(_)));
        assert_eq!(fs::read(path).unwrap(), b"ab");
    }
}
