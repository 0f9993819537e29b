//! Runs the calls of agents on threads that may block.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use hookloop_engine::command_outcome::CommandOutcome;
use hookloop_engine::error::EngineError;
use hookloop_engine::external::agent_tools::AgentTools;
use hookloop_engine::project::Project;
use hookloop_engine::session::stop_switch::StopSwitch;

use super::blocking_pool::{BlockingPool, WorkReply};
use super::project_opener::ProjectOpener;
use super::refusal::ToolRefusal;
use crate::error::CliError;

/// The longest time that closing the store may take.
const LEAVE_MAX: Duration = Duration::from_millis(200);

/// Runs the calls of agents.
#[derive(Debug)]
pub(crate) struct ToolService {
    opener: ProjectOpener,
    pool: BlockingPool,
    tending: Mutex<()>,
    /// Whether reactions may be due: after a write, and at the start because of processes that died.
    is_due: AtomicBool,
}

impl ToolService {
    pub(crate) fn new(opener: ProjectOpener) -> Arc<ToolService> {
        Arc::new(ToolService {
            opener,
            pool: BlockingPool::new(),
            tending: Mutex::new(()),
            is_due: AtomicBool::new(true),
        })
    }

    /// Whether a session started the agent.
    pub(super) fn is_in_session(&self) -> bool {
        self.opener.is_bound()
    }

    /// Returns when the work is done, or when the caller is `gone`.
    pub(super) async fn ask<T: Send + 'static>(
        self: &Arc<ToolService>,
        gone: impl Future<Output = ()>,
        writes: bool,
        work: impl FnOnce(&AgentTools) -> Result<T, ToolRefusal> + Send + 'static,
    ) -> Result<T, ToolRefusal> {
        let service = Arc::clone(self);
        let stop = StopSwitch::new().map_err(CliError::from)?;
        let of_call = stop.clone();
        let work = move |reply: WorkReply<_>| {
            // A caller that left while the call waited needs no answer.
            if reply.is_unwanted() {
                return;
            }
            let tools = match service.opener.tools() {
                Ok(tools) => tools.for_call(of_call),
                Err(refusal) => return reply.send(Err(refusal)),
            };
            reply.send(work(&tools));
            service.is_due.fetch_or(writes, Ordering::AcqRel);
            service.tend(tools.project());
        };
        let answered = self.pool.run(gone, work).await;
        if answered.is_err() {
            // Work that the call has started is cancelled.
            stop.by_user();
        }
        answered.unwrap_or_else(|unanswered| Err(unanswered.into()))
    }

    /// Reads the project without a change; none if that is not possible now.
    pub(crate) async fn look<T: Send + 'static>(
        self: &Arc<ToolService>,
        work: impl FnOnce(&Project) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        let service = Arc::clone(self);
        let work = move |reply: WorkReply<_>| {
            if !reply.is_unwanted() {
                // The caller answers that the service is not available.
                let tools = service.opener.tools().inspect_err(|error| {
                    tracing::warn!(error = %error.message, "the project can't be opened");
                });
                reply.send(tools.ok().and_then(|tools| work(tools.project())));
            }
        };
        self.pool.run(std::future::pending(), work).await.ok().flatten()
    }

    /// Runs the reactions to calls, after their answers, on one thread at a time.
    fn tend(&self, project: &Project) {
        while self.is_due.load(Ordering::Acquire) {
            let Ok(_turn) = self.tending.try_lock() else { return };
            while self.is_due.swap(false, Ordering::AcqRel) {
                // The next command of a person reports reactions that failed.
                if let Err(error) = settle(project) {
                    tracing::warn!(project = project.name(), %error, "reactions are left");
                }
            }
        }
    }

    /// Closes the project before the process ends. A call that still runs is not waited for.
    pub(crate) fn leave(self: Arc<ToolService>) {
        let (left, is_left) = mpsc::channel();
        thread::spawn(move || {
            self.opener.leave();
            // The receiver may have stopped waiting.
            let _ = left.send(());
        });
        // After the limit the process ends, and the store recovers as after a crash.
        if is_left.recv_timeout(LEAVE_MAX).is_err() {
            tracing::warn!("the project is not closed in time");
        }
    }
}

/// Runs the reactions and workflows that calls caused.
fn settle(project: &Project) -> Result<(), EngineError> {
    if project.has_pending()? {
        project.react_here(&mut CommandOutcome::default())?;
    }
    project.tend()
}
