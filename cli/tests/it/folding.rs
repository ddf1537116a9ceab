//! A workspace on a file system that takes names in capital letters for the same, behind the kernel's
//! back: what is protected by its name stays as it is.

use crate::world::{World, bash, within};
use posse_testkit::{Reply, Script};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Such a file system over a folder, until it is dropped.
struct Folding {
    place: PathBuf,
    _server: Child,
}

impl Folding {
    /// Nothing where this machine does not let us mount it.
    async fn over(backing: &Path, place: &Path) -> Option<Folding> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/folding_fs.py");
        let mut server = Command::new("python3")
            .arg(script)
            .args([backing, place])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut said = BufReader::new(server.stdout.take()?).lines();
        let line = within(said.next_line()).await.ok()??;
        (line == "mounted").then(|| Folding { place: place.to_owned(), _server: server })
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.place).status();
    }
}

#[tokio::test]
async fn commands_only_read_where_names_in_capital_letters_are_the_same() {
    let attack = "cat kept; echo '[core] fsmonitor = x' >> .GIT/config; echo '[core] fsmonitor = x' >> .git/CONFIG; \
                  echo x > .git/HOOKS/pre-commit; \
                  mkdir -p .POSSE/agents; echo x > .POSSE/agents/evil.md; echo x > .ENVRC; \
                  rmdir .CLAUDE; mkdir .CLAUDE; echo x > new; echo x > $TMPDIR/mine && echo scratch";
    let write = |path: &str| Reply::tool_call("Write", json!({"file_path": path, "content": "x"}));
    let script = Script::turns([
        bash(attack),
        Reply::text("{{last_tool_result}}"),
        write(".POSSE/evil.md"),
        write("ordinary.txt"),
        Reply::text("{{last_tool_result}}"),
    ]);
    let world = World::new(script).await;
    let (backing, place) = (world.home().join("backing"), world.work().join("place"));
    std::fs::create_dir_all(backing.join(".git/hooks")).unwrap();
    for (name, text) in
        [(".git/HEAD", "ref: refs/heads/main\n"), (".git/config", ""), ("kept", "k\n")]
    {
        std::fs::write(backing.join(name), text).unwrap();
    }
    std::fs::create_dir(&place).unwrap();
    let Some(_mounted) = Folding::over(&backing, &place).await else {
        return posse_testkit::skipped(
            "file systems that fold case: no FUSE, or no right to mount",
        );
    };
    let here = place.to_str().unwrap();
    let exit = world.run(&["run", "--cwd", here, "attack"]).await.expect(0);
    assert!(exit.out.contains("k\n") && exit.out.contains("scratch\n"), "{}", exit.out);
    assert!(exit.out.contains("commands can only read this folder"), "{}", exit.out);
    let run = world.only_run().await;
    world.run(&["run", "--resume", &run, "go on"]).await.expect(0);
    let mut names: Vec<_> = std::fs::read_dir(&backing).unwrap().flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = names.iter().map(|it| it.file_name().into_string().unwrap()).collect();
    assert_eq!(names, [".git", "kept", "ordinary.txt"]);
    assert_eq!(std::fs::read_to_string(backing.join(".git/config")).unwrap(), "");
    assert_eq!(std::fs::read_dir(backing.join(".git/hooks")).unwrap().count(), 0);
}
