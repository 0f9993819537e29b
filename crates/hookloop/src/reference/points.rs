//! The page of hook points.

use hookloop_core::options::HookOptions;
use hookloop_core::point::{Point, PointKind};

use super::list;

const HEAD: &str = "# Hook points

The points at which hooks run. A gate can block. A reaction runs after an event, and its failure blocks nothing. The name in the payload is
`hook_event_name`, as hooks of other agents read it. Write variables as `{{name}}` in commands; they never become shell text
([values](../command-hooks.md#values)).

An event that a hook logs is a hook point too: `hook.<name>.<type>`, with the variables of `task_created`.
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
