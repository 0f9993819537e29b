//! The destination of spans: from the policy, else the environment, else the user's file.
//!
//! A repository never sets it: a clone must not send a user's activity anywhere.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use hookloop_config::located::PolicyValue;
use hookloop_config::policy::PolicySet;
use hookloop_config::secret_text::SecretText;
use hookloop_config::telemetry::{TelemetryConfig, TelemetryPolicy, check_endpoint};
use hookloop_config::user::UserConfig;
use hookloop_core::trace::TraceParent;
use hookloop_http::HttpClient;
use percent_encoding::percent_decode_str;

/// The path for traces, below an endpoint for all signals.
const TRACES: &str = "v1/traces";
const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// Largest number of pairs in a variable.
const PAIRS_MAX: usize = 64;

/// The destination of spans, and the settings of its requests.
#[derive(Clone, Debug)]
pub struct ExportTarget {
    pub url: String,
    pub(super) headers: Vec<(String, SecretText)>,
    pub(super) timeout: Duration,
    pub(super) ca: Option<PathBuf>,
    /// The client that sends the requests.
    pub(super) http: HttpClient,
    /// Attributes of the sender.
    pub(super) resource: Vec<(String, String)>,
    /// Whether prompts, messages and reasons are sent, too.
    pub(super) content: bool,
}

/// An error in the telemetry settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExportMisfit(pub(super) String);

/// Returns the parent span of this process, from `TRACEPARENT`.
pub fn parent(environment: &[(OsString, OsString)]) -> Option<TraceParent> {
    OtelEnvironment(environment).get("TRACEPARENT")?.parse().ok()
}

impl ExportTarget {
    /// Returns the destination of this user's spans, or `None` if traces are off.
    pub fn of(
        user: &UserConfig,
        environment: &[(OsString, OsString)],
        machine: &str,
    ) -> Result<Option<ExportTarget>, ExportMisfit> {
        let (around, telemetry, order) =
            (OtelEnvironment(environment), &user.telemetry, strictest(&user.policy));
        let exporter = around.get("OTEL_TRACES_EXPORTER");
        let is_off = order.is_off
            || telemetry.is_off
            || around
                .get("OTEL_SDK_DISABLED")
                .is_some_and(|word| word.eq_ignore_ascii_case("true"))
            || exporter.is_some_and(|list| !list.split(',').any(|one| one.trim() == "otlp"));
        if is_off {
            return Ok(None);
        }
        let Some(url) = url(&order, telemetry, &around)? else { return Ok(None) };
        Ok(Some(ExportTarget {
            url,
            headers: headers(telemetry, &around)?,
            timeout: timeout(&around)?,
            ca: around.traces("CERTIFICATE").map(PathBuf::from).or_else(|| telemetry.ca.clone()),
            http: HttpClient::new(environment, &user.network),
            resource: resource(telemetry, &around, machine)?,
            content: telemetry.content && !order.no_content,
        }))
    }
}

/// Combines all policies.
fn strictest(policies: &PolicySet) -> TelemetryPolicy {
    let said = policies.list().iter().filter_map(|policy| policy.telemetry.as_ref());
    said.fold(TelemetryPolicy::default(), |all, PolicyValue { value, .. }| TelemetryPolicy {
        is_off: all.is_off || value.is_off,
        endpoint: all.endpoint.or_else(|| value.endpoint.clone()),
        no_content: all.no_content || value.no_content,
    })
}

/// The environment. As OpenTelemetry specifies, an empty variable counts as unset.
struct OtelEnvironment<'e>(&'e [(OsString, OsString)]);

impl<'e> OtelEnvironment<'e> {
    fn get(&self, name: &str) -> Option<&'e str> {
        let found = self.0.iter().find(|(known, _)| known == name)?;
        found.1.to_str().map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns the variable for traces, else the one for all signals.
    fn traces(&self, what: &str) -> Option<&'e str> {
        let own = self.get(&format!("OTEL_EXPORTER_OTLP_TRACES_{what}"));
        own.or_else(|| self.get(&format!("OTEL_EXPORTER_OTLP_{what}")))
    }
}

fn url(
    order: &TelemetryPolicy,
    telemetry: &TelemetryConfig,
    around: &OtelEnvironment<'_>,
) -> Result<Option<String>, ExportMisfit> {
    if let Some(endpoint) = &order.endpoint {
        return Ok(Some(below(endpoint)));
    }
    let exact = around.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let whole = around.get("OTEL_EXPORTER_OTLP_ENDPOINT");
    let (url, name) = match (exact, whole) {
        (Some(exact), _) => (exact.to_owned(), "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        (None, Some(whole)) => (below(whole), "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (None, None) => return Ok(telemetry.endpoint.as_deref().map(below)),
    };
    check_endpoint(&url).map_err(|why| ExportMisfit(format!("{name}: {why}")))?;
    match around.traces("PROTOCOL") {
        None | Some("http/protobuf") => Ok(Some(url)),
        Some(other) => Err(ExportMisfit(format!(
            "OTEL_EXPORTER_OTLP_PROTOCOL is {other}, and hookloop speaks http/protobuf: \
             set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
        ))),
    }
}

/// Returns the URL for traces below `endpoint`.
fn below(endpoint: &str) -> String {
    format!("{}/{TRACES}", endpoint.trim_end_matches('/'))
}

fn headers(
    telemetry: &TelemetryConfig,
    around: &OtelEnvironment<'_>,
) -> Result<Vec<(String, SecretText)>, ExportMisfit> {
    let mut headers: Vec<(String, SecretText)> = Vec::new();
    for (name, given) in &telemetry.headers {
        let found = given.find(around.0);
        let found = found.map_err(|why| ExportMisfit(format!("the header `{name}`: {why}")))?;
        headers.push((name.to_ascii_lowercase(), found));
    }
    for (name, value) in pairs("OTEL_EXPORTER_OTLP_HEADERS", around.traces("HEADERS"))? {
        let name = name.to_ascii_lowercase();
        headers.retain(|(known, _)| *known != name);
        headers.push((name, SecretText::from(value)));
    }
    Ok(headers)
}

fn timeout(around: &OtelEnvironment<'_>) -> Result<Duration, ExportMisfit> {
    let Some(text) = around.traces("TIMEOUT") else { return Ok(TIMEOUT) };
    match text.parse() {
        Ok(ms @ 1..) => Ok(Duration::from_millis(ms).min(TIMEOUT_MAX)),
        _ => Err(ExportMisfit(
            "OTEL_EXPORTER_OTLP_TIMEOUT is not a number of milliseconds".to_owned(),
        )),
    }
}

fn resource(
    telemetry: &TelemetryConfig,
    around: &OtelEnvironment<'_>,
    machine: &str,
) -> Result<Vec<(String, String)>, ExportMisfit> {
    let named = "OTEL_RESOURCE_ATTRIBUTES";
    let mut resource = pairs(named, around.get(named))?;
    let has =
        |resource: &[(String, String)], key: &str| resource.iter().any(|(name, _)| name == key);
    if let Some(name) = around.get("OTEL_SERVICE_NAME") {
        resource.retain(|(key, _)| key != "service.name");
        resource.push(("service.name".to_owned(), name.to_owned()));
    }
    let name = telemetry.service_name.clone().unwrap_or_else(|| "hookloop".to_owned());
    for (key, value) in [
        ("service.name", name),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("host.name", machine.to_owned()),
        ("service.instance.id", format!("{machine}:{}", std::process::id())),
    ] {
        if !has(&resource, key) {
            resource.push((key.to_owned(), value));
        }
    }
    Ok(resource)
}

/// Parses `a=b,c=d` with percent-encoded values, as in W3C Baggage.
fn pairs(name: &str, text: Option<&str>) -> Result<Vec<(String, String)>, ExportMisfit> {
    let wrong = || ExportMisfit(format!("{name} is not a list such as a=b,c=d"));
    let mut pairs = Vec::new();
    let list = text.unwrap_or_default().split(',').map(str::trim).filter(|pair| !pair.is_empty());
    for pair in list {
        let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
        let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| wrong())?;
        let key = key.trim();
        if key.is_empty() || pairs.len() == PAIRS_MAX {
            return Err(wrong());
        }
        pairs.push((key.to_owned(), value.into_owned()));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use hookloop_config::secret_text::SecretSource;

    use super::*;

    fn target(
        telemetry: TelemetryConfig,
        environment: &[(&str, &str)],
    ) -> Result<Option<ExportTarget>, ExportMisfit> {
        let mut user = UserConfig::default();
        user.telemetry = telemetry;
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        ExportTarget::of(&user, &environment, "here")
    }

    fn url(telemetry: TelemetryConfig, environment: &[(&str, &str)]) -> Option<String> {
        target(telemetry, environment).unwrap().map(|target| target.url)
    }

    fn to(endpoint: &str) -> TelemetryConfig {
        TelemetryConfig { endpoint: Some(endpoint.to_owned()), ..TelemetryConfig::default() }
    }

    #[test]
    fn no_telemetry_is_sent_without_an_endpoint_or_when_disabled() {
        assert_eq!(url(TelemetryConfig::default(), &[]), None);
        assert_eq!(url(TelemetryConfig { is_off: true, ..to("http://a") }, &[]), None);
        let a = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/");
        for off in [
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_TRACES_EXPORTER", "console"),
        ] {
            assert_eq!(url(to("http://b"), &[a, off]), None, "{off:?}");
        }
    }

    #[test]
    fn the_environment_takes_precedence_over_the_file() {
        let a = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/");
        let exact = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://t/here");
        assert_eq!(url(to("http://b/x"), &[]).unwrap(), "http://b/x/v1/traces");
        assert_eq!(url(to("http://b/x"), &[a]).unwrap(), "http://a:4318/v1/traces");
        assert_eq!(url(to("http://b/x"), &[a, exact]).unwrap(), "https://t/here");
        let empty = ("OTEL_EXPORTER_OTLP_ENDPOINT", " ");
        assert_eq!(url(to("http://b"), &[empty]).unwrap(), "http://b/v1/traces");
    }

    #[test]
    fn invalid_telemetry_settings_are_reported_without_secrets() {
        let a = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/");
        for (bad, word) in [
            (("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"), "not a URL"),
            (("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hunter2@a"), "use headers"),
            (("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), "speaks http/protobuf"),
            (("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"), "not a list"),
            (("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"), "milliseconds"),
            (("OTEL_RESOURCE_ATTRIBUTES", "a"), "not a list"),
        ] {
            let said = target(TelemetryConfig::default(), &[bad, a]).unwrap_err().to_string();
            assert!(said.contains(word) && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn headers_and_resources_of_file_and_environment_are_merged() {
        let telemetry = TelemetryConfig {
            headers: vec![
                ("X-Tenant".to_owned(), SecretSource::Text("blue-team".to_owned().into())),
                ("authorization".to_owned(), SecretSource::Variable("COLLECTOR".to_owned())),
            ],
            ..to("http://b")
        };
        let environment = [
            ("COLLECTOR", "Bearer from-a-variable"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=red%20team"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=core, service.name=other"),
            ("OTEL_SERVICE_NAME", "loops"),
        ];
        let target = target(telemetry, &environment).unwrap().unwrap();
        let headers: Vec<(&str, &str)> =
            target.headers.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
        assert_eq!(
            headers,
            [("authorization", "Bearer from-a-variable"), ("x-tenant", "red team")]
        );
        let named = |key: &str| target.resource.iter().find(|(name, _)| name == key).unwrap();
        assert_eq!(named("service.name").1, "loops");
        assert_eq!((named("team").1.as_str(), named("host.name").1.as_str()), ("core", "here"));
        assert!(!format!("{target:?}").contains("from-a-variable"), "{target:?}");
    }
}
