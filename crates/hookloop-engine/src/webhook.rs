//! A webhook: what a command reads from standard input is posted, and what comes back is its answer.

use std::time::{Duration, Instant};

use hookloop_core::answer::{ANSWER_MAX, Ended};
use serde_json::Value;
use ureq::typestate::WithBody;

use crate::record::Said;

/// Any status but success is as if a command had ended with this code.
const FAILURE: i32 = 1;

/// A request with JSON to `url`. Redirects are not followed: what the user agreed to is this place.
pub(crate) fn post(url: &str, timeout: Duration) -> ureq::RequestBuilder<WithBody> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .http_status_as_error(false)
        .proxy(None)
        .build()
        .into();
    agent.post(url).header("content-type", "application/json").header("user-agent", "hookloop")
}

/// Posts `input` to `url`.
pub(crate) fn send(url: &str, input: &Value, timeout: Duration) -> Said {
    let begun = Instant::now();
    let answer = post(url, timeout).send(input.to_string());
    let said = |ended: Ended, stdout: String, stderr: String| Said {
        left_out: Vec::new(),
        ended,
        duration: begun.elapsed(),
        stdout_bytes: stdout.len() as u64,
        stderr_bytes: stderr.len() as u64,
        whole: Some(stdout.clone()),
        stdout,
        stderr,
        artifact: None,
    };
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(error) => return said(ended(&error), String::new(), error.to_string()),
    };
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(ANSWER_MAX as u64).read_to_vec();
    match body {
        Ok(body) => {
            let body = String::from_utf8_lossy(&body).into_owned();
            match status.is_success() {
                true => said(Ended::Exited(0), body, String::new()),
                false => said(Ended::Exited(FAILURE), body, format!("HTTP status {status}")),
            }
        }
        Err(error) => said(ended(&error), String::new(), error.to_string()),
    }
}

fn ended(error: &ureq::Error) -> Ended {
    match error {
        ureq::Error::Timeout(_) => Ended::TimedOut,
        error => Ended::NotStarted(error.to_string()),
    }
}
