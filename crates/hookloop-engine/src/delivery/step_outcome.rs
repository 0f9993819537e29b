//! Results of the built-in hooks of a delivery.

use serde_json::Value;

/// The result of a step that succeeded.
#[derive(Debug, Default)]
pub(crate) struct StepOutcome {
    /// The result in one line.
    pub(crate) said: String,
    pub(crate) values: Value,
    /// The reason why the step did nothing, if there was nothing to do.
    pub(crate) skipped: Option<&'static str>,
    /// The reason why the step was refused, if it was. The task is open again then.
    pub(crate) refused: Option<String>,
}

/// The built-in hooks of a delivery.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryHooks;
