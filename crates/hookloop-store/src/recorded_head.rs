//! The last acknowledged event of a SQLite log, in a small file beside it.
//!
//! The view in the log's own file has the acknowledged head, too. A file that is deleted, emptied
//! or replaced by an older copy loses it. A log on servers needs no such file: its view is a
//! separate file.
//!
//! The record is written after a commit and is not synced, so it never names an event that is not
//! on disk. If several processes commit at once, an earlier one may write last. The record then
//! lags behind until the next commit.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::chain::ChainHash;
use crate::hex;
use crate::seq::Seq;

/// The extension that replaces the one of the log's file.
const EXTENSION: &str = "head";
/// Largest number of reads while another process writes the record.
const READ_TRIES: usize = 5;
/// Size of the checksum, in bytes.
const CHECK_BYTES: usize = 8;
/// Size of a record: place, hash and checksum in hexadecimal, two spaces and a line feed.
const RECORD_BYTES: usize = 16 + 64 + 2 * CHECK_BYTES + 3;

/// The place and the hash of the last acknowledged event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordedHead {
    pub(crate) seq: Seq,
    pub(crate) hash: ChainHash,
}

impl RecordedHead {
    /// Reads the record beside the log at `log`. Returns `None` if it is missing or unreadable.
    pub(crate) fn read(log: &Path) -> Option<RecordedHead> {
        let path = log.with_extension(EXTENSION);
        for _ in 0..READ_TRIES {
            // Without a readable record, the view's head is used.
            let file = File::open(&path).ok()?;
            let mut text = [0; RECORD_BYTES];
            file.read_exact_at(&mut text, 0).ok()?;
            let head = std::str::from_utf8(&text).ok().and_then(RecordedHead::parse);
            if head.is_some() {
                return head;
            }
        }
        None
    }

    fn parse(text: &str) -> Option<RecordedHead> {
        let mut parts = text.trim_end().split(' ');
        let seq = Seq::from_str_radix(parts.next()?, 16).ok()?;
        let digits = parts.next()?;
        if digits.len() != 64 || !digits.is_ascii() {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, place) in hash.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&digits[place..place + 2], 16).ok()?;
        }
        let head = RecordedHead { seq, hash };
        (head.text() == text).then_some(head)
    }

    fn text(&self) -> String {
        let body = format!("{:016x} {}", self.seq, hex::encode(&self.hash));
        let check = Sha256::digest(&body);
        format!("{body} {}\n", hex::encode(&check[..CHECK_BYTES]))
    }
}

/// Writes the record beside one log.
#[derive(Debug)]
pub(crate) struct HeadRecorder {
    path: PathBuf,
    file: Option<File>,
}

impl HeadRecorder {
    pub(crate) fn new(log: &Path) -> HeadRecorder {
        HeadRecorder { path: log.with_extension(EXTENSION), file: None }
    }

    /// Records `head`, whose event is on disk.
    ///
    /// If this fails, the record lags behind. The event is stored, so the command must not fail.
    pub(crate) fn record(&mut self, head: RecordedHead) {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600);
            // A record that can't be opened now is opened by the next commit.
            let opened = options.open(&self.path);
            self.file = opened.inspect_err(|error| self.report(error)).ok();
        }
        if let Some(file) = &self.file {
            // The record lags behind until the next commit.
            if let Err(error) = file.write_all_at(head.text().as_bytes(), 0) {
                self.report(&error);
            }
        }
    }

    fn report(&self, error: &std::io::Error) {
        let path = self.path.display();
        tracing::warn!(%path, %error, "the record of the log's head is not written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(seq: Seq) -> RecordedHead {
        RecordedHead { seq, hash: [seq as u8; 32] }
    }

    #[test]
    fn a_recorded_head_is_read_back_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log.db");
        assert_eq!(RecordedHead::read(&log), None);
        let mut recorder = HeadRecorder::new(&log);
        for seq in [7, u64::MAX, 3] {
            recorder.record(head(seq));
            assert_eq!(RecordedHead::read(&log), Some(head(seq)));
        }
    }

    #[test]
    fn a_damaged_head_record_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log.db");
        HeadRecorder::new(&log).record(head(19));
        let path = log.with_extension(EXTENSION);
        let good = std::fs::read(&path).unwrap();
        for place in 0..good.len() {
            let mut bytes = good.clone();
            bytes[place] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(RecordedHead::read(&log), None, "byte {place}");
            std::fs::write(&path, &good[..place]).unwrap();
            assert_eq!(RecordedHead::read(&log), None, "{place} bytes");
        }
    }
}
