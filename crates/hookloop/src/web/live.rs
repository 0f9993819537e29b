//! Live pages: the server reports the changed parts a few times a second at most, and the page requests those.
//!
//! One thread a project follows the log while a page is open. The latest change replaces the one before: a page that
//! does not listen misses only intermediate steps.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hookloop_core::id::Subject;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_engine::store::Seq;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;

use super::topics::{Marks, Topic};

/// Live pages at the same time.
pub(super) const FOLLOWERS_MAX: usize = 64;
/// Between two words to a page.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// The time between two reads of a growing log.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time between two keep-alive messages to a page.
const HUSH_MAX: Duration = Duration::from_secs(15);
/// How long a thread waits for events before it checks for open pages.
const NEWS_WAIT: Duration = Duration::from_secs(1);
/// Events that are examined one by one; with more, all topics count as changed.
const LOOKED_AT_MAX: usize = 2_000;
/// When a page may ask again that found no place, in seconds.
const RETRY_SECONDS: &str = "15";
const NO_PLACE: &str = "64 pages are live already: close one, or reload this page\n";

/// Places for pages that follow, of whichever project.
#[derive(Clone, Debug)]
pub(super) struct FollowerPlaces {
    free: Arc<Semaphore>,
    closing: Arc<Notify>,
}

impl FollowerPlaces {
    pub(super) fn new() -> FollowerPlaces {
        let free = Arc::new(Semaphore::new(FOLLOWERS_MAX));
        FollowerPlaces { free, closing: Arc::default() }
    }

    /// Ends all live connections.
    pub(super) fn close(&self) {
        self.free.close();
        self.closing.notify_waiters();
    }
}

/// The thread that follows a project's log.
#[derive(Debug, Default)]
pub(super) struct LiveUpdates {
    /// None while no page is open.
    marks: Mutex<Option<watch::Receiver<Marks>>>,
}

impl LiveUpdates {
    /// Starts to report the events of the project. Blocks.
    pub(super) fn follow(&self, project: &Project) -> Result<watch::Receiver<Marks>, EngineError> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread still runs. If it is about to end, the page gets the end of the stream and reconnects.
        if let Some(known) = marks.as_ref().filter(|known| known.has_changed().is_ok()) {
            return Ok(known.clone());
        }
        project.store().go_live()?;
        let head = project.read(|view| Ok(view.totals()?.head))?;
        let (tell, told) = watch::channel(Marks::all(head));
        // Subscribed before the thread checks for listeners.
        *marks = Some(told.clone());
        let project = project.clone();
        let follower = std::thread::Builder::new().name("hookloop-live".to_owned());
        let failed = |error| hookloop_engine::store::LogError::Engine(Box::new(error));
        follower.spawn(move || look(&project, &tell)).map_err(failed)?;
        Ok(told)
    }
}

/// Ends when the only listener left is the one that hands out subscriptions.
fn look(project: &Project, tell: &watch::Sender<Marks>) {
    while tell.receiver_count() > 1 {
        let known = tell.borrow().seq;
        // Events that can't be read now are reported later: pages send the last event that they know.
        let Ok(head) = project.store().wait_for_news(known, NEWS_WAIT) else {
            std::thread::sleep(NEWS_WAIT);
            continue;
        };
        if head <= known {
            continue;
        }
        let events = project.log().read(known + 1, LOOKED_AT_MAX).unwrap_or_default();
        let is_whole = events.last().is_some_and(|last| last.seq >= head);
        tell.send_modify(|marks| {
            if is_whole {
                events.iter().for_each(|event| marks.note(event))
            } else {
                *marks = Marks::all(head)
            }
        });
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A page that follows.
pub(super) struct PageFollower {
    told: watch::Receiver<Marks>,
    /// The last event that the page knows.
    known: Seq,
    subject: Option<Subject>,
    places: FollowerPlaces,
    is_greeted: bool,
    _place: OwnedSemaphorePermit,
}

impl FollowerPlaces {
    /// A place to follow from, if there is one.
    pub(super) fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// The answer if all places are taken.
    pub(super) fn refusal() -> Response {
        let headers = [(RETRY_AFTER, RETRY_SECONDS)];
        (StatusCode::SERVICE_UNAVAILABLE, headers, NO_PLACE).into_response()
    }

    /// Returns the stream of changes after event `known`.
    pub(super) fn tell(
        &self,
        place: OwnedSemaphorePermit,
        told: watch::Receiver<Marks>,
        known: Seq,
        subject: Option<Subject>,
    ) -> Response {
        let places = self.clone();
        let is_greeted = false;
        let follower = PageFollower { told, known, subject, places, is_greeted, _place: place };
        let words = stream::unfold(follower, |mut follower| async move {
            let word = follower.next().await?;
            Some((Ok::<_, Infallible>(Bytes::from(word)), follower))
        });
        let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
        (headers, Body::from_stream(words)).into_response()
    }
}

impl PageFollower {
    /// Returns the next message; none at the end.
    async fn next(&mut self) -> Option<String> {
        if !std::mem::replace(&mut self.is_greeted, true) {
            // A keep-alive shows the browser that the server still runs.
            return Some("retry: 2000\n: hello\n\n".to_owned());
        }
        sleep(TELL_EVERY).await;
        loop {
            let closing = self.places.closing.notified();
            if self.places.free.is_closed() {
                return None;
            }
            let word = {
                let marks = self.told.borrow_and_update();
                let topics = marks.since(self.known, self.subject.as_ref());
                self.known = self.known.max(marks.seq);
                word(&topics, self.known)
            };
            if word.is_some() {
                return word;
            }
            tokio::select! {
                () = closing => return None,
                changed = self.told.changed() => changed.ok()?,
                () = sleep(HUSH_MAX) => return Some(": still here\n\n".to_owned()),
            }
        }
    }
}

fn word(topics: &[Topic], seq: Seq) -> Option<String> {
    let names: Vec<&str> = topics.iter().map(|topic| topic.name()).collect();
    (!names.is_empty()).then(|| format!("id: {seq}\nevent: changed\ndata: {}\n\n", names.join(" ")))
}
