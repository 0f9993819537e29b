//! The metrics of a project, from its view.

use std::time::Instant;

use hookloop_core::shared_budget::{Amount, BudgetBounds};
use hookloop_core::time::Day;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
use hookloop_engine::store::{HookTimes, LogError, UsageBy, View};

use super::{MetricsPage, table as of};

/// Powers of two of a millisecond that are ends of buckets: 16 ms to 17 minutes. Times are counted by sizes that end there.
const BUCKETS: [u32; 9] = [4, 6, 8, 10, 12, 14, 16, 18, 20];

/// Adds the metrics of a project, under its name.
pub(crate) fn add_project(
    page: &mut MetricsPage,
    name: &str,
    project: &Project,
) -> Result<(), EngineError> {
    let began = Instant::now();
    let version = env!("CARGO_PKG_VERSION");
    if page.samples.is_empty() {
        page.count(&of::BUILD, &[("version", version)], 1);
    }
    let mut figures = ProjectMetrics { page, name, project };
    project.read(|view| figures.all(&view))?;
    let head = project.log().head()?;
    page.count(&of::LOG_HEAD, &[("project", name)], head);
    page.add(&of::READ_TIME, &[("project", name)], began.elapsed().as_secs_f64());
    Ok(())
}

struct ProjectMetrics<'a> {
    page: &'a mut MetricsPage,
    name: &'a str,
    project: &'a Project,
}

impl ProjectMetrics<'_> {
    fn all(&mut self, view: &View<'_>) -> Result<(), LogError> {
        self.tasks(view)?;
        self.sessions(view)?;
        self.usage(view)?;
        self.hooks(view)?;
        self.budget(view)?;
        self.log(view)
    }

    fn tasks(&mut self, view: &View<'_>) -> Result<(), LogError> {
        let project = ("project", self.name);
        for (state, count) in view.counts()? {
            self.page.count(&of::TASKS, &[project, ("state", state.name())], count);
        }
        let now = self.project.now();
        let oldest = view.oldest_ready()?.map_or(0, |since| now.millis_since(since).max(0));
        self.page.add(&of::OLDEST_READY, &[project], oldest as f64 / 1_000.0);
        self.page.count(&of::CLAIMED, &[project], view.count_claimed()?);
        self.page.count(&of::STUCK, &[project], view.count_stuck()?);
        self.page.count(&of::EARLY, &[project], view.early()?.count);
        for (kind, count) in view.count_problems_by_kind()? {
            self.page.count(&of::PROBLEMS, &[project, ("type", &kind)], count);
        }
        Ok(())
    }

    fn sessions(&mut self, view: &View<'_>) -> Result<(), LogError> {
        let project = ("project", self.name);
        for found in view.count_sessions()? {
            let (metric, label) = if found.is_over {
                (&of::SESSIONS_ENDED, "outcome")
            } else {
                (&of::SESSIONS, "state")
            };
            self.page.count(metric, &[project, (label, &found.state)], found.count);
        }
        Ok(())
    }

    fn usage(&mut self, view: &View<'_>) -> Result<(), LogError> {
        let project = ("project", self.name);
        for row in view.usage(UsageBy::Agent, None)? {
            let agent = self.clean(&row.key);
            let labels = [project, ("agent", agent.as_str())];
            let kind = |kind: &'static str| [labels[0], labels[1], ("type", kind)];
            let usage = row.usage;
            self.page.count(&of::TURNS, &labels, row.turns);
            self.page.count(&of::TOKENS, &kind("input"), usage.input_tokens);
            self.page.count(&of::TOKENS, &kind("output"), usage.output_tokens);
            self.page.count(&of::CACHED, &labels, usage.cached_tokens);
            if let Some(micros) = row.cost().known_micros() {
                self.page.add(&of::COST, &labels, dollars(micros));
            }
        }
        Ok(())
    }

    fn hooks(&mut self, view: &View<'_>) -> Result<(), LogError> {
        let project = ("project", self.name);
        for runs in view.hook_runs()? {
            let hook = ("hook", runs.name.as_str());
            let rest = runs.runs.saturating_sub(runs.failures + runs.blocks);
            for (status, count) in
                [("passed", rest), ("blocked", runs.blocks), ("failed", runs.failures)]
            {
                self.page.count(&of::HOOK_RUNS, &[project, hook, ("status", status)], count);
            }
        }
        for HookTimes { name, sizes } in view.hook_times()? {
            let within = |most_ms: u64| sizes.iter().filter(move |(ms, _)| *ms <= most_ms);
            let bucket = |power: u32| {
                let most_ms = 1u64 << power;
                (most_ms as f64 / 1_000.0, within(most_ms).map(|(_, runs)| runs).sum())
            };
            let sum: f64 = sizes.iter().map(|(ms, runs)| *ms as f64 / 1_000.0 * *runs as f64).sum();
            let count = sizes.iter().map(|(_, runs)| runs).sum();
            let labels = [project, ("hook", name.as_str())];
            self.page.histogram(&of::HOOK_DURATION, &labels, &BUCKETS.map(bucket), (sum, count));
        }
        Ok(())
    }

    fn budget(&mut self, view: &View<'_>) -> Result<(), LogError> {
        let project = ("project", self.name);
        let standing = view.budget_standing(Day::from(self.project.now()))?;
        let budget = &self.project.rules().limits.budget;
        for (period, bounds, spent) in
            [("day", budget.day, standing.day), ("total", budget.total, standing.total)]
        {
            let BudgetBounds { cost_micros, tokens, turns } = bounds;
            let gone: Amount = spent.plus(standing.open);
            let labels = [project, ("period", period)];
            if let Some(most) = cost_micros {
                let left = dollars(most.saturating_sub(gone.cost_micros));
                self.page.add(&of::BUDGET_COST, &labels, left);
            }
            if let Some(most) = tokens {
                self.page.count(&of::BUDGET_TOKENS, &labels, most.saturating_sub(gone.tokens));
            }
            if let Some(most) = turns {
                self.page.count(&of::BUDGET_TURNS, &labels, most.saturating_sub(gone.turns));
            }
        }
        self.page.add(&of::RESERVED_COST, &[project], dollars(standing.open.cost_micros));
        self.page.count(&of::RESERVED_TOKENS, &[project], standing.open.tokens);
        Ok(())
    }

    fn log(&mut self, view: &View<'_>) -> Result<(), LogError> {
        let project = ("project", self.name);
        let totals = view.totals()?;
        let lag = view.next_due()?.map_or(0, |due| totals.head.saturating_sub(due) + 1);
        self.page.count(&of::DUE, &[project], view.count_due()?);
        self.page.count(&of::DUE_LAG, &[project], lag);
        self.page.count(&of::WORKFLOWS, &[project], view.count_runs()?);
        let ended = [("completed", totals.runs.completed), ("failed", totals.runs.failed)];
        for (outcome, count) in ended {
            self.page.count(&of::WORKFLOWS_ENDED, &[project, ("outcome", outcome)], count);
        }
        self.page.count(&of::VIEW_HEAD, &[project], totals.head);
        Ok(())
    }

    /// A name that a user may have typed, without secrets.
    fn clean(&self, name: &str) -> String {
        match self.project.runner() {
            Some(runner) => runner.redacted(name).unwrap_or_default(),
            None => name.to_owned(),
        }
    }
}

fn dollars(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}
