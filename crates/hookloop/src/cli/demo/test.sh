# Tests sum.sh, and says what came of it as Rust's test runner does.
. ./sum.sh
failed=0
check() {
  if [ "$(sum "$2" "$3")" = "$4" ]; then
    echo "test $1 ... ok"
  else
    echo "test $1 ... FAILED"
    failed=$((failed + 1))
    causes="$causes
---- $1 stdout ----
sum $2 $3: expected $4, got $(sum "$2" "$3")
"
  fi
}
echo "running 3 tests"
check adds_nothing 7 0 7
check adds_small_numbers 1 2 3
check adds_negative_numbers -5 3 -2
[ $failed -gt 0 ] || { printf '\ntest result: ok. 3 passed; 0 failed\n'; exit 0; }
printf '\nfailures:\n%s\ntest result: FAILED. %s passed; %s failed\n' "$causes" $((3 - failed)) $failed
exit 2
