//! `network:` in the user's own file. A repository has no such key.

use std::path::{Path, PathBuf};

use hookloop_http::settings::UserNetwork;
use schemars::JsonSchema;
use serde::Deserialize;

use super::values::Located;
use crate::yaml::ConfigComplaint;

const NO_PROXY_MAX: usize = 256;

/// Proxy and certificates of hookloop's own requests
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkEntry {
    /// Proxy for http and https, such as `http://proxy.example:3128` [default: none]. A proxy of the environment comes
    /// first.
    proxy: Option<Located<String>>,
    /// Hosts without proxy: domain names with their subdomains, addresses, or networks such as `10.0.0.0/8`, each with an
    /// optional `:PORT` [default: none]. `NO_PROXY` in the environment comes first.
    #[serde(default)]
    no_proxy: Vec<Located<String>>,
    /// PEM file of certificates that are accepted in addition to the system's [default: none]
    ca_file: Option<PathBuf>,
}

impl NetworkEntry {
    pub(crate) fn read(self, base: &Path) -> Result<UserNetwork, ConfigComplaint> {
        let mut network = UserNetwork {
            ca_file: self.ca_file.map(|path| base.join(path)),
            ..UserNetwork::default()
        };
        if let Some(Located { value, at }) = self.proxy {
            let server = UserNetwork::proxy(&value);
            network.proxy = Some(server.map_err(|error| ConfigComplaint::new(at, error))?);
            network.proxy_address = Some(value);
        }
        for Located { value, at } in self.no_proxy {
            if network.no_proxy.len() == NO_PROXY_MAX {
                return Err(ConfigComplaint::new(at, format!("more than {NO_PROXY_MAX} hosts")));
            }
            if value.is_empty() || value.contains([',', ' ']) || value.contains("://") {
                let message = "each entry is one host, such as `git.example`, `.example`, \
                               `10.0.0.0/8` or `git.example:8443`";
                return Err(ConfigComplaint::new(at, message));
            }
            network.no_proxy.push(value);
        }
        Ok(network)
    }
}
