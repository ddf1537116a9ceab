//! Cassettes at the HTTP seam: whatever a server does is recorded and played again.

use crate::anthropic::encode::request;
use crate::anthropic::transcripts::PLAIN;
use crate::host::last_resort;
use crate::server::{KEY, Server, Step, answer, begun, streamed};
use posse_agent::{Model, ModelError, Reply};
use posse_model::{
    Against, Cassette, CassetteError, Catalog, Keys, Models, Options, Places, Recording, Replay,
};
use posse_protocol::Message;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const MODEL: &str = "claude-sonnet-4-5";
/// A cassette without anything.
const HEAD: &str = "{\"cassette\":{\"version\":1,\"posse\":\"0.1.0\"}}\n";

const PATIENT: Duration = Duration::from_secs(60);

struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        Stage { folder: tempfile::tempdir().unwrap() }
    }

    fn tape(&self) -> PathBuf {
        self.folder.path().join("tape.jsonl")
    }

    fn places(&self) -> Places {
        let workspace = self.folder.path().join("home/work");
        std::fs::create_dir_all(&workspace).unwrap();
        Places { workspace, home: Some(self.folder.path().join("home")) }
    }

    fn workspace(&self) -> String {
        self.places().workspace.display().to_string()
    }

    /// A model at `url` whose calls are recorded.
    fn recorded(&self, url: &str, stall: Duration) -> (Arc<dyn Model>, Arc<Recording>) {
        let recording = Arc::new(Recording::create(self.tape(), self.places()).unwrap());
        let keys = Keys::default().with("ANTHROPIC_API_KEY", KEY).with("ANTHROPIC_BASE_URL", url);
        let models =
            Models::new(Catalog::built_in(), keys, Options { stall, ..Options::default() });
        let models = models.with_cassette(Cassette::Recording(recording.clone()));
        (models.resolve(MODEL).unwrap(), recording)
    }

    /// The same model, played from `tape`, without any key.
    fn played(&self, tape: &Path, stall: Duration) -> (Arc<dyn Model>, Arc<Replay>) {
        let replay = Arc::new(Replay::open(tape, self.places()).unwrap());
        let models = Models::new(
            Catalog::built_in(),
            Keys::default(),
            Options { stall, ..Options::default() },
        );
        let models = models.with_cassette(Cassette::Replay(replay.clone()));
        (models.resolve(MODEL).unwrap(), replay)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.tape()).unwrap()
    }

    fn exchanges(&self) -> Vec<Value> {
        let lines = self.text();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|mut line| Some(line.get_mut("exchange")?.take())).collect()
    }
}

async fn say(model: &dyn Model, text: &str) -> Result<Reply, ModelError> {
    model.call(request(vec![Message::user(text)]), &|_| {}, &CancellationToken::new()).await
}

fn told(result: Result<Reply, ModelError>) -> Result<String, String> {
    result.map(|reply| format!("{reply:?}")).map_err(|error| error.to_string())
}

/// Records one call of a server that takes `steps`, plays it elsewhere, and compares.
async fn check(steps: Vec<Step>, stall: Duration) -> (Stage, Result<String, String>) {
    let stage = Stage::new();
    let server = Server::start(steps).await;
    let (model, recording) = stage.recorded(&server.url, stall);
    let recorded = told(say(&*model, "hi").await);
    assert_eq!(recording.finish().unwrap(), 1);
    drop(server);
    let elsewhere = Stage::new();
    let (model, replay) = elsewhere.played(&stage.tape(), PATIENT);
    let played = told(say(&*model, "hi").await);
    assert_eq!((replay.difference(), replay.unused()), (None, 0));
    // A stall is as long as the patience of those who wait, and here nobody waits.
    let (short, long) = (format!("{} s", stall.as_secs()), format!("{} s", PATIENT.as_secs()));
    assert_eq!(played.map_err(|error| error.replace(&long, &short)), recorded);
    (stage, recorded)
}

#[tokio::test]
async fn replies_and_failures_of_all_kinds_are_played_as_they_were() {
    let (stage, reply) = check(vec![Step::Send(streamed(PLAIN))], PATIENT).await;
    assert!(reply.unwrap().contains("req_7"), "headers that mean something are kept");
    assert_eq!(stage.exchanges()[0]["end"], "complete");

    let limited = "retry-after: 7\r\nx-secret: 1\r\n";
    let (stage, error) =
        check(vec![Step::Send(answer("429 Slow Down", limited, "busy"))], PATIENT).await;
    assert!(error.unwrap_err().contains("busy"));
    assert_eq!(stage.exchanges()[0]["response"]["headers"], json!({"retry-after": "7"}));

    let half = &PLAIN[..PLAIN.len() / 2];
    let (stage, error) = check(vec![Step::Send(begun(half)), Step::Close], PATIENT).await;
    assert!(error.unwrap_err().contains("cut off"));
    assert_eq!(stage.exchanges()[0]["end"]["failed"]["kind"], "cut");

    let (_, error) = check(vec![Step::Close], PATIENT).await;
    assert!(error.unwrap_err().contains("cannot reach"));

    let soon = Duration::from_secs(1);
    let (stage, error) = check(vec![Step::Send(begun(half)), Step::Hold], soon).await;
    assert!(error.unwrap_err().contains("stalled"));
    assert_eq!(stage.exchanges()[0]["end"], "left");
    let (stage, error) = check(vec![Step::Hold], soon).await;
    assert!(error.unwrap_err().contains("stalled"));
    assert_eq!(stage.exchanges()[0].get("response"), None);

    let garbled = [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ndata: \xff".as_slice(), b"\xfe\n"];
    let (stage, error) = check(vec![Step::Send(garbled.concat())], PATIENT).await;
    assert!(error.is_err());
    assert_eq!(stage.exchanges()[0]["response"]["body"], json!({"base64": "ZGF0YTog//4K"}));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_not_there_in_the_replay_either() {
    let stage = Stage::new();
    let server = Server::start(Vec::new()).await;
    let url = server.url.clone();
    drop(server);
    let (model, _recording) = stage.recorded(&url, PATIENT);
    let recorded = told(say(&*model, "hi").await).unwrap_err();
    assert!(recorded.contains("cannot reach") && recorded.contains("check the network"));
    let (model, _replay) = stage.played(&stage.tape(), PATIENT);
    assert_eq!(told(say(&*model, "hi").await).unwrap_err(), recorded);
}

#[tokio::test]
async fn neither_key_nor_place_is_written_however_it_is_told() {
    let stage = Stage::new();
    let (workspace, secret) = (stage.workspace(), format!("sk-other-{}", "x9".repeat(12)));
    let spoken = format!("the key {KEY} and {workspace}/a.rs and {secret}.");
    let mut body = String::new();
    let (start, rest) = PLAIN.split_once("event: content_block_delta").unwrap();
    let end = &rest[rest.find("event: content_block_stop").unwrap()..];
    body.push_str(start);
    for piece in spoken.as_bytes().chunks(5) {
        let text = String::from_utf8(piece.to_vec()).unwrap();
        let delta = json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": text}});
        body.push_str(&format!("event: content_block_delta\ndata: {delta}\n\n"));
    }
    body.push_str(end);
    let server = Server::start(vec![Step::Send(streamed(&body))]).await;
    let (model, _recording) = stage.recorded(&server.url, PATIENT);
    let asked = format!("what is in {workspace} and does {KEY} fit?");
    let reply = say(&*model, &asked).await.unwrap();
    assert_eq!(reply.message.text(), spoken, "the recording changes nothing for the caller");

    let tape = stage.text();
    for private in [KEY, &workspace, &secret, "x-api-key", &*stage.folder.path().to_string_lossy()]
    {
        assert!(!tape.contains(private), "{private}: {tape}");
    }
    let elsewhere = Stage::new();
    let (model, replay) = elsewhere.played(&stage.tape(), PATIENT);
    let there = elsewhere.workspace();
    let asked = format!("what is in {there} and does {{{{posse:secret}}}} fit?");
    let reply = say(&*model, &asked).await.unwrap();
    let secret = "{{posse:secret}}";
    let wanted = format!("the key {secret} and {there}/a.rs and {secret}.");
    assert_eq!((reply.message.text(), replay.difference()), (wanted, None));
}

#[tokio::test]
async fn requests_are_found_in_any_order_and_the_same_ones_in_theirs() {
    let stage = Stage::new();
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    let (model, _recording) = stage.recorded(&server.url, PATIENT);
    for asked in ["a", "b", "a"] {
        say(&*model, asked).await.unwrap();
    }
    // The numbers count, not the order of the lines.
    let text = stage.text();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (line, reply) in lines[2..].iter_mut().zip(["first", "other", "second"]) {
        *line = line.replace("Hello.", reply);
    }
    lines[2..].reverse();
    std::fs::write(stage.tape(), lines.join("\n")).unwrap();

    let (model, replay) = stage.played(&stage.tape(), PATIENT);
    assert_eq!((replay.unused(), replay.is_cut()), (3, false));
    for (asked, reply) in [("b", "other"), ("a", "first"), ("a", "second")] {
        assert_eq!(say(&*model, asked).await.unwrap().message.text(), reply);
    }
    let error = say(&*model, "a").await.unwrap_err();
    assert!(matches!(error, ModelError::Rejected { .. }), "{error}");
    let difference = replay.difference().unwrap();
    assert_eq!(difference.request, 4);
    assert_eq!(difference.against, Against::Nothing { recorded: 3, why: "" });
}

#[tokio::test]
async fn of_several_requests_the_one_most_alike_is_compared_and_nothing_is_played_after() {
    let stage = Stage::new();
    let server = Server::start(vec![Step::Send(streamed(PLAIN))]).await;
    let (model, _recording) = stage.recorded(&server.url, PATIENT);
    let talk = |last: &str| {
        let said = ["one", "two", last].map(Message::user);
        request(said.into_iter().collect())
    };
    let never = CancellationToken::new();
    say(&*model, "hi").await.unwrap();
    model.call(talk("three"), &|_| {}, &never).await.unwrap();
    let (model, replay) = stage.played(&stage.tape(), PATIENT);
    model.call(talk("four"), &|_| {}, &never).await.unwrap_err();
    let difference = replay.difference().unwrap();
    let Against::Recorded { number, at, recorded, sent } = &difference.against else {
        panic!("{difference:?}");
    };
    assert_eq!(
        (*number, recorded.as_deref(), sent.as_deref()),
        (2, Some("\"three\""), Some("\"four\""))
    );
    assert!(at.starts_with("messages[") && at.ends_with(".text"), "{at}");
    let error = say(&*model, "hi").await.unwrap_err().to_string();
    assert!(error.contains("request 1 is not as recorded"), "{error}");
    assert_eq!(replay.unused(), 2);
}

#[tokio::test]
async fn a_call_that_was_cancelled_is_written_and_explained() {
    let stage = Stage::new();
    let begun = begun(&PLAIN[..PLAIN.find("event: content_block_stop").unwrap()]);
    let server = Server::start(vec![Step::Send(begun), Step::Hold]).await;
    let (model, recording) = stage.recorded(&server.url, PATIENT);
    let cancel = CancellationToken::new();
    let stop = |_| cancel.cancel();
    let error = model.call(request(vec![Message::user("hi")]), &stop, &cancel).await.unwrap_err();
    assert!(matches!(error, ModelError::Cancelled), "{error}");
    assert_eq!(recording.finish().unwrap(), 1);
    let (model, replay) = stage.played(&stage.tape(), PATIENT);
    assert!(matches!(say(&*model, "hi").await, Err(ModelError::Stalled { .. })));
    say(&*model, "hi").await.unwrap_err();
    let words = replay.difference().unwrap().to_string();
    assert!(words.contains("given up when it was recorded"), "{words}");
}

#[test]
fn a_cassette_is_for_its_owner_and_takes_no_other_file_s_place() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    std::fs::write(stage.tape(), "precious").unwrap();
    let refused = Recording::create(stage.tape(), stage.places()).unwrap_err();
    assert!(matches!(refused, CassetteError::Taken { .. }), "{refused}");
    assert_eq!(stage.text(), "precious");
    std::fs::write(stage.tape(), "").unwrap();
    std::fs::set_permissions(stage.tape(), PermissionsExt::from_mode(0o644)).unwrap();
    Recording::create(stage.tape(), stage.places()).unwrap();
    let mode = std::fs::metadata(stage.tape()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Without a request an older one stays as it is.
    std::fs::write(stage.tape(), HEAD).unwrap();
    Recording::create(stage.tape(), stage.places()).unwrap();
    assert_eq!(stage.text(), HEAD);
}

#[test]
fn a_model_that_was_not_recorded_is_not_made_up() {
    let stage = Stage::new();
    std::fs::write(stage.tape(), HEAD).unwrap();
    let replay = Arc::new(Replay::open(stage.tape(), stage.places()).unwrap());
    let keys = Keys::default().with("ANTHROPIC_API_KEY", KEY);
    let models = Models::new(Catalog::built_in(), keys, Options::default());
    let models = models.with(last_resort("offline/planner")).unwrap();
    let models = models.with_cassette(Cassette::Replay(replay));
    let error = models.resolve(MODEL).err().unwrap().to_string();
    assert!(error.contains("is not in the cassette") && error.contains("has none"), "{error}");
    assert!(models.resolve("offline/planner").is_ok(), "that one makes no requests");
}
