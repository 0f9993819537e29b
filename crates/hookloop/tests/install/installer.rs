//! `install.sh`, piped into a shell.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::cli::ProgramOutput;
use crate::install::release::{Server, VERSION, archive_name, lay_out, made, repository, script};

/// A user with an empty home, and a server with the release.
struct Stage {
    directory: TempDir,
    server: Server,
}

impl Stage {
    fn new() -> Stage {
        Stage::with(|_| {})
    }

    /// Returns a stage whose release files were changed.
    fn with(change: impl FnOnce(&Path)) -> Stage {
        let directory = tempfile::tempdir().unwrap();
        let [home, files, host] = ["home", "files", "host"].map(|name| directory.path().join(name));
        fs::create_dir(home).unwrap();
        fs::create_dir(&files).unwrap();
        for name in [archive_name(), "SHA256SUMS".to_owned()] {
            fs::copy(made().join(&name), files.join(&name)).unwrap();
        }
        change(&files);
        lay_out(&files, &host);
        Stage { server: Server::start(&host), directory }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn program(&self) -> PathBuf {
        self.home().join(".local/bin/hookloop")
    }

    fn shell(&self) -> Command {
        let mut shell = Command::new("/bin/sh");
        shell
            .env_clear()
            .current_dir(self.directory.path())
            .env("HOME", self.home())
            .env("SHELL", "/bin/bash")
            .env("PATH", "/usr/bin:/bin")
            .env("HOOKLOOP_DOWNLOADS", self.server.address())
            .stdin(Stdio::null());
        shell
    }

    fn install(&self, args: &[&str]) -> ProgramOutput {
        self.shell().arg(repository().join("install.sh")).args(args).output().unwrap().into()
    }

    fn is_untouched(&self) -> bool {
        !self.program().exists() && !self.home().join(".local/share").exists()
    }
}

fn version_at(program: &Path) -> String {
    let output = Command::new(program).arg("-V").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn refused(run: &ProgramOutput, because: &str) {
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.starts_with("error: ") || run.stderr.contains("\nerror: "), "{run:?}");
    assert!(run.stderr.contains(because), "{run:?}");
}

#[test]
fn the_installer_installs_all_files_and_prints_the_missing_path_step() {
    let stage = Stage::new();
    let run = stage.install(&[]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert_eq!(version_at(&stage.program()), format!("hookloop {VERSION}"));
    assert!(run.stdout.contains(&format!("hookloop {VERSION} is in")), "{run:?}");
    assert!(run.stdout.contains("is not in your PATH"), "{run:?}");
    assert!(run.stdout.contains(">> ~/.bashrc"), "{run:?}");
    let share = stage.home().join(".local/share");
    for file in [
        "man/man1/hookloop.1",
        "bash-completion/completions/hookloop",
        "fish/vendor_completions.d/hookloop.fish",
        "zsh/site-functions/_hookloop",
    ] {
        assert!(share.join(file).is_file(), "{file}");
    }
    // No temporary file is left, here or in the working directory.
    assert_eq!(fs::read_dir(stage.home().join(".local/bin")).unwrap().count(), 1);
    // With the advised PATH, the program is found.
    let bin = stage.home().join(".local/bin");
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let found = stage.shell().env("PATH", path).args(["-c", "hookloop --version"]).output();
    assert!(found.unwrap().status.success());
}

#[test]
fn the_installer_updates_an_existing_program() {
    let stage = Stage::new();
    let bin = stage.home().join(".local/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(stage.program(), "#!/bin/sh\necho hookloop 0.0.1\n").unwrap();
    fs::set_permissions(stage.program(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let install = || -> ProgramOutput {
        let script = repository().join("install.sh");
        stage.shell().env("PATH", &path).arg(script).output().unwrap().into()
    };
    let run = install();
    assert!(run.stdout.contains(&format!("hookloop {VERSION} is in")), "{run:?}");
    assert!(run.stdout.contains("It replaces 0.0.1"), "{run:?}");
    assert!(!run.stdout.contains("PATH"), "{run:?}");
    assert_eq!(version_at(&stage.program()), format!("hookloop {VERSION}"));
    // A running program does not prevent an update.
    let mut running =
        Command::new(stage.program()).args(["mcp"]).stdin(Stdio::piped()).spawn().unwrap();
    let run = install();
    running.kill().unwrap();
    running.wait().unwrap();
    assert!(run.code == 0 && run.stdout.contains("already"), "{run:?}");
}

#[test]
fn an_archive_with_a_wrong_or_missing_checksum_is_refused() {
    let changed = Stage::with(|files| {
        let archive = files.join(archive_name());
        let mut bytes = fs::read(&archive).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&archive, bytes).unwrap();
    });
    refused(&changed.install(&[]), "does not have the checksum that its release lists");
    assert!(changed.is_untouched());
    let unlisted = Stage::with(|files| fs::write(files.join("SHA256SUMS"), "").unwrap());
    refused(&unlisted.install(&[]), "SHA256SUMS does not list");
    assert!(unlisted.is_untouched());
}

#[test]
fn a_platform_without_a_build_is_refused() {
    let stage = Stage::new();
    let tools = stage.directory.path().join("tools");
    fs::create_dir(&tools).unwrap();
    for (system, machine) in [("Darwin", "ppc64"), ("Linux", "riscv64"), ("FreeBSD", "amd64")] {
        let uname =
            format!("#!/bin/sh\ncase $1 in -s) echo {system} ;; *) echo {machine} ;; esac\n");
        fs::write(tools.join("uname"), uname).unwrap();
        fs::set_permissions(tools.join("uname"), fs::Permissions::from_mode(0o755)).unwrap();
        let script = repository().join("install.sh");
        let path = format!("{}:/usr/bin:/bin", tools.display());
        let run = stage.shell().env("PATH", path).arg(script).output().unwrap().into();
        refused(&run, &format!("no release of hookloop supports {system} on {machine}"));
    }
    assert!(stage.is_untouched());
    assert!(stage.server.asked().is_empty());
}

#[test]
fn the_version_and_the_target_directory_can_be_chosen() {
    let stage = Stage::new();
    let tools = stage.directory.path().join("tools");
    let run =
        stage.install(&["--version", &format!("v{VERSION}"), "--to", tools.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(version_at(&tools.join("hookloop")), format!("hookloop {VERSION}"));
    // A directory whose name is not bin gets no other files beside it.
    assert_eq!(fs::read_dir(&tools).unwrap().count(), 1);
    assert!(stage.is_untouched());
    assert!(stage.server.asked().iter().all(|path| path.starts_with("download/v")));
    let run = stage.install(&["--version", "99.0.0"]);
    refused(&run, "cannot download http");
    refused(&stage.install(&["--versoin", "1"]), "unknown option: --versoin");
    refused(&stage.install(&["--to"]), "--to needs a value");
    refused(&stage.install(&["--to", "/proc/nowhere"]), "cannot write to /proc/nowhere");
}

#[test]
fn a_missing_or_insecure_download_address_is_refused() {
    let stage = Stage::new();
    let script = repository().join("install.sh");
    let run = stage.shell().env_remove("HOOKLOOP_DOWNLOADS").arg(&script).output().unwrap().into();
    refused(&run, "Set HOOKLOOP_DOWNLOADS to their address");
    for address in ["http://example.org/releases", "file:///tmp", "http://127.0.0.1.example.org/x"]
    {
        let run = stage.shell().env("HOOKLOOP_DOWNLOADS", address).arg(&script).output().unwrap();
        refused(&run.into(), "must begin with https://");
    }
    assert!(stage.is_untouched());
}

/// The installer of a release is piped into a shell, without any environment variables.
#[test]
fn the_installer_of_a_release_downloads_only_that_release() {
    let stage = Stage::new();
    let stamped = script("packaging/stamp", &[stage.server.address(), VERSION]);
    fs::write(stage.directory.path().join("files/install.sh"), stamped).unwrap();
    let line = format!("curl -fsSL {}/latest/download/install.sh | sh", stage.server.address());
    let mut shell = stage.shell();
    let run: ProgramOutput =
        shell.env_remove("HOOKLOOP_DOWNLOADS").args(["-c", &line]).output().unwrap().into();
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(version_at(&stage.program()), format!("hookloop {VERSION}"));
    // The installer, then the files of its own release, even if the latest release has changed
    // since.
    let asked = stage.server.asked();
    assert!(asked[1..].iter().all(|path| path.starts_with("download/v")), "{asked:?}");
}

#[test]
fn the_installer_uses_wget_without_curl() {
    let stage = Stage::new();
    let tools = stage.directory.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let needed = "awk cat chmod cp cut gzip mkdir mktemp mv rm sha256sum tar uname wget";
    for name in needed.split(' ') {
        let at = ["/usr/bin", "/bin"].map(|place| Path::new(place).join(name));
        let at = at.iter().find(|at| at.exists()).unwrap_or_else(|| panic!("{name} is not here"));
        std::os::unix::fs::symlink(at, tools.join(name)).unwrap();
    }
    let mut shell = stage.shell();
    let run: ProgramOutput =
        shell.env("PATH", &tools).arg(repository().join("install.sh")).output().unwrap().into();
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(version_at(&stage.program()), format!("hookloop {VERSION}"));
}

/// If the connection breaks, the shell gets only the beginning of the script.
#[test]
fn a_truncated_installer_does_nothing() {
    let stage = Stage::new();
    let whole = fs::read_to_string(repository().join("install.sh")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let last = lines.iter().rposition(|line| line.starts_with("main ")).unwrap();
    for count in 0..last {
        let half = lines[..count].join("\n");
        stage.shell().args(["-c", &half]).output().unwrap();
        assert!(stage.server.asked().is_empty(), "after {count} lines");
        assert_eq!(fs::read_dir(stage.home()).unwrap().count(), 0, "after {count} lines");
    }
}
