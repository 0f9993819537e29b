//! Finds the binary of the server. A version manager's shim on the PATH is a script that starts
//! slowly, so the binary behind it is used instead.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const NAME: &str = "nats-server";

/// Returns `NATS_SERVER`, or the first binary on the PATH.
pub fn nats_server() -> PathBuf {
    if let Some(path) = std::env::var_os("NATS_SERVER") {
        return path.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .flat_map(|dir| candidates(&dir))
        .find(|file| is_binary(file))
        .expect("no nats-server on the PATH; NATS_SERVER=/path/to/nats-server names one")
}

/// Returns the program in a directory of the PATH, and the binaries behind a directory of shims.
fn candidates(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.join(NAME)];
    if dir.ends_with("shims") && found[0].exists() {
        let versions = dir.with_file_name("versions").read_dir().into_iter().flatten();
        found.extend(versions.flatten().map(|version| version.path().join("bin").join(NAME)));
    }
    found
}

fn is_binary(file: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(file).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == *b"\x7fELF"
}
