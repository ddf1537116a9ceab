//! A server that takes only so much.

use crate::client::start;
use crate::wires::{Form, Talk};
use posse_testkit::{Gate, Reply, Script, Wire};
use std::time::Duration;

#[tokio::test]
async fn more_than_it_takes_at_once_are_told_to_come_back() {
    for wire in Wire::ALL {
        let gate = Gate::new();
        let script = Script::always(Reply::text("hello").held_by(&gate));
        let fake = start(script.at_once(2).retry_after(Duration::from_millis(1500))).await;
        let talk = Talk::saying(wire, "x");
        let two = async {
            let both =
                tokio::join!(talk.send(&fake, Form::Stream), talk.send(&fake, Form::Document));
            [both.0.status().as_u16(), both.1.status().as_u16()]
        };
        let third = async {
            gate.wait_for_held(2).await.unwrap();
            let refused = talk.send(&fake, Form::Stream).await;
            gate.open();
            (
                refused.status().as_u16(),
                refused.headers()["retry-after"].to_str().unwrap().to_owned(),
            )
        };
        assert_eq!(tokio::join!(two, third), ([200, 200], (429, "1.5".to_owned())));
        // Whoever has the whole answer has left: the next one is taken at once.
        for form in [Form::Stream, Form::Document, Form::Stream] {
            let response = talk.send(&fake, form).await;
            assert_eq!(response.status(), 200);
            response.text().await.unwrap();
        }
        assert_eq!((fake.count(), fake.counts().status(429)), (6, 1));
        fake.assert_nothing_refused();
    }
}

#[tokio::test]
async fn what_is_left_of_a_span_is_told_in_the_wire_s_own_headers() {
    let span = Duration::from_secs(600);
    for (wire, prefix) in [
        (Wire::Anthropic, ["anthropic-ratelimit-requests-", "remaining", "reset"]),
        (Wire::OpenAiChat, ["x-ratelimit-", "remaining-requests", "reset-requests"]),
    ] {
        let fake = start(Script::always(Reply::text("hello")).requests_per(2, span)).await;
        let [prefix, left, reset] = prefix;
        for expected in ["1", "0", "0"] {
            let response = Talk::saying(wire, "x").send(&fake, Form::Document).await;
            let header = |name: &str| {
                let value = &response.headers()[format!("{prefix}{name}")];
                value.to_str().unwrap().to_owned()
            };
            assert_eq!(header(left), expected);
            match wire {
                Wire::Anthropic => assert!(header(reset).ends_with('Z'), "{}", header(reset)),
                _ => assert!(header(reset).ends_with("ms"), "{}", header(reset)),
            }
        }
        assert_eq!((fake.counts().status(200), fake.counts().status(429)), (2, 1));
    }
    let script = Script::parse(
        "at_once = 0\nretry_after_ms = 20\nrequests_per_minute = 9\n[[rule]]\n[[rule.reply]]\ntext = \"x\"",
    );
    let fake = start(script.unwrap()).await;
    let response = Talk::saying(Wire::Anthropic, "x").send(&fake, Form::Document).await;
    assert_eq!(response.headers()["retry-after"], "0.02");
    assert_eq!(response.headers()["anthropic-ratelimit-requests-remaining"], "9");
}
