//! Outputs that wait for a prompt, and outputs that wait until their work continues.

use super::state::{Session, WithheldOutput};
use crate::id::TaskId;
use crate::payload::piped::{MESSAGE, PipedOutput, PromptChannel};
use crate::point::Point;

/// The most outputs that are withheld. Older ones are dropped.
const WITHHELD_MAX: usize = 1_000;

impl Session {
    pub(super) fn pipe(&mut self, piped: PipedOutput) {
        if piped.point == MESSAGE {
            self.retries = 0;
            self.progress.forgive();
        }
        if is_renewed(&piped) {
            let before = self.pending.len();
            let is_same =
                |old: &PipedOutput| (&old.from, &old.point) == (&piped.from, &piped.point);
            self.pending.retain(|old| !(is_renewed(old) && is_same(old)));
            self.replaced_outputs += before - self.pending.len();
        }
        self.pending.push_back(piped);
    }

    /// Returns the texts of a failed prompt to the front of the queue.
    pub(super) fn unbind(&mut self) {
        for piped in self.bound.drain(..).rev() {
            self.pending.push_front(piped);
        }
    }

    pub(super) fn take_piped_by_errors(&mut self) -> Vec<PipedOutput> {
        let (now, later): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(Session::is_of_error);
        self.pending = later.into();
        now
    }

    /// Removes the pending texts: with a task, only the feedback of gates on that task.
    pub(super) fn take_pending(&mut self) -> Vec<PipedOutput> {
        let has_task = self.task.is_some();
        let (taken, kept): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|piped| !has_task || is_feedback(piped));
        self.pending = kept.into();
        self.undelivered += taken.len();
        taken
    }

    /// Withholds the pending texts until the work continues.
    pub(super) fn withhold_pending(&mut self) {
        let task = self.task.as_ref().map(|taken| taken.task.clone());
        let taken = self.take_pending();
        // After the last task, no work continues that needs these outputs.
        if task.is_none() && self.plan.work.is_of_tasks() {
            return;
        }
        let withheld = taken.into_iter();
        let withheld = withheld.map(|piped| WithheldOutput { task: task.clone(), piped });
        self.withheld.extend(withheld);
        self.withheld.drain(..self.withheld.len().saturating_sub(WITHHELD_MAX));
    }

    /// Returns the withheld outputs of a task, or of a session without one, to the front of the queue.
    pub(super) fn return_withheld(&mut self, task: Option<&TaskId>) {
        let withheld = std::mem::take(&mut self.withheld);
        let (own, others): (Vec<_>, Vec<_>) =
            withheld.into_iter().partition(|output| output.task.as_ref() == task);
        self.withheld = others;
        self.undelivered = self.undelivered.saturating_sub(own.len());
        for output in own.into_iter().rev() {
            self.pending.push_front(output.piped);
        }
    }
}

/// Whether the text is the feedback of a gate.
fn is_feedback(piped: &PipedOutput) -> bool {
    let point = piped.point.parse();
    matches!(point, Ok(Point::Stop | Point::Validation | Point::BeforeSubmit))
}

/// Whether the text comes from a hook that runs repeatedly in the loop, so that only the newest output counts.
fn is_renewed(piped: &PipedOutput) -> bool {
    let is_of_loop = matches!(
        piped.point.parse(),
        Ok(Point::SessionStart | Point::PreIteration | Point::PostIteration | Point::OnError)
    );
    is_of_loop && piped.channel() == PromptChannel::HookOutput
}
