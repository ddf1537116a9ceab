//! The key reaches the provider and nobody else.

use crate::world::{World, bash, eventually, started};
use posse_testkit::{Reply, Script};

const CANARY: &str = "sk-canary-8f3b1c";

/// The canary as it is looked for on disk: in a dozen forms.
fn forms() -> Vec<Vec<u8>> {
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![CANARY.to_owned(), hex.to_uppercase(), hex];
    forms.push(CANARY.chars().rev().collect());
    // In base64, what stands for it alone, by where it begins.
    let base64 = ["c2stY2FuYXJ5LThmM2IxY", "NrLWNhbmFyeS04ZjNiMW", "zay1jYW5hcnktOGYzYjFj"];
    forms.extend(base64.map(str::to_owned));
    forms.into_iter().map(String::into_bytes).collect()
}

#[track_caller]
fn is_free_of_it(bytes: &[u8], what: &str) {
    for form in forms() {
        let found = bytes.windows(form.len()).any(|part| part == form);
        assert!(!found, "{what} holds {}", String::from_utf8_lossy(&form));
    }
}

/// Every file that Posse made, with its bytes.
fn kept(world: &World) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut folders = vec![world.home()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.is_file() => {
                    files.push((path.clone(), std::fs::read(&path).unwrap()))
                }
                false => {}
            }
        }
    }
    files
}

#[tokio::test]
async fn a87_a_secret_in_a_dozen_forms_through_a_whole_life_is_kept_nowhere() {
    let print = format!(
        "cat secret; printf %s '{CANARY}' | xxd -p -c 99; printf %s '{CANARY}' | od -An -tx1 | tr -d ' \\n'; \
         printf %s '{CANARY}' | base64; printf %s 'a{CANARY}b' | base64; printf %s 'ab{CANARY}' | base64; \
         printf %s '{CANARY}' | rev; printf %s '{{\"k\":\"{CANARY}\"}}'; echo; cat nothing-{CANARY}"
    );
    let script = Script::turns([
        Reply::tool_call("Read", serde_json::json!({"file_path": "secret"})),
        bash(&print),
        Reply::tool_call("Write", serde_json::json!({"file_path": "out", "content": CANARY})),
        Reply::tool_call(&format!("Tool-{CANARY}"), serde_json::json!({CANARY: CANARY})),
        Reply::text(&format!("it is {CANARY}, that is all")),
    ]);
    let world = World::new(script).await;
    world.write("secret", &format!("the key is {CANARY}\n"));
    let run = async |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("ANTHROPIC_API_KEY", CANARY);
        let exit = started(command).end().await;
        is_free_of_it(exit.err.as_bytes(), "standard error");
        exit
    };
    let label = format!("about {CANARY}");
    let exit = run(&["run", "--json", "--label", &label, &format!("keep {CANARY} secret")]).await;
    is_free_of_it(exit.out.as_bytes(), "the answer");
    assert_eq!(exit.code, Some(0), "{exit:?}");
    assert_eq!(world.fake.requests()[0].header("x-api-key"), Some(CANARY), "it was used");
    let id = world.only_run().await;
    for arguments in [
        &["runs", "show", &id][..],
        &["runs", "list", "--json"],
        &["runs", "log", &id],
        &["runs", "export", &id],
        &["audit", "list", "--json"],
        &["audit", "export"],
        &["audit", "verify"],
        &["runs", "verify"],
        &["runs", "show", CANARY],
        &["run", "--model", CANARY, "x"],
        &["config", "--json"],
    ] {
        // Whoever has no key looks at what is stored, not at what is taken out when it is shown.
        let exit = world.run(arguments).await;
        if !arguments.contains(&CANARY) {
            is_free_of_it(exit.out.as_bytes(), &format!("{arguments:?}"));
        }
        is_free_of_it(run(arguments).await.out.as_bytes(), &format!("{arguments:?}"));
    }
    let export = world.run(&["runs", "export", &id]).await.expect(0).out;
    assert!(export.matches("[redacted]").count() >= 8, "{export}");
    let files = kept(&world);
    assert!(files.iter().any(|(path, _)| path.ends_with("posse.db")), "{files:?}");
    for (path, bytes) in files {
        is_free_of_it(&bytes, &path.display().to_string());
    }
    assert_eq!(
        world.read("out"),
        CANARY,
        "what the agent does is done; what is kept of it is clean"
    );
    // What tools say is clean before the model is told, so that no other provider hears of it.
    let told = world.fake.requests()[2].body["messages"][4].to_string();
    is_free_of_it(told.as_bytes(), "what the model was told of the command");
}

#[tokio::test]
async fn a87_a_secret_that_comes_in_pieces_is_shown_in_none() {
    // Wherever the pieces of a stream end, one of these is cut there.
    let text: String = (1..30).map(|count| format!("{} {CANARY} ", "x".repeat(count))).collect();
    let halves = CANARY.split_at(7);
    let slowly = format!("printf '{}'; sleep 0.2; printf '{}'; echo", halves.0, halves.1);
    let script = Script::turns([bash(&slowly), Reply::thinking(&text).and_text(&text)]);
    let world = World::new(script).await;
    let mut command = world.command(&["run", "--stream-json", "x"]);
    command.env("ANTHROPIC_API_KEY", CANARY);
    let exit = started(command).end().await.expect(0);
    is_free_of_it(exit.out.as_bytes(), "the stream");
    for (kind, times) in [("text", 29), ("thinking", 29), ("tool_progress", 1)] {
        let deltas = exit.lines().into_iter().filter(|line| line["delta"] == kind);
        let joined: String = deltas.map(|line| line["text"].as_str().unwrap().to_owned()).collect();
        is_free_of_it(joined.as_bytes(), kind);
        assert_eq!(joined.matches("[redacted]").count(), times, "{kind}: {joined}");
    }
}

#[tokio::test]
async fn a89_the_key_is_not_in_proc_while_posse_runs() {
    let gate = posse_testkit::Gate::new();
    let script = Script::turns([Reply::text("done").held_by(&gate)]);
    let world = World::new(script).await;
    let mut command = world.command(&["run", "x"]);
    command.env("ANTHROPIC_API_KEY", CANARY).env("GITHUB_TOKEN", "ghp-also-8f3b1c");
    let running = started(command);
    crate::world::eventually("the request", async || gate.held() == 1).await;
    let pid = running.child.id().unwrap();
    // As root this can be read whatever the process says of itself.
    let environ = std::fs::read(format!("/proc/{pid}/environ"));
    if let Ok(environ) = &environ {
        is_free_of_it(environ, "/proc/PID/environ");
        assert!(!String::from_utf8_lossy(environ).contains("8f3b1c"));
        assert!(String::from_utf8_lossy(environ).contains("GITHUB_TOKEN="), "it was looked at");
    }
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    is_free_of_it(&line, "/proc/PID/cmdline");
    // Others of the same user are kept out: what is theirs of it belongs to root.
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(format!("/proc/{pid}/environ")).map(|data| data.uid());
    assert_eq!(owner.unwrap_or_default(), 0);
    gate.open();
    running.end().await.expect(0);
    assert_eq!(world.fake.requests()[0].header("x-api-key"), Some(CANARY));
}

#[tokio::test]
async fn a_key_may_stand_in_a_file() {
    let world = World::saying(&format!("the key is {CANARY}")).await;
    let path = world.home().join("key");
    std::fs::write(&path, format!("{CANARY}\n")).unwrap();
    let mut command = world.command(&["run", "say it"]);
    command.env_remove("ANTHROPIC_API_KEY").env("ANTHROPIC_API_KEY_FILE", &path);
    let exit = started(command).end().await.expect(0);
    assert_eq!(world.fake.requests()[0].header("x-api-key"), Some(CANARY));
    assert_eq!(exit.out, "the key is [redacted]\n", "it is as secret as in the environment");
    // One that holds none is told of.
    for (path, why) in [(world.home().join("none"), "cannot read"), (world.home(), "cannot read")] {
        let mut command = world.command(&["run", "say it"]);
        command.env_remove("ANTHROPIC_API_KEY").env("ANTHROPIC_API_KEY_FILE", &path);
        let told = started(command).end().await.err;
        assert!(told.contains("ANTHROPIC_API_KEY_FILE: ") && told.contains(why), "{told}");
    }
}

#[tokio::test]
async fn a41_all_that_posse_keeps_is_for_its_owner_only_whatever_the_umask() {
    let world = World::saying("x").await;
    world.write("posse.toml", "");
    let binary = env!("CARGO_BIN_EXE_posse");
    for line in ["run x", "trust --yes", "audit export -o export", "runs list"] {
        use std::process::Stdio;
        let mut command = tokio::process::Command::new("sh");
        command
            .args(["-c", &format!("umask 022; exec {binary} {line}")])
            .current_dir(world.work())
            .env_clear()
            .envs(world.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        started(command).end().await.expect(0);
    }
    assert_eq!(crate::world::mode(&world.work().join("export")), 0o600);
    for (path, _) in kept(&world) {
        assert_eq!(crate::world::mode(&path) & 0o077, 0, "{}", path.display());
        let folder = path.parent().unwrap();
        if folder != world.home() {
            assert_eq!(crate::world::mode(folder) & 0o077, 0, "{}", folder.display());
        }
    }
}

#[tokio::test]
async fn the_key_is_in_no_environment_of_a_command_no_output_and_no_file() {
    let script = Script::turns([
        bash("env; cat /proc/self/environ | tr '\\0' '\\n'; echo the environment of Bash"),
        Reply::text("done"),
    ]);
    let world = World::new(script).await;
    for form in ["--json", "--stream-json", "--quiet"] {
        let mut command = world.command(&["run", form, "x"]);
        command.env("ANTHROPIC_API_KEY", CANARY).env("SOME_TOKEN", "also-secret");
        let exit = started(command).end().await.expect(0);
        assert!(!exit.out.contains(CANARY) && !exit.err.contains(CANARY));
    }
    assert_eq!(world.fake.requests()[0].header("x-api-key"), Some(CANARY));
    let run = world.list().await[0]["run"].as_str().unwrap().to_owned();
    let export = world.run(&["runs", "export", &run]).await.expect(0).out;
    assert!(export.contains("the environment of Bash") && export.contains("PATH="), "{export}");
    assert!(!export.contains("ANTHROPIC") && !export.contains("also-secret"), "{export}");
    for entry in std::fs::read_dir(world.database().parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}

#[tokio::test]
async fn a_provider_that_echoes_the_key_does_not_bring_it_onto_the_screen() {
    let script = Script::always(Reply::error(401, &format!("the key {CANARY} is not known")));
    let world = World::new(script).await;
    let mut command = world.command(&["run", "x"]);
    command.env("ANTHROPIC_API_KEY", CANARY);
    let exit = started(command).end().await.expect(1);
    assert!(!exit.err.contains(CANARY) && !exit.out.contains(CANARY), "{}", exit.err);
}

#[tokio::test]
async fn what_is_stored_is_for_its_owner_only() {
    let world = World::saying("x").await;
    world.run(&["run", "x"]).await.expect(0);
    let folder = world.database().parent().unwrap().to_owned();
    assert_eq!(crate::world::mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(crate::world::mode(&path) & 0o077, 0, "{}", path.display());
    }
}

#[cfg(feature = "failpoints")]
#[tokio::test]
async fn a87_a_panic_that_tells_a_secret_tells_nobody() {
    let world = World::saying("never").await;
    let mut command = world.command(&["run", "go"]);
    command
        .env("ANTHROPIC_API_KEY", CANARY)
        .env("POSSE_PANICPOINT", format!("loop.model.called the key is {CANARY} here"));
    let exit = started(command).end().await;
    assert!(exit.err.contains("the key is") && exit.err.contains("here"), "it panicked: {exit:?}");
    is_free_of_it(exit.err.as_bytes(), "what it says");
    for (path, bytes) in kept(&world) {
        is_free_of_it(&bytes, &path.display().to_string());
    }
}

#[tokio::test]
async fn a_key_may_be_in_the_kernel_s_keyring() {
    use linux_keyutils::{KeyRing, KeyRingIdentifier};
    let world = World::saying("answered").await;
    let name = format!("TEST_{}_KEY", std::process::id());
    let settings = world.home().join("config/posse/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let vendor = format!(
        "model = \"own/fake-1\"\n[vendors.own]\nwire = \"anthropic\"\nbase_url = \"{}\"\n\
         key_variable = \"{name}\"\n",
        world.fake.url()
    );
    std::fs::write(&settings, vendor).unwrap();
    let ring = KeyRing::from_special_id(KeyRingIdentifier::Session, true);
    let Ok(key) = ring.and_then(|ring| ring.add_key(&format!("posse:{name}"), CANARY)) else {
        posse_testkit::skipped("posse-cli: keys in the kernel's keyring (there is none)");
        return;
    };
    let exit = world.run(&["run", "go"]).await;
    key.invalidate().unwrap();
    assert_eq!(exit.expect(0).out, "answered\n");
    assert_eq!(world.fake.last_request().header("x-api-key"), Some(CANARY));
    let without = world.run(&["run", "go"]).await;
    assert_ne!(without.code, Some(0), "{without:?}");
}

/// Other users of the machine cannot talk through the proxy of a command.
#[tokio::test]
async fn the_socket_of_a_proxy_is_for_its_owner_only_whatever_the_umask() {
    let wait = "touch begun; while [ ! -e end ]; do sleep 0.05; done; echo over";
    let script = Script::turns([bash(wait), Reply::text("{{last_tool_result}}")]);
    let world = World::new(script).await;
    let folder = world.home().join("temporary");
    std::fs::create_dir(&folder).unwrap();
    let binary = env!("CARGO_BIN_EXE_posse");
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", &format!("umask 000; exec {binary} run --network 127.0.0.1 go")]);
    let mut shell = world.set_up(shell);
    shell.env("TMPDIR", &folder);
    let running = started(shell);
    eventually("begun", async || world.work().join("begun").exists()).await;
    let entries = std::fs::read_dir(&folder).unwrap().flatten();
    let is_proxy = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("posse-proxy-");
    let proxies = entries.filter(|entry| is_proxy(&entry.file_name()));
    let modes: Vec<u32> = proxies.map(|it| crate::world::mode(&it.path())).collect();
    world.write("end", "");
    let said = running.end().await.expect(0).out;
    assert!(said.contains("over"), "{said}");
    assert_eq!(modes, [0o700]);
}
