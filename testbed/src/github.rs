//! As much of GitHub as is used, on loopback: pull requests over a real bare repository.
//!
//! Heads, bases and merges are real commits, so what a client pushes counts and what is merged can be fetched.
//! It remembers every request, and fails when a test wants it to. A check that is looked at by two routes is
//! asked once by each.

mod answer;
mod check;
mod described;
mod git;
mod pull;
mod queue;
mod route;

use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

pub use check::{Check, Kind, Says};
pub use described::Described;
pub use pull::{Pull, State};
pub use route::Route;

use crate::http::{self, Asked};
use answer::{Answer, Hub, Question};
use git::Bare;

/// Where the record of requests is, for those in other processes. It is in no record.
pub const RECORD: &str = "/_record";

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing is done, and this is the answer.
    Answer { status: u16, headers: Vec<(String, String)>, body: Value },
    /// Nothing is done, and the connection ends.
    HangUp,
    /// It is done, and the connection ends before the answer.
    HangUpAfter,
}

impl Fault {
    pub fn status(status: u16) -> Fault {
        let body = json!({ "message": "as a test wants it" });
        Fault::Answer { status, headers: Vec::new(), body }
    }
}

/// A request that was made.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    /// With its query, as it came.
    pub path: String,
    /// None if there is no such thing.
    pub route: Option<Route>,
    /// None if the connection was ended.
    pub status: Option<u16>,
    pub body: Value,
}

/// A running forge. It ends when it is dropped.
#[derive(Debug)]
pub struct GitHub {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    hub: Hub,
    faults: Vec<Planned>,
    record: Vec<Recorded>,
    is_over: bool,
}

#[derive(Debug)]
struct Planned {
    /// None for any.
    route: Option<Route>,
    left: usize,
    fault: Fault,
}

impl GitHub {
    /// A forge over a bare repository.
    pub fn start(repository: &Path) -> GitHub {
        GitHub::serve(repository, 0)
    }

    pub fn serve(repository: &Path, port: u16) -> GitHub {
        GitHub::at(repository, (Ipv4Addr::LOCALHOST, port).into())
    }

    /// A forge that is found at an address of this machine.
    pub fn at(repository: &Path, address: SocketAddr) -> GitHub {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let hub = Hub {
            git: Bare(repository.to_owned()),
            heads: HashMap::new(),
            pulls: Vec::new(),
            checks: Vec::new(),
            is_protected: false,
            unknown_looks: 0,
            methods: ["squash", "rebase", "merge"].map(str::to_owned).to_vec(),
            queue: queue::MergeQueue::default(),
        };
        let shared = Shared { hub, faults: Vec::new(), record: Vec::new(), is_over: false };
        let shared = Arc::new(Mutex::new(shared));
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.lock().unwrap().is_over {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                std::thread::spawn(move || converse(&shared, stream));
            }
        });
        GitHub { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next `times` requests go wrong.
    pub fn fail(&self, times: usize, fault: Fault) {
        self.plan(None, times, fault);
    }

    /// The next `times` requests of one kind go wrong.
    pub fn fail_at(&self, route: Route, times: usize, fault: Fault) {
        self.plan(Some(route), times, fault);
    }

    fn plan(&self, route: Option<Route>, left: usize, fault: Fault) {
        assert!(left > 0, "a fault that never happens is none");
        self.shared.lock().unwrap().faults.push(Planned { route, left, fault });
    }

    /// Every commit has this check from now on.
    pub fn check(&self, check: Check) {
        self.shared.lock().unwrap().hub.checks.push(check);
    }

    /// Whether bases take nothing without a review.
    pub fn protect(&self, is_protected: bool) {
        self.shared.lock().unwrap().hub.is_protected = is_protected;
    }

    /// The base has a merge queue from now on: nothing is merged past it.
    pub fn use_merge_queue(&self) {
        self.shared.lock().unwrap().hub.queue.is_on = true;
    }

    /// The base requires these checks.
    pub fn require_checks(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.shared.lock().unwrap().hub.queue.required = names;
    }

    pub fn allow_auto_merge(&self) {
        self.shared.lock().unwrap().hub.queue.allows_auto_merge = true;
    }

    /// The requests in the merge queue, each with the head that was enqueued.
    pub fn queued(&self) -> Vec<(u64, String)> {
        let mut shared = self.shared.lock().unwrap();
        shared.hub.settle();
        shared.hub.queue.entries.clone()
    }

    /// The requests that are merged when nothing is missing any more.
    pub fn auto_merging(&self) -> Vec<u64> {
        let shared = self.shared.lock().unwrap();
        shared.hub.queue.auto_merging.iter().map(|(number, ..)| *number).collect()
    }

    /// Puts somebody else's request in front of the queue.
    pub fn enqueue_other(&self) {
        let mut shared = self.shared.lock().unwrap();
        shared.hub.queue.entries.insert(0, (0, String::new()));
    }

    /// The queue merges its first request.
    pub fn merge_first(&self) {
        let mut shared = self.shared.lock().unwrap();
        let number = shared.hub.queue.entries.first().expect("something is queued").0;
        let at = shared.hub.pulls.iter().position(|pull| pull.number == number);
        match at {
            Some(at) => shared.hub.merge_now(at, "squash"),
            None => drop(shared.hub.queue.entries.remove(0)),
        }
    }

    /// GitHub, or somebody there, takes a request out of the queue.
    pub fn dequeue(&self, number: u64, reason: &str, by: &str) {
        self.shared.lock().unwrap().hub.queue.remove(number, reason, by);
    }

    /// For so many looks it is not known whether a request can be merged.
    pub fn ponder(&self, looks: usize) {
        self.shared.lock().unwrap().hub.unknown_looks = looks;
    }

    /// The ways to merge that the repository allows.
    pub fn allow(&self, methods: &[&str]) {
        let methods = methods.iter().map(|method| (*method).to_owned()).collect();
        self.shared.lock().unwrap().hub.methods = methods;
    }

    /// Somebody gives the review that they were asked for.
    pub fn review(&self, number: u64, login: &str) {
        let mut shared = self.shared.lock().unwrap();
        let mut pulls = shared.hub.pulls.iter_mut();
        let pull = pulls.find(|pull| pull.number == number).expect("there is such a request");
        pull.reviewers.retain(|asked| asked != login);
    }

    /// All requests that were opened, as they are.
    pub fn pulls(&self) -> Vec<Pull> {
        let mut shared = self.shared.lock().unwrap();
        shared.hub.settle();
        shared.hub.pulls.clone()
    }

    /// What was asked, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().unwrap().record.clone()
    }

    /// How often this was asked and done.
    pub fn count(&self, route: Route) -> usize {
        let is_done = |request: &&Recorded| {
            let went_well = request.status.is_none_or(|status| status < 300);
            request.route == Some(route) && went_well
        };
        self.requests().iter().filter(is_done).count()
    }

    /// What was ever asked; None is among it if there is no such thing.
    pub fn routes(&self) -> BTreeSet<Option<Route>> {
        self.requests().iter().map(|request| request.route).collect()
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        if let Ok(mut shared) = self.shared.lock() {
            shared.is_over = true;
        }
        // So that the listener looks.
        let _ = TcpStream::connect(self.address);
    }
}

/// One request, one answer.
fn converse(shared: &Mutex<Shared>, mut stream: TcpStream) {
    let Ok(asked) = http::read(&mut stream) else { return };
    if asked.path == RECORD {
        let record = shared.lock().unwrap().told();
        return http::answer_json(&mut stream, 200, &record);
    }
    let (answer, headers) = shared.lock().unwrap().take(&asked);
    if let Some((status, body)) = answer {
        http::answer_with(&mut stream, status, &headers, body.to_string().as_bytes());
    }
}

impl Shared {
    /// The answer to a request, if there is to be one.
    fn take(&mut self, asked: &Asked) -> (Option<Answer>, Vec<(String, String)>) {
        let meant = Route::of(&asked.method, &asked.path);
        let route = meant.as_ref().map(|(route, _)| *route);
        let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let (answer, headers) = match self.fault(route) {
            Some(Fault::Answer { status, headers, body }) => (Some((status, body)), headers),
            Some(Fault::HangUp) => (None, Vec::new()),
            Some(Fault::HangUpAfter) => {
                self.perform(asked, meant, &body);
                (None, Vec::new())
            }
            None => (Some(self.perform(asked, meant, &body)), Vec::new()),
        };
        self.record.push(Recorded {
            method: asked.method.clone(),
            path: asked.path.clone(),
            route,
            status: answer.as_ref().map(|(status, _)| *status),
            body,
        });
        (answer, headers)
    }

    fn perform(
        &mut self,
        asked: &Asked,
        meant: Option<(Route, Vec<String>)>,
        body: &Value,
    ) -> Answer {
        let is_token = |(name, value): &(String, String)| {
            name == "authorization" && value.strip_prefix("Bearer ").is_some_and(|t| !t.is_empty())
        };
        if !asked.headers.iter().any(is_token) {
            return (401, json!({ "message": "Requires authentication" }));
        }
        let Some((route, values)) = meant else { return (404, json!({ "message": "Not Found" })) };
        self.hub.answer(&Question { route, values: &values, path: &asked.path, body })
    }

    fn fault(&mut self, route: Option<Route>) -> Option<Fault> {
        let is_meant = |planned: &Planned| planned.route.is_none() || planned.route == route;
        let at = self.faults.iter().position(is_meant)?;
        self.faults[at].left -= 1;
        let fault = self.faults[at].fault.clone();
        if self.faults[at].left == 0 {
            self.faults.remove(at);
        }
        Some(fault)
    }

    fn told(&self) -> Value {
        let told = |request: &Recorded| {
            json!({
                "method": request.method,
                "path": request.path,
                "route": request.route.map(|route| route.template().1),
                "status": request.status,
                "body": request.body,
            })
        };
        self.record.iter().map(told).collect()
    }
}
