//! `telemetry:` in the user's own file and in a policy. A repository has no such key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{GivenEntry, Located, given};
use crate::telemetry::{TelemetryPolicy, TelemetryWish, check_endpoint};
use crate::yaml::ConfigComplaint;

const HEADERS_MAX: usize = 32;

/// Where traces of sessions go.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetryEntry {
    /// `false`: nothing is sent, whatever the environment says.
    enabled: Option<bool>,
    /// A collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`.
    endpoint: Option<Located<String>>,
    /// What it wants to be shown: a text, `{env: NAME}` or `{file: PATH}` for each.
    #[serde(default)]
    headers: BTreeMap<String, Located<GivenEntry>>,
    /// What the sender is called; `hookloop` if it is not given.
    service_name: Option<String>,
    /// A file with the certificates to trust, instead of the usual ones.
    ca: Option<PathBuf>,
    /// Whether prompts, messages of agents and reasons are sent, too.
    #[serde(default)]
    content: bool,
}

impl TelemetryEntry {
    pub(crate) fn read(self, base: &Path) -> Result<TelemetryWish, ConfigComplaint> {
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
        Ok(TelemetryWish {
            is_off: self.enabled == Some(false),
            endpoint: checked(self.endpoint)?,
            headers,
            service_name: self.service_name,
            ca: self.ca.map(|path| base.join(path)),
            content: self.content,
        })
    }
}

/// What is decided about traces for all users.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TelemetryOrder {
    /// `false`: nothing is sent.
    enabled: Option<bool>,
    /// The only collector that anything is sent to, and to which it is.
    endpoint: Option<Located<String>>,
    /// `false`: prompts, messages of agents and reasons are not sent.
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
