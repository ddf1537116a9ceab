//! Redirects, and who follows them.

use super::stream::{Asked, ask, faulty, read_all, request};
use crate::client::{client, post, says};

async fn location(fault: &str) -> (posse_testkit::FakeModel, String) {
    let fake = faulty(fault).await;
    let (bytes, _) = read_all(&mut ask(&fake, &request(Asked::Stream)).await).await;
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("HTTP/1.1 307 Temporary Redirect\r\n"), "{text}");
    let location = text.lines().find_map(|line| line.strip_prefix("location: "));
    let location = location.unwrap().to_owned();
    (fake, location)
}

#[tokio::test]
async fn a_loop_leads_back_to_where_it_began() {
    let (_fake, location) = location("redirect-loop").await;
    assert_eq!(location, "/v1/messages");
}

#[tokio::test]
async fn what_follows_to_another_host_is_seen_with_all_it_brings() {
    let (fake, location) = location("redirect-elsewhere").await;
    assert!(location.ends_with("/v1/messages") && !location.contains(&fake.url()), "{location}");
    assert!(fake.strays().is_empty());
    // A client that follows and does not keep its key to itself.
    let response = post(&client(), &fake, &says("x")).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 404);
    let strays = fake.strays();
    assert_eq!(strays.len(), 1);
    assert_eq!(strays[0].header("x-api-key"), Some("test"));
    assert_eq!(strays[0].body, says("x"));
}
