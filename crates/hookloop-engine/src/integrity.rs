//! Decisions of a person about a log that lost events or has foreign messages in it, and their record.

use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::authority::ControlledAction;
use hookloop_core::event::{Event, EventBody, ForeignAccepted, LossAccepted};
use hookloop_core::id::Subject;
use hookloop_store::log::Seq;
use hookloop_store::store::RebuiltView;
use hookloop_store::view::QuarantineRow;

use crate::error::EngineError;
use crate::project::Project;

impl Project {
    /// Rebuilds the view from a log that lost acknowledged events, and records the loss in the log.
    pub fn rebuild_after_loss(
        &self,
        progress: &mut dyn FnMut(Seq),
    ) -> Result<RebuiltView, EngineError> {
        self.authorize(ControlledAction::RebuildView)?;
        let record = |loss: LossAccepted| Event {
            id: fresh_id(),
            at: now(),
            subject: Subject::Project,
            actor: self.actor().to_owned(),
            cause: None,
            due: false,
            body: EventBody::LossAccepted(loss),
        };
        Ok(self.store.rebuild_after_loss(&record, progress)?)
    }

    /// Returns the foreign messages in the log that no person has accepted yet.
    pub fn foreign_messages(&self) -> Result<Vec<QuarantineRow>, EngineError> {
        self.read(|view| view.quarantined())
    }

    /// Records that a person accepts the foreign messages in the log, and returns the number of new
    /// ones.
    pub fn accept_foreign(&self) -> Result<usize, EngineError> {
        self.authorize(ControlledAction::RebuildView)?;
        let (new, messages) =
            self.read(|view| Ok((view.quarantined()?, view.totals()?.quarantined)))?;
        let Some(last) = new.last() else { return Ok(0) };
        let accepted = ForeignAccepted { through: last.seq, messages };
        self.append(&Subject::Project, EventBody::ForeignAccepted(accepted))?;
        Ok(new.len())
    }
}
