//! Every metric. docs/reference/metrics.md has the same metrics in the same order.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

#[derive(Debug)]
pub(super) struct MetricInfo {
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    /// Without line breaks or backslashes.
    pub(super) help: &'static str,
}

macro_rules! metrics {
    ($($id:ident = $kind:ident $name:literal $help:literal;)*) => {
        $(pub(super) const $id: MetricInfo =
            MetricInfo { name: $name, kind: MetricKind::$kind, help: $help };)*

        /// All metrics, in the order of the page.
        pub(super) const METRICS: &[MetricInfo] = &[$($id),*];
    };
}

metrics! {
    BUILD = Gauge "hookloop_build_info" "Version of hookloop.";
    TASKS = Gauge "hookloop_tasks" "Tasks by state.";
    OLDEST_READY = Gauge "hookloop_task_oldest_ready_seconds" "Waiting time of the oldest ready task.";
    CLAIMED = Gauge "hookloop_tasks_claimed" "Claimed tasks.";
    STUCK = Gauge "hookloop_tasks_waiting_on_blocked" "Tasks that wait for a blocked task.";
    EARLY = Gauge "hookloop_tasks_waiting_for_time" "Tasks that wait only for their start time.";
    SESSIONS = Gauge "hookloop_sessions_open" "Sessions that have not ended, by state.";
    SESSIONS_ENDED = Counter "hookloop_sessions_ended_total" "Sessions that ended, by outcome.";
    TURNS = Counter "hookloop_turns_total" "Turns of agents.";
    TOKENS = Counter "hookloop_tokens_total" "Tokens of turns, by type; input includes cached tokens.";
    CACHED = Counter "hookloop_cached_tokens_total" "Input tokens that came from a cache.";
    COST = Counter "hookloop_cost_dollars_total" "Cost of turns, as reported by agents.";
    HOOK_RUNS = Counter "hookloop_hook_runs_total" "Runs of hooks and gates, by status.";
    HOOK_DURATION = Histogram "hookloop_hook_duration_seconds" "Duration of runs of hooks and gates; the sum is accurate to 20 %.";
    PROBLEMS = Gauge "hookloop_problems_open" "Open inbox items, by type.";
    BUDGET_COST = Gauge "hookloop_budget_left_dollars" "Cost that the budget has left, if it limits cost.";
    BUDGET_TOKENS = Gauge "hookloop_budget_left_tokens" "Tokens that the budget has left, if it limits tokens.";
    BUDGET_TURNS = Gauge "hookloop_budget_left_turns" "Turns that the budget has left, if it limits turns.";
    RESERVED_COST = Gauge "hookloop_budget_reserved_dollars" "Cost that is reserved for running turns.";
    RESERVED_TOKENS = Gauge "hookloop_budget_reserved_tokens" "Tokens that are reserved for running turns.";
    DUE = Gauge "hookloop_reactions_due" "Events whose reactions are pending.";
    DUE_LAG = Gauge "hookloop_reactions_lag_events" "Events between the oldest event with pending reactions and the end of the log.";
    WORKFLOWS = Gauge "hookloop_workflows_running" "Running workflow runs.";
    WORKFLOWS_ENDED = Counter "hookloop_workflows_ended_total" "Workflow runs that ended, by outcome.";
    LOG_HEAD = Gauge "hookloop_log_head" "Sequence number of the last event in the log.";
    VIEW_HEAD = Gauge "hookloop_view_head" "Sequence number of the last event in the view.";
    READ_TIME = Gauge "hookloop_scrape_read_seconds" "Time to read these metrics from the view.";
    SLOTS = Gauge "hookloop_worker_slots" "Maximum concurrent sessions of this worker.";
    BUSY = Gauge "hookloop_worker_busy" "Running sessions of this worker.";
    STATE = Gauge "hookloop_worker_state" "1 for the current state of this worker, else 0.";
    TASKS_CLAIMED = Counter "hookloop_worker_tasks_claimed_total" "Tasks that this worker claimed or resumed.";
    ENDED = Counter "hookloop_worker_sessions_ended_total" "Sessions of this worker that ended, by outcome.";
    EXPIRED = Counter "hookloop_worker_claims_expired_total" "Claims of others that this worker released after their leases expired.";
    ERRORS = Counter "hookloop_worker_errors_total" "Errors after which this worker tries again.";
    INELIGIBLE = Gauge "hookloop_worker_ineligible" "1 if this worker claims no tasks of a project, else 0.";
    SPANS_SENT = Counter "hookloop_telemetry_spans_sent_total" "Spans that the collector accepted.";
    SPANS_DROPPED = Counter "hookloop_telemetry_spans_dropped_total" "Spans that were dropped after failed attempts.";
    EXPORT_FAILURES = Counter "hookloop_telemetry_failures_total" "Requests to the collector that failed.";
}
