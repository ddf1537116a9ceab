//! The home folder: commands see programs and what these need, and none of what else lies there.

use crate::world::{World, bash, started};
use posse_testkit::{Conversation, Reply, Script, When};
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// An agent that only looks, and has a shell.
const LOOKER: &str =
    r#"{"looker": {"description": "looks", "prompt": "Look.", "tools": ["Read", "Bash"]}}"#;

/// Where programs keep what is not for others. No list of such places is complete, so these stand
/// for all of them.
const SECRETS: &[&str] = &[
    "other-project/.env",
    "other-project/config/master.key",
    "Documents/taxes.txt",
    ".authinfo",
    ".msmtprc",
    ".netrc",
    ".bashrc",
    ".profile",
    ".bash_history",
    ".zsh_history",
    ".viminfo",
    ".lesshst",
    ".ssh/id_ed25519",
    ".gnupg/private-keys-v1.d/x.key",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
    ".npmrc",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".gem/credentials",
    ".bundle/config",
    ".hex/hex.config",
    ".julia/servers/x/auth.toml",
    ".ivy2/.credentials",
    ".sbt/1.0/credentials.sbt",
    ".config/git/credentials",
    ".config/gh/hosts.yml",
    ".config/pypoetry/auth.toml",
    ".config/configstore/firebase-tools.json",
    ".config/netlify/config.json",
    ".config/stripe/config.toml",
    ".config/github-copilot/apps.json",
    ".config/.wrangler/config/default.toml",
    ".config/Slack/Cookies",
    ".config/Signal/config.json",
    ".config/Code/User/globalStorage/state.vscdb",
    ".local/share/com.vercel.cli/auth.json",
    ".local/share/opencode/auth.json",
    ".local/share/amp/secrets.json",
    ".local/share/goose/sessions/x.jsonl",
    ".local/share/keyrings/login.keyring",
    ".local/share/uv/credentials/credentials.toml",
    ".local/state/bash/history",
    ".cache/huggingface/token",
    ".claude/projects/x.jsonl",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".codex/sessions/x.jsonl",
    ".qwen/oauth_creds.json",
    ".bitcoin/wallet.dat",
    ".electrum/wallets/default",
    ".mozilla/firefox/x/logins.json",
    "snap/firefox/common/x",
];

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn put_program(path: &Path, text: &str) {
    put(path, text);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn commands_find_no_secret_in_the_home_folder() {
    for options in [&["run"][..], &["run", "--agents", LOOKER, "--agent", "looker"]] {
        let names = SECRETS.join("\" \"$HOME/");
        let find = format!("cd ~; grep -rs canary . | cut -c1-60; cat \"$HOME/{names}\" 2>&1");
        let script = Script::turns([bash(&find), Reply::text("{{last_tool_result}}")]);
        let world = World::new(script).await;
        for name in SECRETS {
            put(&world.home().join(name), "canary");
        }
        let exit = world.run(&[options, &["look"]].concat()).await.expect(0);
        assert!(exit.out.contains("No such file or directory"), "{}", exit.out);
        assert!(!exit.out.contains("canary"), "{}", exit.out);
    }
}

/// What an agent, or an archive, leaves in the workspace shows nothing of the home folder.
#[tokio::test]
async fn links_in_the_workspace_show_nothing_that_is_hidden() {
    let names =
        "bin registry git config.toml env caches jdks native wrapper pkg install .venv tools";
    let link =
        format!("for name in {names}; do ln -s ~/.ssh/id $name; done; rm bin; ln -s ~/private bin");
    let look = format!("cat {names} bin/x .venv/x 2>&1; ls -la bin/ .venv/ ~ 2>&1");
    let script = Script::turns([bash(&link), bash(&look), Reply::text("{{last_tool_result}}")]);
    for options in [&["run"][..], &["run", "--network", "open"]] {
        let world = World::new(script.clone()).await;
        put(&world.home().join(".ssh/id"), "canary");
        put(&world.home().join("private/x"), "canary");
        let mut run = world.command(&[options, &["x"]].concat());
        let own = world.work().join("bin").display().to_string();
        run.env("PATH", format!("bin::{own}:/usr/bin:/bin"));
        run.env("VIRTUAL_ENV", world.work().join(".venv")).env("GOPATH", world.work());
        let said = started(run).end().await.expect(0).out;
        assert!(said.contains("No such file or directory"), "{said}");
        assert!(!said.contains("canary"), "{said}");
    }
}

/// Files that the user's settings of git name count for agents, too.
#[tokio::test]
async fn git_finds_what_its_settings_name() {
    let command = "git init -q . 2>/dev/null; git config user.name; git add -A; git status --short";
    let world =
        World::new(Script::turns([bash(command), Reply::text("{{last_tool_result}}")])).await;
    let home = world.home();
    put(
        &home.join(".gitconfig"),
        "[include]\n\tpath = ~/work.cfg\n[core]\n\texcludesFile = ~/dots/ign\n",
    );
    put(&home.join("work.cfg"), "[user]\n\tname = At Work\n");
    put(&home.join("dots/ign"), "*.secret\n");
    std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(world.work())
        .status()
        .unwrap();
    world.write("a", "x");
    world.write("my.secret", "x");
    let said = world.run(&["run", "x"]).await.expect(0).out;
    assert!(said.contains("At Work\n") && said.contains("A  a"), "{said}");
    assert!(!said.contains("my.secret"), "{said}");
}

#[tokio::test]
async fn programs_in_the_home_folder_work_with_what_belongs_to_them() {
    let command = "tool; jdk; git config user.name; cat ~/.cargo/registry/x ~/go/pkg/y";
    let script = Script::turns([bash(command), Reply::text("{{last_tool_result}}")]);
    let world = World::new(script).await;
    let home = world.home();
    // A program that is linked to from where it was installed, and one of a toolchain.
    put_program(&home.join("apps/tool/bin/tool"), "#!/bin/sh\ncat \"$HOME/apps/tool/lib/says\"\n");
    put(&home.join("apps/tool/lib/says"), "tool speaks\n");
    std::fs::create_dir_all(home.join(".local/bin")).unwrap();
    symlink(home.join("apps/tool/bin/tool"), home.join(".local/bin/tool")).unwrap();
    put_program(&home.join("opt/jdk-21/bin/jdk"), "#!/bin/sh\ncat \"$JAVA_HOME/lib/says\"\n");
    put(&home.join("opt/jdk-21/lib/says"), "jdk speaks\n");
    // Settings that are kept elsewhere.
    put(&home.join("dotfiles/gitconfig"), "[user]\n\tname = Some One\n");
    symlink(home.join("dotfiles/gitconfig"), home.join(".gitconfig")).unwrap();
    put(&home.join(".cargo/registry/x"), "registry\n");
    put(&home.join("go/pkg/y"), "modules\n");
    let mut run = world.command(&["run", "x"]);
    let path = ["/usr/bin", "/bin"].map(Into::into);
    let own = [home.join(".local/bin"), home.join("opt/jdk-21/bin")];
    run.env("PATH", std::env::join_paths(own.into_iter().chain(path)).unwrap());
    run.env("JAVA_HOME", home.join("opt/jdk-21"));
    let said = started(run).end().await.expect(0).out;
    assert!(said.contains("tool speaks\njdk speaks\nSome One\nregistry\nmodules\n"), "{said}");
}

#[tokio::test]
async fn what_a_command_misses_is_told_with_the_setting_that_shows_it() {
    let look = |word: &str| {
        Conversation::when(When::any().first_user_contains(word))
            .reply(bash("cat ~/data/numbers.csv ~/.kube/config"))
            .reply(Reply::text("{{last_tool_result}}"))
    };
    let script = Script::new().conversation(look("before")).conversation(look("after"));
    let world = World::new(script).await;
    put(&world.home().join("data/numbers.csv"), "1,2,3\n");
    put(&world.home().join(".kube/config"), "cluster\n");
    let said = world.run(&["run", "before"]).await.expect(0).out;
    assert!(said.contains("~/data is hidden from them"), "{said}");
    assert!(said.contains("`readable` under `[command]`"), "{said}");
    let settings = "[command]\nreadable = [\"~/data\", \"~/.kube\"]\n";
    put(&world.home().join("config/posse/config.toml"), settings);
    let shown = world.run(&["config", "--json"]).await.expect(0).out;
    assert!(shown.contains("command.readable"), "{shown}");
    let said = world.run(&["run", "after"]).await.expect(0).out;
    assert!(said.contains("1,2,3\ncluster\n"), "{said}");
    // A project shows nothing of its user's.
    world.write("posse.toml", settings);
    let refused = world.run(&["run", "x"]).await.expect(2);
    assert!(refused.err.contains("command.readable"), "{refused:?}");
    std::fs::remove_file(world.work().join("posse.toml")).unwrap();
    put(&world.home().join("config/posse/config.toml"), "[command]\nreadable = [\"data\"]\n");
    let refused = world.run(&["run", "x"]).await.expect(2);
    assert!(refused.err.contains("`data` is no place in your home folder"), "{refused:?}");
}

/// Root's home may lie where those of other people lie, which are hidden from its commands.
#[tokio::test]
async fn a_home_among_those_of_others_is_shown_as_far_as_any_other() {
    let Ok(home) = tempfile::Builder::new().prefix("posse-test-").tempdir_in("/home") else {
        return posse_testkit::skipped("a home folder of root's in /home");
    };
    let look = "cat ~/.gitconfig; cat ~/.bashrc ~/../*/.bashrc; echo over";
    let world = World::new(Script::turns([bash(look), Reply::text("{{last_tool_result}}")])).await;
    std::fs::write(home.path().join(".gitconfig"), "[user]\n\tname = Ada\n").unwrap();
    std::fs::write(home.path().join(".bashrc"), "canary").unwrap();
    let mut command = world.command(&["run", "look"]);
    command.env("HOME", home.path());
    let exit = started(command).end().await.expect(0);
    assert!(exit.out.contains("name = Ada") && exit.out.contains("over"), "{}", exit.out);
    assert!(!exit.out.contains("canary"), "{}", exit.out);
}

/// People keep their settings in a repository and have links to it in their home folder. What the
/// links lead to is run or obeyed all the same, and so it is closed to agents.
#[tokio::test]
async fn what_links_in_the_home_folder_lead_to_is_closed() {
    let linked = [
        (".bashrc", "bashrc"),
        (".vimrc", "vimrc"),
        (".tmux.conf", "tmux"),
        (".config/tmux/tmux.conf", "tmux2"),
        (".ssh/config", "ssh"),
        ("bin", "scripts"),
        (".local/bin/tool", "tools/tool.sh"),
        (".bashrc.d/mine", "rc.d/mine"),
        (".config/posse/config.toml", "posse.toml.mine"),
        (".config/posse/agents/helper.md", "helper.md"),
        (".claude/settings.json", "claude/settings.json"),
        (".claude/agents", "claude/agents"),
    ];
    let files = [
        "bashrc",
        "vimrc",
        "tmux",
        "tmux2",
        "ssh",
        "posse.toml.mine",
        "helper.md",
        "claude/settings.json",
        "tools/tool.sh",
        "rc.d/mine",
    ];
    let all = files.join(" ");
    let evil = format!(
        "for file in {all} scripts/git claude/agents/x.md; do echo evil >> $file; done; echo END > other"
    );
    let written = files.iter().chain(&["scripts/git", "claude/agents/x.md"]);
    let writes = written
        .map(|path| Reply::tool_call("Write", json!({"file_path": path, "content": "evil"})));
    let calls = std::iter::once(bash(&evil)).chain(writes);
    let conversation = calls.fold(Conversation::when(When::any()), Conversation::reply);
    let conversation = conversation.reply(Reply::text("{{last_tool_result}}"));
    let world = World::new(Script::new().conversation(conversation)).await;
    let (home, folder) = (world.home(), world.home().join("dotfiles"));
    let mine = |file: &str| match () {
        () if file.ends_with("json") => "{}\n",
        () if file.ends_with("sh") => "#!/bin/sh\n",
        () => "# mine\n",
    };
    for file in files {
        put(&folder.join(file), mine(file));
    }
    for made in ["scripts", "claude/agents"] {
        std::fs::create_dir_all(folder.join(made)).unwrap();
    }
    for (from, to) in linked {
        std::fs::create_dir_all(home.join(from).parent().unwrap()).unwrap();
        symlink(folder.join(to), home.join(from)).unwrap();
    }
    let mut command = world.command(&["run", "--mode", "bypass", "go"]);
    command.current_dir(&folder);
    let said = started(command).end().await.expect(0).out;
    for file in files {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(text, mine(file), "{file}: {said}");
    }
    assert!(!folder.join("scripts/git").exists(), "{said}");
    assert!(!folder.join("claude/agents/x.md").exists(), "{said}");
    assert!(folder.join("other").exists(), "{said}");
}

/// What one layout of a repository of settings has: links from the home folder and in the repository,
/// files, and what an agent would do.
struct Dotfiles {
    links: &'static [(&'static str, &'static str)],
    files: &'static [&'static str],
    evil: Evil,
}

enum Evil {
    Command(&'static str),
    Write(&'static str),
}

/// Links lead on to others, through folders that are links, and to what is not there. Who changes one of
/// them decides what the user's shell runs, just as who changes the file at the end.
#[tokio::test]
async fn no_link_on_the_way_from_the_home_folder_is_changed() {
    let chain = &[(".bash_aliases", "dot/aliases"), ("dot/aliases", "aliases.linux")];
    let missing = &[(".bash_aliases", "dot/aliases")];
    let layouts = [
        Dotfiles {
            links: chain,
            files: &["aliases.linux"],
            evil: Evil::Command(
                "rm -f aliases; mv aliases x; ln -sfn /x aliases; echo evil > aliases",
            ),
        },
        Dotfiles {
            links: &[(".bash_aliases", "dot/sh/aliases"), ("dot/sh/aliases", "aliases.linux")],
            files: &["sh/aliases.linux", "sh/deep/a"],
            evil: Evil::Command(
                "rm -f sh/aliases; echo evil > sh/aliases; echo END > sh/deep/a || exit; \
                 mv sh away && mkdir sh && echo evil > sh/aliases",
            ),
        },
        Dotfiles {
            links: &[(".bash_aliases", "dot/cur/aliases"), ("dot/cur", "v1")],
            files: &["v1/aliases", "v2/x"],
            evil: Evil::Command("echo evil > v2/aliases; rm cur; ln -sfn v2 cur; mv -T v2 cur"),
        },
        Dotfiles { links: missing, files: &[], evil: Evil::Command("echo evil > aliases") },
        Dotfiles {
            links: &[(".bash_aliases", "dot/more/aliases")],
            files: &[],
            evil: Evil::Command(
                "chmod 755 more; mkdir more; echo evil > more/aliases; \
                 mv more x || rmdir more; mkdir more; echo evil > more/aliases",
            ),
        },
        Dotfiles {
            links: &[(".bash_aliases", "dot/a/../aliases")],
            files: &["aliases", "a/x"],
            evil: Evil::Command(
                "mkdir -p b/c; echo evil > b/aliases; echo END > a/new; \
                 mv a x; rmdir a; ln -sfn b/c a",
            ),
        },
        Dotfiles {
            links: &[(".bash_aliases", "dot/no/../aliases")],
            files: &[],
            evil: Evil::Command(
                "mkdir -p b/c; echo evil > b/aliases; mv no x || rmdir no; ln -s b/c no",
            ),
        },
        Dotfiles {
            links: &[(".config/git/config", "dot/gc")],
            files: &[],
            evil: Evil::Command("rm -rf gc; echo evil > gc; git status"),
        },
        Dotfiles { links: missing, files: &[], evil: Evil::Write("aliases") },
        Dotfiles {
            links: &[(".gitconfig", "dot/gitconfig")],
            files: &[],
            evil: Evil::Write("gitconfig"),
        },
        Dotfiles {
            links: &[(".bash_aliases", "dot/a"), ("dot/a", "b"), ("dot/b", "c")],
            files: &[],
            evil: Evil::Write("c"),
        },
    ];
    for layout in layouts {
        let obeyed = layout.links[0].0;
        check(layout, obeyed).await;
    }
}

/// Folders of the home folder may be links as well, and hold links themselves.
#[tokio::test]
async fn no_link_in_a_linked_folder_is_changed_nor_what_it_leads_to() {
    let fish = &[(".config/fish", "dot/fish"), ("dot/fish/config.fish", "../sh/c")];
    let settings = ".config/fish/config.fish";
    let layouts = [
        (settings, fish, &["sh/x"][..], Evil::Command("echo evil > sh/c")),
        (settings, fish, &["sh/x"], Evil::Write("sh/c")),
        (
            ".config/posse/agents/g.md",
            &[(".config/posse/agents", "dot/ag"), ("dot/ag/g.md", "../sh/g.md")],
            &["sh/g.md"],
            Evil::Command("echo evil > sh/g.md"),
        ),
        (
            ".config/posse/agents/sub/g.md",
            &[(".config/posse/agents/sub", "dot/ag/sub"), ("dot/ag/sub/g.md", "../../sh/g.md")],
            &["sh/g.md"],
            Evil::Write("sh/g.md"),
        ),
        (
            ".zsh/rc",
            &[(".zsh", "dot/zsh"), ("dot/zsh/rc", "../sh/rc")],
            &["sh/rc"],
            Evil::Command("echo evil > sh/rc"),
        ),
    ];
    for (obeyed, links, files, evil) in layouts {
        check(Dotfiles { links, files, evil }, obeyed).await;
    }
    let chain = Dotfiles {
        links: &[
            (".config/fish", "dot/fish"),
            ("dot/fish/config.fish", "../sh/c"),
            ("dot/sh/c", "c.linux"),
        ],
        files: &["sh/c.linux"],
        evil: Evil::Command("rm sh/c; echo evil > sh/c"),
    };
    check(chain, settings).await;
}

/// Lets an agent try, and then work. What the user's programs find at `obeyed_at` stays the user's.
async fn check(layout: Dotfiles, obeyed_at: &str) {
    let Dotfiles { links, files, evil } = layout;
    let (call, told) = match evil {
        Evil::Command(evil) => (bash(evil), evil),
        Evil::Write(path) => {
            (Reply::tool_call("Write", json!({"file_path": path, "content": "evil"})), path)
        }
    };
    let work =
        "echo more >> notes; echo END > sub/other; git add -A; git commit -qm x && echo kept";
    let turns = [call, bash(work), Reply::text("{{last_tool_result}}")];
    let world = World::new(Script::turns(turns)).await;
    let (home, folder) = (world.home(), world.home().join("dot"));
    for file in files.iter().chain(&["notes", "sub/x"]) {
        put(&folder.join(file), "# mine\n");
    }
    for (from, to) in links {
        let to = if from.starts_with("dot/") { Path::new(to).to_owned() } else { home.join(to) };
        std::fs::create_dir_all(home.join(from).parent().unwrap()).unwrap();
        symlink(to, home.join(from)).unwrap();
    }
    let init = "git init -q . && git config user.name A && git config user.email a@b";
    let made = std::process::Command::new("sh").args(["-c", init]).current_dir(&folder).status();
    assert!(made.unwrap().success());
    let mut command = world.command(&["run", "--mode", "bypass", "go"]);
    command.current_dir(&folder);
    let said = started(command).end().await.expect(0).out;
    let obeyed = std::fs::read_to_string(home.join(obeyed_at)).unwrap_or_default();
    assert!(!obeyed.contains("evil"), "{told}: {said}");
    for (from, to) in links.iter().skip(1) {
        assert_eq!(home.join(from).read_link().unwrap(), Path::new(to), "{told}: {said}");
    }
    // Else they work as ever.
    assert!(said.contains("kept"), "{told}: {said}");
    assert!(folder.join("sub/other").exists(), "{told}: {said}");
    let notes = std::fs::read_to_string(folder.join("notes")).unwrap();
    assert_eq!(notes, "# mine\nmore\n", "{told}: {said}");
    let deep = std::fs::read_to_string(folder.join("sh/deep/a"));
    assert!(deep.is_err() || deep.unwrap() == "END\n", "{told}: {said}");
    // Nothing else is there afterwards: no placeholder.
    let is_left = |name: &str| folder.join(name).symlink_metadata().is_ok();
    assert!(!["more", "no", ".claude"].into_iter().any(is_left), "{told}: {said}");
    let new = std::fs::read_to_string(folder.join("a/new"));
    assert!(!files.contains(&"a/x") || new.unwrap() == "END\n", "{told}: {said}");
}

/// After a crash, placeholders are left. The next command removes them, also those of missing folders.
#[tokio::test]
async fn a_placeholder_of_a_missing_folder_does_not_outlive_the_next_command() {
    let world = World::new(Script::turns([bash("true"), Reply::text("done")])).await;
    let (home, folder) = (world.home(), world.home().join("dot"));
    let left = folder.join("sh");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::set_permissions(&left, PermissionsExt::from_mode(0o1555)).unwrap();
    symlink(left.join("aliases"), home.join(".bash_aliases")).unwrap();
    let mut command = world.command(&["run", "--mode", "bypass", "go"]);
    command.current_dir(&folder);
    started(command).end().await.expect(0);
    assert!(!left.exists());
}

/// Agents are told why a command failed in a folder with such a link.
#[tokio::test]
async fn a_command_that_meets_a_link_of_the_user_s_programs_is_told_so() {
    let world = World::new(Script::turns([
        bash("echo x > new; true"),
        Reply::text("{{last_tool_result}}"),
    ]))
    .await;
    let (home, folder) = (world.home(), world.home().join("dot"));
    put(&folder.join("gitconfig.linux"), "[user]\n\tname = Ada\n");
    symlink("gitconfig.linux", folder.join("gitconfig")).unwrap();
    symlink(folder.join("gitconfig"), home.join(".gitconfig")).unwrap();
    let mut command = world.command(&["run", "--mode", "bypass", "go"]);
    command.current_dir(&folder);
    let said = started(command).end().await.expect(0).out;
    assert!(said.contains("gitconfig is a link that the user's programs follow"), "{said}");
    assert!(!folder.join("new").exists(), "{said}");
}

/// Where there are many files beside them, links are found all the same.
#[tokio::test]
async fn links_in_the_home_folder_are_found_beside_thousands_of_files() {
    let linked = [
        (".config/posse/agents/helper.md", "helper.md"),
        (".config/posse/skills/x/SKILL.md", "skill.md"),
        (".vim/plugin/x.vim", "x.vim"),
    ];
    let evil = "for file in helper.md skill.md x.vim; do echo evil > $file; done; echo END > other";
    let world = World::new(Script::turns([bash(evil), Reply::text("done")])).await;
    let (home, folder) = (world.home(), world.home().join("dot"));
    for number in 0..3_200 {
        put(&home.join(format!(".claude/todos/{number}.json")), "");
    }
    for (from, to) in linked {
        put(&folder.join(to), "# mine\n");
        std::fs::create_dir_all(home.join(from).parent().unwrap()).unwrap();
        symlink(folder.join(to), home.join(from)).unwrap();
    }
    let mut command = world.command(&["run", "--mode", "bypass", "go"]);
    command.current_dir(&folder);
    let said = started(command).end().await.expect(0).out;
    for (_, to) in linked {
        let text = std::fs::read_to_string(folder.join(to)).unwrap();
        assert_eq!(text, "# mine\n", "{to}: {said}");
    }
    assert!(folder.join("other").exists(), "{said}");
}

/// With a network, files with secrets are hidden in what commands see of the home folder, too: in what the
/// user shows, and in folders of programs.
#[tokio::test]
async fn with_a_network_secrets_beside_programs_and_in_shown_folders_are_hidden() {
    let secrets = [
        "lib/.env",
        "lib/a/b/c/.env",
        "lib/server.key",
        "lib/id_rsa",
        "lib/credentials.json",
        ".virtualenvs/p/.env",
        ".virtualenvs/p/tls-key.pem",
        "bin/.env",
        "bin/tls.key",
        "opt/tool/.env",
        "certs/tls.key",
    ];
    let meant = [".netrc", "lib/plain", "bin/plain", ".virtualenvs/p/plain", "certs/server.key"];
    let names = secrets.iter().chain(&meant).map(|name| format!("~/{name}"));
    let names: Vec<String> = names.collect();
    let look = format!("for file in {} .env; do cat $file; done; true", names.join(" "));
    let check = async |options: &[&str]| {
        let world =
            World::new(Script::turns([bash(&look), Reply::text("{{last_tool_result}}")])).await;
        let home = world.home();
        for name in secrets.iter().chain(&meant) {
            put(&home.join(name), &format!("TEXT-{name}\n"));
        }
        world.write(".env", "TEXT-own");
        symlink(home.join("certs"), home.join("also-certs")).unwrap();
        symlink(world.work(), home.join("also-work")).unwrap();
        std::fs::create_dir_all(home.join("opt/tool/bin")).unwrap();
        std::fs::create_dir_all(home.join("opt/tool/lib")).unwrap();
        let settings = "[command]\nreadable = [\"~/lib\", \"~/.netrc\", \"~/certs/server.key\"]\n";
        put(&home.join("config/posse/config.toml"), settings);
        let mut run = world.command(&[&["run"], options, &["go"]].concat());
        let path = ["/usr/bin", "/bin"].map(Into::into);
        let own = [home.join("opt/tool/bin"), home.join("bin")];
        run.env("PATH", std::env::join_paths(own.into_iter().chain(path)).unwrap());
        started(run).end().await.expect(0).out
    };
    let said = check(&["--network", "127.0.0.1"]).await;
    for name in secrets {
        assert!(!said.contains(&format!("TEXT-{name}")), "{name}: {said}");
    }
    assert!(!said.contains("TEXT-own"), "{said}");
    for name in meant {
        assert!(said.contains(&format!("TEXT-{name}")), "{name}: {said}");
    }
    for options in [&[][..], &["--network", "127.0.0.1", "--allow", "Read(**/.env)"]] {
        let said = check(options).await;
        assert!(said.contains("TEXT-lib/.env") && said.contains("TEXT-bin/.env"), "{said}");
        assert!(said.contains("TEXT-own"), "{said}");
    }
    let said = check(&["--network", "127.0.0.1", "--allow", "Read(/.env)"]).await;
    assert!(said.contains("TEXT-own"), "{said}");
    for name in secrets {
        assert!(!said.contains(&format!("TEXT-{name}")), "{name}: {said}");
    }
}

/// Who works in the folder of Claude Code's settings, which Posse obeys too, does not change them.
#[tokio::test]
async fn the_user_s_settings_of_claude_code_are_closed() {
    let evil = "echo '{}' > settings.json; mkdir -p agents skills; echo x > agents/x.md; \
        echo x > skills/y; mkdir notes && echo END > notes/f";
    let conversation = Conversation::when(When::any()).reply(bash(evil)).reply(Reply::text("done"));
    let world = World::new(Script::new().conversation(conversation)).await;
    let folder = world.home().join(".claude");
    put(&folder.join("settings.json"), "{\"permissions\": {\"deny\": [\"Read(**/.env)\"]}}");
    let mut command = world.command(&["run", "--mode", "bypass", "go"]);
    command.current_dir(&folder);
    let said = started(command).end().await.expect(0).out;
    let text = std::fs::read_to_string(folder.join("settings.json")).unwrap();
    assert!(text.contains("deny"), "{text}: {said}");
    for made in ["agents/x.md", "skills/y"] {
        assert!(!folder.join(made).exists(), "{made}: {said}");
    }
    assert!(folder.join("notes/f").exists(), "{said}");
}

/// Agents only read the folders that say who may log in, and what agents may do.
#[tokio::test]
async fn a_workspace_that_says_what_agents_may_do_is_only_read() {
    for place in [".config/posse", ".claude/agents", ".ssh"] {
        let write = json!({"file_path": "made", "content": "evil"});
        let conversation = Conversation::when(When::any())
            .reply(bash("echo evil > made2; ls"))
            .reply(Reply::tool_call("Write", write))
            .reply(Reply::text("{{last_tool_result}}"));
        let world = World::new(Script::new().conversation(conversation)).await;
        let folder = world.home().join(place);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = world.command(&["run", "--mode", "bypass", "go"]);
        command.current_dir(&folder);
        let said = started(command).end().await.expect(0).out;
        let names = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(names, 0, "{place}: {said}");
    }
}
