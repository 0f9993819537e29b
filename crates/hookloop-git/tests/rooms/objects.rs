//! Objects that are missing or damaged.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hookloop_git::repo::RepoError;
use hookloop_git::snapshot::Snapshot;

use crate::fixture::{RoomFixture, set_mode, write};

fn object_path(f: &RoomFixture, name: &str) -> PathBuf {
    f.top.join(".git/objects").join(&name[..2]).join(&name[2..])
}

#[test]
fn a_missing_object_is_named() {
    let f = RoomFixture::new();
    let (mut room, first) = f.entered();
    write(&room.files().join("ignored"), "warm");
    room.note_run(false).unwrap();
    f.write("lib/code.rs", "second\n");
    f.commit();
    let second = f.snapshots_of("next").take().unwrap();
    let blob = f.git(&["rev-parse", "HEAD:lib/code.rs"]);
    fs::rename(object_path(&f, &blob), f.path.join("object")).unwrap();
    let error = f.try_enter(&mut room, &second).unwrap_err().to_string();
    assert!(error.contains(&blob) && error.contains("neither"), "{error}");
    fs::rename(f.path.join("object"), object_path(&f, &blob)).unwrap();
    f.enter(&mut room, &second);
    f.assert_fresh(&room, &second);
    // A tree of which there is no snapshot.
    f.write("file", "third\n");
    f.commit();
    let third = Snapshot { tree: f.git(&["rev-parse", "HEAD^{tree}"]), ..second };
    fs::rename(object_path(&f, &third.tree), f.path.join("object")).unwrap();
    let error = f.try_enter(&mut room, &third).unwrap_err().to_string();
    assert!(error.contains(&third.tree), "{error}");
    fs::rename(f.path.join("object"), object_path(&f, &third.tree)).unwrap();
    f.enter(&mut room, &third);
    f.assert_fresh(&room, &third);
    f.enter(&mut room, &first);
}

/// Replaces an object by another content under the same name, as an agent could.
fn forge(f: &RoomFixture, name: &str, kind: &str, content: &[u8]) {
    let script = "import sys, zlib\n\
                  data = sys.stdin.buffer.read()\n\
                  head = f'{sys.argv[2]} {len(data)}'.encode() + b'\\0'\n\
                  open(sys.argv[1], 'wb').write(zlib.compress(head + data))\n";
    let path = object_path(f, name);
    set_mode(&path, 0o644);
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(&path).arg(kind).stdin(Stdio::piped());
    let mut running = python.spawn().unwrap();
    running.stdin.take().unwrap().write_all(content).unwrap();
    assert!(running.wait().unwrap().success());
}

#[test]
fn a_forged_file_is_found() {
    let f = RoomFixture::new();
    f.write("test", "assert False\n");
    f.commit();
    let snapshot = f.take();
    let blob = f.git(&["rev-parse", "HEAD:test"]);
    forge(&f, &blob, "blob", b"assert True \n");
    let mut room = f.room();
    let error = f.try_enter(&mut room, &snapshot).unwrap_err();
    assert!(matches!(error, RepoError::NeedsHuman { .. }), "{error}");
    assert!(error.to_string().contains("test"), "{error}");
    forge(&f, &blob, "blob", b"assert False\n");
    f.enter(&mut room, &snapshot);
    f.assert_fresh(&room, &snapshot);
}

#[test]
fn a_forged_link_is_found() {
    let f = RoomFixture::new();
    std::os::unix::fs::symlink("real", f.top.join("link")).unwrap();
    f.commit();
    let snapshot = f.take();
    forge(&f, &f.git(&["rev-parse", "HEAD:link"]), "blob", b"fake");
    let error = f.try_enter(&mut f.room(), &snapshot).unwrap_err();
    assert!(matches!(error, RepoError::NeedsHuman { .. }), "{error}");
}

#[test]
fn a_forged_directory_is_found() {
    let f = RoomFixture::new();
    let snapshot = f.take();
    f.write("tests/a", "assert False\n");
    f.write("other", "assert True\n");
    f.commit();
    let name = |path: &str| f.git(&["rev-parse", &format!("HEAD:{path}")]);
    let blob = name("other");
    let bytes = (0..blob.len()).step_by(2).map(|at| u8::from_str_radix(&blob[at..at + 2], 16));
    let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().unwrap();
    forge(&f, &name("tests"), "tree", &[b"100644 a\0".as_slice(), &bytes].concat());
    // The store has the trees of snapshots, but not that of this commit.
    let snapshot = Snapshot { tree: f.git(&["rev-parse", "HEAD^{tree}"]), ..snapshot };
    let error = f.try_enter(&mut f.room(), &snapshot).unwrap_err();
    assert!(matches!(error, RepoError::NeedsHuman { .. }), "{error}");
}
