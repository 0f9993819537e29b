//! Ctrl-C while gates are tried: the first one skips the gate that runs, the second one ends the program.

use std::io::{IsTerminal, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use hookloop_process::Cancel;
use signal_hook::consts::SIGINT;

use crate::error::CliResult;

/// The exit code that a shell reports for a program that ctrl-c ended.
const INTERRUPTED: i32 = 130;

/// Skips the gate that is tried.
pub(super) struct GateSkipper {
    current: Arc<Mutex<Option<Cancel>>>,
}

impl GateSkipper {
    /// Without a terminal the signal ends the program, as it does elsewhere.
    pub(super) fn start() -> CliResult<GateSkipper> {
        let current: Arc<Mutex<Option<Cancel>>> = Arc::default();
        if std::io::stderr().is_terminal() {
            let (mut reads, writes) = UnixStream::pair()?;
            signal_hook::low_level::pipe::register(SIGINT, OwnedFd::from(writes))?;
            let of_thread = Arc::clone(&current);
            std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
                let mut byte = [0];
                while reads.read(&mut byte).is_ok_and(|read| read > 0) {
                    let current = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
                    match &*current {
                        Some(cancel) if !cancel.is_triggered() => cancel.trigger(),
                        _ => signal_hook::low_level::exit(INTERRUPTED),
                    }
                }
            })?;
        }
        Ok(GateSkipper { current })
    }

    /// A gate is tried from now on; the switch ends it.
    pub(super) fn begin(&self) -> CliResult<Cancel> {
        let cancel = Cancel::new()?;
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(cancel.clone());
        Ok(cancel)
    }

    /// No gate is tried.
    pub(super) fn end(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
