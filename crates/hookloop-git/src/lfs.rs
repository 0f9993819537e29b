//! Large files: git stores a pointer in place of the content.
//!
//! hookloop makes the pointers itself. The content goes into the store of snapshots, by a link if the user's
//! repository has it already. In a room, hookloop also replaces pointers by content. An agent can write to the user's
//! repository, so content counts only if its digest is that of the pointer.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hookloop_core::digest::hex;
use sha2::{Digest, Sha256};

/// The first argument of a program that git runs to make a pointer. Then follow the directory of stored content and,
/// if there is one, that of the user's repository.
pub const LFS_CLEAN_ARGUMENT: &str = "--hookloop-lfs-clean";
/// In place of the directories: the program prints a pointer and stores nothing.
const ONLY_POINTER: &str = "only-pointer";
/// Before the directories: the program reads a pointer and prints its content, or the pointer if there is none.
const CONTENT: &str = "content";
/// The longest text that can be a pointer.
pub(crate) const POINTER_MAX: u64 = 1024;
/// The number of bytes that are read at once.
const PIECE: usize = 256 * 1024;
/// The first line of a pointer.
const VERSION: &str = "version https://git-lfs.github.com/spec/v1\n";

/// A pointer to the content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LfsPointer {
    /// The SHA-256 digest of the content, in hexadecimal digits.
    pub oid: String,
    pub size: u64,
}

impl LfsPointer {
    /// Returns the pointer that a text is; `None` for any other text.
    pub(crate) fn read(text: &[u8]) -> Option<LfsPointer> {
        let text =
            std::str::from_utf8(text).ok().filter(|text| text.len() as u64 <= POINTER_MAX)?;
        text.strip_prefix("version https://")?;
        let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let oid = value("oid sha256:")?;
        let is_digest = oid.len() == 64 && oid.bytes().all(|byte| byte.is_ascii_hexdigit());
        let size = value("size ")?.parse().ok()?;
        is_digest.then(|| LfsPointer { oid: oid.to_owned(), size })
    }

    fn text(&self) -> String {
        format!("{VERSION}oid sha256:{}\nsize {}\n", self.oid, self.size)
    }
}

/// Returns the file with the content of a pointer.
pub(crate) fn content_path(store: &Path, oid: &str) -> PathBuf {
    let part = |from: usize, to: usize| oid.get(from..to).unwrap_or_default();
    store.join(part(0, 2)).join(part(2, 4)).join(oid)
}

/// Returns the part of a configuration with which git writes the content of large files into a checkout.
pub(crate) fn checkout_filter(program: &Path, directories: &[PathBuf]) -> String {
    let word = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    let own = format!("{} {LFS_CLEAN_ARGUMENT}", word(program));
    let words: Vec<String> = directories.iter().map(|directory| word(directory)).collect();
    let line = |name: &str, command: String| {
        let command = command.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\t{name} = \"{command}\"\n")
    };
    let clean = line("clean", format!("{own} {ONLY_POINTER}"));
    let smudge = line("smudge", format!("{own} {CONTENT} {}", words.join(" ")));
    format!("[filter \"lfs\"]\n{clean}{smudge}\trequired = true\n")
}

/// Returns the file with the whole content of a pointer, if one of the directories has it.
pub(crate) fn find_content(
    directories: impl IntoIterator<Item = impl AsRef<Path>>,
    pointer: &LfsPointer,
) -> Option<PathBuf> {
    let paths =
        directories.into_iter().map(|directory| content_path(directory.as_ref(), &pointer.oid));
    let is_whole = |path: &PathBuf| {
        let is_same = |found: fs::Metadata| found.is_file() && found.len() == pointer.size;
        path.symlink_metadata().is_ok_and(is_same)
            && File::open(path)
                .and_then(|file| hashed(Vec::new(), file, &mut io::sink()))
                .is_ok_and(|found| found.oid.eq_ignore_ascii_case(&pointer.oid))
    };
    paths.into_iter().find(is_whole)
}

/// The program that git runs for large files. It reads content and prints a pointer, or the other way round.
pub fn lfs_clean_main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(2);
    let Some(first) = arguments.next() else { return ExitCode::FAILURE };
    let (input, output) = (io::stdin().lock(), &mut io::stdout().lock());
    let done = if first == ONLY_POINTER {
        print_pointer(input, output)
    } else if first == CONTENT {
        print_content(arguments, input, output)
    } else {
        clean(Path::new(&first), arguments.next(), input, output)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Git adds this to its own error.
            let _ = writeln!(io::stderr(), "hookloop: a large file is not stored: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the start of an input, which is all of it if it is a pointer.
fn start(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    input.take(POINTER_MAX + 1).read_to_end(&mut first)?;
    Ok(first)
}

fn print_pointer(mut content: impl Read, out: &mut impl Write) -> io::Result<()> {
    let first = start(&mut content)?;
    if first.is_empty() || LfsPointer::read(&first).is_some() {
        return out.write_all(&first);
    }
    let pointer = hashed(first, content, &mut io::sink())?;
    out.write_all(pointer.text().as_bytes())
}

fn print_content(
    directories: impl Iterator<Item = OsString>,
    mut text: impl Read,
    out: &mut impl Write,
) -> io::Result<()> {
    let first = start(&mut text)?;
    let Some(pointer) = LfsPointer::read(&first) else {
        out.write_all(&first)?;
        return io::copy(&mut text, out).map(drop);
    };
    let Some(path) = find_content(directories.map(PathBuf::from), &pointer) else {
        return out.write_all(&first);
    };
    // Another process may have written to the file since its digest was computed.
    let printed = hashed(Vec::new(), File::open(&path)?, out)?;
    if printed.oid.eq_ignore_ascii_case(&pointer.oid) {
        Ok(())
    } else {
        Err(io::Error::other(format!("{} was changed meanwhile", path.display())))
    }
}

fn clean(
    store: &Path,
    users: Option<OsString>,
    mut content: impl Read,
    out: &mut impl Write,
) -> io::Result<()> {
    let first = start(&mut content)?;
    if first.is_empty() || LfsPointer::read(&first).is_some() {
        return out.write_all(&first);
    }
    fs::create_dir_all(store)?;
    let draft = store.join(format!("{}.new", uuid::Uuid::new_v4().simple()));
    let stored = store_content(&draft, first, content)
        .and_then(|pointer| place(&draft, store, users, &pointer).map(|()| pointer));
    match stored {
        Ok(pointer) => out.write_all(pointer.text().as_bytes()),
        Err(error) => {
            // The draft is of no use, and a failure to remove it adds nothing to the error.
            let _ = fs::remove_file(&draft);
            Err(error)
        }
    }
}

fn store_content(draft: &Path, first: Vec<u8>, content: impl Read) -> io::Result<LfsPointer> {
    let mut file = File::options().write(true).create_new(true).open(draft)?;
    hashed(first, content, &mut file)
}

/// Copies content, which begins with `first`, and returns its pointer.
fn hashed(first: Vec<u8>, content: impl Read, out: &mut impl Write) -> io::Result<LfsPointer> {
    let mut content = first.as_slice().chain(content);
    let mut hash = Sha256::new();
    let mut size = 0;
    let mut piece = vec![0; PIECE];
    while let read @ 1.. = content.read(&mut piece)? {
        hash.update(&piece[..read]);
        out.write_all(&piece[..read])?;
        size += read as u64;
    }
    Ok(LfsPointer { oid: hex(&hash.finalize()), size })
}

/// Moves content to its place. If the user's repository has it, a link takes no further space.
fn place(
    draft: &Path,
    store: &Path,
    users: Option<OsString>,
    pointer: &LfsPointer,
) -> io::Result<()> {
    let path = content_path(store, &pointer.oid);
    if path.exists() {
        return fs::remove_file(draft);
    }
    fs::create_dir_all(path.parent().unwrap_or(store))?;
    let users = users.map(|users| content_path(Path::new(&users), &pointer.oid));
    let is_same =
        |users: &PathBuf| fs::metadata(users).is_ok_and(|found| found.len() == pointer.size);
    match users.filter(is_same) {
        Some(users) if fs::hard_link(&users, &path).is_ok() => fs::remove_file(draft),
        _ => fs::rename(draft, &path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(store: &Path, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        clean(store, None, content, &mut out).unwrap();
        out
    }

    #[test]
    fn content_is_stored_and_its_pointer_stays_a_pointer() {
        let store = tempfile::tempdir().unwrap();
        let content = vec![7; 3_000_000];
        let text = cleaned(store.path(), &content);
        let pointer = LfsPointer::read(&text).unwrap();
        assert_eq!(pointer.size, 3_000_000);
        assert_eq!(fs::read(content_path(store.path(), &pointer.oid)).unwrap(), content);
        assert_eq!(cleaned(store.path(), &text), text);
        assert_eq!(cleaned(store.path(), b""), b"");
        assert_eq!(LfsPointer::read(b"version https://x\nsize 3\n"), None);
        let small = cleaned(store.path(), b"small");
        assert_eq!(LfsPointer::read(&small).unwrap().size, 5);
        let left = fs::read_dir(store.path()).unwrap().flatten();
        let drafts = left.filter(|entry| entry.path().extension().is_some());
        assert_eq!(drafts.count(), 0);
    }
}
