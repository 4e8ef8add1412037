//! Chromium without a window, for one test: pages are opened, asked and pressed as by a person.
//!
//! It is driven by its DevTools protocol over two pipes, so no port and no other program is needed. It ends with its
//! input, when this value is dropped.

use std::{fs, path::Path, process::Stdio, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{sleep, timeout},
};

/// A browser that starts while other tests keep the machine busy is slow.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// The browser reads commands from file 3, and answers at file 4. Its sandbox does not work for root; it opens the pages of
/// the test only.
const START: &str = r#"TMPDIR="$1" exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --disable-extensions --user-data-dir="$1" \
    --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// Tab is pressed so often, at most.
const TABS_MAX: usize = 100;

/// A key to press.
#[derive(Clone, Copy, Debug)]
pub enum Key {
    /// Presses a button, or sends a form.
    Enter,
    /// Moves the focus on.
    Tab,
}

/// A browser with one page.
pub struct Browser {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    last_id: u64,
    _process: Child,
    _profile: TempDir,
}

impl Browser {
    /// Starts it, with an empty page.
    ///
    /// # Panics
    ///
    /// Chromium is missing: `apt-get install chromium`.
    pub async fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", START, "sh", profile.path().to_str().unwrap()]);
        let shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = shell.kill_on_drop(true).spawn().unwrap();
        let mut browser = Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            session: String::new(),
            last_id: 0,
            _process: process,
            _profile: profile,
        };
        let target = browser
            .call("Target.createTarget", json!({ "url": "about:blank" }))
            .await;
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", target).await;
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Opens `url`.
    pub async fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url })).await;
    }

    /// The value of `expression`, or of its promise, in the page.
    ///
    /// # Panics
    ///
    /// The page throws.
    pub async fn value(&mut self, expression: &str) -> Value {
        let ask = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", ask).await;
        let thrown = &answer["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        answer["result"]["value"].clone()
    }

    /// Waits until `expression` is true.
    ///
    /// # Panics
    ///
    /// It is not true in time: the panic has the text of the page.
    pub async fn until(&mut self, expression: &str) {
        let held = timeout(PATIENCE, async {
            // While the page loads, the expression may throw.
            let guarded = format!(
                "(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()"
            );
            while self.value(&guarded).await != true {
                sleep(POLL).await;
            }
        });
        if held.await.is_err() {
            let text = self.value("document.body.innerText").await;
            panic!("not within {PATIENCE:?}: {expression}: {text}");
        }
    }

    /// Types `text` where the focus is.
    pub async fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text })).await;
    }

    /// Presses and releases `key`.
    pub async fn press(&mut self, key: Key) {
        let (name, code, text) = match key {
            Key::Enter => ("Enter", 13, "\r"),
            Key::Tab => ("Tab", 9, ""),
        };
        for kind in ["keyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", key).await;
        }
    }

    /// Presses Tab until `expression`, an element of the page, has the focus.
    ///
    /// # Panics
    ///
    /// Tab does not lead to it.
    pub async fn tab_to(&mut self, expression: &str) {
        for _ in 0..TABS_MAX {
            self.press(Key::Tab).await;
            let reached = format!("document.activeElement === {expression}");
            if self.value(&reached).await == true {
                return;
            }
        }
        panic!("{TABS_MAX} times Tab do not lead to {expression}");
    }

    /// Makes the page `width` × `height` pixels large, on a phone or not.
    pub async fn resize(&mut self, width: u32, height: u32, mobile: bool) {
        let size = json!({ "width": width, "height": height, "screenWidth": width, "screenHeight": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Answers the media query `feature` with `value`.
    pub async fn prefer(&mut self, feature: &str, value: &str) {
        let features = json!({ "features": [{ "name": feature, "value": value }] });
        self.call("Emulation.setEmulatedMedia", features).await;
    }

    /// Writes a picture of the whole page to `path`, as PNG.
    pub async fn picture(&mut self, path: &Path) {
        let whole = json!({ "captureBeyondViewport": true });
        let taken = self.call("Page.captureScreenshot", whole).await;
        let taken = BASE64_STANDARD.decode(taken["data"].as_str().unwrap());
        fs::write(path, taken.unwrap()).unwrap();
    }

    /// The result of a command of the protocol.
    ///
    /// # Panics
    ///
    /// The browser refuses it, or has ended.
    pub async fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if !self.session.is_empty() && !method.starts_with("Target.") {
            message["sessionId"] = json!(self.session);
        }
        let message = format!("{message}\0");
        self.input.write_all(message.as_bytes()).await.unwrap();
        let answer = timeout(PATIENCE, self.answer()).await;
        answer.unwrap_or_else(|_| panic!("{method}: no answer"))
    }

    async fn answer(&mut self) -> Value {
        loop {
            let mut message = Vec::new();
            self.output.read_until(0, &mut message).await.unwrap();
            assert!(
                message.pop().is_some(),
                "chromium has ended, or is missing: apt-get install chromium"
            );
            let message: Value = serde_json::from_slice(&message).unwrap();
            if message["id"] == self.last_id {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
        }
    }
}
