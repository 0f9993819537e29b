//! What the program and its keeper say to each other, on a socket: an order comes with the files that become the
//! hook's input and output.
//!
//! Both ends are the same executable, so there is no version and no text.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use hookloop_core::limits::{Limit, Limits};
use rustix::io::{Errno, FdFlags, fcntl_setfd, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, send, sendmsg,
};

use super::{Confinement, How, Unconfined, Usage};

/// The largest order: more than any system gives to a process.
pub(super) const ORDER_MAX: usize = 16 * 1024 * 1024;
/// Survivors that are named.
pub(super) const SURVIVORS_TOLD: usize = 16;

/// Who writes to somebody who is gone is told so, and not ended for it: elsewhere, programs ignore that signal.
#[cfg(target_os = "linux")]
const QUIETLY: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const QUIETLY: SendFlags = SendFlags::empty();

const CANCEL: u8 = 0;
const RUN: u8 = 1;
/// Files that come with an order: input, output, errors, and the file that the keeper holds.
const FILES_MAX: usize = 4;
/// The kind, and how long the order is.
const HEADER: usize = 5;
const CONFINED: u64 = 1;
const NO_NETWORK: u64 = 2;
const WRITE_LIMITED: u64 = 4;
const WORD: usize = size_of::<u64>();
const REPLY_WORDS: usize = 8 + SURVIVORS_TOLD;

/// By their numbers.
const UNCONFINED: [Unconfined; 5] = [
    Unconfined::Landlock,
    Unconfined::Place,
    Unconfined::Capabilities,
    Unconfined::Filter,
    Unconfined::Silent,
];

/// What to start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// What a cancellation names: it may come when the next order already runs.
    pub(super) number: u64,
    /// The file, by an absolute path.
    pub(super) program: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) argv: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) timeout: Duration,
    pub(super) grace: Duration,
    pub(super) confinement: Option<Confinement>,
    pub(super) limits: Limits,
}

#[derive(Debug)]
pub(super) enum Request {
    Run { order: Box<Order>, stdio: [OwnedFd; 3], hold: Option<OwnedFd> },
    Cancel { number: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The order was read. Whoever dies before saying so has started nothing.
    Taken,
    NotStarted {
        errno: i32,
    },
    /// It was to be confined and could not be, so it was not started.
    NotConfined(Unconfined),
    Ended(Ended),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) how: How,
    pub(super) duration: Duration,
    pub(super) usage: Option<Usage>,
    pub(super) leftovers_killed: u64,
    pub(super) survivors: Vec<u32>,
}

/// Sends an order with the job's input and output, and the file that the keeper has open while the job runs.
pub(super) fn send_order(
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
    let sent = retry_on_intr(|| sendmsg(socket, &parts, &mut files, QUIETLY))?;
    let of_header = sent.min(HEADER);
    send_all(socket, &header[of_header..])?;
    send_all(socket, &order[sent - of_header..])
}

pub(super) fn send_cancel(socket: BorrowedFd<'_>, number: u64) -> rustix::io::Result<()> {
    let mut request = [CANCEL; 1 + WORD];
    request[1..].copy_from_slice(&number.to_le_bytes());
    send_all(socket, &request)
}

fn send_all(socket: BorrowedFd<'_>, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let sent = retry_on_intr(|| send(socket, bytes, QUIETLY))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// The next request; none if the program is gone.
pub(super) fn receive_request(socket: BorrowedFd<'_>) -> io::Result<Option<Request>> {
    let mut kind = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
    let mut files = RecvAncillaryBuffer::new(&mut space);
    // The files come with the first byte.
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
            Ok(received.map(|()| Request::Cancel { number: u64::from_le_bytes(number) }))
        }
        [RUN] => {
            let stdio = files.drain().flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(files) => files.collect(),
                _ => Vec::new(),
            });
            let mut stdio: Vec<OwnedFd> = stdio.collect();
            // What another hook has is not for this one, and the held file is for none.
            stdio.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::CLOEXEC))?;
            let hold = if stdio.len() == FILES_MAX { stdio.pop() } else { None };
            let stdio = stdio.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
            let Some(order) = receive_order(socket)? else { return Ok(None) };
            let order = Box::new(Order::decode(&order).ok_or(io::ErrorKind::InvalidData)?);
            Ok(Some(Request::Run { order, stdio, hold }))
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

/// Fills `bytes`; none if the other side is gone.
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

pub(super) fn send_reply(socket: impl AsFd, reply: &Reply) -> rustix::io::Result<()> {
    let words = reply.words();
    let words = [words.len() as u64].into_iter().chain(words);
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    send_all(socket.as_fd(), &bytes)
}

/// The next reply; none if the keeper is gone, or says what no keeper says.
pub(super) fn receive_reply(socket: BorrowedFd<'_>) -> Option<Reply> {
    let mut count = [0; WORD];
    let received = match receive_all(socket, &mut count) {
        // It died with something unread, which is told once and before what it had said.
        Err(Errno::CONNRESET) => receive_all(socket, &mut count),
        received => received,
    };
    received.ok()??;
    let count = usize::try_from(u64::from_le_bytes(count)).ok()?;
    let mut bytes = vec![0; count.checked_mul(WORD).filter(|_| count <= REPLY_WORDS)?];
    receive_all(socket, &mut bytes).ok()??;
    let (words, _) = bytes.as_chunks::<WORD>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    Reply::from_words(&words)
}

impl Order {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4096);
        for word in [self.number, nanos(self.timeout), nanos(self.grace)] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend((self.argv.len() as u64).to_le_bytes());
        let Limits { processes, memory_bytes, disk_bytes } = self.limits;
        // No limit is 0.
        let limits = [processes, memory_bytes, disk_bytes].map(Option::unwrap_or_default);
        for word in confinement_words(self.confinement.as_ref()).into_iter().chain(limits) {
            bytes.extend(word.to_le_bytes());
        }
        let variables = self.env.iter().flat_map(|(name, value)| [name, value]);
        let texts = [self.program.as_os_str(), self.cwd.as_os_str()].into_iter();
        let places = self.confinement.iter().flat_map(|confinement| confinement.write.iter());
        let texts = texts.chain(places.flatten().map(|place| place.as_os_str()));
        for text in texts.chain(self.argv.iter().chain(variables).map(OsString::as_os_str)) {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Option<Order> {
        let bytes = &mut bytes;
        let number = take_word(bytes)?;
        let timeout = Duration::from_nanos(take_word(bytes)?);
        let grace = Duration::from_nanos(take_word(bytes)?);
        let arguments = take_word(bytes)?;
        let (confined, places) = (take_word(bytes)?, take_word(bytes)?);
        let mut limit = || take_word(bytes).map(|word| Some(word).filter(|word| *word > 0));
        let limits = Limits { processes: limit()?, memory_bytes: limit()?, disk_bytes: limit()? };
        let program = take_text(bytes)?.into();
        let cwd = take_text(bytes)?.into();
        let write =
            (0..places).map(|_| take_text(bytes).map(PathBuf::from)).collect::<Option<_>>()?;
        let confinement = (confined & CONFINED != 0).then(|| Confinement {
            no_network: confined & NO_NETWORK != 0,
            write: (confined & WRITE_LIMITED != 0).then_some(write),
        });
        let argv = (0..arguments).map(|_| take_text(bytes)).collect::<Option<_>>()?;
        let mut env = Vec::new();
        while !bytes.is_empty() {
            env.push((take_text(bytes)?, take_text(bytes)?));
        }
        Some(Order { number, program, cwd, argv, env, timeout, grace, confinement, limits })
    }
}

/// What is told of a confinement before its places, and how many of those there are.
fn confinement_words(confinement: Option<&Confinement>) -> [u64; 2] {
    let Some(Confinement { no_network, write }) = confinement else { return [0, 0] };
    let no_network = if *no_network { NO_NETWORK } else { 0 };
    let limited = if write.is_some() { WRITE_LIMITED } else { 0 };
    [CONFINED | no_network | limited, write.as_ref().map_or(0, |places| places.len() as u64)]
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

/// Five hundred years fit.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Reply {
    fn words(&self) -> Vec<u64> {
        match self {
            Reply::Taken => vec![5, 0],
            Reply::NotStarted { errno } => vec![0, u64::from(errno.cast_unsigned())],
            Reply::NotConfined(unconfined) => {
                vec![6, UNCONFINED.iter().position(|one| one == unconfined).unwrap_or(0) as u64]
            }
            Reply::Ended(ended) => {
                let (how, detail) = match ended.how {
                    How::Exited(code) => (1, u64::from(code.cast_unsigned())),
                    How::Signalled(signal) => (2, u64::from(signal.cast_unsigned())),
                    How::TimedOut => (3, 0),
                    How::Cancelled => (4, 0),
                    How::OverLimit(Limit::Processes(count)) => (7, count),
                    How::OverLimit(Limit::Memory { bytes }) => (8, bytes),
                    How::OverLimit(Limit::Disk { bytes }) => (9, bytes),
                };
                let usage = ended.usage.map_or([0; 4], |usage| {
                    [1, nanos(usage.user), nanos(usage.system), usage.max_rss_bytes]
                });
                let mut words = vec![how, detail];
                words.extend([nanos(ended.duration), ended.leftovers_killed]);
                words.extend(usage);
                words
                    .extend(ended.survivors.iter().take(SURVIVORS_TOLD).map(|pid| u64::from(*pid)));
                words
            }
        }
    }

    fn from_words(words: &[u64]) -> Option<Reply> {
        let (&[kind, detail], rest) = words.split_first_chunk()?;
        let number = || u32::try_from(detail).map(u32::cast_signed).ok();
        let how = match kind {
            0 => return Some(Reply::NotStarted { errno: number()? }),
            1 => How::Exited(number()?),
            2 => How::Signalled(number()?),
            3 => How::TimedOut,
            4 => How::Cancelled,
            5 => return Some(Reply::Taken),
            6 => {
                return UNCONFINED
                    .get(usize::try_from(detail).ok()?)
                    .copied()
                    .map(Reply::NotConfined);
            }
            7 => How::OverLimit(Limit::Processes(detail)),
            8 => How::OverLimit(Limit::Memory { bytes: detail }),
            9 => How::OverLimit(Limit::Disk { bytes: detail }),
            _ => return None,
        };
        let (&[duration, leftovers_killed, known, user, system, max_rss_bytes], survivors) =
            rest.split_first_chunk()?;
        let usage = Usage {
            user: Duration::from_nanos(user),
            system: Duration::from_nanos(system),
            max_rss_bytes,
        };
        Some(Reply::Ended(Ended {
            how,
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

    #[test]
    fn orders_arrive_as_they_were_given() {
        let order = Order {
            number: u64::MAX,
            program: "/bin/sh".into(),
            cwd: "/".into(),
            argv: vec!["sh".into(), OsString::from_vec(vec![0xff, b'\n']), "".into()],
            env: vec![("A".into(), "".into()), ("B".into(), OsString::from_vec(vec![0xfe]))],
            timeout: Duration::from_millis(1_500),
            grace: Duration::ZERO,
            confinement: Some(Confinement { no_network: true, write: Some(vec!["/a".into()]) }),
            limits: Limits { processes: Some(7), memory_bytes: None, disk_bytes: Some(1 << 40) },
        };
        let bytes = order.encode();
        assert_eq!(Order::decode(&bytes), Some(order));
        for end in 0..bytes.len() {
            // Cut short it is nothing, or fewer variables.
            assert!(Order::decode(&bytes[..end]).is_none_or(|order| order.env.len() < 2));
        }
    }

    #[test]
    fn replies_arrive_as_they_were_given() {
        let usage = Usage {
            user: Duration::from_micros(7),
            system: Duration::from_secs(9),
            max_rss_bytes: 1 << 40,
        };
        let ended = |how, usage, survivors| {
            let duration = Duration::from_nanos(123);
            Reply::Ended(Ended { how, duration, usage, leftovers_killed: 3, survivors })
        };
        for reply in [
            Reply::Taken,
            Reply::NotStarted { errno: 2 },
            Reply::NotConfined(Unconfined::Place),
            Reply::NotConfined(Unconfined::Silent),
            ended(How::Exited(255), Some(usage), vec![]),
            ended(How::Signalled(9), None, vec![1, 2, 3]),
            ended(How::TimedOut, None, vec![]),
            ended(How::OverLimit(Limit::Memory { bytes: 1 << 40 }), None, vec![]),
            ended(How::OverLimit(Limit::Processes(9)), Some(usage), vec![]),
            ended(How::Cancelled, Some(usage), vec![8]),
        ] {
            assert_eq!(Reply::from_words(&reply.words()), Some(reply));
        }
    }

    #[test]
    fn the_last_words_of_a_keeper_that_left_something_unread_are_heard() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        send_reply(&theirs, &Reply::Taken).unwrap();
        send_cancel(ours.as_fd(), 1).unwrap();
        drop(theirs);
        assert_eq!(receive_reply(ours.as_fd()), Some(Reply::Taken));
        assert_eq!(receive_reply(ours.as_fd()), None);
    }
}
