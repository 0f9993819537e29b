//! The protocol between the program and its keeper, on a socket.
//!
//! An order carries the files that become the job's input and output. Both ends are the same executable, so the
//! protocol is binary and has no version.

mod confinement;

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::{Errno, FdFlags, fcntl_setfd, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};

use crate::job::{ExitReason, ResourceUsage};
use crate::limits::{ExceededLimit, ResourceLimits};
use crate::sandbox::{Confinement, ConfinementError};

/// The largest order, in bytes: more than any system passes to a process.
pub(crate) const ORDER_MAX: usize = 16 * 1024 * 1024;
/// The largest number of survivors in a reply.
pub(crate) const SURVIVORS_MAX: usize = 16;

/// Makes a write to a closed socket return EPIPE instead of raising SIGPIPE. Elsewhere, the program ignores SIGPIPE.
#[cfg(target_os = "linux")]
const NO_SIGPIPE: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGPIPE: SendFlags = SendFlags::empty();

const CANCEL: u8 = 0;
const RUN: u8 = 1;
/// The largest number of files of an order: stdin, stdout, stderr, and the file that the keeper holds.
const FILES_MAX: usize = 4;
/// Bytes before an order: its kind and its length.
const HEADER: usize = 5;
const WORD: usize = size_of::<u64>();
const PATH_WORDS: usize = confinement::PATH_MAX.div_ceil(WORD);
/// The largest number of words of a reply: eight, then the survivors or the path of a failed mount.
const REPLY_WORDS: usize = 8 + if SURVIVORS_MAX > PATH_WORDS { SURVIVORS_MAX } else { PATH_WORDS };

/// The command to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JobOrder {
    /// Identifies the order in a cancellation, which may arrive when the next order already runs.
    pub(crate) number: u64,
    /// The absolute path of the program.
    pub(crate) program: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) argv: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) timeout: Duration,
    pub(crate) grace: Duration,
    pub(crate) confinement: Option<Confinement>,
    pub(crate) limits: ResourceLimits,
}

#[derive(Debug)]
pub(crate) enum KeeperRequest {
    Run { order: Box<JobOrder>, stdio: [OwnedFd; 3], hold: Option<OwnedFd> },
    Cancel { number: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeeperReply {
    /// The keeper has read the order. A keeper that dies before this reply has started nothing.
    Accepted,
    NotStarted {
        errno: i32,
    },
    /// The confinement could not be enforced, so the job was not started.
    NotConfined(ConfinementError),
    Ended(EndReport),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndReport {
    pub(crate) exit: ExitReason,
    pub(crate) duration: Duration,
    pub(crate) usage: Option<ResourceUsage>,
    pub(crate) leftovers_killed: u64,
    pub(crate) survivors: Vec<u32>,
}

/// Sends an order with the job's stdin, stdout and stderr, and the file that the keeper holds open.
pub(crate) fn send_order(
    socket: BorrowedFd<'_>,
    order: &[u8],
    stdio: [BorrowedFd<'_>; 3],
    hold: Option<BorrowedFd<'_>>,
) -> rustix::io::Result<()> {
    let length = u32::try_from(order.len()).map_err(|_| Errno::TOOBIG)?;
    let mut header = [RUN; HEADER];
    header[1..].copy_from_slice(&length.to_le_bytes());

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut files = SendAncillaryBuffer::new(&mut space);
    let sent_files: Vec<BorrowedFd<'_>> = stdio.into_iter().chain(hold).collect();
    files.push(SendAncillaryMessage::ScmRights(&sent_files));
    let parts = [IoSlice::new(&header), IoSlice::new(order)];
    let sent = retry_on_intr(|| sendmsg(socket, &parts, &mut files, NO_SIGPIPE))?;
    let of_header = sent.min(HEADER);
    send_all(socket, &header[of_header..])?;
    send_all(socket, &order[sent - of_header..])
}

pub(crate) fn send_cancel(socket: BorrowedFd<'_>, number: u64) -> rustix::io::Result<()> {
    let mut request = [CANCEL; 1 + WORD];
    request[1..].copy_from_slice(&number.to_le_bytes());
    send_all(socket, &request)
}

fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let sent = retry_on_intr(|| send(socket, bytes, NO_SIGPIPE))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Receives the next request. Returns `None` if the program has ended.
pub(crate) fn receive_request(socket: BorrowedFd<'_>) -> io::Result<Option<KeeperRequest>> {
    let mut kind = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut files = RecvAncillaryBuffer::new(&mut space);
    // The files arrive with the first byte.
    let flags = RecvFlags::empty();
    let got =
        retry_on_intr(|| recvmsg(socket, &mut [IoSliceMut::new(&mut kind)], &mut files, flags))?;
    if got.bytes == 0 {
        return Ok(None);
    }
    match kind {
        [CANCEL] => {
            let mut number = [0; WORD];
            let received = receive_all(socket, &mut number)?;
            Ok(received.map(|()| KeeperRequest::Cancel { number: u64::from_le_bytes(number) }))
        }
        [RUN] => {
            let stdio = files.drain().flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(files) => files.collect(),
                _ => Vec::new(),
            });
            let mut stdio: Vec<OwnedFd> = stdio.collect();
            // No other job may inherit these files, and no job the held file.
            stdio.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::CLOEXEC))?;
            let hold = if stdio.len() == FILES_MAX { stdio.pop() } else { None };
            let stdio = stdio.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
            let Some(order) = receive_order(socket)? else { return Ok(None) };
            let order = Box::new(JobOrder::decode(&order).ok_or(io::ErrorKind::InvalidData)?);
            Ok(Some(KeeperRequest::Run { order, stdio, hold }))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn receive_order(socket: BorrowedFd<'_>) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; HEADER - 1];
    if receive_all(socket, &mut length)?.is_none() {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > ORDER_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut order = vec![0; length];
    Ok(receive_all(socket, &mut order)?.map(|()| order))
}

/// Fills `bytes`. Returns `None` if the other side has closed the connection.
fn receive_all(socket: BorrowedFd<'_>, mut bytes: &mut [u8]) -> rustix::io::Result<Option<()>> {
    while !bytes.is_empty() {
        let (got, _) = retry_on_intr(|| recv(socket, &mut *bytes, RecvFlags::empty()))?;
        if got == 0 {
            return Ok(None);
        }
        bytes = &mut bytes[got..];
    }
    Ok(Some(()))
}

pub(crate) fn send_reply(socket: impl AsFd, reply: &KeeperReply) -> rustix::io::Result<()> {
    let words = reply.words();
    let words = [words.len() as u64].into_iter().chain(words);
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    send_all(socket.as_fd(), &bytes)
}

/// Receives the next reply. Returns `None` if the keeper has ended or the reply is malformed.
pub(crate) fn receive_reply(socket: BorrowedFd<'_>) -> Option<KeeperReply> {
    let mut count = [0; WORD];
    let received = match receive_all(socket, &mut count) {
        // The peer died with unread data. The error is reported once, before the replies that it had sent.
        Err(Errno::CONNRESET) => receive_all(socket, &mut count),
        received => received,
    };
    received.ok()??;
    let count = usize::try_from(u64::from_le_bytes(count)).ok()?;
    let mut bytes = vec![0; count.checked_mul(WORD).filter(|_| count <= REPLY_WORDS)?];
    receive_all(socket, &mut bytes).ok()??;
    let (words, _) = bytes.as_chunks::<WORD>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    KeeperReply::from_words(&words)
}

impl JobOrder {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        for word in [self.number, nanos(self.timeout), nanos(self.grace)] {
            put_word(&mut bytes, word);
        }
        put_word(&mut bytes, self.argv.len() as u64);
        let ResourceLimits { processes, memory_bytes, disk_bytes } = self.limits;
        // 0 stands for no limit.
        let limits = [processes, memory_bytes, disk_bytes].map(Option::unwrap_or_default);
        limits.into_iter().for_each(|limit| put_word(&mut bytes, limit));
        confinement::put(&mut bytes, self.confinement.as_ref());
        let variables = self.env.iter().flat_map(|(name, value)| [name, value]);
        let texts = [self.program.as_os_str(), self.cwd.as_os_str()].into_iter();
        for text in texts.chain(self.argv.iter().chain(variables).map(OsString::as_os_str)) {
            put_text(&mut bytes, text);
        }
        bytes
    }

    /// Whether the job sees other files than this process.
    pub(crate) fn has_mounts(&self) -> bool {
        self.confinement.as_ref().is_some_and(|confinement| !confinement.mounts.is_empty())
    }

    /// Whether the program is in a directory that is hidden from the job.
    pub(crate) fn hides_program(&self) -> bool {
        let hidden = self.confinement.iter().flat_map(|confinement| &confinement.hide);
        let mut hidden = hidden.filter_map(|path| path.canonicalize().ok());
        self.program
            .canonicalize()
            .is_ok_and(|program| hidden.any(|path| program.starts_with(path)))
    }

    fn decode(mut bytes: &[u8]) -> Option<JobOrder> {
        let bytes = &mut bytes;
        let number = take_word(bytes)?;
        let timeout = Duration::from_nanos(take_word(bytes)?);
        let grace = Duration::from_nanos(take_word(bytes)?);
        let arguments = take_word(bytes)?;
        let mut limit = || take_word(bytes).map(|word| Some(word).filter(|word| *word > 0));
        let limits =
            ResourceLimits { processes: limit()?, memory_bytes: limit()?, disk_bytes: limit()? };
        let confinement = confinement::take(bytes)?;
        let program = take_text(bytes)?.into();
        let cwd = take_text(bytes)?.into();
        let argv = (0..arguments).map(|_| take_text(bytes)).collect::<Option<_>>()?;
        let mut env = Vec::new();
        while !bytes.is_empty() {
            env.push((take_text(bytes)?, take_text(bytes)?));
        }
        Some(JobOrder { number, program, cwd, argv, env, timeout, grace, confinement, limits })
    }
}

fn put_word(bytes: &mut Vec<u8>, word: u64) {
    bytes.extend(word.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &OsStr) {
    put_word(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn take_word(bytes: &mut &[u8]) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*word))
}

fn take_text(bytes: &mut &[u8]) -> Option<OsString> {
    let length = usize::try_from(take_word(bytes)?).ok()?;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(OsStr::from_bytes(text).to_owned())
}

/// Returns nanoseconds, which fit for 500 years.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl KeeperReply {
    fn words(&self) -> Vec<u64> {
        match self {
            KeeperReply::Accepted => vec![5, 0],
            KeeperReply::NotStarted { errno } => vec![0, u64::from(errno.cast_unsigned())],
            KeeperReply::NotConfined(error) => {
                [6].into_iter().chain(confinement::error_words(error)).collect()
            }
            KeeperReply::Ended(ended) => {
                let (kind, detail) = match ended.exit {
                    ExitReason::Exited(code) => (1, u64::from(code.cast_unsigned())),
                    ExitReason::Signalled(signal) => (2, u64::from(signal.cast_unsigned())),
                    ExitReason::TimedOut => (3, 0),
                    ExitReason::Cancelled => (4, 0),
                    ExitReason::OverLimit(ExceededLimit::Processes(count)) => (7, count),
                    ExitReason::OverLimit(ExceededLimit::Memory { bytes }) => (8, bytes),
                    ExitReason::OverLimit(ExceededLimit::Disk { bytes }) => (9, bytes),
                };
                let usage = ended.usage.map_or([0; 4], |usage| {
                    [1, nanos(usage.user), nanos(usage.system), usage.max_rss_bytes]
                });
                let mut words = vec![kind, detail];
                words.extend([nanos(ended.duration), ended.leftovers_killed]);
                words.extend(usage);
                words.extend(ended.survivors.iter().take(SURVIVORS_MAX).map(|pid| u64::from(*pid)));
                words
            }
        }
    }

    fn from_words(words: &[u64]) -> Option<KeeperReply> {
        let (&[kind, detail], rest) = words.split_first_chunk()?;
        let number = || u32::try_from(detail).map(u32::cast_signed).ok();
        let exit = match kind {
            0 => return Some(KeeperReply::NotStarted { errno: number()? }),
            1 => ExitReason::Exited(number()?),
            2 => ExitReason::Signalled(number()?),
            3 => ExitReason::TimedOut,
            4 => ExitReason::Cancelled,
            5 => return Some(KeeperReply::Accepted),
            6 => return confinement::error_of(&words[1..]).map(KeeperReply::NotConfined),
            7 => ExitReason::OverLimit(ExceededLimit::Processes(detail)),
            8 => ExitReason::OverLimit(ExceededLimit::Memory { bytes: detail }),
            9 => ExitReason::OverLimit(ExceededLimit::Disk { bytes: detail }),
            _ => return None,
        };
        let (&[duration, leftovers_killed, known, user, system, max_rss_bytes], survivors) =
            rest.split_first_chunk()?;
        let usage = ResourceUsage {
            user: Duration::from_nanos(user),
            system: Duration::from_nanos(system),
            max_rss_bytes,
        };
        Some(KeeperReply::Ended(EndReport {
            exit,
            duration: Duration::from_nanos(duration),
            usage: (known == 1).then_some(usage),
            leftovers_killed,
            survivors: survivors.iter().filter_map(|pid| u32::try_from(*pid).ok()).collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::sandbox::PrivateMount;

    #[test]
    fn an_order_is_decoded_as_it_was_encoded() {
        let order = JobOrder {
            number: u64::MAX,
            program: "/bin/sh".into(),
            cwd: "/".into(),
            argv: vec!["sh".into(), OsString::from_vec(vec![0xff, b'\n']), "".into()],
            env: vec![("A".into(), "".into()), ("B".into(), OsString::from_vec(vec![0xfe]))],
            timeout: Duration::from_millis(1_500),
            grace: Duration::ZERO,
            confinement: Some(Confinement {
                write: Some(vec!["/a".into()]),
                mounts: vec![PrivateMount::Hide { target: "/b".into() }],
                ..Confinement::default()
            }),
            limits: ResourceLimits {
                processes: Some(7),
                memory_bytes: None,
                disk_bytes: Some(1 << 40),
            },
        };
        let bytes = order.encode();
        assert_eq!(JobOrder::decode(&bytes), Some(order));
        for end in 0..bytes.len() {
            // A truncated order is invalid, or has fewer variables.
            assert!(JobOrder::decode(&bytes[..end]).is_none_or(|order| order.env.len() < 2));
        }
    }

    #[test]
    fn a_reply_is_decoded_as_it_was_encoded() {
        let usage = ResourceUsage {
            user: Duration::from_micros(7),
            system: Duration::from_secs(9),
            max_rss_bytes: 1 << 40,
        };
        let ended = |exit, usage, survivors| {
            let duration = Duration::from_nanos(123);
            KeeperReply::Ended(EndReport { exit, duration, usage, leftovers_killed: 3, survivors })
        };
        for reply in [
            KeeperReply::Accepted,
            KeeperReply::NotStarted { errno: 2 },
            KeeperReply::NotConfined(ConfinementError::Place),
            KeeperReply::NotConfined(ConfinementError::Mount { path: "/a".into(), errno: 2 }),
            ended(ExitReason::Exited(255), Some(usage), vec![]),
            ended(ExitReason::Signalled(9), None, vec![1, 2, 3]),
            ended(ExitReason::TimedOut, None, vec![]),
            ended(ExitReason::OverLimit(ExceededLimit::Memory { bytes: 1 << 40 }), None, vec![]),
            ended(ExitReason::OverLimit(ExceededLimit::Processes(9)), Some(usage), vec![]),
            ended(ExitReason::Cancelled, Some(usage), vec![8]),
        ] {
            assert_eq!(KeeperReply::from_words(&reply.words()), Some(reply));
        }
    }

    #[test]
    fn replies_are_received_from_a_keeper_that_died_with_unread_data() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        send_reply(&theirs, &KeeperReply::Accepted).unwrap();
        send_cancel(ours.as_fd(), 1).unwrap();
        drop(theirs);
        assert_eq!(receive_reply(ours.as_fd()), Some(KeeperReply::Accepted));
        assert_eq!(receive_reply(ours.as_fd()), None);
    }
}
