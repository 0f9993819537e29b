//! Watches a claim for the whole of its lease.

use std::time::Duration;

use hookloop_core::claim::Claim;
use hookloop_core::id::TaskId;
use hookloop_engine::lease::{Liveness, ObservedClaim, SilenceDetector};
use hookloop_engine::project::Project;

use super::holder::said;
use crate::error::{CliError, CliResult};
use crate::progress::ProgressBar;
use crate::sanitize::plain;

/// How often a claimant is checked in one lease, and the longest time between two checks.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS_MAX: Duration = Duration::from_millis(500);

/// Waits until the claimant of `id` has sent no heartbeat for its whole lease, and returns the claim.
/// Fails as soon as a heartbeat arrives.
pub(super) fn wait_for(project: &Project, id: &TaskId) -> CliResult<Claim> {
    project.store().keep_up();
    let mut watch = SilenceDetector::default();
    let progress = ProgressBar::new("waiting");
    loop {
        let sighting = project.look_at(id, &mut watch)?;
        let over = sighting.is_over();
        let ObservedClaim { claim, sight } = sighting;
        let lease = Duration::from_millis(claim.lease_ms);
        match sight {
            Liveness::Alive => return Err(alive(id, &claim)),
            Liveness::Silent(_) if over => return Ok(claim),
            Liveness::Silent(silence) => progress.say(|| {
                let agent = plain(&claim.agent);
                let lease = said(lease);
                format!("`{agent}`: no heartbeat for {} of {lease}", said(silence))
            }),
            Liveness::First => {}
        }
        std::thread::sleep((lease / LOOKS).min(BETWEEN_LOOKS_MAX));
    }
}

fn alive(id: &TaskId, claim: &Claim) -> CliError {
    let agent = &claim.agent;
    let epoch = claim.epoch;
    CliError::refused(format!("`{agent}` sends heartbeats for task `{id}`, epoch {epoch}"))
        .hint(format!("hookloop task requeue {id} --force"))
}
