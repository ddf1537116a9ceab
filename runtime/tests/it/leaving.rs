//! Runs that are left to others, and runtimes that serve many folders.

use crate::bench::{Bench, within};
use posse::protocol::AgentSpec;
use posse::{
    AgentCatalog, ByFolder, Error, LiveSkills, Recovery, RunSpec, Runtime, RuntimeConfig,
    StartResult, Status, Surroundings,
};
use posse_testkit::{Reply, Script};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn new(begun: StartResult) -> posse::RunId {
    match begun {
        StartResult::New(run) => run,
        StartResult::Found(run) => panic!("{run} was there before"),
    }
}

#[tokio::test]
async fn a_run_that_is_left_to_others_is_executed_by_whoever_goes_on_with_runs() {
    let bench = Bench::with(Script::always(Reply::text("done")), |config| {
        let mut config: RuntimeConfig = config;
        config.scheduling.recovery = Recovery::Wait;
        config
    })
    .await;
    let spec = RunSpec { key: Some("k".to_owned()), ..bench.spec("x") };
    let run = new(bench.runtime.enqueue(spec.clone()).await.unwrap());
    assert_eq!(bench.runtime.enqueue(spec).await.unwrap(), StartResult::Found(run));
    bench.runtime.look_again();
    let row = bench.runtime.find(&run.to_string()).await.unwrap();
    assert_eq!((row.status, bench.fake.count()), (Status::Queued, 0));

    let config = {
        let mut config: RuntimeConfig = bench.config.clone();
        config.scheduling.recovery = Recovery::Continue;
        config
    };
    let worker = Runtime::open(config).await.unwrap();
    assert!(within(bench.runtime.handle(run).outcome()).await.unwrap().is_completed());
    let next = new(bench.runtime.enqueue(bench.spec("y")).await.unwrap());
    worker.look_again();
    assert!(within(worker.handle(next).outcome()).await.unwrap().is_completed());
    assert_eq!(bench.fake.count(), 2);
    worker.shutdown().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_run_is_said_before_it_is_left_to_others() {
    let bench = Bench::new(Script::always(Reply::text("never"))).await;
    let unknown = RunSpec { agent: "nobody".parse().unwrap(), ..bench.spec("x") };
    assert!(matches!(bench.runtime.enqueue(unknown).await, Err(Error::UnknownAgent { .. })));
    let caller = posse::protocol::Caller::of_run(posse::RunId::new());
    let below = RunSpec { parent: Some(caller), ..bench.spec("x") };
    assert!(matches!(bench.runtime.enqueue(below).await, Err(Error::InvalidInput(_))));
    for key in ["", " \n"] {
        let blank = RunSpec { key: Some(key.to_owned()), ..bench.spec("x") };
        let refused = [
            bench.runtime.enqueue(blank.clone()).await.err(),
            bench.runtime.start(blank).await.err(),
        ];
        let is_told = |it: &Option<Error>| matches!(it, Some(Error::InvalidInput(why)) if why.contains("key"));
        assert!(refused.iter().all(is_told), "{refused:?}");
    }
    assert!(bench.runtime.list(&Default::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn each_run_has_the_agents_of_its_folder() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let find = move |folder: &Path| {
        counted.fetch_add(1, Ordering::Relaxed);
        let name = folder.file_name().unwrap().to_str().unwrap();
        let mut catalog = AgentCatalog::built_in();
        catalog.set(AgentSpec::new(format!("agent-of-{name}").parse().unwrap()));
        Surroundings {
            agents: catalog.into(),
            skills: LiveSkills::default(),
            guidance: Default::default(),
        }
    };
    let bench = Bench::with(Script::always(Reply::text("done")), |config| {
        let mut config: RuntimeConfig = config;
        config.definitions.by_folder = Some(ByFolder::new(find));
        config
    })
    .await;
    let other = bench.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let spec = |agent: &str, folder: &Path| RunSpec::new(agent.parse().unwrap(), "x", folder);
    for (agent, folder) in [("agent-of-work", &bench.work()), ("agent-of-other", &other)] {
        let run = bench.runtime.start(spec(agent, folder)).await.unwrap();
        assert!(within(run.outcome()).await.unwrap().is_completed());
    }
    let elsewhere = bench.runtime.start(spec("agent-of-other", &bench.work())).await;
    assert!(matches!(elsewhere, Err(Error::UnknownAgent { .. })));
    assert_eq!(asked.load(Ordering::Relaxed), 2, "each folder is looked at once");
}
