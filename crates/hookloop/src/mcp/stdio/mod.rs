//! A message a line over stdio, each looked at by the gate before it reaches rmcp.
//!
//! Two plain threads read and write: standard input can't be read without a thread, and a client that
//! does not read its answers stops the thread that reads its requests.

mod lines;

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lines::{LINE_MAX, StdioLine, StdioLines};
use rmcp::ServiceExt;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::gate::{GateDecision, MessageGate};
use super::handler::McpHandler;
use crate::error::CliResult;
use crate::mcp::open_requests::OpenRequests;
use crate::mcp::tool_service::ToolService;

/// Messages between the threads and the server.
const QUEUE: usize = 64;
/// At the end of input: how long calls may take to be answered, and answers to be written. With the time to close the
/// store, less than a second.
const ANSWER_MAX: Duration = Duration::from_millis(400);
const WRITE_MAX: Duration = Duration::from_millis(150);

/// Serves one agent on stdin and stdout until either ends.
pub(crate) fn serve(service: Arc<ToolService>) -> CliResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(talk(McpHandler::new(Arc::clone(&service))));
    // Calls that still run, and the processes that they started, end with this process.
    runtime.shutdown_background();
    service.leave();
    ended
}

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StdioEnd {
    Input,
    Output,
    Signal,
}

async fn talk(handler: McpHandler) -> CliResult {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let (ends, mut ended) = mpsc::channel(2);
    let (outgoing, to_write) = mpsc::channel(QUEUE);
    let (incoming, messages) = mpsc::channel(QUEUE);
    let open = Arc::new(OpenRequests::default());
    // Not through `std::io::stdout`, whose lock is held for as long as a command runs.
    let stdout = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let stdin = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let writer = StdioWriter { to: stdout, open: Arc::clone(&open), ends: ends.clone() };
    thread::spawn(move || writer.run(to_write));
    let reader = StdioReader {
        open: Arc::clone(&open),
        outgoing: outgoing.clone(),
        incoming,
        ends: ends.clone(),
    };
    thread::spawn(move || reader.run(stdin));
    let wire = StdioTransport { messages, outgoing: outgoing.clone() };
    let served = tokio::spawn(async move {
        if let Ok(service) = handler.serve(wire).await {
            // Either result means that the client is gone.
            let _ = service.waiting().await;
        }
    });
    let end = tokio::select! {
        end = ended.recv() => end.unwrap_or(StdioEnd::Input),
        _ = terminated.recv() => StdioEnd::Signal,
        _ = interrupted.recv() => StdioEnd::Signal,
        _ = served => StdioEnd::Input,
    };
    if end == StdioEnd::Input {
        // Answers that take longer are not sent.
        let _ = timeout(ANSWER_MAX, open.is_empty()).await;
        let (written, is_written) = oneshot::channel();
        let flush = async {
            // A writer that has ended has nothing left to write.
            let _ = outgoing.send(StdioOutput::Flush(written)).await;
            let _ = is_written.await;
        };
        // Output that nobody reads is given up.
        let _ = timeout(WRITE_MAX, flush).await;
    }
    Ok(())
}

/// Something for the thread that writes.
#[derive(Debug)]
enum StdioOutput {
    Message(Box<ServerJsonRpcMessage>),
    /// An answer that is not the server's.
    Refused(Value),
    Flush(oneshot::Sender<()>),
}

struct StdioWriter {
    to: File,
    open: Arc<OpenRequests>,
    ends: mpsc::Sender<StdioEnd>,
}

impl StdioWriter {
    fn run(mut self, mut to_write: mpsc::Receiver<StdioOutput>) {
        while let Some(out) = to_write.blocking_recv() {
            let written = match out {
                StdioOutput::Message(message) => {
                    // Before the answer is written: the client may use the id again at once.
                    self.open.close(answered(&message));
                    self.write(&message)
                }
                StdioOutput::Refused(answer) => self.write(&answer),
                StdioOutput::Flush(written) => {
                    // The receiver may have stopped waiting.
                    let _ = written.send(());
                    Ok(())
                }
            };
            if written.is_err() {
                // The server may be ending already.
                let _ = self.ends.blocking_send(StdioEnd::Output);
                return;
            }
        }
    }

    fn write(&mut self, message: &impl Serialize) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.to.write_all(&line)
    }
}

/// The request that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

struct StdioReader {
    open: Arc<OpenRequests>,
    outgoing: mpsc::Sender<StdioOutput>,
    incoming: mpsc::Sender<ClientJsonRpcMessage>,
    ends: mpsc::Sender<StdioEnd>,
}

impl StdioReader {
    fn run(self, stdin: impl Read) {
        let mut lines = StdioLines::new(BufReader::new(stdin));
        let mut gate = MessageGate::new(&self.open);
        while let Some(line) = lines.next() {
            let verdict = match line {
                StdioLine::Whole(bytes) => gate.judge(bytes),
                StdioLine::TooLong => GateDecision::too_long(LINE_MAX),
            };
            let is_taken = match verdict {
                GateDecision::Pass(message) => self.incoming.blocking_send(*message).is_ok(),
                GateDecision::Answer(error) => {
                    self.outgoing.blocking_send(StdioOutput::Refused(error)).is_ok()
                }
                GateDecision::Ignore => true,
            };
            if !is_taken {
                break;
            }
        }
        // The server may be ending already.
        let _ = self.ends.blocking_send(StdioEnd::Input);
    }
}

/// The threads as rmcp sees them.
struct StdioTransport {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<StdioOutput>,
}

#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
struct Closed;

impl Transport<RoleServer> for StdioTransport {
    type Error = Closed;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = std::result::Result<(), Closed>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move { outgoing.send(StdioOutput::Message(Box::new(item))).await.map_err(|_| Closed) }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        match self.messages.recv().await {
            Some(message) => Some(message),
            // rmcp would wait for running calls as long as it likes; `talk` knows how long that may be.
            None => std::future::pending().await,
        }
    }

    async fn close(&mut self) -> std::result::Result<(), Closed> {
        Ok(())
    }
}
