#!/bin/sh
# A stand-in for the client: it registers itself, draws a composer, notes how it
# was started, and ends on SIGTERM as the client does.
sid=
for word in "$@"; do
    case "$before" in --resume | --session-id) sid=$word ;; esac
    before=$word
done
read -r stat </proc/$$/stat
rest=${stat##*) }
# shellcheck disable=SC2086
set -f; words="$rest"; count=0
for field in $words; do
    count=$((count + 1))
    [ "$count" -eq 20 ] && start=$field
done
entry="$CLAUDE_CONFIG_DIR/sessions/$$.json"
end() {
    sleep "${IMPOSTOR_ENDS_IN_S:-0}"
    rm -f "$entry"
    echo "end $$" >>"$IMPOSTOR_LOG"
    exit 0
}
trap end TERM
{
    printf 'start %s only-here=%s' "$$" "$ONLY_HERE"
    for word in "$@"; do printf ' [%s]' "$word"; done
    echo
} >>"$IMPOSTOR_LOG"
printf '\n────────────────\n❯ %s\n────────────────\n' "$IMPOSTOR_COMPOSER"
printf '{"pid":%s,"sessionId":"%s","procStart":"%s","status":"idle","statusUpdatedAt":1}' \
    "$$" "$sid" "$start" >"$entry.new"
mv "$entry.new" "$entry"
while :; do sleep 0.1; done
