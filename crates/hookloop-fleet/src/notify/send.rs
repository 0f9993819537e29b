//! The ways to a person: webhooks, Slack and compatible services, desktop notifications, mail.

use std::ffi::OsString;
use std::time::Duration;

use hookloop_config::channels::{ChannelKind, MailSecurity, MailSettings, NotificationChannel};
use hookloop_config::secret_text::SecretText;
use hookloop_core::inbox::{LINE_MAX, one_line};
use hookloop_core::redact::Redactor;
use hookloop_engine::machine::machine;
use hookloop_hooks::exec_context::ExecContext;
use hookloop_hooks::webhook;
use hookloop_http::HttpClient;
use hookloop_process::{ExitReason, Job, find_program};
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{SmtpTransport, Transport};
use serde_json::Value;

use super::message::NotificationMessage;

/// Time limit of an HTTP request, and of each step of an SMTP conversation.
const WITHIN: Duration = Duration::from_secs(10);
const NOTIFY_SEND: &str = "notify-send";

/// A channel with everything that it needs to send.
pub(super) struct OpenChannel<'c> {
    channel: &'c NotificationChannel,
    runner: &'c ExecContext,
    /// The URL or the password.
    secret: Option<SecretText>,
    redactor: Option<Redactor>,
    /// Identifies the destination.
    pub(super) place: String,
}

impl<'c> OpenChannel<'c> {
    /// Collects the secret and the program of a channel, or returns the error text.
    pub(super) fn open(
        channel: &'c NotificationChannel,
        runner: &'c ExecContext,
    ) -> Result<OpenChannel<'c>, String> {
        let environment = runner.environment();
        let secret = match &channel.way {
            ChannelKind::Webhook(url) | ChannelKind::Slack(url) => {
                let url = url.find(environment)?;
                match url.is_url() {
                    true => Some(url),
                    false => return Err("what is given is not a URL".to_owned()),
                }
            }
            ChannelKind::Mail(mail) => {
                let password = mail.login.as_ref().map(|(_, password)| password.find(environment));
                password.transpose()?
            }
            ChannelKind::Desktop => {
                let path = environment.iter().find(|(name, _)| name == "PATH");
                if path.is_none_or(|(_, path)| find_program(NOTIFY_SEND, path).is_none()) {
                    return Err(format!("there is no {NOTIFY_SEND} in PATH"));
                }
                None
            }
        };
        let place = match &channel.way {
            ChannelKind::Webhook(_) | ChannelKind::Slack(_) => {
                secret.as_ref().map_or("", SecretText::reveal).to_owned()
            }
            ChannelKind::Mail(mail) => {
                mail.to.iter().map(|to| to.email.to_string()).collect::<Vec<_>>().join(" ")
            }
            ChannelKind::Desktop => format!("{} {}", machine(), rustix::process::getuid().as_raw()),
        };
        let redactor = match &secret {
            Some(secret) => Some(redactor(channel, secret.reveal())?),
            None => None,
        };
        Ok(OpenChannel { channel, runner, secret, redactor, place })
    }

    /// Sends a message, or returns the reason without any secret.
    pub(super) fn send(&self, message: &NotificationMessage) -> Result<(), String> {
        let secret = self.secret.as_ref().map_or("", SecretText::reveal);
        let sent = match &self.channel.way {
            ChannelKind::Webhook(_) => {
                post(self.runner.http(), secret, message, &message.json(&self.channel.name))
            }
            ChannelKind::Slack(_) => post(self.runner.http(), secret, message, &message.slack()),
            ChannelKind::Mail(mail) => by_mail(mail, secret, message, self.runner.http()),
            ChannelKind::Desktop => self.on_desktop(message),
        };
        sent.map_err(|why| {
            let why = self.redactor.as_ref().map_or(why.clone(), |redactor| redactor.text(&why));
            one_line(&why, LINE_MAX)
        })
    }

    fn on_desktop(&self, message: &NotificationMessage) -> Result<(), String> {
        let text = message.text();
        let body = text.split_once("\n\n").map_or("", |(_, body)| body);
        // The notification server may interpret markup.
        let body = body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let argv = [NOTIFY_SEND, "--app-name=hookloop", "--", &message.title(), &body];
        let argv = argv.map(OsString::from).to_vec();
        let env = self.runner.environment().to_vec();
        let job = Job { env, ..Job::new(argv, self.runner.state().to_owned(), WITHIN) };
        match self.runner.keepers().run(job) {
            Ok(ran) if ran.exit == ExitReason::Exited(0) => Ok(()),
            Ok(ran) => Err(format!("{NOTIFY_SEND} ended with {:?}", ran.exit)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns a redactor of the channel's secret and of its parts.
fn redactor(channel: &NotificationChannel, secret: &str) -> Result<Redactor, String> {
    let mut secrets = vec![secret.to_owned()];
    match &channel.way {
        ChannelKind::Webhook(_) | ChannelKind::Slack(_) => {
            let path = secret.splitn(4, '/').nth(3);
            secrets.extend(path.map(str::to_owned));
            secrets.extend(path.into_iter().flat_map(|path| path.split('/')).map(str::to_owned));
        }
        ChannelKind::Mail(mail) => {
            let user = mail.login.as_ref().map_or("", |(user, _)| user);
            secrets.push(format!("\0{user}\0{secret}"));
        }
        ChannelKind::Desktop => {}
    }
    Redactor::new(secrets.iter().map(|secret| ("secret", secret))).map_err(|e| e.to_string())
}

fn post(
    http: &HttpClient,
    url: &str,
    message: &NotificationMessage,
    body: &Value,
) -> Result<(), String> {
    let request = webhook::post(http, url, WITHIN).map_err(|error| error.to_string())?;
    let answer = request.header("idempotency-key", message.id.as_str()).send(body.to_string());
    match answer {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("HTTP status {}", answer.status().as_u16())),
        Err(error) => Err(http.explain(url, &error).text()),
    }
}

/// The header that prevents out-of-office answers.
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(AutoSubmitted)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(AutoSubmitted::name(), "auto-generated".to_owned())
    }
}

fn by_mail(
    mail: &MailSettings,
    password: &str,
    message: &NotificationMessage,
    http: &HttpClient,
) -> Result<(), String> {
    let mut builder = lettre::Message::builder()
        .from(mail.from.clone())
        .subject(message.title())
        .message_id(Some(format!("<{}@hookloop.invalid>", message.id)))
        .header(AutoSubmitted)
        .header(ContentType::TEXT_PLAIN);
    for to in &mail.to {
        builder = builder.to(to.clone());
    }
    let letter = builder.body(message.text()).map_err(|error| error.to_string())?;
    let tls = || mail_tls(&mail.host, http);
    let tls = match mail.security {
        MailSecurity::None => Tls::None,
        MailSecurity::StartTls => Tls::Required(tls()?),
        MailSecurity::Tls => Tls::Wrapper(tls()?),
    };
    let mut transport = SmtpTransport::builder_dangerous(&mail.host)
        .port(mail.port)
        .timeout(Some(WITHIN))
        .hello_name(ClientId::Domain(machine()))
        .tls(tls);
    if let Some((user, _)) = &mail.login {
        transport = transport.credentials(Credentials::new(user.clone(), password.to_owned()));
    }
    transport.build().send(&letter).map(drop).map_err(|error| in_words(&error))
}

/// Returns TLS parameters with the certificates of the system and of `network.ca_file`.
fn mail_tls(host: &str, http: &HttpClient) -> Result<TlsParameters, String> {
    let mut tls = TlsParameters::builder(host.to_owned());
    let settings = http.settings().map_err(|error| error.to_string())?;
    if let Some(path) = &settings.certificates.ca_file {
        let wrong = |why: String| format!("network.ca_file: {}: {why}", path.display());
        let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let found = Certificate::from_pem(&pem).map_err(|error| wrong(error.to_string()))?;
        tls = tls.add_root_certificate(found);
    }
    tls.build().map_err(|error| error.to_string())
}

/// Returns an error with its causes.
fn in_words(error: &dyn std::error::Error) -> String {
    const CAUSES_MAX: usize = 5;
    let mut text = error.to_string();
    let mut cause = error.source();
    for _ in 0..CAUSES_MAX {
        let Some(next) = cause else { break };
        if !text.contains(&next.to_string()) {
            text.push_str(&format!(": {next}"));
        }
        cause = next.source();
    }
    text
}
