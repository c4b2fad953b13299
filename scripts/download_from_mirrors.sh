# What the scripts download_*.sh have in common: each sets the variables below, defines two functions and reads this file.
#   name      of the data, for messages         folder    where the files go, unless --to says otherwise
#   mirrors   URLs, tried in this order         sums      checksums, as sha256sum writes them, one file a line
#   limit     seconds for everything            silence   seconds after which a mirror that sends nothing is given up
#   all_there FOLDER: true if the data are in it, whole
#   unpack FOLDER: makes them of the files whose checksums are right; what else is in it then is gone
# Options: --to FOLDER, --mirrors "URL …", --sums FILE. Exit 0: the data are there; 1: nothing was changed, and one line says why.

program=$(basename "$0")
options="--to FOLDER, --mirrors \"URL …\", --sums FILE (as sha256sum writes it)"

fail() {
  echo "$program: $1" >&2
  exit "${2:-1}"
}

# The comment at the top of the script that reads this one.
case "${1:-}" in --help | -h) sed -n '2,/^[^#]/s/^# *//p' "$0"; exit 0 ;; esac
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || fail "$1 needs a value; allowed: $options" 2
  case $1 in
    --to) folder=$2 ;;
    --mirrors) mirrors=$2 ;;
    --sums) sums=$(cat "$2") || exit 2 ;;
    *) fail "$1 is not an option; allowed: $options" 2 ;;
  esac
  shift 2
done

all_sums_hold() { (cd "$1" 2>/dev/null && echo "$sums" | sha256sum --check --status 2>/dev/null); }

# fetch URL FILE: within what is left of the time; a mirror that is silent leaves the rest to the next.
fetch() {
  left=$((deadline - $(date +%s)))
  [ "$left" -gt 0 ] || return 1
  if command -v curl >/dev/null; then
    timeout "$left" curl --fail --silent --location --connect-timeout "$silence" --speed-time "$silence" --speed-limit 1 --output "$2" "$1"
  else
    timeout "$left" wget --quiet --tries=1 --timeout="$silence" --output-document="$2" "$1"
  fi
}

fetch_all() {
  for file in $(echo "$sums" | awk '{print $2}'); do
    fetch "$1/$file" "$partial/$file" || return 1
  done
  all_sums_hold "$partial"
}

all_there "$folder" && exit 0
command -v curl >/dev/null || command -v wget >/dev/null || fail "neither curl nor wget is installed"
mkdir -p "$(dirname "$folder")" || exit 1
partial=$(mktemp -d "$(dirname "$folder")/.download.XXXXXX") || exit 1
trap 'rm -rf "$partial"' EXIT
trap 'exit 1' HUP INT TERM
deadline=$(($(date +%s) + limit))
for mirror in $mirrors; do
  fetch_all "$mirror" && unpack "$partial" && all_there "$partial" || continue
  mkdir -p "$folder" && mv "$partial"/* "$folder/" || exit 1
  echo "$name is in $folder (from $mirror)"
  exit 0
done
fail "no mirror gave $name with the right checksums within $limit s"
