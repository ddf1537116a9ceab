## Commands that agents run every day, with a blank line between them. None of them runs curl, rm or
## git push, and none may be refused beside a denial of these.

case "$1" in start) echo go ;; stop|halt) echo no ;; *) echo usage; exit 2 ;; esac

case $(uname -s) in
  Linux*) os=linux ;;
  Darwin*) os=mac ;;
  (*) os=other ;;
esac
echo "$os"

files=(a.txt b.txt); wc -l "${files[@]}"

files=(src/*.rs)
echo "${#files[@]} files, the first is ${files[0]}"
for f in "${files[@]}"; do wc -l "$f"; done

declare -a names=(one two three); for i in "${!names[@]}"; do echo "$i ${names[$i]}"; done

declare -a x; x+=("a b"); printf '%s\n' "${x[@]}"

args=(--release --locked)
cargo build "${args[@]}"

cmd=(cargo test --workspace)
"${cmd[@]}"

make CC=gcc

make -j"$(nproc)" CFLAGS='-O2 -g' V=1 test

make -C sub -f build.mk check

make PREFIX="$HOME/.local" install

node --test

node --test test/*.test.js

node --test --test-reporter=spec "tests/unit.test.mjs"

node --check src/index.js && node --version

git config user.name

git config user.email "a@example.org" && git config --global init.defaultBranch main

git -c user.name=a -c user.email=a@example.org commit -qm "Add std::fmt and 100% more"

for f in *.py; do python3 -m py_compile "$f"; done

for f in tests/*.py; do python3 "$f" || exit 1; done

PY=python3; $PY file.py

PY=.venv/bin/python
"$PY" -m pytest -q tests

if [ -x .venv/bin/python ]; then PY=.venv/bin/python; else PY=python3; fi
$PY -m pytest -x

PY=$(which python3); "$PY" --version; $PY x.py

export PATH="$HOME/.cargo/bin:$PATH"; cargo --version

export PATH=$PATH:/usr/local/go/bin && go test ./...

PATH="$PWD/node_modules/.bin:$PATH" tsc --noEmit

PYTHONPATH=src python3 -m pytest tests -q --cov=src

NODE_OPTIONS=--max-old-space-size=4096 npm test

sqlite3 x.db 'select 1'

sqlite3 -header -column data.db "SELECT name, count(*) FROM users WHERE city = 'X' GROUP BY name;"

sqlite3 x.db .tables

sqlite3 x.db '.schema users'

psql -U app -d app -c 'select count(*) from users'

mysql -u root -e 'show databases'

cargo test -p posse-runtime --lib -- --nocapture policy 2>&1 | tail -40

cargo clippy --all-targets -- -D warnings

cargo +nightly fmt --all -- --check

RUST_BACKTRACE=1 RUST_LOG=debug cargo run --example demo -- --verbose x.toml

CARGO_TARGET_DIR=/tmp/t cargo check

cargo install --path cli

npm test

npm ci && npm run build --if-present

npm run lint -- --fix src

npm init -y

npm install --save-dev typescript@5 @types/node

npm --prefix web run test

npx eslint . --ext .ts,.tsx

npx tsc -p tsconfig.json --noEmit

npm exec -- prettier --check .

yarn install --frozen-lockfile && yarn test --ci

pnpm -r run build

pnpm exec vitest run

bun test

deno test --allow-read

pytest -x -q tests/test_a.py::test_b -k "not slow"

python3 -m venv .venv && . .venv/bin/activate && pip install -r requirements.txt

source .venv/bin/activate; pytest

source "$HOME/.cargo/env" && cargo build

python3 -m unittest discover -s tests -p 'test_*.py'

python3 -m json.tool < package.json

python3 -m http.server 8000 >/dev/null 2>&1 &
SERVER=$!
sleep 1
kill $SERVER

python manage.py migrate && python manage.py test app

uv run pytest -q

poetry run pytest

go build ./... && go vet ./... && go test -race -run TestX ./pkg/...

go run . --help

gofmt -l $(git ls-files '*.go')

jq '.scripts | keys' package.json

jq -r '.[] | select(.a == "b") | .c' x.json | sort | uniq -c | sort -rn | head

awk '{ sum += $3 } END { print sum / NR }' data.txt

awk -F'|' '/foo|bar/ { print $1 "|" $2 }' x.txt

awk -v n="$N" 'NR > n && NR <= n + 5 || /end/ { printf "%s\n", $0 }' "$FILE"

sed -n '10,20p' src/main.rs

start=10; end=20; sed -n "${start},${end}p" src/main.rs

line=$(grep -n 'fn main' src/main.rs | cut -d: -f1); echo "$line"

n=$(wc -l < a.txt); sed -n "$((n - 5)),${n}p" a.txt

sed -i.bak -e 's/a/b/g' -e '/^$/d' $(git ls-files '*.md')

find . -name '*.py' -not -path "./venv/*" -exec grep -l "import os" {} +

find src -type f -name "*.rs" -exec wc -l {} \; | sort -n

find . -name '*.orig' -print0 | xargs -0 ls -l

find "$HOME/x" -maxdepth 1 -newer a.txt

find . -type f \( -name "*.ts" -o -name "*.tsx" \) | xargs grep -n "useEffect" | head -20

git ls-files | xargs wc -l | tail -1

git diff --name-only | xargs -r python3 -m black --check

ls *.txt | xargs -I{} cp {} backup/

cat > src/a.py <<'PYTHON'
import os
print(os.system("x"))
PYTHON

cat <<END > config.toml
name = "$NAME"
dir = "${DIR:-/tmp}"
END

cat <<-END | sort
	b
	a
END

git status --short && git diff --stat HEAD~1

git log --oneline --graph --decorate -n 20 --format='%h %s (%an)'

git add -A && git commit -m "Fix the parser" -m "It was wrong; now it's right."

git checkout -b feature/x && git rebase main

git stash list; git stash pop

git fetch origin && git merge --ff-only origin/main

git grep -n 'Vec::new()' -- '*.rs'

git -C "$(git rev-parse --show-toplevel)" status

git show HEAD:src/main.rs | head -50

git blame -L 10,20 src/main.rs

git worktree add ../x -b y

git clone --depth 1 https://github.com/a/b.git

git remote -v; git branch -a; git tag --sort=-creatordate | head -3

git cherry-pick abc123 && git reset --soft HEAD~1

GIT_PAGER=cat git log -3

GIT_EDITOR=true git rebase --continue

tar czf out.tar.gz src docs

tar -xzf a.tar.gz -C /tmp --strip-components=1

tar --exclude=node_modules -cf - . | wc -c

for f in *.tar.gz; do tar tzf "$f" | head -3; done

zip -qr out.zip src && unzip -l out.zip

rsync -a --delete src/ dst/

docker ps

docker ps -a --format '{{.Names}} {{.Status}}'

docker compose up -d && docker compose logs --tail=50 web

docker build -t app:dev . && docker images | head

docker run --name x -p 8080:80 -d nginx:latest

docker exec db psql -U postgres -c 'select 1'

kubectl get pods -n default -o wide

terraform plan -out=plan.bin

gh pr list --limit 5

gh pr create --title "It's done" --body "$(cat notes.md)"

java -version; java -cp build/classes:lib/x.jar com.example.Main

javac -d out src/*.java && java -jar app.jar --serve

mvn -q test -Dtest=FooTest

./gradlew test --info

gcc -Wall -O2 -o x *.c && ./x

g++ -std=c++20 -I include -c "$SRC" -o a.o

cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j4

ctest --test-dir build --output-on-failure

bundle exec rspec spec/a_spec.rb

ruby -Ilib test/test_a.rb

php artisan test

composer install --no-interaction

dotnet test --filter "FullyQualifiedName~X"

swift build && swift test

mix test

perl -c script.pl

set -euo pipefail
cd "$(dirname "$0")"
echo "in $(pwd)"

set -e; trap 'echo failed at $LINENO' ERR; make test

tmp=$(mktemp -d)
trap 'rmdir "$tmp"' EXIT
cp a.txt "$tmp/"
tar -C "$tmp" -cf x.tar .

count=0
for i in 1 2 3; do
  count=$((count + 1))
  if (( count > 2 )); then echo many; fi
done
echo "total: $count"

for ((i = 0; i < 5; i++)); do echo "$i"; done

for i in {1..5}; do echo $((i * 2)); done

for i in $(seq 1 3); do echo "run $i"; cargo test -q || break; done

i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); sleep 1; done

while IFS= read -r line; do echo "> $line"; done < a.txt

while read -r a b; do printf '%s %s\n' "$a" "$b"; done <<< "x y"

IFS=',' read -ra parts <<< "a,b,c"; echo "${parts[1]}"

until nc -z localhost 5432; do sleep 1; done

start=$(date +%s); make test; end=$(date +%s); echo "took $((end - start)) s"

if [[ -f Cargo.toml && "$OSTYPE" == linux* ]]; then cargo check; elif [[ $x =~ ^([0-9]+)\.([0-9]+)$ ]]; then echo "${BASH_REMATCH[1]}"; fi

n=3; if [[ $n -gt 2 ]]; then echo more; fi

name="src/main.rs"; echo "${name##*/} ${name%.rs} ${name//\//-} ${name:0:3} ${name^^} ${#name}"

f() { local x="$1"; echo "x is ${x:-none}"; }; f a; f

log() { echo "[$(date +%T)] $*"; }
log start
npm run build
log end

passed=0; failed=0
for t in tests/*.sh; do
  if bash "$t" > /tmp/out.log 2>&1; then ((passed++)); else ((failed++)); echo "FAIL: $t"; fi
done
echo "$passed passed, $failed failed"

export FOO="a b" BAR=1; env | grep FOO

export DATABASE_URL="postgres://u:p@localhost/$DB"
npm run migrate

unset FOO; readonly X=1; other=2; echo $X $other

timeout 60 npm test -- "$PATTERN"

timeout -k 5 120s cargo test "$1" 2>&1 | tee /tmp/log | tail -5

nohup npm start > server.log 2>&1 &

time cargo build --timings

env RUST_LOG=info NO_COLOR=1 cargo test -q

nice -n 10 make -j4 all

( cd sub && npm ci ) && ls

{ echo a; echo b; } > out.txt

diff <(sort a.txt) <(sort b.txt) && echo same

comm -12 <(git ls-files | sort) <(find . -type f | sed 's|^\./||' | sort)

ls -la | grep -v '^d' | awk '{print $5, $9}' | sort -rn

cp -r src/{a,b} dst/ && mv x{,.bak} && mkdir -p out/{x,y}/z

echo "✅ done ⚠️ careful"

printf '%-10s %s\n' a b; printf -v out '%03d' 7; echo "$out"

test -d node_modules || npm ci

command -v jq >/dev/null 2>&1 || echo "no jq"

for tool in git jq node; do command -v "$tool" || echo "no $tool"; done

which -a python3; type -t node; hash -r

ps aux | grep '[n]ode' | awk '{print $2}' | head -1

lsof -i :3000; ss -ltnp | grep 3000

kill -9 $(pgrep -f "vite --port") || true

sleep 2 && cat server.log

wait $!; echo $?

du -sh node_modules target | sort -h; df -h .

chmod +x scripts/*.sh && ./scripts/build.sh --fast "$ARG"

bash -n script.sh && shellcheck script.sh

bash -c 'cd sub && npm test'

sh ./install.sh "$PREFIX"

bash -lc "cargo test --workspace"

tree -L 2 -I 'node_modules|target'

head -c 100 x.bin | xxd | head; od -c x | head -3; stat -c %s x

rg -n "fn \w+\(" --type rust -g '!target' | head -30

grep -rn --include='*.ts' -E "foo|bar" src | cut -d: -f1 | sort -u

shopt -s globstar nullglob; for f in **/*.md; do wc -w "$f"; done

set -a; . ./.env.test; set +a; npm test

VERSION=$(jq -r .version package.json); echo "v$VERSION"; git tag "v$VERSION"

base64 -d <<< aGk= > x; sha256sum x; openssl rand -hex 8

ln -sf ../a b; touch c; install -m 755 a b; truncate -s 0 log.txt

DEBUG=1 ./run.sh; echo "exit: $?"

ssh-keygen -t ed25519 -f key -N ''

strings a.out | head; nm -C a.out | grep main; objdump -d a.out | head -20

valgrind --leak-check=full ./a.out arg

gdb --version; vim --version | head -1

total=0
for f in src/*.rs; do
  n=$(wc -l < "$f")
  total=$((total + n))
done
echo "$total lines"

xs="a b c"; for x in $xs; do git log -1 --format=%s -- "$x"; done

BRANCH=$(git rev-parse --abbrev-ref HEAD); git log "origin/main..$BRANCH" --oneline

git bisect start HEAD v1 && git bisect run cargo test -q

n=0
while IFS= read -r line; do n=$((n + 1)); echo "$n: $line"; done < a.txt

cp "$1" "$HOME/x" && ls $HOME

declare -i n=0; n=n+1; n+=5; echo "$n"

declare -i count=0; for f in *.rs; do count+=1; done; echo "$count files"

declare -i total; total=$(wc -l < a.txt); echo $((total * 2))

declare -r MAX=10; readonly MIN=1; echo $((MAX - MIN))

declare -x FOO=bar; declare -p FOO

f() { local i; for ((i = 0; i < 3; i++)); do echo "$i"; done; }; f

f() { local -i n=0; local -a xs=("$@"); n=${#xs[@]}; echo "$n"; }; f a b

f() { local name=$1 dir=${2:-.} out; out=$(ls "$dir"); echo "$name: $out"; }; f x

read -r name rest <<< "a b c"; echo "$name and $rest"

read -r -p "Go on? [y/N] " answer; echo "$answer"

read -t 5 -n 1 -s key || true

while read -r line; do echo "$line"; done < <(git log --oneline)

while IFS=: read -r user _ uid _; do echo "$user $uid"; done < /etc/passwd

while IFS= read -r -d '' f; do echo "$f"; done < <(find . -name '*.md' -print0)

git branch --format='%(refname:short)' | while read -r b; do git log -1 --format=%cr "$b"; done

IFS=: read -r a b <<< "x:y"; echo "$b"

IFS=$'\n' read -r -d '' -a lines < a.txt || true; echo "${#lines[@]}"

mapfile -t files < <(git ls-files '*.rs'); echo "${#files[@]}"

readarray -t lines < a.txt; printf '%s\n' "${lines[@]}"

time cargo test

time -p make -j4

time npm run build 2>&1 | tail -3

{ time ./run.sh; } 2> time.txt

for i in 1 2 3; do echo "$i"; done

for arg; do echo "$arg"; done

for arg in "$@"
do
  echo "$arg"
done

for arg do echo "$arg"; done

for p in 3000 8080; do lsof -i ":$p" || true; done

for CC in gcc clang; do $CC --version | head -1; done

while getopts "hvo:" opt; do
  case $opt in
    h) echo usage; exit 0 ;;
    v) verbose=1 ;;
    o) out=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
echo "${out:-none} $*"

OPTIND=1; while getopts ":a:b" flag "$@"; do echo "$flag"; done; shift "$((OPTIND-1))"

RANDOM=42; echo $((RANDOM % 6 + 1))

SECONDS=0; make test; echo "took ${SECONDS}s, $((SECONDS / 60)) min"

port=$((RANDOM % 1000 + 3000)); echo "$port"

printf -v stamp '%(%F)T' -1; echo "$stamp"

printf -v padded '%05d' 42 && echo "$padded"

printf '%s\n' "$@"; printf "$FORMAT" a b

printf -- '- %s\n' a b; printf '=%.0s' {1..40}; echo

export PATH=$HOME/bin:$PATH

PATH+=":$HOME/.local/bin"; ruff check .

export $(grep -v '^#' .env | xargs); npm test

set -a; source .env; set +a

export NVM_DIR="$HOME/.nvm"; [ -s "$NVM_DIR/nvm.sh" ] && . "$NVM_DIR/nvm.sh"

: "${PORT:=3000}"; : ${HOST:=localhost}; echo "$HOST:$PORT"

out=${1:-build}; mkdir -p "$out"

unset GIT_DIR GIT_WORK_TREE; git status

unset -f helper; unset -v x

sleep 1 & pid=$!; wait "$pid"; echo $?

for i in 1 2 3; do sleep 1 & done; wait; wait -n || true

pids=(); for t in a b; do ./run.sh "$t" & pids+=($!); done; for p in "${pids[@]}"; do wait "$p"; done

python3 -m pytest -x -q

python3 -m pip install -e '.[dev]'

python3 -m cProfile -o out.prof script.py

python3 -m coverage run -m pytest && python3 -m coverage report

python3.12 -m venv .venv; python3.12 x.py

perl script.pl a b; perl -Ilib t/a.t

prove -lv t/

tar xzf a.tar.gz

tar -czvf "backup-$(date +%F).tar.gz" src

tar --list -f a.tar | head

ln -s ../shared/config.json config.json; cp /dev/null log.txt

cp -r src dst; cp -a "$HOME/x" .

cd /tmp && ls; cd - >/dev/null

pushd web >/dev/null && npm test; popd >/dev/null

set -x; make test; set +x

set -euxo pipefail
make

set -o errexit -o nounset -o pipefail; make

set -- a b c; echo "$1 of $#"; shift; echo "$@"

shopt -s extglob dotglob; ls

alias ll='ls -la'; alias

type -a python3; alias | head -3

[ "$a" = "$b" ] && [ -n "$x" -a -f "$y" ] || echo no

[ "$(git rev-parse HEAD)" != "$old" ] && echo new

[ $# -lt 1 ] && { echo usage; exit 1; }

if [ "$x" -gt 3 ] 2>/dev/null; then echo more; fi

test -n "$CI" && echo ci

if [[ "$n" -gt 5 && -z ${DEBUG-} ]]; then echo big; fi

echo "`date`: `git rev-parse HEAD`"

now=`date +%s`; echo $((now + 60))

for f in `ls *.txt`; do wc -l "$f"; done

x=`expr 1 + 2`; echo $x

cat <<EOF2
host: `hostname`
user: $(whoami)
home: ${HOME}
EOF2

t=$(mktemp); cat > "$t" <<'E'
echo hi
E
bash "$t"

for t in ./tests/*.sh; do bash "$t"; done

cat x.json | python3 -m json.tool /dev/stdin

cat notes.txt | tee /dev/stderr | wc -l

cmake -E copy a b; cmake -E make_directory out

git-lfs --version; git lfs ls-files

gcc-12 -O2 x.c -o x; clang-15 --version

conda run -n env pytest -q

local_ip=$(hostname -I | cut -d' ' -f1); echo "$local_ip"

declare -f log >/dev/null || log() { echo "$*"; }

x=5; y=x+2; echo $((y))

trap 'kill $pid 2>/dev/null' EXIT; npm start & pid=$!; sleep 2

history | tail -5; jobs -l

exec 3> log.txt; echo hi >&3; exec 3>&-

exec > >(tee run.log) 2>&1; make

select_db() { echo "$1"; }; select_db x

local x=1 2>/dev/null || true

hash -r; hash cargo 2>/dev/null || echo none

IFS=$'\n\t'; for f in $(git ls-files); do echo "$f"; done

git -P -c core.fsmonitor=false -c protocol.allow=never log -5 --oneline
