//! Connections: so many at once, and none for ever.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// How long the head of a request may take, also that of the next one on a connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a head may be.
const HEAD_MAX: usize = 32 * 1024;
/// How long requests that are worked on may take when the server is asked to stop.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Before the next try when the system has no connection for us.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let open = GracefulShutdown::new();
    let accept = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(_) => {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let service = TowerToHyperService::new(router.clone());
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME_MAX)
                .max_buf_size(HEAD_MAX)
                .serve_connection(TokioIo::new(stream), service);
            let connection = open.watch(connection);
            tokio::spawn(async move {
                // What a client breaks off concerns nobody else.
                let _ = connection.await;
                drop(place);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    drop(listener);
    let _ = timeout(STOP_MAX, open.shutdown()).await;
}
