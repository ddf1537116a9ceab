//! Sources of tools: what they offer, who may call it, and that nothing is left of their processes.

use crate::bench::{Bench, eventually, within};
use crate::delegation::{children, main_agent, task};
use line_source::LineSource;
use posse::launch::{Launcher, allowed_environment};
use posse::protocol::{CancelScope, Event, SourceOffer, ToolSpec};
use posse::{
    AgentRights, AgentSpec, OpenSource, Program, RunHandle, RunId, RunSpec, Runtime, RuntimeConfig,
    Seq, SourceContext, SourceError, Status, ToolSource,
};
use posse_testkit::{Conversation, Reply, Rule, Script, When};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[path = "../../examples/line_source/mod.rs"]
mod line_source;

/// Answers in a line of JSON. `do` runs a line of shell.
const SERVER: &str = r#"
answer() { printf '{"id":%s,"text":"%s"}\n' "$id" "$1"; }
tool() { printf '{"name":"%s","description":"%s","schema":{"type":"object"},"effect":"%s","idempotent":false}' "$@"; }
while IFS= read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    command=${line##*\"line\":\"}; command=${command%%\"*}
    case $line in
        *'"ask":"tools"'*)
            printf '{"id":%s,"tools":[%s,%s,%s]}\n' "$id" "$(tool do 'Does it.' execute)" \
                "$(tool look "${ABOUT:-Looks.}" read)" "$(tool server_login 'Logs in.' read)" ;;
        *'"tool":"look"'*) answer "process $$" ;;
        *crash*) echo 'I am lost' >&2; exit 3 ;;
        *babble*) tr '\0' x < /dev/zero ;;
        *shout*) head -c 20000000 /dev/zero | tr '\0' x >&2; answer quiet ;;
        *) answer "$(eval "$command" 2>&1 | tr -d '"\\' | tr '\n' ' ')" ;;
    esac
done
"#;

/// The program, and what is peculiar about it.
struct Server {
    inner: LineSource,
    opened: Arc<AtomicUsize>,
    required: bool,
    patience: Duration,
    kept_open: Duration,
}

#[async_trait::async_trait]
impl ToolSource for Server {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn is_required(&self) -> bool {
        self.required
    }

    fn patience(&self) -> Duration {
        self.patience
    }

    fn kept_open(&self) -> Duration {
        self.kept_open
    }

    async fn open(&self, context: &SourceContext) -> Result<Arc<dyn OpenSource>, SourceError> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.inner.open(context).await
    }
}

/// A word that no other process has in its arguments.
fn marker() -> String {
    let folder = tempfile::tempdir().unwrap();
    let random = folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
    format!("posse-marker-{}-{random}", std::process::id())
}

fn server(marker: &str) -> Server {
    let args = ["-c", SERVER, "sh", marker].map(Into::into).to_vec();
    let program = Program { program: "sh".into(), args, ..Program::default() };
    Server {
        inner: LineSource { name: "sh".to_owned(), program },
        opened: Arc::default(),
        required: false,
        patience: posse_testkit::DEADLINE,
        kept_open: Duration::from_secs(600),
    }
}

/// The processes that are alive and have `marker` in their arguments.
#[allow(clippy::disallowed_methods)]
fn processes_with(marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        let Ok(arguments) = std::fs::read(entry.path().join("cmdline")) else { continue };
        if id != std::process::id().to_string()
            && String::from_utf8_lossy(&arguments).contains(marker)
        {
            found.push(id);
        }
    }
    found
}

async fn gone(marker: &str) {
    eventually(async || processes_with(marker).is_empty()).await;
}

/// Starts processes through an example, whose `main` begins as that of every host does.
fn launcher() -> Launcher {
    let test = std::env::current_exe().unwrap();
    let host = test.parent().unwrap().parent().unwrap().join("examples/tool_source");
    assert!(host.exists(), "run `cargo build -p posse --example tool_source` first");
    Launcher::through(&host).with_environment(allowed_environment(std::env::vars_os(), &[]))
}

/// With `source`, whose tools nobody is asked about.
fn with(source: impl ToolSource + 'static) -> impl FnOnce(RuntimeConfig) -> RuntimeConfig {
    move |mut config| {
        config.tool_sources = vec![Arc::new(source)];
        config.launcher = Some(launcher());
        config.permissions.rules.allow.push("mcp__sh".to_owned());
        config
    }
}

/// Calls `do` with each of `lines`, one after the other, and ends.
fn doing<const N: usize>(lines: [&str; N]) -> Script {
    let calls = lines.map(|line| Reply::tool_call("mcp__sh__do", json!({"line": line})));
    Script::turns(calls.into_iter().chain([Reply::text("done")]))
}

fn look() -> Reply {
    Reply::tool_call("mcp__sh__look", json!({}))
}

async fn completed(run: &RunHandle) {
    let outcome = within(run.outcome()).await.unwrap();
    assert!(outcome.is_completed(), "{outcome}");
}

/// The results of the calls of `run`, and whether each is an error.
async fn results(bench: &Bench, run: RunId) -> Vec<(String, bool)> {
    let log = bench.log(run).await;
    let results = log.iter().filter_map(|record| match &record.event {
        Event::ToolFinished(it) => Some((it.output.joined_text(), it.output.is_error)),
        _ => None,
    });
    results.collect()
}

/// What was stored of the sources when `run` was prepared.
async fn offers(bench: &Bench, run: RunId) -> Vec<SourceOffer> {
    match &bench.log(run).await[0].event {
        Event::RunStarted(started) => started.grant.sources.clone(),
        other => panic!("a log begins with {}", other.kind()),
    }
}

fn ours(tools: Vec<String>) -> Vec<String> {
    tools.into_iter().filter(|name| name.starts_with("mcp__")).collect()
}

const ALL: [&str; 3] = ["mcp__sh__do", "mcp__sh__look", "mcp__sh__server_login"];

#[tokio::test]
async fn a_source_offers_its_tools_to_a_run_which_stores_them_and_calls_them() {
    let marker = marker();
    let source = server(&marker);
    let opened = source.opened.clone();
    let bench = Bench::with(doing(["echo $((6 * 7))", "pwd"]), with(source)).await;
    let run = bench.start("go").await;
    completed(&run).await;
    let work = bench.work().canonicalize().unwrap();
    let expected = [("42 ".to_owned(), false), (format!("{} ", work.display()), false)];
    assert_eq!(results(&bench, run.id()).await, expected);
    assert_eq!(ours(bench.fake.requests()[0].tools()), ALL);
    let stored = offers(&bench, run.id()).await;
    assert_eq!((stored.len(), stored[0].source.as_str()), (1, "sh"));
    let specs: Vec<&ToolSpec> = stored[0].tools.iter().collect();
    assert_eq!(specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ALL);
    assert_eq!(specs[0].description, "Does it.");
    // Once to list its tools, and once for both calls.
    assert_eq!(opened.load(Ordering::SeqCst), 2);
    gone(&marker).await;
}

/// A session that has called `look` once, and then waits.
async fn waiting(bench: &Bench) -> RunHandle {
    let spec = RunSpec { session: true, ..bench.spec("look") };
    let run = bench.runtime.start(spec).await.unwrap();
    at_rest(bench, &run).await;
    run
}

async fn at_rest(bench: &Bench, run: &RunHandle) {
    eventually(async || {
        let row = bench.runtime.find(&run.id().to_string()).await.unwrap();
        row.status == Status::Waiting && bench.runtime.executing() == 0
    })
    .await;
}

fn turns() -> Script {
    Script::turns([look(), Reply::text("one"), look(), Reply::text("two")])
}

#[tokio::test]
async fn a_resumed_run_sees_what_it_was_offered_and_is_told_what_has_changed() {
    let change: [fn(&mut RuntimeConfig, Server); 3] = [
        |config, mut source| {
            let about = ("ABOUT".into(), "Looks further.".into());
            source.inner.program.variables.push(about);
            config.tool_sources = vec![Arc::new(source)];
        },
        |config, mut source| {
            source.inner.program.args[1] = SERVER.replace("tool look", "tool view").into();
            config.tool_sources = vec![Arc::new(source)];
        },
        |config, _| config.tool_sources.clear(),
    ];
    let told = ["has changed it since this run began", "does not offer it any more", "has no tool"];
    for (change, told) in change.into_iter().zip(told) {
        let marker = marker();
        let mut bench = Bench::with(turns(), with(server(&marker))).await;
        let run = waiting(&bench).await;
        bench.runtime.shutdown().await;
        gone(&marker).await;
        change(&mut bench.config, server(&marker));
        bench.reopen().await;
        let run = bench.runtime.handle(run.id());
        bench.runtime.send(run.id(), "again").await.unwrap();
        let said =
            |event: &Event| matches!(event, Event::ModelReplied(it) if it.message.text() == "two");
        bench.until(&run, said).await;
        let requests = bench.fake.requests();
        assert_eq!(requests[0].body["tools"], requests[2].body["tools"]);
        let (text, is_error) = results(&bench, run.id()).await.pop().unwrap();
        assert!(is_error && text.contains(told) && text.contains("`sh`"), "{text}");
        assert!(text.contains("tell the user"), "{text}");
        bench.runtime.shutdown().await;
        gone(&marker).await;
    }
}

#[tokio::test]
async fn a_source_stays_open_while_its_run_waits_for_a_while_and_no_longer() {
    let marker = marker();
    let bench = Bench::with(turns(), with(server(&marker))).await;
    let run = waiting(&bench).await;
    assert!(!processes_with(&marker).is_empty());
    bench.runtime.send(run.id(), "again").await.unwrap();
    bench.until(&run, |e| matches!(e, Event::ModelReplied(it) if it.message.text() == "two")).await;
    let results = results(&bench, run.id()).await;
    assert_eq!(results[0], results[1], "the same process answered");
    bench.runtime.shutdown().await;
    gone(&marker).await;

    let source = Server { kept_open: Duration::ZERO, ..server(&marker) };
    let opened = source.opened.clone();
    let bench = Bench::with(turns(), with(source)).await;
    let run = waiting(&bench).await;
    gone(&marker).await;
    bench.runtime.send(run.id(), "again").await.unwrap();
    bench.until(&run, |e| matches!(e, Event::ModelReplied(it) if it.message.text() == "two")).await;
    assert_eq!(opened.load(Ordering::SeqCst), 3);
    gone(&marker).await;
}

#[tokio::test]
async fn a_process_that_crashes_is_told_of_and_started_anew_by_the_next_call() {
    let marker = marker();
    let source = server(&marker);
    let opened = source.opened.clone();
    let bench = Bench::with(doing(["echo one", "crash", "babble", "echo two"]), with(source)).await;
    let run = bench.start("go").await;
    completed(&run).await;
    let results = results(&bench, run.id()).await;
    assert_eq!(
        (&results[0], &results[3]),
        (&("one ".to_owned(), false), &("two ".to_owned(), false))
    );
    let (crashed, babbled) = (&results[1], &results[2]);
    assert!(crashed.1 && crashed.0.contains("exit code 3: I am lost"), "{}", crashed.0);
    assert!(crashed.0.contains("`sh`") && crashed.0.contains("not known"), "{}", crashed.0);
    assert!(babbled.1 && babbled.0.contains("more than 100000 bytes"), "{}", babbled.0);
    assert_eq!(opened.load(Ordering::SeqCst), 4);
    gone(&marker).await;
}

#[tokio::test]
async fn a_flood_of_errors_holds_nothing_up() {
    let marker = marker();
    let bench = Bench::with(doing(["shout"]), with(server(&marker))).await;
    let run = bench.start("go").await;
    completed(&run).await;
    assert_eq!(results(&bench, run.id()).await, [("quiet".to_owned(), false)]);
    gone(&marker).await;
}

#[tokio::test]
async fn its_process_reaches_no_further_than_a_command_of_the_run() {
    let marker = marker();
    let tries = "echo in > inside; echo out > ../outside; cat ../secret; ls ..";
    let bench = Bench::with(doing([tries]), with(server(&marker))).await;
    std::fs::write(bench.folder.path().join("secret"), "the secret").unwrap();
    let run = bench.start("go").await;
    completed(&run).await;
    let told = results(&bench, run.id()).await;
    assert!(!told[0].1 && !told[0].0.contains("the secret"), "{told:?}");
    assert_eq!(std::fs::read_to_string(bench.work().join("inside")).unwrap(), "in\n");
    assert!(!bench.folder.path().join("outside").exists());
    gone(&marker).await;

    // Of an agent that writes nothing, neither does the source.
    let reader = AgentSpec {
        rights: AgentRights::to_call(["Read", "mcp__sh"]),
        ..AgentSpec::new("reader".parse().unwrap())
    };
    let bench = Bench::with(doing(["echo in > inside"]), with(server(&marker))).await;
    bench.config.definitions.agents.set(reader);
    let spec = RunSpec { agent: "reader".parse().unwrap(), ..bench.spec("go") };
    completed(&bench.runtime.start(spec).await.unwrap()).await;
    assert_eq!(ours(bench.fake.requests()[0].tools()), ALL);
    assert!(!bench.work().join("inside").exists());
    gone(&marker).await;
}

#[tokio::test]
async fn to_list_its_tools_it_only_reads() {
    let marker = marker();
    let mut source = server(&marker);
    source.inner.program.args[1] = format!("echo > listed\n{SERVER}").into();
    let script = Script::turns([Reply::text("done")]);
    let bench = Bench::with(script, with(source)).await;
    completed(&bench.start("go").await).await;
    assert_eq!(ours(bench.fake.requests()[0].tools()), ALL);
    gone(&marker).await;
    assert!(!bench.work().join("listed").exists());
}

#[tokio::test]
async fn cancelling_a_run_kills_the_process_in_the_middle_of_a_call() {
    let marker = marker();
    let hangs = "echo > began; sleep 1000";
    let bench = Bench::with(doing([hangs]), with(server(&marker))).await;
    let run = bench.start("go").await;
    eventually(async || bench.work().join("began").exists()).await;
    assert!(!processes_with(&marker).is_empty());
    bench.runtime.cancel(run.id(), "a test", CancelScope::Run).await.unwrap();
    assert!(!within(run.outcome()).await.unwrap().is_completed());
    gone(&marker).await;
}

/// Never answers.
struct Silent(bool);

#[async_trait::async_trait]
impl ToolSource for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn is_required(&self) -> bool {
        self.0
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(20)
    }

    async fn open(&self, _: &SourceContext) -> Result<Arc<dyn OpenSource>, SourceError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn without_a_source_that_does_not_answer_a_run_starts_and_is_told() {
    let bench = Bench::with(Script::turns([Reply::text("done")]), with(Silent(false))).await;
    let run = bench.start("go").await;
    completed(&run).await;
    let system = bench.fake.requests()[0].system();
    assert!(system.contains("The tools of `silent` are missing"), "{system}");
    let stored = offers(&bench, run.id()).await;
    let why = stored[0].missing.as_deref().unwrap();
    assert_eq!(why, "it did not list its tools within 0.02 s");
}

#[tokio::test]
async fn without_a_source_that_is_required_no_run_starts() {
    let bench = Bench::with(Script::turns([Reply::text("never")]), with(Silent(true))).await;
    let error = bench.runtime.start(bench.spec("go")).await.unwrap_err().to_string();
    assert!(error.contains("cannot start without its tool source `silent`"), "{error}");
    assert_eq!(bench.fake.requests().len(), 0);

    let marker = marker();
    let mut broken = Server { required: true, ..server(&marker) };
    broken.inner.program.program = "no-such-program".into();
    let bench = Bench::with(Script::turns([Reply::text("never")]), with(broken)).await;
    let error = bench.runtime.start(bench.spec("go")).await.unwrap_err().to_string();
    assert!(error.contains("cannot start no-such-program"), "{error}");
    gone(&marker).await;
}

#[tokio::test]
async fn names_that_clash_are_refused_and_both_are_named() {
    let marker = marker();
    let own = crate::tools::echo("mcp__sh__do");
    let adjust = |config: RuntimeConfig| {
        let mut config = with(server(&marker))(config);
        config.tools.push(own);
        config
    };
    let bench = Bench::with(Script::turns([Reply::text("never")]), adjust).await;
    let error = bench.runtime.start(bench.spec("go")).await.unwrap_err().to_string();
    let expected = "the tool `mcp__sh__do` of the tool source `sh` has the name of `mcp__sh__do`";
    assert!(error.starts_with(expected), "{error}");

    let mut config = bench.config.clone();
    config.storage.database = bench.folder.path().join("other.db");
    for name in ["sh", "two__words", "", "a b", "ends_"] {
        let mut odd = server(&marker);
        odd.inner.name = name.to_owned();
        config.tool_sources = vec![Arc::new(server(&marker)), Arc::new(odd)];
        let error = Runtime::open(config.clone()).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("the tool source `{name}` ")), "{error}");
    }
    gone(&marker).await;
}

#[tokio::test]
async fn a_rule_denies_its_tools_like_any_other() {
    let marker = marker();
    let adjust = |config: RuntimeConfig| {
        let mut config = with(server(&marker))(config);
        config.permissions.rules.deny.push("mcp__sh__do".to_owned());
        config
    };
    let bench = Bench::with(doing(["echo > made"]), adjust).await;
    let run = bench.start("go").await;
    completed(&run).await;
    let told = results(&bench, run.id()).await;
    assert!(told[0].1 && told[0].0.contains("mcp__sh__do"), "{told:?}");
    assert!(!bench.work().join("made").exists());
    gone(&marker).await;

    // What nobody allows, nobody may do.
    let adjust = |config: RuntimeConfig| {
        let mut config = with(server(&marker))(config);
        config.permissions.rules.allow.clear();
        config
    };
    let bench = Bench::with(doing(["echo > made"]), adjust).await;
    let run = bench.start("go").await;
    completed(&run).await;
    assert!(results(&bench, run.id()).await[0].1);
    assert!(!bench.work().join("made").exists());
    gone(&marker).await;
}

#[tokio::test]
async fn lists_of_agents_name_its_tools_and_children_get_no_more() {
    let marker = marker();
    let source = server(&marker);
    let opened = source.opened.clone();
    let script = Script::new()
        .conversation(main_agent([task("user", "use it"), task("reader", "read it")]))
        .conversation(
            Conversation::when(When::any().first_user_contains("use it"))
                .reply(look())
                .reply(Reply::text("used")),
        )
        .rule(Rule::when(When::any().first_user_contains("read it")).reply(Reply::text("read")));
    let bench = Bench::with(script, with(source)).await;
    // As in a file: names of tools that a source may offer are kept.
    let folder = bench.folder.path().join("agents");
    std::fs::create_dir(&folder).unwrap();
    let agent = |name: &str, tools: &[&str]| {
        let description = format!("{name} things");
        let spec = AgentSpec {
            rights: AgentRights::to_call(tools.iter().copied()),
            description,
            ..AgentSpec::new(name.parse().unwrap())
        };
        bench.config.definitions.agents.set(spec);
    };
    agent("user", &["mcp__sh__*", "mcp__sh__gone"]);
    agent("reader", &["Read"]);
    let run = bench.start("lead the way").await;
    completed(&run).await;
    let tools_of = |prompt: &str| {
        let when = When::any().first_user_contains(prompt);
        ours(bench.fake.requests_where(&when)[0].tools())
    };
    assert_eq!(tools_of("lead the way"), ALL);
    // No child logs in.
    assert_eq!(tools_of("use it"), ALL[..2]);
    assert_eq!(tools_of("read it"), Vec::<String>::new());
    // The root was asked, and the child that called a tool.
    assert_eq!(opened.load(Ordering::SeqCst), 2);
    for child in children(&bench, run.id()).await {
        let stored = offers(&bench, child.id).await;
        assert_eq!(stored[0].tools, offers(&bench, run.id()).await[0].tools[..2]);
    }
    gone(&marker).await;
}

/// Where the host that is killed keeps its runs, and works.
const PLACE: &str = "POSSE_TEST_SOURCE_PLACE";
const MODEL: &str = "POSSE_TEST_SOURCE_MODEL";
const MARKER: &str = "POSSE_TEST_SOURCE_MARKER";

fn config_in(place: &Path, model: &str, marker: &str) -> RuntimeConfig {
    let keys =
        posse::Keys::default().with("ANTHROPIC_API_KEY", "test").with("ANTHROPIC_BASE_URL", model);
    let mut config = with(server(marker))(RuntimeConfig::new(place.join("runs.db"), keys));
    config.models.model = Some("anthropic/claude-sonnet-4-5".into());
    config
}

#[tokio::test]
#[allow(clippy::disallowed_methods, clippy::print_stdout)]
#[ignore = "the process that another test kills"]
async fn host_that_is_killed() {
    let place = PathBuf::from(std::env::var_os(PLACE).unwrap());
    let (model, marker) = (std::env::var(MODEL).unwrap(), std::env::var(MARKER).unwrap());
    let runtime = Runtime::open(config_in(&place, &model, &marker)).await.unwrap();
    let spec = RunSpec::new("general-purpose".parse().unwrap(), "go", place.join("work"));
    let run = runtime.start(spec).await.unwrap();
    println!("run {}", run.id());
    run.outcome().await.unwrap();
}

#[tokio::test]
#[allow(clippy::disallowed_methods)]
async fn killing_the_host_leaves_no_process_and_the_next_one_goes_on() {
    let marker = marker();
    let script = doing(["echo once >> ledger; echo > began; sleep 1000", "echo twice >> ledger"]);
    let fake = posse_testkit::FakeModel::start(script).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let work = place.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "sources::host_that_is_killed", "--nocapture"])
        .env(PLACE, place.path())
        .env(MODEL, fake.url())
        .env(MARKER, &marker)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let run =
        lines.find_map(|line| line.unwrap().rsplit_once("run 0").map(|it| format!("0{}", it.1)));
    eventually(async || work.join("began").exists()).await;
    assert!(!processes_with(&marker).is_empty());
    host.kill().unwrap();
    host.wait().unwrap();
    gone(&marker).await;

    let runtime = Runtime::open(config_in(place.path(), &fake.url(), &marker)).await.unwrap();
    let run = runtime.handle(run.unwrap().trim().parse().unwrap());
    completed(&run).await;
    assert_eq!(std::fs::read_to_string(work.join("ledger")).unwrap(), "once\ntwice\n");
    let log = runtime.read(run.id(), Seq::ZERO, usize::MAX).await.unwrap();
    let told = log.iter().find_map(|record| match &record.event {
        Event::ToolFinished(it) => Some(it.output.joined_text()),
        _ => None,
    });
    assert!(told.unwrap().contains("interrupted"));
    let requests = fake.requests();
    assert_eq!(requests[0].body["tools"], requests.last().unwrap().body["tools"]);
    runtime.shutdown().await;
    gone(&marker).await;
}
