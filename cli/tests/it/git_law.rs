//! The law about git: nothing that an agent wrote runs when the user calls git afterwards.
//!
//! Each trick is tried twice with real git: by a plain shell, where it must work, so that the test
//! can fail; and by an agent, where it must come to nothing.

use crate::git::for_nobody;
use crate::world::{World, bash, eventually, mode, started};
use posse_testkit::{Conversation, Reply, Script, When};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// One way to make the user's git run something. `PAYLOAD` stands for a command that leaves a trace
/// where no agent can write.
struct Trick {
    name: &'static str,
    /// What the user has done before, at the top of a repository with a commit.
    before: &'static str,
    /// What the agent's command does there.
    agent: &'static str,
    /// What the user does then.
    user: &'static str,
}

const fn trick(name: &'static str, agent: &'static str, user: &'static str) -> Trick {
    Trick { name, before: "", agent, user }
}

const fn prepared(
    name: &'static str,
    before: &'static str,
    agent: &'static str,
    user: &'static str,
) -> Trick {
    Trick { name, before, agent, user }
}

/// For the agent, and for the plain shell in its place: `mk` makes a repository with a commit and a file;
/// `set` writes a setting, without git's help.
const WORDS: &str = r#"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
mk() { git init -q -b main "$1" && echo one > "$1/f" && git -C "$1" add f && git -C "$1" commit -qm x; }
script() { printf '#!/bin/sh\nPAYLOAD\n%s\n' "$2" > "$1"; chmod +x "$1"; }
"#;

/// For the user.
const USER: &str = "export GIT_EDITOR=true GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u \
    GIT_COMMITTER_NAME=u GIT_COMMITTER_EMAIL=u\n";

/// A nested repository that the outer one names in its index: git enters it by itself.
const GITLINKS: &[Trick] = &[
    trick(
        "fsmonitor, status",
        "mk s; git -C s config core.fsmonitor 'PAYLOAD; false'; git add s",
        "git status",
    ),
    trick(
        "fsmonitor, diff",
        "mk s; git -C s config core.fsmonitor 'PAYLOAD; false'; git add s",
        "git diff",
    ),
    trick(
        "fsmonitor, commit",
        "mk s; git -C s config core.fsmonitor 'PAYLOAD; false'; git add s; git commit -qm s",
        "git commit --allow-empty -qam x",
    ),
    trick(
        "clean filter",
        "mk s; git add s; git -C s config filter.x.clean 'PAYLOAD; cat'; \
         echo '* filter=x' > s/.git/info/attributes; echo two > s/f",
        "git status",
    ),
    trick(
        "process filter",
        "mk s; git add s; git -C s config filter.x.process 'PAYLOAD; false'; \
         echo '* filter=x' > s/.gitattributes; echo two > s/f",
        "git status",
    ),
    trick(
        "post-index-change",
        "mk s; git add s; script s/.git/hooks/post-index-change; touch -d 2001-01-01 s/f",
        "git status; git -C s update-index --refresh",
    ),
    trick(
        "hooks elsewhere",
        "mk s; git add s; mkdir h; script h/post-index-change; git -C s config core.hooksPath ../h; touch -d 2001-01-01 s/f",
        "git status; git -C s update-index --refresh",
    ),
    trick(
        "include",
        "mk s; git add s; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > evil; git -C s config include.path ../../evil",
        "git status",
    ),
    trick(
        "includeIf",
        "mk s; git add s; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > evil; git -C s config 'includeIf.gitdir:/**.path' ../../evil",
        "git status",
    ),
    trick(
        "settings of a worktree",
        "mk s; git add s; git -C s config extensions.worktreeConfig true; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > s/.git/config.worktree",
        "git status",
    ),
    trick(
        "a file .git",
        "git init -q --separate-git-dir data s; cd s; git commit -qm x --allow-empty; git config core.fsmonitor 'PAYLOAD; false'; cd ..; git add s",
        "git status",
    ),
    trick(
        "a link .git",
        "mk s; mv s/.git data; ln -s ../data s/.git; git add s; git -C s config core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
    trick(
        "data in the scratch folder",
        "mk $TMPDIR/e; mkdir s; echo \"gitdir: $TMPDIR/e/.git\" > s/.git; git add s; git -C s config core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
    trick(
        "a link to the scratch folder",
        "mk $TMPDIR/e; mkdir s; ln -s $TMPDIR/e/.git s/.git; git add s; git -C s config core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
    trick(
        "a way through a link with an odd name",
        "mk $TMPDIR/e; n=$(printf 'x\\377'); ln -s $TMPDIR \"$n\"; mkdir s; printf 'gitdir: ../%s/e/.git\\n' \"$n\" > s/.git; \
         git add s; git -C s config core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
    trick(
        "data in common behind a link with an odd name",
        "mk s; git add s; mkdir -p d/c; n=$(printf 'x\\377'); mv s/.git/objects s/.git/refs s/.git/config d/c; ln -s ../../d \"s/.git/$n\"; \
         printf '%s/c\\n' \"$n\" > s/.git/commondir; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> d/c/config",
        "git status",
    ),
    trick(
        "data in common",
        "mk s; git add s; mkdir c; mv s/.git/objects s/.git/refs s/.git/config c; echo ../../c > s/.git/commondir; \
         printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> c/config",
        "git status",
    ),
    trick(
        "settings are a link",
        "mk s; git add s; mv s/.git/config plain; ln -s ../../plain s/.git/config; git config -f plain core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
    trick(
        "a gitlink in a gitlink",
        "mk s; mk s/t; git -C s add t; git -C s commit -qm t; git add s; git -C s/t config core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
    trick(
        "a gitlink far below",
        "mkdir -p a/b/c; mk a/b/c/s; git add a; git -C a/b/c/s config core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
    trick(
        "a folder that cannot be listed",
        "mk s; git add s; git -C s config core.fsmonitor 'PAYLOAD; false'; chmod 311 s s/.git",
        "git status",
    ),
    trick(
        "odd spelling",
        "mk s; git add s; printf '[CORE]FSmonitor=PAYLOAD\\\\\\n;false' >> s/.git/config",
        "git status",
    ),
    trick(
        "a byte order mark",
        "mk s; git add s; printf '\\357\\273\\277[core]\\r\\nfsmonitor = \"PAYLOAD; false\"\\r\\n' > s/.git/config",
        "git status",
    ),
    trick(
        "the gitlink comes with a branch",
        "mk s; git -C s config core.fsmonitor 'PAYLOAD; false'; git add s; git commit -qm s; git rm -q --cached s",
        "git reset -q --hard; git status",
    ),
    trick(
        "data deeper than paths can be",
        "mk e; git -C e config core.fsmonitor 'PAYLOAD; false'; n=$(printf '%0250d' 0); way=; for i in $(seq 14); do way=$way$n/; done; \
         top=$PWD; mkdir -p $way; ln -s $way s1; (cd $way; mkdir -p $way; ln -s $way s2; cd $way; cp -r $top/e/.git g); \
         rm -rf e; mkdir s; ln -s ../s1/s2/g s/.git; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s",
        "git status",
    ),
    trick(
        "data in common up to a NUL",
        "mk s; git add s; mkdir c; mv s/.git/objects s/.git/refs s/.git/config c; printf '../../c\\000/../s/.git' > s/.git/commondir; \
         printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> c/config",
        "git status",
    ),
    prepared(
        "a submodule's file is led elsewhere",
        "mk up; git -c protocol.file.allow=always submodule add -q ./up s; git commit -qm s",
        "mk e; git -C e config core.fsmonitor 'PAYLOAD; false'; echo 'gitdir: ../e/.git' > s/.git",
        "git status",
    ),
    prepared(
        "the user's settings are a link into the workspace",
        "printf '[core]\\n\\tabbrev = 9\\n' > gitconfig; ln -sf \"$PWD/gitconfig\" ~/.gitconfig",
        "printf '[core]\\n\\tfsmonitor = \"PAYLOAD; false\"\\n' >> gitconfig",
        "git status",
    ),
    prepared(
        "a link leads from the path of hooks to the workspace",
        "mkdir hk; ln -sfn \"$PWD\" ~/link; git config core.hooksPath ~/link/hk",
        "script hk/pre-commit",
        "git commit -qm y --allow-empty",
    ),
    prepared(
        "the user's nested repository, settings",
        "mk s; git add s; git commit -qm s",
        "git -C s config core.fsmonitor 'PAYLOAD; false'",
        "git status",
    ),
];

/// The user enters a folder and calls git there, or an editor does.
const BELOW: &[Trick] = &[
    trick(
        "a repository without files",
        "mk s; mv s/.git b; rm -r s; printf '[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = .\\nfsmonitor = \"PAYLOAD; false\"\\n' > b/config",
        "cd b; git status",
    ),
    trick(
        "a repository without files by hand",
        "mkdir -p b/objects b/refs; echo 'ref: refs/heads/x' > b/HEAD; printf '[alias]\\nst = \"!PAYLOAD\"\\n' > b/config",
        "cd b; git st",
    ),
    trick(
        "pre-commit",
        "mk s; script s/.git/hooks/pre-commit",
        "cd s; git commit -qm y --allow-empty",
    ),
    trick(
        "hooks are a link",
        "mk s; rm -rf s/.git/hooks; mkdir h; script h/pre-commit; ln -s ../../h s/.git/hooks",
        "cd s; git commit -qm y --allow-empty",
    ),
    trick(
        "hooks by a template",
        "mkdir -p t/hooks; script t/hooks/pre-commit; git init -q --template t s",
        "cd s; git commit -qm y --allow-empty",
    ),
    trick(
        "textconv",
        "mk s; git -C s config diff.x.textconv 'PAYLOAD; cat'; echo '* diff=x' > s/.gitattributes; echo two > s/f",
        "cd s; git diff",
    ),
    trick(
        "external diff",
        "mk s; git -C s config diff.external 'PAYLOAD; true'; echo two > s/f",
        "cd s; git diff",
    ),
    trick(
        "a driver's command",
        "mk s; git -C s config diff.x.command 'PAYLOAD; true'; echo '* diff=x' > s/.git/info/attributes; echo two > s/f",
        "cd s; git diff",
    ),
    trick(
        "pager",
        "mk s; git -C s config core.pager 'PAYLOAD; cat'",
        "cd s; command script -qec 'git log' /dev/null",
    ),
    trick(
        "pager of a command",
        "mk s; git -C s config pager.log 'PAYLOAD; cat'",
        "cd s; command script -qec 'git log' /dev/null",
    ),
    trick(
        "editor",
        "mk s; git -C s config core.editor 'PAYLOAD; true'",
        "unset GIT_EDITOR; cd s; git commit --allow-empty",
    ),
    trick(
        "editor of a rebase",
        "mk s; git -C s commit -qm y --allow-empty; git -C s config sequence.editor 'PAYLOAD; true'",
        "cd s; git rebase -i HEAD~1",
    ),
    trick(
        "gpg.program",
        "mk s; script evil; git -C s config gpg.program $PWD/evil; git -C s config commit.gpgSign true",
        "cd s; git commit -qm y --allow-empty",
    ),
    trick(
        "sshCommand",
        "mk s; git -C s remote add o ssh://nowhere.invalid/x; git -C s config core.sshCommand 'PAYLOAD; false'",
        "cd s; git fetch o",
    ),
    trick(
        "credential helper",
        "mk s; git -C s config credential.helper '!PAYLOAD'",
        "cd s; printf 'protocol=https\\nhost=x\\n\\n' | GIT_ASKPASS=true git credential fill",
    ),
    trick("alias", "mk s; git -C s config alias.st '!PAYLOAD'", "cd s; git st"),
    trick(
        "merge driver",
        "mk s; cd s; git checkout -qb o; echo two > f; git commit -qam o; git checkout -q main; echo three > f; git commit -qam m; \
         echo '* merge=x' > .git/info/attributes; git config merge.x.driver 'PAYLOAD; true'",
        "cd s; git merge o",
    ),
    trick(
        "difftool",
        "mk s; echo two > s/f; git -C s config difftool.x.cmd 'PAYLOAD'",
        "cd s; git difftool -y -t x",
    ),
    trick(
        "mergetool",
        "mk s; cd s; git checkout -qb o; echo two > f; git commit -qam o; git checkout -q main; echo three > f; git commit -qam m; \
         git merge -q o; git config mergetool.x.cmd 'PAYLOAD'; git config merge.tool x",
        "cd s; git mergetool --no-prompt",
    ),
    trick(
        "smudge filter",
        "mk s; git -C s config filter.x.smudge 'PAYLOAD; cat'; echo 'f filter=x' > s/.git/info/attributes; rm s/f",
        "cd s; git checkout f",
    ),
    trick(
        "a lazy fetch",
        "mk s; mk p; cd s; git remote add o ../p; git config remote.o.promisor true; git config core.repositoryFormatVersion 1; \
         git config extensions.partialClone o; git config remote.o.uploadpack 'PAYLOAD; false'; \
         echo two > f; rm -rf .git/objects/56",
        "cd s; git diff",
    ),
    trick(
        "a transport that is a program",
        "mk s; git -C s config protocol.ext.allow always; git -C s remote add o 'ext::PAYLOAD'",
        "cd s; git fetch o",
    ),
    trick(
        "a trailer",
        "mk s; git -C s config trailer.x.command 'PAYLOAD'",
        "cd s; git commit -qm y --allow-empty --trailer x=1",
    ),
    trick(
        "update of a submodule",
        "mk s; mk u; cd s; git -c protocol.file.allow=always submodule add -q ../u m; git commit -qm m; git -C m commit -qm y --allow-empty; git config submodule.m.update '!PAYLOAD'",
        "cd s; git submodule update",
    ),
    trick(
        "a worktree of a nested repository",
        "mk s; git -C s worktree add -q ../w; git -C s config core.fsmonitor 'PAYLOAD; false'",
        "cd w; git status",
    ),
    trick(
        "a key that ends early",
        "mk s; mk p; printf '[remote \"o\"]\\nurl = ../p\\n[remote \"o.uploadpack\\000\"]\\nfetch = \"PAYLOAD; false\"\\n' >> s/.git/config",
        "cd s; git fetch o",
    ),
    trick(
        "a link to a repository in the scratch folder",
        "mk $TMPDIR/e; ln -s $TMPDIR/e s; git -C s config core.fsmonitor 'PAYLOAD; false'",
        "cd s; git status",
    ),
    trick(
        "a link to a repository in the lasting /tmp",
        "o=$TMPDIR.tmp/tmp; t=/tmp; case $PWD in */control) t=$o; mkdir -p $t;; esac; mk $t/e; ln -s $o/e s; git -C $t/e config core.fsmonitor 'PAYLOAD; false'",
        "cd s; git status",
    ),
    prepared(
        "the user's nested repository, a hook",
        "mk s; printf '#!/bin/sh\\n./lib.sh\\n' > s/.git/hooks/pre-commit; chmod +x s/.git/hooks/pre-commit",
        "script s/.git/hooks/pre-commit; mv s/.git/hooks h; mkdir s/.git/hooks; script s/.git/hooks/pre-commit",
        "cd s; git commit -qm y --allow-empty",
    ),
    prepared(
        "the user's nested repository names a folder of hooks",
        "mk s; git -C s config core.hooksPath .githooks; mkdir s/.githooks",
        "script s/.githooks/pre-commit",
        "cd s; git commit -qm y --allow-empty",
    ),
];

/// The repository of the workspace itself.
const TOP: &[Trick] = &[
    trick("settings", "git config core.fsmonitor 'PAYLOAD; false'", "git status"),
    trick(
        "settings by hand",
        "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> .git/config",
        "git status",
    ),
    trick(
        "pre-commit",
        "mkdir -p .git/hooks; script .git/hooks/pre-commit",
        "git commit -qm y --allow-empty",
    ),
    trick(
        "post-index-change",
        "mkdir -p .git/hooks; script .git/hooks/post-index-change; touch a.txt",
        "git update-index --refresh; git add a.txt",
    ),
    trick(
        "hooksPath",
        "mkdir h; script h/pre-commit; git config core.hooksPath h",
        "git commit -qm y --allow-empty",
    ),
    trick(
        "data in common",
        "mkdir c; cp -r .git/objects .git/refs .git/config c; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> c/config; echo ../c > .git/commondir",
        "git status",
    ),
    trick(
        "another .git",
        "cp -r .git g; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> g/config; mv .git old; mv g .git",
        "git status",
    ),
    trick(
        "a file .git",
        "cp -r .git g; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> g/config; mv .git old; echo 'gitdir: g' > .git",
        "git status",
    ),
    trick(
        "the workspace becomes a repository",
        "cp .git/HEAD HEAD; cp -r .git/objects objects; cp -r .git/refs refs; cp .git/index index; \
         (cat .git/config; printf '[core]\\nworktree = .\\nfsmonitor = \"PAYLOAD; false\"\\n') > config; rm .git/HEAD",
        "git status",
    ),
    trick(
        "settings of a worktree",
        "git config extensions.worktreeConfig true; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > .git/config.worktree",
        "git status",
    ),
    trick(
        "a new worktree",
        "git worktree add -q w; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' >> .git/config",
        "cd w; git status",
    ),
    prepared(
        "an included file",
        "echo '[user]' > .gitconfig; git config include.path ../.gitconfig",
        "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > .gitconfig",
        "git status",
    ),
    prepared(
        "an included file is replaced",
        "mkdir conf; echo '[user]' > conf/git; git config include.path ../conf/git",
        "mv conf old; mkdir conf; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > conf/git",
        "git status",
    ),
    prepared(
        "an included file that was missing",
        "git config include.path ../.gitconfig",
        "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > .gitconfig",
        "git status",
    ),
    prepared(
        "a file that an included one includes",
        "printf '[include]\\npath = more\\n' > .gitconfig; echo > more; git config include.path ../.gitconfig",
        "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > more",
        "git status",
    ),
    prepared(
        "an included file behind a link",
        "mkdir real; echo > real/git; ln -s real conf; git config include.path ../conf/git",
        "rm conf; mkdir conf; printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > conf/git",
        "git status",
    ),
    prepared(
        "included by the user's own settings",
        "git config --global \"includeIf.gitdir:$PWD/.path\" $PWD/team.gitconfig; echo > team.gitconfig",
        "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > team.gitconfig",
        "git status",
    ),
    prepared(
        "the user's folder of hooks",
        "mkdir .githooks; echo exit > .githooks/pre-commit; chmod +x .githooks/pre-commit; git config core.hooksPath .githooks",
        "script .githooks/pre-commit; script .githooks/commit-msg",
        "git commit -qm y --allow-empty",
    ),
    prepared(
        "the user's folder of hooks is missing",
        "git config core.hooksPath .githooks",
        "mkdir .githooks; script .githooks/pre-commit",
        "git commit -qm y --allow-empty",
    ),
    prepared(
        "a hook is a link into the workspace",
        "mkdir -p scripts .git/hooks; echo exit > scripts/check; chmod +x scripts/check; ln -s ../../scripts/check .git/hooks/pre-commit",
        "script scripts/check",
        "git commit -qm y --allow-empty",
    ),
    prepared(
        "a hook runs a program of the workspace",
        "mkdir -p scripts .git/hooks; echo exit > scripts/check; printf 'exec \"$PWD\"/scripts/check\\n' > .git/hooks/pre-commit; chmod +x scripts/check .git/hooks/pre-commit",
        "script scripts/check",
        "git commit -qm y --allow-empty",
    ),
    prepared(
        "a hook runs what a file tells it to",
        "mkdir -p .git/hooks; printf 'test ! -e .pre-commit-config.yaml || . ./.pre-commit-config.yaml # pre-commit\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "echo 'PAYLOAD' > .pre-commit-config.yaml",
        "git commit -qm y --allow-empty",
    ),
    prepared(
        "a hook runs lefthook",
        "mkdir -p .git/hooks; printf 'test ! -e .config/lefthook-local.json || . ./.config/lefthook-local.json # lefthook\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "mkdir .config; echo 'PAYLOAD' > .config/lefthook-local.json",
        "git commit -qm y --allow-empty",
    ),
    prepared(
        "a setting names a program by a variable",
        "mkdir scripts; printf '#!/bin/sh\\ncat\\n' > scripts/conv; chmod +x scripts/conv; git config diff.x.textconv '$PWD/scripts/conv'",
        "script scripts/conv cat; echo '* diff=x' > .gitattributes; echo two > a.txt",
        "git diff",
    ),
    prepared(
        "included by the name of a user",
        "git config include.path \"~$(id -un)/../../../../..$PWD/team.gitconfig\"; echo > team.gitconfig",
        "printf '[core]\\nfsmonitor = \"PAYLOAD; false\"\\n' > team.gitconfig",
        "git status",
    ),
    prepared(
        "hooks for all repositories, in the folder with the data",
        "git config --global core.hooksPath .myhooks",
        "mkdir .git/.myhooks; script .git/.myhooks/reference-transaction",
        "cd .git; git update-ref refs/heads/y HEAD",
    ),
    prepared(
        "hooks for all repositories, in one without files",
        "git config --global core.hooksPath .myhooks",
        "git clone -q --bare . b.git; mkdir b.git/.myhooks; script b.git/.myhooks/reference-transaction",
        "git push -q b.git HEAD:refs/heads/y",
    ),
    trick(
        "a remote as git once kept them",
        "mkdir -p .git/remotes; echo \"URL: $PWD\" > .git/remotes/origin",
        "git ls-remote origin && PAYLOAD",
    ),
    trick(
        "a remote as git kept them before that",
        "mkdir -p .git/branches; echo \"$PWD\" > .git/branches/origin",
        "git ls-remote origin && PAYLOAD",
    ),
    trick(
        "a remote as git once kept them, below",
        "mk s; mkdir -p s/.git/remotes s/.git/branches; echo \"URL: $PWD\" > s/.git/remotes/a; echo \"$PWD\" > s/.git/branches/b",
        "cd s; (git ls-remote a || git ls-remote b) && PAYLOAD",
    ),
    prepared(
        "a worktree of another repository of the user's",
        "git clone -q . $TMPDIR/other$$; git -C $TMPDIR/other$$ config core.hooksPath .hooks; git -C $TMPDIR/other$$ worktree add -q $PWD/w; mkdir w/.hooks",
        "script w/.hooks/pre-commit",
        "cd w; git commit -qm y --allow-empty",
    ),
    prepared(
        "a filter of the user's is a file of the workspace",
        "mkdir scripts; printf '#!/bin/sh\\ncat\\n' > scripts/clean; chmod +x scripts/clean; git config filter.x.clean scripts/clean",
        "script scripts/clean cat; echo '* filter=x' > .gitattributes; echo two > a.txt",
        "git diff",
    ),
    prepared(
        "a diff of the user's is a script of the workspace",
        "echo true > d.sh; git config diff.external 'sh d.sh'",
        "script d.sh; echo two > a.txt",
        "git diff",
    ),
    prepared(
        "the user names a folder of hooks for all repositories",
        "git config --global core.hooksPath .myhooks",
        "mk s; mkdir s/.myhooks; script s/.myhooks/pre-commit",
        "cd s; git commit -qm y --allow-empty",
    ),
    prepared(
        "a link that git writes through",
        "mkdir -p .git/hooks; echo exit > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
        "git commit -qm 'PAYLOAD' --allow-empty; rm -f .git/COMMIT_EDITMSG; ln -s hooks/post-commit .git/COMMIT_EDITMSG",
        "git commit --amend -q --no-edit --allow-empty",
    ),
];

/// Runs `script` as a plain shell would, in `folder`.
fn shell(world: &World, folder: &Path, script: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-c", script]).current_dir(folder).env_clear();
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", world.home());
    command.env("TMPDIR", world.folder.path().join("tmp")).env("GIT_CONFIG_NOSYSTEM", "1");
    command.stdin(std::process::Stdio::null()).output().unwrap()
}

/// A repository with a commit at `folder`, as the user has it.
fn set_up(world: &World, folder: &Path, before: &str) {
    std::fs::create_dir_all(world.folder.path().join("tmp")).unwrap();
    std::fs::create_dir_all(folder).unwrap();
    let made = shell(
        world,
        folder,
        &format!(
            "{WORDS}\nset -e\ngit init -q -b main; git config user.name u; git config user.email u\n\
             echo one > a.txt; git add a.txt; git commit -qm first\n{before}"
        ),
    );
    assert!(made.status.success(), "{before}: {made:?}");
}

/// Whether the trick works with a plain shell, and whether it does with an agent; and what was said.
async fn tried(trick: &Trick) -> (bool, bool, String) {
    let Trick { before, agent, user, .. } = trick;
    let reply = Reply::text("{{last_tool_result}}");
    // The world must be there before the model knows what to say.
    let canary = |world: &World| world.folder.path().join("canary");
    let script = format!("{WORDS}\n{agent}");
    let world = World::saying("x").await;
    let payload = |world: &World, text: &str| {
        text.replace("PAYLOAD", &format!("touch {}", canary(world).display()))
    };
    let control = world.folder.path().join("control");
    set_up(&world, &control, before);
    shell(&world, &control, &payload(&world, &script));
    let _ = std::fs::remove_file(canary(&world));
    let user = payload(&world, &format!("{USER}{user}"));
    shell(&world, &control, &user);
    let works = canary(&world).exists();
    // The agent's script has to name the canary of its own world.
    let name = world.folder.path().join("canary");
    let turns = [bash(&payload(&world, &script)), reply];
    let other = World::new(Script::turns(turns)).await;
    set_up(&other, &other.work(), before);
    let _ = std::fs::remove_file(&name);
    let said = other.run(&["run", "go"]).await.expect(0).out;
    let early = name.exists();
    let done = shell(&other, &other.work(), &user);
    (works, early || name.exists(), format!("{said}\n{done:?}"))
}

async fn check(tricks: &[Trick]) {
    let mut wrong = Vec::new();
    for trick in tricks {
        let (works, got_through, said) = tried(trick).await;
        if !works {
            wrong.push(format!("{}: does not work with a plain shell", trick.name));
        }
        if got_through {
            wrong.push(format!("{}: works for an agent:\n{said}", trick.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), tricks.len(), wrong.join("\n"));
}

#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_repository_which_git_enters_by_itself() {
    check(GITLINKS).await;
}

#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_repository_which_the_user_enters() {
    check(BELOW).await;
}

#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_the_repository_of_the_workspace() {
    check(TOP).await;
}

/// However a hook of the user's names a script of the workspace, an agent cannot change it.
#[tokio::test]
async fn nothing_runs_that_an_agent_put_into_a_script_which_a_hook_names() {
    let lines = [
        "sh scripts/x",
        ". scripts/x",
        "\"$ROOT/scripts/x\"",
        "${ROOT}/scripts/x",
        "\"$(dirname \"$0\")/../../scripts/x\"",
        "cd scripts && ./x",
        "cd \"$ROOT/scripts\" && sh x",
        "exec TOP/scripts/x",
        "DIR=scripts; cd $DIR; . ./x",
        "cd \"$(git rev-parse --show-toplevel 2>/dev/null || pwd)/scripts\" && ./x",
        "D=\"$(git rev-parse --path-format=absolute --show-toplevel 2>/dev/null)/scripts\"; cd \"$D\"; ./x",
    ];
    let tricks = lines.map(|line| {
        let hook = format!(
            "mkdir -p scripts .git/hooks; echo exit > scripts/x; chmod +x scripts/x\n\
             printf '#!/bin/sh\\nROOT=$PWD\\n%s\\n' '{line}' | sed \"s,TOP,$PWD,\" > .git/hooks/pre-commit\n\
             chmod +x .git/hooks/pre-commit"
        );
        let hook = match line.contains("sh ") || line.contains(". ") {
            true => format!("{hook}; chmod -x scripts/x"),
            false => hook,
        };
        prepared(line, hook.leak(), "script scripts/x", "git commit -qm y --allow-empty")
    });
    check(&tricks).await;
}

/// A world in which an agent makes these calls in a repository with a commit.
async fn calling(calls: Vec<Reply>, before: &str) -> World {
    let conversation = calls.into_iter().fold(Conversation::when(When::any()), Conversation::reply);
    let conversation = conversation.reply(Reply::text("{{last_tool_result}}"));
    let world = World::new(Script::new().conversation(conversation)).await;
    set_up(&world, &world.work(), before);
    world
}

fn write(path: &str, content: &str) -> Reply {
    Reply::tool_call("Write", json!({"file_path": path, "content": content}))
}

/// What the tools for files write, they do not write where git runs or obeys it.
#[tokio::test]
async fn file_tools_write_nothing_that_git_runs_or_obeys() {
    let before = "mkdir -p s/objects s/refs .githooks t h; echo 'ref: refs/heads/x' > s/HEAD
        cp s/HEAD h/HEAD; echo > h/config
        mk n; mkdir n/.myhooks; git -C n config core.hooksPath .myhooks
        git config core.hooksPath .githooks; git config include.path ../conf/missing";
    let refused = [
        "s/config",
        "s/hooks/pre-commit",
        "s/commondir",
        "h/commondir",
        "h/refs/heads/x.txt",
        "h/objects/info/x",
        "n/.git/config",
        "n/.git/hooks/pre-commit",
        "n/.git/info/attributes",
        "n/.myhooks/pre-commit",
        "new/.git/config",
        "new/.GIT/config",
        "new/.git",
        "t/HEAD",
        ".githooks/pre-commit",
        "conf/missing",
        ".git/config",
        ".git/hooks/pre-commit",
        // As Vim reads it where the user has set `exrc`.
        "_vimrc",
        "_gvimrc",
    ];
    let allowed = ["t/config", "t/head.txt", "n/file", "conf/other", "hooks/a", "t/objects/a"];
    let calls = refused.iter().chain(&allowed).map(|path| write(path, "x\n")).collect();
    let world = calling(calls, before).await;
    world.run(&["run", "go"]).await.expect(0);
    let requests = world.fake.requests();
    let results: Vec<String> = requests.iter().flat_map(|it| it.tool_results()).collect();
    for (path, result) in refused.iter().zip(&results) {
        assert!(result.contains("run or obeyed outside"), "{path}: {result}");
        assert_ne!(world.read(path), "x\n", "{path}");
    }
    for (path, result) in allowed.iter().zip(&results[refused.len()..]) {
        assert_eq!(world.read(path), "x\n", "{path}: {result}");
    }
}

/// One tool prepares what the other uses: a command leaves links, and `Write` follows them.
#[tokio::test]
async fn what_commands_and_file_tools_do_together_comes_to_nothing() {
    let canary = "[core]\nfsmonitor = \"touch CANARY; false\"\n";
    // What the command does, and what is written then.
    let tricks = [
        ("mk s; git add s; mv s/.git d; ln -s ../d s/.git", "d/config"),
        ("mk s; git add s; mv s/.git/config c; ln -s ../../c s/.git/config", "c"),
        ("mk s; git add s; mv s/.git/config c; ln c s/.git/config", "c"),
        (
            "mk s; git add s; mkdir c; mv s/.git/objects s/.git/refs s/.git/config c; \
             echo ../../c > s/.git/commondir",
            "c/config",
        ),
        ("mk s; git add s; git -C s config include.path ../../c; touch c", "c"),
    ];
    for (command, path) in tricks {
        let world = World::saying("x").await;
        let trace = world.folder.path().join("canary");
        let content = canary.replace("CANARY", &trace.display().to_string());
        let read = Reply::tool_call("Read", json!({"file_path": path}));
        let command = bash(&format!("{WORDS}\n{command}"));
        let world = calling(vec![command, read, write(path, &content)], "").await;
        world.run(&["run", "go"]).await.expect(0);
        let done = shell(&world, &world.work(), &format!("{USER}git status; cd s; git status"));
        assert!(!trace.exists(), "{path}: {:?} {done:?}", world.fake.last_request().tool_results());
    }
}

/// The data of a submodule and of a worktree are not where the files are, which their hooks run.
#[tokio::test]
async fn file_tools_change_no_script_that_a_hook_of_a_submodule_or_a_worktree_runs() {
    let before = "mkdir scripts; printf '#!/bin/sh\n' > scripts/check; chmod +x scripts/check
        git add .; git commit -qm scripts; git clone -q . ../other
        git -c protocol.file.allow=always submodule add -q $PWD/../other m; git commit -qm m
        git worktree add -q .worktrees/w; mkdir -p .git/hooks .git/modules/m/hooks
        echo 'exec scripts/check' | tee .git/hooks/pre-commit > .git/modules/m/hooks/pre-commit
        git clone -q ../other l; mv l/.git l-data; ln -s ../l-data l/.git
        echo 'exec scripts/check' > l-data/hooks/pre-commit";
    let refused = ["m/scripts/check", ".worktrees/w/scripts/check", "l/scripts/check"];
    let allowed = ["m/scripts/other", ".worktrees/w/a.txt", "l/a.txt"];
    let read = |path: &str| Reply::tool_call("Read", json!({"file_path": path}));
    let paths = || refused.iter().chain(&allowed);
    let reads = paths().filter(|path| !path.ends_with("other")).map(|path| read(path));
    let calls = reads.chain(paths().map(|path| write(path, "evil\n"))).collect();
    let world = calling(calls, before).await;
    world.run(&["run", "go"]).await.expect(0);
    let requests = world.fake.requests();
    let results: Vec<String> = requests.iter().flat_map(|it| it.tool_results()).collect();
    for path in refused {
        assert_eq!(world.read(path), "#!/bin/sh\n", "{path}: {results:?}");
    }
    for path in allowed {
        assert_eq!(world.read(path), "evil\n", "{path}: {results:?}");
    }
}

/// A command leaves a repository but for the folders that make it one, and `Write` adds these.
#[tokio::test]
async fn what_a_command_has_begun_no_file_tool_makes_a_repository() {
    let traces = World::saying("x").await;
    for setting in ["fsmonitor = \\\"touch CANARY; false\\\"", "hooksPath = ../h"] {
        let trace = traces.folder.path().join("canary");
        let begun = format!(
            "{WORDS}\nmkdir -p b s h; cp .git/HEAD b/HEAD; echo 'gitdir: ../b' > s/.git\n\
             printf \"[core]\nrepositoryformatversion = 0\nbare = false\n{setting}\n\" > b/config\n\
             script h/post-index-change; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),s"
        );
        let begun = begun.replace("CANARY", &trace.display().to_string());
        let begun = begun.replace("PAYLOAD", &format!("touch {}", trace.display()));
        let calls =
            vec![bash(&begun), write("b/refs/heads/x.txt", "x"), write("b/objects/info/x", "x")];
        let world = calling(calls, "").await;
        world.run(&["run", "go"]).await.expect(0);
        assert!(world.work().join("b/HEAD").exists(), "it means something");
        let done = shell(&world, &world.work(), &format!("{USER}git status; cd s; git add ."));
        assert!(
            !trace.exists(),
            "{setting}: {:?} {done:?}",
            world.fake.last_request().tool_results()
        );
        assert!(!world.work().join("b/refs").exists() && !world.work().join("b/objects").exists());
    }
}

#[tokio::test]
async fn the_agent_learns_what_was_set_aside_and_nothing_is_lost() {
    let command = format!(
        "{WORDS}\nmk s; git -C s config core.fsmonitor evil; git -C s config user.name kept; \
         script s/.git/hooks/pre-commit; ln -s /etc/passwd .git/FETCH_HEAD"
    );
    let world = calling(vec![bash(&command)], "").await;
    let exit = world.run(&["run", "go"]).await.expect(0);
    for part in ["core.fsmonitor in s/.git/config", "s/.git/hooks", "the link .git/FETCH_HEAD"] {
        assert!(exit.out.contains("[set aside: ") && exit.out.contains(part), "{part}: {exit:?}");
        assert!(exit.err.contains("  set aside: ") && exit.err.contains(part), "{part}: {exit:?}");
    }
    let config = world.read("s/.git/config");
    assert!(config.contains("name = kept") && !config.contains("evil"), "{config}");
    assert!(world.read("s/.git/config.set-aside").contains("evil"));
    assert!(world.work().join("s/.git/hooks.set-aside/pre-commit").exists());
    assert!(world.work().join(".git/FETCH_HEAD").symlink_metadata().is_err());
}

/// What people and agents do every day goes on as before.
#[tokio::test]
async fn ordinary_work_in_repositories_below_the_workspace_does_not_suffer() {
    let before = "git clone -q . ../other
        mk n; git -C n config core.fsmonitor false; git -C n config alias.st status
        git -C n config diff.x.textconv cat; printf '#!/bin/sh\\ntouch ran\\n' > n/.git/hooks/post-commit
        chmod +x n/.git/hooks/post-commit; echo n >> .git/info/exclude
        git -c protocol.file.allow=always submodule add -q $PWD/../other m; git commit -qm m
        git worktree add -q ../apart; mkdir -p fixture/objects fixture/refs
        echo x > fixture/HEAD; printf '[core]\\nfsmonitor = kept\\n' > fixture/config";
    let work = "set -e
        git init -q -b main new; cd new; git config user.name n; git config user.email e
        git remote add origin https://example.org/x.git; echo a > f; git add f; git commit -qm first
        git config commit.gpgsign false; git config core.hooksPath /dev/null; git checkout -qb b; cd ..
        git clone -q . copy; git clone -q --bare . bare.git; git -C copy log --format=copy:%s
        git -C copy config user.name n; git -C copy config user.email e
        git -C copy commit -qm inner --allow-empty; git -C copy push -q ../bare.git HEAD:refs/heads/x
        mk u; mk v; git -C v -c protocol.file.allow=always submodule add -q $PWD/u m
        git -C v commit -qm m; git -C v worktree add -q ../v-apart; git -C v/m status
        git -c protocol.file.allow=always clone -q --recurse-submodules v v-copy
        git clone -q u /tmp/c; git -C /tmp/c worktree add -q /tmp/c-apart; git -C /tmp/c-apart status
        git submodule status; git status --short; echo two > m/a.txt; git -C m diff --stat
        echo three > n/f; git -C n commit -qam changed; git -C n st --short
        echo two > a.txt; git commit -qam second; git log -1 --format=then:%s; echo END";
    let world = calling(vec![bash(&format!("{WORDS}\n{work}"))], before).await;
    let names = ["n/.git/config", "n/.git/hooks/post-commit", "m/.git", "fixture/config"];
    let kept: Vec<String> = names.iter().map(|name| world.read(name)).collect();
    let said = world.run(&["run", "go"]).await.expect(0).out;
    for part in ["copy:first", "a.txt | 2 +-", "then:second", "END"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("set aside"), "{said}");
    for (name, before) in names.iter().zip(kept) {
        assert_eq!(world.read(name), before, "{name}");
    }
    assert!(world.work().join("n/ran").exists(), "a hook of the user's runs in the sandbox");
    let user =
        "set -e; git status --short; git -C new log --format=new:%s; git -C new config user.name
        git -C copy status; git -C bare.git log -1 --format=bare:%s x; git submodule update
        git -C m checkout -q a.txt; git -c protocol.file.allow=always submodule update --remote
        git -C n st; git -C ../apart status; git -C v/m status; git -C v-apart status
        git -C v-copy submodule status; git -C new remote -v; echo END";
    let done = shell(&world, &world.work(), &format!("{USER}{user}"));
    let out = String::from_utf8_lossy(&done.stdout);
    for part in ["new:first", "bare:inner", "example.org/x.git", "END"] {
        assert!(out.contains(part), "{part}: {done:?}");
    }
    assert!(world.read("new/.git/config").contains("hooksPath = /dev/null"));
}

/// A mount stays with the file that it covers. If the user replaces that file while a command runs, as
/// `git config` does, the command reaches the new one.
#[tokio::test]
async fn what_a_command_writes_where_the_user_took_a_wall_down_is_set_aside() {
    let waits = format!(
        "{WORDS}\necho > up; until [ -e go ]; do sleep 0.02; done\n\
         git config core.fsmonitor 'touch $HOME/canary; false'; script .git/hooks/post-commit; echo END"
    );
    let before = "mkdir -p .git/hooks; echo exit > .git/hooks/pre-push; git config alias.x log";
    let world = calling(vec![bash(&waits)], before).await;
    let running = world.start(&["run", "go"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    let user = "git config user.email new; git config alias.st status; mv .git/hooks .git/old; mkdir .git/hooks";
    assert!(shell(&world, &world.work(), user).status.success());
    world.write("go", "");
    let said = running.end().await.expect(0).out;
    let config = world.read(".git/config");
    assert!(config.contains("email = new") && !config.contains("fsmonitor"), "{config} {said}");
    assert!(config.contains("x = log"), "what was there before stays: {config}");
    assert!(!world.work().join(".git/hooks/post-commit").exists(), "{said}");
    assert!(said.contains("core.fsmonitor in .git/config"), "{said}");
    // Nobody knows who wrote this one; it is kept beside.
    assert!(world.read(".git/config.set-aside").contains("alias"), "{said}");
}

/// The file stays where it was covered: then nobody but the user can have changed it.
#[tokio::test]
async fn what_the_user_adds_behind_a_wall_while_a_command_runs_stays() {
    let waits = "echo > up; until [ -e go ]; do sleep 0.02; done";
    let world = calling(vec![bash(waits)], "mkdir -p .git/hooks").await;
    let running = world.start(&["run", "go"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    let user =
        "printf '[alias]\\nst = status\\n' >> .git/config; echo exit > .git/hooks/pre-commit";
    assert!(shell(&world, &world.work(), user).status.success());
    world.write("go", "");
    let said = running.end().await.expect(0).out;
    assert!(world.read(".git/config").contains("alias") && !said.contains("set aside"), "{said}");
    assert_eq!(world.read(".git/hooks/pre-commit"), "exit\n");
}

/// A command that is killed with its host leaves nothing either.
#[tokio::test]
async fn a_command_whose_host_dies_leaves_nothing_that_git_runs() {
    let command = format!(
        "{WORDS}\nmk s; git add s; git -C s config core.fsmonitor 'touch $HOME/canary; false'; \
         echo > up; exec sleep 600"
    );
    let world = calling(vec![bash(&command)], "").await;
    let running = world.start(&["run", "go"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    running.signal(rustix::process::Signal::KILL);
    running.end().await;
    let config = || world.read("s/.git/config");
    eventually("it is set aside", async || !config().is_empty() && !config().contains("fsmonitor"))
        .await;
    assert!(world.read("s/.git/config.set-aside").contains("fsmonitor"));
}

/// The process and all below it.
fn tree(top: Pid) -> Vec<Pid> {
    let mut tree = vec![top];
    let mut at = 0;
    while let Some(process) = tree.get(at) {
        let children = format!("/proc/{0}/task/{0}/children", process.as_raw_pid());
        let of_threads = std::fs::read_dir(format!("/proc/{}/task", process.as_raw_pid()));
        let of_threads = of_threads.into_iter().flatten().flatten();
        let files = of_threads.map(|it| it.path().join("children")).chain([children.into()]);
        let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
        let text = texts.collect::<String>();
        let children = text.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?));
        let new: Vec<Pid> = children.filter(|id| !tree.contains(id)).collect();
        tree.extend(new);
        at += 1;
    }
    tree
}

/// Nobody is left to see to it but the next command.
#[tokio::test]
async fn what_a_command_left_when_all_of_posse_was_killed_is_set_aside_by_the_next_one() {
    let plant = format!(
        "{WORDS}\nmk s; git add s; git -C s config core.fsmonitor 'touch $HOME/canary; false'; \
         script s/.git/hooks/pre-commit; mk $TMPDIR/e; git -C $TMPDIR/e config core.pager evil; \
         ln -s $TMPDIR/e e; mkdir .githooks; script .githooks/pre-commit; echo > up; exec sleep 600"
    );
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    let script = Script::new().conversation(says("plant", &plant));
    let world = World::new(script.conversation(says("harmless", "echo END"))).await;
    set_up(&world, &world.work(), "git config core.hooksPath .githooks");
    let running = world.start(&["run", "plant"]);
    eventually("the command runs", async || world.work().join("up").exists()).await;
    // First nobody notices that another dies.
    let all = tree(running.id());
    assert!(all.len() > 3, "there are a host, a guardian, a supervisor, and the command: {all:?}");
    for signal in [Signal::STOP, Signal::KILL] {
        all.iter().for_each(|process| {
            let _ = kill_process(*process, signal);
        });
    }
    running.end().await;
    let evil =
        ["s/.git/config", "s/.git/hooks/pre-commit", "e/.git/config", ".githooks/pre-commit"];
    let is_there = |name: &&&str| {
        let text = world.read(name);
        ["touch", "evil"].iter().any(|part| text.contains(part))
            || name.ends_with("pre-commit") && !text.is_empty()
    };
    assert_eq!(evil.iter().filter(is_there).count(), evil.len(), "the test means something");
    let said = world.run(&["run", "harmless"]).await.expect(0).out;
    assert_eq!(evil.iter().filter(is_there).collect::<Vec<_>>(), Vec::<&&str>::new(), "{said}");
    assert!(said.contains("END") && said.contains("core.fsmonitor in s/.git/config"), "{said}");
    // What comes from the user after that is the user's.
    let user =
        "mkdir -p s/.git/hooks; echo exit > s/.git/hooks/pre-push; git -C s config alias.x log";
    assert!(shell(&world, &world.work(), user).status.success());
    let said = world.run(&["run", "harmless"]).await.expect(0).out;
    assert!(said.contains("END") && !said.contains("set aside"), "{said}");
    assert!(world.work().join("s/.git/hooks/pre-push").exists());
}

/// What one command has put there does not count as the user's for another that begins later.
#[tokio::test]
async fn two_commands_at_the_same_time_do_not_vouch_for_each_other() {
    let wait = |name: &str| format!("until [ -e {name} ]; do sleep 0.02; done");
    let evil = "git -C s config core.fsmonitor 'touch $HOME/canary; false'";
    let first = format!("{WORDS}\nmk s; git add s; {evil}; echo > up-1; {}", wait("go-1"));
    let second = format!("{WORDS}\necho > up-2; {}; {evil}", wait("go-2"));
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    let script = Script::new();
    let script = script.conversation(says("first", &first)).conversation(says("second", &second));
    let world = World::new(script).await;
    set_up(&world, &world.work(), "");
    let is_clean = || !world.read("s/.git/config").contains("fsmonitor");
    let running = world.start(&["run", "first"]);
    eventually("the first runs", async || world.work().join("up-1").exists()).await;
    let other = world.start(&["run", "second"]);
    eventually("the second runs", async || world.work().join("up-2").exists()).await;
    world.write("go-1", "");
    let said = running.end().await.expect(0).out;
    assert!(is_clean() && said.contains("core.fsmonitor"), "{said}");
    world.write("go-2", "");
    let said = other.end().await.expect(0).out;
    assert!(is_clean() && said.contains("core.fsmonitor"), "{said}");
}

/// A repository is protected also while a command has taken it apart: another that runs meanwhile, or
/// comes after it, writes nothing that git obeys once it is whole again.
#[tokio::test]
async fn a_repository_that_a_command_takes_apart_is_protected_all_the_same() {
    let evil = "printf '[core]\nfsmonitor = touch $HOME/canary; false\n' >> .git/config; \
        mkdir -p .git/hooks; script .git/hooks/pre-commit; echo > done";
    for (apart, whole) in [
        ("mv .git/HEAD .git/away", "mv .git/away .git/HEAD"),
        ("mv .git/HEAD .git/away; mkdir .git/HEAD", "rmdir .git/HEAD; mv .git/away .git/HEAD"),
    ] {
        let wait = "until [ -e done ]; do sleep 0.02; done";
        let takes = format!("{apart}; echo > apart; {wait}; {whole}");
        let says = |word: &str, command: &str| {
            let command = format!("{WORDS}\n{command}");
            let conversation = Conversation::when(When::any().first_user_contains(word));
            conversation.reply(bash(&command)).reply(Reply::text("{{last_tool_result}}"))
        };
        let script = Script::new().conversation(says("takes", &takes));
        let world = World::new(script.conversation(says("writes", evil))).await;
        set_up(&world, &world.work(), "mkdir -p .git/hooks");
        let running = world.start(&["run", "takes"]);
        eventually("it is apart", async || world.work().join("apart").exists()).await;
        let said = world.run(&["run", "writes"]).await.expect(0).out;
        assert!(world.work().join("done").exists(), "{said}");
        running.end().await.expect(0);
        assert!(world.work().join(".git/HEAD").is_file(), "{apart}: it is whole again");
        assert!(!world.read(".git/config").contains("fsmonitor"), "{apart}: {said}");
        assert!(!world.work().join(".git/hooks/pre-commit").exists(), "{apart}: {said}");
    }
}

/// The same of repositories elsewhere: the workspace is one without files, or a folder of one, or has one
/// in it; and of scripts that their hooks run.
#[tokio::test]
async fn other_repositories_that_a_command_takes_apart_are_protected_all_the_same() {
    let before = "git clone -q --bare . bare.git; mkdir -p scripts sub/scripts
        mk n; mkdir n/scripts; echo 'exec scripts/check' > n/.git/hooks/pre-commit
        echo 'exec sub/scripts/check' > .git/hooks/pre-commit
        for i in n sub; do echo exit > $i/scripts/check; chmod +x $i/scripts/check; done
        chmod +x .git/hooks/pre-commit n/.git/hooks/pre-commit";
    let folder = |data: &str| {
        let apart = format!("mv {data}/HEAD $TMPDIR/H; mkdir {data}/HEAD");
        (apart, format!("rmdir {data}/HEAD; mv $TMPDIR/H {data}/HEAD"))
    };
    let all = |data: &str| {
        let parts = "HEAD config objects refs";
        let apart = format!("(cd {data}; mkdir $TMPDIR/x; mv {parts} $TMPDIR/x)");
        (apart, format!("mv $TMPDIR/x/* {data}"))
    };
    let bare = (
        "mv HEAD H; mkdir HEAD; mv objects o".to_owned(),
        "rm -rf objects HEAD; mv H HEAD; mv o objects".to_owned(),
    );
    // Where they work, what the first command does, and what the second wants to change.
    let cases = [
        ("bare.git", bare.clone(), "config"),
        ("bare.git", bare, "hooks/reference-transaction"),
        (".", folder("n/.git"), "n/.git/hooks/pre-commit"),
        (".", folder("n/.git"), "n/scripts/check"),
        (".", all("n/.git"), "n/.git/hooks/pre-commit"),
        (".", all("n/.git"), "n/scripts/check"),
        ("sub", folder("../.git"), "scripts/check"),
    ];
    for (at, (apart, whole), file) in cases {
        let takes = format!("{apart}; > apart; until [ -e done ]; do sleep 0.02; done; {whole}");
        let writes = format!("echo '# evil' >> {file}; echo > done");
        let says = |word: &str, command: &str| {
            let conversation = Conversation::when(When::any().first_user_contains(word));
            conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
        };
        let script = Script::new().conversation(says("takes", &takes));
        let world = World::new(script.conversation(says("writes", &writes))).await;
        set_up(&world, &world.work(), before);
        let folder = world.work().join(at);
        let start = |word: &str| {
            let mut command = world.command(&["run", word]);
            command.current_dir(&folder);
            started(command)
        };
        let running = start("takes");
        eventually("it is apart", async || folder.join("apart").exists()).await;
        let said = start("writes").end().await.expect(0).out;
        assert!(folder.join("done").exists(), "{said}");
        let other = running.end().await.expect(0).out;
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        assert!(!text.contains("evil"), "{at}, {apart}, {file}: {said} {other}");
    }
}

/// Git looks further up where a repository has no HEAD. What is around it does not become the agent's
/// because a command takes the repository of the workspace apart.
#[tokio::test]
async fn who_takes_a_repository_apart_does_not_get_the_one_around_it() {
    let reach = "cat ../notes.txt; echo evil > ../.git/made; git -C .. tag evil; echo END";
    for apart in ["mv .git/HEAD $TMPDIR/H", "mv .git/HEAD $TMPDIR/H; chmod 1555 .git"] {
        let reply = Reply::text("{{last_tool_result}}");
        let world = World::new(Script::turns([bash(apart), bash(reach), reply])).await;
        set_up(&world, &world.work(), "echo hunter2 > notes.txt; mk lib");
        let mut command = world.command(&["run", "go"]);
        command.current_dir(world.work().join("lib"));
        let said = started(command).end().await.expect(0).out;
        assert!(!world.work().join("lib/.git/HEAD").exists(), "{apart}: it means something");
        assert!(said.contains("END") && !said.contains("hunter2"), "{apart}: {said}");
        let data = world.work().join(".git");
        assert!(!data.join("made").exists(), "{apart}: {said}");
        assert!(!data.join("refs/tags/evil").exists(), "{apart}: {said}");
    }
}

/// What holds the place of a name while commands run is not set aside when one of them ends: the others
/// still need it.
#[tokio::test]
async fn what_holds_the_place_of_a_name_that_settings_have_is_left_alone() {
    let waits = "echo > up; until [ -e go ]; do sleep 0.02; done; mkdir -p .husky; \
        echo 'touch canary' > .husky/pre-commit; chmod +x .husky/pre-commit; echo END";
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    let script = Script::new().conversation(says("waits", waits));
    let world = World::new(script.conversation(says("quick", "echo END"))).await;
    set_up(&world, &world.work(), "git config core.hooksPath .husky");
    let running = world.start(&["run", "waits"]);
    eventually("the first runs", async || world.work().join("up").exists()).await;
    let said = world.run(&["run", "quick"]).await.expect(0).out;
    assert!(said.contains("END") && !said.contains("set aside"), "{said}");
    world.write("go", "");
    let said = running.end().await.expect(0).out;
    assert!(said.contains("END") && !said.contains("set aside"), "{said}");
    let names = std::fs::read_dir(world.work()).unwrap().flatten().map(|it| it.file_name());
    let litter = names.filter(|name| name.to_string_lossy().contains("husky"));
    assert_eq!(litter.collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
}

/// Who works in a part of the home folder finds the user's own settings there, or could make them.
#[tokio::test]
async fn settings_of_git_and_of_posse_in_a_part_of_the_home_folder_are_closed() {
    for (workspace, has_git) in [(".config", true), (".config", false), (".config/git", true)] {
        let git = if workspace.ends_with("git") { "config" } else { "git/config" };
        let evil = format!(
            "mkdir -p git posse; printf '[core]\\nfsmonitor = evil\\n' >> {git}; \
             echo 'model = \"x/y\"' >> posse/config.toml; mkdir other && echo END > other/f"
        );
        let calls = vec![bash(&evil), write(git, "[core]\n"), write("posse/config.toml", "x")];
        let world = calling(calls, "").await;
        let folder = world.home().join(workspace);
        std::fs::create_dir_all(&folder).unwrap();
        if has_git {
            set_up_settings(&world);
        }
        let mut command = world.command(&["run", "go"]);
        command.current_dir(&folder);
        let said = started(command).end().await.expect(0).out;
        let settings = world.home().join(".config/git/config");
        let text = std::fs::read_to_string(settings).unwrap_or_default();
        assert_eq!(text, if has_git { "[user]\n\tname = u\n" } else { "" }, "{workspace}: {said}");
        let own = world.home().join(workspace).join("posse/config.toml");
        let is_closed = !own.exists() || workspace.ends_with("git");
        assert!(is_closed, "{workspace}: {said}");
        assert!(world.home().join(workspace).join("other/f").exists(), "{workspace}: {said}");
    }
}

/// The same where the settings are a link into the workspace, as people keep them who have a repository
/// of their settings.
#[tokio::test]
async fn settings_that_are_links_into_the_workspace_are_closed() {
    let evil = "mkdir -p config/posse; echo 'model = \"x/y\"' >> config/posse/config.toml; \
        mkdir -p config/git; echo '[core]' >> config/git/config; echo END > other";
    let calls = vec![bash(evil), write("config/posse/config.toml", "model = \"x/y\"")];
    let world = calling(calls, "").await;
    let folder = world.home().join("dotfiles");
    std::fs::create_dir_all(folder.join("config/nvim")).unwrap();
    std::os::unix::fs::symlink("dotfiles/config", world.home().join(".config")).unwrap();
    let mut command = world.command(&["run", "go"]);
    command.current_dir(&folder);
    let said = started(command).end().await.expect(0).out;
    assert!(!folder.join("config/posse/config.toml").exists(), "{said}");
    assert!(!folder.join("config/git/config").exists(), "{said}");
    assert!(folder.join("other").exists(), "{said}");
}

fn set_up_settings(world: &World) {
    let folder = world.home().join(".config/git");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config"), "[user]\n\tname = u\n").unwrap();
}

/// The same where one works in a folder around that of the other, or in another folder of the repository,
/// or in the home folder, which has Posse's own state in it.
#[tokio::test]
async fn commands_in_folders_with_something_in_common_do_not_vouch_for_each_other() {
    let evil = |at: &str| format!("printf '[core]\\nfsmonitor = evil\\n' >> {at}/.git/config");
    let link = "ln -sfn /nowhere ../.git/COMMIT_EDITMSG".to_owned();
    let config = |at: &str| format!("{at}/.git/config");
    let cases = [
        ("work/sub", evil("n"), "work", evil("sub/n"), config("work/sub/n")),
        ("work", evil("sub/n"), "work/sub", evil("n"), config("work/sub/n")),
        ("work/a", link.clone(), "work/b", link, "work/.git/COMMIT_EDITMSG".to_owned()),
        ("home", evil("n"), "home", evil("n"), config("home/n")),
        ("home/p", evil("n"), "home", evil("p/n"), config("home/p/n")),
    ];
    let wait =
        |name: &str| format!("echo > up-{name}; until [ -e go-{name} ]; do sleep 0.02; done");
    for (first, plants, second, plants_again, place) in cases {
        let says = |word: &str, command: String| {
            let conversation = Conversation::when(When::any().first_user_contains(word));
            conversation.reply(bash(&command)).reply(Reply::text("{{last_tool_result}}"))
        };
        let script = Script::new();
        let script = script.conversation(says("first", format!("{plants}; {}", wait("1"))));
        let script = script.conversation(says("second", format!("{}; {plants_again}", wait("2"))));
        let world = World::new(script).await;
        set_up(&world, &world.work(), "mkdir a b; mk sub/n; mk $HOME/n; mk $HOME/p/n");
        let top = world.folder.path().to_owned();
        let is_there = || match std::fs::read_link(top.join(&place)) {
            Ok(_) => true,
            Err(_) => std::fs::read_to_string(top.join(&place)).unwrap().contains("fsmonitor"),
        };
        let start = |word: &str, folder: &str| {
            let mut command = world.command(&["run", word]);
            command.current_dir(top.join(folder));
            started(command)
        };
        let running = start("first", first);
        eventually("the first runs", async || top.join(first).join("up-1").exists()).await;
        assert!(is_there(), "{first}: the test means something");
        let other = start("second", second);
        eventually("the second runs", async || top.join(second).join("up-2").exists()).await;
        std::fs::write(top.join(first).join("go-1"), "").unwrap();
        let said = running.end().await.expect(0).out;
        assert!(said.contains("set aside"), "{first} and {second}: {said}");
        std::fs::write(top.join(second).join("go-2"), "").unwrap();
        let said = other.end().await.expect(0).out;
        assert!(said.contains("set aside"), "{first} and {second}: {said}");
        let is_there = std::fs::read_to_string(top.join(&place));
        let is_there = is_there.is_ok_and(|text| text.contains("fsmonitor"));
        assert!(!is_there && !top.join(&place).is_symlink(), "{first} and {second}: {said}");
    }
}

/// What the user has there stays, whoever works in a folder around it at the same time.
#[tokio::test]
async fn commands_in_folders_with_something_in_common_leave_the_users_repositories_alone() {
    let wait = "echo > up-1; until [ -e go-1 ]; do sleep 0.02; done";
    let says = |word: &str, command: &str| {
        let conversation = Conversation::when(When::any().first_user_contains(word));
        conversation.reply(bash(command)).reply(Reply::text("{{last_tool_result}}"))
    };
    for (first, second) in [("", "sub"), ("sub", ""), ("sub/n", "")] {
        let script = Script::new().conversation(says("first", wait));
        let world = World::new(script.conversation(says("second", "echo END"))).await;
        let before =
            "mk up; mkdir sub; git -c protocol.file.allow=always submodule add -q ./up sub/m
            git worktree add -q sub/w; mk sub/n; git -C sub/n config core.fsmonitor kept
            git clone -q . $TMPDIR/e; git -C $TMPDIR/e worktree add -q $PWD/sub/v
            mkdir -p sub/n/.git/hooks; echo exit > sub/n/.git/hooks/pre-push; git commit -qm m";
        set_up(&world, &world.work(), before);
        let files = ["sub/m/.git", "sub/w/.git", "sub/v/.git", "sub/n/.git/config"];
        let kept = files.map(|name| world.read(name));
        let start = |word: &str, folder: &str| {
            let mut command = world.command(&["run", word]);
            command.current_dir(world.work().join(folder));
            started(command)
        };
        let running = start("first", first);
        let folder = world.work().join(first);
        eventually("the first runs", async || folder.join("up-1").exists()).await;
        let said = start("second", second).end().await.expect(0).out;
        assert!(said.contains("END") && !said.contains("set aside"), "{first}, {second}: {said}");
        std::fs::write(folder.join("go-1"), "").unwrap();
        let said = running.end().await.expect(0).out;
        assert!(!said.contains("set aside"), "{first}, {second}: {said}");
        assert_eq!(files.map(|name| world.read(name)), kept, "{first}, {second}");
    }
}

/// An ordinary user cannot list every folder that git can enter.
#[tokio::test]
async fn a_folder_that_an_ordinary_user_cannot_list_is_looked_into() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let command = format!(
        "{WORDS}\nmk s; git add s; git -C s config core.fsmonitor evil; mkdir s/d; mk s/d/e; \
         script s/d/e/.git/hooks/pre-commit; (for i in $(seq 40); do n=$(printf '%0200d' 0); \
         mkdir $n; cd $n; done); touch s/.git/config.set-aside; chmod 111 s s/.git s/d s/d/e/.git"
    );
    let world = calling(vec![bash(&command)], "").await;
    let mut command = for_nobody(&world);
    command.args(["run", "go"]);
    let said = started(command).end().await.expect(0).out;
    let config = world.read("s/.git/config");
    assert!(config.contains("[core]") && !config.contains("evil"), "{config} {said}");
    assert!(!world.work().join("s/d/e/.git/hooks").exists(), "{said}");
    assert_eq!(mode(&world.work().join("s/.git")), 0o111);
}

/// Nobody can list a folder of somebody else that all may write to. So no command writes there.
#[tokio::test]
async fn a_folder_of_somebody_else_that_cannot_be_listed_takes_nothing() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let command =
        format!("{WORDS}\nmk s; git -C s config core.fsmonitor evil; cp -r s/.git box/g; echo END");
    let world = calling(vec![bash(&command)], "").await;
    let mut command = for_nobody(&world);
    let closed = world.work().join("box");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o733)).unwrap();
    command.args(["run", "go"]);
    let said = started(command).end().await.expect(0).out;
    assert!(said.contains("END") && said.contains("core.fsmonitor in s/.git/config"), "{said}");
    assert!(!closed.join("g").exists() && !said.contains("NOT done"), "{said}");
}
