//! Requests that the server denied to this user.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::Event;
use futures_util::future::Either;

use super::error::JetStreamError;

/// Largest number of remembered denials.
const DENIALS: usize = 64;

/// Requests that the server denied to this user.
///
/// A denial arrives separately from the request, which never gets an answer.
#[derive(Clone, Debug)]
pub(super) struct PermissionDenials {
    noted: Arc<Mutex<VecDeque<PermissionDenial>>>,
    /// The number of denials so far.
    count: tokio::sync::watch::Sender<u64>,
}

#[derive(Debug)]
struct PermissionDenial {
    number: u64,
    text: String,
}

impl Default for PermissionDenials {
    fn default() -> PermissionDenials {
        PermissionDenials { noted: Arc::default(), count: tokio::sync::watch::Sender::new(0) }
    }
}

impl PermissionDenials {
    pub(super) fn note(&self, event: &Event) {
        let Event::ServerError(error) = event else { return };
        let text = error.to_string();
        if !text.to_lowercase().contains("permissions violation") {
            return;
        }
        let number = *self.count.borrow() + 1;
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push_back(PermissionDenial { number, text });
        if noted.len() > DENIALS {
            noted.pop_front();
        }
        drop(noted);
        self.count.send_replace(number);
    }

    /// Returns the number of denials before a request. Only later ones can be about it.
    ///
    /// Permissions may change while a process runs.
    pub(super) fn mark(&self) -> u64 {
        *self.count.borrow()
    }

    /// Returns a subject that was denied after `mark` and that `is_asked` accepts.
    ///
    /// The server denies an inbox with the first request, permanently. Then no answer can arrive.
    pub(super) fn after(&self, mark: u64, is_asked: impl Fn(&str) -> bool) -> Option<String> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_inbox =
            |denial: &PermissionDenial| denial.text.to_lowercase().contains("subscription to");
        noted.iter().find_map(|denial| {
            let subject = denial.text.split('"').nth(1)?;
            let counts = is_inbox(denial) || (denial.number > mark && is_asked(subject));
            counts.then(|| subject.to_owned())
        })
    }

    /// Waits for `answer`, unless the server denies `subject` first.
    pub(super) async fn or_denied<T>(
        &self,
        subject: &str,
        answer: impl Future<Output = T>,
    ) -> Result<T, JetStreamError> {
        let mark = self.mark();
        let mut count = self.count.subscribe();
        let denied = async {
            loop {
                if let Some(subject) = self.after(mark, |denied| denied == subject) {
                    return subject;
                }
                if count.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        match futures_util::future::select(std::pin::pin!(answer), std::pin::pin!(denied)).await {
            Either::Left((answer, _)) => Ok(answer),
            Either::Right((subject, _)) => Err(JetStreamError::Denied { subject }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_nats::ServerError;

    fn deny(denials: &PermissionDenials, what: &str) {
        let text = format!("Permissions Violation for {what}");
        denials.note(&Event::ServerError(ServerError::Other(text)));
    }

    #[test]
    fn a_denial_counts_only_for_earlier_requests() {
        let denials = PermissionDenials::default();
        deny(&denials, "Publish to \"a.b\"");
        let mark = denials.mark();
        let is_asked = |subject: &str| subject == "a.b";
        assert_eq!(denials.after(mark, is_asked), None);
        assert_eq!(denials.after(0, is_asked).as_deref(), Some("a.b"));
        assert_eq!(denials.after(0, |subject| subject == "a"), None);
        deny(&denials, "Publish to \"a.b\"");
        assert_eq!(denials.after(mark, is_asked).as_deref(), Some("a.b"));
    }

    #[test]
    fn a_denied_inbox_subscription_denies_every_request() {
        let denials = PermissionDenials::default();
        deny(&denials, "Subscription to \"_INBOX.x.*\"");
        assert_eq!(denials.after(denials.mark(), |_| false).as_deref(), Some("_INBOX.x.*"));
    }
}
