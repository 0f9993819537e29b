//! A connection out of a namespace: forwards a loopback port inside it to an address outside.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    port: u16,
    #[arg(long)]
    to: SocketAddr,
}

pub(crate) fn run(args: &Args) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).unwrap();
    for inside in listener.incoming().flatten() {
        // If the address refuses, dropping the inner connection reports that to the client.
        let Ok(outside) = TcpStream::connect(args.to) else { continue };
        let back = (outside.try_clone().unwrap(), inside.try_clone().unwrap());
        std::thread::spawn(move || pass(inside, outside));
        std::thread::spawn(move || pass(back.0, back.1));
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
