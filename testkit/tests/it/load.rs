//! Many requests at once, and what is counted.

use crate::client::{client, post, says, start, streaming};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use posse_testkit::{Gate, Reply, Script};

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
