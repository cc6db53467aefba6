#!/bin/sh
# Two machines in one: network namespaces with names and addresses of their own, joined by a bridge. Only root can make them.
#     sh tests/machines.sh FOLDER COMMAND...
# writes FOLDER/hosts (a hostfile of Open MPI, two processes on each) and FOLDER/rsh (which starts a command on one of them, as
# ssh would), runs COMMAND on the machine that is there already, and takes both away again. Exit status: the command's; 77 where
# they cannot be made.
dir=${1:?FOLDER}; shift
name=sp$$ n=$(($$ % 250)) # 198.18: networks for tests, which nobody routes
for i in $(seq 250); do # one that no other run of this has
    ip -o -4 addr | grep -q " 198\.18\.$n\." || break
    n=$(((n + 1) % 250))
done 2>/dev/null
net=198.18.$n
take_away() {
    for i in 1 2; do ip netns del "$name-$i"; ip link del "${name}o$i"; done
    ip link del "${name}br"
} 2>/dev/null
make() {
    ip link add "${name}br" type bridge && ip addr add "$net.254/24" dev "${name}br" && ip link set "${name}br" up || return
    for i in 1 2; do
        ip netns add "$name-$i" && ip link add "${name}o$i" type veth peer name "${name}i$i" &&
            ip link set "${name}o$i" master "${name}br" up && ip link set "${name}i$i" netns "$name-$i" &&
            ip -n "$name-$i" addr add "$net.$i/24" dev "${name}i$i" && ip -n "$name-$i" link set "${name}i$i" up &&
            ip -n "$name-$i" link set lo up && ip netns exec "$name-$i" unshare -u hostname "$name-$i" || return
    done
}
trap take_away EXIT
trap 'exit 1' HUP INT TERM
make || exit 77
mkdir -p "$dir" || exit
printf '%s slots=2\n' "$net.1" "$net.2" > "$dir/hosts"
# the launcher puts options before the name; each machine has its own folder for temporary files
cat > "$dir/rsh" <<EOF || exit
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
node=$name-\${1##*.}; shift
export TMPDIR="$dir/\$node"; mkdir -p "\$TMPDIR"
exec ip netns exec "\$node" unshare -u sh -c "hostname \$node; \$*"
EOF
chmod 755 "$dir/rsh"
"$@"
