//! The state that the threads of a screen share: main loop, reader, worker, and the session that asks.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hookloop_core::session::LimitDecision;
use hookloop_engine::session::stop_switch::StopSwitch;

use super::data::{ScreenNews, ScreenRequest};
use super::message::{QuestionReply, RetryQuestion, ScreenEffect, ScreenInput};

/// Effects and results that may wait; a further effect is refused with a message.
const WAITING_MAX: usize = 16;
/// How often a waiting question checks for the end of the session, and for an answer elsewhere.
const LOOK: Duration = Duration::from_millis(100);
pub(crate) const HEAR: Duration = Duration::from_millis(500);

#[derive(Default)]
struct ChannelState {
    request: ScreenRequest,
    /// The latest news; it replaces news that was not read.
    news: Option<ScreenNews>,
    done: VecDeque<ScreenInput>,
    orders: VecDeque<ScreenEffect>,
    /// The question, and whether the main loop has it.
    question: (Option<RetryQuestion>, bool),
    answer: Option<LimitDecision>,
    /// Whether the session is over.
    is_over: bool,
    /// Whether the screen is closed.
    is_closed: bool,
}

pub(super) struct ScreenChannels {
    inner: Mutex<ChannelState>,
    changed: Condvar,
    /// A byte wakes the main loop.
    waker: UnixStream,
}

impl ScreenChannels {
    /// Returns the channels, and a socket that is readable when the main loop has something to do.
    pub(super) fn new() -> std::io::Result<(ScreenChannels, UnixStream)> {
        let (waker, wakes) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        Ok((ScreenChannels { inner: Mutex::default(), changed: Condvar::new(), waker }, wakes))
    }

    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // If the socket is full, the main loop wakes anyway.
        let _ = (&self.waker).write(&[0]);
    }

    /// Returns the socket that signals write to.
    pub(super) fn waker(&self) -> std::io::Result<UnixStream> {
        self.waker.try_clone()
    }

    // Called by the main loop.

    /// Returns the inputs since the last call.
    pub(super) fn take(&self, mut wakes: &UnixStream) -> Vec<ScreenInput> {
        // The bytes only wake the loop; the inputs are taken below, whether there was a byte or not.
        let _ = wakes.read(&mut [0; 64]);
        let mut inner = self.lock();
        let mut inputs: Vec<ScreenInput> =
            inner.news.take().map(ScreenInput::News).into_iter().collect();
        inputs.extend(inner.done.drain(..));
        if let (question, is_known @ false) = &mut inner.question {
            *is_known = true;
            inputs.push(ScreenInput::Asked(question.clone()));
        }
        inputs
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    pub(super) fn look(&self, request: ScreenRequest) {
        self.lock().request = request;
        self.changed.notify_all();
    }

    /// Queues an effect, unless too many wait.
    pub(super) fn order(&self, effect: ScreenEffect) -> Result<(), String> {
        let mut inner = self.lock();
        if inner.orders.len() >= WAITING_MAX {
            return Err("too much is waiting to be done".to_owned());
        }
        inner.orders.push_back(effect);
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn answer(&self, answer: LimitDecision) {
        self.lock().answer = Some(answer);
        self.changed.notify_all();
    }

    /// Closes the screen: the other threads end.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    // Called by the reader.

    pub(super) fn publish(&self, news: ScreenNews) {
        self.lock().news = Some(news);
        self.wake();
    }

    /// Returns the content that is shown; none after the screen is closed.
    pub(super) fn request(&self) -> Option<ScreenRequest> {
        let inner = self.lock();
        (!inner.is_closed).then(|| inner.request.clone())
    }

    /// Waits, unless other content is shown.
    pub(super) fn rest(&self, known: &ScreenRequest, pause: Duration) {
        let end = Instant::now() + pause;
        let mut inner = self.lock();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || inner.is_closed || inner.request != *known {
                return;
            }
            let waited = self.changed.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    // Called by the thread of effects.

    /// Returns the next effect; none after the screen is closed.
    pub(super) fn next_order(&self) -> Option<ScreenEffect> {
        let waits = |inner: &mut ChannelState| inner.orders.is_empty() && !inner.is_closed;
        let inner = self.changed.wait_while(self.lock(), waits);
        let mut inner = inner.unwrap_or_else(PoisonError::into_inner);
        // Effects that were requested before the close are performed.
        inner.orders.pop_front()
    }

    pub(super) fn done(&self, input: ScreenInput) {
        let mut inner = self.lock();
        if inner.done.len() >= WAITING_MAX {
            inner.done.pop_front();
        }
        inner.done.push_back(input);
        drop(inner);
        self.wake();
    }

    // Called by the session.

    /// Asks the user, until there is an answer here or elsewhere, or the session ends.
    pub(super) fn ask(
        &self,
        question: RetryQuestion,
        stop: &StopSwitch,
        is_answered: &mut dyn FnMut() -> bool,
    ) -> QuestionReply {
        let mut heard_at = Instant::now();
        let mut inner = self.lock();
        inner.answer = None;
        inner.question = (Some(question), false);
        self.wake();
        let heard = loop {
            let waited = self.changed.wait_timeout(inner, LOOK);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
            if let Some(answer) = inner.answer.take() {
                break QuestionReply::Answer(answer);
            }
            if inner.is_closed {
                break QuestionReply::Nobody;
            }
            if stop.cancel().is_triggered() {
                break QuestionReply::Answer(LimitDecision::Abort);
            }
            if heard_at.elapsed() < HEAR {
                continue;
            }
            // The lock is released, so that the screen can be drawn.
            drop(inner);
            let is_over = is_answered();
            inner = self.lock();
            heard_at = Instant::now();
            if is_over {
                break QuestionReply::Elsewhere;
            }
        };
        inner.question = (None, false);
        drop(inner);
        self.wake();
        heard
    }

    /// Ends the screen, because the session is over.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
        self.wake();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_screen_updates_are_replaced() {
        let (channels, wakes) = ScreenChannels::new().unwrap();
        for trouble in ["old", "new"] {
            channels
                .publish(ScreenNews { trouble: Some(trouble.to_owned()), ..ScreenNews::default() });
        }
        let inputs = channels.take(&wakes);
        let [ScreenInput::News(news), ScreenInput::Asked(None)] = inputs.as_slice() else {
            panic!("{inputs:?}")
        };
        assert_eq!(news.trouble.as_deref(), Some("new"));
        assert!(channels.take(&wakes).is_empty());
    }

    #[test]
    fn a_retry_question_ends_with_an_answer_or_with_the_session() {
        let (channels, wakes) = ScreenChannels::new().unwrap();
        let question = || RetryQuestion { failing: vec!["tests".into()], retries: 2 };
        let stop = StopSwitch::new().unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| channels.ask(question(), &stop, &mut || false));
            let end = Instant::now() + Duration::from_secs(20);
            while !channels
                .take(&wakes)
                .iter()
                .any(|input| matches!(input, ScreenInput::Asked(Some(_))))
            {
                assert!(Instant::now() < end, "the question did not come");
                std::thread::yield_now();
            }
            channels.answer(LimitDecision::Continue);
            assert_eq!(asking.join().unwrap(), QuestionReply::Answer(LimitDecision::Continue));
        });
        let stopped = StopSwitch::new().unwrap();
        stopped.by_user();
        let mut never = || false;
        assert_eq!(
            channels.ask(question(), &stopped, &mut never),
            QuestionReply::Answer(LimitDecision::Abort)
        );
        let mut looks = 0;
        let mut at_last = || {
            looks += 1;
            looks == 2
        };
        assert_eq!(channels.ask(question(), &stop, &mut at_last), QuestionReply::Elsewhere);
        assert!(matches!(channels.take(&wakes).as_slice(), [ScreenInput::Asked(None)]));
        channels.close();
        assert_eq!(channels.ask(question(), &stop, &mut never), QuestionReply::Nobody);
    }

    #[test]
    fn orders_over_the_limit_are_refused() {
        let (channels, _wakes) = ScreenChannels::new().unwrap();
        let ordered = (0..=WAITING_MAX)
            .map(|_| channels.order(ScreenEffect::Suspend))
            .filter(Result::is_ok)
            .count();
        assert_eq!(ordered, WAITING_MAX);
        channels.close();
        assert!(channels.next_order().is_some());
    }
}
