//! Errors, headers, keys and paths, on every wire.

use crate::client::{client, start};
use crate::wires::{Form, Talk};
use posse_testkit::{Reply, Rule, Script, When, Wire};
use serde_json::{Value, json};

#[tokio::test]
async fn errors_come_in_the_words_of_the_wire() {
    for (status, [anthropic, openai, gemini]) in [
        (400, ["invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"]),
        (401, ["authentication_error", "invalid_request_error", "UNAUTHENTICATED"]),
        (404, ["not_found_error", "invalid_request_error", "NOT_FOUND"]),
        (429, ["rate_limit_error", "requests", "RESOURCE_EXHAUSTED"]),
        (500, ["api_error", "server_error", "INTERNAL"]),
        (503, ["api_error", "server_error", "UNAVAILABLE"]),
    ] {
        for wire in Wire::ALL {
            let reply = Reply::error(status, "as \"scripted\"").header("Retry-After", "7");
            let fake = start(Script::always(reply)).await;
            for form in [Form::Document, Form::Stream] {
                let response = Talk::saying(wire, "x").send(&fake, form).await;
                assert_eq!(response.status().as_u16(), status);
                assert_eq!(response.headers()["retry-after"], "7");
                let document: Value =
                    serde_json::from_str(&response.text().await.unwrap()).unwrap();
                let error = &document["error"];
                assert_eq!(error["message"], "as \"scripted\"");
                match wire {
                    Wire::Anthropic => {
                        assert_eq!(
                            (&document["type"], &error["type"]),
                            (&json!("error"), &json!(anthropic))
                        );
                    }
                    Wire::Gemini => {
                        assert_eq!(
                            (&error["code"], &error["status"]),
                            (&json!(status), &json!(gemini))
                        );
                        assert_eq!(error["details"][0]["retryDelay"], "7s");
                    }
                    _ => assert_eq!(
                        (&error["type"], &error["param"]),
                        (&json!(openai), &json!(null))
                    ),
                }
            }
        }
    }
    for wire in Wire::ALL {
        let reply = Reply::error_of_type(418, "teapot", "short");
        let (status, document) =
            Talk::saying(wire, "x").ask(&start(Script::always(reply)).await).await;
        let error = &document["error"];
        let words = match wire {
            Wire::Anthropic => [&error["type"]; 2],
            Wire::Gemini => [&error["status"]; 2],
            _ => [&error["type"], &error["code"]],
        };
        assert_eq!((status, words), (418, [&json!("teapot"); 2]), "{document}");
    }
}

#[tokio::test]
async fn headers_name_the_request_and_the_limits_as_the_provider_does() {
    for wire in Wire::ALL {
        let busy = Rule::when(When::any()).reply(Reply::error(429, "slow down")).once();
        let script = Script::new().rule(busy).rule(Rule::when(When::any()).reply(Reply::text("x")));
        let fake = start(script).await;
        let talk = Talk::saying(wire, "x");
        let refused = talk.send(&fake, Form::Document).await;
        let answered = talk.send(&fake, Form::Stream).await;
        let header = |response: &reqwest::Response, name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let names = match wire {
            Wire::Anthropic => ["request-id", "anthropic-ratelimit-requests-remaining"],
            Wire::OpenAiChat | Wire::OpenAiResponses => {
                ["x-request-id", "x-ratelimit-remaining-requests"]
            }
            Wire::Gemini => {
                assert_eq!(header(&answered, "content-type").unwrap(), "text/event-stream");
                continue;
            }
        };
        assert_eq!(header(&refused, names[0]).unwrap(), "req_fake_000001");
        assert_eq!(header(&answered, names[0]).unwrap(), "req_fake_000002");
        assert_eq!(header(&refused, names[1]).unwrap(), "0");
        assert_eq!(header(&answered, names[1]).unwrap(), "3999");
    }
}

#[tokio::test]
async fn a_key_is_needed_unless_the_script_waives_it() {
    for wire in Wire::ALL {
        let reply = || Reply::text("fine");
        let talk = Talk { key: String::new(), ..Talk::saying(wire, "x") };
        let status = if wire == Wire::Gemini { 403 } else { 401 };
        let message = talk.error(&start(Script::always(reply())).await, status).await;
        assert!(message.to_lowercase().contains("key"), "{message}");
        let fake = start(Script::always(reply()).without_keys()).await;
        assert_eq!(talk.heard(&fake).await.text, "fine");
    }
}

#[tokio::test]
async fn bodies_that_are_no_requests_are_refused() {
    for wire in Wire::ALL {
        let fake = start(Script::always(Reply::text("x"))).await;
        for broken in ["", "{", "[]", r#"{"messages": 3, "input": 3, "contents": 3}"#] {
            let request = Talk::saying(wire, "x").request(&client(), &fake, Form::Document);
            let response = request.body(broken).send().await.unwrap();
            assert_eq!(response.status(), 400, "{}: {broken}", wire.name());
            let document: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert!(document["error"]["message"].is_string(), "{document}");
        }
        let request = Talk::saying(wire, "x").request(&client(), &fake, Form::Document);
        let response = request.body(vec![b'"', 0xff, b'"']).send().await.unwrap();
        assert!(response.text().await.unwrap().contains("UTF-8"));
        assert_eq!(fake.refused(), 5);
    }
}

#[tokio::test]
async fn endpoints_are_found_under_any_prefix_and_take_post_only() {
    for wire in Wire::ALL {
        let fake = start(Script::always(Reply::text("x"))).await;
        let talk = Talk::saying(wire, "x");
        let path = talk.path(Form::Document);
        let request = client().get(format!("{}{path}", fake.url()));
        assert_eq!(request.send().await.unwrap().status(), 405);
        for prefix in ["/vendor", "/a/b"] {
            let url = format!("{}{prefix}{path}", fake.url());
            let request = client()
                .post(url)
                .header("x-api-key", "k")
                .header("x-goog-api-key", "k")
                .header("authorization", "Bearer k")
                .header("anthropic-version", "v");
            let response = request.body(talk.body(Form::Document).to_string()).send().await;
            assert_eq!(response.unwrap().status(), 200, "{prefix}{path}");
        }
    }
}
