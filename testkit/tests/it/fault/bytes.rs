//! Every fault that spoils a stream, byte for byte, on the Anthropic wire.

use super::stream::{Asked, Clean, End, ask, chunk, clean, faulty, read_all, request};
use posse_testkit::{Expectation, Fault, Wire};
use tokio::io::AsyncReadExt;

/// What a client is to see.
struct Want {
    bytes: Vec<u8>,
    then: Then,
}

enum Then {
    End(End),
    /// These bytes, again and again.
    Repeat(Vec<u8>),
    /// Nothing, with the connection open.
    Silence,
}

fn closed(bytes: Vec<u8>) -> Want {
    Want { bytes, then: Then::End(End::Closed) }
}

fn reset(bytes: Vec<u8>) -> Want {
    Want { bytes, then: Then::End(End::Reset) }
}

fn silent(bytes: Vec<u8>) -> Want {
    Want { bytes, then: Then::Silence }
}

fn endless(bytes: Vec<u8>, again: Vec<u8>) -> Want {
    Want { bytes, then: Then::Repeat(again) }
}

const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

fn padded_ping(size: usize) -> Vec<u8> {
    let padding = "x".repeat(size);
    format!("event: ping\ndata: {{\"type\":\"ping\",\"padding\":\"{padding}\"}}\n\n").into_bytes()
}

/// Faults that other tests look at: refusals, and changes of what is said.
const ELSEWHERE: [&str; 67] = [
    "rate-limit",
    "rate-limit-seconds",
    "rate-limit-fraction",
    "rate-limit-zero",
    "rate-limit-date",
    "rate-limit-past-date",
    "rate-limit-huge",
    "rate-limit-negative",
    "rate-limit-garbage",
    "rate-limit-no-number",
    "rate-limit-milliseconds",
    "rate-limit-retry-info",
    "quota-exhausted",
    "overloaded",
    "server-error",
    "server-error-empty",
    "server-error-endless",
    "bad-gateway",
    "unavailable",
    "gateway-timeout",
    "request-timeout",
    "bad-key",
    "forbidden",
    "unknown-model",
    "too-large",
    "context-overflow",
    "bad-request",
    "reset-unread",
    "cut-unread",
    "truncated-arguments",
    "broken-off-arguments",
    "invalid-arguments",
    "doubled-arguments",
    "list-arguments",
    "text-arguments",
    "null-arguments",
    "no-arguments",
    "unknown-tool",
    "nameless-tool",
    "missing-call-id",
    "duplicate-call-ids",
    "duplicate-index",
    "swapped-index",
    "huge-index",
    "negative-index",
    "unknown-index",
    "unknown-fields",
    "several-data-lines",
    "missing-usage",
    "huge-usage",
    "negative-usage",
    "text-usage",
    "missing-stop-reason",
    "unknown-stop-reason",
    "wrong-stop-reason",
    "empty-reply",
    "error-with-200",
    "other-form",
    "html",
    "html-as-stream",
    "empty",
    "no-content",
    "json-list",
    "redirect-loop",
    "redirect-elsewhere",
    "gzip",
    "gzip-bomb",
];

/// What the fault makes of the stream; none for those that other tests look at.
fn wanted(fault: &str, clean: &Clean) -> Option<Want> {
    let head = || clean.head.clone().into_bytes();
    let half_head = || head()[..clean.head.len() / 2].to_vec();
    let until = |end: usize| clean.events[..end].to_vec();
    let comment = || vec![b": one moment\n\n".to_vec()];
    let text = clean.find(0, "text_delta");
    let arguments = clean.find(1, "input_json_delta");
    let stop = clean.find(0, "\"message_delta\"");
    let in_event = |index: usize, more: &[u8]| {
        let mut events = until(index + 1);
        let last = events.last_mut().unwrap();
        last.truncate(last.len() / 2);
        last.extend_from_slice(more);
        events
    };
    let each = |change: &dyn Fn(&str) -> String| {
        let changed = clean.events.iter();
        let changed = changed.map(|event| change(std::str::from_utf8(event).unwrap()).into_bytes());
        closed(clean.whole(&changed.collect::<Vec<_>>()))
    };
    let between = |event: &str| {
        let pairs = clean.events.iter().flat_map(|own| [event.as_bytes().to_vec(), own.clone()]);
        closed(clean.whole(&pairs.collect::<Vec<_>>()))
    };
    let with_events = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
        let mut events = clean.events.clone();
        change(&mut events);
        closed(clean.whole(&events))
    };
    let body = || clean.events.concat();
    let error = |kind: &str, message: &str| {
        format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\
             \"message\":\"{message}\"}}}}\n\n"
        )
        .into_bytes()
    };
    let erring =
        |end: usize, event: Vec<u8>| closed(clean.whole(&[until(end), vec![event]].concat()));
    let coded = |line: &str, body: &[u8]| {
        let head = clean.with_line("transfer-encoding", line);
        [head.as_bytes(), body].concat()
    };
    let spoilt = |spoilt: &dyn Fn(&[u8]) -> Vec<u8>| {
        let body = body();
        let (good, bad) = body.split_at(body.len() / 2);
        [clean.begun(&[good.to_vec()]), spoilt(bad), b"0\r\n\r\n".to_vec()].concat()
    };
    let call_end = clean.events.len() - 2;
    Some(match fault {
        "reset-before-headers" => reset(Vec::new()),
        "cut-before-headers" => closed(Vec::new()),
        "reset-in-headers" => reset(half_head()),
        "cut-in-headers" => closed(half_head()),
        "reset-after-headers" => reset(head()),
        "cut-after-headers" => closed(head()),
        "end-after-headers" => closed(clean.whole(&[])),
        "reset-before-first-event" => reset(clean.begun(&comment())),
        "cut-before-first-event" => closed(clean.begun(&comment())),
        "end-before-first-event" => closed(clean.whole(&comment())),
        "reset-in-line" => reset(clean.begun(&in_event(text, b""))),
        "cut-in-line" => closed(clean.begun(&in_event(text, b""))),
        "end-in-line" => closed(clean.whole(&in_event(text, b""))),
        "cut-in-character" => closed(clean.begun(&in_event(text, b"\xc3"))),
        "end-in-character" => closed(clean.whole(&in_event(text, b"\xc3"))),
        "reset-after-text" => reset(clean.begun(&until(text + 1))),
        "cut-after-text" => closed(clean.begun(&until(text + 1))),
        "end-after-text" => closed(clean.whole(&until(text + 1))),
        "reset-in-arguments" => reset(clean.begun(&until(arguments + 1))),
        "cut-in-arguments" => closed(clean.begun(&until(arguments + 1))),
        "end-in-arguments" => closed(clean.whole(&until(arguments + 1))),
        "unclosed-call" => {
            let is_end =
                |event: &&Vec<u8>| !event.windows(18).any(|it| it == b"content_block_stop");
            let kept: Vec<Vec<u8>> = clean.events.iter().filter(is_end).cloned().collect();
            closed(clean.whole(&kept))
        }
        "reset-after-call" => reset(clean.begun(&until(call_end))),
        "cut-after-call" => closed(clean.begun(&until(call_end))),
        "end-after-call" => closed(clean.whole(&until(call_end))),
        "reset-before-end" => reset(clean.begun(&until(stop + 1))),
        "cut-before-end" => closed(clean.begun(&until(stop + 1))),
        "end-before-end" => closed(clean.whole(&until(stop + 1))),
        "crlf" => each(&|event| event.replace('\n', "\r\n")),
        "cr" => each(&|event| event.replace('\n', "\r")),
        "comments" => {
            let pairs = clean.events.iter().flat_map(|own| {
                [b": keep-alive\n\n".to_vec(), [b": a comment\n:\n", &own[..]].concat()]
            });
            closed(clean.whole(&pairs.collect::<Vec<_>>()))
        }
        "pings" => between(PING),
        "byte-order-mark" => with_events(&|events| {
            events[0].splice(..0, "\u{feff}".bytes());
        }),
        "unknown-events" => between(
            "event: aura_delta\ndata: {\"type\":\"aura_delta\",\"aura\":{\"colour\":\"blue\"}}\n\n",
        ),
        "no-space" => each(&|event| event.replace("data: ", "data:")),
        "no-event-names" => each(&|event| event.split_once('\n').unwrap().1.to_owned()),
        "other-lines" => each(&|event| format!("id: 7\nretry: 10\nflavour: mint\nlonely\n{event}")),
        "blank-lines" => between("\n\n\n"),
        "one-byte-pieces" => {
            let pieces: Vec<Vec<u8>> = body().iter().map(|byte| vec![*byte]).collect();
            closed(clean.whole(&pieces))
        }
        "three-byte-pieces" => {
            let pieces: Vec<Vec<u8>> = body().chunks(3).map(<[u8]>::to_vec).collect();
            closed(clean.whole(&pieces))
        }
        "one-write" => closed(clean.whole(&[body()])),
        "large-event" => with_events(&|events| events.insert(1, padded_ping(1 << 20))),
        "reply-twice" => with_events(&|events| events.extend(events.clone())),
        "junk-after-end" => with_events(&|events| events.push(b"data: {no json\n\n".to_vec())),
        "invalid-utf-8" => with_events(&|events| {
            let place = String::from_utf8_lossy(&events[text]).find("One").unwrap();
            let rest = events[text].split_off(place);
            events[text].extend(b"\xe2\x82");
            events.insert(text + 1, [b"\x28", &rest[..]].concat());
        }),
        "error-first" => erring(0, error("api_error", "Internal server error")),
        "overloaded-in-stream" => erring(text + 1, error("overloaded_error", "Overloaded")),
        "rate-limit-in-stream" => erring(
            text + 1,
            error(
                "rate_limit_error",
                "This request would exceed the rate limit for your organization of 50 requests \
                 per minute.",
            ),
        ),
        "error-after-call" => erring(call_end, error("api_error", "Internal server error")),
        "rejected-in-stream" => {
            erring(0, error("invalid_request_error", "temperature: Input should be less than 1"))
        }
        "overflow-in-stream" => erring(
            0,
            error("invalid_request_error", "prompt is too long: 204918 tokens > 200000 maximum"),
        ),
        "wrong-content-type" => {
            let head = clean.with_line("content-type", "");
            let line = "content-type: text/plain; charset=utf-8\r\nconnection: close";
            let head = head.replacen("connection: close", line, 1);
            closed(
                [head.into_bytes(), clean.whole(&clean.events)[clean.head.len()..].to_vec()]
                    .concat(),
            )
        }
        "no-content-type" => {
            let head = clean.with_line("content-type", "");
            closed(
                [head.into_bytes(), clean.whole(&clean.events)[clean.head.len()..].to_vec()]
                    .concat(),
            )
        }
        "silence" => silent(Vec::new()),
        "silence-after-headers" => silent(head()),
        "silence-in-stream" => silent(clean.begun(&until(text + 1))),
        "silence-in-arguments" => silent(clean.begun(&until(arguments + 1))),
        "pings-only" => endless(head(), chunk(PING.as_bytes())),
        "comments-only" => endless(head(), chunk(b": still here\n\n")),
        "pings-in-stream" => endless(clean.begun(&until(text + 1)), chunk(PING.as_bytes())),
        "empty-text" => {
            let event = String::from_utf8(clean.events[text].clone()).unwrap();
            let event = event.replacen("One é", "", 1);
            endless(clean.begun(&until(text + 1)), chunk(event.as_bytes()))
        }
        "repeated-stop" => endless(clean.begun(&until(stop + 1)), chunk(&clean.events[stop])),
        "slow-headers" => silent(head()),
        "slow-body" => silent(clean.whole(&clean.events)),
        "endless-text" => {
            let event = String::from_utf8(clean.events[text].clone()).unwrap();
            let event = event.replacen("One é", &"and then ".repeat((64 << 10) / 9), 1);
            endless(clean.begun(&until(text + 1)), chunk(event.as_bytes()))
        }
        "endless-pings" => endless(head(), chunk(&padded_ping(64 << 10))),
        "endless-comments" => {
            endless(head(), chunk(format!(": {}\n\n", "x".repeat(64 << 10)).as_bytes()))
        }
        "endless-line" => {
            let begun = [head(), chunk(b"data: ")].concat();
            endless(begun, chunk(&vec![b'x'; 64 << 10]))
        }
        "huge-event" => with_events(&|events| events.insert(0, padded_ping(12 << 20))),
        "length-too-long" => {
            let body = body();
            closed(coded(&format!("content-length: {}", body.len() + 1000), &body))
        }
        "length-too-short" => {
            let body = body();
            closed(coded(&format!("content-length: {}", body.len() / 2), &body))
        }
        "bad-chunk-size" => closed(spoilt(&|bad| [b"zz\r\n", bad, b"\r\n"].concat())),
        "chunk-too-short" => closed(spoilt(&|bad| {
            [format!("{:x}\r\n", bad.len() / 2).as_bytes(), bad, b"\r\n"].concat()
        })),
        "chunk-too-long" => {
            closed(spoilt(&|bad| [format!("{:x}\r\n", bad.len() + 5000).as_bytes(), bad].concat()))
        }
        "trailers" => {
            let begun = clean.begun(&clean.events);
            closed([begun, b"0\r\nx-checksum: 7\r\n\r\n".to_vec()].concat())
        }
        "no-length" => closed(coded("", &body())),
        "http-1-0" => {
            let answer = coded("", &body());
            closed([b"HTTP/1.0", &answer[8..]].concat())
        }
        "closed-after" => closed(clean.whole(&clean.events)),
        "early-continue" => {
            let whole = clean.whole(&clean.events);
            closed([b"HTTP/1.1 100 Continue\r\n\r\n", &whole[..]].concat())
        }
        "early-hints" => {
            let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n";
            closed([hints, &clean.whole(&clean.events)[..]].concat())
        }
        "endless-continue" => endless(Vec::new(), b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        "not-http" => closed(b"220 mail.example ESMTP ready\r\n".to_vec()),
        "huge-header" => {
            let line = format!("x-huge: {}\r\nconnection: close", "x".repeat(1 << 20));
            let head = clean.head.replacen("connection: close", &line, 1);
            closed([head.as_bytes(), &clean.whole(&clean.events)[clean.head.len()..]].concat())
        }
        "many-headers" => {
            let many: String = (0..1000).map(|n| format!("x-header-{n}: x\r\n")).collect();
            let line = format!("{many}connection: close");
            let head = clean.head.replacen("connection: close", &line, 1);
            closed([head.as_bytes(), &clean.whole(&clean.events)[clean.head.len()..]].concat())
        }
        "gzip-lie" => {
            let line = "content-encoding: gzip\r\nconnection: close";
            let head = clean.head.replacen("connection: close", line, 1);
            closed([head.as_bytes(), &clean.whole(&clean.events)[clean.head.len()..]].concat())
        }
        _ => return None,
    })
}

#[tokio::test]
async fn every_fault_of_a_stream_gives_exactly_these_bytes_and_this_end() {
    let clean = clean(Asked::Stream).await;
    for fault in Fault::all() {
        let name = fault.name();
        let Some(want) = wanted(name, &clean) else {
            assert!(ELSEWHERE.contains(&name), "nothing looks at {name}");
            continue;
        };
        assert!(!ELSEWHERE.contains(&name), "{name}");
        let fake = faulty(name).await;
        let mut stream = ask(&fake, &request(Asked::Stream)).await;
        match want.then {
            Then::End(end) => {
                let (bytes, ended) = read_all(&mut stream).await;
                compare(name, &bytes, &want.bytes);
                assert_eq!(ended, end, "{name}");
            }
            Then::Repeat(again) => {
                let mut bytes = vec![0; want.bytes.len() + 2 * again.len()];
                stream.read_exact(&mut bytes).await.unwrap();
                compare(name, &bytes, &[want.bytes, again.repeat(2)].concat());
                leave(&fake, stream).await;
            }
            Then::Silence => {
                // What is slow would take minutes: its beginning must do.
                let slow = name.starts_with("slow");
                let first = if slow { 8.min(want.bytes.len()) } else { want.bytes.len() };
                let mut bytes = vec![0; first];
                stream.read_exact(&mut bytes).await.unwrap();
                compare(name, &bytes, &want.bytes[..first]);
                leave(&fake, stream).await;
            }
        }
    }
}

/// Leaves a reply that goes on, which the server notices.
async fn leave(fake: &posse_testkit::FakeModel, stream: tokio::net::TcpStream) {
    fake.wait_for_requests(1).await.unwrap();
    assert_eq!(fake.in_flight(), 1);
    drop(stream);
    fake.wait_until_idle().await.unwrap();
    assert_eq!(fake.abandoned(), 1);
}

fn compare(name: &str, found: &[u8], wanted: &[u8]) {
    if found == wanted {
        return;
    }
    let at = found.iter().zip(wanted).position(|(one, other)| one != other);
    let at = at.unwrap_or(found.len().min(wanted.len()));
    let around = |bytes: &[u8]| {
        let from = at.saturating_sub(60).min(bytes.len());
        String::from_utf8_lossy(&bytes[from..(at + 60).min(bytes.len())]).into_owned()
    };
    panic!(
        "{name}: {} bytes of {} wanted; at {at}\nfound:  {:?}\nwanted: {:?}",
        found.len(),
        wanted.len(),
        around(found),
        around(wanted)
    );
}

#[tokio::test]
async fn a_document_is_spoilt_too_and_every_fault_comes_to_its_end() {
    let clean = clean(Asked::Document).await;
    let whole = [clean.head.as_bytes(), &clean.events[0]].concat();
    for fault in Fault::all().filter(|fault| !fault.is_unread()) {
        let name = fault.name();
        let fake = faulty(name).await;
        let mut stream = ask(&fake, &request(Asked::Document)).await;
        let goes_on = matches!(
            fault.expectation(Wire::Anthropic),
            Expectation::Retried(failures) if failures.contains(&posse_testkit::Failure::Stalled)
        ) || name.contains("endless");
        if goes_on {
            if name != "silence" {
                stream.read_exact(&mut [0; 8]).await.unwrap();
            }
            leave(&fake, stream).await;
            continue;
        }
        let (bytes, end) = read_all(&mut stream).await;
        assert_eq!(end == End::Reset, name.starts_with("reset"), "{name}");
        // What has no meaning for a document leaves it as it is.
        let untouched = [
            "crlf",
            "cr",
            "comments",
            "pings",
            "byte-order-mark",
            "unknown-events",
            "no-space",
            "several-data-lines",
            "no-event-names",
            "other-lines",
            "blank-lines",
            "three-byte-pieces",
            "one-byte-pieces",
            "one-write",
            "large-event",
            "reply-twice",
            "junk-after-end",
            "trailers",
            "closed-after",
            "duplicate-index",
            "swapped-index",
            "huge-index",
            "negative-index",
            "unknown-index",
        ];
        assert_eq!(bytes == whole, untouched.contains(&name), "{name}");
    }
}
