//! Where the prompt comes from.

use crate::world::{World, started};
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
    world.feed(&["run", "an empty pipe"], "").await.expect(0);
    assert_eq!(asked(&world), "an empty pipe");
}

#[tokio::test]
async fn standard_input_is_added_to_a_prompt_that_is_given() {
    let world = World::saying("ok").await;
    world.feed(&["run", "review this"], "a change\n").await.expect(0);
    assert_eq!(asked(&world), "review this\n\n<stdin>\na change\n</stdin>");
    world.write("task.md", "from the file\n");
    world.feed(&["run", "--prompt-file", "task.md"], "a change").await.expect(0);
    assert_eq!(asked(&world), "from the file\n\n<stdin>\na change\n</stdin>");
    // A file in place of a pipe.
    let mut command = world.command(&["run", "sum up"]);
    command.stdin(std::fs::File::open(world.work().join("task.md")).unwrap());
    started(command).end().await.expect(0);
    assert_eq!(asked(&world), "sum up\n\n<stdin>\nfrom the file\n</stdin>");
}

/// Programs often start others with a pipe that nobody writes to or closes.
#[tokio::test]
async fn a_pipe_that_stays_silent_holds_nobody_up() {
    let world = World::saying("ok").await;
    let mut running = world.start_with_input(&["run", "alone"]);
    let stdin = running.stdin.take();
    let exit = running.end().await.expect(0);
    drop(stdin);
    assert_eq!(asked(&world), "alone");
    assert!(exit.err.contains("nothing came from standard input"), "{}", exit.err);
}

#[tokio::test]
async fn what_cannot_be_added_to_a_prompt_is_refused() {
    let world = World::saying("never").await;
    std::fs::write(world.work().join("binary"), [0xff, 0xfe]).unwrap();
    std::fs::write(world.work().join("huge"), vec![b'x'; 4 << 20]).unwrap();
    for (name, why) in [("binary", "not valid UTF-8"), ("huge", "larger than 4 MiB")] {
        let mut command = world.command(&["run", "look"]);
        command.stdin(std::fs::File::open(world.work().join(name)).unwrap());
        let exit = started(command).end().await.expect(2);
        assert!(exit.err.contains("standard input") && exit.err.contains(why), "{}", exit.err);
    }
    assert!(!world.database().exists());
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
        (vec!["run", "--prompt-file", "nowhere"], "", "cannot read nowhere: there is no such file"),
        (vec!["run", "--prompt-file", "."], "", "cannot read .: it is a folder"),
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
