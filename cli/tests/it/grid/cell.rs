//! One cell: a run with one fault, and what it left behind.

use super::behaviour::Behaviour;
use super::verdict;
use crate::world::{Exit, World, started};
use posse_testkit::{
    Captured, Conversation, Expectation, Failure, Fault, Reply, Rule, Script, When, Wire,
};
use serde_json::Value;

/// The model of all cells, as the binary names it.
pub const MODEL: &str = "grid/model-1";

/// How often a call is made again.
pub const RETRIES: usize = 2;

/// How long a reply may stop coming: short where that is the fault, and else long enough for a
/// machine that is busy with something else.
const SHORT_STALL_MS: u64 = 1000;
const LONG_STALL_MS: u64 = 20_000;

const KEY: &str = "sk-grid-0123456789abcdef";

/// Which requests a fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The first one.
    First,
    /// The one whose reply ends the run, the first time it is made.
    Last,
    /// Every request of the first turn.
    Every,
}

#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub wire: Wire,
    pub fault: &'static Fault,
    pub behaviour: Behaviour,
    pub hit: Hit,
}

/// What a run left behind.
pub struct Remains {
    pub exit: Exit,
    /// The events of its log.
    pub events: Vec<Value>,
    pub ledger: Vec<String>,
    pub requests: Vec<Captured>,
    pub strays: Vec<Captured>,
    /// Connections that the fake model accepted.
    pub connections: usize,
}

impl Cell {
    pub fn name(&self) -> String {
        let Cell { fault, behaviour, hit, wire } = self;
        format!("{} × {} × {behaviour:?} × {hit:?}", wire.name(), fault.name())
    }

    pub fn expectation(&self) -> Expectation {
        self.fault.expectation(self.wire)
    }

    /// Whether the fault is that nothing comes.
    pub fn is_slow(&self) -> bool {
        self.expectation().failures().contains(&Failure::Stalled)
    }

    fn script(&self) -> Script {
        let mut replies = self.behaviour.replies();
        let last = replies.len() - 1;
        let spoilt = |turn: usize| replies[turn].clone().fault(self.fault.name());
        let rule = |when: When, reply: Reply| Rule::when(when).reply(reply);
        let script = match self.hit {
            Hit::First => Script::new().rule(rule(When::any(), spoilt(0)).once()),
            Hit::Last => Script::new().rule(rule(When::any().turn(last), spoilt(last)).once()),
            Hit::Every if self.fault.is_unread() => {
                return Script::new().rule(rule(When::any(), spoilt(0)));
            }
            Hit::Every => {
                replies[0] = spoilt(0);
                Script::new()
            }
        };
        let conversation = Conversation::when(When::any());
        script.conversation(replies.into_iter().fold(conversation, Conversation::reply))
    }

    fn settings(&self, address: &str) -> String {
        // Reasoning is asked for where it is not given otherwise.
        let (path, wire, dialect) = match self.wire {
            Wire::Anthropic => ("", "anthropic", ""),
            Wire::OpenAiChat => ("/v1", "openai-chat", ""),
            Wire::OpenAiResponses => ("/v1", "openai-responses", "effort = \"reasoning\""),
            Wire::Gemini => ("/v1beta", "gemini", ""),
        };
        let stall_ms = if self.is_slow() { SHORT_STALL_MS } else { LONG_STALL_MS };
        format!(
            "durability = \"process\"\n\
             [patience]\n\
             retries = {RETRIES}\n\
             first_wait_ms = 5\n\
             longest_wait_ms = 20\n\
             total_wait_s = 5\n\
             stall_ms = {stall_ms}\n\
             [vendors.grid]\n\
             base_url = \"{address}{path}\"\n\
             wire = \"{wire}\"\n\
             key_variable = \"GRID_API_KEY\"\n\
             dialect = {{ {dialect} }}\n"
        )
    }

    /// Runs it, and says what is wrong with what is left.
    pub async fn play(&self) -> Result<(), String> {
        let world = World::new(self.script()).await;
        let settings = world.home().join("config/posse");
        std::fs::create_dir_all(&settings).unwrap();
        std::fs::write(settings.join("config.toml"), self.settings(&world.fake.url())).unwrap();
        let (exit, log) = self.run(&world).await;
        if exit.out.contains(KEY) || exit.err.contains(KEY) {
            return Err(format!("the key is told: {exit:?}"));
        }
        let remains = Remains {
            events: events(&log)?,
            ledger: world.read("ledger").lines().map(str::to_owned).collect(),
            requests: world.fake.requests(),
            strays: world.fake.strays(),
            connections: world.fake.connections(),
            exit,
        };
        verdict::judge(self, &remains)
    }

    /// How the run ended, and its log.
    async fn run(&self, world: &World) -> (Exit, String) {
        // A text without end would be printed, piece by piece, until it is given up.
        let endless = self.fault.name() == "endless-text";
        let format = if endless { "--json" } else { "--stream-json" };
        let mut command = world.command(&["run", format, "--model", MODEL, "note it"]);
        command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
        command.env("GRID_API_KEY", KEY);
        let exit = started(command).end().await;
        let log = match endless {
            true => {
                let run = exit.json()["run"].as_str().unwrap_or_default().to_owned();
                world.run(&["runs", "--json", "log", &run]).await.expect(0).out
            }
            false => exit.out.clone(),
        };
        (exit, log)
    }
}

/// The events among the lines of a run; deltas, which can be many, are not looked at.
fn events(out: &str) -> Result<Vec<Value>, String> {
    let lines = out.lines().filter(|line| !line.starts_with("{\"delta\""));
    let events = lines.map(|line| {
        let record: Value =
            serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        Ok(record["event"].clone())
    });
    events.collect()
}
