//! The smallest task program: one process per operation, like a command line.
//!
//! `floor DB seed N | create GOAL | close ID | ready`; `floor echo` sends each line back
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measuring tool")]

use std::io::{BufRead, Write};
use std::path::Path;

use hookloop_bench::bare::Bare;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|word| word == "echo") {
        return echo();
    }
    let [_, path, operation, value @ ..] = args.as_slice() else { return };
    let mut bare = Bare::open(Path::new(path));
    match (operation.as_str(), value) {
        // Pairs: every even task depends on the odd task before it.
        ("seed", [n]) => {
            let needs = |id: i64| if id % 2 == 0 { vec![id - 1] } else { vec![] };
            bare.seed(n.parse().unwrap(), needs);
        }
        ("create", [goal]) => println!("{}", bare.create(goal)),
        ("close", [id]) => println!("{:?}", bare.close(id.parse().unwrap())),
        ("ready", []) => bare.ready(10).iter().for_each(|(id, goal)| println!("{id} {goal}")),
        _ => std::process::exit(2),
    }
}

fn echo() {
    let (mut line, mut input) = (String::new(), std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    while input.read_line(&mut line).is_ok_and(|read| read > 0) {
        output.write_all(line.as_bytes()).and_then(|()| output.flush()).unwrap();
        line.clear();
    }
}
