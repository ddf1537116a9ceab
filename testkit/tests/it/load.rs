//! Many requests at once, and what is counted.

use crate::client::{client, post, says, start, streaming};
use crate::wires::{Form, Talk, folded, heard};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use posse_testkit::{Gate, Reply, Script, Wire};

const MANY: usize = 2000;

/// Allows as many open files as the system lets us: both ends of each connection are ours.
fn raise_the_limit_of_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_requests_are_in_flight_at_once_and_all_are_answered() {
    raise_the_limit_of_open_files();
    let gate = Gate::new();
    let reply = Reply::text("{{last_user}}").held_by(&gate);
    let fake = start(Script::always(reply).without_capture()).await;
    let client = client();
    let calls: FuturesUnordered<_> = (0..MANY)
        .map(|number| {
            let request = post(&client, &fake, &streaming(says(&format!("run-{number}"))));
            async move {
                let response = request.send().await.unwrap();
                assert_eq!(response.status(), 200);
                assert!(response.text().await.unwrap().contains("message_stop"));
            }
        })
        .collect();
    let opening = async {
        gate.wait_for_held(MANY).await.unwrap();
        gate.open();
    };
    tokio::join!(calls.collect::<Vec<()>>(), opening);
    fake.wait_until_idle().await.unwrap();
    assert_eq!((fake.count(), fake.peak_in_flight(), fake.in_flight()), (MANY, MANY, 0));
    assert_eq!((fake.connections(), fake.abandoned()), (MANY, 0));
    assert!(fake.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_conversations_on_every_wire_do_not_get_in_each_others_way() {
    raise_the_limit_of_open_files();
    let fake =
        start(Script::always(Reply::thinking("{{last_user}}?").and_text("{{last_user}}!"))).await;
    let client = client();
    let system = "word".repeat(2000);
    let calls: FuturesUnordered<_> = (0..400)
        .map(|number| {
            let wire = Wire::ALL[number % Wire::ALL.len()];
            let talk = Talk::saying(wire, &format!("run-{number}")).system(&system);
            let request = talk.request(&client, &fake, Form::Stream);
            async move {
                let text = request.send().await.unwrap().text().await.unwrap();
                let found = heard(wire, &folded(wire, &text));
                assert_eq!(found.text, format!("run-{number}!"));
                assert_eq!(found.thinking, format!("run-{number}?"));
                // All of one wire begin alike; whoever came first wrote it.
                usize::from(found.input[1] > 0)
            }
        })
        .collect();
    let hits: usize = calls.collect::<Vec<usize>>().await.into_iter().sum();
    fake.wait_until_idle().await.unwrap();
    fake.assert_nothing_refused();
    assert_eq!(Wire::ALL.map(|wire| fake.counts().wire(wire)), [100; 4]);
    // Anthropic caches what is marked, and nothing is.
    assert_eq!(hits, 297);
}
