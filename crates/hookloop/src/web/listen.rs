//! Connections, with limits of number and time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::live::FOLLOWERS_MAX;

/// Connections at once; more wait to be accepted. Pages that follow what happens have theirs beside those.
const CONNECTIONS_MAX: usize = 64 + FOLLOWERS_MAX;
/// How long the head of a request may take, also that of the next one on a connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a head may be.
const HEAD_MAX: usize = 32 * 1024;
/// How long running requests may take after a stop.
const STOP_MAX: Duration = Duration::from_secs(5);
/// How long a client may read nothing while output waits for it.
const TAKE_TIME_MAX: Duration = Duration::from_secs(20);
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
                .serve_connection(TokioIo::new(Patient::new(stream)), service);
            let connection = open.watch(connection);
            tokio::spawn(async move {
                // An aborted connection concerns no other connection.
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection is aborted");
                }
                drop(place);
            });
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop => {}
    }
    drop(listener);
    // Connections that are still open after that are dropped.
    let _ = timeout(STOP_MAX, open.shutdown()).await;
}

/// A connection that ends when its client reads nothing for too long: output for such a client is bounded by the
/// system's buffers, and in time by this.
struct Patient {
    stream: TcpStream,
    /// While there is something that it does not take.
    until: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream) -> Patient {
        Patient { stream, until: None }
    }

    fn wait<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self.until.get_or_insert_with(|| {
            Box::pin(tokio::time::sleep_until(Instant::now() + TAKE_TIME_MAX))
        });
        match until.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wait(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
