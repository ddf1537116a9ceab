//! Repositories around the workspace, and other programs that run files of the workspace by themselves.

use super::{calling, check, prepared, write};
use crate::world::bash;

/// The workspace is a repository in another one, as a submodule is. The outer one runs files of the inner one.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_where_a_repository_around_its_own_looks() {
    check(&[
        prepared(
            "a setting of the outer repository",
            "script mon; git init -q ..; git -C .. config core.fsmonitor $PWD/mon",
            "script mon false",
            "git -C .. status",
        ),
        prepared(
            "a hook of the outer repository",
            "echo : > x; git init -q ..; mkdir -p ../.git/hooks
             printf '#!/bin/sh\\ncd %s && sh x\\n' ${PWD##*/} > ../.git/hooks/pre-commit
             chmod +x ../.git/hooks/pre-commit",
            "echo PAYLOAD >> x",
            "git -C .. commit -qm y --allow-empty",
        ),
        prepared(
            "hooks of the outer repository, which a link leads to",
            "mkdir hk; script hk/pre-commit; git init -q ..; rm -rf ../.git/hooks
             ln -s $PWD/hk ../.git/hooks",
            "script hk/pre-commit; script hk/commit-msg; chmod +x hk/*",
            "git -C .. commit -qm y --allow-empty",
        ),
        prepared(
            "settings of the outer repository, which a link leads to",
            "git init -q ..; mv ../.git/config gc; ln -s $PWD/gc ../.git/config",
            "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> gc",
            "git -C .. status",
        ),
        prepared(
            "a hook of a template, which is a link",
            "mkdir -p $HOME/.tpl/hooks; git config --global init.templateDir $HOME/.tpl
             script pc; ln -s $PWD/pc $HOME/.tpl/hooks/pre-commit",
            "script pc; chmod +x pc",
            "git init -q $HOME/nr; git -C $HOME/nr commit -qm y --allow-empty",
        ),
        prepared(
            "settings of a template, which a link leads to",
            "mkdir $HOME/.tpl; git config --global init.templateDir $HOME/.tpl
             echo > gc; ln -s $PWD/gc $HOME/.tpl/config",
            "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > gc",
            "git init -q $HOME/nr; git -C $HOME/nr status",
        ),
        prepared(
            "a file that the outer repository includes",
            "git init -q ..; git -C .. config include.path $PWD/missing",
            "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > missing",
            "git -C .. status",
        ),
    ])
    .await;
}

/// Prek obeys its settings in every folder, also in new ones.
#[tokio::test]
async fn settings_of_prek_appear_in_no_folder() {
    let before = "mkdir -p .git/hooks sub; printf '#!/bin/sh\\nexec prek hook-impl\\n' > .git/hooks/pre-commit
        chmod +x .git/hooks/pre-commit; echo old > sub/.pre-commit-config.yaml";
    let calls = vec![
        write("new/prek.toml", "x"),
        bash(
            "mkdir new; echo x > new/.pre-commit-config.yaml; echo x > sub/.pre-commit-config.yaml",
        ),
    ];
    let world = calling(calls, before).await;
    let said = world.run(&["run", "go"]).await.expect(0);
    for name in ["new/prek.toml", "new/.pre-commit-config.yaml"] {
        assert!(!world.work().join(name).exists(), "{name}: {}{}", said.out, said.err);
    }
    assert_eq!(world.read("sub/.pre-commit-config.yaml"), "old\n");
}

/// In a folder from which git takes hooks, agents change nothing.
#[tokio::test]
async fn a_folder_of_hooks_is_only_read() {
    for before in [
        "git config --global core.hooksPath $PWD",
        "git init -q ..; git -C .. config core.hooksPath ${PWD##*/}",
        "git init -q ..; rm -rf ../.git/hooks; ln -s $PWD ../.git/hooks",
        "mkdir $HOME/t; git config --global init.templateDir $HOME/t; ln -s $PWD $HOME/t/hooks",
        "git config --global init.templateDir $PWD",
    ] {
        let calls = vec![write("pre-commit", "one"), bash("echo two > commit-msg")];
        let world = calling(calls, before).await;
        let said = world.run(&["run", "go"]).await.expect(0);
        for name in ["pre-commit", "commit-msg"] {
            assert!(!world.work().join(name).exists(), "{before}: {}{}", said.out, said.err);
        }
    }
}

/// Python imports modules from the folder in which it runs. Hooks and filters run at the top of a checkout.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_where_a_hook_or_a_filter_imports_modules() {
    let hook = |line: &str| {
        let hook = format!(
            "mkdir -p .git/hooks; printf '#!/bin/sh\\n%s\\n' '{line}' > .git/hooks/pre-commit
             chmod +x .git/hooks/pre-commit"
        );
        &*hook.leak()
    };
    let commit = "git commit -qm y --allow-empty";
    // As the hook of pre-commit does it.
    let installed = hook("PYTHON=/usr/bin/python3; exec \"$PYTHON\" -mjson.tool /dev/null");
    let payload = "echo 'import os; os.system(\"PAYLOAD\")' > ";
    let made = |name: &str| &*format!("{payload}{name}").leak();
    check(&[
        prepared("the module itself", hook("python3 -m strip"), made("strip.py"), commit),
        prepared("a package", hook("python3 -m strip"), {
            &*format!("mkdir strip; {payload}strip/__main__.py").leak()
        }, commit),
        prepared("another module", installed, made("argparse.py"), commit),
        prepared("a module of another system", installed, made("nt.py"), commit),
        prepared(
            "the second module",
            hook("python3 -m compileall -q x; python3 -m strip"),
            made("strip.py"),
            commit,
        ),
        prepared(
            "a package around",
            hook("python3 -m tools.check"),
            {
                &*format!("mkdir tools; {payload}tools/__init__.py; : > tools/check.py").leak()
            },
            commit,
        ),
        prepared("its input", hook("echo import argparse | python3"), made("argparse.py"), commit),
        prepared("a text", hook("python3 -c \"import argparse\""), made("argparse.py"), commit),
        prepared(
            "a filter",
            "git config filter.x.clean 'python3 -m json.tool'; echo '*.j filter=x' > .gitattributes",
            made("argparse.py"),
            "echo 1 > a.j; git add a.j",
        ),
    ])
    .await;
}

/// Direnv loads `.envrc` when the user enters the folder, mise its own files, and lefthook runs scripts.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_where_direnv_mise_or_lefthook_look() {
    let direnv =
        "source_env() { . ./$1; }; source_env_if_exists() { [ ! -e $1 ] || . ./$1; }; . ./.envrc";
    check(&[
        prepared("direnv", "echo : > x; echo 'source_env x' > .envrc", "echo PAYLOAD > x", direnv),
        prepared(
            "direnv, a missing file",
            "echo 'source_env_if_exists x' > .envrc",
            "echo PAYLOAD > x",
            direnv,
        ),
        prepared(
            "mise",
            "",
            "mkdir .config; echo PAYLOAD > .config/mise.toml; echo PAYLOAD > mise.test.toml",
            "for f in .config/mise.toml mise.test.toml; do [ ! -e $f ] || sh $f; done",
        ),
        prepared(
            "lefthook",
            "printf 'source_dir: tools/hooks\\n' > lefthook.yml; mkdir -p tools/hooks/pre-commit .git/hooks
             printf '#!/bin/sh\\nlefthook run pre-commit\\n' > .git/hooks/pre-commit",
            "echo PAYLOAD > tools/hooks/pre-commit/x",
            "[ ! -e tools/hooks/pre-commit/x ] || sh tools/hooks/pre-commit/x",
        ),
    ])
    .await;
}

/// File tools refuse the same files. What lies beside them stays open.
#[tokio::test]
async fn file_tools_make_none_of_these_files_and_leave_those_beside_them_open() {
    let before = "echo 'source_env_if_exists x; watch_file y' > .envrc";
    let closed = ["x", ".tool-versions", ".config/mise/config.toml", "mise/config.test.toml"];
    let open = ["y", ".config/nextest.toml", "mise/notes.toml"];
    let mut calls: Vec<_> = closed.iter().chain(&open).map(|path| write(path, "one")).collect();
    calls.push(bash("echo two > y; echo two > .config/nextest.toml"));
    let world = calling(calls, before).await;
    let said = world.run(&["run", "go"]).await.expect(0).out;
    for name in closed {
        assert!(!world.work().join(name).exists(), "{name}: {said}");
    }
    assert_eq!(open.map(|name| world.read(name)), ["two\n", "two\n", "one"], "{said}");
}
