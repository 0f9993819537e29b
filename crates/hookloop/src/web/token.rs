//! Tokens, each in a file that only the user can read: one for agents, one for the login of people.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hookloop_process::{WriteOptions, write_whole};
use rustix::fs::OFlags;
use subtle::ConstantTimeEq;

use crate::error::{CliError, CliResult};

/// The file of the token for agents.
pub(crate) const AGENTS: &str = "serve.token";
/// The file of the token for people, which agents do not get.
pub(crate) const PEOPLE: &str = "dashboard.token";
const BYTES: usize = 32;
/// Bytes that are read of a file: a token, the end of its line, and one more to detect a longer file.
const READ_MAX: u64 = BYTES as u64 * 2 + 2;

pub(crate) struct AccessToken(String);

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl AccessToken {
    /// The token in a file of that name in a directory of state, which is made there the first time.
    pub(crate) fn of(state: &Path, file_name: &str) -> CliResult<(AccessToken, PathBuf)> {
        let path = state.join(file_name);
        let token = match path.symlink_metadata() {
            Ok(_) => read(&path)?,
            Err(_) => match make(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => read(&path)?,
                made => made.map_err(|error| failed(&path, &error))?,
            },
        };
        Ok((token, path))
    }

    /// Compares in constant time.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }

    #[cfg(test)]
    pub(super) fn new(text: &str) -> AccessToken {
        AccessToken(text.to_owned())
    }
}

fn make(path: &Path) -> std::io::Result<AccessToken> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    // Another server may read the file at once, and may have written one first.
    let options = WriteOptions { replaces: false, ..WriteOptions::DURABLE };
    write_whole(path, format!("{token}\n").as_bytes(), options)?;
    Ok(AccessToken(token))
}

fn read(path: &Path) -> CliResult<AccessToken> {
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|error| failed(path, &error))?;
    check(&file, path)?;
    let mut text = String::new();
    file.take(READ_MAX).read_to_string(&mut text).map_err(|error| failed(path, &error))?;
    let token = text.strip_suffix('\n').unwrap_or(&text);
    if token.len() == BYTES * 2 && token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(AccessToken(token.to_owned()))
    } else {
        Err(CliError::system(format!("{} contains no token", path.display()))
            .hint(format!("rm {}", path.display())))
    }
}

/// Fails if other users may read or write the file.
fn check(file: &File, path: &Path) -> CliResult {
    let found = file.metadata().map_err(|error| failed(path, &error))?;
    let shown = path.display();
    if found.uid() != rustix::process::geteuid().as_raw() || !found.is_file() {
        let message = format!("{shown} is not a file of yours");
        return Err(CliError::system(message).hint(format!("rm {shown}")));
    }
    if found.mode() & 0o077 != 0 {
        let message = format!("{shown} is open to other users, who may know the token now");
        return Err(CliError::system(message).hint(format!("rm {shown}")));
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> CliError {
    CliError::system(format!("{}: {error}", path.display()))
}
