//! What is said on the daemon's socket, by others than `posse`, and to daemons of other versions.

use crate::daemon::Guard;
use crate::world::{World, within};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// Says a line, and returns the answer.
async fn say(socket: &Path, line: &str) -> Value {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(line.as_bytes()).await.unwrap();
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer.lines().count(), 1, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn whatever_is_said_is_answered_with_one_line() {
    let world = World::saying("x").await;
    let guard = Guard::of(&world);
    world.run(&["daemon", "start"]).await.expect(0);
    let socket = guard.socket();
    let pong = say(&socket, "{\"posse\":1,\"ask\":\"ping\"}\n").await;
    assert_eq!((&pong["posse"], pong["pid"].to_string()), (&json!(1), guard.pid()));
    assert!(pong.get("error").is_none(), "{pong}");
    let status = say(&socket, "{\"posse\":1,\"ask\":\"status\"}\n").await;
    assert_eq!(status["status"]["runs"]["queued"], 0);
    for (line, why) in [
        ("hello\n", "not valid JSON"),
        ("{\"posse\":2,\"ask\":\"ping\"}\n", "speaks no other form"),
        ("{\"posse\":1,\"ask\":\"dance\"}\n", "does not know this request"),
        ("{\"posse\":1,\"ask\":\"reach\",\"model\":\"nobody/nothing\"}\n", "no vendor `nobody`"),
    ] {
        let answer = say(&socket, line).await;
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(why)), "{answer}");
    }
    // More than anybody has to say is not heard to its end, and hurts nobody.
    let mut stream = UnixStream::connect(&socket).await.unwrap();
    let _ = stream.write_all(&vec![b'x'; 1 << 20]).await;
    let mut answer = Vec::new();
    let _ = within(stream.read_to_end(&mut answer)).await;
    assert!(answer.is_empty());
    world.run(&["daemon", "status"]).await.expect(0);
}

#[tokio::test]
async fn a_daemon_of_another_version_is_named_with_what_to_do() {
    let world = World::saying("x").await;
    let socket = world.folder.path().join("other.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let other = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let answer = json!({"posse": 1, "version": "99.0.0", "pid": 1});
            stream.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    });
    std::fs::create_dir_all(world.database().parent().unwrap()).unwrap();
    let mut lock = std::fs::File::create(format!("{}-daemon", world.database().display())).unwrap();
    lock.lock().unwrap();
    let notice = json!({"pid": 1, "socket": socket, "log": null, "version": "99.0.0"});
    lock.write_all(notice.to_string().as_bytes()).unwrap();
    for command in [&["daemon", "start"][..], &["run", "--background", "x"]] {
        let exit = world.run(command).await.expect(1);
        assert!(exit.err.contains("the daemon (pid 1) is posse 99.0.0"), "{}", exit.err);
        assert!(exit.err.contains("hint: `posse daemon stop`"), "{}", exit.err);
    }
    assert!(!world.database().exists(), "nothing was stored");
    other.abort();
}

#[tokio::test]
async fn a_lock_whose_holder_does_not_listen_is_told_with_its_process() {
    let world = World::saying("x").await;
    std::fs::create_dir_all(world.database().parent().unwrap()).unwrap();
    let mut lock = std::fs::File::create(format!("{}-daemon", world.database().display())).unwrap();
    lock.lock().unwrap();
    let nowhere = world.folder.path().join("nowhere.sock");
    let notice = json!({"pid": 4711, "socket": nowhere, "log": null, "version": "1"});
    lock.write_all(notice.to_string().as_bytes()).unwrap();
    let status = world.run(&["daemon", "status", "--json"]).await.expect(1).json();
    assert_eq!((&status["running"], &status["pid"]), (&json!(false), &json!(4711)));
    let stop = world.run(&["daemon", "stop"]).await.expect(1);
    assert!(stop.err.contains("`kill -9 4711`"), "{}", stop.err);
    let exit = world.run(&["run", "--background", "x"]).await.expect(0);
    assert!(exit.err.contains("the daemon does not answer"), "{}", exit.err);
}

#[tokio::test]
async fn a_unit_for_systemd_is_printed_and_written() {
    let world = World::saying("x").await;
    let printed = world.run(&["daemon", "unit"]).await.expect(0);
    let start = format!("ExecStart=\"{}\" daemon start", env!("CARGO_BIN_EXE_posse"));
    assert!(printed.out.contains(&start), "{}", printed.out);
    assert!(printed.err.contains("systemctl --user enable --now posse"), "{}", printed.err);
    let path = world.home().join("config/systemd/user/posse.service");
    assert!(!path.exists());
    for _ in 0..2 {
        let written = world.run(&["daemon", "unit", "--install"]).await.expect(0);
        assert_eq!(written.out, "");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), printed.out);
    }
    std::fs::write(&path, "mine").unwrap();
    let refused = world.run(&["daemon", "unit", "--install"]).await.expect(2);
    assert!(refused.err.contains("is there already, and is another"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}
