//! The three servers of docs/nats.md, started with the text of that page: access and permissions.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hookloop_engine::store::JetStreamLog;
use hookloop_testbed::{Cluster, Options, Server};
use hookloop_testkit::TestProject;
use nkeys::KeyPair;
use serde_json::{Value, json};

use crate::documents;
use crate::nats::{bare_machine, machine_on};
use crate::support::PROGRAM;

const PAGE: &str = "docs/nats.md";
/// The time limit of a refusal, so that it does not look like a server that is down.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Returns the program in a directory that is not a project, without the environment of the test.
fn program_in(directory: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(directory).env_clear().env("USER", "tester").stdin(Stdio::null());
    command
}

/// The servers of the page, and the files that were made for them.
struct Secure {
    cluster: Cluster,
    files: tempfile::TempDir,
}

/// Whether users need certificates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certificates {
    Servers,
    Users,
}

impl Secure {
    /// Starts the servers with the users of accounts.conf and keys made by `hookloop nats key`.
    fn with_keys(certificates: Certificates) -> Secure {
        let files = tempfile::tempdir().unwrap();
        let mut accounts = documents::block(PAGE, "accounts.conf");
        for name in ["admin", "dispatcher", "worker", "system_user"] {
            let made =
                program_in(files.path()).args(["nats", "key", &format!("{name}.nk")]).output();
            let public = String::from_utf8(made.unwrap().stdout).unwrap();
            accounts = set(&accounts, &name.to_uppercase(), public.trim());
        }
        Secure::start(files, certificates, &accounts)
    }

    fn start(files: tempfile::TempDir, certificates: Certificates, accounts: &str) -> Secure {
        let here = |text: String| text.replace("$node.example.com", "localhost");
        script(files.path(), &here(documents::block(PAGE, "certificates")));
        script(files.path(), &documents::block(PAGE, "user-certificate"));
        let page = documents::block(PAGE, "node.conf");
        let cluster = Cluster::written(|nodes, i| {
            let node = &nodes[i];
            std::fs::write(node.home().join("accounts.conf"), accounts).unwrap();
            let file = |name: String| format!("{:?}", files.path().join(name));
            let route = |n: usize| {
                format!("\"nats-route://localhost:{}\"", nodes[n].route_address().port())
            };
            let values = [
                ("NAME", node.name().to_owned()),
                ("ADDRESS", "127.0.0.1".to_owned()),
                ("CLIENT_PORT", node.client_address().port().to_string()),
                ("MONITOR_PORT", node.monitor_address().port().to_string()),
                ("CLUSTER_PORT", node.route_address().port().to_string()),
                ("CERTIFICATE", file(format!("{}.pem", node.name()))),
                ("KEY", file(format!("{}.key", node.name()))),
                ("CA", file("ca.pem".to_owned())),
                ("DATA", format!("{:?}", node.store_dir())),
                ("ROUTE_1", route(0)),
                ("ROUTE_2", route(1)),
                ("ROUTE_3", route(2)),
                ("USER_CERTIFICATES", (certificates == Certificates::Users).to_string()),
            ];
            values.iter().fold(page.clone(), |text, (name, value)| set(&text, name, value))
        });
        Secure { cluster, files }
    }

    fn urls(&self) -> String {
        let url = |node: &Server| format!("tls://localhost:{}", node.client_address().port());
        self.cluster.nodes().iter().map(url).collect::<Vec<_>>().join(",")
    }

    /// Returns a machine with the files of the page, for a user and a project.
    fn machine(&self, user: &str, project: &str) -> TestProject {
        let machine = bare_machine();
        let here = |text: String| {
            let start = text.find("tls://").unwrap();
            let end = text[start..].find(['\n', ' ']).unwrap() + start;
            text.replace(text[start..end].trim_end_matches(':'), &self.urls())
        };
        let repository = here(documents::block(PAGE, "hookloop.yaml"));
        machine.write("hookloop.yaml", &repository.replace("demo", project));
        let monitors: Vec<String> = self.cluster.nodes().iter().map(Server::monitor_url).collect();
        let own = here(documents::block(PAGE, "config.yaml")).replace("worker", user);
        machine.write_user_config(&format!("{own}    monitoring_urls: {monitors:?}\n"));
        for name in ["ca.pem", "worker.pem", "worker.key", &format!("{user}.nk")] {
            let (from, to) = (self.files.path().join(name), machine.user_directory().join(name));
            if from.exists() {
                std::fs::copy(from, to).unwrap();
            }
        }
        machine
    }
}

/// Returns the text with another value for a variable at its top.
fn set(text: &str, name: &str, value: &str) -> String {
    let start = format!("{name}: ");
    assert!(text.lines().any(|line| line.starts_with(&start)), "no {name} in\n{text}");
    let line = |line: &str| match line.starts_with(&start) {
        true => format!("{start}{value}\n"),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn script(directory: &Path, text: &str) {
    let text = format!("set -euo pipefail\n{text}");
    let run = Command::new("bash").args(["-c", &text]).current_dir(directory).output().unwrap();
    assert!(run.status.success(), "{text}\n{}", String::from_utf8_lossy(&run.stderr));
}

/// Returns the name of another project whose events are in the same stream.
fn neighbour_of(project: &str) -> String {
    let stream = JetStreamLog::stream_of(&project.parse().unwrap());
    let mut names = (0..).map(|n| format!("other-{n}"));
    names.find(|name| JetStreamLog::stream_of(&name.parse().unwrap()) == stream).unwrap()
}

#[test]
fn a_workers_key_gives_access_to_its_project_and_no_other() {
    let servers = Secure::with_keys(Certificates::Servers);

    // The streams do not exist yet, and a worker may not create them.
    let worker = servers.machine("worker", "demo");
    let refused = worker.refused(&["status"]);
    assert!(refused.error.contains("$JS.API.STREAM.CREATE.HL_EV_151"), "{}", refused.error);
    assert!(refused.took < AT_ONCE, "{:?}", refused.took);

    let admin = servers.machine("admin", "demo");
    let status = admin.json(&["status"]);
    assert_eq!(status["store"]["copies"], 3, "{status}");
    assert_eq!(status["store"]["unsafe"], json!([]), "{status}");

    worker.ok(&["task", "add", "Work", "--id", "work"]);
    worker.ok(&["task", "add", "More", "--id", "more", "--depends-on", "work"]);
    let claim = worker.json(&["task", "claim", "work", "--agent", "w"]);
    let epoch = claim["epoch"].to_string();
    worker.ok(&["task", "heartbeat", "work", "--epoch", &epoch]);
    worker.ok(&["task", "complete", "work", "--epoch", &epoch]);
    worker.ok(&["log"]);
    worker.ok(&["verify"]);
    worker.ok(&["rebuild"]);
    worker.ok(&["dispatch"]);
    let ready = servers.machine("dispatcher", "demo").json(&["task", "ready"]);
    assert_eq!(ready[0]["id"], "more", "{ready}");

    // Another project in the same stream, and one in another stream.
    let neighbour = neighbour_of("demo");
    for project in [neighbour.as_str(), "elsewhere"] {
        servers.machine("admin", project).ok(&["task", "add", "Secret", "--id", "secret"]);
        let intruder = servers.machine("worker", project);
        for command in [
            &["status"][..],
            &["task", "add", "Mine", "--id", "mine"],
            &["log"],
            &["task", "claim", "secret"],
            &["rebuild"],
        ] {
            let refused = intruder.refused(command);
            let names =
                [format!(".{project}."), JetStreamLog::stream_of(&project.parse().unwrap())];
            let is_named = names.iter().any(|name| refused.error.contains(name));
            assert!(is_named, "{command:?}: {}", refused.error);
            assert!(refused.error.contains("does not let this user use"), "{}", refused.error);
            assert!(refused.error.contains("hookloop nats permissions"), "{}", refused.error);
            assert!(refused.took < AT_ONCE, "{command:?}: {:?}", refused.took);
        }
    }
    let events = servers.machine("admin", &neighbour).json_lines(&["log"]).len();
    assert_eq!(events, 1, "an unauthorized user wrote an event");

    // A user whose inbox prefix differs from its permissions gets an error with the reason.
    let deaf = servers.machine("worker", "demo");
    deaf.replace_in_user_config("_INBOX_worker", "_INBOX_else");
    let refused = deaf.refused(&["status"]);
    assert!(refused.error.contains("`_INBOX_else."), "{}", refused.error);
    assert!(refused.took < AT_ONCE, "{:?}", refused.took);

    // An unknown key.
    let other = servers.machine("worker", "demo");
    std::fs::remove_file(other.user_directory().join("worker.nk")).unwrap();
    program_in(&other.user_directory()).args(["nats", "key", "worker.nk"]).output().unwrap();
    let refused = other.refused(&["status"]);
    assert!(refused.error.contains("does not let this user in"), "{}", refused.error);
    assert!(refused.error.contains("`nkey`"), "{}", refused.error);
    assert!(refused.took < AT_ONCE, "{:?}", refused.took);

    // A key that others can read.
    let careless = servers.machine("worker", "demo");
    script(&careless.user_directory(), "chmod 644 worker.nk");
    let refused = careless.refused(&["status"]);
    assert!(refused.error.contains("chmod 600"), "{}", refused.error);

    // A certificate of another authority.
    let astray = servers.machine("worker", "demo");
    let other = tempfile::tempdir().unwrap();
    script(other.path(), &documents::block(PAGE, "certificates"));
    std::fs::copy(other.path().join("ca.pem"), astray.user_directory().join("ca.pem")).unwrap();
    let refused = astray.refused(&["status"]);
    assert!(refused.error.contains("no TLS"), "{}", refused.error);
    assert!(refused.error.contains("`ca`"), "{}", refused.error);
    assert!(refused.took < AT_ONCE, "{:?}", refused.took);
}

#[test]
fn a_server_can_require_user_certificates() {
    let servers = Secure::with_keys(Certificates::Users);
    let without = servers.machine("admin", "demo").refused(&["status"]);
    assert!(without.error.contains("certificate"), "{}", without.error);
    assert!(without.took < AT_ONCE, "{:?}", without.took);
    let with = servers.machine("admin", "demo");
    with.append_user_config(&documents::block(PAGE, "user-certificate.yaml"));
    with.ok(&["task", "add", "Certified", "--id", "certified"]);
    assert_eq!(with.json_lines(&["log"]).len(), 1);
}

#[test]
fn users_with_operator_signed_credentials_are_accepted() {
    let files = tempfile::tempdir().unwrap();
    let jwts = files.path().join("jwt");
    std::fs::create_dir(&jwts).unwrap();
    let [operator, system, team] =
        [KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account()];
    let everything = json!({"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
        "subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1,
        "payload": -1, "wildcards": true});
    let store = |key: &KeyPair, claims: Value| {
        let path = jwts.join(format!("{}.jwt", key.public_key()));
        std::fs::write(path, jwt(&operator, key, claims)).unwrap();
    };
    store(&system, json!({"type": "account", "version": 2}));
    store(&team, json!({"type": "account", "version": 2, "limits": everything}));
    let operator_jwt = files.path().join("operator.jwt");
    let claims = json!({"type": "operator", "version": 2});
    std::fs::write(&operator_jwt, jwt(&operator, &operator, claims)).unwrap();

    let limits = json!({"subs": -1, "data": -1, "payload": -1});
    let allowed = |role: &str, inbox: &str| {
        let args =
            ["nats", "permissions", "demo", "--role", role, "--inbox-prefix", inbox, "--json"];
        let printed = program_in(files.path()).args(args).output().unwrap();
        serde_json::from_slice::<Value>(&printed.stdout).unwrap()
    };
    for (name, permissions) in [
        ("admin", allowed("admin", "_INBOX_admin")),
        ("worker", allowed("worker", "_INBOX_worker")),
    ] {
        let user = KeyPair::new_user();
        let claims = json!({"type": "user", "version": 2, "subs": limits["subs"],
            "data": limits["data"], "payload": limits["payload"],
            "pub": permissions["publish"], "sub": permissions["subscribe"]});
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            jwt(&team, &user, claims),
            user.seed().unwrap()
        );
        std::fs::write(files.path().join(format!("{name}.creds")), text).unwrap();
    }
    let mut accounts = documents::block(PAGE, "operator.conf");
    accounts = set(&accounts, "OPERATOR_JWT", &format!("{operator_jwt:?}"));
    accounts = set(&accounts, "SYSTEM", &system.public_key());
    accounts = set(&accounts, "JWT_DIR", &format!("{jwts:?}"));
    let servers = Secure::start(files, Certificates::Servers, &accounts);

    let machine = |user: &str, project: &str| {
        let machine = servers.machine(user, project);
        machine.replace_in_user_config(
            &format!("nkey: {user}.nk"),
            &format!("credentials: {user}.creds"),
        );
        let file = format!("{user}.creds");
        std::fs::copy(servers.files.path().join(&file), machine.user_directory().join(&file))
            .unwrap();
        script(&machine.user_directory(), "chmod 600 *.creds");
        machine
    };
    machine("admin", "demo").ok(&["status"]);
    machine("worker", "demo").ok(&["task", "add", "Signed", "--id", "signed"]);
    let refused = machine("worker", "elsewhere").refused(&["status"]);
    assert!(refused.error.contains("does not let this user use"), "{}", refused.error);
    assert!(refused.took < AT_ONCE, "{:?}", refused.took);
}

/// Returns a token in the servers' format for `subject`, signed by `issuer`.
fn jwt(issuer: &KeyPair, subject: &KeyPair, claims: Value) -> String {
    let base64 = |bytes: &[u8]| data_encoding::BASE64URL_NOPAD.encode(bytes);
    let head = json!({"typ": "JWT", "alg": "ed25519-nkey"}).to_string();
    let body = json!({"jti": subject.public_key(), "iat": 1_700_000_000, "name": "test",
        "iss": issuer.public_key(), "sub": subject.public_key(), "nats": claims});
    let signed = format!("{}.{}", base64(head.as_bytes()), base64(body.to_string().as_bytes()));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", base64(&signature))
}

/// Each permission with a command that fails without it.
const NEEDED_FOR: [(&str, &[&str]); 9] = [
    ("hl.ev.", &["task", "add", "New"]),
    ("hl.pulse.", &["task", "heartbeat", "held", "--epoch", "1"]),
    ("$JS.API.DIRECT.GET.HL_EV_", &["status"]),
    ("$JS.API.DIRECT.GET.HL_PULSE.", &["task", "take-over", "held", "--agent", "x"]),
    ("$JS.API.DIRECT.GET.HL_SNAPSHOT.", &["status"]),
    ("$JS.API.CONSUMER.CREATE.", &["status"]),
    ("$JS.API.STREAM.INFO.HL_EV_", &["status"]),
    ("$JS.API.STREAM.INFO.HL_PULSE", &["status"]),
    ("$JS.API.STREAM.INFO.HL_SNAPSHOT", &["status"]),
];

#[test]
fn worker_permissions_are_minimal_and_missing_permissions_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let permissions = |role: &str| {
        let args = ["nats", "permissions", "demo", "--role", role, "--json"];
        let printed = program_in(scratch.path()).args(args).output().unwrap();
        serde_json::from_slice::<Value>(&printed.stdout).unwrap()
    };
    let worker = permissions("worker");
    let all: Vec<&str> = worker["publish"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s.as_str().unwrap())
        .collect();
    // A worker also belongs to its fleet, whose log is in another stream.
    let of_fleet = all.iter().find_map(|subject| subject.strip_suffix("._fleet.>"));
    let of_fleet = of_fleet.and_then(|start| start.strip_prefix("hl.ev.")).unwrap();
    let of_fleet = format!("HL_EV_{of_fleet}");
    let is_of_fleet = |subject: &str| subject.contains("._fleet.") || subject.contains(&of_fleet);
    let mut users = vec![("admin".to_owned(), permissions("admin")["publish"].clone())];
    for (missing, _) in NEEDED_FOR.into_iter().chain([("$JS.FC.", &[""; 0][..])]) {
        let is_it = |subject: &str| subject.starts_with(missing) && !is_of_fleet(subject);
        let left: Vec<&&str> = all.iter().filter(|subject| !is_it(subject)).collect();
        assert_eq!(left.len() + 1, all.len(), "{missing}");
        users.push((missing.to_owned(), json!({ "allow": left })));
    }
    let kept_out = json!({ "allow": all, "deny": ["hl.ev.151.demo.first"] });
    users.push(("kept out of one task".to_owned(), kept_out));
    let mut keys = Vec::new();
    let users: Vec<String> = users
        .iter()
        .map(|(name, publish)| {
            let key = KeyPair::new_user();
            keys.push((name.clone(), key.seed().unwrap()));
            let permissions = json!({"publish": publish, "subscribe": worker["subscribe"]});
            json!({"nkey": key.public_key(), "permissions": permissions}).to_string()
        })
        .collect();
    let extra = format!("authorization {{ users: [\n{}\n] }}", users.join("\n"));
    let server = Server::with(Options { extra, ..Options::default() });
    let machine = |user: &str| {
        let machine = machine_on(&server, "demo");
        let (_, seed) = keys.iter().find(|(name, _)| name == user).unwrap();
        machine.write_user_secret("user.nk", seed);
        machine.write_user_config(&format!(
            "version: 1\nstores:\n  {}: {{nkey: user.nk, monitoring_urls: [\"{}\"]}}\n",
            server.url(),
            server.monitor_url()
        ));
        machine
    };

    let admin = machine("admin");
    admin.ok(&["task", "add", "Held", "--id", "held"]);
    admin.ok(&["task", "add", "Free", "--id", "free"]);
    admin.ok(&["task", "claim", "held", "--agent", "w"]);
    for (missing, command) in NEEDED_FOR {
        let refused = machine(missing).refused(command);
        assert!(refused.error.contains(&format!("`{missing}")), "{missing}: {}", refused.error);
        assert!(refused.took < AT_ONCE, "{missing}: {:?}", refused.took);
    }
    // The server sees the rest of the batch only as an incomplete batch.
    let kept_out = machine("kept out of one task");
    kept_out.write(
        "two.jsonl",
        "{\"id\":\"first\",\"goal\":\"a\"}\n{\"id\":\"last\",\"goal\":\"b\"}\n",
    );
    let refused = kept_out.refused(&["task", "import", "two.jsonl"]);
    assert!(refused.error.contains("`hl.ev.151.demo.first`"), "{}", refused.error);
    assert!(refused.took < AT_ONCE, "{:?}", refused.took);
    assert_eq!(admin.json_lines(&["log"]).len(), 3, "a forbidden write was accepted");

    // A log of several megabytes is sent in parts, which the reader requests.
    let goal = "x".repeat(900);
    let lines: String =
        (0..6_000).map(|n| format!("{{\"id\":\"t{n}\",\"goal\":\"{goal}\"}}\n")).collect();
    admin.write("many.jsonl", &lines);
    admin.ok(&["task", "import", "many.jsonl"]);
    machine("hl.pulse.").ok(&["status"]);
    let stalled = machine("$JS.FC.").refused(&["status"]);
    assert!(stalled.error.contains("`$JS.FC."), "{}", stalled.error);
}

#[test]
fn documented_permissions_equal_those_that_the_command_prints() {
    let accounts = documents::block(PAGE, "accounts.conf");
    let page: Vec<&str> = accounts.lines().map(str::trim).collect();
    for role in ["worker", "dispatcher"] {
        let inbox = format!("_INBOX_{role}");
        let args = ["nats", "permissions", "demo", "--role", role, "--inbox-prefix", &inbox];
        let scratch = tempfile::tempdir().unwrap();
        let printed = program_in(scratch.path()).args(args).output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let printed: Vec<&str> = printed.lines().map(str::trim).collect();
        assert!(page.windows(printed.len()).any(|lines| lines == printed), "{role}\n{printed:?}");
    }
}
