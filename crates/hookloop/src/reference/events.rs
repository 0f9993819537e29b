//! The page of events, from the types that are stored.

use hookloop_core::event::EventBody;

use super::cell;
use super::shape::SchemaShape;

const HEAD: &str = "# Events

All types of events that this version writes, and the fields of their `data`. `hookloop log --json` prints events, one object a line, with
the fields that all events have ([the log](../log.md#events-as-json)). `--all` includes bookkeeping events.

New versions add names and rename none. A program keeps events of a newer version and skips the types that it does not know. An event that
a hook logs has the type `hook.<name>.<type>` and the data of the hook.
";

pub(super) fn page() -> String {
    let mut text = HEAD.to_owned();
    let mut about = "";
    for event in EventBody::types() {
        if event.about != about {
            about = event.about;
            text.push_str(&format!("\n## {about}\n"));
        }
        text.push_str(&format!("\n### {}\n\n{}\n", event.name, event.meaning));
        let rows = SchemaShape::spelled_out(&event.schema).rows(&event.schema);
        if rows.is_empty() {
            text.push_str("\nNo data.\n");
            continue;
        }
        text.push_str("\n| field | value | meaning |\n|---|---|---|\n");
        for row in rows {
            let optional = if row.is_required { "" } else { ", optional" };
            let kind = cell(&row.kind);
            let meaning = cell(&row.meaning);
            text.push_str(&format!("| `{}` | {kind}{optional} | {meaning} |\n", row.name));
        }
    }
    text
}
