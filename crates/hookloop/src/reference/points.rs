//! The page of hook points.

use hookloop_core::options::HookOptions;
use hookloop_core::point::{Point, PointKind};

use super::list;

const HEAD: &str = "# Hook points

Where hooks run. A gate may say no; a reaction follows a fact, and its failure stops nothing. The name in the payload is `hook_event_name`, in the dialect that
other agents' hooks read. Variables are written `{{name}}` in commands, and never become shell text ([values](../command-hooks.md#values)).

A point is also what a hook logs: `hook.<name>.<type>`, with the variables of `task_created`.
";

pub(super) fn page() -> String {
    let mut text = HEAD.to_owned();
    text.push_str(
        "\n| point | kind | name in the payload | timeout | variables |\n|---|---|---|---|---|\n",
    );
    for name in Point::names() {
        let Ok(point) = name.parse::<Point>() else { continue };
        if point.name() != name {
            continue;
        }
        let kind = match point.kind() {
            PointKind::Gate => "gate",
            PointKind::Reaction => "reaction",
        };
        let seconds = HookOptions::default().timeout_at(point.kind()) / 1_000;
        let told = point.event_name();
        let variables = list(point.variables().iter().copied());
        text.push_str(&format!(
            "| [`{name}`](../points/{name}.md) | {kind} | `{told}` | {seconds} s | {variables} |\n"
        ));
    }
    let other = Point::names().into_iter().filter_map(|name| {
        let point: Point = name.parse().ok()?;
        (point.name() != name).then(|| format!("`{name}` is `{point}`."))
    });
    text.push_str(&format!("\n{}\n", other.collect::<Vec<_>>().join(" ")));
    text
}
