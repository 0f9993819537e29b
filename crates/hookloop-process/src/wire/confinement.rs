//! A confinement in an order, and in a reply the reason why it failed.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{WORD, put_text, put_word, take_text, take_word};
use crate::sandbox::{Confinement, ConfinementError, MOUNTS_MAX, PrivateMount};

/// The longest path that the kernel takes, in bytes.
pub(super) const PATH_MAX: usize = 4096;

const CONFINED: u64 = 1;
const NO_NETWORK: u64 = 2;
const WRITE_LIMITED: u64 = 4;
const LOCAL_SOCKETS: u64 = 8;
const ALL_FLAGS: u64 = CONFINED | NO_NETWORK | WRITE_LIMITED | LOCAL_SOCKETS;

const BIND: u64 = 0;
const BIND_READ_ONLY: u64 = 1;
const OVERLAY: u64 = 2;
const HIDE: u64 = 3;

/// Appends a confinement: its flags, the places that it may write to, its mounts, its hidden directories, and the
/// places that it may read there.
pub(super) fn put(bytes: &mut Vec<u8>, confinement: Option<&Confinement>) {
    let Some(Confinement { no_network, write, mounts, local_sockets, hide, read }) = confinement
    else {
        return put_word(bytes, 0);
    };
    let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
    let flags = CONFINED
        | flag(*no_network, NO_NETWORK)
        | flag(write.is_some(), WRITE_LIMITED)
        | flag(*local_sockets, LOCAL_SOCKETS);
    put_word(bytes, flags);
    put_paths(bytes, write.as_deref().unwrap_or_default());
    put_word(bytes, mounts.len() as u64);
    mounts.iter().for_each(|mount| put_mount(bytes, mount));
    put_paths(bytes, hide);
    put_paths(bytes, read);
}

fn put_paths(bytes: &mut Vec<u8>, paths: &[PathBuf]) {
    put_word(bytes, paths.len() as u64);
    paths.iter().for_each(|path| put_text(bytes, path.as_os_str()));
}

fn put_mount(bytes: &mut Vec<u8>, mount: &PrivateMount) {
    let (kind, paths): (u64, &[&Path]) = match mount {
        PrivateMount::Bind { source, target, read_only } => {
            (if *read_only { BIND_READ_ONLY } else { BIND }, &[source, target])
        }
        PrivateMount::Overlay { target, changes, work } => (OVERLAY, &[target, changes, work]),
        PrivateMount::Hide { target } => (HIDE, &[target]),
    };
    put_word(bytes, kind);
    paths.iter().for_each(|path| put_text(bytes, path.as_os_str()));
}

/// Takes a confinement from the front. Returns `None` if the bytes are malformed.
pub(super) fn take(bytes: &mut &[u8]) -> Option<Option<Confinement>> {
    let flags = take_word(bytes).filter(|flags| flags & !ALL_FLAGS == 0)?;
    if flags & CONFINED == 0 {
        return (flags == 0).then_some(None);
    }
    let write = take_paths(bytes)?;
    let mounts = take_word(bytes).filter(|count| *count <= MOUNTS_MAX as u64)?;
    let mounts = (0..mounts).map(|_| take_mount(bytes)).collect::<Option<_>>()?;
    Some(Some(Confinement {
        no_network: flags & NO_NETWORK != 0,
        write: (flags & WRITE_LIMITED != 0).then_some(write),
        mounts,
        local_sockets: flags & LOCAL_SOCKETS != 0,
        hide: take_paths(bytes)?,
        read: take_paths(bytes)?,
    }))
}

fn take_mount(bytes: &mut &[u8]) -> Option<PrivateMount> {
    let kind = take_word(bytes)?;
    let mut path = || take_path(bytes);
    Some(match kind {
        BIND | BIND_READ_ONLY => PrivateMount::Bind {
            source: path()?,
            target: path()?,
            read_only: kind == BIND_READ_ONLY,
        },
        OVERLAY => PrivateMount::Overlay { target: path()?, changes: path()?, work: path()? },
        HIDE => PrivateMount::Hide { target: path()? },
        _ => return None,
    })
}

fn take_paths(bytes: &mut &[u8]) -> Option<Vec<PathBuf>> {
    let count = take_word(bytes)?;
    (0..count).map(|_| take_path(bytes)).collect()
}

fn take_path(bytes: &mut &[u8]) -> Option<PathBuf> {
    take_text(bytes).map(PathBuf::from)
}

/// Encodes the reason why a confinement failed. A path that is longer than the kernel takes is cut.
pub(super) fn error_words(error: &ConfinementError) -> Vec<u64> {
    let word = |errno: &i32| u64::from(errno.cast_unsigned());
    match error {
        ConfinementError::Landlock => vec![0],
        ConfinementError::Place => vec![1],
        ConfinementError::Capabilities => vec![2],
        ConfinementError::Filter => vec![3],
        ConfinementError::Silent => vec![4],
        ConfinementError::TooManyMounts => vec![5],
        ConfinementError::Namespace { errno } => vec![6, word(errno)],
        ConfinementError::Mount { path, errno } => path_words(7, word(errno), path),
        ConfinementError::Hidden { path, errno } => path_words(8, word(errno), path),
        ConfinementError::TooManySiblings { path } => path_words(9, 0, path),
    }
}

fn path_words(kind: u64, number: u64, path: &Path) -> Vec<u64> {
    let text = path.as_os_str().as_bytes();
    let text = &text[..text.len().min(PATH_MAX)];
    let mut words = vec![kind, number, text.len() as u64];
    words.extend(text.chunks(WORD).map(|part| {
        let mut word = [0; WORD];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    }));
    words
}

/// Decodes the reason why a confinement failed. Returns `None` if the words are malformed.
pub(super) fn error_of(words: &[u64]) -> Option<ConfinementError> {
    let errno = |word: &u64| u32::try_from(*word).map(u32::cast_signed).ok();
    Some(match words {
        [0] => ConfinementError::Landlock,
        [1] => ConfinementError::Place,
        [2] => ConfinementError::Capabilities,
        [3] => ConfinementError::Filter,
        [4] => ConfinementError::Silent,
        [5] => ConfinementError::TooManyMounts,
        [6, number] => ConfinementError::Namespace { errno: errno(number)? },
        [kind @ 7..=9, number, length, text @ ..] => {
            let mut path: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
            let length = usize::try_from(*length).ok().filter(|length| *length <= path.len())?;
            path.truncate(length);
            let path = OsString::from_vec(path).into();
            match kind {
                7 => ConfinementError::Mount { path, errno: errno(number)? },
                8 => ConfinementError::Hidden { path, errno: errno(number)? },
                _ => ConfinementError::TooManySiblings { path },
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Confinement {
        let odd: PathBuf = OsString::from_vec(b"/\xff\n:,\\ \"".to_vec()).into();
        Confinement {
            no_network: true,
            write: Some(vec!["/a".into(), odd.clone()]),
            mounts: vec![
                PrivateMount::Bind { source: "/s".into(), target: odd.clone(), read_only: false },
                PrivateMount::Bind { source: odd.clone(), target: "/t".into(), read_only: true },
                PrivateMount::Overlay {
                    target: "/o".into(),
                    changes: odd.clone(),
                    work: "/w".into(),
                },
                PrivateMount::Hide { target: "/h".into() },
            ],
            local_sockets: true,
            hide: vec!["/x".into(), odd.clone()],
            read: vec![odd],
        }
    }

    fn encoded(confinement: Option<&Confinement>) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, confinement);
        bytes
    }

    #[test]
    fn a_confinement_is_decoded_as_it_was_encoded() {
        let no_mounts = Confinement { mounts: Vec::new(), ..full() };
        let only_sockets = Confinement { local_sockets: true, ..Confinement::default() };
        let only_network = Confinement { no_network: true, ..Confinement::default() };
        let nowhere = Confinement { write: Some(Vec::new()), ..Confinement::default() };
        let only_hidden = Confinement { hide: vec!["/x".into()], ..Confinement::default() };
        let all = [
            full(),
            no_mounts,
            only_hidden,
            only_sockets,
            only_network,
            nowhere,
            Confinement::default(),
        ];
        for confinement in all.map(Some).into_iter().chain([None]) {
            let mut bytes = encoded(confinement.as_ref());
            bytes.push(7);
            let mut rest = bytes.as_slice();
            assert_eq!(take(&mut rest), Some(confinement));
            assert_eq!(rest, [7]);
        }
    }

    #[test]
    fn a_malformed_confinement_is_refused() {
        let bytes = encoded(Some(&full()));
        for end in 0..bytes.len() {
            assert_eq!(take(&mut &bytes[..end]), None, "{end}");
        }
        let check = |words: &[u64]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(take(&mut bytes.as_slice()), None, "{words:?}");
        };
        check(&[NO_NETWORK]);
        check(&[CONFINED | (ALL_FLAGS + 1), 0, 0]);
        check(&[CONFINED, u64::MAX, 0]);
        check(&[CONFINED, 0, u64::MAX]);
        check(&[CONFINED, 0, 1, HIDE + 1, 0, 0, 0]);
        check(&[CONFINED, 0, 1, HIDE, u64::MAX]);
        check(&[CONFINED, 0, 0, u64::MAX, 0]);
        check(&[CONFINED, 0, 0, 0, u64::MAX]);
    }

    #[test]
    fn a_confinement_with_too_many_mounts_is_refused() {
        let with = |count| {
            let mounts = vec![PrivateMount::Hide { target: "/h".into() }; count];
            encoded(Some(&Confinement { mounts, ..Confinement::default() }))
        };
        assert!(take(&mut with(MOUNTS_MAX).as_slice()).is_some());
        assert_eq!(take(&mut with(MOUNTS_MAX + 1).as_slice()), None);
    }

    #[test]
    fn the_reason_of_a_failed_confinement_is_decoded_as_it_was_encoded() {
        let mount = |length: usize| ConfinementError::Mount {
            path: OsString::from_vec(vec![0xff; length]).into(),
            errno: 2,
        };
        for error in [
            ConfinementError::Landlock,
            ConfinementError::Place,
            ConfinementError::Capabilities,
            ConfinementError::Filter,
            ConfinementError::Silent,
            ConfinementError::TooManyMounts,
            ConfinementError::Namespace { errno: -1 },
            mount(0),
            mount(WORD - 1),
            mount(WORD),
            mount(PATH_MAX),
            ConfinementError::Hidden { path: "/a".into(), errno: 2 },
            ConfinementError::TooManySiblings { path: "/tmp".into() },
        ] {
            assert_eq!(error_of(&error_words(&error)), Some(error));
        }
        assert_eq!(error_of(&error_words(&mount(PATH_MAX + 1))), Some(mount(PATH_MAX)));
    }

    #[test]
    fn a_malformed_reason_of_a_failed_confinement_is_refused() {
        for words in [
            &[][..],
            &[10],
            &[0, 0],
            &[6],
            &[6, u64::MAX],
            &[7, 2],
            &[7, 2, 9, 0],
            &[8, 2],
            &[10, 2, 0],
        ] {
            assert_eq!(error_of(words), None, "{words:?}");
        }
    }
}
