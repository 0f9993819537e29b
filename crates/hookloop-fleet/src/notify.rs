//! Notifies people about problems that need them: each problem once for each channel.
//!
//! A message is claimed before it is sent, by an event on a subject named after the channel and the
//! topic. The log accepts one claim. Afterwards the log records whether the message was sent. A
//! process that has seen a claim without a result for [`CLAIM_SILENT`], by its own clock, sends the
//! message again under the same id. Only a crash in between can duplicate a message. The receiver
//! recognises a duplicate by the id.
//!
//! A channel's secrets are in memory only while a message is sent. The log holds a digest of the
//! destination.
//!
//! - `message`: the content of a message
//! - `send`: the ways to a person
//! - `seen`: the time since which a message has been in its state

mod message;
mod seen;
mod send;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryIter, channel};
use std::time::Duration;

use hookloop_config::channels::{ChannelKind, NotificationChannel, SendMode};
use hookloop_config::clock::now;
use hookloop_config::ids::fresh_id;
use hookloop_core::event::{EventBody, NoData};
use hookloop_core::id::{NoticeId, Subject};
use hookloop_core::inbox::{NotificationClaimed, NotificationFailed, Problem, ProblemKey};
use hookloop_core::time::Timestamp;
use hookloop_engine::batch::{Batch, EventOrigin};
use hookloop_engine::error::EngineError;
use hookloop_engine::inbox;
use hookloop_engine::machine::machine;
use hookloop_engine::project::Project;
use hookloop_hooks::runner::HookRunner;
use hookloop_store::crash;
use hookloop_store::log::Seq;
use hookloop_store::view::{NotificationRow, NotificationState};
pub(crate) use message::{MessageItem, NotificationMessage};
use seen::SeenItems;
use send::OpenChannel;

/// Time after which a claim without a result counts as abandoned by a process that died.
pub const CLAIM_SILENT: Duration = Duration::from_secs(5 * 60);
/// Pause after a failed attempt. Each further one doubles it.
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// Largest number of attempts for each message.
pub const TRIES_MAX: u32 = 10;
/// Limits of one round for each channel: its messages, and the problems of one digest.
const ROUND_MAX: usize = 50;
const DIGEST_MAX: usize = 500;
/// Interval between two rounds of a [`Notifier`].
const ROUND_EVERY: Duration = Duration::from_secs(3);

/// The time of a round: the time of day, and a monotonic clock that cannot be set.
#[derive(Clone, Copy, Debug)]
pub struct RoundTime {
    pub at: Timestamp,
    pub running_ms: u64,
}

impl RoundTime {
    pub fn now() -> RoundTime {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let ms = time.tv_sec.unsigned_abs() * 1_000 + time.tv_nsec.unsigned_abs() / 1_000_000;
        RoundTime { at: now(), running_ms: ms }
    }
}

/// The result of one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundReport {
    pub sent: Vec<SentMessage>,
    pub failed: Vec<SendFailure>,
    /// Messages that another process may be sending, or that are tried again later.
    pub waiting: usize,
}

/// A message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    pub channel: String,
    pub id: NoticeId,
    pub problems: Vec<ProblemKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendFailure {
    pub channel: String,
    pub reason: String,
}

/// Whether a channel is configured for a project.
fn is_for(channel: &NotificationChannel, project: &Project) -> bool {
    let root = project.runner().map(|runner| runner.home().display().to_string());
    let is_it = |name: &String| *name == project.name() || Some(name) == root.as_ref();
    channel.projects.is_empty() || channel.projects.iter().any(is_it)
}

/// Sends each channel the problems that it has not received yet.
///
/// Any number of processes may run rounds concurrently.
pub fn round(
    project: &Project,
    channels: &[NotificationChannel],
    moment: RoundTime,
) -> Result<RoundReport, EngineError> {
    let mut report = RoundReport::default();
    let Some(runner) = project.runner() else { return Ok(report) };
    let mut seen = SeenItems::load(project);
    for channel in channels.iter().filter(|channel| is_for(channel, project)) {
        match ReadyChannel::open(project, channel, runner) {
            Ok(post) => post.round(moment, &mut seen, &mut report)?,
            Err(reason) => report.fail(channel, reason),
        }
    }
    seen.save();
    Ok(report)
}

/// Returns the setup error of a channel, such as an unset address or a missing program.
pub fn trouble(channel: &NotificationChannel, runner: &HookRunner) -> Option<String> {
    OpenChannel::open(channel, runner).err()
}

/// Sends a test message.
pub fn test(project: &Project, channel: &NotificationChannel) -> Result<(), String> {
    let runner = project.runner().ok_or("there is no directory to work in")?;
    let item = MessageItem {
        key: "task:test@0".to_owned(),
        kind: "test",
        title: "this is a test: nothing is the matter".to_owned(),
        reason: format!("Channel `{}` works.", channel.name),
        since: now().to_string(),
    };
    let id = NoticeId::of(&["test", &fresh_id().to_string()]);
    let message = NotificationMessage {
        id,
        project: project.name().to_owned(),
        items: vec![item],
        omitted: 0,
    };
    OpenChannel::open(channel, runner)?.send(&message.cleaned())
}

impl RoundReport {
    fn fail(&mut self, channel: &NotificationChannel, reason: String) {
        self.failed.push(SendFailure { channel: channel.name.clone(), reason });
    }
}

/// A channel of a project, ready to send.
struct ReadyChannel<'p> {
    project: &'p Project,
    channel: &'p NotificationChannel,
    door: OpenChannel<'p>,
    /// The channel's name in the log. It is a digest, so it does not reveal the destination.
    to: String,
}

impl<'p> ReadyChannel<'p> {
    fn open(
        project: &'p Project,
        channel: &'p NotificationChannel,
        runner: &'p HookRunner,
    ) -> Result<ReadyChannel<'p>, String> {
        let door = OpenChannel::open(channel, runner)?;
        let way = match channel.way {
            ChannelKind::Webhook(_) => "webhook",
            ChannelKind::Slack(_) => "slack",
            ChannelKind::Desktop => "desktop",
            ChannelKind::Mail(_) => "email",
        };
        let to = NoticeId::of(&[&channel.name, way, &door.place]).to_string();
        Ok(ReadyChannel { project, channel, door, to })
    }

    fn round(
        &self,
        moment: RoundTime,
        seen: &mut SeenItems,
        report: &mut RoundReport,
    ) -> Result<(), EngineError> {
        let unsent = self.project.read(|view| view.unsent(&self.to, TRIES_MAX, ROUND_MAX))?;
        for notice in unsent {
            match seen.silence(&notice, moment.running_ms) < patience(&notice) {
                true => report.waiting += 1,
                false => self.deliver(&notice.id, notice.version, &notice.problems, report)?,
            }
        }
        match self.channel.mode {
            SendMode::Each => self.tell_each(report),
            SendMode::Digest { every } => self.tell_together(every, moment.at, report),
        }
    }

    fn untold(&self, limit: usize) -> Result<Vec<Problem>, EngineError> {
        self.project.read(|view| view.untold(&self.to, &self.channel.types, limit))
    }

    fn tell_each(&self, report: &mut RoundReport) -> Result<(), EngineError> {
        for problem in self.untold(ROUND_MAX)? {
            let id = NoticeId::of(&[&self.to, &problem.key.to_string()]);
            self.deliver(&id, 0, &[problem.key], report)?;
        }
        Ok(())
    }

    /// Sends one message for all problems that began before the current digest period.
    fn tell_together(
        &self,
        every: Duration,
        at: Timestamp,
        report: &mut RoundReport,
    ) -> Result<(), EngineError> {
        let every = i64::try_from(every.as_millis()).unwrap_or(i64::MAX).max(1);
        let slot = at.0.div_euclid(every);
        let begin = Timestamp(slot.saturating_mul(every));
        let mut problems = self.untold(DIGEST_MAX)?;
        problems.retain(|problem| problem.since < begin);
        if problems.is_empty() {
            return Ok(());
        }
        let keys: Vec<ProblemKey> = problems.into_iter().map(|problem| problem.key).collect();
        let id = NoticeId::of(&[&self.to, "digest", &slot.to_string()]);
        self.deliver(&id, 0, &keys, report)
    }

    /// Sends a message, unless its state has changed since the caller read it.
    fn deliver(
        &self,
        id: &NoticeId,
        version: Seq,
        problems: &[ProblemKey],
        report: &mut RoundReport,
    ) -> Result<(), EngineError> {
        if !self.claim(id, version, problems)? {
            return Ok(());
        }
        let subject = Subject::Notice(id.clone());
        let message = self.message(id, problems)?;
        if message.items.is_empty() {
            return self.project.append(&subject, EventBody::NotificationDropped(NoData {}));
        }
        crash::point("notice");
        let sent = self.door.send(&message);
        crash::point("noticed");
        let body = match sent {
            Ok(()) => {
                let (channel, problems) = (self.channel.name.clone(), problems.to_vec());
                report.sent.push(SentMessage { channel, id: id.clone(), problems });
                EventBody::NotificationSent(NoData {})
            }
            Err(reason) => {
                report.fail(self.channel, reason.clone());
                EventBody::NotificationFailed(NotificationFailed { reason })
            }
        };
        self.project.append(&subject, body)
    }

    /// Claims the message for this process. Of concurrent claims, the log accepts one.
    fn claim(
        &self,
        id: &NoticeId,
        version: Seq,
        problems: &[ProblemKey],
    ) -> Result<bool, EngineError> {
        let subject = Subject::Notice(id.clone());
        let claimed = NotificationClaimed {
            channel: self.channel.name.clone(),
            to: self.to.clone(),
            machine: machine(),
            problems: problems.iter().map(ToString::to_string).collect(),
        };
        let event = fresh_id();
        self.project.store().transact(|unit| {
            let mut work = Batch::new(unit, self.project.rules(), now())?;
            let view = work.unit.view()?;
            if view.version(&subject)? != version {
                return Ok(false);
            }
            for problem in problems.iter().filter(|_| version == 0) {
                if view.is_told(&self.to, problem)? {
                    return Ok(false);
                }
            }
            let origin = EventOrigin::command(event, self.project.actor());
            let body = EventBody::NotificationClaimed(claimed.clone());
            work.stage_quietly(origin, subject.clone(), body)?;
            Ok(true)
        })
    }

    /// Returns the message for those of the problems that are still unresolved.
    fn message(
        &self,
        id: &NoticeId,
        problems: &[ProblemKey],
    ) -> Result<NotificationMessage, EngineError> {
        let runner = self.project.runner();
        let plain = |text: String| match (runner, runner.and_then(|runner| runner.redactor())) {
            (_, Some(redactor)) => redactor.text(&text),
            (None, None) => text,
            (Some(_), None) => "not told: there are too many secrets to look for".to_owned(),
        };
        let mut items = Vec::new();
        let mut omitted = 0;
        for key in problems {
            let Some(problem) = inbox::standing(self.project, key)? else { continue };
            if items.len() == message::ITEMS_MAX {
                omitted += 1;
                continue;
            }
            items.push(MessageItem {
                key: key.to_string(),
                kind: problem.kind.name(),
                title: plain(inbox::title(self.project, &problem)?),
                reason: plain(problem.reason),
                since: problem.since.to_string(),
            });
        }
        let project = self.project.name().to_owned();
        Ok(NotificationMessage { id: id.clone(), project, items, omitted }.cleaned())
    }
}

/// Returns the time before the next attempt for a message in this state.
fn patience(notice: &NotificationRow) -> Duration {
    match notice.state {
        NotificationState::Failed => {
            RETRY_AFTER * 2_u32.saturating_pow(notice.tries.saturating_sub(1))
        }
        NotificationState::Claimed | NotificationState::Over => CLAIM_SILENT,
    }
}

/// Runs rounds on a thread of its own until it is dropped.
///
/// A slow receiver delays no other work.
#[derive(Debug)]
pub struct Notifier {
    reports: Receiver<Result<RoundReport, EngineError>>,
    /// The rounds end when this is dropped.
    _over: Sender<()>,
}

impl Notifier {
    /// Starts the rounds. Returns `None` if there is no channel.
    pub fn start(
        project: &Project,
        channels: Vec<NotificationChannel>,
    ) -> std::io::Result<Option<Notifier>> {
        if channels.is_empty() {
            return Ok(None);
        }
        let ((told, reports), (over, is_over)) = (channel(), channel::<()>());
        let project = project.clone();
        std::thread::Builder::new().name("notify".to_owned()).spawn(move || {
            let mut known = Vec::new();
            loop {
                let mut report = round(&project, &channels, RoundTime::now());
                // Reports a repeated failure once.
                if let Ok(report) = &mut report {
                    let failed = report.failed.clone();
                    report.failed.retain(|failure| !known.contains(failure));
                    known = failed;
                }
                let is_news =
                    !report.as_ref().is_ok_and(|r| r.sent.is_empty() && r.failed.is_empty());
                if is_news && told.send(report).is_err() {
                    return;
                }
                if is_over.recv_timeout(ROUND_EVERY) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Some(Notifier { reports, _over: over }))
    }

    /// Returns the reports since the last call. Rounds without news have none.
    pub fn reports(&self) -> TryIter<'_, Result<RoundReport, EngineError>> {
        self.reports.try_iter()
    }
}
