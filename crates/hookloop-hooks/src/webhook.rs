//! A webhook: posts the input of a hook and reads its answer from the response.

use std::time::{Duration, Instant};

use hookloop_core::hook_protocol::{ANSWER_MAX, ProcessExit};
use hookloop_http::{HttpClient, NetworkError, RequestLimits};
use serde_json::Value;
use ureq::RequestBuilder;
use ureq::typestate::WithBody;

use crate::hook_outcome::RawHookOutput;

/// The exit code that stands for a response without a success status.
const FAILURE: i32 = 1;

/// Creates a request with a JSON body to `url`.
pub fn post(
    http: &HttpClient,
    url: &str,
    timeout: Duration,
) -> Result<RequestBuilder<WithBody>, NetworkError> {
    let agent = http.agent(url, &RequestLimits::within(timeout))?;
    Ok(agent.post(url).header("content-type", "application/json"))
}

/// Posts `input` to `url` and returns the response.
pub(crate) fn send(
    http: &HttpClient,
    url: &str,
    input: &Value,
    timeout: Duration,
) -> RawHookOutput {
    let begun = Instant::now();
    let said = |ended: ProcessExit, stdout: String, stderr: String| RawHookOutput {
        left_out: Vec::new(),
        both: None,
        quiet_for: Duration::ZERO,
        ended,
        duration: begun.elapsed(),
        stdout_bytes: stdout.len() as u64,
        stderr_bytes: stderr.len() as u64,
        whole: Some(stdout.clone()),
        stdout,
        stderr,
        artifact: None,
    };
    let request = match post(http, url, timeout) {
        Ok(request) => request,
        Err(error) => {
            let why = error.to_string();
            return said(ProcessExit::NotStarted(why.clone()), String::new(), why);
        }
    };
    let failed = |error: &ureq::Error| {
        let why = http.explain(url, error).text();
        let ended = match error {
            ureq::Error::Timeout(_) => ProcessExit::TimedOut,
            _ => ProcessExit::NotStarted(why.clone()),
        };
        said(ended, String::new(), why)
    };
    let mut answer = match request.send(input.to_string()) {
        Ok(answer) => answer,
        Err(error) => return failed(&error),
    };
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(ANSWER_MAX as u64).read_to_vec();
    match body {
        Ok(body) => {
            let body = String::from_utf8_lossy(&body).into_owned();
            match status.is_success() {
                true => said(ProcessExit::Exited(0), body, String::new()),
                false => said(ProcessExit::Exited(FAILURE), body, format!("HTTP status {status}")),
            }
        }
        Err(error) => failed(&error),
    }
}
