use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::context::CommandContext;
use crate::environment::state_home;
use crate::error::{CliError, CliResult};
use crate::logs::{LogArgs, LogLevel, LogLine};
use crate::mcp::ToolService;
use crate::native::command_line::quoted;
use crate::output::DIM;
use crate::sanitize::plain;
use crate::web::{AGENTS, AccessToken, MCP, PEOPLE, ProjectSites, ServerTokens, WebServer};

const PORT: u16 = 7411;

/// Serve the dashboard and the MCP server over HTTP
///
/// The server listens on a loopback address. You log in with the link that the command prints. Agents send a token,
/// which is in a file that only you can read. See docs/dashboard.md and docs/mcp.md.
#[derive(clap::Args)]
pub(crate) struct ServeArgs {
    /// Port; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,

    /// Loopback address: 127.0.0.1 or ::1
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,

    #[command(flatten)]
    log: LogArgs,
}

impl ServeArgs {
    pub(super) fn has_log_lines(&self) -> bool {
        self.log.is_asked_for()
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> CliResult {
        // Other addresses of loopback are no names of this server.
        if ![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].contains(&self.bind)
        {
            let message = format!(
                "{} is neither 127.0.0.1 nor ::1: on other addresses, the token would cross the network in the clear",
                self.bind
            );
            return Err(CliError::usage(message).hint("ssh -L 7411:127.0.0.1:7411 this-machine"));
        }
        context.log = self.log.logger(&context.out)?;
        let place = context.place()?;
        place.prepare()?;
        let (agents, path) = AccessToken::of(&place.state, AGENTS)?;
        let (people, own_path) = AccessToken::of(&place.state, PEOPLE)?;
        let sites = ProjectSites::new(place, state_home()?, context.surroundings()?);
        let service = ToolService::new(context.opener().shared());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let served = runtime.block_on(async {
            let mut term = signal(SignalKind::terminate())?;
            let mut int = signal(SignalKind::interrupt())?;
            let at = (self.bind, self.port);
            let server =
                WebServer::bind(at, ServerTokens { agents, people }, service.clone(), sites)
                    .await?;
            say(context, &server, (&path, &own_path))?;
            let stop = async {
                tokio::select! {
                    _ = term.recv() => {}
                    _ = int.recv() => {}
                }
            };
            server.run(stop).await;
            if let Some(logger) = context.log {
                logger.say(LogLine::new(LogLevel::Info, "serve", "stopped"));
            }
            Ok(())
        });
        // Calls that take longer than the server waits for them end with the process.
        runtime.shutdown_background();
        service.leave();
        served
    }
}

fn say(
    context: &mut CommandContext,
    server: &WebServer,
    (token, own): (&Path, &Path),
) -> CliResult {
    let out = &mut context.out;
    let url = format!("http://{}{MCP}", server.address());
    if let Some(logger) = context.log {
        let token = token.to_string_lossy().into_owned();
        let line = LogLine::new(LogLevel::Info, "serve", format!("serving {url}"));
        let own = own.to_string_lossy().into_owned();
        let line = line.with("url", url).with("token_file", token);
        logger.say(line.with("dashboard_token_file", own));
        return Ok(());
    }
    let link = server.link();
    if out.json {
        out.json(&json!({
            "url": url, "token_file": token, "dashboard": link, "dashboard_token_file": own,
        }))?;
        return out.flush();
    }
    let path = token.to_string_lossy();
    let quoted = quoted(&path);
    out.line(format_args!("{DIM} dashboard{DIM:#}  {link}"))?;
    out.line(format_args!(
        "{DIM}            valid once, for 10 minutes; later log in with the token in {}{DIM:#}",
        plain(&own.to_string_lossy())
    ))?;
    out.line(format_args!("{DIM}for agents{DIM:#}  {url}"))?;
    out.line(format_args!(
        "{DIM}     token{DIM:#}  export HOOKLOOP_TOKEN=\"$(cat {})\"",
        plain(&quoted)
    ))?;
    // The token itself is in no command line, and in no file of the agents'.
    out.line(format_args!(
        "{DIM}    claude{DIM:#}  claude mcp add --transport http hookloop {url} --header 'Authorization: Bearer ${{HOOKLOOP_TOKEN}}'"
    ))?;
    out.line(format_args!(
        "{DIM}     codex{DIM:#}  codex mcp add hookloop --url {url} --bearer-token-env-var HOOKLOOP_TOKEN"
    ))?;
    out.flush()
}
