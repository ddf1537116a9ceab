//! A client on a plain socket, and a reply taken apart into what faults spoil.

use posse_testkit::{FakeModel, Reply, Rule, Script, When};
use serde_json::{Value, json};
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How a connection ended for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Closed,
    Reset,
}

/// Whether events are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Stream,
    Document,
}

/// What all of these tests let the model say: a text with a character of several bytes, and two
/// calls.
pub fn said() -> Reply {
    Reply::text("One é two.")
        .and_tool_call("Bash", json!({"command": "echo first"}))
        .and_tool_call("Bash", json!({"command": "echo second"}))
}

/// A server that says it with this fault, every time.
pub async fn faulty(fault: &str) -> FakeModel {
    let rule = Rule::when(When::any()).reply(said().fault(fault));
    FakeModel::start(Script::new().rule(rule)).await.unwrap()
}

/// A request of the Anthropic wire, after which the connection may be closed.
pub fn request(asked: Asked) -> String {
    let body = json!({
        "model": "fake-1",
        "max_tokens": 100,
        "stream": asked == Asked::Stream,
        "messages": [{"role": "user", "content": "go"}],
    });
    post("/v1/messages", "x-api-key: k\r\nanthropic-version: v\r\n", &body)
}

pub fn post(path: &str, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: fake\r\nconnection: close\r\n{headers}\
         content-length: {length}\r\n\r\n{body}"
    )
}

pub async fn ask(fake: &FakeModel, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(fake.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Everything until the connection ends, and how it does.
pub async fn read_all(stream: &mut TcpStream) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    loop {
        match stream.read_buf(&mut bytes).await {
            Ok(0) => return (bytes, End::Closed),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                return (bytes, End::Reset);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A reply without a fault: its head and its events, or its head and a document.
pub struct Clean {
    /// Up to and with the blank line.
    pub head: String,
    pub events: Vec<Vec<u8>>,
}

pub async fn clean(asked: Asked) -> Clean {
    let fake = FakeModel::start(Script::always(said())).await.unwrap();
    let (bytes, end) = read_all(&mut ask(&fake, &request(asked)).await).await;
    assert_eq!(end, End::Closed);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let head = format!("{head}\r\n\r\n");
    if asked == Asked::Document {
        return Clean { head, events: vec![body.as_bytes().to_vec()] };
    }
    let mut events = Vec::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        events.push(after.as_bytes()[..size].to_vec());
        rest = &after[size + 2..];
    }
    Clean { head, events }
}

impl Clean {
    /// The place of the `nth` event that contains this, counted from 0.
    pub fn find(&self, nth: usize, part: &str) -> usize {
        let text = |event: &Vec<u8>| String::from_utf8_lossy(event).into_owned();
        let holds = |(_, event): &(usize, &Vec<u8>)| text(event).contains(part);
        self.events.iter().enumerate().filter(holds).nth(nth).unwrap().0
    }

    /// The head and these events in chunks, without the last chunk.
    pub fn begun(&self, events: &[Vec<u8>]) -> Vec<u8> {
        let mut out = self.head.clone().into_bytes();
        events.iter().for_each(|event| out.extend(chunk(event)));
        out
    }

    /// The head and these events in chunks, to the last chunk.
    pub fn whole(&self, events: &[Vec<u8>]) -> Vec<u8> {
        [self.begun(events), b"0\r\n\r\n".to_vec()].concat()
    }

    /// The head with another line in the place of the one that begins with `name`.
    pub fn with_line(&self, name: &str, line: &str) -> String {
        let start = self.head.find(&format!("\r\n{name}")).unwrap() + 2;
        let end = start + self.head[start..].find("\r\n").unwrap();
        let line = if line.is_empty() { String::new() } else { format!("{line}\r\n") };
        format!("{}{line}{}", &self.head[..start], &self.head[end + 2..])
    }
}

pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
