# Adds two numbers.
sum() {
  echo $(($1 - $2))
}
