//! Attributes of spans: names and values, without secrets and bounded in length.

use hookloop_agents::clipped;
use hookloop_hooks::exec_context::ExecContext;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// Longest text of an attribute, in bytes.
const TEXT_MAX: usize = 8 * 1024;

/// Attributes of one span or event.
pub(super) struct SpanAttributes<'r> {
    list: Vec<KeyValue>,
    /// Redacts secrets.
    runner: Option<&'r ExecContext>,
}

impl<'r> SpanAttributes<'r> {
    pub(super) fn new(runner: Option<&'r ExecContext>) -> SpanAttributes<'r> {
        SpanAttributes { list: Vec::new(), runner }
    }

    pub(super) fn into_list(self) -> Vec<KeyValue> {
        self.list
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        if let Some(text) = clean(self.runner, text) {
            self.list.push(text_value(key, text));
        }
    }

    pub(super) fn maybe(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    pub(super) fn count(&mut self, key: &str, number: impl TryInto<i64>) {
        let number = number.try_into().unwrap_or(i64::MAX);
        self.list.push(value(key, Value::IntValue(number)));
    }

    /// Adds a cost in dollars, from millionths of a dollar.
    pub(super) fn cost(&mut self, key: &str, micros: u64) {
        self.list.push(value(key, Value::DoubleValue(micros as f64 / 1_000_000.0)));
    }

    pub(super) fn flag(&mut self, key: &str, is_set: bool) {
        self.list.push(value(key, Value::BoolValue(is_set)));
    }
}

/// Returns a text without secrets, clipped. Returns `None` if secrets cannot be redacted.
pub(super) fn clean(runner: Option<&ExecContext>, text: &str) -> Option<String> {
    let text = match runner {
        Some(runner) => runner.redacted(text)?,
        None => text.to_owned(),
    };
    Some(clipped(&text, TEXT_MAX))
}

pub(super) fn text_value(key: &str, text: String) -> KeyValue {
    value(key, Value::StringValue(text))
}

fn value(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}
