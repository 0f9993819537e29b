//! Heartbeats as the holders sent them, whether or not a worker received them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use serde_json::Value;

use super::yard::PROJECT;
use crate::history::now_ms;

/// Times of the heartbeats of each claim, by task and epoch.
type Heard = HashMap<(String, u64), Vec<u64>>;

/// Records heartbeats from its creation on.
pub(crate) struct Beats(Arc<Mutex<Heard>>);

impl Beats {
    pub(crate) fn listen(urls: Vec<String>) -> Beats {
        let heard: Arc<Mutex<Heard>> = Arc::default();
        let of_thread = Arc::clone(&heard);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(hear(urls, &of_thread));
        });
        Beats(heard)
    }

    /// Returns the time of the last heartbeat of a claim before `at_ms`.
    pub(crate) fn before(&self, task: &str, epoch: u64, at_ms: u64) -> Option<u64> {
        let heard = self.0.lock().unwrap();
        let beats = heard.get(&(task.to_owned(), epoch))?;
        beats.iter().copied().filter(|beat| *beat <= at_ms).max()
    }
}

async fn hear(urls: Vec<String>, heard: &Mutex<Heard>) {
    // The client reconnects to another server when one fails.
    let Ok(client) = async_nats::connect(urls).await else { return };
    let Ok(mut all) = client.subscribe(format!("hl.pulse.{PROJECT}.*")).await else { return };
    while let Some(message) = all.next().await {
        let task = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
        let said: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
        if let Some(epoch) = said["epoch"].as_u64().filter(|_| !task.starts_with('_')) {
            heard.lock().unwrap().entry((task, epoch)).or_default().push(now_ms());
        }
    }
}
