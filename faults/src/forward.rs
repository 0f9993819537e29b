//! A way out of a namespace: whoever connects to a port on loopback there speaks to an address outside.

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
        // Who finds nobody there is told so by the end of the connection.
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
