//! One message per problem, with any number of processes, calls and crashes.

use std::process::Stdio;
use std::time::Duration;

use hookloop_config::paths::ProjectPaths;
use hookloop_core::time::Timestamp;
use hookloop_engine::log_location::LaunchContext;
use hookloop_engine::project::Project as Opened;
use hookloop_fleet::notify::{CLAIM_SILENT, RoundReport, RoundTime, TRIES_MAX, round};
use hookloop_testkit::{eventually, json_lines};

use crate::cli::{DEADLINE, Project, fields, strings};
use crate::inbox::receivers::{Hook, Post};
use crate::inbox::{blocked, channels, key, keys};

pub(crate) const PASSWORD: &str = "correct-horse-battery";

/// Returns one channel of each type that uses the network.
pub(crate) fn three(hook: &Hook, post: &Post) -> String {
    format!(
        "  - {{name: hook, webhook: '{}'}}\n  - {{name: chat, slack: {{env: CHAT_URL}}}}\n  - name: mail\n    email:\n      \
         smtp: 127.0.0.1:{}\n      tls: none\n      user: me\n      password: {{env: MAIL_PASSWORD}}\n      \
         from: Loop <loop@example.org>\n      to: [me@example.org, you@example.org]\n",
        hook.url("hook"),
        post.port
    )
}

/// Runs a notification round in this process, this much later than now.
fn later(project: &Project, after: Duration) -> RoundReport {
    let place =
        ProjectPaths::find(&project.root(), &project.home().join(".local/state/hookloop")).unwrap();
    let user_file = Some(project.home().join(".config/hookloop/config.yaml"));
    let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
    let around = LaunchContext { user_file, environment: vec![path], ..LaunchContext::default() };
    let opened = Opened::open(&place, "tester", &around).unwrap();
    let moment = RoundTime::now();
    let ms = after.as_millis() as u64;
    let at = Timestamp(moment.at.0 + ms as i64);
    let moment = RoundTime { at, running_ms: moment.running_ms + ms };
    round(&opened, &around.user().unwrap().channels, moment).unwrap()
}

#[test]
fn each_problem_is_notified_once() {
    let project = Project::new();
    let hook = Hook::start();
    channels(&project, &format!("  - {{name: hook, webhook: '{}'}}\n", hook.url("x")));
    assert_eq!(project.ok(&["inbox", "notify"]), "");
    blocked(&project, "a", "Parse it", "which encoding?");
    let found = key(&project);
    let told = json_lines(&project.ok(&["inbox", "notify", "--json"]));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(fields(&told[0]), ["channel", "notification", "problems", "reason", "sent"].into());
    for _ in 0..3 {
        assert_eq!(project.ok(&["inbox", "notify"]), "");
    }
    let posted = hook.posted();
    assert_eq!(posted.len(), 1, "{posted:?}");
    let body = &posted[0].body;
    assert_eq!(
        fields(body),
        ["channel", "id", "omitted", "problems", "project", "title", "truncated"].into()
    );
    assert_eq!(
        (body["id"].as_str().unwrap(), told[0]["notification"].as_str().unwrap()),
        (posted[0].id.as_str(), posted[0].id.as_str())
    );
    let item = &body["problems"][0];
    assert_eq!(fields(item), ["key", "reason", "since", "title", "type"].into());
    assert_eq!(
        (item["key"].as_str(), item["reason"].as_str()),
        (Some(found.as_str()), Some("which encoding?"))
    );
    // A problem that occurs again is a new problem.
    project.ok(&["inbox", "answer", &found, "utf-8"]);
    project.ok(&["task", "block", "a", "--reason", "which of them?"]);
    project.ok(&["inbox", "notify"]);
    assert_eq!(hook.told(), [[found], [key(&project)]]);
    // A dismissed problem is not sent to a new channel.
    project.ok(&["inbox", "dismiss", "a"]);
    channels(&project, &format!("  - {{name: other, webhook: '{}'}}\n", hook.url("x")));
    assert_eq!(project.ok(&["inbox", "notify"]), "");
    assert_eq!(project.json(&["rebuild"])["equal"], true);
    assert_eq!(hook.posted().len(), 2);
}

#[test]
fn twenty_processes_notify_each_channel_once() {
    let project = Project::new();
    let (hook, post) = (Hook::start(), Post::start(&format!("\0me\0{PASSWORD}")));
    channels(&project, &three(&hook, &post));
    for n in 0..5 {
        blocked(&project, &format!("t{n}"), "Goal", "why");
    }
    let expected: Vec<String> = keys(&project);
    let start = |_| {
        let mut command = project.hookloop(&["inbox", "notify"]);
        command.env("CHAT_URL", hook.url("chat")).env("MAIL_PASSWORD", PASSWORD);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let processes: Vec<_> = (0..20).map(start).collect();
    for process in processes {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let posted = hook.posted();
    let (hooked, chatted): (Vec<_>, Vec<_>) = posted.iter().partition(|one| one.path == "/hook");
    let mut told: Vec<String> =
        hooked.iter().flat_map(|one| strings(&one.body["problems"], "key")).collect();
    told.sort();
    assert_eq!(told, expected);
    assert_eq!((chatted.len(), post.letters().len()), (5, 5));
    assert_eq!(project.events_of("notification_claimed").len(), 15);
    assert_eq!(project.events_of("notification_sent").len(), 15);
    let mut ids: Vec<&str> = posted.iter().map(|one| one.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 10);
}

/// If a sender dies between its claim and its end, the message is sent again later, with the same
/// id.
#[test]
fn a_notification_of_a_killed_sender_is_sent_again_with_the_same_id() {
    let project = Project::new();
    let hook = Hook::start();
    channels(&project, &format!("  - {{name: hook, webhook: '{}'}}\n", hook.url("x")));
    blocked(&project, "a", "Goal", "why");
    hook.answers(0);
    let mut process = project.hookloop(&["inbox", "notify"]).spawn().unwrap();
    eventually("the message", DEADLINE, || (hook.posted().len() == 1).then_some(()));
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(project.events_of("notification_claimed").len(), 1);
    assert_eq!(project.events_of("notification_sent").len(), 0);
    hook.answers(200);
    // The sender may still be running: the first observation of a claim proves nothing.
    project.ok(&["inbox", "notify"]);
    assert_eq!(later(&project, CLAIM_SILENT - Duration::from_secs(60)).waiting, 1);
    assert_eq!(hook.posted().len(), 1);
    assert_eq!(later(&project, CLAIM_SILENT).sent.len(), 1);
    let posted = hook.posted();
    assert_eq!((posted.len(), &posted[0].id), (2, &posted[1].id));
    assert_eq!(posted[0].body, posted[1].body);
    assert_eq!(later(&project, CLAIM_SILENT * 3), RoundReport::default());
    assert_eq!(hook.posted().len(), 2);
    // A message whose problem was solved meanwhile is not sent.
    blocked(&project, "b", "Goal", "why");
    hook.answers(0);
    let mut process = project.hookloop(&["inbox", "notify"]).spawn().unwrap();
    eventually("the message", DEADLINE, || (hook.posted().len() == 3).then_some(()));
    process.kill().unwrap();
    process.wait().unwrap();
    project.ok(&["inbox", "answer", "b", "go on"]);
    hook.answers(200);
    later(&project, Duration::ZERO);
    assert_eq!(later(&project, CLAIM_SILENT), RoundReport::default());
    assert_eq!((hook.posted().len(), project.events_of("notification_dropped").len()), (3, 1));
}

#[test]
fn a_failed_notification_is_retried_a_limited_number_of_times() {
    let project = Project::new();
    let hook = Hook::start();
    channels(&project, &format!("  - {{name: hook, webhook: '{}'}}\n", hook.url("x")));
    blocked(&project, "a", "Goal", "why");
    hook.answers(500);
    let run = project.run(&["inbox", "notify"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, "Could not notify hook: HTTP status 500\n"));
    assert_eq!(project.event("notification_failed")["data"]["reason"], "HTTP status 500");
    // The message is not sent again at once.
    project.ok(&["inbox", "notify"]);
    assert_eq!(hook.posted().len(), 1);
    let mut after = Duration::ZERO;
    for _ in 0..40 {
        after += Duration::from_secs(3 * 60 * 60);
        later(&project, after);
    }
    let posted = hook.posted();
    assert_eq!(posted.len(), TRIES_MAX as usize);
    assert!(posted.iter().all(|one| one.id == posted[0].id));
}

#[test]
fn a_digest_is_one_notification_for_all_new_problems() {
    let project = Project::new();
    let hook = Hook::start();
    let digest =
        format!("  - {{name: hook, webhook: '{}', mode: digest, every: 10h}}\n", hook.url("x"));
    channels(&project, &digest);
    let hours = |n: u64| Duration::from_secs(n * 60 * 60);
    assert_eq!(later(&project, hours(10)), RoundReport::default());
    for n in 0..30 {
        blocked(&project, &format!("t{n}"), "Goal", "why");
    }
    let expected = keys(&project);
    assert_eq!(later(&project, hours(10)).sent[0].problems.len(), 30);
    for _ in 0..3 {
        assert_eq!(later(&project, hours(10)), RoundReport::default());
    }
    assert_eq!(hook.posted().len(), 1);
    let body = &hook.posted()[0].body;
    assert_eq!(
        (&strings(&body["problems"], "key")[..], body["omitted"].as_u64()),
        (&expected[..20], Some(10))
    );
    assert!(body["title"].as_str().unwrap().ends_with("30 problems wait"), "{body}");
    // Later problems wait for the next digest, and another mode does not repeat a problem.
    blocked(&project, "more", "Goal", "why");
    assert_eq!(later(&project, hours(10)), RoundReport::default());
    assert_eq!(later(&project, hours(20)).sent.len(), 1);
    assert_eq!(hook.told()[1].len(), 1);
    channels(&project, &digest.replace(", mode: digest, every: 10h", ""));
    assert_eq!(later(&project, hours(20)), RoundReport::default());
}

#[test]
fn a_channel_gets_only_problems_of_its_types_and_projects() {
    let project = Project::with_config("project: mine\nlimits: {max_iterations: 1}\n");
    let hook = Hook::start();
    let channel = |name: &str, rest: &str| {
        format!("  - {{name: {name}, webhook: '{}', {rest}}}\n", hook.url(name))
    };
    channels(
        &project,
        &[
            channel("tasks", "types: [task_blocked]"),
            channel("sessions", "types: [session_ended, session_paused]"),
            channel("mine", "projects: [other, mine]"),
            channel("others", "projects: [other]"),
            channel(
                "here",
                &format!("projects: ['{}']", project.root().canonicalize().unwrap().display()),
            ),
        ]
        .concat(),
    );
    blocked(&project, "a", "Goal", "why");
    assert_eq!(project.run(&["run", "Do it", "--agent", "command:echo working"]).code, 4);
    project.ok(&["inbox", "notify"]);
    let posted = hook.posted();
    let mut told: Vec<(&str, &str)> = posted
        .iter()
        .map(|one| (&one.path[1..], one.body["problems"][0]["type"].as_str().unwrap()))
        .collect();
    told.sort_unstable();
    let expected = [
        ("here", "session_ended"),
        ("here", "task_blocked"),
        ("mine", "session_ended"),
        ("mine", "task_blocked"),
        ("sessions", "session_ended"),
        ("tasks", "task_blocked"),
    ];
    assert_eq!(told, expected);
}

#[test]
fn the_dispatch_daemon_sends_notifications() {
    let project = Project::new();
    let hook = Hook::start();
    channels(&project, &format!("  - {{name: hook, webhook: '{}'}}\n", hook.url("x")));
    let mut dispatcher =
        project.hookloop(&["dispatch", "--daemon"]).stdout(Stdio::piped()).spawn().unwrap();
    blocked(&project, "a", "Goal", "why");
    eventually("the message", DEADLINE, || (hook.posted().len() == 1).then_some(()));
    eventually("its end in the log", DEADLINE, || {
        (project.events_of("notification_sent").len() == 1).then_some(())
    });
    dispatcher.kill().unwrap();
    dispatcher.wait().unwrap();
    assert_eq!(hook.posted().len(), 1);
}

#[test]
fn desktop_notifications_are_sent_by_notify_send() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    channels(&project, "  - {name: here, desktop: true}\n");
    blocked(&project, "a", "<b>Goal</b>\nof it", "why -x");
    let run = project.run(&["inbox", "notify"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (1, "Could not notify here: there is no notify-send in PATH\n")
    );
    let bin = project.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let fake = bin.join("notify-send");
    std::fs::write(&fake, "#!/bin/sh\nprintf '%s|' \"$@\" > \"$HOME/shown\"\n").unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let output = project.hookloop(&["inbox", "notify"]).env("PATH", &path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = std::fs::read_to_string(project.home().join("shown")).unwrap();
    let words: Vec<&str> = shown.split('|').collect();
    assert_eq!(words[..2], ["--app-name=hookloop", "--"]);
    assert!(words[2].contains("task a is blocked: <b>Goal</b> of it"), "{shown}");
    assert!(
        words[3].contains("&lt;b&gt;Goal&lt;/b&gt; of it") && !words[3].contains('<'),
        "{shown}"
    );
}
