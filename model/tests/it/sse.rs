//! Lines and events.

use posse_model::sse::{Events, MAX_EVENT_BYTES, TooLong};

fn all(events: &mut Events) -> Result<Vec<(String, String)>, TooLong> {
    let mut found = Vec::new();
    while let Some(event) = events.next()? {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        found.push((text(event.name), text(&event.data)));
    }
    Ok(found)
}

/// Reads `body` at once and byte by byte, and expects these names and data.
fn check(body: &str, expected: &[(&str, &str)]) {
    let mut whole = Events::default();
    whole.push(body.as_bytes());
    let mut bytes = Events::default();
    let mut found = Vec::new();
    for byte in body.bytes() {
        bytes.push(&[byte]);
        found.extend(all(&mut bytes).unwrap());
    }
    let expected: Vec<_> =
        expected.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect();
    assert_eq!(all(&mut whole).unwrap(), expected, "at once: {body:?}");
    assert_eq!(found, expected, "byte by byte: {body:?}");
}

#[test]
fn line_feeds_carriage_returns_and_both_end_a_line() {
    let expected = [("a", "1"), ("", "2\n3"), ("b", "4")];
    let body = "event: a\ndata: 1\n\ndata: 2\ndata:3\n\ndata: 4\nevent: b\n\n";
    check(body, &expected);
    check(&body.replace('\n', "\r\n"), &expected);
    check(&body.replace('\n', "\r"), &expected);
}

#[test]
fn comments_other_fields_and_events_without_data_are_left_out() {
    check(": hello\n\nevent: empty\n\nid: 7\nretry: 10\ndata\nother: x\n\n", &[("", "")]);
    check(":\n:\ndata:  two spaces: and a colon\n\n", &[("", " two spaces: and a colon")]);
}

#[test]
fn an_event_counts_only_when_a_blank_line_ends_it() {
    check("data: 1\n\ndata: 2\n", &[("", "1")]);
    check("data: 1\n\ndata: 2", &[("", "1")]);
}

#[test]
fn a_byte_order_mark_at_the_beginning_is_skipped() {
    check("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", &[("", "1")]);
}

#[test]
fn an_event_may_be_as_large_as_the_cap_and_no_larger() {
    let of_size = |size: usize| format!("data:{}\n\n", "x".repeat(size - "data:\n\n".len()));
    let mut events = Events::default();
    events.push(of_size(MAX_EVENT_BYTES).as_bytes());
    assert_eq!(all(&mut events).unwrap().len(), 1);
    events.push(of_size(MAX_EVENT_BYTES + 1).as_bytes());
    assert_eq!(all(&mut events), Err(TooLong));
}

#[test]
fn a_line_without_end_is_refused_at_the_cap() {
    let mut events = Events::default();
    let chunk = vec![b'x'; 1 << 16];
    let chunks = (1..).find(|_| {
        events.push(&chunk);
        events.next().is_err()
    });
    assert_eq!(chunks, Some(MAX_EVENT_BYTES / chunk.len() + 1));
}
