//! Files that pages need, each under a name that contains a hash of its content.

use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use hookloop_core::digest::short_sha256_hex;
use serde::Serialize;

const FOR_EVER: &str = "public, max-age=31536000, immutable";

struct AssetFile {
    stem: &'static str,
    extension: &'static str,
    kind: &'static str,
    text: &'static str,
}

const STYLE: AssetFile = AssetFile {
    stem: "style",
    extension: "css",
    kind: "text/css; charset=utf-8",
    text: include_str!("assets/style.css"),
};
const MODULE: AssetFile = AssetFile {
    stem: "page",
    extension: "js",
    kind: "text/javascript; charset=utf-8",
    text: include_str!("assets/page.js"),
};
const ICON: AssetFile = AssetFile {
    stem: "icon",
    extension: "svg",
    kind: "image/svg+xml",
    text: include_str!("assets/icon.svg"),
};

impl AssetFile {
    fn name(&self) -> String {
        let key = short_sha256_hex(self.text, 8);
        format!("{}-{key}.{}", self.stem, self.extension)
    }
}

/// Where the files are.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Assets {
    pub(super) style: String,
    pub(super) module: String,
    pub(super) icon: String,
}

impl Assets {
    pub(super) fn new() -> Assets {
        Assets { style: STYLE.name(), module: MODULE.name(), icon: ICON.name() }
    }

    pub(super) fn answer(&self, name: &str) -> Response {
        let all = [(&self.style, STYLE), (&self.module, MODULE), (&self.icon, ICON)];
        match all.into_iter().find(|(known, _)| *known == name) {
            Some((_, AssetFile { kind, text, .. })) => {
                ([(CONTENT_TYPE, kind), (CACHE_CONTROL, FOR_EVER)], text).into_response()
            }
            None => StatusCode::NOT_FOUND.into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The colours by name, in light and in dark.
    fn palettes() -> Vec<HashMap<&'static str, [f64; 3]>> {
        let blocks =
            STYLE.text.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap());
        let colour = |hex: &str| {
            let part =
                |at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            [part(0), part(2), part(4)]
        };
        let read = |block: &'static str| {
            let lines =
                block.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(": #"));
            lines.map(|(name, hex)| (name, colour(hex))).collect()
        };
        blocks.map(read).collect()
    }

    /// As WCAG 2 defines it.
    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let linear = |part: f64| {
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let light =
            |[r, g, b]: [f64; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        let one = light(one) + 0.05;
        let other = light(other) + 0.05;
        one.max(other) / one.min(other)
    }

    #[test]
    fn light_and_dark_palettes_have_enough_contrast() {
        let palettes = palettes();
        assert_eq!(palettes.len(), 2);
        for colours in palettes {
            let check = |front: &str, back: &str, least: f64| {
                let found = contrast(colours[front], colours[back]);
                assert!(found >= least, "{front} on {back}: {found:.2}");
            };
            for back in ["paper", "raised", "calm-back"] {
                for front in ["ink", "dim", "link"] {
                    check(front, back, 4.5);
                }
                for bar in ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "bad", "busy"] {
                    check(bar, back, 3.0);
                }
            }
            for state in ["good", "bad", "busy", "calm"] {
                check(state, &format!("{state}-back"), 4.5);
            }
            check("paper", "link", 4.5);
            check("bad", "paper", 4.5);
            check("dim", "bad-back", 4.5);
            check("focus", "paper", 3.0);
        }
    }
}
