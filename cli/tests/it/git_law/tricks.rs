//! Every known way to make git run something, as tables.

use super::{Trick, prepared, trick};

/// A nested repository that the outer one names in its index: git enters it by itself.
pub const GITLINKS: &[Trick] = &[
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
pub const BELOW: &[Trick] = &[
    trick(
        "settings that wait for a repository",
        "mkdir -p n/.git; printf '[filter \"x\"]\\nclean = PAYLOAD; cat\\n' > n/.git/config; echo '* filter=x' > n/.gitattributes; echo a > n/f",
        "git init -q n; cd n; git add .",
    ),
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
pub const TOP: &[Trick] = &[
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
        "an alias of the user's sets a diff that is a script of the workspace",
        "mkdir tools; echo exit > tools/d; chmod +x tools/d; git config alias.dd '-c diff.external=./tools/d diff'",
        "script tools/d; echo two > a.txt",
        "git dd",
    ),
    prepared(
        "an alias of the user's sets a monitor that is a script of the workspace",
        "mkdir tools; echo exit > tools/f; chmod +x tools/f; git config alias.st '-c core.fsmonitor=./tools/f status'",
        "script tools/f",
        "git st",
    ),
    prepared(
        "an alias of the user's runs a script of the workspace for each commit",
        "mkdir tools; echo exit > tools/t; chmod +x tools/t; git commit -qm y --allow-empty; git config alias.rt 'rebase --exec ./tools/t'",
        "script tools/t",
        "git rt HEAD~1",
    ),
    prepared(
        "an editor of the user's is a script of the workspace",
        "mkdir tools; echo exit > tools/x; chmod +x tools/x; git commit -qm y --allow-empty; git config sequence.editor ./tools/x",
        "script tools/x",
        "git rebase -i HEAD~1",
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
