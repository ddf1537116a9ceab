//! `posse webhooks`, and what is told when processes die. No secret is ever shown.

use crate::world::{Exit, World, eventually, started};
use posse::store::{Delivery, DeliveryFilter, Options, Outbox, SqliteStore, Store};
use posse_testkit::{Answer, Gate, Receiver};
use rustix::process::Signal;
use serde_json::Value;

/// The base64 of 24 bytes.
const CANARY: &str = "Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2Fu";
const SECRET: &str = "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktY2Fu";
/// In the address, which may be a secret too.
const TOKEN: &str = "token-8f3b1c";

/// Writes the user's settings: a webhook at `receiver`, with what stands in `rest`.
fn configure(world: &World, receiver: &Receiver, rest: &str) {
    let folder = world.home().join("config/posse");
    std::fs::create_dir_all(&folder).unwrap();
    let url = receiver.url();
    let text = format!(
        "[[webhooks]]\nname = \"ci\"\nurl = \"{url}/{TOKEN}?key={TOKEN}\"\nallow_private = true\n\
         timeout = \"1s\"\n{rest}"
    );
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

fn known() -> String {
    format!("secret = \"{SECRET}\"\nschedule = []\n")
}

/// What a command says, in which there must be no secret.
async fn heard(world: &World, arguments: &[&str]) -> Exit {
    let exit = world.run(arguments).await;
    for text in [&exit.out, &exit.err] {
        assert!(!text.contains(CANARY) && !text.contains(TOKEN), "{arguments:?}: {exit:?}");
    }
    exit
}

async fn deliveries(world: &World) -> Vec<Value> {
    let exit = heard(world, &["webhooks", "deliveries", "--all", "--json"]).await.expect(0);
    exit.json().as_array().unwrap().clone()
}

/// No file beside the database holds this.
fn assert_not_stored(world: &World, text: &str) {
    for entry in std::fs::read_dir(world.database().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn a87_a_notice_tells_no_secret() {
    let world = World::saying("the key is sk-canary-8f3b1c").await;
    let receiver = Receiver::start([]).await.unwrap();
    configure(&world, &receiver, &known());
    let mut command = world.command(&["run", "--label", "for sk-canary-8f3b1c", "x"]);
    command.env("ANTHROPIC_API_KEY", "sk-canary-8f3b1c");
    started(command).end().await.expect(0);
    let body = String::from_utf8_lossy(&receiver.received()[0].raw).into_owned();
    assert!(body.contains("the key is [redacted]") && !body.contains("8f3b1c"), "{body}");
}

#[tokio::test]
async fn a_secret_that_stands_in_the_settings_is_taken_out_of_what_is_said() {
    let world = World::saying(&format!("it is signed with {SECRET}")).await;
    let receiver = Receiver::start([]).await.unwrap();
    configure(&world, &receiver, &known());
    let exit = world.run(&["run", "x"]).await.expect(0);
    assert!(exit.out.contains("whsec_[redacted]"), "{}", exit.out);
    let body = String::from_utf8_lossy(&receiver.received()[0].raw).into_owned();
    assert!(!body.contains(&SECRET[6..]), "{body}");
}

#[tokio::test]
async fn a_run_is_told_before_the_command_ends_and_no_secret_is_in_any_output_or_file() {
    let world = World::saying("the answer").await;
    let receiver = Receiver::start([]).await.unwrap();
    configure(&world, &receiver, &known());
    heard(&world, &["run", "x"]).await.expect(0);
    let received = receiver.received();
    assert_eq!(received.len(), 1);
    let body: Value = serde_json::from_slice(&received[0].raw).unwrap();
    assert_eq!(
        (&body["type"], &body["data"]["text"]),
        (&"run.completed".into(), &"the answer".into())
    );
    let told = deliveries(&world).await;
    assert_eq!((told.len(), &told[0]["state"]), (1, &"delivered".into()));
    assert_eq!(told[0]["id"], received[0].header("webhook-id").unwrap());
    let list = heard(&world, &["webhooks", "list"]).await.expect(0);
    assert!(list.out.contains("\nci       http://127.0.0.1:"), "{}", list.out);
    assert!(list.out.contains("/…") && list.out.contains("1 secret"), "{}", list.out);
    let list = heard(&world, &["webhooks", "list", "--json"]).await.expect(0).json();
    assert_eq!((&list[0]["name"], &list[0]["secrets"]), (&"ci".into(), &1.into()));
    for arguments in [
        &["config"][..],
        &["config", "--json"],
        &["webhooks", "deliveries"],
        &["webhooks", "deliveries", "--all"],
        &["webhooks", "test", "ci"],
        &["webhooks", "test", "ci", "--json"],
        &["runs", "list", "--json"],
    ] {
        heard(&world, arguments).await.expect(0);
    }
    heard(&world, &["webhooks", "test", "cd"]).await.expect(2);
    assert_not_stored(&world, CANARY);
    assert_not_stored(&world, TOKEN);
}

#[tokio::test]
async fn settings_that_cannot_be_read_do_not_show_the_secret_that_stands_in_them() {
    let world = World::saying("x").await;
    let receiver = Receiver::start([]).await.unwrap();
    for wrong in [
        format!("secret = \"{SECRET}"),
        format!("secret = {SECRET}"),
        format!("secret = \"{SECRET}\"\nsecret = \"{SECRET}\""),
        format!("secret_env = \"{SECRET}\""),
        format!("secret = \"{SECRET}AAAA\"\nruns = \"{SECRET}\""),
    ] {
        configure(&world, &receiver, &wrong);
        let exit = heard(&world, &["webhooks", "list"]).await.expect(2);
        assert!(exit.err.contains("config.toml"), "{}", exit.err);
        heard(&world, &["run", "x", "--json"]).await.expect(2);
    }
}

#[tokio::test]
async fn a_secret_can_come_from_the_environment_and_what_is_told_waits_for_it() {
    let world = World::saying("x").await;
    let receiver = Receiver::start([]).await.unwrap();
    configure(&world, &receiver, "secret_env = \"CI_SECRET\"");
    let exit = heard(&world, &["run", "x"]).await.expect(0);
    assert!(
        exit.err.contains("CI_SECRET is not set: Posse keeps deliveries for webhook `ci`"),
        "{}",
        exit.err
    );
    assert!(receiver.received().is_empty());
    assert_eq!(deliveries(&world).await[0]["state"], "due");
    let list = heard(&world, &["webhooks", "list"]).await.expect(0);
    assert!(list.out.contains("no secret"), "{}", list.out);
    let with_secret = |arguments: &[&str], value: &str| {
        let mut command = world.command(arguments);
        command.env("CI_SECRET", value);
        started(command)
    };
    let wrong = with_secret(&["run", "y"], "hunter2-hunter2").end().await.expect(2);
    assert!(wrong.err.contains("CI_SECRET") && !wrong.err.contains("hunter2"), "{}", wrong.err);
    let exit = with_secret(&["run", "y"], SECRET).end().await.expect(0);
    assert!(!exit.err.contains(CANARY) && !exit.err.contains("not set"), "{}", exit.err);
    assert_eq!(receiver.received().len(), 2, "what waited is sent with what is new");
    assert!(deliveries(&world).await.iter().all(|it| it["state"] == "delivered"));
    assert_not_stored(&world, CANARY);
}

#[tokio::test]
async fn what_was_given_up_is_listed_and_sent_again_on_demand() {
    let world = World::saying("x").await;
    let answers = [500, 500, 200, 500, 200].map(Answer::status);
    let receiver = Receiver::start(answers).await.unwrap();
    configure(&world, &receiver, &known());
    heard(&world, &["run", "x"]).await.expect(0);
    let dead = heard(&world, &["webhooks", "deliveries", "--dead", "--json"]).await.expect(0);
    let id = dead.json()[0]["id"].as_str().unwrap().to_owned();
    let table = heard(&world, &["webhooks", "deliveries"]).await.expect(0);
    assert!(table.out.contains(&id) && table.out.contains("dead"), "{}", table.out);
    assert!(table.out.contains("500; that was the last attempt"), "{}", table.out);
    let due = heard(&world, &["webhooks", "deliveries", "--due", "--json"]).await.expect(0);
    assert_eq!(due.json().as_array().unwrap().len(), 0);
    let again = heard(&world, &["webhooks", "retry", &id, "--json"]).await.expect(0);
    assert_eq!(again.json()[0]["state"], "dead", "{}", again.out);
    let again = heard(&world, &["webhooks", "retry", "--all-dead", "--json"]).await.expect(0);
    assert_eq!(again.json()[0]["state"], "delivered", "{}", again.out);
    let ids: Vec<_> =
        receiver.received().iter().map(|it| it.header("webhook-id").unwrap().to_owned()).collect();
    assert_eq!(ids, [&*id, &*id, &*id]);
    let over = heard(&world, &["webhooks", "retry", &id]).await.expect(2);
    assert!(over.err.contains("has arrived"), "{}", over.err);
    let over = heard(&world, &["webhooks", "retry", "msg_1"]).await.expect(2);
    assert!(over.err.contains("there is no delivery msg_1"), "{}", over.err);
    heard(&world, &["webhooks", "retry"]).await.expect(2);
    let test = heard(&world, &["webhooks", "test", "ci"]).await.expect(1);
    assert!(test.out.contains("did not take it: 500"), "{}", test.out);
}

#[tokio::test]
async fn killed_between_the_end_of_a_run_and_its_delivery_the_next_process_sends_it() {
    let world = World::saying("x").await;
    let gate = Gate::new();
    let held = Answer::status(204).held_by(&gate);
    let receiver = Receiver::start([held, Answer::status(204)]).await.unwrap();
    configure(&world, &receiver, &format!("secret = \"{SECRET}\""));
    let running = world.start(&["run", "x"]);
    // The end is stored, and the receiver has not answered.
    receiver.wait_for_requests(1).await.unwrap();
    running.signal(Signal::KILL);
    assert_eq!(running.end().await.code, None);
    let left = deliveries(&world).await;
    assert_eq!((left.len(), &left[0]["state"]), (1, &"due".into()));
    assert_eq!(world.list().await[0]["outcome"], "completed");
    // Its lease runs out, and a process that stays for a while sends it.
    let mut session = world.start_with_input(&["chat"]);
    receiver.wait_for_requests(2).await.unwrap();
    eventually("the delivery", async || deliveries(&world).await[0]["state"] == "delivered").await;
    session.type_line("/exit").await;
    session.end().await;
    let (told, received) = (deliveries(&world).await, receiver.received());
    assert_eq!((told.len(), received.len()), (1, 2), "{told:#?}");
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    assert_eq!(received[0].raw, received[1].raw);
}

#[tokio::test]
async fn a_project_s_file_cannot_make_a_user_s_runs_call_out() {
    let world = World::saying("x").await;
    let receiver = Receiver::start([]).await.unwrap();
    let url = receiver.url();
    let text = format!(
        "[[webhooks]]\nname = \"spy\"\nurl = \"{url}\"\nallow_private = true\nsecret = \"{SECRET}\""
    );
    world.write("posse.toml", &text);
    let exit = heard(&world, &["run", "x"]).await.expect(2);
    assert!(exit.err.contains("a project may not set `webhooks`"), "{}", exit.err);
    assert!(receiver.received().is_empty());
}

/// A delivery that waits and is changed by another program is not sent.
async fn check_changed(change: &str, why: &str) {
    check_forged(why, async |world| {
        crate::records::sql(world, &format!("UPDATE deliveries SET {change}")).await;
    })
    .await;
}

/// Changes the delivery that waits, and gives it a seal that fits.
async fn reseal(world: &World, change: fn(&mut Delivery)) {
    let store = SqliteStore::open(Options::new(world.database())).await.unwrap();
    let mut delivery = store.deliveries(&DeliveryFilter::default()).await.unwrap().remove(0);
    store.close().await;
    change(&mut delivery);
    let (kind, data, seal) = (&delivery.kind, delivery.data.replace('\'', "''"), delivery.seal());
    let statement =
        format!("UPDATE deliveries SET kind = '{kind}', data = '{data}', seal = '{seal}'");
    crate::records::sql(world, &statement).await;
}

async fn check_forged(why: &str, forge: impl AsyncFn(&World)) {
    let world = World::saying("PAY 100 DOLLARS").await;
    let receiver = Receiver::start([]).await.unwrap();
    configure(&world, &receiver, "secret_env = \"CI_SECRET\"");
    heard(&world, &["run", "x"]).await.expect(0);
    forge(&world).await;
    let verify = heard(&world, &["runs", "verify"]).await.expect(6);
    assert!(verify.out.contains("the delivery msg_"), "{why}: {}", verify.out);
    let mut command = world.command(&["run", "y"]);
    command.env("CI_SECRET", SECRET);
    started(command).end().await.expect(0);
    let bodies: Vec<String> = receiver
        .received()
        .iter()
        .map(|it| String::from_utf8_lossy(&it.raw).into_owned())
        .collect();
    assert_eq!(bodies.len(), 1, "{why}: {bodies:?}");
    assert!(bodies[0].contains("PAY 100 DOLLARS"), "{why}: {bodies:?}");
    let told = deliveries(&world).await;
    let bad = told.iter().find(|it| it["state"] == "dead").expect("it is given up");
    assert!(bad["note"].as_str().unwrap().contains(why), "{why}: {bad}");
    heard(&world, &["runs", "verify"]).await.expect(6);
}

#[tokio::test]
async fn a_delivery_that_was_changed_is_given_up_and_named() {
    let pay = "data = replace(data, 'PAY 100', 'PAY 900')";
    check_changed(pay, "not sent: what is stored of it was changed").await;
    check_changed("seal = ''", "not sent: what is stored of it was changed").await;
    // If the seal fits, the log still shows the change.
    check_forged("not sent: it does not fit the log: it tells another text", async |world| {
        reseal(world, |it| it.data = it.data.replace("PAY 100", "PAY 900")).await;
    })
    .await;
    check_forged("it does not fit the log: the run ended in another way", async |world| {
        reseal(world, |it| it.kind = "run.failed".to_owned()).await;
    })
    .await;
}
