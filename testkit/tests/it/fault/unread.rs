//! Connections that end before their request is read.

use super::stream::{Asked, End, ask, read_all, request, said};
use posse_testkit::{FakeModel, Rule, Script, When};

async fn check(fault: &str, end: End) {
    let spoilt = Rule::when(When::any()).reply(said().fault(fault)).once();
    let script = Script::new().rule(spoilt).rule(Rule::when(When::any()).reply(said()));
    let fake = FakeModel::start(script).await.unwrap();
    // More than the server would take in at one go, so that something surely stays unread.
    let long = request(Asked::Stream) + &" ".repeat(1 << 16);
    let seen = read_all(&mut ask(&fake, &long).await).await;
    assert_eq!((seen.0.len(), seen.1), (0, end));
    assert_eq!((fake.count(), fake.connections()), (0, 1), "no request was read");
    let (bytes, _) = read_all(&mut ask(&fake, &request(Asked::Stream)).await).await;
    assert!(bytes.starts_with(b"HTTP/1.1 200 OK"), "once means once");
    assert_eq!(fake.count(), 1);
}

#[tokio::test]
async fn a_reset_before_the_request_is_read() {
    check("reset-unread", End::Reset).await;
}

#[tokio::test]
async fn an_end_before_the_request_is_read() {
    check("cut-unread", End::Closed).await;
}

#[tokio::test]
async fn a_connection_that_waits_for_its_first_request_spends_nothing() {
    let spoilt = Rule::when(When::any()).reply(said().fault("reset-unread")).once();
    let script = Script::new().rule(spoilt).rule(Rule::when(When::any()).reply(said()));
    let fake = FakeModel::start(script).await.unwrap();
    let idle = tokio::net::TcpStream::connect(fake.address()).await.unwrap();
    let seen = read_all(&mut ask(&fake, &request(Asked::Document)).await).await;
    assert_eq!(seen, (Vec::new(), End::Reset));
    drop(idle);
}
