//! The smallest task program: one process per operation, as a command line would be used.
//!
//! `floor DB seed N | create GOAL | close ID | ready`
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measuring tool")]

use std::path::Path;

use hookloop_bench::bare::Bare;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, operation, value @ ..] = args.as_slice() else { return };
    let mut bare = Bare::open(Path::new(path));
    match (operation.as_str(), value) {
        // Pairs: every even task waits for the odd one before it.
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
