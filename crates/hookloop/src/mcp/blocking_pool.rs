//! Threads for blocking work, with a limit of running and of waiting pieces.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Pieces of work that run at the same time.
pub(crate) const CALLS_MAX: usize = 8;
/// Pieces that wait; more are refused.
pub(crate) const WAITING_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct BlockingPool {
    /// Permits of running and waiting pieces.
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// The reason of a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    Busy,
    /// The caller is gone.
    Gone,
    /// The work panicked.
    Lost,
}

/// Sends the answer, and frees the place for the next piece.
pub(crate) struct WorkReply<T> {
    to: oneshot::Sender<T>,
    _place: OwnedSemaphorePermit,
    _turn: OwnedSemaphorePermit,
}

impl<T> WorkReply<T> {
    /// Whether the caller has stopped waiting.
    pub(crate) fn is_unwanted(&self) -> bool {
        self.to.is_closed()
    }

    pub(crate) fn send(self, answer: T) {
        // A caller that has stopped waiting gets no answer.
        let _ = self.to.send(answer);
    }
}

impl BlockingPool {
    pub(crate) fn new() -> BlockingPool {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        BlockingPool { places: semaphore(CALLS_MAX + WAITING_MAX), turns: semaphore(CALLS_MAX) }
    }

    /// Returns when `work` has replied, or when the caller is `gone`. Work that has begun runs to its end, and may
    /// continue after its reply.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        gone: impl Future<Output = ()>,
        work: impl FnOnce(WorkReply<T>) + Send + 'static,
    ) -> Result<T, Unanswered> {
        let mut gone = pin!(gone);
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Unanswered::Busy)?;
        let turn = tokio::select! {
            turn = Arc::clone(&self.turns).acquire_owned() => turn.map_err(|_| Unanswered::Busy)?,
            () = &mut gone => return Err(Unanswered::Gone),
        };
        let (to, answered) = oneshot::channel();
        tokio::task::spawn_blocking(move || work(WorkReply { to, _place: place, _turn: turn }));
        tokio::select! {
            answer = answered => answer.map_err(|_| Unanswered::Lost),
            () = &mut gone => Err(Unanswered::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::mpsc::channel;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn calls_over_the_limit_are_refused_at_once() {
        let pool = Arc::new(BlockingPool::new());
        let (go, waits) = channel::<()>();
        let waits = Arc::new(std::sync::Mutex::new(waits));
        let mut asked = JoinSet::new();
        for i in 0..CALLS_MAX + WAITING_MAX {
            let pool = Arc::clone(&pool);
            let waits = Arc::clone(&waits);
            asked.spawn(async move {
                let work = move |reply: WorkReply<usize>| {
                    let _ = waits.lock().unwrap().recv();
                    reply.send(i);
                };
                pool.run(pending(), work).await
            });
        }
        while pool.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let refused = pool.run(pending(), |reply| reply.send(0)).await;
        assert_eq!(refused, Err(Unanswered::Busy));
        drop(go);
        let mut answers: Vec<usize> =
            asked.join_all().await.into_iter().map(Result::unwrap).collect();
        answers.sort_unstable();
        assert_eq!(answers, (0..CALLS_MAX + WAITING_MAX).collect::<Vec<_>>());
        assert_eq!(pool.run(pending(), |reply| reply.send(1)).await, Ok(1));
    }

    #[tokio::test]
    async fn an_abandoned_call_does_not_block_the_next_call() {
        let pool = BlockingPool::new();
        let (go, waits) = channel::<()>();
        let work = move |reply: WorkReply<()>| {
            let _ = waits.recv();
            reply.send(());
        };
        assert_eq!(pool.run(ready(()), work).await, Err(Unanswered::Gone));
        assert_eq!(pool.run(pending(), |reply| reply.send(2)).await, Ok(2));
        drop(go);
        assert_eq!(pool.run(pending(), drop::<WorkReply<()>>).await, Err(Unanswered::Lost));
    }
}
