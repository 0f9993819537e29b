//! Metrics for Prometheus, computed for each request.
//!
//! - [`table`]: every metric
//! - [`project`]: the metrics of a project, from its view
//! - [`worker`]: the metrics of a worker since its start
//!
//! Labels are names from the configuration, never ids: the size of an answer must not grow with the work.

mod project;
mod table;
mod worker;

use std::collections::{BTreeMap, BTreeSet};

use hookloop_core::excerpt::first_chars;
use hookloop_engine::error::EngineError;
use hookloop_engine::project::Project;
pub(crate) use project::add_project;
use table::{METRICS, MetricInfo, MetricKind};
pub(crate) use worker::WorkerTally;

pub(crate) const PATH: &str = "/metrics";
/// The text format of Prometheus.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Values of one label; further ones are added up as [`OTHER`].
const VALUES_MAX: usize = 100;
const OTHER: &str = "other";
/// The longest value of a label.
const VALUE_MAX: usize = 80;

/// Labels of a sample.
type Labels<'a> = &'a [(&'static str, &'a str)];

/// All samples of one answer.
#[derive(Debug, Default)]
pub(crate) struct MetricsPage {
    /// By metric, then by labels as they are written: equal ones are added up.
    samples: BTreeMap<&'static str, BTreeMap<String, f64>>,
    /// Values of labels that have been seen, by metric and label.
    values: BTreeMap<(&'static str, &'static str), BTreeSet<String>>,
}

impl MetricsPage {
    fn add(&mut self, metric: &MetricInfo, labels: Labels<'_>, value: f64) {
        self.add_as(metric, "", labels, value);
    }

    fn count(&mut self, metric: &MetricInfo, labels: Labels<'_>, value: u64) {
        self.add(metric, labels, value as f64);
    }

    /// Adds the samples of a histogram; the buckets are cumulative.
    fn histogram(
        &mut self,
        metric: &MetricInfo,
        labels: Labels<'_>,
        buckets: &[(f64, u64)],
        (sum, count): (f64, u64),
    ) {
        let whole = [(f64::INFINITY, count)];
        for (most, count) in buckets.iter().chain(&whole) {
            let most = if most.is_finite() { most.to_string() } else { "+Inf".to_owned() };
            let labels = [labels, &[("le", most.as_str())]].concat();
            self.add_as(metric, "_bucket", &labels, *count as f64);
        }
        self.add_as(metric, "_sum", labels, sum);
        self.add_as(metric, "_count", labels, count as f64);
    }

    fn add_as(&mut self, metric: &MetricInfo, part: &str, labels: Labels<'_>, value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", self.value(metric, label, value)))
            .collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let samples = self.samples.entry(metric.name).or_default();
        *samples.entry(format!("{}{part}{labels}", metric.name)).or_default() += value;
    }

    /// Returns a label's value, escaped, or `other` if there are too many values.
    fn value(&mut self, metric: &MetricInfo, label: &'static str, value: &str) -> String {
        let value = first_chars(value, VALUE_MAX);
        let seen = self.values.entry((metric.name, label)).or_default();
        if !seen.contains(&value) && seen.len() >= VALUES_MAX && label != "le" {
            return OTHER.to_owned();
        }
        let written = value.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"");
        seen.insert(value);
        written
    }

    /// Returns the page, with every metric, even one without samples.
    fn render(&self) -> String {
        let mut text = String::new();
        for MetricInfo { name, kind, help } in METRICS {
            let kind = match kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
            let samples = self.samples.get(name).into_iter().flatten();
            let mut samples: Vec<(&String, &f64)> = samples.collect();
            samples.sort_by(|one, other| {
                let (one, first) = order(one.0);
                let (other, second) = order(other.0);
                one.cmp(other).then(first.total_cmp(&second))
            });
            for (sample, value) in samples {
                text.push_str(&format!("{sample} {value}\n"));
            }
        }
        text
    }
}

/// Returns the sort key of a sample: its labels, then its bucket; sum and count follow the buckets.
fn order(sample: &str) -> (&str, f64) {
    let labels = sample.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
    match labels.rsplit_once(",le=\"") {
        Some((labels, "+Inf\"")) => (labels, f64::MAX),
        Some((labels, most)) => (labels, most.trim_end_matches('"').parse().unwrap_or(f64::MAX)),
        None => (labels, f64::INFINITY),
    }
}

/// Returns the metrics of a project as text; none if they can't be read now.
pub(crate) fn project_page(project: &Project) -> Option<String> {
    let mut page = MetricsPage::default();
    // The caller answers that the service is not available; the next scrape asks again.
    let unread = |error: &EngineError| {
        tracing::warn!(project = project.name(), %error, "the metrics of a project can't be read");
    };
    add_project(&mut page, project.name(), project).inspect_err(unread).ok()?;
    Some(page.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(page: &MetricsPage, metric: &MetricInfo) -> Vec<String> {
        let text = page.render();
        let is_its = |line: &&str| line.starts_with(metric.name);
        text.lines().filter(is_its).map(str::to_owned).collect()
    }

    #[test]
    fn label_values_are_escaped() {
        let mut page = MetricsPage::default();
        page.count(&table::TASKS, &[("project", "a\"} 1\nb\\"), ("state", "ready")], 2);
        assert_eq!(
            lines(&page, &table::TASKS),
            ["hookloop_tasks{project=\"a\\\"} 1\\nb\\\\\",state=\"ready\"} 2"]
        );
    }

    #[test]
    fn label_values_over_the_limit_are_counted_as_other() {
        let mut page = MetricsPage::default();
        for number in 0..250 {
            let agent = format!("agent-{number}");
            page.count(&table::TURNS, &[("project", "p"), ("agent", &agent)], 1);
        }
        let found = lines(&page, &table::TURNS);
        assert_eq!(found.len(), VALUES_MAX + 1);
        let rest = "hookloop_turns_total{project=\"p\",agent=\"other\"} 150".to_owned();
        assert!(found.contains(&rest), "{found:?}");
    }

    #[test]
    fn histogram_lines_are_in_the_order_of_the_format() {
        let mut page = MetricsPage::default();
        let labels = [("project", "p"), ("hook", "h")];
        page.histogram(
            &table::HOOK_DURATION,
            &labels,
            &[(0.5, 1), (16.0, 3), (128.0, 3)],
            (9.5, 4),
        );
        let found = lines(&page, &table::HOOK_DURATION);
        let bucket = |most| {
            format!(
                "hookloop_hook_duration_seconds_bucket{{project=\"p\",hook=\"h\",le=\"{most}\"}}"
            )
        };
        let expected = [
            format!("{} 1", bucket("0.5")),
            format!("{} 3", bucket("16")),
            format!("{} 3", bucket("128")),
            format!("{} 4", bucket("+Inf")),
            "hookloop_hook_duration_seconds_count{project=\"p\",hook=\"h\"} 4".to_owned(),
            "hookloop_hook_duration_seconds_sum{project=\"p\",hook=\"h\"} 9.5".to_owned(),
        ];
        assert_eq!(found, expected);
    }
}
