//! `bench-scale [--quick] [NAME]…`: measures how the cost of a server grows with its load. Names:
//! subjects, ids, streams, followers, shards.
#![expect(clippy::print_stdout, reason = "a measuring tool")]

use hookloop_bench::figures::table;
use hookloop_bench::scale;

#[tokio::main]
async fn main() {
    let (flags, names): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let quick = flags.iter().any(|flag| flag == "--quick");
    let sizes = if quick { scale::QUICK } else { scale::FULL };
    let wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    if wanted("subjects") {
        println!("### Subjects of a stream\n");
        table(&scale::SUBJECTS, &scale::subjects(sizes).await);
    }
    if wanted("ids") {
        println!("### Ids\n");
        table(&scale::IDS, &scale::ids(sizes).await);
    }
    if wanted("streams") {
        println!("### Streams\n");
        table(&scale::STREAMS, &scale::streams(sizes).await);
    }
    if wanted("followers") {
        println!("### Followers\n");
        table(&scale::FOLLOWERS, &scale::followers(sizes).await);
    }
    if wanted("shards") {
        println!("### Shards\n");
        table(&scale::SHARDS, &scale::shards(sizes).await);
    }
}
