//! The terminal while a screen is on it, and how it is left as it was: at the end, on a panic, on a signal.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{execute, queue};
use ratatui::layout::Rect;
use ratatui::{TerminalOptions, Viewport};
use rustix::process::{Signal, kill_current_process_group};

use super::draw::draw;
use super::state::ScreenState;

/// The buffer of a picture, which is written in one piece.
const BUFFER: usize = 64 * 1024;
/// How long leaving waits for a picture that is being written.
const PATIENCE: Duration = Duration::from_millis(200);
const PAGER: &str = "less";
/// A ctrl-c that ends a pager is sent to this program at the same time, and may be noticed when the pager is gone.
const GRACE: Duration = Duration::from_secs(1);

/// Whether there is a screen on the terminal now.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether another program has the terminal for a while.
static LENT: AtomicBool = AtomicBool::new(false);
/// When it was given back last.
static RETURNED: Mutex<Option<Instant>> = Mutex::new(None);
/// Held while a picture goes out: nothing of it may come after the terminal was left.
static DRAWING: Mutex<()> = Mutex::new(());

type TerminalState = ratatui::Terminal<CrosstermBackend<BufWriter<File>>>;

pub(super) struct ScreenTerminal {
    inner: TerminalState,
    size: (u16, u16),
}

impl ScreenTerminal {
    /// Puts a screen on the terminal.
    pub(super) fn take() -> io::Result<ScreenTerminal> {
        restore_on_panic();
        enter()?;
        match size().and_then(|size| Ok((empty(size)?, size))) {
            Ok((inner, size)) => Ok(ScreenTerminal { inner, size }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Draws a state; fails if the terminal is gone or was restored.
    pub(super) fn draw(&mut self, state: &ScreenState) -> io::Result<()> {
        let _drawing = DRAWING.lock();
        if !TAKEN.load(Ordering::SeqCst) {
            return Err(io::Error::other("the terminal was left"));
        }
        let size = size()?;
        if size != self.size {
            self.inner = empty(size)?;
            self.size = size;
        }
        queue!(self.inner.backend_mut(), BeginSynchronizedUpdate)?;
        self.inner.draw(|frame| draw(state, frame))?;
        execute!(self.inner.backend_mut(), EndSynchronizedUpdate)
    }

    pub(super) fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Stops the program like ctrl-z, and redraws when it continues.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        restore();
        kill_current_process_group(Signal::TSTP)?;
        self.come_back()
    }

    /// Restores the modes and the picture after a stop: both may have changed.
    pub(super) fn come_back(&mut self) -> io::Result<()> {
        enter()?;
        self.inner = empty(self.size)?;
        Ok(())
    }

    /// Lets the user's own pager show a text.
    pub(super) fn lend(&mut self, text: &str) -> io::Result<()> {
        restore();
        LENT.store(true, Ordering::SeqCst);
        let read = page(text);
        *RETURNED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        LENT.store(false, Ordering::SeqCst);
        self.come_back()?;
        read
    }
}

impl Drop for ScreenTerminal {
    fn drop(&mut self) {
        restore();
    }
}

fn page(text: &str) -> io::Result<()> {
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| PAGER.to_owned());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A pager need not read all of the text.
        let _ = input.write_all(text.as_bytes());
    }
    match child.wait()?.code() {
        Some(127) => Err(io::Error::other(format!("`{pager}` was not found: set PAGER"))),
        _ => Ok(()),
    }
}

/// An empty picture of a fixed size. One that tracks the size would query the cursor through standard output, which is
/// not the terminal here.
fn empty((width, height): (u16, u16)) -> io::Result<TerminalState> {
    execute!(stdout()?, Clear(ClearType::All))?;
    let out = BufWriter::with_capacity(BUFFER, stdout()?);
    let viewport = Viewport::Fixed(Rect { x: 0, y: 0, width, height });
    ratatui::Terminal::with_options(CrosstermBackend::new(out), TerminalOptions { viewport })
}

/// The program's own output has standard output for itself.
fn stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(stdout()?, EnterAlternateScreen, EnableBracketedPaste)
}

/// Whether another program has the terminal, or just had it: keys, and ctrl-c among them, are that one's.
pub(crate) fn is_lent() -> bool {
    let returned = *RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
    LENT.load(Ordering::SeqCst) || returned.is_some_and(|at| at.elapsed() < GRACE)
}

/// Leaves the terminal as it was, if there is a screen on it. Code that ends the program must call this.
pub(crate) fn restore() {
    // A thread that panics while it draws holds this lock, and so does one that writes to a terminal that hangs.
    let end = Instant::now() + PATIENCE;
    let mut drawing = DRAWING.try_lock();
    while matches!(drawing, Err(TryLockError::WouldBlock)) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
        drawing = DRAWING.try_lock();
    }
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    if let Ok(mut out) = stdout() {
        // A terminal that is gone can't be restored, and needs no restoring.
        let _ =
            execute!(out, EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, Show);
    }
    // Nothing else could restore the terminal.
    let _ = disable_raw_mode();
}

/// A panic's message is printed on the restored terminal.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "the test below runs it, on a terminal"]
    fn takes_the_terminal_and_panics() {
        let _terminal = ScreenTerminal::take().unwrap();
        panic!("on purpose");
    }

    #[test]
    fn a_panic_is_printed_after_the_terminal_is_restored() {
        let directory = tempfile::tempdir().unwrap();
        let program = std::env::current_exe().unwrap();
        let test = "--ignored --exact tui::terminal::tests::takes_the_terminal_and_panics";
        let line = format!(
            "stty rows 24 cols 80; stty -a > before; {} {test} --nocapture; stty -a > after",
            program.display()
        );
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(directory.path());
        let output = script.env("TERM", "xterm-256color").stdin(Stdio::null()).output().unwrap();
        let seen = String::from_utf8_lossy(&output.stdout);
        let place = |text: &str| seen.find(text).unwrap_or_else(|| panic!("{text:?}: {seen:?}"));
        let places = [place("\u{1b}[?1049h"), place("\u{1b}[?1049l"), place("on purpose")];
        assert!(places.is_sorted(), "{seen:?}");
        let modes = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(modes("before"), modes("after"));
    }
}
