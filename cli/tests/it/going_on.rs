//! Which runs can go on: random trees, what a model says of them, and what the commands do.
//!
//! A tree is made by a runtime in this process, which then leaves it in the middle. Some runs have
//! ended by then, some were cut off, others wait: for those that they called, for those in the
//! background that will be announced, for a person's answer, or for the next line of a session.

use crate::world::{World, eventually};
use posse::protocol::{Event, Extra, Paused};
use posse::store::{Append, Filter, Logs, Options, SqliteStore, Store};
use posse::{Keys, RunId, RunSpec, Runtime, RuntimeConfig};
use posse_testkit::{Conversation, Gate, Reply, Rule, Script, When};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Trees that commands disagreed on, or waited for in vain, before they had one answer.
const FOUND: [u64; 5] = [20, 58, 117, 136, 203];

/// The trees that are tried. A failure names its own.
fn seeds() -> impl Iterator<Item = u64> {
    (0..14).chain(FOUND)
}
/// Runs of a tree, at most.
const RUNS: usize = 9;

/// How a run was started.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Link {
    /// A call waits for its end.
    Task,
    /// Its end is announced like this.
    Background(&'static str),
}

const LINKS: [Link; 6] = [
    Link::Task,
    Link::Task,
    Link::Background("steer"),
    Link::Background("followup"),
    Link::Background("collect"),
    Link::Background("silent"),
];

/// What a run does once those have ended that it called.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    /// It says something, and is done, or its turn is over.
    Say,
    /// The same, and its process dies meanwhile.
    BeCutOff,
    /// It asks a person.
    Ask,
}

/// Who holds a run up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    Paused,
    Interrupted,
}

#[derive(Debug)]
struct Node {
    parent: Option<(usize, Link)>,
    deed: Deed,
    held: Option<Held>,
}

/// A tree; the root stands first, and each after its parent.
#[derive(Debug)]
struct Tree {
    nodes: Vec<Node>,
    /// The root is a session.
    session: bool,
    /// Who was cut off is still somebody's who is dead; else nobody's.
    crashed: bool,
}

/// Numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

impl Tree {
    fn grown_from(seed: u64) -> Tree {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of neighbours are alike.
        for _ in 0..20 {
            dice.below(2);
        }
        let mut nodes: Vec<Node> = Vec::new();
        for index in 0..2 + dice.below(RUNS - 1) {
            let parent = (index > 0).then(|| {
                let shallow = (0..index).filter(|at| depth(&nodes, *at) < 3).collect::<Vec<_>>();
                (shallow[dice.below(shallow.len())], LINKS[dice.below(LINKS.len())])
            });
            let deed = [Deed::Say, Deed::Say, Deed::BeCutOff, Deed::BeCutOff, Deed::Ask];
            let held = [None, None, None, None, Some(Held::Paused), Some(Held::Interrupted)];
            let (deed, held) = (deed[dice.below(5)], held[dice.below(6)]);
            nodes.push(Node { parent, deed, held });
        }
        let mut tree = Tree { nodes, session: dice.below(3) == 0, crashed: dice.below(2) == 0 };
        // Nobody holds up what has ended.
        for index in 0..tree.nodes.len() {
            if tree.had_ended(index) {
                tree.nodes[index].held = None;
            }
        }
        tree
    }

    fn children(&self, of: usize) -> impl Iterator<Item = (usize, Link)> {
        let child = move |(index, node): (usize, &Node)| match node.parent {
            Some((parent, link)) if parent == of => Some((index, link)),
            _ => None,
        };
        self.nodes.iter().enumerate().filter_map(child)
    }

    /// A run and all below it.
    fn below(&self, of: usize) -> BTreeSet<usize> {
        let mut all = BTreeSet::from([of]);
        for (index, node) in self.nodes.iter().enumerate() {
            if node.parent.is_some_and(|(parent, _)| all.contains(&parent)) {
                all.insert(index);
            }
        }
        all
    }

    /// Whether all have `ended` that a run called, and, if it is asked, that it will be told of.
    fn is_told(&self, of: usize, announced: bool, ended: &dyn Fn(usize) -> bool) -> bool {
        self.children(of).all(|(child, link)| match link {
            Link::Background("silent") => true,
            Link::Background(_) => !announced || ended(child),
            Link::Task => ended(child),
        })
    }

    fn is_session(&self, index: usize) -> bool {
        index == 0 && self.session
    }

    /// Whether it had ended when the tree was left.
    fn had_ended(&self, index: usize) -> bool {
        self.nodes[index].deed == Deed::Say
            && !self.is_session(index)
            && self.is_told(index, true, &|child| self.had_ended(child))
    }

    /// Whether it had got as far as what it does by itself.
    fn had_come_to_its_deed(&self, index: usize) -> bool {
        self.is_told(index, false, &|child| self.had_ended(child))
    }

    /// Whether it was cut off.
    fn was_cut_off(&self, index: usize) -> bool {
        self.nodes[index].deed == Deed::BeCutOff && self.had_come_to_its_deed(index)
    }

    fn asks(&self, index: usize) -> bool {
        self.nodes[index].deed == Deed::Ask && self.had_come_to_its_deed(index)
    }

    /// Whether somebody only has to execute it.
    fn can_go_on(&self, index: usize) -> bool {
        self.was_cut_off(index) && self.nodes[index].held.is_none()
    }

    /// Whether it ends when all go on that can, and those of `freed` whom somebody held up.
    fn ends(&self, index: usize, freed: &BTreeSet<usize>) -> bool {
        let node = &self.nodes[index];
        let is_free = node.held.is_none() || freed.contains(&index);
        self.had_ended(index)
            || is_free
                && node.deed != Deed::Ask
                && !self.is_session(index)
                && self.is_told(index, true, &|child| self.ends(child, freed))
    }

    /// Where a list says that it stands.
    fn standing(&self, index: usize) -> &'static str {
        let cut_off = if self.crashed { "crashed" } else { "queued" };
        match self.nodes[index].held {
            Some(Held::Paused) => "paused",
            Some(Held::Interrupted) => "interrupted",
            None if self.had_ended(index) => "finished",
            None if self.below(index).into_iter().any(|below| self.can_go_on(below)) => cut_off,
            None => "waiting",
        }
    }

    /// What a list of what is unfinished shows.
    fn listed(&self) -> BTreeMap<usize, &'static str> {
        let all = 0..self.nodes.len();
        let shown = all.filter(|index| !self.had_ended(*index));
        let shown = shown.filter(|index| *index == 0 || self.had_ended(0));
        shown.map(|index| (index, self.standing(index))).collect()
    }

    /// What comes of resuming one run: nothing to do, or who has ended then.
    fn resumed(&self, run: usize) -> Option<BTreeSet<usize>> {
        let below = self.below(run);
        let is_held = |index: &usize| self.nodes[*index].held.is_some();
        let has_work = |index: &usize| self.can_go_on(*index) || self.asks(*index);
        if !below.iter().any(|index| is_held(index) || has_work(index)) {
            return None;
        }
        let all = 0..self.nodes.len();
        let ended = all.filter(|index| match below.contains(index) {
            true => self.ends(*index, &below),
            false => self.had_ended(*index),
        });
        Some(ended.collect())
    }

    fn script(&self, gate: &Gate) -> Script {
        let mut script = Script::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let mine = || When::any().first_user_contains(&name(index));
            let mut calls = Reply::empty();
            let mut turn = 0;
            for (child, link) in self.children(index) {
                let (task, label) = (format!("{} work", name(child)), name(child));
                calls = match link {
                    Link::Task => calls.and_tool_call(
                        "Task",
                        json!({"description": label, "prompt": task, "subagent_type": "general-purpose"}),
                    ),
                    Link::Background(announce) => calls.and_tool_call(
                        "spawn_subagent",
                        json!({"task": task, "label": label, "agentId": "general-purpose",
                            "announce": announce}),
                    ),
                };
                turn = 1;
            }
            if turn > 0 {
                script = script.rule(Rule::when(mine().turn(0)).reply(calls));
            }
            let write = json!({"file_path": format!("{index}.txt"), "content": "x"});
            let deed = match node.deed {
                Deed::Say => Reply::text("done"),
                Deed::BeCutOff => Reply::text("done").held_by(gate),
                Deed::Ask => Reply::tool_call("Write", write),
            };
            script = script.rule(Rule::when(mine().turn(turn)).reply(deed));
            script = script.rule(Rule::when(mine()).reply(Reply::text("done")));
        }
        script
    }
}

fn depth(nodes: &[Node], index: usize) -> usize {
    nodes[index].parent.map_or(0, |(parent, _)| 1 + depth(nodes, parent))
}

fn name(index: usize) -> String {
    format!("[n{index}]")
}

/// Which node a run is, by what it is about.
fn node_of(title: &str) -> usize {
    let (_, rest) = title.split_once("[n").unwrap();
    rest.split_once(']').unwrap().0.parse().unwrap()
}

/// Makes the tree, and leaves it. Returns its runs, in the order of the nodes.
async fn plant(world: &World, tree: &Tree, gate: &Gate) -> Vec<RunId> {
    let keys = Keys::default()
        .with("ANTHROPIC_API_KEY", "sk-test")
        .with("ANTHROPIC_BASE_URL", world.fake.url());
    let mut config = RuntimeConfig::new(world.database(), keys);
    config.models.model = Some("anthropic/claude-sonnet-4-5".into());
    config.delegation.max_depth = 4;
    config.permissions.rules.ask.push("Write".to_owned());
    let runtime = Runtime::open(config).await.unwrap();
    let agent = "general-purpose".parse().unwrap();
    let mut spec = RunSpec::new(agent, format!("{} work", name(0)), world.work());
    (spec.session, spec.rights.attended) = (tree.session, true);
    runtime.start(spec).await.unwrap();
    let count = |is: &dyn Fn(usize) -> bool| (0..tree.nodes.len()).filter(|it| is(*it)).count();
    let cut_off = count(&|index| tree.was_cut_off(index));
    let mut runs = Vec::new();
    eventually("the tree is as it is to be left", async || {
        let rows = runtime.list(&Filter { limit: 100, ..Filter::default() }).await.unwrap();
        let ended = rows.iter().filter(|row| row.state.outcome.is_some()).count();
        let asking = rows.iter().filter(|row| row.state.asks > 0).count();
        let at_work =
            rows.iter().filter(|row| row.work.owner.is_some() || row.work.runnable).count();
        runs = rows.iter().map(|row| (node_of(&row.about.title), row.id)).collect();
        rows.len() == tree.nodes.len()
            && ended == count(&|index| tree.had_ended(index))
            && asking == count(&|index| tree.asks(index))
            && at_work == cut_off
            && gate.held() == cut_off
    })
    .await;
    runtime.shutdown_within(Duration::ZERO).await;
    runs.sort_unstable();
    let runs: Vec<RunId> = runs.into_iter().map(|(_, run)| run).collect();
    let store = SqliteStore::open(Options::new(world.database())).await.unwrap();
    for (run, node) in runs.iter().zip(&tree.nodes) {
        let Some(held) = node.held else { continue };
        let (by, interrupted) = ("the test".to_owned(), held == Held::Interrupted);
        let paused = Event::Paused(Paused { by, interrupted, extra: Extra::default() });
        store.append(vec![Append::by_anyone(*run, paused)]).await.unwrap();
    }
    store.close().await;
    if tree.crashed {
        let dead = RunId::new();
        let statement = format!(
            "INSERT INTO workers VALUES ('{dead}', 'earlier', 0, ''); \
             UPDATE runs SET owner = '{dead}' WHERE runnable = 1 AND outcome IS NULL"
        );
        crate::records::sql(world, &statement).await;
    }
    gate.open();
    runs
}

/// The runs of a list, as nodes, and where each stands.
fn shown(list: &Value) -> BTreeMap<usize, String> {
    let entry = |run: &Value| {
        let status = run["status"].as_str().unwrap().to_owned();
        (node_of(run["title"].as_str().unwrap()), status)
    };
    list.as_array().unwrap().iter().map(entry).collect()
}

/// Who has ended.
async fn ended(world: &World, database: &Path) -> BTreeSet<usize> {
    let database = database.to_str().unwrap();
    let all = world.run(&["--db", database, "runs", "list", "--all", "--json"]).await.expect(0);
    let runs = shown(&all.json());
    runs.into_iter().filter(|(_, status)| status == "finished").map(|(node, _)| node).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_agree_on_which_runs_can_go_on() {
    for seed in seeds() {
        let tree = Tree::grown_from(seed);
        let gate = Gate::new();
        let world = World::new(tree.script(&gate)).await;
        let runs = plant(&world, &tree, &gate).await;
        let about = format!("seed {seed}: {tree:#?}");

        let list = world.run(&["runs", "list", "--unfinished", "--json"]).await.expect(0);
        let expected: BTreeMap<usize, String> =
            tree.listed().into_iter().map(|(index, word)| (index, word.to_owned())).collect();
        assert_eq!(shown(&list.json()), expected, "what is listed; {about}");

        // Two of them alone, each in a copy.
        for turn in 0..2 {
            let node = (seed as usize * 2 + turn) % runs.len();
            let copy = world.folder.path().join(format!("copy {turn}.db"));
            std::fs::copy(world.database(), &copy).unwrap();
            let (run, database) = (runs[node].to_string(), copy.to_str().unwrap());
            let exit = world.run(&["--db", database, "runs", "resume", &run, "--json"]).await;
            match tree.resumed(node) {
                None => {
                    assert_eq!(
                        exit.code,
                        Some(2),
                        "run {node} has nothing to do: {exit:?}; {about}"
                    )
                }
                Some(expected) => {
                    assert_ne!(exit.code, Some(2), "run {node} can go on: {exit:?}; {about}");
                    let found = ended(&world, &copy).await;
                    assert_eq!(found, expected, "resuming {node}: {exit:?}; {about}");
                }
            }
        }

        let all = world.run(&["runs", "resume", "--all", "--json"]).await;
        let free = BTreeSet::new();
        let expected: BTreeSet<usize> =
            (0..runs.len()).filter(|index| tree.ends(*index, &free)).collect();
        assert_eq!(ended(&world, &world.database()).await, expected, "{all:?}; {about}");
        let again = world.run(&["runs", "resume", "--all", "--json"]).await.expect(0);
        assert_eq!(again.out, "", "nothing is left to do; {about}");
    }
}

/// A model that holds its answer to "old", and has two answers to "new".
async fn old_and_new(gate: &Gate) -> World {
    let old = Conversation::when(When::any().first_user_contains("old"))
        .reply(Reply::text("late").held_by(gate));
    let new = Conversation::when(When::any().first_user_contains("new"))
        .reply(Reply::text("one"))
        .reply(Reply::text("two"));
    World::new(Script::new().conversation(old).conversation(new)).await
}

/// What another command did for an older run does not make it the one that `-c` means.
#[tokio::test]
async fn continue_means_the_run_that_the_user_talked_to_last() {
    let gate = Gate::new();
    let world = old_and_new(&gate).await;
    let running = world.start(&["run", "old"]);
    gate.wait_for_held(1).await.unwrap();
    running.signal(Signal::KILL);
    running.end().await;
    assert_eq!(world.run(&["run", "-q", "new"]).await.expect(0).out, "one\n");
    gate.open();
    world.run(&["runs", "resume", "--all"]).await.expect(0);
    assert_eq!(world.run(&["run", "-q", "-c", "more"]).await.expect(0).out, "two\n");
}

/// The same for a chat.
#[tokio::test]
async fn continue_means_the_chat_that_the_user_talked_to_last() {
    let gate = Gate::new();
    let world = old_and_new(&gate).await;
    let mut chat = world.start_with_input(&["chat"]);
    chat.type_line("old").await;
    gate.wait_for_held(1).await.unwrap();
    chat.signal(Signal::KILL);
    chat.end().await;
    assert_eq!(world.feed(&["chat"], "new\n").await.expect(0).out, "one\n");
    gate.open();
    world.run(&["runs", "resume", "--all"]).await.expect(0);
    assert_eq!(world.feed(&["chat", "-c"], "more\n").await.expect(0).out, "two\n");
}
