//! A release of the program under test, made as a real one is, and served on loopback.

#![allow(dead_code, reason = "each test binary uses its part of this")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Where the packages for npm are in it.
pub(crate) const PACKAGES: &str = "npm";

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The name that this machine has among targets.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

pub(crate) fn archive_name() -> String {
    format!("hookloop-{}.tar.gz", target())
}

/// Runs a script of the repository, which has to work; answers what it printed.
pub(crate) fn script(name: &str, args: &[&str]) -> String {
    let output = Command::new(repository().join(name)).args(args).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// When the last of what is below was changed.
fn newest(path: &Path) -> SystemTime {
    let own = path.metadata().unwrap().modified().unwrap();
    let Ok(entries) = fs::read_dir(path) else { return own };
    entries.map(|entry| newest(&entry.unwrap().path())).fold(own, SystemTime::max)
}

/// The directory with the archive, its checksums, and the packages for npm in one below. It is made once for each
/// state of the program and of what is packed with it.
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
    // What a debugger would want is most of it.
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

/// Files of a directory by HTTP, for as long as the test runs.
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
                // Who hangs up early is not the server's trouble.
                let _ = answer(stream, &root, &noted);
            }
        });
        Server { address, asked }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The paths that were asked for.
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

/// Lays out a directory as a host of releases does: the latest, and each by its tag.
pub(crate) fn lay_out(files: &Path, root: &Path) {
    for place in ["latest/download", &format!("download/v{VERSION}")] {
        let place = root.join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(files, place).unwrap();
    }
}
