//! Attacks that a gullible model carries out, seen from outside. Others stand with what they attack.

use crate::world::{World, bash};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::{Value, json};
use std::net::UdpSocket;
use std::time::Duration;

/// A world whose model makes these calls, one after the other, and then ends.
async fn gullible(calls: Vec<Reply>) -> World {
    let conversation = Conversation::when(When::any());
    let conversation = calls.into_iter().fold(conversation, Conversation::reply);
    World::new(Script::new().conversation(conversation.reply(Reply::text("done")))).await
}

/// What the model was told of its last call.
fn told(world: &World) -> String {
    world.fake.last_request().tool_results().pop().unwrap_or_default()
}

fn call(tool: &str, input: Value) -> Reply {
    Reply::tool_call(tool, input)
}

#[tokio::test]
async fn a32_nothing_leaves_by_names_datagrams_or_sockets() {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let (udp_port, tcp_port) =
        (listener.local_addr().unwrap().port(), tcp.local_addr().unwrap().port());
    let command = format!(
        "echo secret > /dev/udp/127.0.0.1/{udp_port}; echo secret > /dev/tcp/127.0.0.1/{tcp_port}; \
         getent hosts secret.example; \
         python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"secret\", (\"127.0.0.1\", {udp_port}))'; \
         true"
    );
    let world = gullible(vec![bash(&command)]).await;
    world.run(&["run", "go"]).await.expect(0);
    assert!(listener.recv(&mut [0; 64]).is_err(), "a datagram came");
    assert!(tcp.accept().is_err(), "a connection came");
}

#[tokio::test]
async fn a35_a39_a_call_cannot_say_how_far_it_reaches_or_where_it_works() {
    let outside = "touch ../canary";
    let world = gullible(vec![
        call("Bash", json!({"command": outside, "sandbox": "full"})),
        call("Bash", json!({"command": outside, "dangerouslyDisableSandbox": true})),
        call("Bash", json!({"command": "touch canary", "cwd": "/"})),
        call("Bash", json!({"command": "cd .. && touch canary; touch /canary ~/canary"})),
    ])
    .await;
    world.run(&["run", "go"]).await.expect(0);
    let around = world.folder.path();
    for place in [around.join("canary"), world.home().join("canary"), "/canary".into()] {
        assert!(!place.exists(), "{}", place.display());
    }
}

#[tokio::test]
async fn a43_what_is_no_regular_file_is_not_read() {
    let world = gullible(
        ["/dev/zero", "/proc/self/environ", "fifo", "file:///etc/passwd", "//host/share", ".."]
            .map(|path| call("Read", json!({"file_path": path})))
            .to_vec(),
    )
    .await;
    let fifo = world.work().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    world.run(&["run", "go"]).await.expect(0);
    let log = world.run(&["runs", "export", &world.only_run().await]).await.expect(0);
    let results = log.lines();
    let finished: Vec<&Value> = results
        .iter()
        .map(|line| &line["event"])
        .filter(|it| it["type"] == "tool_finished")
        .collect();
    assert_eq!(finished.len(), 6);
    for result in finished {
        assert_eq!(result["output"]["is_error"], true, "{result}");
    }
}

/// A lead that hands a command to a child.
async fn lead(command: &str) -> World {
    let task = json!({"description": "d", "prompt": "work", "subagent_type": "general-purpose"});
    let lead = Conversation::when(When::any().first_user_contains("lead"))
        .reply(call("Task", task))
        .reply(Reply::text("done"));
    let child = Conversation::when(When::any().first_user_contains("work"))
        .reply(bash(command))
        .reply(Reply::text("{{last_tool_result}}"));
    World::new(Script::new().conversation(lead).conversation(child)).await
}

#[tokio::test]
async fn a80_what_is_denied_to_a_session_is_denied_to_its_children() {
    let world = lead("touch canary").await;
    world.run(&["run", "--deny", "Bash(touch:*)", "lead"]).await.expect(0);
    assert!(!world.work().join("canary").exists());
    let world = lead("touch canary").await;
    world.run(&["run", "lead"]).await.expect(0);
    assert!(world.work().join("canary").exists(), "without the rule it runs");
}

#[tokio::test]
async fn a82_a_child_s_commands_reach_no_further_than_its_caller_s_may() {
    let world = lead("touch canary").await;
    world.run(&["run", "--sandbox", "read-only", "lead"]).await.expect(0);
    assert!(!world.work().join("canary").exists());
    let world = lead("touch canary").await;
    world.run(&["run", "--mode", "plan", "lead"]).await.expect(0);
    assert!(!world.work().join("canary").exists());
}

#[tokio::test]
async fn a88_a_command_sees_no_key_in_its_environment_or_that_of_others() {
    let look = "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; true";
    let world = gullible(vec![bash(look)]).await;
    world.run(&["run", "go"]).await.expect(0);
    let told = told(&world);
    assert!(told.contains("PATH="), "{told}");
    assert!(!told.contains("sk-test"), "{told}");
}

#[tokio::test]
async fn a_read_only_agent_changes_nothing_through_the_shell() {
    let command = "touch canary; echo x > ../canary; mkdir d; chmod 777 kept; git init .; ls";
    let world = gullible(vec![bash(command)]).await;
    world.write("kept", "as it was");
    let agents = r#"{"looker": {"description": "d", "prompt": "p", "tools": ["Read", "Bash"]}}"#;
    world.run(&["run", "--agents", agents, "--agent", "looker", "go"]).await.expect(0);
    let names: Vec<_> = std::fs::read_dir(world.work()).unwrap().flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(crate::world::mode(&world.work().join("kept")) & 0o002, 0);
    assert!(!world.folder.path().join("canary").exists());
}

#[tokio::test]
async fn a_command_talks_to_the_hosts_it_was_granted_and_to_no_others() {
    let fetch = |url: String| {
        format!(
            "python3 -c 'import urllib.request as r; print(r.urlopen(\"{url}\", timeout=10).status)'"
        )
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = heard.clone();
    let serving = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((mut socket, _)) = listener.accept().await {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let _ = socket.read(&mut [0; 2048]).await;
            let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    let world = gullible(vec![bash(&fetch(format!("http://127.0.0.1:{port}/")))]).await;
    world.run(&["run", "--network", "127.0.0.1", "go"]).await.expect(0);
    assert!(told(&world).contains("200"), "{}", told(&world));
    assert_eq!(heard.load(std::sync::atomic::Ordering::SeqCst), 1);
    for network in ["example.org", "off", "localhost"] {
        let world = gullible(vec![bash(&fetch(format!("http://127.0.0.1:{port}/")))]).await;
        world.run(&["run", "--network", network, "go"]).await.expect(0);
        assert!(!told(&world).contains("200"), "{network}: {}", told(&world));
    }
    assert_eq!(heard.load(std::sync::atomic::Ordering::SeqCst), 1, "nobody else came through");
    serving.abort();
}

#[tokio::test]
async fn a_run_writes_no_more_than_it_may_in_all_its_calls() {
    let write = |name: &str| call("Write", json!({"file_path": name, "content": "x".repeat(3000)}));
    let world = gullible(vec![bash("true"), write("a"), write("b")]).await;
    world.write("posse.toml", "[limits]\nwritten = \"4KiB\"\n");
    world.run(&["run", "go"]).await.expect(0);
    assert!(world.work().join("a").exists() && !world.work().join("b").exists());
    let run = world.only_run().await;
    let log = world.run(&["runs", "log", &run, "--json"]).await.expect(0).out;
    assert!(log.contains("may write only"), "{log}");
    assert!(log.contains("\"confined_by\":\"bubblewrap\""), "{log}");
}

#[tokio::test]
async fn what_may_not_be_read_is_not_read_through_the_shell_either() {
    let look = "cat .env secrets/a kept; grep -r canary . ; find . -type f -exec cat {} +; true";
    let world = gullible(vec![bash(look)]).await;
    std::fs::create_dir(world.work().join("secrets")).unwrap();
    for name in [".env", "secrets/a"] {
        world.write(name, "the canary\n");
    }
    world.write("kept", "can be read\n");
    let arguments = ["run", "--deny", "Read(.env)", "--deny", "Read(secrets/**)", "go"];
    world.run(&arguments).await.expect(0);
    let told = told(&world);
    assert!(told.contains("can be read"), "{told}");
    assert!(!told.contains("the canary"), "{told}");
    assert_eq!(world.read(".env"), "the canary\n", "and it is as it was");
}

#[tokio::test]
async fn what_may_not_be_changed_is_not_changed_through_the_shell_either() {
    let change = "echo evil > locked; rm -f locked; echo evil > data/a; touch data/new; mv data d; \
                  echo new > free; true";
    let world = gullible(vec![bash(change)]).await;
    std::fs::create_dir(world.work().join("data")).unwrap();
    for name in ["locked", "data/a", "free"] {
        world.write(name, "as it was\n");
    }
    let arguments = ["run", "--deny", "Edit(locked)", "--deny", "Edit(data/**)", "go"];
    world.run(&arguments).await.expect(0);
    for name in ["locked", "data/a"] {
        assert_eq!(world.read(name), "as it was\n", "{name}");
    }
    assert!(!world.work().join("data/new").exists());
    assert_eq!(world.read("free"), "new\n");
}
