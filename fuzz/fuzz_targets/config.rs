//! Arbitrary contents of `hookloop.yaml`: parsed in bounded time, and either refused with a
//! position or consistent with all rules.

#![no_main]
#![expect(clippy::expect_used, reason = "what can't be breaks the run")]

use std::path::{Component, Path};

use hookloop_config::ConfigError;
use hookloop_config::condition::Condition;
use hookloop_config::project_file::{ProjectSettings, settings_from};
use hookloop_core::hook::{Hook, HookHandler, HookSource};
use hookloop_core::options::{ATTEMPTS_MAX, EnvEntry, TIMEOUT_MAX_MS, is_dangerous_variable};
use hookloop_core::point::PointKind;
use hookloop_hooks::trust::{SeenHook, needs_trust};
use libfuzzer_sys::fuzz_target;

#[path = "../time.rs"]
mod time;

fuzz_target!(|data: &[u8]| {
    let read = || settings_from(Path::new("hookloop.yaml"), data);
    match time::limited("reading it", read) {
        Err(error) => check_error(&error, data),
        Ok(settings) => {
            let again = read().map(|again| format!("{again:?}"));
            assert_eq!(again.ok(), Some(format!("{settings:?}")), "two parses differ");
            check_settings(&settings);
        }
    }
});

/// Checks that an error has a message, and a position inside the file.
fn check_error(error: &ConfigError, data: &[u8]) {
    assert!(!error.message.trim().is_empty());
    let lines = data.split(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
    let (Some(line), Some(column)) = (error.line, error.column) else {
        panic!("no position: {error}");
    };
    assert!((1..=lines + 1).contains(&line), "{line} of {lines}: {error}");
    assert!((1..=data.len() as u64 + 2).contains(&column), "column {column}: {error}");
}

fn check_settings(settings: &ProjectSettings) {
    let hooks = settings.rules.hooks.list();
    assert!(hooks.len() <= 256 + 16);
    for hook in hooks {
        check_hook(hook);
        let alike =
            |other: &&Hook| (&other.name, &other.task_type) == (&hook.name, &hook.task_type);
        assert_eq!(hooks.iter().filter(alike).count(), 1, "two hooks `{}`", hook.name);
    }
}

fn check_hook(hook: &Hook) {
    let starts_something = match &hook.handler {
        HookHandler::Command(_) | HookHandler::Http { .. } | HookHandler::Gatekeepers { .. } => {
            true
        }
        // An unlisted builtin that delivers is the product's own.
        HookHandler::Builtin(builtin) => {
            !builtin.is_reaction() && hook.source == HookSource::Project
        }
        HookHandler::Declared(_) | HookHandler::Rule(_) => false,
    };
    assert_eq!(starts_something, asked(hook), "the hook would run without trust: {hook:?}");
    let is_its_own = matches!(hook.source, HookSource::Builtin | HookSource::Project);
    assert!(is_its_own, "a repository set a hook of the user or of the policy");
    assert!(!hook.points.is_empty());
    for point in &hook.points {
        if let HookHandler::Command(text) = &hook.handler {
            assert!(text.compile(&point.variables()).is_ok(), "{text:?}");
        }
        if let Some(when) = &hook.options.when {
            assert!(Condition::compile(when, point).is_ok(), "{when}");
        }
        if matches!(hook.handler, HookHandler::Gatekeepers { .. }) {
            assert_eq!(point.kind(), PointKind::Gate);
        }
    }
    let options = &hook.options;
    assert!(options.timeout_ms.is_none_or(|ms| (1..=TIMEOUT_MAX_MS).contains(&ms)));
    assert!((1..=ATTEMPTS_MAX).contains(&options.retry.attempts));
    assert!(options.retry.backoff_ms <= TIMEOUT_MAX_MS);
    for entry in &options.env {
        if let EnvEntry::Set { name, .. } = entry {
            assert!(!is_dangerous_variable(name), "{name}");
        }
    }
    let written = options.sandbox.iter().flat_map(|sandbox| sandbox.write.iter().flatten());
    for path in options.cwd.iter().chain(written) {
        let leads_out = |part| matches!(part, Component::ParentDir | Component::RootDir);
        assert!(!Path::new(path).components().any(leads_out), "{path}");
    }
}

/// Returns whether a hook requires the user's trust, in a project without files.
fn asked(hook: &Hook) -> bool {
    let seen = SeenHook::look(Path::new("/nowhere"), hook).expect("there are no files to read");
    needs_trust(hook, &seen)
}
