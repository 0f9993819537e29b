//! hookloop's side of the protocol: one turn of a conversation, from `initialize` to the answer to the prompt.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, EnvVariable, Implementation,
    InitializeRequest, InitializeResponse, LoadSessionRequest, McpServer, McpServerStdio,
    NewSessionRequest, PromptRequest, RequestPermissionRequest, RequestPermissionResponse,
    ResumeSessionRequest, SessionConfigOption, SessionConfigOptionCategory, SessionId,
    SessionNotification, SetSessionConfigOptionRequest, SetSessionModeRequest, TextContent,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, JsonRpcRequest, UntypedMessage, is_connection_terminated,
    is_incoming_transport_closed, on_receive_notification, on_receive_request,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::tools::{McpServerCommand, SERVER};

/// How long an agent may take to answer `initialize`. Some take long to load.
const INITIALIZE_MAX: Duration = Duration::from_secs(60);
/// How long an agent may take to begin or resume a conversation.
const OPEN_MAX: Duration = Duration::from_secs(120);
/// How long an agent may take to set a mode or a model.
const SET_MAX: Duration = Duration::from_secs(30);
/// Agents may report earlier turns even after they have resumed a conversation. The reports are over after this long
/// without one,
const QUIET: Duration = Duration::from_millis(300);
/// or after this long in all.
const QUIET_MAX: Duration = Duration::from_secs(10);
/// How long an agent may take to confirm that it stopped.
const STOP_MAX: Duration = Duration::from_millis(500);
/// The most events that wait. After that, the agent waits.
pub(super) const EVENTS_WAITING: usize = 64;

/// The parameters of a turn.
#[derive(Debug)]
pub(super) struct TurnParameters {
    pub(super) root: PathBuf,
    pub(super) prompt: String,
    /// The conversation to continue.
    pub(super) conversation: Option<SessionId>,
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
    pub(super) tools: Option<McpServerCommand>,
}

impl TurnParameters {
    /// Returns the servers for the agent.
    fn mcp_servers(&self) -> Vec<McpServer> {
        let server = |tools: &McpServerCommand| {
            let env = tools.env.iter().map(|(name, value)| EnvVariable::new(name, value));
            let server = McpServerStdio::new(SERVER, tools.program.clone());
            McpServer::Stdio(server.args(tools.args.clone()).env(env.collect::<Vec<_>>()))
        };
        self.tools.iter().map(server).collect()
    }
}

/// The events of a turn, in order.
pub(super) enum ConversationEvent {
    Told(Box<SessionNotification>),
    Asked(Box<RequestPermissionRequest>, Responder<RequestPermissionResponse>),
    /// The prompt is sent next.
    Begun(SessionId),
    Over(ConversationEnd),
}

/// The end of a conversation in terms of the protocol.
#[derive(Debug)]
pub(super) enum ConversationEnd {
    /// The prompt was answered.
    Answered(Value),
    /// The agent reported an error, or did not answer in time.
    Failed(String),
    /// The connection ended. The reason is set if the agent did not end it.
    Ended(Option<String>),
    /// The turn was cancelled.
    Cancelled,
}

/// Runs a turn. Sends its events, and the outcome as the last one. Returns the reason if there is no outcome.
pub(super) async fn take_turn(
    transport: impl ConnectTo<Client> + 'static,
    wanted: TurnParameters,
    cancelled: Arc<Notify>,
    events: mpsc::Sender<ConversationEvent>,
) -> ConversationEnd {
    let heard = Arc::new(Notify::new());
    let (told, asked, hears) = (events.clone(), events.clone(), heard.clone());
    let ended = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                hears.notify_one();
                // Without a receiver the turn is over, here and below.
                let _ = told.send(ConversationEvent::Told(Box::new(notification))).await;
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let _ = asked.send(ConversationEvent::Asked(Box::new(request), responder)).await;
                Ok(())
            },
            on_receive_request!(),
        )
        .connect_with(transport, async move |agent| {
            let turn = ClientTurn { agent, wanted, heard, events: events.clone() };
            let outcome = turn.take(&cancelled).await.unwrap_or_else(|outcome| outcome);
            let _ = events.send(ConversationEvent::Over(outcome)).await;
            Ok(())
        })
        .await;
    ConversationEnd::Ended(ended.err().map(|error| words(&error)))
}

struct ClientTurn {
    agent: ConnectionTo<Agent>,
    wanted: TurnParameters,
    /// Notified at each notification of the agent.
    heard: Arc<Notify>,
    events: mpsc::Sender<ConversationEvent>,
}

impl ClientTurn {
    async fn take(&self, cancelled: &Notify) -> Result<ConversationEnd, ConversationEnd> {
        let session = tokio::select! {
            biased;
            () = cancelled.notified() => return Err(ConversationEnd::Cancelled),
            opened = self.open() => opened?,
        };
        let _ = self.events.send(ConversationEvent::Begun(session.clone())).await;
        let text = ContentBlock::Text(TextContent::new(self.wanted.prompt.clone()));
        let prompt = PromptRequest::new(session.clone(), vec![text]);
        // Untyped, because the usage of a turn is not in the stable part of the protocol.
        let prompt =
            UntypedMessage::new("session/prompt", prompt).map_err(|error| outcome_of(&error))?;
        let mut answer = std::pin::pin!(self.agent.send_request(prompt).block_task());
        tokio::select! {
            biased;
            answer = &mut answer => answer.map(ConversationEnd::Answered).map_err(|error| outcome_of(&error)),
            () = cancelled.notified() => {
                // An agent that does not cancel the turn is ended with its process.
                if let Err(error) = self.agent.send_notification(CancelNotification::new(session)) {
                    tracing::debug!(%error, "an agent is not told to cancel its turn");
                }
                let _ = timeout(STOP_MAX, answer).await;
                Err(ConversationEnd::Cancelled)
            }
        }
    }

    /// Prepares the conversation up to the prompt.
    async fn open(&self) -> Result<SessionId, ConversationEnd> {
        let ours = Implementation::new("hookloop", env!("CARGO_PKG_VERSION"));
        let initialize = InitializeRequest::new(ProtocolVersion::V1)
            .client_info(ours)
            .client_capabilities(ClientCapabilities::new());
        let agent = self.ask(initialize, INITIALIZE_MAX).await?;
        if agent.protocol_version != ProtocolVersion::V1 {
            let theirs = agent.protocol_version;
            let error = format!("the agent speaks version {theirs} of the protocol, not 1");
            return Err(ConversationEnd::Failed(error));
        }
        let (session, options) = match &self.wanted.conversation {
            Some(session) if can_find(&agent) => {
                (session.clone(), self.find(session.clone(), &agent).await?)
            }
            // A conversation that can't be resumed begins again: the prompt is complete.
            _ => {
                let root = self.wanted.root.clone();
                let new = NewSessionRequest::new(root).mcp_servers(self.wanted.mcp_servers());
                let new = self.ask(new, OPEN_MAX).await?;
                (new.session_id, new.config_options)
            }
        };
        if let Some(mode) = &self.wanted.mode {
            self.ask(SetSessionModeRequest::new(session.clone(), mode.clone()), SET_MAX).await?;
        }
        if let Some(model) = &self.wanted.model {
            self.set_model(&session, model, options.as_deref().unwrap_or_default()).await?;
        }
        Ok(session)
    }

    /// Resumes a conversation. The reports about its earlier turns are over when this returns.
    async fn find(
        &self,
        session: SessionId,
        agent: &InitializeResponse,
    ) -> Result<Option<Vec<SessionConfigOption>>, ConversationEnd> {
        let (root, servers) = (self.wanted.root.clone(), self.wanted.mcp_servers());
        let can = &agent.agent_capabilities;
        let mut found = Err(ConversationEnd::Failed(
            "the agent can't go on with a conversation of another process".to_owned(),
        ));
        if can.session_capabilities.resume.is_some() {
            let (session, root) = (session.clone(), root.clone());
            let resume = ResumeSessionRequest::new(session, root).mcp_servers(servers.clone());
            found = self.ask(resume, OPEN_MAX).await.map(|resumed| resumed.config_options);
        }
        // Some agents announce `resume` and then fail it.
        if matches!(found, Err(ConversationEnd::Failed(_))) && can.load_session {
            let load = LoadSessionRequest::new(session, root).mcp_servers(servers);
            found = self.ask(load, OPEN_MAX).await.map(|loaded| loaded.config_options);
        }
        let options = found?;
        let quiet = async { while timeout(QUIET, self.heard.notified()).await.is_ok() {} };
        // The wait ends even if the agent keeps sending updates.
        let _ = timeout(QUIET_MAX, quiet).await;
        Ok(options)
    }

    async fn set_model(
        &self,
        session: &SessionId,
        model: &str,
        options: &[SessionConfigOption],
    ) -> Result<(), ConversationEnd> {
        let is_model = |option: &&SessionConfigOption| {
            option.category == Some(SessionConfigOptionCategory::Model)
        };
        if let Some(option) = options.iter().find(is_model) {
            let (session, id) = (session.clone(), option.id.clone());
            let set = SetSessionConfigOptionRequest::new(session, id, model);
            return self.ask(set, SET_MAX).await.map(drop);
        }
        // The method of agents before there were options.
        let parameters = json!({ "sessionId": session, "modelId": model });
        let set = UntypedMessage::new("session/set_model", parameters);
        self.ask(set.map_err(|error| outcome_of(&error))?, SET_MAX).await.map(drop)
    }

    async fn ask<R: JsonRpcRequest>(
        &self,
        request: R,
        limit: Duration,
    ) -> Result<R::Response, ConversationEnd> {
        let method = request.method().to_owned();
        let why = match timeout(limit, self.agent.send_request(request).block_task()).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => match outcome_of(&error) {
                ConversationEnd::Failed(why) => format!("the agent can't do `{method}`: {why}"),
                outcome => return Err(outcome),
            },
            Err(_) => format!("the agent did not answer `{method}` within {limit:?}"),
        };
        Err(ConversationEnd::Failed(why))
    }
}

/// Returns whether an agent can continue a conversation of another process.
fn can_find(agent: &InitializeResponse) -> bool {
    let can = &agent.agent_capabilities;
    can.session_capabilities.resume.is_some() || can.load_session
}

fn outcome_of(error: &Error) -> ConversationEnd {
    match is_incoming_transport_closed(error) || is_connection_terminated(error) {
        true => ConversationEnd::Ended(None),
        false => ConversationEnd::Failed(words(error)),
    }
}

/// Returns all texts of an error: agents put the provider's message in different fields.
fn words(error: &Error) -> String {
    let details = match &error.data {
        None | Some(Value::Null) => return error.message.clone(),
        Some(Value::String(text)) => text.clone(),
        Some(data) => data.to_string(),
    };
    format!("{} ({details})", error.message)
}
