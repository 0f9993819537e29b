//! A page: parts under one heading, each with its own template, so that one part can be requested again after a change.
//!
//! All text reaches a page through [`Templates`], where HTML, control characters and invisible characters are escaped.

use hookloop_core::id::Subject;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, UndefinedBehavior, context, escape_formatter};
use serde::Serialize;

use super::assets::Assets;
use super::topics::Topic;
use crate::error::CliError;
use crate::sanitize::is_harmful;

macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("templates/", $name)))),*]
    };
}

const TEMPLATES: &[(&str, &str)] = &templates![
    "layout.html",
    "part.html",
    "count.html",
    "login.html",
    "message.html",
    "projects.html",
    "problems.html",
    "running.html",
    "counts.html",
    "today.html",
    "sessions.html",
    "session.html",
    "now.html",
    "timeline.html",
    "iterations.html",
    "waiting.html",
    "undo.html",
    "tasks.html",
    "task.html",
    "neighbours.html",
    "history.html",
    "graph.html",
    "usage.html",
    "budget.html",
    "hooks.html",
    "fleet.html",
    "log.html",
];

impl From<Error> for CliError {
    fn from(error: Error) -> CliError {
        CliError::system(format!("a page could not be made: {error:#}"))
    }
}

#[derive(Debug)]
pub(super) struct Templates {
    environment: Environment<'static>,
    assets: Assets,
}

impl Templates {
    pub(super) fn new(assets: Assets) -> Result<Templates, Error> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_formatter(|out, state, value| match value.as_str() {
            Some(text) if !value.is_safe() && text.chars().any(is_hidden) => {
                escape_formatter(out, state, &Value::from(spelled(text)))
            }
            _ => escape_formatter(out, state, value),
        });
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
        environment.set_syntax(syntax);
        for (name, text) in TEMPLATES {
            environment.add_template(name, text)?;
        }
        Ok(Templates { environment, assets })
    }

    fn render(&self, name: &str, values: Value) -> Result<String, Error> {
        self.environment.get_template(name)?.render(values)
    }

    /// A page that is no project's.
    pub(super) fn plain(&self, name: &str, title: &str, values: Value) -> Result<String, Error> {
        self.framed(name, values, context! { title, is_known => true })
    }

    /// A page for a client without a login.
    pub(super) fn outside(&self, name: &str, title: &str, values: Value) -> Result<String, Error> {
        self.framed(name, values, context! { title, is_known => false })
    }

    /// One that leads on at once.
    pub(super) fn passing(&self, name: &str, title: &str, values: Value) -> Result<String, Error> {
        self.framed(name, values, context! { title, is_known => false, refresh => true })
    }

    fn framed(&self, name: &str, values: Value, more: Value) -> Result<String, Error> {
        self.frame(self.render(name, values)?, more)
    }

    fn frame(&self, body: String, more: Value) -> Result<String, Error> {
        let body = Value::from_safe_string(body);
        let site: Option<()> = None;
        let assets = value_of(&self.assets);
        self.render("layout.html", context! { body, site, assets, live => "", ..more })
    }
}

/// Something as templates see it.
pub(super) fn value_of(value: impl Serialize) -> Value {
    Value::from(Serde(value))
}

/// Escapes control characters and invisible characters; lines stay lines.
fn is_hidden(c: char) -> bool {
    is_harmful(c) && !matches!(c, '\n' | '\t')
}

fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { spelled.extend(c.escape_default()) } else { spelled.push(c) }
    }
    spelled
}

/// The project that a page is of.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PageHeading {
    pub(super) key: String,
    pub(super) name: String,
    pub(super) root: String,
    pub(super) trouble: Option<String>,
    pub(super) problems: u64,
}

/// A page in the making.
#[derive(Debug)]
pub(super) struct WebPage<'t> {
    templates: &'t Templates,
    /// Which parts are wanted; all of them if none is named.
    wanted: Vec<String>,
    parts: Vec<String>,
}

/// The properties of a page beside its parts.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    /// Which of the project's pages it is.
    pub(super) section: &'a str,
    pub(super) heading: &'a PageHeading,
    pub(super) seq: u64,
    /// The subject of the page, if it has one.
    pub(super) subject: Option<&'a Subject>,
}

/// How a part is kept up to date.
#[derive(Clone, Copy, Debug)]
pub(super) struct PagePart {
    /// As addresses and the document have it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) topics: &'static [Topic],
    /// The seconds between updates, for content that changes without events.
    pub(super) every: Option<u32>,
}

impl PagePart {
    pub(super) const fn new(
        name: &'static str,
        title: &'static str,
        topics: &'static [Topic],
    ) -> PagePart {
        PagePart { name, title, topics, every: None }
    }

    pub(super) const fn every(self, seconds: u32) -> PagePart {
        PagePart { every: Some(seconds), ..self }
    }
}

impl<'t> WebPage<'t> {
    pub(super) fn new(templates: &'t Templates, wanted: Vec<String>) -> WebPage<'t> {
        WebPage { templates, wanted, parts: Vec::new() }
    }

    /// Adds a part, if it is wanted.
    pub(super) fn part<E: From<Error>>(
        &mut self,
        part: PagePart,
        template: &str,
        values: impl FnOnce() -> Result<Value, E>,
    ) -> Result<(), E> {
        if !self.wanted.is_empty() && !self.wanted.iter().any(|wanted| wanted == part.name) {
            return Ok(());
        }
        let body = Value::from_safe_string(self.templates.render(template, values()?)?);
        let topics: Vec<&str> = part.topics.iter().map(|topic| topic.name()).collect();
        let values = context! {
            name => part.name, title => part.title, topics => topics.join(" "), every => part.every, body
        };
        self.parts.push(self.templates.render("part.html", values)?);
        Ok(())
    }

    /// The whole page where it is no project's, or those of its parts that were wanted.
    pub(super) fn plain(self, title: &str) -> Result<String, Error> {
        let parts = self.parts.concat();
        if self.wanted.is_empty() {
            self.templates.frame(parts, context! { title, is_known => true })
        } else {
            Ok(parts)
        }
    }

    /// The whole page, or those of its parts that were wanted.
    pub(super) fn html(self, frame: &Frame<'_>) -> Result<String, Error> {
        let Frame { title, section, heading, seq, subject } = *frame;
        let parts = self.parts.concat();
        let problems = heading.problems;
        let count = self.templates.render("count.html", context! { problems })?;
        if !self.wanted.is_empty() {
            return Ok(parts + &count);
        }
        let about = subject.map_or(String::new(), |subject| format!("&about={subject}"));
        let live = format!("/p/{}/live?since={seq}{about}", heading.key);
        let values = context! {
            title, section, live, is_known => true,
            count => Value::from_safe_string(count),
            site => value_of(heading),
            body => Value::from_safe_string(parts),
            assets => value_of(&self.templates.assets),
            sections => SECTIONS.map(|(path, name)| context! { path, name }).to_vec(),
        };
        self.templates.render("layout.html", values)
    }
}

/// The pages of a project, in the order that they are listed.
const SECTIONS: [(&str, &str); 8] = [
    ("", "Overview"),
    ("sessions", "Sessions"),
    ("tasks", "Tasks"),
    ("graph", "Graph"),
    ("usage", "Usage"),
    ("hooks", "Hooks"),
    ("fleet", "Fleet"),
    ("log", "Log"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_escape_html_and_control_characters() {
        let templates = Templates::new(Assets::new()).unwrap();
        let hostile = "<script>alert(1)</script>\" onload='x' \u{202e}\u{0}";
        let values = context! { title => hostile, text => hostile, next => hostile };
        let html = templates.plain("message.html", hostile, values).unwrap();
        assert!(!html.contains("<script>alert") && !html.contains("onload='"), "{html}");
        assert!(html.contains("\\u{202e}\\u{0}") && !html.contains('\u{202e}'), "{html}");
    }

    #[test]
    fn page_parts_that_are_not_requested_are_not_rendered() {
        let templates = Templates::new(Assets::new()).unwrap();
        let mut page = WebPage::new(&templates, vec!["b".to_owned()]);
        let part = |name| PagePart::new(name, "Title", &[Topic::Log]);
        let values = || Ok::<_, Error>(context! { title => "t", text => "x", next => "" });
        page.part(part("a"), "message.html", || -> Result<Value, Error> { panic!("not wanted") })
            .unwrap();
        page.part(part("b"), "message.html", values).unwrap();
        assert_eq!(page.parts.len(), 1);
    }
}
