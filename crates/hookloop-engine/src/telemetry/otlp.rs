//! Spans on the wire (OTLP over HTTP, protobuf), and what a collector answers.

use std::fmt;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use ureq::http::{HeaderName, HeaderValue};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::attributes::text_value;
use super::settings::{Misfit, Target};

const SCOPE: &str = "hookloop";
/// The conventions that attributes are named after.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.41.0";
/// The longest answer that is read.
const ANSWER_MAX: u64 = 64 * 1024;
/// The longest pause that a collector may ask for.
const AFTER_MAX: Duration = Duration::from_secs(5 * 60);

/// A way to a collector.
pub(super) struct Collector {
    agent: ureq::Agent,
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    resource: Resource,
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector at {}", self.url)
    }
}

/// Why spans did not get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// They may another time: not before this, if that was told.
    Later { why: String, after: Option<Duration> },
    /// The collector does not want them.
    Never { why: String },
}

impl Failure {
    pub(super) fn why(&self) -> &str {
        match self {
            Failure::Later { why, .. } | Failure::Never { why } => why,
        }
    }
}

impl Collector {
    pub(super) fn new(target: &Target) -> Result<Collector, Misfit> {
        let mut headers = Vec::new();
        for (name, value) in &target.headers {
            let bad = || Misfit(format!("`{name}` is no header that can be sent"));
            let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.push((name.parse().map_err(|_| bad())?, value));
        }
        let mut config =
            ureq::Agent::config_builder().max_redirects(0).http_status_as_error(false).proxy(None);
        if let Some(path) = &target.ca {
            config = config.tls_config(trusting(path)?);
        }
        let named = |(key, value): &(String, String)| text_value(key, value.clone());
        let attributes = target.resource.iter().map(named).collect();
        let resource = Resource { attributes, ..Resource::default() };
        Ok(Collector { agent: config.build().into(), url: target.url.clone(), headers, resource })
    }

    /// Sends spans; answers how many the collector took.
    pub(super) fn send(&self, spans: &[Span], timeout: Duration) -> Result<usize, Failure> {
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
        let later = |why: String| Failure::Later { why, after: None };
        let mut answer = request.send(&body[..]).map_err(|error| later(error.to_string()))?;
        let status = answer.status();
        if !status.is_success() {
            let after = answer.headers().get("retry-after");
            let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
            let after = after.map(|seconds| Duration::from_secs(seconds).min(AFTER_MAX));
            let why = format!("HTTP status {status}");
            return Err(match status.as_u16() {
                429 | 502 | 503 | 504 => Failure::Later { why, after },
                _ => Failure::Never { why },
            });
        }
        // What can't be read says nothing against what was sent.
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

/// Trust in the certificates of a file, and in no others.
fn trusting(path: &std::path::Path) -> Result<TlsConfig, Misfit> {
    let wrong = |why: String| Misfit(format!("{}: {why}", path.display()));
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(found_one) = item.map_err(|error| wrong(error.to_string()))? {
            found.push(found_one);
        }
    }
    match found.is_empty() {
        true => Err(wrong("there is no certificate in it".to_owned())),
        false => Ok(TlsConfig::builder().root_certs(RootCerts::from(found)).build()),
    }
}
