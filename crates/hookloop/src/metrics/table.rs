//! Every metric. docs/operators.md has the same table.

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
    BUILD = Gauge "hookloop_build_info" "The version that answers.";
    TASKS = Gauge "hookloop_tasks" "Tasks by state.";
    OLDEST_READY = Gauge "hookloop_task_oldest_ready_seconds" "How long the ready task has waited that has waited longest.";
    CLAIMED = Gauge "hookloop_tasks_claimed" "Tasks that somebody holds.";
    STUCK = Gauge "hookloop_tasks_waiting_on_blocked" "Tasks that wait for a blocked one.";
    EARLY = Gauge "hookloop_tasks_waiting_for_time" "Tasks that wait for nothing but their time.";
    SESSIONS = Gauge "hookloop_sessions_open" "Sessions that have not ended, by state.";
    SESSIONS_ENDED = Counter "hookloop_sessions_ended_total" "Sessions that ended, by outcome.";
    TURNS = Counter "hookloop_turns_total" "Turns that agents have taken.";
    TOKENS = Counter "hookloop_tokens_total" "Tokens that turns used, by kind; input includes what a cache had.";
    CACHED = Counter "hookloop_cached_tokens_total" "Tokens of the input that a cache had.";
    COST = Counter "hookloop_cost_dollars_total" "What turns cost, as agents tell.";
    HOOK_RUNS = Counter "hookloop_hook_runs_total" "Runs of hooks and gates, by what came of them.";
    HOOK_DURATION = Histogram "hookloop_hook_duration_seconds" "How long runs of hooks and gates took; the sum is within a fifth.";
    PROBLEMS = Gauge "hookloop_problems_open" "What needs a human, by kind.";
    PURSE_COST = Gauge "hookloop_purse_left_dollars" "What is left in the purse, if it bounds money.";
    PURSE_TOKENS = Gauge "hookloop_purse_left_tokens" "What is left in the purse, if it bounds tokens.";
    PURSE_TURNS = Gauge "hookloop_purse_left_turns" "What is left in the purse, if it bounds turns.";
    RESERVED_COST = Gauge "hookloop_purse_reserved_dollars" "Set aside for turns under way.";
    RESERVED_TOKENS = Gauge "hookloop_purse_reserved_tokens" "Set aside for turns under way.";
    DUE = Gauge "hookloop_reactions_due" "Events whose reactions are owed.";
    DUE_LAG = Gauge "hookloop_reactions_lag_events" "How far the oldest event whose reactions are owed is behind the last.";
    WORKFLOWS = Gauge "hookloop_workflows_running" "Workflow runs that are under way.";
    WORKFLOWS_ENDED = Counter "hookloop_workflows_ended_total" "Workflow runs that ended, by outcome.";
    LOG_HEAD = Gauge "hookloop_log_head" "The place of the last event in the log.";
    VIEW_HEAD = Gauge "hookloop_view_head" "The place of the last event that the view has.";
    READ_TIME = Gauge "hookloop_scrape_read_seconds" "How long it took to read this from the view.";
    SLOTS = Gauge "hookloop_worker_slots" "Sessions that this worker performs at once, at most.";
    BUSY = Gauge "hookloop_worker_busy" "Sessions that this worker performs now.";
    STATE = Gauge "hookloop_worker_state" "1 for the state that this worker is in.";
    TAKEN = Counter "hookloop_worker_tasks_taken_total" "Tasks that this worker has taken, or gone on with.";
    ENDED = Counter "hookloop_worker_sessions_ended_total" "Sessions of this worker that ended, by outcome.";
    EXPIRED = Counter "hookloop_worker_claims_expired_total" "Claims of others that this worker ended because they were silent.";
    TROUBLES = Counter "hookloop_worker_troubles_total" "What did not work out and is tried again.";
    UNFIT = Gauge "hookloop_worker_unfit" "1 if this worker takes nothing of a project.";
    SPANS_SENT = Counter "hookloop_telemetry_spans_sent_total" "Spans that the collector took.";
    SPANS_LOST = Counter "hookloop_telemetry_spans_lost_total" "Spans that were given up.";
    EXPORT_FAILURES = Counter "hookloop_telemetry_failures_total" "Requests to the collector that failed.";
}
