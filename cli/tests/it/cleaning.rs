//! What models and tools say reaches no terminal raw.

use crate::world::{Exit, World, bash};
use posse_testkit::{Reply, Script};

/// A title, the clipboard, a cleared screen, C1 controls, a turned direction, a bell.
const ATTACK: &str = "safe \x1b]0;title\x07 \x1b]52;c;QUJD\x07 \x1b[2J \u{9b}31m \u{202e}tfel \
                      \u{2066} \u{7f} \x08\x08 end";

#[track_caller]
fn is_clean(exit: &Exit) {
    for text in [&exit.out, &exit.err] {
        let raw = text.chars().find(|c| {
            c.is_control() && *c != '\n' && *c != '\t'
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}')
        });
        assert_eq!(raw, None, "{text:?}");
    }
}

async fn attacked() -> World {
    // The tool's output comes from a file, so that no shell has to be asked to print it.
    let script = Script::turns([
        Reply::text(ATTACK).and_tool_call(
            "Bash",
            serde_json::json!({"command": format!("cat evil; false '{ATTACK}'")}),
        ),
        Reply::text(ATTACK),
    ]);
    let world = World::new(script).await;
    world.write("evil", ATTACK);
    world
}

#[tokio::test]
async fn of_a_run_while_it_happens_and_afterwards() {
    let world = attacked().await;
    let exit = world.run(&["run", ATTACK]).await.expect(0);
    is_clean(&exit);
    assert!(exit.out.contains("safe ␛]0;title␇") && exit.out.contains(" end"), "{}", exit.out);
    let run = world.only_run().await;
    for arguments in [
        &["runs", "list"][..],
        &["runs", "show", &run],
        &["runs", "log", &run],
        &["runs", "watch", &run],
        &["runs", "list", "--json"],
        &["runs", "show", "--json", &run],
        &["runs", "log", "--json", &run],
        &["runs", "export", &run],
    ] {
        is_clean(&world.run(arguments).await.expect(0));
    }
}

#[tokio::test]
async fn json_is_escaped_and_still_says_the_same() {
    let world = attacked().await;
    let exit = world.run(&["run", "--json", "x"]).await.expect(0);
    is_clean(&exit);
    assert_eq!(exit.json()["text"], ATTACK);
    let exit = world.run(&["run", "--stream-json", "x"]).await.expect(0);
    is_clean(&exit);
}

#[tokio::test]
async fn of_errors_and_of_a_chat() {
    let world = World::new(Script::always(Reply::error(400, ATTACK))).await;
    is_clean(&world.run(&["run", "x"]).await.expect(1));
    is_clean(&world.run(&["run", "--json", "x"]).await.expect(1));
    is_clean(&world.run(&["run", "-q", "x"]).await.expect(1));
    is_clean(&world.feed(&["chat"], "x\n").await.expect(1));
    is_clean(&world.run(&["run", "--agent", ATTACK, "x"]).await.expect(2));
}

#[tokio::test]
async fn of_settings_that_a_project_brings_along() {
    let world = World::saying("x").await;
    world.write(
        "posse.toml",
        "[agents.a]\ndescription = \"x \\u001b[2J \\u009b \\u202e\"\ninstructions = \"x\"\ntools = [\"Read\"]\n",
    );
    is_clean(&world.run(&["config"]).await.expect(0));
    is_clean(&world.run(&["config", "--json"]).await.expect(0));
    let broken = World::new(Script::turns([bash("true")])).await;
    broken.write("posse.toml", "model = \"\x1b[2J\nnonsense");
    is_clean(&broken.run(&["config"]).await.expect(2));
}
