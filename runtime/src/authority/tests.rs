//! Compares random trees of runs, each with a definition and a call of its own, with sets of calls.

#![allow(clippy::unwrap_used)]

use crate::child::Above;
use crate::policy::{Policy, Today};
use crate::{AgentCatalog, Keys, Runtime, RuntimeConfig};
use posse_agent::{AddedRules, Guard, Ruling};
use posse_protocol::RunRights;
use posse_protocol::{
    AgentRights, AgentSpec, Extra, Grant, Mode, Network, Permissions, Profile, RunId, RunSpec,
    RunStarted, ToolCall, ToolRules,
};
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

/// Sample calls: a tool and its input.
const CALLS: [(&str, &str); 9] = [
    ("Read", "src/a.rs"),
    ("Read", "docs/b.md"),
    ("Write", "src/a.rs"),
    ("Edit", "src/a.rs"),
    ("Edit", "docs/b.md"),
    ("Bash", "git diff HEAD"),
    ("Bash", "git log"),
    ("Bash", "make"),
    ("TodoWrite", ""),
];

/// Rules, and which of the calls each matches.
const RULES: [(&str, &[usize]); 8] = [
    ("Read", &[0, 1]),
    ("Read(src/**)", &[0]),
    ("Write", &[2]),
    ("Edit", &[3, 4]),
    ("Edit(docs/**)", &[4]),
    ("Bash", &[5, 6, 7]),
    ("Bash(git diff:*)", &[5]),
    ("Bash(git:*)", &[5, 6]),
];

/// The restrictions that one run adds to those of its caller.
#[derive(Clone, Debug)]
struct Layer {
    tools: Option<Vec<usize>>,
    deny: Vec<usize>,
    call_deny: Vec<usize>,
    mode: Option<Mode>,
    reach: Option<Profile>,
    network: Option<Network>,
}

fn some_rules() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0..RULES.len(), 0..3)
}

fn layer() -> impl Strategy<Value = Layer> {
    let hosts = |names: &[&str]| Network::Hosts(names.iter().map(|it| (*it).to_owned()).collect());
    let networks = vec![Network::Off, hosts(&["a.org"]), hosts(&["a.org", "b.org"]), Network::Open];
    let reaches = vec![Profile::ReadOnly, Profile::WorkspaceWrite, Profile::Full];
    (
        proptest::option::of(proptest::collection::vec(0..RULES.len(), 1..5)),
        some_rules(),
        some_rules(),
        proptest::option::of(proptest::sample::select(Mode::ALL.to_vec())),
        proptest::option::of(proptest::sample::select(reaches)),
        proptest::option::of(proptest::sample::select(networks)),
    )
        .prop_map(|(tools, deny, call_deny, mode, reach, network)| Layer {
            tools,
            deny,
            call_deny,
            mode,
            reach,
            network,
        })
}

fn texts(rules: &[usize]) -> Vec<String> {
    rules.iter().map(|rule| RULES[*rule].0.to_owned()).collect()
}

fn is_specific(rule: usize) -> bool {
    RULES[rule].0.contains('(')
}

fn tool_of(rule: usize) -> &'static str {
    RULES[rule].0.split('(').next().unwrap_or_default()
}

fn agent(name: &str, layer: &Layer) -> AgentSpec {
    AgentSpec {
        rights: AgentRights {
            tools: layer.tools.as_deref().map(|rules| {
                let mut tools = texts(rules);
                // Lets the tree continue below this run, which always has a tool.
                tools.extend(["Task".to_owned(), "TodoWrite".to_owned()]);
                tools
            }),
            disallowed_tools: texts(&layer.deny),
            mode: layer.mode,
            network: layer.network.clone(),
            scopes: Vec::new(),
        },
        ..AgentSpec::new(name.parse().unwrap())
    }
}

/// The calls that a run may make, computed with sets only.
struct Oracle {
    denied: Vec<usize>,
    /// For each list with scopes, the calls that it keeps.
    scopes: Vec<Vec<usize>>,
    mode: Mode,
    reach: Profile,
    network: Network,
}

impl Oracle {
    fn add(&mut self, layer: &Layer, root: bool) {
        for rule in layer.deny.iter().chain(&layer.call_deny) {
            if is_specific(*rule) {
                self.denied.extend(RULES[*rule].1);
            }
        }
        if let Some(rules) = &layer.tools {
            let specific: Vec<usize> =
                rules.iter().copied().filter(|rule| is_specific(*rule)).collect();
            let about = |call: usize| {
                let tool = CALLS[call].0;
                // `Edit(…)` also covers Write, and `Read(…)` covers all tools that read files.
                specific.iter().any(|rule| match tool_of(*rule) {
                    "Edit" => tool == "Edit" || tool == "Write",
                    other => other == tool,
                })
            };
            let kept = (0..CALLS.len()).filter(|call| {
                !about(*call)
                    || specific.iter().any(|rule| match (tool_of(*rule), CALLS[*call]) {
                        ("Edit", ("Write", path)) => path.starts_with("docs/"),
                        _ => RULES[*rule].1.contains(call),
                    })
            });
            self.scopes.push(kept.collect());
        }
        self.mode = match (root, layer.mode) {
            (_, None) => self.mode,
            (_, Some(mode)) => self.mode.min(mode),
        };
        if let Some(reach) = layer.reach {
            self.reach = if root { reach } else { self.reach.min(reach) };
        }
        if let Some(network) = &layer.network {
            self.network = self.network.meet(network);
        }
    }

    /// True when all lists allow a call and none denies it. The mode applies after that.
    fn is_inside(&self, call: usize) -> bool {
        !self.denied.contains(&call) && self.scopes.iter().all(|kept| kept.contains(&call))
    }
}

/// True when one of `rules` is just the name of `tool`.
fn names_it(rules: &[usize], tool: &str) -> bool {
    rules.iter().any(|rule| !is_specific(*rule) && tool_of(*rule) == tool)
}

/// The names of the tools that the lists of one layer allow.
fn names(layer: &Layer) -> Vec<&'static str> {
    let all = ["Read", "Write", "Edit", "Bash", "TodoWrite"];
    all.into_iter()
        .filter(|tool| match &layer.tools {
            Some(rules) => *tool == "TodoWrite" || rules.iter().any(|rule| tool_of(*rule) == *tool),
            None => true,
        })
        .filter(|tool| !names_it(&layer.deny, tool) && !names_it(&layer.call_deny, tool))
        .collect()
}

fn call_of(index: usize) -> ToolCall {
    let (tool, subject) = CALLS[index];
    let input = match tool {
        "Bash" => json!({"command": subject}),
        "TodoWrite" => json!({"todos": []}),
        _ => json!({"file_path": subject}),
    };
    ToolCall { id: "c".into(), name: tool.to_owned(), input, extra: Extra::default() }
}

fn started(agent: AgentSpec, grant: Grant) -> Arc<RunStarted> {
    Arc::new(RunStarted::new(agent, "a/b", grant))
}

/// For each of the calls, whether a run with `grant` may make it, with or without approval.
fn inside(grant: &Grant, today: &Today, runtime: &Runtime) -> Vec<bool> {
    let facts = runtime.inner.tools.facts(&grant.workspace).unwrap();
    // With `bypass`, only rules decide: no person is asked, and denials and scopes still apply.
    let open = Grant { mode: Mode::Bypass, attended: true, ..grant.clone() };
    let policy = Policy::new(&open, today, &facts).unwrap();
    let spec_of = |name: &str| {
        let known = posse_tools::specs().find(|spec| spec.name == name);
        known.cloned().unwrap_or_else(|| {
            let effect = posse_protocol::Effect::Execute;
            posse_protocol::ToolSpec::new(name, "", effect, serde_json::json!({}))
        })
    };
    (0..CALLS.len())
        .map(|index| {
            let call = call_of(index);
            let ruling = policy.judge(&call, &spec_of(&call.name), &AddedRules::default());
            grant.allows(&call.name) && !matches!(ruling, Ruling::Deny { .. })
        })
        .collect()
}

fn check(layers: &[Layer], forbidden_today: &[usize]) {
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    executor.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let agents = layers.iter().enumerate().map(|(at, layer)| agent(&format!("l{at}"), layer));
        let agents: Vec<AgentSpec> = agents.collect();
        let mut catalog = AgentCatalog::built_in();
        for agent in &agents {
            catalog.add(agent.clone()).unwrap();
        }
        let launcher = Some(posse_tools::launch::Launcher::through("/proc/self/exe".as_ref()));
        let config = {
            let mut config: RuntimeConfig =
                RuntimeConfig::new(folder.path().join("db"), Keys::default());
            config.definitions.agents = catalog.into();
            config.delegation.max_depth = 8;
            config.launcher = launcher;
            config
        };
        let runtime = Runtime::open(config).await.unwrap();
        let mut oracle = Oracle {
            denied: Vec::new(),
            scopes: Vec::new(),
            mode: Mode::AcceptEdits,
            reach: Profile::WorkspaceWrite,
            network: Network::Open,
        };
        let mut above: Option<Above> = None;
        for (at, layer) in layers.iter().enumerate() {
            let root = above.is_none();
            let spec = RunSpec {
                rights: RunRights {
                    tools: ToolRules { deny: texts(&layer.call_deny), ..ToolRules::default() },
                    reach: layer.reach,
                    network: root.then_some(Network::Open),
                    ..RunRights::default()
                },

                ..RunSpec::new(agents[at].name.clone(), "x", folder.path())
            };
            let granted = runtime.granted(RunId::new(), &spec, above.as_ref()).await;
            let (agent, grant) = match granted {
                Ok(granted) => granted,
                // Each agent keeps a tool, so every run can start.
                Err(error) => panic!("{layer:?}: {error}"),
            };
            oracle.add(layer, root);
            let mut own = names(layer);
            // A tool that a call denies by name is not passed on either.
            let is_denied =
                |tool: &str| layers[..at].iter().any(|it| names_it(&it.call_deny, tool));
            own.retain(|tool| !is_denied(tool));
            for (index, is_inside) in
                inside(&grant, &Today::default(), &runtime).into_iter().enumerate()
            {
                let expected = own.contains(&CALLS[index].0) && oracle.is_inside(index);
                assert_eq!(is_inside, expected, "{:?} at {at} of {layers:?}", CALLS[index]);
            }
            assert_eq!(grant.mode, oracle.mode);
            assert_eq!(grant.reach, oracle.reach);
            assert_eq!(grant.network, oracle.network);
            // After the settings deny more, a resumed run may do less, and nothing else changes.
            let deny = texts(forbidden_today);
            let permissions = Permissions { deny, ..Permissions::default() };
            let today = Today { permissions, ..Today::default() };
            let forbidden: Vec<usize> =
                forbidden_today.iter().flat_map(|rule| RULES[*rule].1).copied().collect();
            let resumed = inside(&grant, &today, &runtime);
            for (index, is_inside) in resumed.into_iter().enumerate() {
                let edit = forbidden_today.iter().any(|rule| tool_of(*rule) == "Edit");
                let also = edit && CALLS[index].0 == "Write";
                let expected = own.contains(&CALLS[index].0)
                    && oracle.is_inside(index)
                    && !forbidden.contains(&index);
                assert!(is_inside == expected || also && !is_inside, "{:?}", CALLS[index]);
            }
            above = Some(Above {
                run: RunId::new(),
                call: None,
                announce: None,
                time: Default::default(),
                started: started(agent, grant),
            });
        }
        runtime.shutdown().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Never more and never less than what its caller may pass on, its definition and the call
    /// allow together.
    #[test]
    fn a80_a81_a83_a_grant_is_the_intersection_of_all_above_it(
        layers in proptest::collection::vec(layer(), 1..5),
        forbidden_today in some_rules(),
    ) {
        check(&layers, &forbidden_today);
    }
}
