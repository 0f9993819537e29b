//! `telemetry:` in the user's own file and in a policy. A repository has no such key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{GivenEntry, Located, given};
use crate::telemetry::{TelemetryConfig, TelemetryPolicy, check_endpoint};
use crate::yaml::ConfigComplaint;

const HEADERS_MAX: usize = 32;

/// Export of traces of sessions
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetryEntry {
    /// Whether traces are exported [default: true if the environment or `endpoint` names a collector]. `false` also
    /// overrides the environment.
    enabled: Option<bool>,
    /// URL of a collector for OTLP over HTTP, such as `http://127.0.0.1:4318` [default: none]
    endpoint: Option<Located<String>>,
    /// Headers of requests to the collector, by name: a text, `{env: NAME}` or `{file: PATH}` each [default: none]
    #[serde(default)]
    headers: BTreeMap<String, Located<GivenEntry>>,
    /// Service name in traces [default: `hookloop`]
    service_name: Option<String>,
    /// PEM file of certificates to accept instead of the system's [default: the system's certificates]
    ca: Option<PathBuf>,
    /// Whether traces contain prompts, messages of agents and reasons [default: false]
    #[serde(default)]
    content: bool,
}

impl TelemetryEntry {
    pub(crate) fn read(self, base: &Path) -> Result<TelemetryConfig, ConfigComplaint> {
        let mut headers = Vec::new();
        for (name, value) in self.headers {
            if headers.len() == HEADERS_MAX {
                return Err(ConfigComplaint::new(
                    value.at,
                    format!("more than {HEADERS_MAX} headers"),
                ));
            }
            headers.push((name, given(value, base)?));
        }
        Ok(TelemetryConfig {
            is_off: self.enabled == Some(false),
            endpoint: checked(self.endpoint)?,
            headers,
            service_name: self.service_name,
            ca: self.ca.map(|path| base.join(path)),
            content: self.content,
        })
    }
}

/// Export of traces for all users
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetryOrder {
    /// Whether traces may be exported [default: true]
    enabled: Option<bool>,
    /// URL of the only collector that traces are exported to [default: the user's choice]
    endpoint: Option<Located<String>>,
    /// Whether traces may contain prompts, messages of agents and reasons [default: true]
    content: Option<bool>,
}

impl TelemetryOrder {
    pub(crate) fn read(self) -> Result<TelemetryPolicy, ConfigComplaint> {
        Ok(TelemetryPolicy {
            is_off: self.enabled == Some(false),
            endpoint: checked(self.endpoint)?,
            no_content: self.content == Some(false),
        })
    }
}

fn checked(endpoint: Option<Located<String>>) -> Result<Option<String>, ConfigComplaint> {
    let Some(Located { value, at }) = endpoint else { return Ok(None) };
    match check_endpoint(&value) {
        Ok(()) => Ok(Some(value)),
        Err(why) => Err(ConfigComplaint::new(at, why)),
    }
}
