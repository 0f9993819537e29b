//! Checks of a server before it is trusted with a log.
//!
//! With the server's defaults a power cut loses whole streams, because acknowledged messages are
//! not on disk yet. The version, the number of replicas and the syncing are checked before the
//! first write. They are checked again when the connection leads to another server or the check is
//! old.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, RequestError};
use async_nats::jetstream::stream::{Config, Info, StorageType};
use async_nats::jetstream::{ErrorCode, response::Response};
use hookloop_core::store_config::NatsDurability;
use hookloop_http::{HttpClient, RequestLimits};
use serde::{Deserialize, Serialize};

use super::client::{JetStreamLog, LogClient};
use super::connect;
use super::error::JetStreamError;
use super::layout::REPLICAS;
use super::retry::RetryWindow;
use super::unsafe_server::{UnsafeServer, VERSION_MIN};

/// Default distance from a server's client port to its monitoring port, such as 4222 and 8222.
pub const MONITOR_PORT_ABOVE: u16 = 4000;
/// Time for which creating a stream is retried while a server of the cluster is offline.
const PLACEMENT_WAIT: Duration = Duration::from_secs(20);
/// The reason that a cluster gives for a known server that does not answer.
const OFFLINE: &str = "offline";
const MONITOR_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest answer of a monitor that is read.
const MONITOR_MAX_BYTES: u64 = 1024 * 1024;

/// The result of the check. It is stored, so that not every command has to check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStanding {
    /// The server that was checked. A server that restarts has a new id.
    pub server: String,
    pub version: String,
    pub copies: usize,
    /// The creation time of the stream. Another time means another log.
    pub created: String,
    /// The last place in the stream, according to its leader.
    pub last: u64,
    /// Problems that `durability: unsafe` accepted.
    pub accepted: Vec<String>,
    /// Messages that were removed from the stream, of this project or of others.
    #[serde(default)]
    pub removed: u64,
    /// The server requires no credentials.
    #[serde(default)]
    pub lets_anyone_in: bool,
    /// The stream's messages can be purged, and this user may not change that.
    #[serde(default)]
    pub can_be_purged: bool,
}

/// Checks the servers and sets up the streams of a project.
pub trait ServerSafety {
    /// Creates missing streams, and refuses servers that could lose acknowledged events.
    fn prepare(&self) -> Result<ServerStanding, JetStreamError>;

    /// Whether `standing` is about the server of this connection.
    fn is_of_this_server(&self, standing: &ServerStanding) -> bool;
}

impl ServerSafety for JetStreamLog {
    fn prepare(&self) -> Result<ServerStanding, JetStreamError> {
        let info = self.0.client.server_info();
        let mut doubts = Vec::new();
        if !is_new_enough(&info.version) {
            doubts.push(UnsafeServer::OldServer { found: info.version.clone() });
        }
        if !info.jetstream {
            return Err(UnsafeServer::NoJetStream { server: info.server_name }.into());
        }
        let is_cluster = info.cluster.is_some();
        let wanted = if is_cluster { REPLICAS } else { 1 };
        let mut events = None;
        let mut can_be_purged = false;
        for config in self.0.layout.streams(wanted) {
            let mut found = self.stream(&config)?;
            if config.deny_purge && !found.config.deny_purge {
                can_be_purged = !self.deny_purge(&mut found)?;
            }
            doubts.extend(judge(&config, &found));
            events.get_or_insert(found);
        }
        // Events in the stream show that its servers were checked before. A server that does not
        // answer now may be restarting.
        let has_events = events.as_ref().is_some_and(|info| info.state.last_sequence > 0);
        let is_patient = has_events && self.0.options.access.durability == NatsDurability::Safe;
        let patience =
            if is_patient { RetryWindow::new() } else { RetryWindow::of(Duration::ZERO) };
        doubts.extend(self.ask_monitors(patience));
        let (created, copies, last, removed) = match events {
            Some(info) => {
                let Info { created, config, state, .. } = &info;
                (created.to_string(), config.num_replicas, state.last_sequence, removed(&info))
            }
            None => (String::new(), wanted, 0, 0),
        };
        let accepted = match (self.0.options.access.durability, doubts.first()) {
            (NatsDurability::Safe, Some(doubt)) => return Err(doubt.clone().into()),
            _ => doubts.iter().map(UnsafeServer::to_string).collect(),
        };
        Ok(ServerStanding {
            server: info.server_id,
            version: info.version,
            copies,
            created,
            last,
            accepted,
            removed,
            lets_anyone_in: !info.auth_required,
            can_be_purged,
        })
    }

    fn is_of_this_server(&self, standing: &ServerStanding) -> bool {
        self.0.client.server_info().server_id == standing.server
    }
}

impl LogClient {
    /// Requests the stream's state from its leader, once.
    async fn stream_info(
        &self,
        stream: &str,
    ) -> Result<Result<Response<Info>, RequestError>, JetStreamError> {
        let subject = format!("STREAM.INFO.{stream}");
        let asked = self.context.request(subject.clone(), &());
        self.denials.or_denied(&format!("$JS.API.{subject}"), asked).await
    }

    /// Returns the last place of the project according to the leader, if the leader answers now.
    ///
    /// Without permission for messages, the state of the whole stream shows a purge.
    pub(super) async fn last_by_leader_of_all(&self) -> Result<Option<u64>, JetStreamError> {
        match self.stream_info(&self.layout.stream()).await? {
            Ok(Response::Ok(Info { state, .. })) => {
                match self.last_by_leader(&self.layout.all()).await? {
                    Some(last) => Ok(Some(last)),
                    None if state.messages == 0 => Ok(Some(0)),
                    None => Ok(Some(state.last_sequence)),
                }
            }
            Ok(Response::Err { error }) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                Ok(Some(0))
            }
            _ => Ok(None),
        }
    }

    /// Returns the number of removed messages. Every place up to the last one once had a message.
    pub(super) async fn removed_from_stream(&self) -> Result<u64, JetStreamError> {
        match self.stream_info(&self.layout.stream()).await? {
            Ok(Response::Ok(info)) => Ok(removed(&info)),
            _ => Err(JetStreamError::Answer("the stream's leader can't be asked now".to_owned())),
        }
    }
}

impl JetStreamLog {
    /// Returns the stream, and creates it if the cluster reports that it does not exist.
    ///
    /// A missing answer, as during an election, is not such a report.
    fn stream(&self, config: &Config) -> Result<Info, JetStreamError> {
        self.run(async {
            let mut patience = RetryWindow::new();
            let mut placement = RetryWindow::of(PLACEMENT_WAIT);
            loop {
                let reason = match self.0.stream_info(&config.name).await? {
                    Ok(Response::Ok(info)) => return Ok(info),
                    Ok(Response::Err { error })
                        if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                    {
                        match self.create(config).await {
                            Ok(Some(info)) => return Ok(info),
                            Ok(None) => "it was made by someone else".to_owned(),
                            Err(error) if !is_for_now(&error) => return Err(error),
                            // A starting server is offline until the cluster has had contact with
                            // it.
                            Err(error) => {
                                match placement.pause(&config.name, String::new()).await {
                                    Ok(()) => continue,
                                    Err(_) => return Err(error),
                                }
                            }
                        }
                    }
                    Ok(Response::Err { error }) => error.to_string(),
                    Err(error) => error.to_string(),
                };
                let subject = format!("$JS.API.STREAM.INFO.{}", config.name);
                patience.pause(&subject, reason).await?;
            }
        })
    }

    /// Changes a stream of an earlier version so that it cannot be purged. Returns the result.
    fn deny_purge(&self, found: &mut Info) -> Result<bool, JetStreamError> {
        let config = Config { deny_purge: true, deny_delete: true, ..found.config.clone() };
        let subject = format!("$JS.API.STREAM.UPDATE.{}", config.name);
        let updated = self.run(async {
            let updated = self.0.context.update_stream(&config);
            self.0.denials.or_denied(&subject, updated).await
        });
        match updated {
            Ok(Ok(info)) => {
                *found = info;
                Ok(found.config.deny_purge)
            }
            // The stream stays unchanged if this user may not change it, or the server cannot now.
            Ok(Err(_)) | Err(JetStreamError::Denied { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates a stream. Returns `None` if its state must be read again.
    async fn create(&self, config: &Config) -> Result<Option<Info>, JetStreamError> {
        let stream = || config.name.clone();
        let subject = format!("$JS.API.STREAM.CREATE.{}", config.name);
        let made = self.0.context.create_stream(config.clone());
        match self.0.denials.or_denied(&subject, made).await? {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) => match error.kind() {
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::CLUSTER_NO_PEERS =>
                {
                    let (wanted, reason) = (config.num_replicas, error.to_string());
                    Err(UnsafeServer::FewServers { stream: stream(), wanted, reason }.into())
                }
                CreateStreamErrorKind::JetStream(error)
                    if error.error_code() != ErrorCode::STREAM_NAME_EXIST =>
                {
                    let (code, description) = (error.error_code().0, error.to_string());
                    Err(JetStreamError::Refused { code, description })
                }
                _ => Ok(None),
            },
        }
    }

    /// Checks that every server syncs.
    fn ask_monitors(&self, mut patience: RetryWindow) -> Option<UnsafeServer> {
        let monitors = match &self.0.options.access.monitoring_urls {
            given if !given.is_empty() => given.clone(),
            _ => self.guess_monitors(),
        };
        loop {
            let (doubt, is_away) = self.ask_all(&monitors);
            let mut wait = || self.run(patience.pause("monitors", String::new()));
            if doubt.is_none() || !is_away || wait().is_err() {
                return doubt;
            }
        }
    }

    /// Returns the first problem that these monitors report, and whether an absent server may cause
    /// it.
    fn ask_all(&self, monitors: &[String]) -> (Option<UnsafeServer>, bool) {
        let (mut synced, mut servers, mut reason) = (BTreeSet::new(), 1, None);
        for monitor in monitors {
            match ask_monitor(&self.0.options.http, monitor) {
                Ok(jsz) if !jsz.config.sync_always => {
                    return (Some(UnsafeServer::NotSynced { server: monitor.clone() }), false);
                }
                Ok(jsz) => {
                    synced.insert(jsz.server_id);
                    servers = servers.max(jsz.meta_cluster.map_or(1, |meta| meta.cluster_size));
                }
                Err(error) => reason = Some(format!("{monitor}: {error}")),
            }
        }
        let missing = servers.saturating_sub(synced.len());
        let is_away = !synced.is_empty() && reason.is_some();
        let doubt = (missing > 0).then(|| UnsafeServer::NotShown {
            missing,
            servers,
            reason: reason.unwrap_or_else(|| "no monitor of theirs is known".to_owned()),
        });
        (doubt, is_away)
    }

    /// Returns the default monitoring URLs of all known hosts.
    fn guess_monitors(&self) -> Vec<String> {
        // The addresses were parsed when this connection was opened.
        let servers = connect::servers(&self.0.options.access).unwrap_or_default();
        let known = servers.iter().map(|server| (server.host().to_owned(), server.port()));
        let info = self.0.client.server_info();
        let told = info.connect_urls.iter().filter_map(|url| {
            let (host, port) = url.rsplit_once(':')?;
            // An address without a port has no default monitoring port.
            Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
        });
        let hosts: BTreeSet<(String, u16)> = known.chain(told).collect();
        let monitor = |(host, port): (String, u16)| {
            let port = port.saturating_add(MONITOR_PORT_ABOVE);
            if host.contains(':') {
                format!("http://[{host}]:{port}")
            } else {
                format!("http://{host}:{port}")
            }
        };
        hosts.into_iter().map(monitor).collect()
    }
}

#[derive(Deserialize)]
struct Jsz {
    server_id: String,
    #[serde(default)]
    config: JszConfig,
    meta_cluster: Option<MetaCluster>,
}

#[derive(Default, Deserialize)]
struct JszConfig {
    #[serde(default)]
    sync_always: bool,
}

#[derive(Deserialize)]
struct MetaCluster {
    #[serde(default)]
    cluster_size: usize,
}

fn ask_monitor(http: &HttpClient, monitor: &str) -> Result<Jsz, String> {
    let url = format!("{}/jsz", monitor.trim_end_matches('/'));
    let agent = http.agent(&url, &RequestLimits::within(MONITOR_TIMEOUT));
    let agent = agent.map_err(|error| error.to_string())?;
    let answer = agent.get(&url).call();
    let mut answer = answer.map_err(|error| http.explain(&url, &error).text())?;
    if !answer.status().is_success() {
        return Err(format!("HTTP status {}", answer.status()));
    }
    let text = answer.body_mut().with_config().limit(MONITOR_MAX_BYTES).read_to_string();
    serde_json::from_str(&text.map_err(|e| e.to_string())?).map_err(|error| error.to_string())
}

fn removed(info: &Info) -> u64 {
    info.state.last_sequence.saturating_sub(info.state.messages)
}

fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(|number| number.parse::<u64>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= VERSION_MIN
}

/// Whether a stream could not be placed because a server of the cluster is offline.
fn is_for_now(error: &JetStreamError) -> bool {
    matches!(error, JetStreamError::Unsafe(UnsafeServer::FewServers { reason, .. }) if reason.contains(OFFLINE))
}

/// Returns the first problem of a stream that existed before.
fn judge(wanted: &Config, found: &Info) -> Option<UnsafeServer> {
    let (stream, config) = (wanted.name.clone(), &found.config);
    let differs = |what| Some(UnsafeServer::Stream { stream: stream.clone(), what });
    if config.num_replicas < wanted.num_replicas {
        let (found, wanted) = (config.num_replicas, wanted.num_replicas);
        return Some(UnsafeServer::FewCopies { stream, found, wanted });
    }
    match () {
        () if wanted.storage == StorageType::File && config.storage != StorageType::File => {
            differs("it is not on disk")
        }
        () if wanted.allow_atomic_publish && !config.allow_atomic_publish => {
            differs("it does not allow atomic batches")
        }
        () if !config.allow_direct => differs("it does not allow direct reads"),
        () if config.max_age != Duration::ZERO && wanted.deny_delete => {
            differs("its events expire")
        }
        () if config.subjects != wanted.subjects => differs("it holds other subjects"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_versions_are_compared_as_numbers() {
        for (version, expected) in [
            ("2.14.0", true),
            ("2.15.1", true),
            ("3.0.0", true),
            ("2.9.10", false),
            ("2.14.0-RC.1", true),
            ("", false),
        ] {
            assert_eq!(is_new_enough(version), expected, "{version}");
        }
    }
}
