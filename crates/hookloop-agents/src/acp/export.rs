//! The usage of a conversation with opencode, from opencode's own record.
//!
//! opencode reports only the tokens of the last request of a turn. `opencode export` prints all messages of a
//! conversation with the usage of each request.

use std::cell::RefCell;
use std::ffi::OsString;
use std::time::Duration;

use hookloop_core::session::{TurnResult, Usage};
use hookloop_process::{ExitReason, Job, OutputFilter, OutputStream};
use serde_json::Value;

use super::AcpTurn;
use crate::{TurnReport, environment};

/// How long the export of a conversation may take.
const EXPORT_WITHIN: Duration = Duration::from_secs(60);
/// The largest export that is read.
const EXPORT_MAX: usize = 64 * 1024 * 1024;
const MICROS: f64 = 1_000_000.0;

impl AcpTurn<'_> {
    /// Replaces the usage of a turn by the sum over its requests, if the agent can export it. If the export fails, the
    /// usage is partial.
    pub(super) fn count_requests(&self, report: &mut TurnReport) {
        let export = self.settings.known.and_then(|known| known.export);
        let (Some(export), Some(id)) = (export, report.conversation.clone()) else { return };
        if report.result == TurnResult::Cancelled {
            return;
        }
        match self.exported(export, &id) {
            Some(total) => {
                let talk = self.order.conversation.filter(|talk| talk.id == id);
                let before = talk.map_or_else(Usage::default, |talk| talk.usage);
                report.usage = total.since(before);
                report.is_unpriced = report.usage.cost_micros == 0;
            }
            None => report.is_partial = true,
        }
    }

    /// Returns the usage of all requests of a conversation.
    fn exported(&self, export: &str, id: &str) -> Option<Usage> {
        let program = self.settings.argv.first()?;
        // Another program in its place may not understand the command.
        if self.settings.argv.get(1).is_none_or(|word| word != "acp") {
            return None;
        }
        let argv = vec![program.clone(), OsString::from(export), OsString::from(id)];
        let whole = RefCell::new(Vec::new());
        let filter = |stream: OutputStream| -> OutputFilter<'_> {
            let whole = &whole;
            // Nothing of the export is stored: the conversation may hold secrets.
            Box::new(move |piece, _| {
                let mut whole = whole.borrow_mut();
                if stream == OutputStream::Stdout && whole.len() + piece.len() <= EXPORT_MAX {
                    whole.extend_from_slice(piece);
                }
            })
        };
        let ran = self.runner.keepers().run(Job {
            env: environment(self.runner, self.order, &self.settings.env, &self.settings.named),
            cancel: Some(self.order.cancel),
            filter: Some(&filter),
            ..Job::new(argv, self.runner.root().to_owned(), EXPORT_WITHIN)
        });
        let unknown = |why: &dyn std::fmt::Display| {
            tracing::warn!(%why, "the usage of a conversation is unknown: its export failed");
        };
        match ran.inspect_err(|error| unknown(error)).ok()?.exit {
            ExitReason::Exited(0) => {}
            exit => {
                unknown(&format!("{exit:?}"));
                return None;
            }
        }
        let whole = whole.into_inner();
        let read = serde_json::from_slice(&whole).inspect_err(|error| unknown(error));
        sum(&read.ok()?)
    }
}

/// Returns the sum over all requests of an exported conversation.
fn sum(exported: &Value) -> Option<Usage> {
    let mut sum = Usage::default();
    for message in exported["messages"].as_array()? {
        let info = &message["info"];
        if info["role"] != "assistant" {
            continue;
        }
        let count = |path: &str| info["tokens"].pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let cached = count("/cache/read");
        let read = count("/input").saturating_add(cached).saturating_add(count("/cache/write"));
        let dollars = info["cost"].as_f64().unwrap_or(0.0);
        sum.add(Usage {
            input_tokens: read,
            cached_tokens: cached,
            output_tokens: count("/output").saturating_add(count("/reasoning")),
            cost_micros: (dollars * MICROS).round() as u64,
        });
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_of_all_requests_are_summed() {
        let request = |input: u64, cost: f64| {
            let tokens = json!({
                "input": input, "output": 10, "reasoning": 1, "cache": { "read": 5, "write": 2 },
            });
            json!({ "info": { "role": "assistant", "tokens": tokens, "cost": cost } })
        };
        let user = json!({ "info": { "role": "user" } });
        let exported = json!({ "messages": [user, request(100, 0.25), request(200, 0.5)] });
        let expected =
            Usage { input_tokens: 314, cached_tokens: 10, output_tokens: 22, cost_micros: 750_000 };
        assert_eq!(sum(&exported), Some(expected));
        assert_eq!(sum(&json!({ "error": "no such session" })), None);
    }

    #[test]
    fn token_counts_saturate() {
        let tokens = json!({ "input": u64::MAX, "output": u64::MAX, "reasoning": 1 });
        let request = json!({ "info": { "role": "assistant", "tokens": tokens } });
        let exported = json!({ "messages": [request, request] });
        let usage = sum(&exported).unwrap();
        assert_eq!((usage.input_tokens, usage.tokens()), (u64::MAX, u64::MAX));
    }
}
