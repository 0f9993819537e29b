//! Where the server's own binary is. A version manager's shim on the PATH is a script: it starts slowly,
//! so what it stands for is looked up instead.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const NAME: &str = "nats-server";

/// `NATS_SERVER`, or the first binary on the PATH.
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

/// The program in a directory of the PATH, and what a directory of shims stands for.
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
