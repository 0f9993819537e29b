//! Serves the forge of the testbed to other processes: `github-fake REPOSITORY [PORT]`.
//!
//! It prints its address and runs until it is killed. `/_record` returns the requests it received.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "for tests only")]

use std::path::PathBuf;

use hookloop_testbed::github::GitHub;

fn main() {
    let mut args = std::env::args_os().skip(1);
    let repository = args.next().map(PathBuf::from).expect("the path of a bare repository");
    let port = args.next().map_or(0, |port| {
        port.to_str().and_then(|port| port.parse().ok()).expect("the second argument is a port")
    });
    let forge = GitHub::serve(&repository, port);
    println!("{}", forge.url());
    loop {
        std::thread::park();
    }
}
