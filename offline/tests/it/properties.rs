//! Whatever is asked and whatever tools say, it stays within its bounds.

use super::world::{ALL, MOST_REPLIES, World, call, nothing, page};
use posse_protocol::ToolCall;
use proptest::prelude::*;

/// Questions made of pieces that mean something to it.
fn question() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("where is"),
        Just("defined"),
        Just("used"),
        Just("tested"),
        Just("`Planner`"),
        Just("next_step"),
        Just("it"),
        Just("what does"),
        Just("this project"),
        Just("do?"),
        Just("how do I"),
        Just("build"),
        Just("run the tests"),
        Just("and"),
        Just("src/main.rs"),
        Just("README"),
        Just("src/"),
        Just("who changed"),
        Just("last?"),
        Just("list TODOs"),
        Just("dependencies"),
        Just("how many"),
        Just("Rust files"),
        Just("\"quoted text\""),
        Just("find files about"),
        Just("caching"),
        Just("entry point"),
        Just("please rename"),
        Just("explain"),
        Just("wo ist"),
        Just("in the tests directory"),
        Just("review"),
        Just("folder"),
        Just("the"),
        Just("routes"),
    ];
    let pieces = proptest::collection::vec(piece.prop_map(str::to_owned), 1..7)
        .prop_map(|pieces| pieces.join(" "));
    prop_oneof![3 => pieces, 1 => any::<String>()]
}

/// What a tool may say, from the expected to the absurd.
fn played(call: &ToolCall, dice: u8) -> Result<String, String> {
    let name = call.name.as_str();
    Ok(match dice % 8 {
        0 => return Err("no permission".to_owned()),
        1 => nothing(name),
        2 => "src/main.rs:3:fn main() {\nREADME.md:1:# Planner\na:b:7:x\n[The first 3 entries. There are more.]\n".to_owned(),
        3 => "src/main.rs\nREADME.md\nCargo.toml\nweird name'.md\ntests/é.rs\n".to_owned(),
        4 => page("# Title\n\n```sh\ncargo test\n```\n\"\"\"\n[package]\nname = \"x\"\n/** half\n"),
        5 => "\u{0}\u{FFFD}`````\n::::\n12\t\n      \t\n:1:\n".to_owned(),
        6 => "x".repeat(5_000),
        _ => "src/main.rs:12\n".repeat(300),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_conversation_stays_within_its_bounds(
        questions in proptest::collection::vec(question(), 1..3),
        dice in proptest::collection::vec(any::<u8>(), 1..40),
        offered in proptest::sample::subsequence([ALL.as_slice(), &["Task"]].concat(), 0..=8),
    ) {
        let mut rolls = dice.iter().cycle();
        let mut world = World::new(&offered, move |call| played(call, *rolls.next().unwrap()));
        for question in &questions {
            let answer = world.ask(question);
            prop_assert!(world.replies <= MOST_REPLIES);
            prop_assert!(!answer.trim().is_empty(), "{}", question);
            prop_assert!(answer.len() < 16_000, "{}", answer.len());
        }
        for call in &world.calls {
            prop_assert!(offered.contains(&call.name.as_str()), "{:?}", call);
            prop_assert!(!matches!(call.name.as_str(), "Write" | "Edit"), "{:?}", call);
        }
        for command in world.commands() {
            prop_assert!(command.starts_with("git -P "), "{}", command);
        }
        let mut ids: Vec<_> = world.calls.iter().map(|call| call.id.0.clone()).collect();
        ids.sort();
        ids.dedup();
        prop_assert_eq!(ids.len(), world.calls.len());
        prop_assert_eq!(call(world.request()), call(world.request()));
    }
}
