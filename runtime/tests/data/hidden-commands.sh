## Commands that hide `rm`, with a blank line between them. Nearly all were seen to run it in bash 5.2; of
## the others the program is seldom installed. Each is refused beside a denial of `rm`. Those after the
## next heading hide `git push`.

shopt -s expand_aliases
alias x=rm
x f

shopt -s expand_aliases
alias x='r''m'
x f

cd /dev && echo 'rm f' | bash stdin

cd /dev; echo 'rm '$OLDPWD/f | bash ./stdin

echo 'rm f' | bash //dev/stdin

. /dev/../dev/stdin <<< 'rm f'

ln -s /dev/stdin x; echo 'rm f' | bash x

cp -P /dev/stdin x; echo 'rm f' | bash x

echo 'rm f' | bash /dev/./stdin

echo 'rm f' | bash /./dev/stdin

echo 'rm f' | bash ../../../../../../dev/stdin

pushd /dev; echo 'rm f' | bash stdin

cd /; echo 'rm f' | bash dev/stdin

time -- rm f

time -p	rm f

time -p -- rm f

time ! time -p -- rm f

! time -- rm f

set -- rm f; for i do $i; done

set -- 'rm f'; for i do $i; done

f() { for i do $i; done; }; f 'rm f'

declare -i x; x='a[$(rm f)]'

declare -i x; x=y; y='a[$(rm f)]'; x=y

declare -i x; for x in 'a[$(rm f)]'; do :; done

declare -ai x=('a[$(rm f)]')

declare -i x; x+='a[$(rm f)]'

declare -i x; read x <<< 'a[$(rm f)]'

declare -i x; printf -v x %s 'a[$(rm f)]'

declare -i x; : ${x:='a[$(rm f)]'}

declare -i x; mapfile x <<< 'a[$(rm f)]'

y='a[$(rm f)]'; declare -i x=y

y='a[$(rm f)]'; declare -i x=$y

declare -i x=$(echo 'a[$(rm f)]')

set -x; for PS4 in '$(rm f)'; do :; done

set -x; read PS4 <<< '$(rm f)'; :

set -x; unset PS4; : ${PS4:='$(rm f)'}; :

set -x; unset PS4; : ${PS4='$(rm f)'}; :

set -x; printf -v PS4 %s '$(rm f)'; :

set -x; printf -vPS4 %s '$(rm f)'; :

set -x; mapfile -t PS4 <<< '$(rm f)'; :

set -x; readarray PS4 <<< '$(rm f)'; :

set -x; PS4=('$(rm f)'); :

set -x; declare -n q=PS4; q='$(rm f)'; :

declare -n r; for r in 'a[$(rm f)]'; do r=1; done

declare -n r; r='a[$(rm f)]'; r=1

OPTIND='a[$(rm f)]'

RANDOM='a[$(rm f)]'

HISTCMD='a[$(rm f)]'

SRANDOM='a[$(rm f)]'

read RANDOM <<< 'a[$(rm f)]'

for RANDOM in 'a[$(rm f)]'; do :; done

BASH_CMDS[x]=/bin/rm; x f

BASH_CMDS=([x]=/bin/rm); x f

declare -A BASH_CMDS=([x]=/bin/rm); x f

shopt -s expand_aliases
BASH_ALIASES[x]=rm
x f

echo "`\"rm\" f`"

rbash -c 'rm f'

python3 -i y.sh <<< 'import os; os.system("rm f")'

prove -e 'rm f' y.sh

prove --exec 'rm f' y.sh

set -H -o history
: rm f
^: ^^

sleep 0 & wait -n -p 'a[$(rm f)]'

printf -v'a[$(rm f)]' x

x='([$(rm f)]=1)'; declare -a a="$x"

echo bash /dev/std*n; bash /dev/std*n <<< 'rm f'

exec 7<<< 'rm f'; cd /proc/self/fd; bash 7

bash /dev/stderr 2<<< 'rm f'

bash --rcfile <(echo rm f) -i -c ls

bash --rcfile /dev/fd/5 -i -c ls 5<<< 'rm f'

set -x; builtin declare PS4='$(rm f)'; :

set -x; command export PS4='$(rm f)'; :

set -x; 'declare' PS4='$(rm f)'; :

set -x; \export PS4='$(rm f)'; :

run() { "$@"; }; set -x; run declare -g PS4='$(rm f)'; :

run() { "$@"; }; run declare -i x='a[$(rm f)]'

builtin declare -i x; x='a[$(rm f)]'

'declare' -i x; x='a[$(rm f)]'

declare "-i" x; x='a[$(rm f)]'

declare -gi x; x='a[$(rm f)]'

declare -"i" x; x='a[$(rm f)]'

o=-i; declare $o x; x='a[$(rm f)]'

declare $(echo -i) x; x='a[$(rm f)]'

declare -i x; echo `x='a[$(rm f)]'`

declare -i x; cat <<E
${x:=a[\$(rm f)]}
E

declare -i x; eval 'x='"'"'a[$(rm f)]'"'"

f() { x='a[$(rm f)]'; }; declare -i x; f

declare -i x; x[0]='a[$(rm f)]'

declare -i x; x=('a[$(rm f)]')

declare -i x; x+=('a[$(rm f)]')

declare -i x; x=1 y='a[$(rm f)]'; x=y

set -- rm; for i do $i f; done

set -k; printf 'rm f' > x; bash y.sh BASH_ENV=x

set -o keyword; printf 'rm f' > x; bash y.sh BASH_ENV=x

shopt -so history histexpand
: rm f
^: ^^

rbash <<< 'rm f'

ssh-agent rm f

python3 -m cProfile /dev/stdin <<< 'import os; os.system("rm f")'

python3 -m trace -t /dev/stdin <<< 'import os; os.system("rm f")'

perl -d y.sh <<< 'system "rm f"'

perl -I. /dev/./stdin <<< 'system "rm f"'

x=PS4; set -x; declare $x='$(rm f)'; :

x=PS4; set -x; declare "$x=\$(rm f)"; :

x=PS4; set -x; export "$x"='$(rm f)'; :

command read PS4 <<< '$(rm f)'; set -x; :

builtin printf -v PS4 %s '$(rm f)'; set -x; :

IFS= read -r PS4 <<< '$(rm f)'; set -x; :

read -aPS4 <<< '$(rm'; read -d '' PS4 <<< '$(rm f)'; set -x; :

while read PS4; do set -x; :; done <<< '$(rm f)'

printf -v OPTIND 'a[$(rm f)]'

mapfile RANDOM <<< 'a[$(rm f)]'

OPTIND+='a[$(rm f)]'

OPTIND=x; x='a[$(rm f)]'; OPTIND=x

x='a[$(rm f)]'; OPTIND=$x

OPTIND=$(echo 'a[$(rm f)]')

OPTIND=${x:-'a[$(rm f)]'}

declare -i SECONDS; SECONDS='a[$(rm f)]'

wait -np 'a[$(rm f)]'; sleep 0 & wait -np 'a[$(rm f)]'

sleep 0 & wait -n -p'a[$(rm f)]'

x='a[$(rm f)]'; sleep 0 & wait -n -p "$x"

o=$(echo -v); [ "$o" 'a[$(rm f)]' ]

o=$(echo -v); test $o 'a[$(rm f)]'

shopt -s expand_aliases; alias x=; eval 'x rm f'

shopt -s expand_aliases; alias x='A=1'
x rm f

shopt -s expand_aliases; alias x='ls;'
x rm f

shopt -s expand_aliases; alias x='time'
x rm f

shopt -s expand_aliases; alias x='if'
x rm f; then :; fi

shopt -s expand_aliases; alias x='do'
for i in 1; x rm f; done

bash -O expand_aliases -c 'alias x=rm
x f'

sh -c 'alias x=rm
x f'

set -o posix
alias x=rm
x f

source -- /dev/stdin <<< 'rm f'

cd /dev; . ./stdin <<< 'rm f'

PATH=/dev; . stdin <<< '/bin/rm f'

PATH=/dev:$PATH; . stdin <<< 'rm f'

PATH=/dev:$PATH source stdin <<< 'rm f'

PATH=/dev:$PATH bash stdin <<< 'rm f'

BASH_ENV=//dev/stdin bash y.sh <<< 'rm f'

cd /dev; BASH_ENV=./stdin bash -c : <<< 'rm f'

ENV=//dev/stdin sh -i -c : <<< 'rm f'

env -C /dev bash stdin <<< 'rm f'

f() { local -i x; x='a[$(rm f)]'; }; f

declare -i "x"; x='a[$(rm f)]'

n=x; declare -i "$n"; x='a[$(rm f)]'

n=x; declare -i $n; x='a[$(rm f)]'

n=$(echo x); declare -i $n; x='a[$(rm f)]'

eval 'declare -i x'; x='a[$(rm f)]'

eval declare -i x; x='a[$(rm f)]'

eval "decl""are -i x"; x='a[$(rm f)]'

trap 'declare -i x' DEBUG; :; x='a[$(rm f)]'

export -n x; declare -i x; x='a[$(rm f)]'

typeset -i x; : "${x:=a[\$(rm f)]}"

integer() { declare -gi "$@"; }; integer x; x='a[$(rm f)]'

integer() { declare -gi $1; }; integer x; x='a[$(rm f)]'

declare -i x; while read x; do :; done <<< 'a[$(rm f)]'

declare -i x; IFS=, read -ra x <<< 'a[$(rm f)]'

declare -i REPLY; read <<< 'y[$(rm f)]'

declare -i MAPFILE; mapfile <<< 'y[$(rm f)]'

read -r PATH <<< '.'; printf '#!/bin/sh\n/bin/rm f' > ls; /bin/chmod +x ls; ls

x=$(echo -v); set -x; printf "$x" PS4 '$(rm f)'; :

x=$(echo -v); printf "$x" 'a[$(rm f)]' y

x=$(echo -v); printf $x 'a[$(rm f)]' y

x=$(echo -p); sleep 0 & wait -n "$x" 'a[$(rm f)]'

x=$(echo 'a[$(rm f)]'); sleep 0 & wait -n -p "$x"

x=$(echo 'a[$(rm f)]'); declare "$x=1"

x=$(echo 'a[$(rm f)]'); declare "$x"=1

x='a[`rm\tf`]'; x=$(printf "$x"); declare "$x=1"

o=$(echo -v); x=$(echo 'a[$(rm f)]'); [ "$o" "$x" ]

echo 'rm f' | bash ./././../../../../dev//stdin

d=$(echo /dev); cd $d; echo 'rm f' | bash "./$(echo stdin)"

cd /dev; echo 'rm f' | bash ./std*n

cd /dev; echo 'rm f' | bash s*din

cd /dev; echo 'rm f' | bash std[i]n

cd /dev; echo 'rm f' | sh stdin

cd /dev; echo 'system "rm f"' | perl stdin

cd /dev; echo 'import os; os.system("rm f")' | python3 stdin

echo 'rm f' | bash /proc/$$/../self/fd/0

echo 'rm f' | bash "/proc/self/fd/$((0))"

echo 'rm f' | bash /d*/stdin

echo 'rm f' | bash ~/../../../../dev/stdin

ln -s /proc/self/fd d; echo 'rm f' | bash d/0

ln -s /dev d; echo 'rm f' | bash d/stdin

ln -sf /dev/fd/0 x; echo 'rm f' | bash x

ln --symbolic /dev/stdin x; echo 'rm f' | sh x

cp -a /dev/stdin x; echo 'rm f' | bash x

cp -r /dev/stdin x; echo 'rm f' | bash x

s=/dev/stdin; ln -s $s x; echo 'rm f' | bash x

bash --init-file /dev/stdin -i -c : <<< 'rm f'

read BASH_ENV <<< '$(rm f)'; export BASH_ENV; bash y.sh

for BASH_ENV in '$(rm f)'; do export BASH_ENV; bash y.sh; done

x=BASH_ENV; export $x='$(rm f)'; bash y.sh

export $(echo BASH_ENV=/dev/stdin); bash y.sh <<< 'rm f'

BASH_CMDS["x"]=/bin/rm; x f

BASH_CMDS+=([x]=/bin/rm); x f

: ${BASH_CMDS[x]:=/bin/rm}; x f

: ${BASH_CMDS[x]=/bin/rm}; x f

time -- A=1 rm f

time -- { rm f; }

time -- ! rm f

time -- time -- rm f

if time -- rm f; then :; fi

tar cf x.tar f --checkpoint=1 --checkpoint-action=exec=rm

TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=rm' tar cf x.tar f

read TAR_OPTIONS <<< '--checkpoint=1 --checkpoint-action=exec=rm'; export TAR_OPTIONS; tar cf x.tar f

for TAR_OPTIONS in '--checkpoint=1 --checkpoint-action=exec=rm'; do export TAR_OPTIONS; tar cf x.tar f; done

prove -e rm f

prove --exec=rm f

prove -ve rm f

prove -v --exec 'rm' f

/usr/bin/prove -e rm f

PERL5DB='BEGIN{system "rm f"}' perl -d y.sh

python3 -qi y.sh <<< 'import os; os.system("rm f")'

: > e.py; python3 -i e.py <<< 'import os; os.system("rm f")'

: > e.py; python3 -Bi e.py <<< 'import os; os.system("rm f")'

python3 -m profile /dev/stdin <<< 'import os; os.system("rm f")'

python3 -m cProfile -s time /dev/stdin <<< 'import os; os.system("rm f")'

python3 -m doctest /dev/stdin <<< '>>> import os; os.system("rm f")'

python3 -X importtime /dev/../dev/stdin <<< 'import os; os.system("rm f")'

make -f /dev/../dev/stdin <<< 'x:;rm f'

cd /dev; make -f stdin <<< 'x:;rm f'

make --file=//dev/stdin <<< 'x:;rm f'

make -f/dev/./stdin <<< 'x:;rm f'

"$0" -c 'rm f'

/proc/self/exe -c 'rm f'

source /dev/tty; source /dev//fd/0 <<< 'rm f'

command . ./../../../../../dev/stdin <<< 'rm f'

set -Ho history
: rm f
^: ^^

set -eH; set -o history
: rm f
^: ^^

o=histexpand; set -o $o -o history
: rm f
^: ^^

echo ${x:-<(rm f)}; sleep 0.2

f() { for i do "$@"; done; }; f rm f

builtin set -- rm f; "$@"

command set -- rm f; "$@"

s=set; $s -- rm f; "$@"

bash -c 'for i do $i f; done' x rm

BASH_ARGV0=rm; "$0" f

x=ls; builtin declare -n y=x; y=rm; $x f

x=ls; f() { "$@"; }; f declare -gn y=x; y=rm; $x f

declare -i n=0; n+='a[$(rm f)]'

declare -i n=0; y='a[$(rm f)]'; n+=y

declare -i n=0; y='a[$(rm f)]'; n+=$y

declare -i n=0; y=$(echo 'a[$(rm f)]'); n+=$y

declare -ai n; n+=('a[$(rm f)]')

declare -ai n=(1 2 'a[$(rm f)]')

declare -ai n; n[1]='a[$(rm f)]'

x='a[$(rm f)]'; declare -ai n=("$x")

mapfile -t l <<< 'a[$(rm f)]'; declare -ai n=("${l[@]}")

f() { local -i n=$1; }; f 'a[$(rm f)]'

f() { local -i n="$1"; }; f 'a[$(rm f)]'

f() { local -i n; n=$1; }; f 'a[$(rm f)]'

set -x; IFS= read -r -d '' PS4 <<< '$(rm f)'; :

set -x; read -r x PS4 <<< 'a $(rm f)'; :

set -x; read -p x PS4 <<< '$(rm f)'; :

set -x; read -px PS4 <<< '$(rm f)'; :

set -x; read -rp x PS4 <<< '$(rm f)'; :

set -x; read -u 3 PS4 3<<< '$(rm f)'; :

set -x; read -t 1 -u3 -r PS4 3<<< '$(rm f)'; :

set -x; read -- PS4 <<< '$(rm f)'; :

set -x; read -n 9 PS4 <<< '$(rm f)'; :

set -x; read -N 8 PS4 <<< '$(rm f)'; :

set -x; read -i x -e PS4 <<< '$(rm f)'; :

set -x; mapfile -t -n 1 PS4 <<< '$(rm f)'; :

set -x; mapfile -d '' PS4 <<< '$(rm f)'; :

set -x; mapfile -s 0 -c 5 -O 0 PS4 <<< '$(rm f)'; :

set -x; printf -v PS4 -- '$(rm f)'; :

set -x; printf -v PS4 '%s' "\$(rm f)"; :

set -x; f() { declare -g "$1=\$(rm f)"; }; f PS4; :

set -x; f() { export "$1=\$(rm f)"; }; f PS4; :

set -x; f() { export "$1"="$2"; }; f PS4 '$(rm f)'; :

set -x; f() { export "$@"; }; f PS4='$(rm f)'; :

set -x; export "$(echo 'PS4=$(rm f)')"; :

set -x; declare "$(echo 'PS4=$(rm f)')"; :

set -x; x='PS4=$(rm f)'; export "$x"; :

set -x; x='PS4=$(rm f)'; declare "$x"; :

set -x; while IFS== read -r k v; do export "$k=$v"; done <<< 'PS4=$(rm f)'; :

hash -p /bin/rm x; x f

cat <({rm,f})

tar cf x.tar f; TAR_OPTIONS=--to-command=rm tar xf x.tar

perl5.36.0 -e 'system "rm f"'

complete -C 'rm f' x; compgen -C 'rm f'

f() { local -n r='a[$(rm f)]'; r=1; }; f

toybox rm f

cmake -E env rm f

conda run --x y rm f

PYTHONINSPECT=1 python3 y.py <<< 'import os'

capsh -- -c 'rm f'

perl - <<< 'system "rm f"'

## git push

shopt -s expand_aliases; alias g=git
g push

time -- git push

shopt -s expand_aliases; alias g='git'
g push

/usr/lib/git-core/git-push

git-push

$(git --exec-path)/git-push

GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.zz GIT_CONFIG_VALUE_0=push git zz

echo push | xargs -I% git %

python3 -m timeit -s 'import os' 'os.system("git push")'
