//! The main loop of a screen: waits for keys and news, draws the state, performs its effects.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hookloop_core::id::SessionId;
use hookloop_engine::project::Project;
use hookloop_engine::session::stop_switch::StopSwitch;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::SigId;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};

use super::act;
use super::read::ContentReader;
use super::state::ScreenState;
use super::terminal::{ScreenTerminal, is_lent};
use super::theme::ScreenTheme;
use crate::tui::channels::ScreenChannels;
use crate::tui::message::{QuestionReply, RetryQuestion, ScreenEffect, ScreenInput, ScreenParting};

/// The shortest time between two pictures.
const FRAME: Duration = Duration::from_millis(50);
/// Keys that are handled before the next drawing, so that a flood of keys does not stop it.
const KEYS_MAX: usize = 256;
const SECOND: u64 = 1_000;

/// The content of a screen, and its colours.
pub(crate) struct ScreenContent {
    /// A project that only the screen uses.
    pub(crate) project: Project,
    pub(crate) machine: String,
    pub(crate) has_colours: bool,
}

/// A screen on its own thread, beside the session that it shows.
pub(crate) struct Screen {
    channels: Arc<ScreenChannels>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    pub(crate) fn open(showing: ScreenContent, own: SessionId) -> io::Result<Screen> {
        let (channels, wakes) = ScreenChannels::new()?;
        let channels = Arc::new(channels);
        let theme = ScreenTheme { has_colours: showing.has_colours };
        let state = ScreenState::new(theme, crate::environment::now()).of_run(own);
        let terminal = ScreenTerminal::take()?;
        let of_thread = Arc::clone(&channels);
        let thread = std::thread::Builder::new().name("screen".to_owned()).spawn(move || {
            let _closing = CloseOnDrop(&of_thread);
            // A terminal that is gone closes the screen only; the session continues.
            let shown = ScreenLoop::new(
                terminal,
                state,
                Arc::clone(&of_thread),
                wakes,
                SignalSource::Others,
            )
            .and_then(|looping| looping.run(showing));
            if let Err(error) = shown {
                tracing::warn!(%error, "the screen is closed");
            }
        })?;
        Ok(Screen { channels, thread: Some(thread) })
    }

    /// Whether the screen is still open.
    pub(crate) fn is_open(&self) -> bool {
        !self.channels.is_closed()
    }

    pub(crate) fn ask(
        &self,
        question: RetryQuestion,
        stop: &StopSwitch,
        is_answered: &mut dyn FnMut() -> bool,
    ) -> QuestionReply {
        self.channels.ask(question, stop, is_answered)
    }
}

impl Drop for Screen {
    /// When this returns, the terminal is as it was.
    fn drop(&mut self) {
        self.channels.end();
        if let Some(thread) = self.thread.take() {
            // A panic of this thread is printed by the panic hook; the session continues without a screen.
            let _ = thread.join();
        }
        super::restore();
    }
}

/// Closes the channels when the thread ends, even by a panic.
struct CloseOnDrop<'l>(&'l ScreenChannels);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Shows a screen until the user closes it.
pub(crate) fn watch(
    showing: ScreenContent,
    session: Option<SessionId>,
) -> io::Result<ScreenParting> {
    let (channels, wakes) = ScreenChannels::new()?;
    let channels = Arc::new(channels);
    let theme = ScreenTheme { has_colours: showing.has_colours };
    let state = ScreenState::new(theme, crate::environment::now());
    let state = match session {
        Some(id) => state.at_session(id),
        None => state,
    };
    let terminal = ScreenTerminal::take()?;
    let _closing = CloseOnDrop(&channels);
    ScreenLoop::new(terminal, state, Arc::clone(&channels), wakes, SignalSource::Ours)?.run(showing)
}

/// The handler of signals that end the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignalSource {
    /// The session, which has something to do first.
    Others,
    Ours,
}

struct ScreenLoop {
    terminal: ScreenTerminal,
    state: ScreenState,
    channels: Arc<ScreenChannels>,
    wakes: UnixStream,
    registered: Vec<SigId>,
    /// Signals: end, ctrl-c, and continue after a stop.
    is_ended: Arc<AtomicBool>,
    is_interrupted: Arc<AtomicBool>,
    is_continued: Arc<AtomicBool>,
}

impl ScreenLoop {
    fn new(
        terminal: ScreenTerminal,
        state: ScreenState,
        channels: Arc<ScreenChannels>,
        wakes: UnixStream,
        signals: SignalSource,
    ) -> io::Result<ScreenLoop> {
        let flag = || Arc::new(AtomicBool::new(false));
        let is_ended = flag();
        let is_interrupted = flag();
        let is_continued = flag();
        let mut looping = ScreenLoop {
            terminal,
            state,
            channels,
            wakes,
            registered: Vec::new(),
            is_ended: Arc::clone(&is_ended),
            is_interrupted: Arc::clone(&is_interrupted),
            is_continued: Arc::clone(&is_continued),
        };
        looping.register(SIGWINCH, None)?;
        looping.register(SIGCONT, Some(is_continued))?;
        if signals == SignalSource::Ours {
            looping.register(SIGINT, Some(is_interrupted))?;
            looping.register(SIGTERM, Some(Arc::clone(&is_ended)))?;
            looping.register(SIGHUP, Some(is_ended))?;
        }
        Ok(looping)
    }

    /// A signal sets a flag, and wakes the loop.
    fn register(&mut self, signal: i32, flag: Option<Arc<AtomicBool>>) -> io::Result<()> {
        if let Some(flag) = flag {
            self.registered.push(signal_hook::flag::register(signal, flag)?);
        }
        let wakes = OwnedFd::from(self.channels.waker()?);
        self.registered.push(signal_hook::low_level::pipe::register(signal, wakes)?);
        Ok(())
    }

    fn run(mut self, showing: ScreenContent) -> io::Result<ScreenParting> {
        let ScreenContent { project, machine, .. } = showing;
        let reader = ContentReader::new(project.clone(), Arc::clone(&self.channels), machine);
        let channels = Arc::clone(&self.channels);
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        thread("screen-reads").spawn(move || reader.run())?;
        thread("screen-acts").spawn(move || act::run(&project, &channels))?;
        let (width, height) = self.terminal.size();
        self.turn(ScreenInput::Size { width, height })
    }

    fn turn(&mut self, first: ScreenInput) -> io::Result<ScreenParting> {
        for effect in self.state.update(first) {
            self.perform(effect)?;
        }
        let mut drawn: Option<Instant> = None;
        let mut is_dirty = true;
        loop {
            let is_due = drawn.is_none_or(|at| at.elapsed() >= FRAME);
            if is_dirty && is_due {
                self.terminal.draw(&self.state)?;
                drawn = Some(Instant::now());
                is_dirty = false;
            }
            let left = match (is_dirty, drawn) {
                (true, Some(at)) => FRAME.saturating_sub(at.elapsed()),
                _ => until_next_second(),
            };
            self.wait(left)?;
            if self.channels.is_over() || self.is_ended.load(Ordering::SeqCst) {
                return Ok(ScreenParting::Closed);
            }
            let inputs = self.inputs()?;
            is_dirty |= !inputs.is_empty();
            for input in inputs {
                for effect in self.state.update(input) {
                    if let Some(parting) = self.perform(effect)? {
                        return Ok(parting);
                    }
                }
            }
        }
    }

    /// Waits for a key, news or a signal; fails if the terminal is gone.
    fn wait(&self, most: Duration) -> io::Result<()> {
        let stdin = io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.wakes, PollFlags::IN)];
        let most = Timespec::try_from(most).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            Err(io::Error::other("the terminal was closed"))
        } else {
            Ok(())
        }
    }

    fn inputs(&mut self) -> io::Result<Vec<ScreenInput>> {
        let mut inputs = self.channels.take(&self.wakes);
        for _ in 0..KEYS_MAX {
            if !event::poll(Duration::ZERO)? {
                break;
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    inputs.push(ScreenInput::Key(key))
                }
                Event::Paste(text) => inputs.push(ScreenInput::Paste(text)),
                Event::Resize(width, height) => inputs.push(ScreenInput::Size { width, height }),
                _ => {}
            }
        }
        if self.is_interrupted.swap(false, Ordering::SeqCst) && !is_lent() {
            inputs.push(ScreenInput::Key(event::KeyEvent::new(
                event::KeyCode::Char('c'),
                event::KeyModifiers::CONTROL,
            )));
        }
        if self.is_continued.swap(false, Ordering::SeqCst) {
            self.terminal.come_back()?;
        }
        let now = crate::environment::now();
        if now.0 / SECOND as i64 != self.state.now.0 / SECOND as i64 {
            inputs.push(ScreenInput::Tick(now));
        }
        Ok(inputs)
    }

    /// Does something outside; answers why the screen ends, if it does.
    fn perform(&mut self, effect: ScreenEffect) -> io::Result<Option<ScreenParting>> {
        match effect {
            ScreenEffect::Part(parting) => return Ok(Some(parting)),
            // The terminal does not do it while there is a screen on it.
            ScreenEffect::Interrupt => signal_hook::low_level::raise(SIGINT)?,
            ScreenEffect::Suspend => self.terminal.suspend()?,
            ScreenEffect::Look(request) => self.channels.look(request),
            ScreenEffect::Decide(answer) => self.channels.answer(answer),
            ScreenEffect::Lend(text) => {
                if let Err(error) = self.terminal.lend(&text) {
                    self.state.update(ScreenInput::Done(Err(error.to_string())));
                }
            }
            other => {
                if let Err(why) = self.channels.order(other.clone()) {
                    self.state.update(other.failed(why));
                }
            }
        }
        Ok(None)
    }
}

impl Drop for ScreenLoop {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

fn until_next_second() -> Duration {
    let into = crate::environment::now().0.rem_euclid(SECOND as i64).cast_unsigned();
    Duration::from_millis(SECOND - into)
}
