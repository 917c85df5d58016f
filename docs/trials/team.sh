#!/bin/sh
# A team's survey: a collector behind Caddy with TLS, two rounds over HTTP, backup and restore.
# It is explained in team.md. Other ports: PORT=8701 HTTP=8081 HTTPS=8444 sh team.sh
set -eu
: "${PORT:=8700}" "${HTTP:=8080}" "${HTTPS:=8443}"
deploy=$(cd "$(dirname "$0")/../../deploy" && pwd)
team=https://localhost:$HTTPS
collector=
trap 'kill $collector $(cat caddy.pid); wait' EXIT

# 1. a collector
sottovoce plan survey.toml -o first.json
sottovoce serve first.json --store sqlite:///survey.db --port "$PORT" --proxy 127.0.0.1 &
collector=$!

# 2. Caddy in front of it, with this machine's name and a certificate of its own making
own="\tadmin off\n\tlocal_certs\n\tskip_install_trust\n\tstorage file_system $PWD/caddy"
sed -e "s/survey.example.org/localhost/g" -e "s/127.0.0.1:8700/127.0.0.1:$PORT/" \
	-e "s|^{\$|{\n$own\n\thttp_port $HTTP\n\thttps_port $HTTPS|" "$deploy/Caddyfile" > Caddyfile
caddy start --adapter caddyfile --config Caddyfile --pidfile caddy.pid 2> caddy.log
export SSL_CERT_FILE="$PWD/caddy/pki/authorities/local/root.crt"

# 3. the first round: each row is a device, which answers now or waits for the second round
sottovoce send first.json people.csv --to "$team" --series rounds.parquet

# 4. the analyst has the second round made of what the first one heard, and fetches its plan
token=$(sottovoce token sqlite:///survey.db --name analyst --days 1)
(umask 077 && echo "Authorization: Bearer $token" > analyst.txt)
ask() { # again, while the collector says that it is not ready
	curl --silent --show-error --fail --retry 60 --retry-delay 1 \
		--cacert "$SSL_CERT_FILE" --header @analyst.txt "$@"
}
first=$(sha256sum first.json | cut -c 1-64) # a plan's id
ask --request POST "$team/v1/surveys/$first/next" > next.json
second=$(sed 's/.*"id": *"\([0-9a-f]*\)".*/\1/' next.json)
ask "$team/v1/plans/$second" > second.json

# 5. the second round, and what both rounds say
sottovoce send second.json people.csv --to "$team" --series rounds.parquet
ask "$team/v1/surveys/$second/estimates" > estimates.json

# 6. a backup while the collector runs; then the store is lost, and filled again from the backup
sottovoce backup sqlite:///survey.db -o backup.db
sottovoce estimate second.json sqlite:///survey.db --json > before.json
kill $collector
wait $collector
rm survey.db*
sottovoce restore backup.db sqlite:///survey.db
sottovoce estimate second.json sqlite:///survey.db --json > after.json
cmp before.json after.json

# 7. the collector goes on; whoever was thanked is neither drawn nor counted again
sottovoce serve second.json --store sqlite:///survey.db --port "$PORT" --proxy 127.0.0.1 &
collector=$!
sottovoce send second.json people.csv --to "$team" --series rounds.parquet
