//! A caller over HTTP/1.1.

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::scene::Coordinator;

pub(super) const JSON: &str = "content-type: application/json";

/// A connection.
pub(super) struct Http<S = TcpStream>(BufReader<S>);

/// The answer to a request.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    /// In lower case.
    pub(super) head: Vec<String>,
    pub(super) body: Value,
}

impl Http {
    pub(super) async fn to(coordinator: &Coordinator) -> Self {
        let address = coordinator.url.strip_prefix("http://").unwrap();
        Self::over(TcpStream::connect(address).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http<S> {
    pub(super) fn over(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    /// A call of `path` below `/v1` that its caller has a right to.
    pub(super) async fn call(&mut self, path: &str, body: &str) -> Answer {
        self.ask(&format!("POST /v1/{path}"), &[JSON], body.as_bytes())
            .await
    }

    /// Sends a request, and waits for its answer.
    pub(super) async fn ask(&mut self, request: &str, headers: &[&str], body: &[u8]) -> Answer {
        self.send(request, headers, body).await;
        self.answer().await
    }

    /// Sends a request, in one piece: a part that comes after an early answer would end the connection.
    pub(super) async fn send(&mut self, request: &str, headers: &[&str], body: &[u8]) {
        let length = format!("content-length: {}", body.len());
        let head = head(request, &[headers, &[&*length]].concat());
        self.write(&[head.as_bytes(), body].concat()).await;
    }

    /// Sends the head of a request.
    pub(super) async fn begin(&mut self, request: &str, headers: &[&str]) {
        self.write(head(request, headers).as_bytes()).await;
    }

    /// Sends a part of a request. An answer may come before it is read.
    pub(super) async fn write(&mut self, part: &[u8]) {
        let _ = self.0.write_all(part).await;
    }

    /// The answer, whole.
    pub(super) async fn answer(&mut self) -> Answer {
        let (code, head) = self.head().await;
        self.body(code, head).await
    }

    /// The rest of an answer.
    pub(super) async fn body(&mut self, code: u16, head: Vec<String>) -> Answer {
        let length = head
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Answer { code, head, body }
    }

    /// The status of an answer, and its headers.
    pub(super) async fn head(&mut self) -> (u16, Vec<String>) {
        let status = self.line().await;
        let code = status
            .split(' ')
            .nth(1)
            .expect("an answer")
            .parse()
            .unwrap();
        let mut head = Vec::new();
        loop {
            match &*self.line().await {
                "" => return (code, head),
                line => head.push(line.to_lowercase()),
            }
        }
    }

    /// The next line of an answer in lines; none: it has ended.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let length = usize::from_str_radix(&self.line().await, 16).unwrap();
        let mut chunk = vec![0; length];
        self.0.read_exact(&mut chunk).await.unwrap();
        assert_eq!(self.line().await, "");
        (length > 0).then(|| serde_json::from_slice(&chunk).unwrap())
    }

    /// Waits until the coordinator ends the connection.
    pub(super) async fn ended(&mut self) {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }
}

fn head(request: &str, headers: &[&str]) -> String {
    let headers = headers.join("\r\n");
    format!("{request} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n\r\n")
}

impl Answer {
    /// Its part at `pointer`, as text.
    pub(super) fn text(&self, pointer: &str) -> &str {
        let part = self.body.pointer(pointer).and_then(Value::as_str);
        part.unwrap_or_else(|| panic!("{pointer}: {self:?}"))
    }

    pub(super) fn reason(&self) -> &str {
        self.text("/error/reason")
    }

    pub(super) fn has(&self, header: &str) -> bool {
        self.head.iter().any(|line| line == header)
    }
}
