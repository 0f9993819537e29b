//! Checks of the network: the proxy, the certificates, and whether the forge answers.

use std::path::Path;
use std::time::Duration;

use hookloop_config::effective::DeliveryRules;
use hookloop_engine::delivery_context::find_api;
use hookloop_hooks::runner::HookRunner;
use hookloop_http::failure::FailureCause;
use hookloop_http::proxy::ProxyRoute;
use hookloop_http::{HttpClient, NetworkError, RequestLimits};

use super::git::remote_url;
use super::{Finding, FindingGroup, Remedy};

/// Time limit for the answer of a forge.
const FORGE_WITHIN: Duration = Duration::from_secs(5);
/// The remote of projects that configure none.
const REMOTE: &str = "origin";

/// Reports the proxy and the certificates of requests.
pub fn examine_network(http: &HttpClient) -> Vec<Finding> {
    let proxy = match http.settings() {
        Err(error) => return vec![unusable("proxy", &error)],
        Ok(settings) => match settings.proxies() {
            (None, None) => "none: requests are sent directly".to_owned(),
            (https, http) => {
                let named = [("https", https), ("http", http)];
                let named = named.into_iter().filter_map(|(scheme, server)| {
                    let server = server?;
                    Some(format!("{scheme} through {server} ({})", server.named_by()))
                });
                let mut text = named.collect::<Vec<_>>().join(", ");
                let exceptions = settings.no_proxy();
                if !exceptions.is_empty() {
                    text.push_str(&format!("; not for {exceptions}"));
                }
                text
            }
        },
    };
    let certificates = match http.roots() {
        Ok(roots) => {
            let count = roots.count.map_or(String::new(), |count| format!("{count} from "));
            FindingGroup::Network.ok("certificates", format!("{count}{}", roots.origin))
        }
        Err(error) => unusable("certificates", &error),
    };
    vec![FindingGroup::Network.ok("proxy", proxy), certificates]
}

fn unusable(about: &str, error: &NetworkError) -> Finding {
    let remedy = match error {
        NetworkError::BadProxy { name } => {
            format!("correct {name}, such as http://proxy.example:3128")
        }
        NetworkError::Certificates { name, .. } => {
            format!("let {name} name a file of certificates in PEM, or remove it")
        }
        NetworkError::BadUrl => "correct the address".to_owned(),
    };
    FindingGroup::Network.error(about, error.to_string()).with_remedy(Remedy::Do(remedy))
}

/// Checks that the forge of a delivering project answers. Sends no token.
pub fn examine_forge(root: &Path, rules: &DeliveryRules, runner: &HookRunner) -> Option<Finding> {
    let remote = rules.remote.as_deref().unwrap_or(REMOTE);
    let url = remote_url(root, runner.environment(), remote);
    let api = match find_api(runner.environment(), rules.forge, url.as_deref()) {
        Ok(found) => found?.0.to_string(),
        Err(trouble) => return Some(FindingGroup::Network.error("forge", trouble.reason())),
    };
    Some(asked(runner.http(), &api))
}

fn asked(http: &HttpClient, api: &str) -> Finding {
    let agent = match http.agent(api, &RequestLimits::within(FORGE_WITHIN)) {
        Ok(agent) => agent,
        Err(error) => return unusable("forge", &error),
    };
    let error = match agent.get(api).call() {
        Ok(answer) => {
            let way = match http.route(api) {
                Ok(ProxyRoute::Proxy(server)) => format!(" through {server}"),
                _ => String::new(),
            };
            let message = format!("{api} answers{way} (HTTP status {})", answer.status().as_u16());
            return FindingGroup::Network.ok("forge", message);
        }
        Err(error) => error,
    };
    let failure = http.explain(api, &error);
    let issuer = match failure.cause {
        FailureCause::Certificate => http.issuer(api, FORGE_WITHIN),
        _ => None,
    };
    let issuer = issuer.map_or(String::new(), |issuer| format!("; its issuer is `{issuer}`"));
    let hint = failure.hint.unwrap_or_else(|| format!("try `curl -v {api}`"));
    let finding = FindingGroup::Network.error("forge", format!("{}{issuer}", failure.message));
    finding.with_remedy(Remedy::Do(hint))
}
