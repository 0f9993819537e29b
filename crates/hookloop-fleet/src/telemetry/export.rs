//! The thread that sends spans. It reads them from the log, so no other thread waits for it.
//!
//! A slow or unreachable collector delays only this thread. Unsent spans stay in the log. Memory
//! holds one batch at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hookloop_core::id::SessionId;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::{Project, SpanExporter, WatchGuard};
use hookloop_engine::session_record::SessionTimeline;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::otlp::{OtlpCollector, OtlpFailure};
use super::settings::{ExportMisfit, ExportTarget};
use super::spans::{ExportedPart, TracedSession};

/// Interval at which the log is read while a session runs.
const LOOK: Duration = Duration::from_secs(1);
/// Largest number of spans in a request.
const BATCH_MAX: usize = 512;
/// Largest number of attempts for a batch that the collector may still accept.
const TRIES_MAX: u32 = 12;
/// Pause after the first failure. Each further failure doubles it, up to the maximum.
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Largest number of sessions with unsent spans. Beyond it, the oldest ended sessions are dropped.
const SESSIONS_MAX: usize = 1_024;
/// Time that a program waits at its end for unsent spans.
pub(crate) const FINISH_MAX: Duration = Duration::from_secs(3);

/// Counters of the exporter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportFigures {
    pub sent: u64,
    /// Spans that the collector rejected or that the exporter dropped.
    pub lost: u64,
    /// Requests that failed.
    pub failures: u64,
    /// The error of the last request, if no request has succeeded since.
    pub trouble: Option<String>,
}

/// A change of the exporter's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportNews {
    /// Requests began to fail.
    Failing { why: String },
    /// Requests succeed again.
    Working,
    /// Spans were dropped.
    Lost { spans: usize, why: String },
}

pub type ExportListener = Box<dyn Fn(&ExportNews) + Send>;

/// Sends spans of sessions to a collector. Clones share one thread.
#[derive(Clone)]
pub struct TraceExporter(Arc<ExportShared>);

impl std::fmt::Debug for TraceExporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Exporter to {}", self.0.url)
    }
}

struct ExportShared {
    url: String,
    state: Mutex<ExportState>,
    changed: Condvar,
}

#[derive(Default)]
struct ExportState {
    arrivals: Vec<FollowedSession>,
    figures: ExportFigures,
    /// The deadline, once the program wants to end.
    closing: Option<Instant>,
    is_done: bool,
}

/// A guard of a running session. Dropping it marks the session as over.
#[derive(Debug)]
pub(crate) struct SessionExport {
    is_over: Arc<AtomicBool>,
    exporter: TraceExporter,
}

impl Drop for SessionExport {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.exporter.0.changed.notify_all();
    }
}

struct FollowedSession {
    project: Project,
    record: SessionTimeline,
    given: ExportedPart,
    is_over: Arc<AtomicBool>,
}

impl FollowedSession {
    /// Returns new spans from the log, at most `room`.
    fn take(&mut self, content: bool, room: usize) -> Result<Vec<Span>, EngineError> {
        self.record.look(&self.project)?;
        let (Some(timeline), Some(names)) = (self.record.timeline(), self.record.names()) else {
            return Ok(Vec::new());
        };
        let traced = TracedSession { project: &self.project, names, timeline, content };
        Ok(traced.take(&mut self.given, room))
    }
}

impl TraceExporter {
    /// Starts the thread that sends spans to `target`.
    pub fn start(
        target: &ExportTarget,
        listener: ExportListener,
    ) -> Result<TraceExporter, ExportMisfit> {
        let collector = OtlpCollector::new(target)?;
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(ExportShared { url: target.url.clone(), state, changed });
        let sender = SpanSender {
            shared: Arc::clone(&shared),
            collector,
            timeout: target.timeout,
            content: target.content,
            listener,
            followed: Vec::new(),
            batch: Vec::new(),
            tries: 0,
            rests_until: None,
        };
        let thread = std::thread::Builder::new().name("telemetry".to_owned());
        let started = thread.spawn(move || sender.run());
        started.map_err(|error| ExportMisfit(format!("there is no thread to send it: {error}")))?;
        Ok(TraceExporter(shared))
    }

    /// Returns the URL of the collector.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Exports a session until the returned guard is dropped, and then the rest of its spans.
    fn watch_session(&self, project: &Project, id: &SessionId) -> SessionExport {
        let is_over = Arc::new(AtomicBool::new(false));
        // This copy only reads the log, so it must not refer back to the exporter.
        let project = project.clone().untraced();
        self.0.lock().arrivals.push(FollowedSession {
            project,
            record: SessionTimeline::new(id.clone()),
            given: ExportedPart::default(),
            is_over: Arc::clone(&is_over),
        });
        self.0.changed.notify_all();
        SessionExport { is_over, exporter: self.clone() }
    }

    /// Exports the spans of a session that are in the log now.
    pub fn show(&self, project: &Project, id: &SessionId) {
        drop(self.watch_session(project, id));
    }

    pub fn figures(&self) -> ExportFigures {
        self.0.lock().figures.clone()
    }

    /// Sends the remaining spans, within `FINISH_MAX`. After a failure it does not retry.
    pub fn finish(&self) -> ExportFigures {
        let mut state = self.0.lock();
        let until = Instant::now() + FINISH_MAX;
        state.closing.get_or_insert(until);
        self.0.changed.notify_all();
        while !state.is_done {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = || format!("no answer within {FINISH_MAX:?}");
                state.figures.trouble.get_or_insert_with(why);
                break;
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.figures.clone()
    }
}

impl ExportShared {
    fn lock(&self) -> MutexGuard<'_, ExportState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SpanSender {
    shared: Arc<ExportShared>,
    collector: OtlpCollector,
    timeout: Duration,
    content: bool,
    listener: ExportListener,
    followed: Vec<FollowedSession>,
    /// The spans of the next request. They stay here until they are sent or dropped.
    batch: Vec<Span>,
    tries: u32,
    /// The end of the pause after a failure.
    rests_until: Option<Instant>,
}

impl SpanSender {
    fn run(mut self) {
        loop {
            let closing = self.wait();
            if self.batch.is_empty() {
                self.gather();
            }
            let is_through = match self.batch.is_empty() {
                true => true,
                false => !self.send(closing),
            };
            if closing.is_some() && is_through {
                self.give_up_rest();
                self.shared.lock().is_done = true;
                self.shared.changed.notify_all();
                return;
            }
        }
    }

    /// Waits for work. Returns the deadline if the program wants to end.
    fn wait(&mut self) -> Option<Instant> {
        let mut state = self.shared.lock();
        let mut has_waited = false;
        loop {
            self.followed.append(&mut state.arrivals);
            if state.closing.is_some() {
                return state.closing;
            }
            let rest =
                self.rests_until.map(|until| until.saturating_duration_since(Instant::now()));
            let has_ended = || self.followed.iter().any(|one| one.is_over.load(Ordering::SeqCst));
            let is_due = match rest {
                Some(rest) => rest.is_zero(),
                None => !self.batch.is_empty() || has_waited || has_ended(),
            };
            if is_due {
                self.rests_until = None;
                return None;
            }
            let for_long = self.followed.is_empty() && self.batch.is_empty();
            state = match rest.or((!for_long).then_some(LOOK)) {
                Some(time) => {
                    let waited = self.shared.changed.wait_timeout(state, time);
                    let (state, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
                    has_waited = timed_out.timed_out();
                    state
                }
                None => {
                    let waited = self.shared.changed.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }

    /// Fills the batch with new spans from the log.
    fn gather(&mut self) {
        let (content, batch) = (self.content, &mut self.batch);
        self.followed.retain_mut(|one| {
            // Read before the log, so that all events of an ended session are seen.
            let is_over = one.is_over.load(Ordering::SeqCst);
            let room = BATCH_MAX - batch.len();
            if room == 0 {
                return true;
            }
            match one.take(content, room) {
                Ok(spans) => {
                    let is_all = spans.len() < room;
                    batch.extend(spans);
                    !(is_all && (is_over || one.given.is_over()))
                }
                // A failed read is repeated while the session runs.
                Err(_) => !is_over,
            }
        });
        let mut excess = self.followed.len().saturating_sub(SESSIONS_MAX);
        let mut lost = 0;
        self.followed.retain_mut(|one| {
            if excess == 0 || !one.is_over.load(Ordering::SeqCst) {
                return true;
            }
            excess -= 1;
            lost += one.take(content, usize::MAX).map_or(0, |spans| spans.len());
            false
        });
        if lost > 0 {
            self.lose(lost, "too many sessions wait to be sent");
        }
    }

    /// Sends the batch. Returns whether it succeeded, so that the next batch can follow at once.
    fn send(&mut self, closing: Option<Instant>) -> bool {
        let left = closing.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(self.timeout, |left| left.min(self.timeout));
        if timeout.is_zero() {
            return false;
        }
        let count = self.batch.len();
        match self.collector.send(&self.batch, timeout) {
            Ok(taken) => {
                let had_trouble = self.note(|figures| {
                    figures.sent += taken as u64;
                    figures.trouble.take().is_some()
                });
                if had_trouble {
                    (self.listener)(&ExportNews::Working);
                }
                self.drop_batch();
                if taken < count {
                    self.lose(count - taken, "the collector rejected them");
                }
                true
            }
            Err(failure) => {
                let why = failure.why().to_owned();
                let is_new = self.note(|figures| {
                    figures.failures += 1;
                    figures.trouble.replace(why.clone()).is_none()
                });
                if is_new {
                    (self.listener)(&ExportNews::Failing { why: why.clone() });
                }
                self.rest_after(failure, closing.is_some());
                false
            }
        }
    }

    /// Schedules the next attempt after a failure, or drops the batch.
    fn rest_after(&mut self, failure: OtlpFailure, is_closing: bool) {
        let count = self.batch.len();
        let OtlpFailure::Later { why, after } = failure else {
            self.drop_batch();
            return self.lose(count, failure.why());
        };
        self.tries += 1;
        if self.tries >= TRIES_MAX && !is_closing {
            self.drop_batch();
            return self.lose(count, &why);
        }
        let doubled = BACKOFF.saturating_mul(1 << (self.tries - 1).min(16)).min(BACKOFF_MAX);
        self.rests_until = Some(Instant::now() + after.unwrap_or(doubled));
    }

    fn drop_batch(&mut self) {
        (self.batch, self.tries, self.rests_until) = (Vec::new(), 0, None);
    }

    fn lose(&self, spans: usize, why: &str) {
        self.note(|figures| figures.lost += spans as u64);
        (self.listener)(&ExportNews::Lost { spans, why: why.to_owned() });
    }

    /// Counts all unsent spans as lost.
    fn give_up_rest(&mut self) {
        let mut spans = self.batch.len();
        loop {
            self.drop_batch();
            self.gather();
            if self.batch.is_empty() {
                break;
            }
            spans += self.batch.len();
        }
        self.note(|figures| figures.lost += spans as u64);
    }

    fn note<T>(&self, change: impl FnOnce(&mut ExportFigures) -> T) -> T {
        change(&mut self.shared.lock().figures)
    }
}

impl SpanExporter for TraceExporter {
    fn watch(&self, project: &Project, id: &SessionId) -> Box<dyn WatchGuard> {
        Box::new(self.watch_session(project, id))
    }
}

impl WatchGuard for SessionExport {}
