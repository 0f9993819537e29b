//! The wire format of spans (OTLP over HTTP, protobuf), and the collector's response.

use std::fmt;
use std::time::Duration;

use hookloop_http::{HttpClient, RequestLimits};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use ureq::http::{HeaderName, HeaderValue};

use super::attributes::text_value;
use super::settings::{ExportMisfit, ExportTarget};

const SCOPE: &str = "hookloop";
/// The semantic conventions that attribute names follow.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";
/// Longest response body that is read, in bytes.
const ANSWER_MAX: u64 = 64 * 1024;
/// Longest pause that a collector can request.
const AFTER_MAX: Duration = Duration::from_secs(5 * 60);

/// A client of a collector.
pub(super) struct OtlpCollector {
    agent: ureq::Agent,
    http: HttpClient,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    resource: Resource,
}

impl fmt::Debug for OtlpCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector at {}", self.url)
    }
}

/// The reason why spans were not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OtlpFailure {
    /// A later attempt may succeed, not before `after` if the collector set it.
    Later { why: String, after: Option<Duration> },
    /// The collector rejects these spans.
    Never { why: String },
}

impl OtlpFailure {
    pub(super) fn why(&self) -> &str {
        match self {
            OtlpFailure::Later { why, .. } | OtlpFailure::Never { why } => why,
        }
    }
}

impl OtlpCollector {
    pub(super) fn new(target: &ExportTarget) -> Result<OtlpCollector, ExportMisfit> {
        let mut headers = Vec::new();
        for (name, value) in &target.headers {
            let bad = || ExportMisfit(format!("`{name}` is no header that can be sent"));
            let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.push((name.parse().map_err(|_| bad())?, value));
        }
        let limits = RequestLimits { only_ca_file: target.ca.clone(), ..RequestLimits::default() };
        let agent = target.http.agent(&target.url, &limits);
        let agent = agent.map_err(|error| ExportMisfit(error.to_string()))?;
        let named = |(key, value): &(String, String)| text_value(key, value.clone());
        let attributes = target.resource.iter().map(named).collect();
        let resource = Resource { attributes, ..Resource::default() };
        let (http, url) = (target.http.clone(), target.url.clone());
        Ok(OtlpCollector { agent, http, url, headers, resource })
    }

    /// Sends spans. Returns the number that the collector accepted.
    pub(super) fn send(&self, spans: &[Span], timeout: Duration) -> Result<usize, OtlpFailure> {
        let body = self.request(spans).encode_to_vec();
        let mut request = self.agent.post(&self.url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request
            .header("content-type", "application/x-protobuf")
            .header("user-agent", concat!("hookloop/", env!("CARGO_PKG_VERSION")))
            .config()
            .timeout_global(Some(timeout))
            .build();
        let later = |why: String| OtlpFailure::Later { why, after: None };
        let answer = request.send(&body[..]);
        let mut answer =
            answer.map_err(|error| later(self.http.explain(&self.url, &error).text()))?;
        let status = answer.status();
        if !status.is_success() {
            let after = answer.headers().get("retry-after");
            let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
            let after = after.map(|seconds| Duration::from_secs(seconds).min(AFTER_MAX));
            let why = format!("HTTP status {status}");
            return Err(match status.as_u16() {
                429 | 502 | 503 | 504 => OtlpFailure::Later { why, after },
                _ => OtlpFailure::Never { why },
            });
        }
        // If the body cannot be read, all spans count as accepted.
        let body = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_vec();
        let answer = body.ok().and_then(|body| ExportTraceServiceResponse::decode(&body[..]).ok());
        let partial = answer.and_then(|answer| answer.partial_success);
        let rejected = partial.map_or(0, |partial| partial.rejected_spans.max(0) as usize);
        Ok(spans.len().saturating_sub(rejected))
    }

    fn request(&self, spans: &[Span]) -> ExportTraceServiceRequest {
        let scope = InstrumentationScope {
            name: SCOPE.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let schema_url = SCHEMA.to_owned();
        let scope_spans = vec![ScopeSpans {
            scope: Some(scope),
            spans: spans.to_vec(),
            schema_url: schema_url.clone(),
        }];
        let resource = Some(self.resource.clone());
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans { resource, scope_spans, schema_url }],
        }
    }
}
