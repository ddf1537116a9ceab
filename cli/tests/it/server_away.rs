//! The server of the database goes away for a while, or for good.

use crate::world::{Running, World, started};
use posse_testkit::postgres::{Database, Server};
use posse_testkit::{Gate, Proxy, Reply, Script, Traffic};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// The longest time until a command says that the server is away, or ends after a signal. The
/// machine of a test may be busy.
const SOON: Duration = Duration::from_secs(6);

/// A world, a database of its own, and a proxy in front of the server.
struct Scene {
    world: World,
    database: Database,
    proxy: Proxy,
}

impl Scene {
    async fn new(script: Script) -> Self {
        let (world, database) = (World::new(script).await, Server::shared().database());
        let proxy = Proxy::start(&database.folder().join(".s.PGSQL.5432")).await.unwrap();
        Scene { world, database, proxy }
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.world.command(arguments);
        let (address, name) = (self.proxy.address(), self.database.name());
        command.env("POSSE_DB", format!("postgres://posse@{address}/{name}?sslmode=disable"));
        started(command)
    }

    /// The server refuses all connections, and ends those that there are.
    fn shut(&self) {
        self.proxy.set(Traffic::Closed);
        self.proxy.cut();
    }
}

/// Waits until `running` says this, soon.
async fn says_soon(running: &Running, part: &str) {
    let begun = Instant::now();
    running.notes(part).await;
    assert!(begun.elapsed() < SOON, "{part}: after {:?}", begun.elapsed());
}

/// Sends `signal`, and returns what `running` said until it ended, soon.
async fn ended_soon(running: Running, signal: Signal) -> String {
    let begun = Instant::now();
    running.signal(signal);
    let exit = running.end().await;
    assert!(begun.elapsed() < SOON, "{}: after {:?}", exit.err, begun.elapsed());
    exit.expect(130).err
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_says_that_the_server_is_away_and_when_it_is_back() {
    let scene = Scene::new(Script::always(Reply::text("It is done."))).await;
    let worker = scene.start(&["worker"]);
    worker.notes("executes runs").await;
    scene.shut();
    says_soon(&worker, "cannot be reached since").await;
    scene.proxy.set(Traffic::Free);
    says_soon(&worker, "answers again, after").await;
    scene.start(&["run", "--background", "work"]).end().await.expect(0);
    scene.shut();
    // A worker that is asked to stop does what it is asked.
    let begun = Instant::now();
    worker.signal(Signal::TERM);
    let said = worker.end().await.expect(0).err;
    assert!(begun.elapsed() < SOON, "{said}: after {:?}", begun.elapsed());
    assert!(said.contains("stopped by SIGTERM, without the database server"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_for_the_server_and_goes_on_when_it_is_back() {
    let gate = Gate::new();
    let scene = Scene::new(Script::always(Reply::text("It is done.").held_by(&gate))).await;
    let run = scene.start(&["run", "work"]);
    scene.world.fake.wait_for_requests(1).await.unwrap();
    // Nobody hears anything, and no connection ends.
    scene.proxy.set(Traffic::Held);
    says_soon(&run, "the server does not answer. Posse tries again").await;
    scene.proxy.set(Traffic::Free);
    says_soon(&run, "answers again, after").await;
    gate.open();
    assert_eq!(run.end().await.expect(0).out.trim(), "It is done.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_a_run_whose_server_is_away() {
    for (traffic, signal) in [(Traffic::Closed, Signal::INT), (Traffic::Held, Signal::TERM)] {
        let gate = Gate::new();
        let scene = Scene::new(Script::always(Reply::text("It is done.").held_by(&gate))).await;
        let run = scene.start(&["run", "work"]);
        scene.world.fake.wait_for_requests(1).await.unwrap();
        scene.proxy.set(traffic);
        if traffic == Traffic::Closed {
            scene.proxy.cut();
        }
        ended_soon(run, signal).await;
        scene.proxy.set(Traffic::Free);
        let left = scene.start(&["runs", "list", "--json"]).end().await.expect(0).json();
        assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    }
}

/// The server takes connections, and answers nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_begins_while_the_server_is_silent_says_so() {
    let scene = Scene::new(Script::always(Reply::text("It is done."))).await;
    scene.proxy.set(Traffic::Held);
    let run = scene.start(&["run", "work"]);
    says_soon(&run, "cannot be reached since").await;
    ended_soon(run, Signal::INT).await;
    let quiet = scene.start(&["runs", "list", "--quiet"]);
    let said = quiet.end().await.expect(6).err;
    assert!(said.contains("does not answer") && !said.contains("since"), "{said}");
}
