//! A real Chromium without a window, driven by its own protocol over two pipes.
//!
//! Nothing sleeps: a wait is a promise inside the page, which resolves when its condition holds.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::PATIENCE;

/// Programs that are Chromium, by the names that systems give it.
const PROGRAMS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Option<String>,
    calls: u64,
    /// What the page complained about: exceptions, errors in the console, requests that failed.
    pub(crate) errors: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// One page of 1280 by 860. The protocol is spoken on descriptors 3 and 4, which a shell puts in place.
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let program =
            PROGRAMS.iter().find(|name| is_there(name)).expect("Chromium is installed: apt-get install chromium");
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2"#, program]);
        command.args(["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--mute-audio"]);
        // It opens nothing but pages of the server under test, and root has no sandbox.
        command.args([
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-proxy-server",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a shell");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let output = BufReader::new(output);
        let mut browser = Self { child, input, output, session: None, calls: 0, errors: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Performance.enable", json!({"timeDomain": "threadTicks"}));
        browser.size(1280, 860);
        browser
    }

    /// One call of the protocol; what the page says meanwhile is kept.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the parameters in place")]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).expect("the browser listens");
        self.input.flush().expect("the browser listens");
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).expect("the browser speaks");
            assert_eq!(bytes.pop(), Some(0), "the browser ended during {method}");
            let mut answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.errors.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.errors.push(params["entry"].to_string())
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.errors.push(params["args"].to_string())
            }
            _ => {}
        }
    }

    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// `light` or `dark`, as the system would say.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// The value of an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Loads an address and waits until an expression is true there. Gives back how many milliseconds the page worked for it.
    pub(crate) fn open(&mut self, url: &str, until: &str) -> f64 {
        let before = self.worked();
        self.call("Page.navigate", json!({"url": url}));
        self.until(until);
        self.worked_since(before)
    }

    /// Clicks and waits until an expression is true that was not before. The milliseconds are those that the page worked for it.
    pub(crate) fn click_until(&mut self, selector: &str, expression: &str) -> f64 {
        let before = self.worked();
        self.click(selector);
        self.until(expression);
        self.worked_since(before)
    }

    /// Processor time of the page's own thread in milliseconds. A busy machine makes every wait longer, and this hardly.
    fn worked(&mut self) -> f64 {
        let metrics = self.call("Performance.getMetrics", json!({}));
        let metrics = metrics["metrics"].as_array().expect("a list");
        let all = metrics.iter().find(|metric| metric["name"] == "TaskDuration").expect("all that the page does");
        all["value"].as_f64().expect("a number") * 1_000.0
    }

    fn worked_since(&mut self, before: f64) -> f64 {
        let now = self.worked();
        // A page of another site may be another process, which begins at zero.
        if now < before { now } else { now - before }
    }

    /// Waits in the page until an expression is true, and gives back its value.
    pub(crate) fn until(&mut self, expression: &str) -> Value {
        let limit = PATIENCE.as_millis();
        let promise = format!(
            "new Promise((done, fail) => {{ const end = Date.now() + {limit}; const look = () => {{ let found; \
             try {{ found = ({expression}); }} catch (error) {{ found = null; }} \
             if (found) done(found === true ? true : String(found)); \
             else if (Date.now() > end) fail(new Error(document.body.innerText.slice(0, 2000))); \
             else setTimeout(look, 15); }}; look(); }})"
        );
        self.eval(&promise)
    }

    /// Waits for an element, then presses and releases the mouse in its middle.
    pub(crate) fn click(&mut self, selector: &str) {
        let element = format!("document.querySelector({})", json!(selector));
        self.until(&format!("{element} && !{element}.disabled"));
        let place = self.eval(&format!(
            "(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Writes into what has the focus, as a keyboard would.
    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Replaces what is in a field.
    pub(crate) fn fill(&mut self, selector: &str, text: &str) {
        self.click(selector);
        self.eval(&format!("document.querySelector({}).select()", json!(selector)));
        self.write(text);
    }

    /// One key: a letter, or a name such as `Enter`.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, number) = match key {
            "Enter" => ("Enter".to_owned(), 13),
            "Escape" => ("Escape".to_owned(), 27),
            "Tab" => ("Tab".to_owned(), 9),
            _ => (String::new(), 0),
        };
        let text = if key == "Enter" {
            "\r"
        } else if key.len() == 1 {
            key
        } else {
            ""
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        let params = json!({"type": down, "key": key, "text": text, "code": code, "windowsVirtualKeyCode": number});
        self.call("Input.dispatchKeyEvent", params);
        let up = json!({"type": "keyUp", "key": key, "code": code, "windowsVirtualKeyCode": number});
        self.call("Input.dispatchKeyEvent", up);
    }

    /// A picture of what is seen, for people to look at, below the build's folder.
    pub(crate) fn picture(&mut self, name: &str) {
        let answer = self.call("Page.captureScreenshot", json!({"format": "png"}));
        let text = answer["data"].as_str().expect("a picture");
        let folder = pictures();
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(format!("{name}.png")), decode(text)).expect("a file");
    }

    /// Nothing went wrong in the page, as far as the browser knows.
    #[track_caller]
    pub(crate) fn is_content(&self) {
        assert!(self.errors.is_empty(), "{:#?}", self.errors);
    }
}

fn is_there(name: &str) -> bool {
    Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn pictures() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("../console")
}

/// Base 64, as the protocol sends pictures.
fn decode(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len()), 0u32, 0u32);
    for digit in text.bytes().filter_map(|byte| DIGITS.iter().position(|known| *known == byte)) {
        held = (held << 6) | u32::try_from(digit).unwrap_or(0);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).unwrap_or(0));
        }
    }
    bytes
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell has become the browser; its helpers end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
