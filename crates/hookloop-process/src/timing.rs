//! Times within which a job and its processes end.

use std::time::Duration;

/// Time between the request to end and the kill.
pub const KILL_GRACE: Duration = Duration::from_secs(1);
/// Time within which killed processes must end. Those that do not become survivors.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(2);
/// The same for a storm of forks, which starves those that end it: the limit as long as further processes end.
pub(crate) const KILL_LIMIT_OF_STORM: Duration = Duration::from_secs(10);
/// Time that the other processes of a job get to end after the first one has exited.
///
/// `tee` at the end of a pipeline still writes the input that it has.
pub(crate) const LEFTOVER_GRACE: Duration = Duration::from_millis(100);
/// The longest timeout of a job. A longer one counts as this.
pub(crate) const TIMEOUT_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Interval at which killed processes are checked.
pub(crate) const KILL_PAUSE: Duration = Duration::from_millis(1);
