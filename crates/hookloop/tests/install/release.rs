//! A release of the program under test, created like a real one, and served on loopback.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The directory of the npm packages in the release.
pub(crate) const PACKAGES: &str = "npm";

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the target name of this machine.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

pub(crate) fn archive_name() -> String {
    format!("hookloop-{}.tar.gz", target())
}

/// Runs a script of the repository, which has to succeed; returns its output.
pub(crate) fn script(name: &str, args: &[&str]) -> String {
    let output = Command::new(repository().join(name)).args(args).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the time of the latest change in a directory.
fn newest(path: &Path) -> SystemTime {
    let own = path.metadata().unwrap().modified().unwrap();
    let Ok(entries) = fs::read_dir(path) else { return own };
    entries.map(|entry| newest(&entry.unwrap().path())).fold(own, SystemTime::max)
}

/// Returns the directory with the archive, its checksums, and the npm packages in a subdirectory.
/// It is created once for each state of the program and of the packed files.
pub(crate) fn made() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_hookloop"));
    let parts =
        ["packaging", "npm", "README.md", "CHANGELOG.md"].map(|part| repository().join(part));
    let newest = parts.iter().map(|part| newest(part)).chain([newest(program)]).max().unwrap();
    let newest = newest.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("release");
    fs::create_dir_all(&home).unwrap();
    let lock = File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    let made = home.join(newest.as_nanos().to_string());
    if made.exists() {
        return made;
    }
    for old in fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()) {
        if old.is_dir() {
            fs::remove_dir_all(old).unwrap();
        }
    }
    let stage = tempfile::tempdir_in(&home).unwrap();
    // Debug information is most of the program's size.
    let stripped = stage.path().join("hookloop");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(program).status().unwrap();
    assert!(strip.success());
    let to = stage.path().join("release");
    script("packaging/archive", &[stripped.to_str().unwrap(), &target(), to.to_str().unwrap()]);
    script("packaging/checksums", &[to.to_str().unwrap()]);
    let packages = to.join(PACKAGES);
    script("npm/pack.mjs", &[to.to_str().unwrap(), packages.to_str().unwrap(), "--some"]);
    fs::rename(to, &made).unwrap();
    made
}

/// A server for the files of a directory, for as long as the test runs.
pub(crate) struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn start(root: &Path) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, root) = (asked.clone(), root.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client may close the connection early.
                let _ = answer(stream, &root, &noted);
            }
        });
        Server { address, asked }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the requested paths.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(stream: TcpStream, root: &Path, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or("/").trim_start_matches('/');
    let path = path.replace("%2f", "/").replace("%2F", "/");
    asked.lock().unwrap().push(path.clone());
    let (status, body) = match fs::read(root.join(&path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let mut stream = reader.into_inner();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&body)
}

/// Creates the directories of a release server: the latest release, and each release by its tag.
pub(crate) fn lay_out(files: &Path, root: &Path) {
    for place in ["latest/download", &format!("download/v{VERSION}")] {
        let place = root.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(files, place).unwrap();
    }
}
