//! The kept output of a job: exact counts, the head and the tail in memory, all of it in a file.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of the beginning of each stream that stay in memory.
pub const HEAD_MAX: usize = 32 * 1024;
/// Bytes of the end of each stream that stay in memory.
pub const TAIL_MAX: usize = 32 * 1024;
/// Bytes of each stream that are stored in its file. Later bytes are only counted.
pub const OUTPUT_MAX: u64 = 256 * 1024 * 1024;

/// An output stream of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Takes each piece of a stream and appends the bytes that may be kept.
///
/// A filter may hold back bytes that could continue in the next piece. An empty piece marks the end of the stream.
pub type OutputFilter<'a> = Box<dyn FnMut(&[u8], &mut Vec<u8>) + 'a>;

/// Gets the progress of a job, on the thread that runs it. Its methods must not block.
pub trait JobObserver: Send + Sync {
    /// Called when the job starts.
    fn began(&self);
    /// Called with filtered output of the job on one of its streams.
    fn printed(&self, text: &[u8]);
}

/// Both outputs of a job.
#[derive(Debug, Default)]
pub struct JobOutputs {
    pub stdout: StreamOutput,
    pub stderr: StreamOutput,
    /// Both streams in reading order. This output has no file.
    pub both: StreamOutput,
    /// Time since the last output when the job ended.
    pub quiet_for: Duration,
}

/// The kept part of a stream. Head, tail and counts are those of the filtered bytes.
#[derive(Debug, Default)]
pub struct StreamOutput {
    head: Vec<u8>,
    /// Bytes after the head. At most the last [`TAIL_MAX`] of them remain when the stream has ended.
    tail: Vec<u8>,
    pub bytes: u64,
    /// Number of line ends.
    pub lines: u64,
    pub stored: StoredOutput,
}

/// The file of a stream.
#[derive(Debug, Default)]
pub enum StoredOutput {
    /// There is no file, because the job requested none or the stream was empty.
    #[default]
    Nothing,
    Whole(PathBuf),
    /// The first [`OUTPUT_MAX`] bytes.
    Cut(PathBuf),
    /// The bytes that were written before the error.
    Failed(PathBuf, io::Error),
}

impl StreamOutput {
    /// Returns the output of a stream that had exactly these bytes.
    pub fn of_bytes(bytes: &[u8]) -> StreamOutput {
        let mut output = StreamOutput::default();
        output.append(bytes);
        output.finish();
        output
    }

    /// Returns the first [`HEAD_MAX`] bytes.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the last [`TAIL_MAX`] of the bytes after the head.
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// Returns all of the output, if memory holds all of it.
    pub fn whole(&self) -> Option<Cow<'_, [u8]>> {
        if self.left_out_bytes() > 0 {
            return None;
        }
        if self.tail.is_empty() {
            return Some(Cow::Borrowed(&self.head));
        }
        Some(Cow::Owned([&self.head[..], &self.tail].concat()))
    }

    /// Returns the number of bytes that are neither in the head nor in the tail.
    pub fn left_out_bytes(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail.len()) as u64
    }

    pub fn append(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.lines += count_lines(piece);
        let (head, rest) = piece.split_at(piece.len().min(HEAD_MAX - self.head.len()));
        self.head.extend_from_slice(head);
        // The buffer has room for two tails, so that bytes move once per tail and not once per piece.
        let rest = tail_of(rest);
        if self.tail.len() + rest.len() > 2 * TAIL_MAX {
            self.tail.drain(..self.tail.len() - TAIL_MAX.min(self.tail.len()));
        }
        self.tail.extend_from_slice(rest);
    }

    pub(crate) fn finish(&mut self) {
        self.tail = tail_of(&self.tail).to_vec();
    }
}

fn tail_of(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(TAIL_MAX)..]
}

fn count_lines(bytes: &[u8]) -> u64 {
    // Sums of at most 255 fit a byte, so the compiler compares many bytes at once.
    let ends = |part: &[u8]| part.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|part| u64::from(ends(part))).sum()
}
