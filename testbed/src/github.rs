//! The used part of GitHub's API on loopback: pull requests over a real bare repository.
//!
//! Heads, bases and merges are real commits, so pushes of a client count and merges can be fetched.
//! The forge records every request, and fails when a test plans it. A check that is read by two
//! routes takes one step of its script for each.

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

/// Path of the record of requests, for other processes. Requests to it are not recorded.
pub const RECORD: &str = "/_record";

/// A failure of a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The request is not executed, and gets this response.
    Answer { status: u16, headers: Vec<(String, String)>, body: Value },
    /// The request is not executed, and the connection closes.
    HangUp,
    /// The request is executed, and the connection closes before the response.
    HangUpAfter,
}

impl Fault {
    pub fn status(status: u16) -> Fault {
        let body = json!({ "message": "as a test wants it" });
        Fault::Answer { status, headers: Vec::new(), body }
    }
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    /// Path and query, as received.
    pub path: String,
    /// `None` if there is no such route.
    pub route: Option<Route>,
    /// `None` if the connection was closed.
    pub status: Option<u16>,
    pub body: Value,
}

/// A running forge, stopped when dropped.
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
    /// `None` for all routes.
    route: Option<Route>,
    left: usize,
    fault: Fault,
}

impl GitHub {
    /// Starts a forge over a bare repository.
    pub fn start(repository: &Path) -> GitHub {
        GitHub::serve(repository, 0)
    }

    pub fn serve(repository: &Path, port: u16) -> GitHub {
        GitHub::at(repository, (Ipv4Addr::LOCALHOST, port).into())
    }

    /// Starts a forge at an address of this machine.
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

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes the next `times` requests fail.
    pub fn fail(&self, times: usize, fault: Fault) {
        self.plan(None, times, fault);
    }

    /// Makes the next `times` requests of one route fail.
    pub fn fail_at(&self, route: Route, times: usize, fault: Fault) {
        self.plan(Some(route), times, fault);
    }

    fn plan(&self, route: Option<Route>, left: usize, fault: Fault) {
        assert!(left > 0, "`times` is 0");
        self.shared.lock().unwrap().faults.push(Planned { route, left, fault });
    }

    /// Adds this check to every commit.
    pub fn check(&self, check: Check) {
        self.shared.lock().unwrap().hub.checks.push(check);
    }

    /// Sets whether merging into a base requires a review.
    pub fn protect(&self, is_protected: bool) {
        self.shared.lock().unwrap().hub.is_protected = is_protected;
    }

    /// Enables the merge queue of the base: merges that bypass it are refused.
    pub fn use_merge_queue(&self) {
        self.shared.lock().unwrap().hub.queue.is_on = true;
    }

    /// Sets the required checks of the base.
    pub fn require_checks(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.shared.lock().unwrap().hub.queue.required = names;
    }

    pub fn allow_auto_merge(&self) {
        self.shared.lock().unwrap().hub.queue.allows_auto_merge = true;
    }

    /// Returns the requests in the merge queue, each with its enqueued head.
    pub fn queued(&self) -> Vec<(u64, String)> {
        let mut shared = self.shared.lock().unwrap();
        shared.hub.settle();
        shared.hub.queue.entries.clone()
    }

    /// Returns the requests that are merged as soon as all requirements are met.
    pub fn auto_merging(&self) -> Vec<u64> {
        let shared = self.shared.lock().unwrap();
        shared.hub.queue.auto_merging.iter().map(|(number, ..)| *number).collect()
    }

    /// Adds another user's request to the front of the queue.
    pub fn enqueue_other(&self) {
        let mut shared = self.shared.lock().unwrap();
        shared.hub.queue.entries.insert(0, (0, String::new()));
    }

    /// Makes the queue merge its first request.
    pub fn merge_first(&self) {
        let mut shared = self.shared.lock().unwrap();
        let number = shared.hub.queue.entries.first().expect("the queue is empty").0;
        let at = shared.hub.pulls.iter().position(|pull| pull.number == number);
        match at {
            Some(at) => shared.hub.merge_now(at, "squash"),
            None => drop(shared.hub.queue.entries.remove(0)),
        }
    }

    /// Removes a request from the queue, as GitHub or a user would.
    pub fn dequeue(&self, number: u64, reason: &str, by: &str) {
        self.shared.lock().unwrap().hub.queue.remove(number, reason, by);
    }

    /// Sets the number of reads for which it is unknown whether a request can be merged.
    pub fn ponder(&self, looks: usize) {
        self.shared.lock().unwrap().hub.unknown_looks = looks;
    }

    /// Sets the merge methods that the repository allows.
    pub fn allow(&self, methods: &[&str]) {
        let methods = methods.iter().map(|method| (*method).to_owned()).collect();
        self.shared.lock().unwrap().hub.methods = methods;
    }

    /// Submits a requested review as the user `login`.
    pub fn review(&self, number: u64, login: &str) {
        let mut shared = self.shared.lock().unwrap();
        let mut pulls = shared.hub.pulls.iter_mut();
        let pull = pulls.find(|pull| pull.number == number).expect("no request with this number");
        pull.reviewers.retain(|asked| asked != login);
    }

    /// Returns all opened requests in their current state.
    pub fn pulls(&self) -> Vec<Pull> {
        let mut shared = self.shared.lock().unwrap();
        shared.hub.settle();
        shared.hub.pulls.clone()
    }

    /// Returns the received requests, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.lock().unwrap().record.clone()
    }

    /// Returns how often this route was requested and executed.
    pub fn count(&self, route: Route) -> usize {
        let is_done = |request: &&Recorded| {
            let went_well = request.status.is_none_or(|status| status < 300);
            request.route == Some(route) && went_well
        };
        self.requests().iter().filter(is_done).count()
    }

    /// Returns all requested routes; `None` stands for an unknown one.
    pub fn routes(&self) -> BTreeSet<Option<Route>> {
        self.requests().iter().map(|request| request.route).collect()
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        if let Ok(mut shared) = self.shared.lock() {
            shared.is_over = true;
        }
        // Wakes the listener.
        let _ = TcpStream::connect(self.address);
    }
}

/// Serves one request.
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
    /// Returns the response to a request, if there is one.
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
