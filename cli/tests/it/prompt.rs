//! Where the prompt comes from.

use crate::world::World;
use posse_testkit::{Reply, Script};
use serde_json::json;

/// What the model was asked.
fn asked(world: &World) -> String {
    let requests = world.fake.requests();
    let body = &requests.last().unwrap().body;
    body["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn from_the_command_line_a_file_or_standard_input() {
    let world = World::saying("ok").await;
    world.run(&["run", "from the line"]).await.expect(0);
    assert_eq!(asked(&world), "from the line");
    world.write("task.md", "from the file\nsecond line\n");
    world.run(&["run", "--prompt-file", "task.md"]).await.expect(0);
    assert_eq!(asked(&world), "from the file\nsecond line\n");
    world.feed(&["run"], "from the pipe\n").await.expect(0);
    assert_eq!(asked(&world), "from the pipe\n");
    world.feed(&["run", "-"], "from the dash é\n").await.expect(0);
    assert_eq!(asked(&world), "from the dash é\n");
    world.feed(&["run", "the line wins"], "over the pipe\n").await.expect(0);
    assert_eq!(asked(&world), "the line wins");
}

#[tokio::test]
async fn what_is_no_prompt_is_refused_before_anything_is_stored() {
    let world = World::saying("never").await;
    world.write("binary", "");
    std::fs::write(world.work().join("binary"), [0xff, 0xfe]).unwrap();
    std::fs::write(world.work().join("huge"), vec![b'x'; (4 << 20) + 1]).unwrap();
    for (arguments, input, why) in [
        (vec!["run", ""], "", "the prompt is empty"),
        (vec!["run", "  \n"], "", "the prompt is empty"),
        (vec!["run"], "", "the prompt is empty"),
        (vec!["run", "--prompt-file", "nowhere"], "", "cannot read nowhere: No such file"),
        (vec!["run", "--prompt-file", "."], "", "cannot read .: Is a directory"),
        (vec!["run", "--prompt-file", "binary"], "", "not valid UTF-8"),
        (vec!["run", "--prompt-file", "huge"], "", "larger than 4 MiB"),
        (vec!["run", "a", "--prompt-file", "huge"], "", "cannot be used with"),
    ] {
        let exit = world.feed(&arguments, input).await.expect(2);
        assert!(exit.err.contains(why), "{arguments:?}: {}", exit.err);
        assert_eq!(exit.out, "");
    }
    assert!(!world.database().exists());
}

#[tokio::test]
async fn a_file_that_is_named_is_told_to_the_agent_and_read_under_its_rules() {
    let reads = Reply::tool_call("Read", json!({"file_path": "secret.txt"}));
    let world = World::new(Script::turns([reads, Reply::text("{{last_tool_result}}")])).await;
    world.write("secret.txt", "hush");
    let deny = ["--deny", "Read(./secret.txt)"];
    let exit = world.run(&["run", deny[0], deny[1], "what is in @secret.txt?"]).await.expect(0);
    let first = world.fake.requests()[0].body["messages"][0]["content"].to_string();
    assert!(first.contains("[In the working folder: file secret.txt]"), "{first}");
    assert!(!first.contains("hush") && !exit.out.contains("hush"), "{exit:?}");
}
