//! Headless Chromium, controlled by the DevTools protocol over a pipe.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::{Value, json};

/// The time limit of each step: the machine may be busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A script that every page runs first: it records calls and violations that must not happen.
const WATCH: &str = "window.ran = []; window.violations = [];
    for (const name of ['alert', 'prompt', 'print', 'open']) window[name] = () => window.ran.push(name);
    document.addEventListener('securitypolicyviolation', (event) =>
        window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));";

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    next: u64,
    events: VecDeque<Value>,
    /// Errors of scripts and of the browser.
    pub(crate) complaints: Vec<String>,
    /// Dialogs that pages have opened; each is accepted.
    pub(crate) questions: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    pub(crate) fn start() -> Browser {
        let profile = tempfile::tempdir().unwrap();
        // Chromium uses the descriptors 3 and 4 as its pipes.
        let mut child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars"])
            .args(["--disable-component-update", "--force-color-profile=srgb"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, from) = channel();
        let mut reads = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while reads.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let _ = told.send(serde_json::from_slice(&message).unwrap());
                message.clear();
            }
        });
        let to = child.stdin.take().unwrap();
        let mut browser = Browser {
            child,
            to,
            from,
            session: String::new(),
            next: 0,
            events: VecDeque::new(),
            complaints: Vec::new(),
            questions: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let wanted = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", wanted);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": WATCH }));
        browser
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let end = Instant::now() + PATIENCE;
        loop {
            let message = self.receive(end).unwrap_or_else(|| panic!("{method} is not answered"));
            if message["id"] != id {
                self.note(message);
                continue;
            }
            assert!(message["error"].is_null(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.next
    }

    fn receive(&self, end: Instant) -> Option<Value> {
        self.from.recv_timeout(end.saturating_duration_since(Instant::now())).ok()
    }

    fn note(&mut self, message: Value) {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Page.javascriptDialogOpening" => {
                self.questions.push(params["message"].as_str().unwrap().to_owned());
                self.send("Page.handleJavaScriptDialog", json!({ "accept": true }));
            }
            "Runtime.exceptionThrown" => {
                self.complaints.push(params["exceptionDetails"].to_string());
            }
            "Runtime.consoleAPICalled" => self.complaints.push(params["args"].to_string()),
            "Log.entryAdded" => self.complaints.push(params["entry"].to_string()),
            _ => self.events.push_back(message),
        }
    }

    /// Opens an address, and follows redirects.
    pub(crate) fn go(&mut self, url: &str) {
        self.events.clear();
        let gone = self.call("Page.navigate", json!({ "url": url }));
        assert!(gone["errorText"].is_null(), "{url}: {gone}");
        self.await_load();
    }

    pub(crate) fn await_load(&mut self) {
        let end = Instant::now() + PATIENCE;
        let is_load = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(is_load) {
            let message = self.receive(end).unwrap_or_else(|| panic!("the page does not load"));
            self.note(message);
        }
        self.events.clear();
    }

    /// Returns the value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let found = self.call("Runtime.evaluate", params);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        found["result"]["value"].clone()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true. It is evaluated again if the page is being left.
    pub(crate) fn until(&mut self, expression: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let params = json!({ "expression": expression, "returnByValue": true });
            let id = self.send("Runtime.evaluate", params);
            let answer = loop {
                let message = self.receive(end).unwrap_or_else(|| panic!("never: {expression}"));
                match message["id"] == id {
                    true => break message,
                    false => self.note(message),
                }
            };
            if answer["result"]["result"]["value"] == true {
                return;
            }
            assert!(
                Instant::now() < end,
                "never: {expression}\n{}",
                self.text("document.body.innerText")
            );
            std::thread::sleep(POLL);
        }
    }

    /// Clicks the element that a selector finds.
    pub(crate) fn click(&mut self, selector: &str) {
        self.until(&format!("!!document.querySelector({})", json!(selector)));
        self.eval(&format!("document.querySelector({}).click()", json!(selector)));
    }

    pub(crate) fn type_into(&mut self, selector: &str, text: &str) {
        self.eval(&format!("document.querySelector({}).focus()", json!(selector)));
        self.call("Input.insertText", json!({ "text": text }));
    }

    pub(crate) fn key(&mut self, name: &str) {
        let code = match name {
            "Tab" => 9,
            "Enter" => 13,
            other => panic!("{other}"),
        };
        let text = if name == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    pub(crate) fn colours(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    pub(crate) fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        BASE64.decode(shot["data"].as_str().unwrap().as_bytes()).unwrap()
    }

    /// Checks that no injected script ran, that no violation was recorded, and that there is no
    /// error.
    pub(crate) fn assert_calm(&mut self, place: &str) {
        let seen = self.eval("JSON.stringify([window.ran, window.violations])");
        assert_eq!(seen, "[[],[]]", "{place}");
        assert!(self.complaints.is_empty(), "{place}: {:#?}", self.complaints);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
